"""Chunked arrays of zarr and HDF5, in blocks of whole chunks of columns over all rows.

A chunk is read and decompressed as a whole, however few of its columns are needed. Single columns
are therefore expensive and are collected during passes, see `Blocks.scan_for`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.data.block import ArrayBlock, Block
from blockl0.data.engine import InOrder
from blockl0.data.limits import Limits, limits_of
from blockl0.data.source import Source, parts_of
from blockl0.validate import check_kind, check_matrix_shape

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def open_source(X: Any, memory_limit: float | None = None) -> Source:
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

    engine = InOrder()
    is_dear = True

    def __init__(self, X: Any, width: int, limits: Limits) -> None:
        self.X, self.width = X, width
        m, n = self.shape = tuple(X.shape)
        size = np.dtype(X.dtype).itemsize
        self.nbytes, self.held_bytes = m * n * size, limits.held
        step = width * max(1, limits.block // (m * width * size))
        self.parts = parts_of([*range(step, n, step), n])

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
