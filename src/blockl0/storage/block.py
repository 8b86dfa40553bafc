"""Some columns of X over all rows: what they can be asked for where they lie.

Answers are float64 in NumPy, whatever the columns are stored as. Products accumulate in float64.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.units import is_rounding
from blockl0.validate import LARGEST_ENTRY

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

FAR = 64.0
"""A mean of so many spreads or more: products with the stored column would lose two digits."""
CACHE_BYTES = 1 << 20
"""Entries that become float64 at a time: what stays in cache is read and written there."""


class Summary(NamedTuple):
    """What one read tells of c columns; weighted sums, with weights of one where there are none.

    Attributes
    ----------
    low, high : ndarray (c,)
        The least and the largest entry.
    squares, products : ndarray (c,)
        Σ_i w_i x_ij² and Σ_i w_i x_ij y_i; the latter zero without y.
    means, rests : ndarray (c,)
        Their sums are the weighted means; a rest is zero unless a column is far from zero.
    centred_squares, centred_products : ndarray (c,)
        The same of x_ij − mean_j and of y less its mean, of far columns by two differences.
    is_far : ndarray of bool (c,)
        Whether a mean is `FAR` spreads or more.
    is_constant : ndarray of bool (c,)
        Whether all rows of positive weight hold one number other than zero, up to rounding.
    bad : tuple (column, row, value) or None
        The first entry that is not finite, or whose square overflows.
    """

    low: Floats
    high: Floats
    squares: Floats
    products: Floats
    means: Floats
    rests: Floats
    centred_squares: Floats
    centred_products: Floats
    is_far: Bools
    is_constant: Bools
    bad: tuple[int, int, float] | None = None

    @property
    def is_flat(self) -> Bools:
        """Whether a centred column is zero, (c,)."""
        return self.is_constant | (self.centred_squares == 0.0)

    def of_centred(self) -> Summary:
        """The summary of the columns less their means, with y less its mean."""
        zero, is_flat = np.zeros_like(self.means), self.is_flat
        low, high, squares, products = (
            np.where(is_flat, 0.0, a)
            for a in (
                (self.low - self.means) - self.rests, (self.high - self.means) - self.rests,
                self.centred_squares, self.centred_products,
            )
        )  # fmt: skip
        return Summary(low, high, squares, products, zero, zero, squares, products,
                       np.zeros_like(is_flat), np.zeros_like(is_flat))  # fmt: skip


class Block(ABC):
    """Columns of X over all rows, (m, c).

    A storage gives the first three; the others follow from them and are written anew where they can
    be had for less, as on a device.
    """

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(m, c)."""

    @abstractmethod
    def cross(self, V: Floats) -> Floats:
        """V' X for V (m, k), (k, c)."""

    @abstractmethod
    def columns(self, idx: Any) -> Floats:
        """X[:, idx] as a new Fortran-ordered array (m, k); idx may be a slice."""

    def stored(self, idx: Any) -> Floats:
        """The columns before anything was done to them, (m, k), as `columns` otherwise."""
        return self.columns(idx)

    def seen(self, part: slice) -> Floats:
        """X[:, part] to read only, (m, k); not copied where that is not needed."""
        return self.columns(part)

    def sq_norms(self, weights: Floats | None = None) -> Floats:
        """Σ_i weights_i x_ij², (c,)."""
        result = np.empty(self.shape[1])
        for part in self.parts():
            X = self.seen(part)
            X = X * X
            result[part] = X.sum(axis=0) if weights is None else weights @ X
        return result

    def matvec(self, v: Floats) -> Floats:
        """X v for v (c,), (m,)."""
        result = np.zeros(self.shape[0])
        for part in self.parts():
            if v[part].any():
                result += self.seen(part) @ v[part]
        return result

    def summary(self, y: Floats | None, weights: Floats | None) -> Summary:
        """All that is known of columns before a search, from one read of them; O(mc)."""
        return summarize(self, y, weights)

    def parts(self, size: int = CACHE_BYTES) -> Iterator[slice]:
        """The columns, some at a time, so that their float64 entries take `size` bytes."""
        m, c = self.shape
        step = max(1, size // (8 * m))
        for start in range(0, c, step):
            yield slice(start, min(start + step, c))


class ArrayBlock(Block):
    """An array (m, c) of real numbers of any kind, best in Fortran order, never cast whole."""

    def __init__(self, X: NDArray[Any]) -> None:
        self.X = X

    @property
    def shape(self) -> tuple[int, int]:
        """(m, c)."""
        return self.X.shape

    def cross(self, V: Floats) -> Floats:
        """V' X for V (m, k), (k, c)."""
        if self.X.dtype == np.float64:
            return V.T @ self.X
        U = np.empty((V.shape[1], self.shape[1]))
        for part in self.parts():
            U[:, part] = V.T @ self.seen(part)
        return U

    def seen(self, part: slice) -> Floats:
        """X[:, part] to read only, (m, k)."""
        return self.X[:, part] if self.X.dtype == np.float64 else self.columns(part)

    def columns(self, idx: Any) -> Floats:
        """X[:, idx] as a new Fortran-ordered array (m, k); idx may be a slice."""
        return np.array(self.X[:, idx], dtype=np.float64, order="F")


class View(NamedTuple):
    """What stands between stored columns and those that are meant: x·scale − means − rests.

    None for what is not done. Flat columns are zero; of far ones the two differences are made one
    after the other, in every product, so that each is right to its last digit.
    """

    scale: Floats | None = None
    means: Floats | None = None
    rests: Floats | None = None
    is_flat: Bools | None = None
    is_far: Bools | None = None

    @property
    def is_plain(self) -> bool:
        """Whether nothing is done."""
        return self.scale is None and self.means is None

    def cut(self, part: Any) -> View:
        """Of some columns."""
        own: list[Any] = [None if a is None else a[part] for a in self]
        return View(*own)

    def change(self, X: Floats) -> Floats:
        """Stored columns (m, c) turned into those that are meant, in place."""
        if self.scale is not None:
            X *= self.scale
        if self.means is not None:
            X -= self.means
            # one after the other: the sum of the two would be rounded to the digits of the mean
            if self.rests is not None and np.any(self.is_far):  # type: ignore[arg-type]
                X -= self.rests
            X[:, self.is_flat] = 0.0
        return X


NO_VIEW = View()


class Seen(Block):
    """A block through a view that was cut for it."""

    def __init__(self, block: Block, view: View) -> None:
        self.block, self.view = block, view

    @property
    def shape(self) -> tuple[int, int]:
        """(m, c)."""
        return self.block.shape

    def cross(self, V: Floats) -> Floats:
        """V' X for V (m, k), (k, c)."""
        U, view = self.block.cross(V), self.view
        if view.scale is not None:
            U *= view.scale
        if view.means is not None:
            U -= np.outer(V.sum(axis=0), view.means)
            far = np.flatnonzero(view.is_far)  # type: ignore[arg-type]
            step = max(1, CACHE_BYTES // (8 * self.shape[0]))
            for some in (far[i : i + step] for i in range(0, far.size, step)):
                U[:, some] = V.T @ self.columns(some)
            U[:, view.is_flat] = 0.0
        return U

    def columns(self, idx: Any) -> Floats:
        """X[:, idx] as a new Fortran-ordered array (m, k); idx may be a slice."""
        return self.view.cut(idx).change(self.block.columns(idx))

    def stored(self, idx: Any) -> Floats:
        """The columns before anything was done to them, (m, k)."""
        return self.block.stored(idx)


def summarize(block: Block, y: Floats | None, weights: Floats | None) -> Summary:
    """The summary of any block by its columns, some at a time."""
    m = block.shape[0]
    ones = np.ones(m) if weights is None else weights
    both = None if y is None else (ones * y, ones * centre(y, weights)[0])
    parts = [_summary_of(block.seen(part), ones, both, part.start) for part in block.parts()]
    bad = next((part.bad for part in parts if part.bad is not None), None)
    return joined(parts)._replace(bad=bad)


def centre(y: Floats, weights: Floats | None) -> tuple[Floats, float, float]:
    """y less its weighted mean, and the two numbers that were taken from it.

    The mean is rounded to its own digits, which may be few of those of y: what is left is the rest.
    """
    mean = float(np.average(y, weights=weights))
    y = y - mean
    rest = float(np.average(y, weights=weights))
    return y - rest, mean, rest


def joined(parts: list[Summary]) -> Summary:
    """Summaries of consecutive columns as one, without what is bad."""
    fields: list[Any] = list(zip(*(part[:-1] for part in parts), strict=True))
    return Summary(*(np.concatenate(field) for field in fields))  # pyright: ignore[reportArgumentType]


def _summary_of(
    X: Floats, weights: Floats, both: tuple[Floats, Floats] | None, start: int
) -> Summary:
    """The summary of columns (m, k), which are not changed.

    Where a mean is no more than a spread, a centred sum is a difference that loses a digit of two
    at most; other columns are centred, by two differences.
    """
    k, total = X.shape[1], float(weights.sum())
    low, high = X.min(axis=0), X.max(axis=0)
    if not (high.max() <= LARGEST_ENTRY and low.min() >= -LARGEST_ENTRY):
        rest: list[Any] = [np.zeros(k)] * 6 + [np.zeros(k, dtype=np.bool_)] * 2
        return Summary(low, high, *rest)._replace(bad=_first_bad(X, start))
    lines = np.zeros((3, k))
    if both is None:
        lines[0] = weights @ X
    else:
        lines[:] = np.stack([weights, *both]) @ X
    sums, products, centred_products = lines
    means, rests, squares = sums / total, np.zeros(k), weights @ (X * X)
    centred = squares - sums * means
    is_far = np.zeros(k, dtype=np.bool_)
    is_constant = is_far.copy()
    some = np.flatnonzero(~(centred > total * means**2))
    if some.size:
        own = _centred_sums(X[:, some], weights, total, None if both is None else both[1])
        for whole, part in zip(
            (means, rests, centred, centred_products, is_far, is_constant), own, strict=True
        ):
            whole[some] = part
    return Summary(low, high, squares, products, means, rests, centred, centred_products,
                   is_far, is_constant)  # fmt: skip


def _centred_sums(
    X: Floats, weights: Floats, total: float, target: Floats | None
) -> tuple[Floats, Floats, Floats, Floats, Bools, Bools]:
    """Means, rests, centred squares and products, and what is far and constant; X is changed."""
    used = X if np.all(weights > 0.0) else X[weights > 0.0]
    is_constant = is_rounding(used.min(axis=0), used.max(axis=0))
    means = weights @ X / total
    X -= means
    rests = weights @ X / total
    X -= rests
    products = np.zeros(means.size) if target is None else target @ X
    X *= X
    squares = weights @ X
    is_far = FAR**2 * squares < total * means**2
    is_constant &= is_far
    means = np.where(is_far, means, means + rests)
    rests = np.where(is_far & ~is_constant, rests, 0.0)
    return means, rests, squares, products, is_far, is_constant


def _first_bad(X: Floats, start: int) -> tuple[int, int, float]:
    """The first column with an entry that is refused, its first such row, and the entry."""
    is_bad = ~np.isfinite(X) | (np.abs(X) > LARGEST_ENTRY)
    column = int(np.argmax(is_bad.any(axis=0)))
    row = int(np.argmax(is_bad[:, column]))
    return start + column, row, float(X[row, column])
