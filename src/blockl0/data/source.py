"""Sources: X as a sequence of blocks of columns, each over all rows and loaded on demand.

An engine maps a function over the blocks of a source. A storage is a function that opens it and its
line in `OPENERS`; no optional package is imported before an object of it is given.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from blockl0.data.block import ArrayBlock, Block
from blockl0.validate import check_nonnegative

DEFAULT_LIMIT = 1 << 30
"""Default memory for the search of an X in blocks, in bytes, beside O(n) vectors."""
WHOLE_LIMIT = 4_000_000_000
"""Largest float64 size, in bytes, of an X read whole because it cannot be read in blocks."""
LEAST_BLOCK, MOST_BLOCK = 1 << 16, 256 << 20
"""Smallest and largest size of a block, in bytes."""


class Limits(NamedTuple):
    """Shares of a memory limit, in bytes.

    Attributes
    ----------
    block : int
        One block of columns; two are in memory at a time.
    held : int
        Float64 entries to keep: all of X if it fits, otherwise columns read lately.
    slab : int
        One slab of rows.
    whole : int
        Largest X to read into memory if it cannot be read in blocks.
    """

    block: int
    held: int
    slab: int
    whole: int


def limits_of(memory_limit: float | None = None) -> Limits:
    """Split a memory limit, 1 GiB by default.

    Half of it is left for the pools of a search and their products.
    """
    limit = DEFAULT_LIMIT
    if memory_limit is not None:
        limit = int(check_nonnegative("memory_limit", memory_limit))
    whole = WHOLE_LIMIT if memory_limit is None else limit
    block = min(max(limit // 16, LEAST_BLOCK), MOST_BLOCK)
    return Limits(block, limit // 8, limit // 4, whole)


Call = tuple[int, tuple[Any, ...]]
"""Index of a block, and further arguments of the task."""


class Engine(Protocol):
    """Interface of objects that map tasks over blocks.

    A task is a module-level function and its arguments are arrays, numbers and tuples of them, so
    that all can be pickled. Results come in any order; the caller sorts them.
    """

    def map(
        self, task: Callable[..., Any], source: Source, calls: Sequence[Call]
    ) -> Iterator[tuple[int, Any]]:
        """Yield (i, task(block i, *arguments)) for every call (i, arguments)."""
        ...


class InOrder:
    """Engine that runs blocks one by one in this process."""

    def map(
        self, task: Callable[..., Any], source: Source, calls: Sequence[Call]
    ) -> Iterator[tuple[int, Any]]:
        """Yield (i, task(block i, *arguments)) for every call (i, arguments)."""
        for i, arguments in calls:
            yield i, task(source.block(i), *arguments)


class Room:
    """Reusable memory for blocks: allocating it anew costs as much as a read."""

    def __init__(self) -> None:
        self._bytes = np.empty(0, dtype=np.uint8)

    def take(self, size: int) -> NDArray[np.uint8]:
        """Return a buffer of this size, overwriting the last block."""
        if self._bytes.size < size:
            self._bytes = np.empty(size, dtype=np.uint8)
        return self._bytes[:size]


class ReadAhead:
    """Engine that reads the next block while a task runs; at most two are in memory.

    A task must not keep a reference to its block.
    """

    def map(
        self, task: Callable[..., Any], source: Source, calls: Sequence[Call]
    ) -> Iterator[tuple[int, Any]]:
        """Yield (i, task(block i, *arguments)) for every call (i, arguments)."""
        # reading waits for the disk and lets go of the interpreter meanwhile
        with ThreadPoolExecutor(max_workers=1) as reader:
            rooms = Room(), Room()
            ahead = reader.submit(source.block_in, calls[0][0], rooms[0]) if calls else None
            for at, (i, arguments) in enumerate(calls):
                block = ahead.result()  # type: ignore[union-attr]
                if at + 1 < len(calls):
                    # overwrites the block before this one, whose task has finished
                    ahead = reader.submit(source.block_in, calls[at + 1][0], rooms[(at + 1) % 2])
                yield i, task(block, *arguments)


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

    shape: tuple[int, int]
    nbytes: int

    def __init__(self, X: NDArray[Any], ends: Any = None) -> None:
        self.X, self.shape, self.nbytes = X, X.shape, X.nbytes
        self.parts: tuple[slice, ...] = (
            even_parts(self.shape, X.itemsize) if ends is None else parts_of(ends)
        )

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
    source: Source
    rows: Ints
    shape: tuple[int, int]
    parts: tuple[slice, ...]

    def __init__(self, source: Source, rows: Ints, read: Callable[[Ints], Floats]) -> None:
        self.source, self.rows, self._read = source, rows, read
        self.shape, self.parts = (len(rows), source.shape[1]), source.parts
        self.nbytes: int = source.nbytes

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


OPENERS: dict[str, str] = {
    "array_api_strict": "blockl0.data.device.open_array",
    "bed_reader": "blockl0.data.bed_files.open_file",
    "cupy": "blockl0.data.device.open_array",
    "dask": "blockl0.data.dask_arrays.open_dask",
    "h5py": "blockl0.data.array_files.open_chunked",
    "numpy": "blockl0.data.array_files.open_map",
    "torch": "blockl0.data.device.open_array",
    "zarr": "blockl0.data.array_files.open_chunked",
}
"""Functions (X, memory_limit) -> Source | None, by the package of X's type.

They return None if X needs no source after all, such as most NumPy arrays."""

FILES: dict[str, str] = {
    ".bed": "blockl0.data.bed_files.open_file",
    ".npy": "blockl0.data.array_files.open_map",
    ".zarr": "blockl0.data.array_files.open_chunked",
}
"""The same by the suffix of a path."""


def opened(X: Any, memory_limit: float | None = None) -> Source | None:
    """Open X as a source; return None for arrays, tables and sparse matrices in memory."""
    if type(X) is np.ndarray:
        return None
    if isinstance(X, Source):
        return X
    if isinstance(X, str | PathLike):
        opener = FILES.get(Path(X).suffix.lower())
    else:
        # by the class, so that no optional package is imported to find out
        packages = (kind.__module__.split(".")[0] for kind in type(X).__mro__)
        opener = next((OPENERS[package] for package in packages if package in OPENERS), None)
    if opener is None:
        return None
    # optional packages are imported with the first object of theirs
    module, _, name = opener.rpartition(".")
    return getattr(import_module(module), name)(X, memory_limit)
