"""Prices of supports that were priced before: the same support does not cost another pass.

Points of a path are started from each other, and most of these searches come back to where they
began. Of every support the columns that matter are kept, which are few.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.moves.pool import first_of
from blockl0.moves.pricing import Priced

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST = 128
"""Supports that are remembered."""


class Short(NamedTuple):
    """The best columns of a support by either way in; others are worse than these by both."""

    columns: Ints
    gains: Floats
    swaps: Floats
    doubtful: Ints

    def full(self, n: int) -> Priced:
        """With others as if they could not come in."""
        gains, swaps = np.full(n, -np.inf), np.full(n, np.inf)
        gains[self.columns], swaps[self.columns] = self.gains, self.swaps
        return Priced(gains, swaps, self.doubtful)


class PriceMemory:
    """What was priced, by support.

    Parameters
    ----------
    size : int
        Columns of the largest pool that is made of prices.

    Attributes
    ----------
    most : float
        Supports that are remembered.
    notify : callable or None
        Called after each that is put in.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.most: float = MOST
        self.notify: Callable[[], None] | None = None
        self._short: dict[bytes, Short] = {}

    def put(self, support: Ints, priced: Priced) -> None:
        """Remember the best columns of a support."""
        columns = np.union1d(
            first_of(-priced.gains, self.size), first_of(priced.swaps, self.size)
        ).astype(np.int64)
        self._short[support.tobytes()] = Short(
            columns, priced.gains[columns], priced.swaps[columns], priced.doubtful
        )
        if len(self._short) > self.most:
            del self._short[next(iter(self._short))]
        if self.notify is not None:
            self.notify()

    def recall(self, support: Ints, short: Short) -> None:
        """Put in what another memory had."""
        self._short[support.tobytes()] = short

    def contents(self) -> list[tuple[Ints, Short]]:
        """All supports, with what is remembered of each."""
        return [(np.frombuffer(key, dtype=np.int64), short) for key, short in self._short.items()]

    def get(self, support: Ints, n: int) -> Priced | None:
        """Return what is remembered of a support, of n columns; None where nothing is."""
        short = self._short.get(support.tobytes())
        return None if short is None else short.full(n)
