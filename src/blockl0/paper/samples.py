"""Gather cells over their starts; format numbers."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from blockl0.paper.cells import Cell
from blockl0.paper.store import Store
from blockl0.paper.variants import VARIANTS

SAME = 1e-6
"""Relative difference below which objectives count as equal."""


@dataclass(frozen=True)
class Sample:
    """Gather the results of one method on one problem over its starts."""

    objectives: tuple[float, ...]
    seconds: tuple[float, ...]
    n_nonzero: tuple[int, ...]

    @property
    def objective(self) -> float:
        """Return the mean over the starts."""
        return float(np.mean(self.objectives))

    @property
    def spread(self) -> float:
        """Return the standard deviation over the starts."""
        return float(np.std(self.objectives))


def starts(
    dataset: str, method: str, form: str, value: float, seeds: int, draw: int = 0
) -> list[Cell]:
    """List the cells of one method on one problem: one if its start makes no difference."""
    count = seeds if VARIANTS[method].is_seeded else 1
    return [Cell(dataset, method, form, value, seed, draw) for seed in range(count)]


def gather(store: Store, cells: Iterable[Cell]) -> Sample | None:
    """Gather the finished cells; None when there are none."""
    records = [store[cell] for cell in cells if cell in store]
    if not records:
        return None
    return Sample(
        tuple(record["objective"] for record in records),
        tuple(record["seconds"] for record in records),
        tuple(record["n_nonzero"] for record in records),
    )


def places(values: Mapping[str, float]) -> dict[str, int]:
    """Rank the three smallest different values 1, 2, 3, the rest 0; equal ones share a place."""
    place, last, ranked = 0, -np.inf, {}
    for name in sorted(values, key=values.__getitem__):
        if values[name] - last > SAME * abs(values[name]):
            place, last = place + 1, values[name]
        ranked[name] = place if place <= 3 else 0
    return ranked


def sci(value: float, digits: int = 3) -> str:
    """Write a number as the paper does, '6.9e+2'."""
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return f"{mantissa}e{int(exponent):+d}"


def short(value: float) -> str:
    """Write a time or a ratio with two digits: '0.0021', '0.43', '12', '340'."""
    if value == 0.0:
        return "0"
    rounded = float(f"{value:.2g}")
    return (
        f"{rounded:.0f}" if rounded >= 10 else f"{rounded:g}" if rounded >= 1e-4 else sci(value, 2)
    )


def multiple(value: float) -> str:
    """Write a ratio: '1.03', '0.87', '0.0021'."""
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def write_csv(path: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table; None becomes an empty field."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(["" if value is None else value for value in row] for row in rows)
