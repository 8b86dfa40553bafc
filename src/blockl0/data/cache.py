"""Cache of recently read columns: supports and pools request the same ones repeatedly."""

from __future__ import annotations

from threading import RLock

import numpy as np
from numpy.typing import NDArray

from blockl0.data.source import Source

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class ColumnCache:
    """Least-recently-used cache of columns, by index, as stored but in float64.

    Attributes
    ----------
    n_read : float
        Passes over the source so far: bytes read divided by the size of the source. A full scan
        counts as one.
    most : int
        Number of columns to keep.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.n_read = 0.0
        self.most = max(1, source.held_bytes // (8 * source.shape[0]))
        self._kept: dict[int, Floats] = {}
        # two searches of one run may read at the same time
        self._lock = RLock()

    def columns(self, idx: Ints) -> Floats:
        """Return X[:, idx] as a new Fortran-ordered array (m, k), reading what is not cached."""
        with self._lock:
            return self._columns(idx)

    def _columns(self, idx: Ints) -> Floats:
        missing = np.array([j for j in np.unique(idx) if int(j) not in self._kept], dtype=np.int64)
        if idx.size > self.most:
            self._count_columns(idx)
            return self.source.columns(idx)
        if missing.size:
            self._count_columns(missing)
            for j, x in zip(missing, self.source.columns(missing).T, strict=True):
                self._kept[int(j)] = x.copy()
        X = np.empty((self.source.shape[0], idx.size), order="F")
        for at, j in enumerate(idx.tolist()):
            # a column used again moves to the end; the first ones are dropped
            X[:, at] = self._kept[j] = self._kept.pop(j)
        self._forget()
        return X

    def keep(self, idx: Ints, columns: list[Floats]) -> None:
        """Cache columns that a pass has read anyway."""
        with self._lock:
            for j, x in zip(idx.tolist(), columns, strict=True):
                self._kept.pop(j, None)
                self._kept[j] = x
            self._forget()

    def _forget(self) -> None:
        """Drop the least recently used columns."""
        for j in list(self._kept)[: max(0, len(self._kept) - self.most)]:
            del self._kept[j]

    def count(self, share: float) -> None:
        """Add what was read, as a share of the source."""
        self.n_read += share

    def _count_columns(self, idx: Ints) -> None:
        self.count(self.source.columns_nbytes(idx) / max(self.source.nbytes, 1))
