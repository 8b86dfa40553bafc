"""X on an accelerator: an array of CuPy or torch, or any other that follows the array API.

The entries stay where they are and as they are stored. Products with them, lengths, and the prices
of all columns are made there, in float64, some columns at a time; what comes back are a few numbers
per column, and the columns that a search asks for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.storage.block import (
    FAR,
    NO_VIEW,
    Block,
    Summary,
    View,
    centre,
    first_bad,
    is_refused,
    refused_summary,
)
from blockl0.storage.limits import limits_of
from blockl0.storage.prices import LEAST_PIVOT, SMALLEST, Table
from blockl0.storage.source import Source, parts_of
from blockl0.units import is_rounding

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

STEP_BYTES = 1 << 30
"""Entries that become float64 on the device at a time."""
BLOCK_COLUMNS = 1 << 18
"""Columns of a block."""
NEEDED = (
    "X on a device is read through the package array-api-compat, which is not installed; "
    "`pip install 'blockl0[gpu]'` brings it."
)


def open_source(X: Any, memory_limit: float | None = None) -> Source:
    """The source of an array on a device; nothing is copied."""
    if getattr(X, "ndim", 2) != 2:
        raise ValueError(f"X must have two dimensions, got {X.ndim} in an array of {_kind(X)}.")
    return DeviceSource(X, held_bytes=limits_of(memory_limit).held)


class DeviceSource(Source):
    """An array (m, n) on a device, in float64, float32, float16 or integers.

    Parameters
    ----------
    X : array of the array API
    columns : int
        Of a block.
    held_bytes : int
        Of an X in float64 that is read into memory for being small, and of columns that are kept.
    """

    def __init__(self, X: Any, columns: int = BLOCK_COLUMNS, held_bytes: int | None = None) -> None:
        space = _namespace(X)
        if space.isdtype(X.dtype, ("bool", "complex floating")):
            raise ValueError(f"X must hold real numbers, got {X.dtype} in an array of {_kind(X)}.")
        m, n = X.shape
        self.X, self.shape = X, (int(m), int(n))
        self.held_bytes = self.held_bytes if held_bytes is None else held_bytes
        self.nbytes = int(m) * int(n) * _itemsize(X)
        self.parts = parts_of([*range(columns, n, columns), n])

    def block(self, i: int) -> Block:
        """Block i, which is not copied."""
        return DeviceBlock(self.X[:, self.parts[i]])

    def columns(self, idx: Ints) -> Floats:
        """X[:, idx] as a new Fortran-ordered array (m, k), fetched."""
        return DeviceBlock(self.X).columns(idx)

    def columns_nbytes(self, idx: Ints) -> float:
        """Bytes of these columns."""
        return self.nbytes * idx.size / self.shape[1]


class DeviceBlock(Block):
    """Columns (m, c) on a device, seen through a view.

    Parameters
    ----------
    X : array of the array API
    view : View
        Cut for these columns.
    """

    def __init__(self, X: Any, view: View = NO_VIEW) -> None:
        self.X, self.view, self.space = X, view, _namespace(X)

    @property
    def shape(self) -> tuple[int, int]:
        """(m, c)."""
        m, c = self.X.shape
        return int(m), int(c)

    def through(self, view: View) -> Block:
        """These columns through a view."""
        return DeviceBlock(self.X, view)

    def columns(self, idx: Any) -> Floats:
        """X[:, idx] as a new Fortran-ordered array (m, k), fetched; idx may be a slice."""
        return self.view.cut(idx).change(self.stored(idx))

    def stored(self, idx: Any) -> Floats:
        """The columns before anything was done to them, (m, k)."""
        if isinstance(idx, slice):
            chosen = self.X[:, idx]
        else:
            # take wants positions on the device
            chosen = self.space.take(self.X, self._sent(np.asarray(idx), np.int64), axis=1)
        return np.array(_fetched(chosen), dtype=np.float64, order="F")

    def cross(self, V: Floats) -> Floats:
        """V' X for V (m, k), (k, c)."""
        result, V_t = np.empty((V.shape[1], self.shape[1])), self._sent(V.T)
        for part in self._steps():
            result[:, part] = _fetched(V_t @ self._here(part))
        return result

    def sq_norms(self, weights: Floats | None = None) -> Floats:
        """Σ_i weights_i x_ij², (c,)."""
        result, ones = np.empty(self.shape[1]), self._weights(weights)
        for part in self._steps():
            X = self._here(part)
            result[part] = _fetched(ones @ (X * X))
        return result

    def matvec(self, v: Floats) -> Floats:
        """X v for v (c,), (m,)."""
        result = np.zeros(self.shape[0])
        for part in self._steps():
            result += _fetched(self._here(part) @ self._sent(v[part]))
        return result

    def prices(self, V: Floats, tables: tuple[Table, ...], sq: Floats) -> Floats:
        """Gains, swaps and pivots of the columns at some fits, (k, 3, c); see `Block.prices`."""
        answer, V_t = np.empty((len(tables), 3, self.shape[1])), self._sent(V.T)
        sent = [self._sent_table(table) for table in tables]
        for part in self._steps():
            U, here, at = V_t @ self._here(part), self._sent(sq[part]), 0
            for table, place in zip(sent, answer, strict=True):
                size = table[0].shape[0]
                place[:, part] = _fetched(
                    self._prices(U[at : at + size, :], U[at + size, :], table, here)
                )
                at += size + 1
        return answer

    def _sent_table(self, table: Table) -> tuple[Any, ...]:
        """K, which members may leave, and of these the diagonal of K and the coefficients."""
        K, w, free = table
        sent = (self._sent(a[free, None]) for a in (np.diag(K), w))
        return self._sent(K), self._sent(np.flatnonzero(free), np.int64), *sent

    def _prices(self, U: Any, g: Any, table: tuple[Any, ...], sq: Any) -> Any:
        """The prices of some columns at a fit, (3, c), as `prices_at` finds them."""
        xp, (K, rows, diagonal, w) = self.space, table
        W, never = K @ U, xp.full_like(g, np.inf)
        M = xp.clip(sq - xp.sum(U * W, axis=0), min=0.0)
        least, is_zero = LEAST_PIVOT * sq, sq <= 0.0
        gains, swaps = 0.5 * g * g / xp.where(M > least, M, never), never
        if rows.shape[0] > 0:
            W = xp.take(W, rows, axis=0)
            slope = g[None, :] - W * (w / diagonal)
            pivot = xp.maximum(M[None, :] + W * W / diagonal, (least + SMALLEST)[None, :])
            swaps = xp.min(0.5 * w * w / diagonal - 0.5 * slope * slope / pivot, axis=0)
        return xp.stack((xp.where(is_zero, -never, gains), xp.where(is_zero, never, swaps), M))

    def summary(self, y: Floats | None, weights: Floats | None) -> Summary:
        """All that is known of columns before a search, from one read of them; O(mc)."""
        ones = np.ones(self.shape[0]) if weights is None else weights
        both = np.zeros((2, self.shape[0]))
        if y is not None:
            both[:] = ones * y, ones * centre(y, weights)[0]
        total, here = float(ones.sum()), (self._sent(ones), self._sent(both))
        used = self._sent(ones > 0.0, np.bool_)[:, None]
        # a bad entry is found below; arrays that NumPy stands behind would warn of it here
        with np.errstate(invalid="ignore", over="ignore"):
            found = [self._sums(part, *here, used, total) for part in self._steps()]
        lines = np.concatenate(found, axis=1)
        low, high, used_low, used_high, squares, products, means, rests = lines[:8]
        centred, centred_products = lines[8:]
        if is_refused(low, high).any():
            return refused_summary(low, high, self._first_bad(low, high))
        is_far = FAR**2 * centred < total * means**2
        is_constant = is_far & is_rounding(used_low, used_high)
        return Summary(
            low, high, squares, products, np.where(is_far, means, means + rests),
            np.where(is_far & ~is_constant, rests, 0.0), centred, centred_products,
            is_far, is_constant,
        )  # fmt: skip

    def _sums(self, part: slice, ones: Any, both: Any, used: Any, total: float) -> Floats:
        """The lines of a summary of some columns, (10, k), from one read of them."""
        xp, X = self.space, self._here(part)
        low, high = xp.min(X, axis=0), xp.max(X, axis=0)
        none = xp.full_like(X[:1, :], np.inf)
        used_low = xp.min(xp.where(used, X, none), axis=0)
        used_high = xp.max(xp.where(used, X, -none), axis=0)
        squares, products = ones @ (X * X), both[0, :] @ X
        means = ones @ X / total
        X = X - means
        rests = ones @ X / total
        X = X - rests
        lines = (low, high, used_low, used_high, squares, products, means, rests,
                 ones @ (X * X), both[1, :] @ X)  # fmt: skip
        return _fetched(xp.stack(lines))

    def _first_bad(self, low: Floats, high: Floats) -> tuple[int, int, float]:
        """The first column with an entry that is refused, its first such row, and the entry."""
        column = int(np.argmax(is_refused(low, high)))
        return first_bad(self.columns(slice(column, column + 1)), column)

    def _here(self, part: slice) -> Any:
        """Some columns as they are meant, in float64 on the device; (x·scale − means) − rests."""
        X, view = self.space.astype(self.X[:, part], self.space.float64), self.view.cut(part)
        if view.scale is not None:
            X = X * self._sent(view.scale)
        if view.means is not None:
            X = X - self._sent(view.means)
            if view.is_far.any():  # type: ignore[union-attr]
                X = X - self._sent(view.rests)
            if view.is_flat.any():  # type: ignore[union-attr]
                X = X * self._sent(~view.is_flat)  # type: ignore[operator]
        return X

    def _steps(self) -> Iterator[slice]:
        return self.parts(STEP_BYTES)

    def _weights(self, weights: Floats | None) -> Any:
        return self._sent(np.ones(self.shape[0]) if weights is None else weights)

    def _sent(self, a: Any, dtype: Any = np.float64) -> Any:
        """An array of NumPy on the device of X."""
        a = np.ascontiguousarray(a, dtype=dtype)
        return self.space.asarray(a, device=_device(self.X), copy=True)


def _namespace(X: Any) -> Any:
    """The functions of the array API for X."""
    try:
        from array_api_compat import array_namespace
    except ImportError:
        raise ImportError(NEEDED) from None
    return array_namespace(X)


def _device(X: Any) -> Any:
    from array_api_compat import device

    return device(X)


def _fetched(a: Any) -> Any:
    """An array of a device as one of NumPy."""
    get = getattr(a, "get", None)  # CuPy copies only when it is asked to
    if get is not None:
        return get()
    return np.from_dlpack(a.cpu()) if hasattr(a, "cpu") else np.from_dlpack(a)


def _itemsize(X: Any) -> int:
    space = _namespace(X)
    info = space.iinfo if space.isdtype(X.dtype, "integral") else space.finfo
    return info(X.dtype).bits // 8


def _kind(X: Any) -> str:
    return type(X).__module__.split(".")[0]
