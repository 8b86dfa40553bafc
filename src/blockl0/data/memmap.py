"""Arrays in files, `numpy.memmap` and `.npy`, by columns: blocks are read, not mapped.

Touched pages of a map count as memory of the process and are loaded by page faults. A block is
instead read as a whole into its own memory, as stored, while a task runs on the block before.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.data.block import ArrayBlock, Block
from blockl0.data.engine import ReadAhead, Room
from blockl0.data.limits import Limits, limits_of
from blockl0.data.source import ArraySource, Source, even_parts
from blockl0.files import check_exists, part_for
from blockl0.validate import check_kind

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def open_source(X: Any, memory_limit: float | None = None) -> Source | None:
    """Open a column-major memory map or the path of one; return None for arrays in memory.

    A row-major map is treated as an ordinary array if it is small enough, and refused otherwise.
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
    """An array read whole from a file of any size; a float64 copy of it is useless."""

    def __init__(self, X: NDArray[Any]) -> None:
        super().__init__(X)
        self.held_bytes = 8 * X.size


class MapSource(Source):
    """Source of a memory map whose columns are each contiguous.

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
        """Read block i into new memory."""
        return self.block_in(i, Room())

    def block_in(self, i: int, room: Room) -> Block:
        """Read block i into reusable memory."""
        return ArrayBlock(self._read(self.parts[i].start, self.parts[i].stop, room))

    def columns(self, idx: Ints) -> Floats:
        """Return X[:, idx] as a new Fortran-ordered array (m, k), one read per run of columns."""
        X = np.empty((self.shape[0], idx.size), order="F")
        ends = np.append(np.flatnonzero(np.diff(idx) != 1) + 1, idx.size)
        for start, stop in zip(np.append(0, ends[:-1]), ends, strict=True):
            if stop > start:
                X[:, start:stop] = self._read(int(idx[start]), int(idx[stop - 1]) + 1, Room())
        return X

    def columns_nbytes(self, idx: Ints) -> float:
        """Count the bytes of these columns."""
        return self.nbytes * idx.size / self.shape[1]

    def _read(self, start: int, stop: int, room: Room) -> NDArray[Any]:
        """Read columns from the file, as stored."""
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
    """Identify a file, whatever its name."""
    known = os.stat(name)
    return known.st_dev, known.st_ino


def _file_place(X: Any) -> tuple[Any, int] | None:
    """Return the file and offset of the first entry, or None if only the map can be read.

    That is so for maps that may differ from their file, and where columns are not adjacent.
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
    """Write a column-major copy of X (m, n) as an `.npy` file, some rows at a time.

    Parameters
    ----------
    X : array-like with slices of rows, as numpy.memmap, h5py.Dataset or zarr.Array
    path : str or Path
        A file that does not exist yet.
    memory_limit : float, optional
        Bytes to use; 1 GiB by default.
    """
    path = Path(path)
    if path.exists():
        raise FileExistsError(f"{str(path)!r} exists; choose another name.")
    m, n = X.shape
    # a killed process must not leave half a file under this name
    with part_for(path) as (part, _):
        out = np.lib.format.open_memmap(part, "w+", X.dtype, (m, n), fortran_order=True)
        step = max(1, limits_of(memory_limit).slab // (n * out.itemsize))
        for start in range(0, m, step):
            out[start : start + step] = X[start : start + step]
            # written pages would otherwise stay in memory
            out.flush()
        del out
    return path
