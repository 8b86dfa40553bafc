"""Supports that have been judged, so that none is fitted twice."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

MOST_REMEMBERED = 100_000
"""Supports that are known to have been judged; with more, all are forgotten."""


class Judged:
    """Remembers supports, up to a number of them."""

    def __init__(self) -> None:
        self._keys: set[bytes] = set()

    def is_new(self, support: Ints) -> bool:
        """Whether an ascending support has not been seen, which it is from now on."""
        key = support.tobytes()
        if key in self._keys:
            return False
        if len(self._keys) >= MOST_REMEMBERED:
            self._keys.clear()
        self._keys.add(key)
        return True
