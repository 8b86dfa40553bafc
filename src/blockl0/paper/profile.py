"""Profiles: compute everything, or a part that takes about two minutes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blockl0.paper import printed as paper
from blockl0.paper.cells import is_e2006


@dataclass(frozen=True)
class Profile:
    """List the sets, prices, budgets, starts and draws of an experiment.

    Attributes
    ----------
    sets : tuple of str
        Table 2, Table 3 and Figure 2, without the other reading of the noise.
    curve_sets : tuple of str
        Figure 1, likewise.
    prices, budgets, curve_budgets : tuple of float or int
        λ of Table 2, s of Figure 2, s of Figure 1.
    seeds, refit_seeds : int
        Random starts of the tables and drawings; of refit, which starts at 0, seeds of its search.
    draws, start_draws : int
        Data sets drawn for each price, for the runs and for the objective at the start.
    curve_draws, figure_draws, figure_seeds : int
        Data sets of Figure 1 and of Figure 2, and starts, with which claims about them are judged.
    refit : str
        The label under which our default method runs.
    is_unstopped : bool
        Whether blocks of two are run for a million iterations.
    """

    name: str
    sets: tuple[str, ...]
    curve_sets: tuple[str, ...]
    prices: tuple[float, ...]
    budgets: tuple[int, ...]
    curve_budgets: tuple[int, ...]
    seeds: int
    draws: int
    start_draws: int
    curve_draws: int
    figure_draws: int
    figure_seeds: int
    refit_seeds: int = 1
    refit: str = "refit"
    is_unstopped: bool = False

    @property
    def all_sets(self) -> tuple[str, ...]:
        """Return the sets, including those with outliers in the noise."""
        return with_noise(self.sets)

    @property
    def all_curve_sets(self) -> tuple[str, ...]:
        """Return the sets of Figure 1, including those with outliers in the noise."""
        return with_noise(self.curve_sets)


def with_noise(sets: Sequence[str]) -> tuple[str, ...]:
    """Append the random sets with outliers in X and in the noise."""
    noisy = (f"{name}N" for name in sets if name.endswith("-C") and not is_e2006(name))
    return (*sets, *noisy)


FULL = Profile(
    name="full",
    sets=paper.SETS,
    curve_sets=tuple(name for name in paper.SETS if not name.startswith("random-256-2048")),
    prices=paper.PRICES,
    budgets=tuple(range(3, 50, 5)),
    curve_budgets=(20, 40),
    seeds=5,
    draws=20,
    start_draws=150,
    curve_draws=3,
    figure_draws=3,
    figure_seeds=3,
    refit_seeds=2,
    is_unstopped=True,
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
    start_draws=20,
    curve_draws=1,
    figure_draws=1,
    figure_seeds=1,
    refit="refit-fast",
)
