"""How much is computed: everything, or a part of it that takes about two minutes."""

from __future__ import annotations

from dataclasses import dataclass

from blockl0.experiments import paper


@dataclass(frozen=True)
class Profile:
    """Which sets, prices, budgets, starts and draws an experiment goes through.

    Attributes
    ----------
    sets : tuple of str
        Table 2, Table 3 and Figure 2.
    curve_sets : tuple of str
        Figure 1.
    prices, budgets, curve_budgets : tuple of float or int
        λ of Table 2, s of Figure 2, s of Figure 1.
    seeds : int
        Random starts.
    draws : int
        Data sets drawn afresh, for the differences from the printed tables.
    refit : str
        The label under which our default method runs.
    """

    name: str
    sets: tuple[str, ...]
    curve_sets: tuple[str, ...]
    prices: tuple[float, ...]
    budgets: tuple[int, ...]
    curve_budgets: tuple[int, ...]
    seeds: int
    draws: int
    refit: str = "refit"


FULL = Profile(
    name="full",
    sets=paper.SETS,
    curve_sets=tuple(name for name in paper.SETS if not name.startswith("random-256-2048")),
    prices=paper.PRICES,
    budgets=tuple(range(3, 50, 5)),
    curve_budgets=(20, 40),
    seeds=5,
    draws=5,
)

QUICK = Profile(
    name="quick",
    sets=paper.SETS,
    curve_sets=("random-256-1024", "e2006-5000-1024", "random-256-1024-C", "e2006-5000-1024-C"),
    prices=paper.PRICES,
    budgets=(3, 18, 48),
    curve_budgets=(20,),
    seeds=1,
    draws=1,
    refit="refit-fast",
)
