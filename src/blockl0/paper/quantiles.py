"""Quantiles of the printed numbers among many draws of the data.

The paper's own draws are not known. If a variant is what was run, the printed number is one more
draw: its rank among n of ours is then uniform on 0, …, n.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from blockl0.paper import printed as paper
from blockl0.paper.cells import Cell, draw_of, is_e2006
from blockl0.paper.profile import Profile
from blockl0.paper.store import Store
from blockl0.paper.variants import VARIANTS, dec

DEC_CHANGES = ("", "printed", "ranked", "list", "theta3", "theta5", "theta5 ranked", "zero")
"""Changes of DEC-R10G2 whose numbers are compared with the printed ones."""
OTHERS = ("PGM-l0", "APGM-l0", "PGM-l1", "PGM-lp")
METHODS = (*OTHERS, *(dec(change=change) for change in DEC_CHANGES), "refit-fast")
ITERATIONS = (100, 300, 1000)
"""Candidate run lengths of the gradient methods; the paper does not say."""
TAIL = 0.05
"""A number is explained if its quantile lies between this and one minus this."""
DIGITS = 2
"""Significant digits of a printed number."""


def cells(profile: Profile) -> list[Cell]:
    """List every method on every draw, and the objective at the start on more draws."""
    return [
        cell
        for dataset in profile.all_sets
        for price in profile.prices
        for method in ("start", *METHODS)
        if is_run(dataset, method)
        for cell in draw_cells(profile, dataset, price, method)
    ]


def is_run(dataset: str, method: str) -> bool:
    """Tell whether a label is run on a set: θ is varied on e2006 only, see `dec_on`."""
    return is_e2006(dataset) or "theta" not in method


def draw_cells(profile: Profile, dataset: str, price: float, method: str) -> list[Cell]:
    """List the draws of one method on one set and price, from one start each."""
    count = profile.start_draws if method == "start" else profile.draws
    draws = (draw_of(profile.prices, price, number) for number in range(count))
    return [Cell(dataset, method, "price", price, draw=draw) for draw in draws]


# -- one number ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reading:
    """Read a label at its end or after a number of iterations."""

    label: str
    iterations: int | None = None

    @property
    def title(self) -> str:
        """Return the reading in words."""
        if self.label == "start":
            return "objective at the start"
        title = VARIANTS[self.label].title
        return title if self.iterations is None else f"{title}, {self.iterations} iterations"

    @property
    def column(self) -> str:
        """Return the printed column to compare with: APGM-ℓ0 stayed at its start, see the page."""
        if self.label == "start":
            return "APGM-l0"
        return self.label if self.label in paper.METHODS else dec()

    def value(self, record: dict[str, object]) -> float:
        """Return the objective; a run that ended earlier keeps its last one."""
        at = record.get("at")
        found = at.get(str(self.iterations)) if isinstance(at, dict) else None
        value = record["objective"] if found is None else found
        assert isinstance(value, float | int)
        return float(value)


@dataclass(frozen=True)
class Place:
    """Locate a printed number among the draws of a reading."""

    dataset: str
    price: float
    reading: Reading
    values: tuple[float, ...]
    printed: float

    @property
    def mean(self) -> float:
        """Return the mean over the draws."""
        return float(np.mean(self.values))

    @property
    def quantile(self) -> float:
        """Return (rank + ½)/(n + 1), where draws that round to the printed number count half."""
        below, alike, above = self._ranks()
        return (below + 0.5 * alike + 0.5) / (below + alike + above + 1)

    @property
    def is_telling(self) -> bool:
        """Tell whether most draws differ from the printed number; else its quantile is near ½."""
        return 2 * self._ranks()[1] < len(self.values)

    def _ranks(self) -> tuple[int, int, int]:
        """Count the draws below the printed number, rounding to it, and above."""
        half, values = rounding(self.printed), np.asarray(self.values)
        below = int(np.count_nonzero(values < self.printed - half))
        above = int(np.count_nonzero(values > self.printed + half))
        return below, values.size - below - above, above

    @property
    def is_explained(self) -> bool:
        """Tell whether the number lies in the central 90 %."""
        return is_central(self.quantile)


def rounding(printed: float) -> float:
    """Return half a unit of the last printed digit."""
    return 0.5 * 10.0 ** (np.floor(np.log10(printed)) - DIGITS + 1)


def is_central(quantile: float) -> bool:
    """Tell whether a quantile is away from both ends."""
    return TAIL <= quantile <= 1.0 - TAIL


def chance(n: int) -> float:
    """Return the share of numbers that a right variant explains with n draws: 19/21 for n = 20."""
    ranks = (np.arange(n + 1) + 0.5) / (n + 1)
    return float(np.mean([is_central(rank) for rank in ranks]))


# -- all of them -----------------------------------------------------------------------------------

READINGS = (
    Reading("start"),
    *(Reading(label, i) for label in OTHERS if label != "APGM-l0" for i in ITERATIONS),
    *(Reading(dec(change=change)) for change in DEC_CHANGES),
)


def collect(store: Store, profile: Profile) -> list[Place]:
    """Locate every printed number among the finished draws."""
    places = []
    for dataset in profile.all_sets:
        for price in profile.prices:
            for reading in READINGS:
                found = draw_cells(profile, dataset, price, reading.label)
                values = tuple(reading.value(store[cell]) for cell in found if cell in store)
                key = (dataset.removesuffix("N"), price, reading.column)
                if values and key in paper.OBJECTIVES and is_run(dataset, reading.label):
                    printed = paper.OBJECTIVES[key].objective
                    places.append(Place(dataset, price, reading, values, printed))
    return places


def kind(dataset: str) -> str:
    """Return the name of a set without its sizes: random, random-C, random-CN, e2006, e2006-C."""
    return re.sub(r"-\d+", "", dataset)


@dataclass(frozen=True)
class QuantileTally:
    """Gather the printed numbers of one kind of set among the draws of one reading."""

    kind: str
    reading: Reading
    places: tuple[Place, ...]

    @property
    def quantiles(self) -> tuple[float, ...]:
        """Return the quantiles by price and size."""
        return tuple(place.quantile for place in self.places)

    @property
    def explained(self) -> int:
        """Count the quantiles in the central 90 %."""
        return sum(place.is_explained for place in self.places)

    @property
    def expected(self) -> float:
        """Return how many would lie there if this were what the authors ran."""
        return sum(chance(len(place.values)) for place in self.places)

    @property
    def p_value(self) -> float | None:
        """Test that the telling quantiles are uniform (Kolmogorov-Smirnov), if there are any.

        Quantiles of numbers to which most draws round are near ½ whatever the truth: left out.
        """
        from scipy.stats import kstest

        telling = [place.quantile for place in self.places if place.is_telling]
        return float(kstest(telling, "uniform").pvalue) if telling else None

    @property
    def ratio(self) -> float:
        """Return the geometric mean of ours over the paper's."""
        return float(np.exp(np.mean([np.log(p.mean / p.printed) for p in self.places])))


def tally(places: Sequence[Place]) -> list[QuantileTally]:
    """Tally the places for each kind of set and reading."""
    groups: dict[tuple[str, Reading], list[Place]] = {}
    for place in places:
        groups.setdefault((kind(place.dataset), place.reading), []).append(place)
    return [QuantileTally(*key, tuple(found)) for key, found in groups.items()]


def start_losses(dataset: str, n_features: int) -> list[tuple[float, float, float]]:
    """Return price, printed start value less λn, and its rounding, for one set.

    One draw of y for all prices would make them equal to within their roundings.
    """
    rows = []
    for price in paper.PRICES:
        printed = paper.OBJECTIVES[dataset, price, "APGM-l0"].objective
        rows.append((price, printed - price * n_features, rounding(printed)))
    return rows


def is_redrawn(rows: Sequence[tuple[float, float, float]]) -> bool:
    """Tell whether no single number lies within the rounding of all of them."""
    return max(v - r for _, v, r in rows) > min(v + r for _, v, r in rows)
