"""Memory of fitted supports, so that none is fitted twice."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

MOST_REMEMBERED = 100_000
"""Supports to remember; beyond that, all are forgotten."""


class SupportMemory:
    """Bounded memory of supports."""

    def __init__(self) -> None:
        self._keys: set[bytes] = set()

    def is_new(self, support: Ints) -> bool:
        """Check if an ascending support is new, and remember it."""
        key = support.tobytes()
        if key in self._keys:
            return False
        if len(self._keys) >= MOST_REMEMBERED:
            self._keys.clear()
        self._keys.add(key)
        return True
