"""Arrays in files: `numpy.memmap` and `.npy` by columns, and chunks of zarr and HDF5.

Blocks of a map are read, not mapped: touched pages would count as memory of the process and are
loaded by page faults. A block is read as a whole into its own memory, as stored, while a task runs
on the block before. A chunk is read and decompressed as a whole, however few of its columns are
needed, so that single columns are expensive and collected during passes, see `Blocks.scan_for`.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.data.block import ArrayBlock, Block
from blockl0.data.source import (
    ArraySource,
    InOrder,
    Limits,
    ReadAhead,
    Room,
    Source,
    even_parts,
    limits_of,
    parts_of,
)
from blockl0.files import check_exists, part_for
from blockl0.validate import check_kind, check_matrix_shape

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def open_map(X: Any, memory_limit: float | None = None) -> Source | None:
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
        self.held_bytes: int = 8 * X.size


class MapSource(Source):
    """Source of a memory map whose columns are each contiguous.

    Parameters
    ----------
    X : numpy.memmap (m, n)
    limits : Limits
    """

    engine: ReadAhead = ReadAhead()
    shape: tuple[int, int]
    nbytes: int
    held_bytes: int

    def __init__(self, X: Any, limits: Limits) -> None:
        self.X, self.shape = X, X.shape
        self.nbytes, self.held_bytes = X.size * X.itemsize, limits.held
        self.parts: tuple[slice, ...] = even_parts(X.shape, X.itemsize, limits.block)
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
        # neighbouring columns lie side by side in the file
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
            # a file that was replaced under its name would give columns of other data
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


def open_chunked(X: Any, memory_limit: float | None = None) -> Source:
    """Open a zarr.Array, an h5py.Dataset, or the path of a zarr array."""
    if not hasattr(X, "shape"):
        X = _open_zarr(X)
    shape = tuple(X.shape)
    check_matrix_shape(shape)
    check_kind(np.dtype(X.dtype), "X", None)
    limits, width = limits_of(memory_limit), _chunk_width(X)
    size = np.dtype(X.dtype).itemsize
    if shape[0] * width * size > 4 * limits.block and 8 * shape[0] * shape[1] > limits.held:
        raise ValueError(_too_wide(X, shape, max(1, limits.block // (shape[0] * size))))
    return ChunkSource(X, width, limits)


class ChunkSource(Source):
    """Source of a chunked array, read several chunks at a time.

    Parameters
    ----------
    X : zarr.Array or h5py.Dataset (m, n)
    width : int
        Columns per chunk.
    limits : Limits
    """

    engine: InOrder = InOrder()
    is_dear = True
    width: int
    shape: tuple[int, int]
    nbytes: int
    held_bytes: int

    def __init__(self, X: Any, width: int, limits: Limits) -> None:
        self.X, self.width = X, width
        m, n = self.shape = tuple(X.shape)
        size = np.dtype(X.dtype).itemsize
        self.nbytes, self.held_bytes = m * n * size, limits.held
        step = width * max(1, limits.block // (m * width * size))
        self.parts: tuple[slice, ...] = parts_of([*range(step, n, step), n])

    def block(self, i: int) -> Block:
        """Read block i."""
        return ArrayBlock(self._read(self.parts[i].start, self.parts[i].stop))

    def columns(self, idx: Ints) -> Floats:
        """Return X[:, idx] as a new Fortran-ordered array (m, k), reading the chunks that hold
        them.
        """
        X = np.empty((self.shape[0], idx.size), order="F")
        where = idx // self.width
        for chunk in np.unique(where):
            mine, start = np.flatnonzero(where == chunk), int(chunk) * self.width
            read = self._read(start, min(start + self.width, self.shape[1]))
            X[:, mine] = read[:, idx[mine] - start]
        return X

    def columns_nbytes(self, idx: Ints) -> float:
        """Count the bytes of the chunks that hold these columns."""
        starts = np.unique(idx // self.width) * self.width
        held = np.minimum(starts + self.width, self.shape[1]) - starts
        return self.nbytes / self.shape[1] * float(held.sum())

    def _read(self, start: int, stop: int) -> NDArray[Any]:
        return np.asfortranarray(self.X[:, start:stop])


def _chunk_width(X: Any) -> int:
    """Return the number of columns per shard or chunk, all of them if X is contiguous."""
    chunks = getattr(X, "shards", None) or getattr(X, "chunks", None)
    return X.shape[1] if chunks is None else int(chunks[1])


def _too_wide(X: Any, shape: tuple[int, int], columns: int) -> str:
    """Write the error for chunks too large for a block, and how to store X instead."""
    package = type(X).__module__.split(".")[0]
    rows = min(shape[0], 4096)
    made = {
        "h5py": f"file.create_dataset('X', data=…, chunks=({rows}, {columns}))",
        "zarr": f"zarr.create_array(…, shape={shape}, chunks=({shape[0]}, {columns}))",
    }.get(package, f"chunks=({shape[0]}, {columns})")
    chunks = getattr(X, "chunks", None)
    return (
        f"X, {shape[0]} × {shape[1]} of {X.dtype}, is stored "
        f"{'in one piece' if chunks is None else f'in chunks of {tuple(chunks)}'}, of which the "
        f"columns of one do not fit in the memory of a block; store it in chunks of fewer columns, "
        f"as {made}, or by columns: blockl0.storage.by_columns(X, 'X.npy')."
    )


def _open_zarr(path: Any) -> Any:
    """Open the zarr array at a path."""
    try:
        import zarr
    except ImportError as error:
        raise ImportError(
            f"{str(path)!r} is read by zarr, which is not installed; pip install 'blockl0[zarr]'."
        ) from error
    return zarr.open_array(str(path), mode="r")
