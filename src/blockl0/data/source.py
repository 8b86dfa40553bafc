"""Sources: X as a sequence of blocks of columns, each over all rows and loaded on demand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.data.block import ArrayBlock, Block
from blockl0.data.engine import Engine, InOrder, Room
from blockl0.data.limits import limits_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Source(ABC):
    """Interface of a storage of X (m, n).

    Attributes
    ----------
    shape : (int, int)
    nbytes : int
        Bytes of all entries as stored, read by one pass.
    parts : tuple of slice
        The columns of each block, in order.
    engine : Engine
        Maps over the blocks; by default in order, in this process.
    held_bytes : int
        Float64 bytes to keep in memory: all of X if it fits, otherwise columns read lately.
    is_dear : bool
        Whether reading a single column costs much more than its share of a pass.
    """

    shape: tuple[int, int]
    nbytes: int
    parts: tuple[slice, ...]
    engine: Engine = InOrder()
    held_bytes: int = limits_of().held
    is_dear: bool = False

    @abstractmethod
    def block(self, i: int) -> Block:
        """Read block i."""

    def block_in(self, i: int, room: Room) -> Block:
        """Read block i into reusable memory, if the storage can do so."""
        return self.block(i)

    def columns(self, idx: Ints) -> Floats:
        """Return X[:, idx] as a new Fortran-ordered array (m, k); here from their blocks."""
        X = np.empty((self.shape[0], idx.size), order="F")
        where = self.blocks_of(idx)
        for i in np.unique(where):
            mine = np.flatnonzero(where == i)
            X[:, mine] = self.block(int(i)).columns(idx[mine] - self.parts[i].start)
        return X

    def columns_nbytes(self, idx: Ints) -> float:
        """Count the bytes that `columns` reads, as a pass counts them; here whole blocks."""
        return sum(self.block_nbytes(i) for i in np.unique(self.blocks_of(idx)))

    def block_nbytes(self, i: int) -> float:
        """Count the bytes that `block` reads."""
        return self.nbytes / self.shape[1] * (self.parts[i].stop - self.parts[i].start)

    def blocks_of(self, idx: Ints) -> Ints:
        """Return the block of each column."""
        starts = np.array([part.start for part in self.parts])
        return np.searchsorted(starts, idx, side="right") - 1


class ArraySource(Source):
    """Source of an array in memory, cut into blocks.

    Parameters
    ----------
    X : ndarray (m, n)
        Real numbers of any type.
    ends : sequence of int, optional
        Where each block ends; by default blocks of 64 MiB.
    """

    def __init__(self, X: NDArray[Any], ends: Any = None) -> None:
        self.X, self.shape, self.nbytes = X, X.shape, X.nbytes
        self.parts = even_parts(self.shape, X.itemsize) if ends is None else parts_of(ends)

    def block(self, i: int) -> Block:
        """Return block i, without a copy."""
        return ArrayBlock(self.X[:, self.parts[i]])

    def columns(self, idx: Ints) -> Floats:
        """Return X[:, idx] as a new Fortran-ordered array (m, k)."""
        return ArrayBlock(self.X).columns(idx)

    def columns_nbytes(self, idx: Ints) -> float:
        """Count the bytes of these columns."""
        return self.nbytes * idx.size / self.shape[1]


class SomeRows(Source):
    """Source of some rows of another source, read through a function that may cache columns.

    Parameters
    ----------
    source : Source
    rows : ndarray of int64
    read : callable
        Returns columns, given their indices, over all rows.
    """

    held_bytes = 0

    def __init__(self, source: Source, rows: Ints, read: Callable[[Ints], Floats]) -> None:
        self.source, self.rows, self._read = source, rows, read
        self.shape, self.parts = (len(rows), source.shape[1]), source.parts
        self.nbytes = source.nbytes

    def block(self, i: int) -> Block:
        """Read block i over all rows and keep some of them."""
        return ArrayBlock(self.source.block(i).columns(slice(None))[self.rows])

    def columns(self, idx: Ints) -> Floats:
        """Return X[:, idx] as a new Fortran-ordered array (m, k)."""
        return np.asfortranarray(self._read(idx)[self.rows])


def even_parts(
    shape: tuple[int, int], itemsize: int, size: int = limits_of().block
) -> tuple[slice, ...]:
    """Cut columns into blocks of about `size` stored bytes, at least one column each."""
    step = max(1, size // max(1, shape[0] * itemsize))
    return parts_of([*range(step, shape[1], step), shape[1]])


def parts_of(ends: Any) -> tuple[slice, ...]:
    """Turn the ends of blocks into slices, the first starting at zero."""
    ends = [int(end) for end in ends]
    return tuple(slice(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True))
