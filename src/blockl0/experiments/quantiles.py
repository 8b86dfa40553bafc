"""Where a printed number lies among many draws of the data: the cells, and the arithmetic."""

from __future__ import annotations

from blockl0.experiments.cells import Cell, draw_of
from blockl0.experiments.profile import Profile
from blockl0.experiments.variants import dec

DEC_CHANGES = (
    "", "printed", "ranked", "list", "stopping", "theta3", "theta5", "theta5 ranked",
    "theta5 long", "zero",
)  # fmt: skip
"""Changes of DEC-R10G2 whose numbers are compared with the printed ones."""
OTHERS = ("PGM-l0", "APGM-l0", "PGM-l1", "PGM-lp")
METHODS = (*OTHERS, *(dec(change=change) for change in DEC_CHANGES), "refit-fast")


def cells(profile: Profile) -> list[Cell]:
    """Every method on every draw, and the objective at the start on more of them."""
    return [
        cell
        for dataset in profile.all_sets
        for price in profile.prices
        for method in ("start", *METHODS)
        for cell in draw_cells(profile, dataset, price, method)
    ]


def draw_cells(profile: Profile, dataset: str, price: float, method: str) -> list[Cell]:
    """One method on the draws of one set and price, from one start each."""
    count = profile.start_draws if method == "start" else profile.draws
    draws = (draw_of(profile.prices, price, number) for number in range(count))
    return [Cell(dataset, method, "price", price, draw=draw) for draw in draws]
