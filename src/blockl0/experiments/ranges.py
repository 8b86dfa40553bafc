"""A variant over several draws of a data set, and how often its range holds the printed number."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

HALF_DIGIT = 0.05
"""A printed number with two digits stands for what rounds to it."""


@dataclass(frozen=True)
class Range:
    """One variant over the draws, beside the number it may explain."""

    part: str
    dataset: str
    price: float
    variant: str
    values: tuple[float, ...]
    printed: float | None

    @property
    def mean(self) -> float:
        """Mean over the draws."""
        return float(np.mean(self.values))

    @property
    def explains(self) -> bool:
        """The printed number lies in the range, to its two digits."""
        if self.printed is None:
            return False
        rounding = HALF_DIGIT * 10.0 ** np.floor(np.log10(self.printed))
        return min(self.values) - rounding <= self.printed <= max(self.values) + rounding


def tally(ranges: Sequence[Range]) -> list[tuple[str, str, str, int, int, float]]:
    """For each part, kind of set and variant: explained, printed, geometric mean of ours/paper's.

    The kind of a set is its name without the sizes.
    """
    groups: dict[tuple[str, str, str], list[tuple[bool, float]]] = {}
    for item in ranges:
        if item.printed is not None:
            key = (item.part, re.sub(r"-\d+", "", item.dataset), item.variant)
            groups.setdefault(key, []).append((item.explains, item.mean / item.printed))
    return [
        (
            *key,
            sum(e for e, _ in found),
            len(found),
            float(np.exp(np.mean([np.log(r) for _, r in found]))),
        )
        for key, found in groups.items()
    ]
