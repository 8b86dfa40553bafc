"""Profiles: compute everything, or a part that takes about two minutes; and the cells they need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from blockl0.paper import printed as paper
from blockl0.paper.cells import Cell, draw_of, is_e2006
from blockl0.paper.variants import (
    GREEDY,
    GREEDY_UNIT,
    VARIANTS,
    WORKING_SETS,
    dec,
    published,
)

FIGURE1_METHODS = (
    "PGM", "APGM", "QPM", *(dec(name) for name in ("R2G0", "R0G2", "R2G2", "R5G5", "R10G2")),
)  # fmt: skip
FIGURE2_METHODS = ("PGM", "APGM", "QPM", *GREEDY, "CVX-l1", dec())
OTHERS = ("PGM-l0", "APGM-l0", "PGM-l1", "PGM-lp")
"""The methods beside DEC in Table 2."""
END_CHANGES = ("", "printed", "code", "ranked", "list", "theta5", "theta5 ranked")
"""Changes of DEC under which the claims about Figure 1 are judged."""
FIGURE2_CHANGES = (
    "", "printed", "code", "ranked", "list", "theta3", "theta5", "theta5 ranked", "long",
    "theta5 long", "zero",
)  # fmt: skip
"""Changes of DEC under which the claims about Figure 2 are judged."""
DRAW_CHANGES = ("", "printed", "ranked", "list", "theta3", "theta5", "theta5 ranked", "zero")
"""Changes of DEC-R10G2 whose numbers are compared with the printed ones of Table 2."""
COLUMN_SET, COLUMN_PRICE = "e2006-5000-1024", 100.0
COLUMN_METHODS = ("strong columns", dec(), "refit-fast")
"""What is computed on every draw of this set and price, to tell how much its columns matter."""


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


# -- the cells of every table and figure -----------------------------------------------------------


def starts(
    dataset: str, method: str, form: str, value: float, seeds: int, draw: int = 0
) -> list[Cell]:
    """List the cells of one method on one problem: one if its start makes no difference."""
    count = seeds if VARIANTS[method].is_seeded else 1
    return [Cell(dataset, method, form, value, seed, draw) for seed in range(count)]


def is_run(dataset: str, method: str) -> bool:
    """Tell whether a label is run on a set: θ is varied on e2006 only, see `dec_on`."""
    return is_e2006(dataset) or "theta" not in method


def table_methods(profile: Profile, dataset: str) -> tuple[str, ...]:
    """Return the labels of Table 2: the paper's, DEC as its authors' code runs it, and ours."""
    return (*OTHERS, published("price", dataset), profile.refit)


def table_cells(profile: Profile) -> list[Cell]:
    """List the starts of every number of Tables 2 and 3, on the first draw of its price."""
    return [
        cell
        for dataset, price in product(profile.all_sets, profile.prices)
        for method in table_methods(profile, dataset)
        for cell in starts(
            dataset, method, "price", price,
            profile.refit_seeds if method == profile.refit else profile.seeds,
            draw_of(profile.prices, price, 0),
        )
    ]  # fmt: skip


def curve_cells(profile: Profile) -> list[Cell]:
    """List the cells of the curves of Figure 1, one start each."""
    return [
        Cell(dataset, method, "budget", budget, has_curve=True)
        for dataset, budget in product(profile.curve_sets, profile.curve_budgets)
        for method in (*FIGURE1_METHODS, profile.refit)
    ]


def end_cells(profile: Profile) -> list[Cell]:
    """List the runs by which the claims about Figure 1 are judged."""
    labels = (
        "PGM", "APGM", *(dec(name, change) for change in END_CHANGES for name in WORKING_SETS),
    )  # fmt: skip
    return _budget_cells(
        profile.all_curve_sets, profile.curve_budgets, labels, profile.figure_seeds,
        range(profile.curve_draws),
    )  # fmt: skip


def unstopped_cells(profile: Profile) -> list[Cell]:
    """List runs with two random and two greedy coordinates of a million iterations."""
    labels = [dec(name, "unstopped") for name in ("R2G0", "R0G2")] * profile.is_unstopped
    return _budget_cells(
        profile.curve_sets, profile.curve_budgets, labels, 1, range(profile.curve_draws)
    )


def figure2_cells(profile: Profile) -> list[Cell]:
    """List the runs of the curves of Figure 2."""
    labels = (*FIGURE2_METHODS, *GREEDY_UNIT)
    theirs = _budget_cells(profile.all_sets, profile.budgets, labels, profile.seeds)
    ours = [profile.refit]
    return theirs + _budget_cells(profile.all_sets, profile.budgets, ours, profile.refit_seeds)


def judged_cells(profile: Profile) -> list[Cell]:
    """List the runs by which the claims about Figure 2 are judged."""
    labels = (
        "PGM", "APGM", "QPM", *GREEDY, *GREEDY_UNIT, "CVX-l1",
        *(dec(change=change) for change in FIGURE2_CHANGES),
    )  # fmt: skip
    draws = range(profile.figure_draws)
    theirs = _budget_cells(profile.all_sets, profile.budgets, labels, profile.figure_seeds, draws)
    return theirs + _budget_cells(profile.all_sets, profile.budgets, [profile.refit], 1, draws)


def _budget_cells(
    sets: Iterable[str],
    budgets: Iterable[int],
    methods: Iterable[str],
    seeds: int,
    draws: Iterable[int] = (0,),
) -> list[Cell]:
    return [
        cell
        for dataset, budget, draw, method in product(sets, budgets, draws, methods)
        if is_run(dataset, method)
        for cell in starts(dataset, method, "budget", budget, seeds, draw)
    ]


def draw_cells(profile: Profile) -> list[Cell]:
    """List every method of Table 2 on every draw, and the objective at the start on more draws."""
    methods = ("start", *OTHERS, *(dec(change=change) for change in DRAW_CHANGES), "refit-fast")
    return [
        Cell(dataset, method, "price", price, draw=draw_of(profile.prices, price, number))
        for dataset, price, method in product(profile.all_sets, profile.prices, methods)
        if is_run(dataset, method)
        for number in range(profile.start_draws if method == "start" else profile.draws)
    ]


def column_cells(profile: Profile) -> list[Cell]:
    """List for each draw of one set the count of its strong columns, and two methods."""
    if COLUMN_SET not in profile.sets or COLUMN_PRICE not in profile.prices:
        return []
    return [
        Cell(
            COLUMN_SET, label, "price", COLUMN_PRICE, draw=draw_of(profile.prices, COLUMN_PRICE, i)
        )
        for i, label in product(range(profile.draws), COLUMN_METHODS)
    ]
