"""X on an accelerator: an array of CuPy, torch, or any library that follows the array API.

The entries stay on the device as stored. Products, lengths and the entry changes of all columns are
computed there in float64, a few columns at a time; only a few numbers per column, and the columns
that a search requests, come back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.data.block import Block
from blockl0.data.source import Source, limits_of, parts_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STEP_BYTES = 1 << 30
"""Bytes of entries converted to float64 on the device at a time."""
BLOCK_COLUMNS = 1 << 18
"""Columns per block."""
NEEDED = (
    "X on a device is read through the package array-api-compat, which is not installed; "
    "`pip install 'blockl0[gpu]'` brings it."
)


def open_array(X: Any, memory_limit: float | None = None) -> Source:
    """Open an array on a device, without copying it."""
    if getattr(X, "ndim", 2) != 2:
        raise ValueError(f"X must have two dimensions, got {X.ndim} in an array of {_kind(X)}.")
    return DeviceSource(X, held_bytes=limits_of(memory_limit).held)


class DeviceSource(Source):
    """Source of an array (m, n) on a device, in float64, float32, float16 or integers.

    Parameters
    ----------
    X : array of the array API
    columns : int
        Columns per block.
    held_bytes : int
        Float64 bytes to keep in memory: all of X if it fits, otherwise columns read lately.
    """

    shape: tuple[int, int]

    def __init__(self, X: Any, columns: int = BLOCK_COLUMNS, held_bytes: int | None = None) -> None:
        space = _namespace(X)
        if space.isdtype(X.dtype, ("bool", "complex floating")):
            raise ValueError(f"X must hold real numbers, got {X.dtype} in an array of {_kind(X)}.")
        m, n = X.shape
        self.X, self.shape = X, (int(m), int(n))
        self.held_bytes: int = self.held_bytes if held_bytes is None else held_bytes
        self.nbytes: int = int(m) * int(n) * _itemsize(X)
        self.parts: tuple[slice, ...] = parts_of([*range(columns, n, columns), n])

    def block(self, i: int) -> Block:
        """Return block i, without a copy."""
        return DeviceBlock(self.X[:, self.parts[i]])

    def columns(self, idx: Ints) -> Floats:
        """Fetch X[:, idx] as a new Fortran-ordered array (m, k)."""
        return DeviceBlock(self.X).columns(idx)

    def columns_nbytes(self, idx: Ints) -> float:
        """Count the bytes of these columns."""
        return self.nbytes * idx.size / self.shape[1]


class DeviceBlock(Block):
    """Block of columns (m, c) on a device.

    Parameters
    ----------
    X : array of the array API
    """

    space: Any

    def __init__(self, X: Any) -> None:
        self.X, self.space = X, _namespace(X)

    @property
    def shape(self) -> tuple[int, int]:
        """(m, c)."""
        m, c = self.X.shape
        return int(m), int(c)

    @property
    def step(self) -> int:
        """Number of columns converted to float64 at a time."""
        return max(1, STEP_BYTES // (8 * self.shape[0]))

    def wide_parts(self) -> Iterator[slice]:
        """Iterate over slices of columns multiplied at a time."""
        return self.parts()

    def columns(self, idx: Any) -> Floats:
        """Fetch X[:, idx] as a new Fortran-ordered array (m, k); idx may be a slice."""
        some = self.X[:, idx] if isinstance(idx, slice) else self.chosen(self.X, idx, 1)
        return np.array(self.fetched(some), dtype=np.float64, order="F")

    def sent(self, a: Any, dtype: Any = np.float64) -> Any:
        """Copy a NumPy array to the device of X."""
        # libraries differ in what strides they take
        a = np.ascontiguousarray(a, dtype=dtype)
        return self.space.asarray(a, device=_device(self.X), copy=True)

    def fetched(self, a: Any) -> Any:
        """Copy an array of the device to NumPy."""
        get = getattr(a, "get", None)  # CuPy refuses implicit copies
        if get is not None:
            return get()
        return np.from_dlpack(a.cpu()) if hasattr(a, "cpu") else np.from_dlpack(a)

    def chosen(self, X: Any, idx: Any, axis: int) -> Any:
        """Take rows or columns of an array on the device by index, as a new array."""
        return self.space.take(X, self.sent(idx, np.int64), axis=axis)

    def fresh(self, part: slice) -> Any:
        """Return X[:, part] (m, k) in float64 on the device, as a new array."""
        return self.space.astype(self.X[:, part], self.space.float64)

    def product(self, V_t: Any, part: slice) -> Any:
        """Compute V_t X[:, part], (k, c), on the device, for V_t (k, m) there."""
        return V_t @ self.fresh(part)


def _namespace(X: Any) -> Any:
    """Return the array API functions for X."""
    try:
        from array_api_compat import array_namespace
    except ImportError:
        raise ImportError(NEEDED) from None
    return array_namespace(X)


def _device(X: Any) -> Any:
    from array_api_compat import device

    return device(X)


def _itemsize(X: Any) -> int:
    space = _namespace(X)
    info = space.iinfo if space.isdtype(X.dtype, "integral") else space.finfo
    return info(X.dtype).bits // 8


def _kind(X: Any) -> str:
    return type(X).__module__.split(".")[0]
