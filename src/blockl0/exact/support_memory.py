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

    def __contains__(self, support: Ints) -> bool:
        return support.tobytes() in self._keys

    def add(self, support: Ints) -> None:
        """Remember an ascending support, once its fit has come to an end."""
        if len(self._keys) >= MOST_REMEMBERED:
            self._keys.clear()
        self._keys.add(support.tobytes())
