"""Columns that were read lately: supports and pools ask for the same ones again and again."""

from __future__ import annotations

from threading import RLock

import numpy as np
from numpy.typing import NDArray

from blockl0.storage.source import Source

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class ColumnCache:
    """The columns of a source by number, as stored but in float64; the latest ones are kept.

    Attributes
    ----------
    n_read : float
        Bytes that were read of the source so far, in those of all its entries. A scan counts as
        what it reads, which is one unless only some blocks are asked.
    most : int
        Columns that are kept.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.n_read = 0.0
        self.most = max(1, source.held_bytes // (8 * source.shape[0]))
        self._kept: dict[int, Floats] = {}
        # two searches of one run may ask at the same time
        self._lock = RLock()

    def columns(self, idx: Ints) -> Floats:
        """X[:, idx] as a new Fortran-ordered array (m, k); what is not kept is read."""
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
            # what is used again goes to the end, and the first ones go
            X[:, at] = self._kept[j] = self._kept.pop(j)
        self._forget()
        return X

    def keep(self, idx: Ints, columns: list[Floats]) -> None:
        """Keep columns that were read in passing."""
        with self._lock:
            for j, x in zip(idx.tolist(), columns, strict=True):
                self._kept.pop(j, None)
                self._kept[j] = x
            self._forget()

    def _forget(self) -> None:
        """Let go of the columns that were not used for longest."""
        for j in list(self._kept)[: max(0, len(self._kept) - self.most)]:
            del self._kept[j]

    def count(self, share: float) -> None:
        """Count what was read, as a share of the source."""
        self.n_read += share

    def _count_columns(self, idx: Ints) -> None:
        self.count(self.source.columns_nbytes(idx) / max(self.source.nbytes, 1))
