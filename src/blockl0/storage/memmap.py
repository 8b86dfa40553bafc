"""Arrays in files, `numpy.memmap` and `.npy`, by columns: blocks are read, not mapped.

Pages of a map that were touched count as memory of the process, and are read by faults; a block is
read as a whole into memory of its own, as it is stored, while the one before is worked on.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.files import check_exists, part_for
from blockl0.storage.block import ArrayBlock, Block
from blockl0.storage.engine import ReadAhead, Room
from blockl0.storage.limits import Limits, limits_of
from blockl0.storage.source import ArraySource, Source, even_parts
from blockl0.validate import check_kind

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def open_source(X: Any, memory_limit: float | None = None) -> Source | None:
    """The source of a memory map by columns, or of a path of one; None for arrays in memory.

    A map by rows is an array like others, unless it is too large: it is then refused.
    """
    is_path = isinstance(X, str | Path)
    if is_path:
        X = np.load(check_exists(X), mmap_mode="r")
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, got an array of shape {X.shape}.")
    if not isinstance(X, np.memmap) or X.ndim != 2 or X.size == 0:
        return None
    check_kind(X.dtype, "X", None)
    limits = limits_of(memory_limit)
    m, n = X.shape
    if m > 1 and X.strides[0] != X.itemsize:
        if 8 * m * n <= limits.whole:
            return WholeSource(np.asfortranarray(X)) if is_path else None
        raise ValueError(
            f"X is stored by rows, {m} × {n} of {X.dtype}, and its columns cannot be read one by "
            "one; store it by columns: blockl0.storage.by_columns(X, 'X.npy') writes such a copy, "
            "some rows at a time, and solve('X.npy', y, …) reads it. Of many rows and few columns "
            "`Moments` take chunks of rows."
        )
    return MapSource(X, limits)


class WholeSource(ArraySource):
    """An array that was read from a file, however large: one more copy of it is of no use."""

    def __init__(self, X: NDArray[Any]) -> None:
        super().__init__(X)
        self.held_bytes = 8 * X.size


class MapSource(Source):
    """A memory map whose columns each lie in one piece.

    Parameters
    ----------
    X : numpy.memmap (m, n)
    limits : Limits
    """

    engine = ReadAhead()

    def __init__(self, X: Any, limits: Limits) -> None:
        self.X, self.shape = X, X.shape
        self.nbytes, self.held_bytes = X.size * X.itemsize, limits.held
        self.parts = even_parts(X.shape, X.itemsize, limits.block)
        self._place = _file_place(X)
        self._stamp = None if self._place is None else _stamp(self._place[0])

    def block(self, i: int) -> Block:
        """Block i, read into memory of its own."""
        return self.block_in(i, Room())

    def block_in(self, i: int, room: Room) -> Block:
        """Block i, read into memory that is used again."""
        return ArrayBlock(self._read(self.parts[i].start, self.parts[i].stop, room))

    def columns(self, idx: Ints) -> Floats:
        """X[:, idx] as a new Fortran-ordered array (m, k), each run of columns by one read."""
        X = np.empty((self.shape[0], idx.size), order="F")
        ends = np.append(np.flatnonzero(np.diff(idx) != 1) + 1, idx.size)
        for start, stop in zip(np.append(0, ends[:-1]), ends, strict=True):
            if stop > start:
                X[:, start:stop] = self._read(int(idx[start]), int(idx[stop - 1]) + 1, Room())
        return X

    def columns_nbytes(self, idx: Ints) -> float:
        """Bytes of these columns."""
        return self.nbytes * idx.size / self.shape[1]

    def _read(self, start: int, stop: int, room: Room) -> NDArray[Any]:
        """Columns from the file, as they are stored."""
        if self._place is None:
            return np.array(self.X[:, start:stop], order="F", subok=False)
        name, begin = self._place
        m, size = self.shape[0], self.X.itemsize
        raw = room.take(m * (stop - start) * size)
        with open(name, "rb", buffering=0) as file:
            if _stamp(name) != self._stamp:
                raise OSError(
                    f"{str(name)!r} is another file than when X was opened; open it anew."
                )
            file.seek(begin + start * m * size)
            at = memoryview(raw)  # type: ignore[arg-type]
            while at.nbytes:
                got = file.readinto(at)
                if not got:
                    raise OSError(
                        f"{str(name)!r} ends before column {stop - 1} of X; was it changed since "
                        "it was opened?"
                    )
                at = at[got:]
        return raw.view(self.X.dtype).reshape((m, stop - start), order="F")


def _stamp(name: Any) -> tuple[int, int]:
    """Which file it is, whatever its name."""
    known = os.stat(name)
    return known.st_dev, known.st_ino


def _file_place(X: Any) -> tuple[Any, int] | None:
    """The file and the position of the first entry; None where entries must come from the map.

    That is so of maps that may differ from their file, and where columns do not follow each other.
    """
    m, n = X.shape
    is_dense = m == 1 or X.strides[0] == X.itemsize
    is_dense &= n == 1 or X.strides[1] == m * X.itemsize
    if X.filename is None or X.mode == "c" or not is_dense or X._mmap is None:
        return None
    first = np.frombuffer(X._mmap, dtype=np.uint8).ctypes.data
    begin = X.offset - X.offset % mmap.ALLOCATIONGRANULARITY
    return X.filename, begin + X.ctypes.data - first


def by_columns(X: Any, path: Any, memory_limit: float | None = None) -> Path:
    """Write a copy of X (m, n), by columns, as an `.npy` file, some rows at a time.

    Parameters
    ----------
    X : array-like with slices of rows, as numpy.memmap, h5py.Dataset or zarr.Array
    path : str or Path
        Of a file that does not exist.
    memory_limit : float, optional
        Bytes to use; 1 GiB by default.
    """
    path = Path(path)
    if path.exists():
        raise FileExistsError(f"{str(path)!r} exists; choose another name.")
    m, n = X.shape
    # a process that is killed must not leave half a file under this name
    with part_for(path) as (part, _):
        out = np.lib.format.open_memmap(part, "w+", X.dtype, (m, n), fortran_order=True)
        step = max(1, limits_of(memory_limit).slab // (n * out.itemsize))
        for start in range(0, m, step):
            out[start : start + step] = X[start : start + step]
            # written pages would stay in memory
            out.flush()
        del out
    return path
