"""Blocks: some columns of X over all rows, and the computations done where they are stored.

Results are float64 NumPy arrays whatever the storage type; products accumulate in float64.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.units import is_rounding
from blockl0.validate import LARGEST_ENTRY

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

CACHE_BYTES = 1 << 20
"""Bytes of entries converted to float64 at a time: they stay in the processor's cache."""


class Block(ABC):
    """Some columns of X over all rows, (m, c).

    A storage implements `shape` and `columns`. Everything else is computed from float64 entries
    where the columns live, a few columns at a time, with the array functions of `space`; `sent` and
    `fetched` move arrays there and back. In this base class that is NumPy, and nothing moves.
    """

    space: Any = np

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(m, c)."""

    @abstractmethod
    def columns(self, idx: Any) -> Floats:
        """Return X[:, idx] as a new Fortran-ordered array (m, k); idx may be a slice."""

    def stored(self, idx: Any) -> Floats:
        """Return columns (m, k) as stored, before any scaling or centring."""
        return self.columns(idx)

    # where the columns lie -------------------------------------------------------------------

    def sent(self, a: Any, dtype: Any = np.float64) -> Any:
        """Move a NumPy array to where the columns live."""
        return a

    def fetched(self, a: Any) -> Any:
        """Move an array back as a NumPy array."""
        return a

    def chosen(self, X: Any, idx: Any, axis: int) -> Any:
        """Take rows or columns of a moved array by index, as a new array."""
        return X[idx] if axis == 0 else X[:, idx]

    def fresh(self, part: slice) -> Any:
        """Return X[:, part] (m, k) in float64 there, as a new array."""
        return self.columns(part)

    def seen(self, part: slice) -> Any:
        """Return X[:, part] (m, k) in float64 there, read-only, without a copy if possible."""
        return self.fresh(part)

    def product(self, V_t: Any, part: slice) -> Any:
        """Compute V_t X[:, part], (k, c), for V_t (k, m); all arrays live there."""
        U = np.empty((V_t.shape[0], part.stop - part.start))
        for some in cut(part, self.step):
            U[:, some.start - part.start : some.stop - part.start] = V_t @ self.seen(some)
        return U

    @property
    def step(self) -> int:
        """Number of columns converted to float64 at a time."""
        return max(1, CACHE_BYTES // (8 * self.shape[0]))

    def parts(self) -> Iterator[slice]:
        """Iterate over slices of columns converted to float64 at a time."""
        return cut(slice(0, self.shape[1]), self.step)

    def wide_parts(self) -> Iterator[slice]:
        """Iterate over slices of columns multiplied at a time; here a single one."""
        yield slice(0, self.shape[1])

    # answers ---------------------------------------------------------------------------------

    def cross(self, V: Floats) -> Floats:
        """Compute V' X, (k, c), for V (m, k)."""
        result, V_t = np.empty((V.shape[1], self.shape[1])), self.sent(V.T)
        for part in self.wide_parts():
            result[:, part] = self.fetched(self.product(V_t, part))
        return result

    def sq_norms(self, weights: Floats | None = None) -> Floats:
        """Compute Σ_i weights_i x_ij², (c,)."""
        result = np.empty(self.shape[1])
        ones = self.sent(np.ones(self.shape[0]) if weights is None else weights)
        for part in self.parts():
            X = self.seen(part)
            result[part] = self.fetched(ones @ (X * X))
        return result

    def matvec(self, v: Floats) -> Floats:
        """Compute X v, (m,), for v (c,)."""
        result = np.zeros(self.shape[0])
        for part in self.parts():
            if v[part].any():
                result += self.fetched(self.seen(part) @ self.sent(v[part]))
        return result

    def summary(self, y: Floats | None, weights: Floats | None) -> ColumnSummary:
        """Summarize the columns in a single read, before a search; O(mc)."""
        return summarize(self, y, weights)

    def entry_changes(self, V: Floats, tables: tuple[Table, ...], sq: Floats) -> Floats:
        """Compute gains, swaps and pivots of the columns at several fits, (k, 3, c).

        See `changes_at`. V holds [X_S, residual], weighted, of all fits side by side.
        """
        answer, V_t = np.empty((len(tables), 3, self.shape[1])), self.sent(V.T)
        there = [sent_table(table, self.sent) for table in tables]
        for part in self.wide_parts():
            U = self.product(V_t, part)
            answer[..., part] = self.fetched(changes_at(U, there, self.sent(sq[part]), self.space))
        return answer

    def through(self, view: View) -> Block:
        """Wrap the block in a view that was cut for its columns."""
        return ViewedBlock(self, view)


def cut(part: slice, step: int) -> Iterator[slice]:
    """Split a slice into pieces of `step`, the last one possibly shorter."""
    for start in range(part.start, part.stop, step):
        yield slice(start, min(start + step, part.stop))


class ArrayBlock(Block):
    """Block of an array (m, c) of any real type, ideally Fortran-ordered, never cast as a whole."""

    def __init__(self, X: NDArray[Any]) -> None:
        self.X = X

    @property
    def shape(self) -> tuple[int, int]:
        """(m, c)."""
        return self.X.shape

    def product(self, V_t: Floats, part: slice) -> Floats:
        """Compute V_t X[:, part], (k, c), for V_t (k, m)."""
        if self.X.dtype == np.float64:
            return V_t @ self.X[:, part]
        return super().product(V_t, part)

    def seen(self, part: slice) -> Floats:
        """Return X[:, part] (m, k), read-only."""
        return self.X[:, part] if self.X.dtype == np.float64 else self.columns(part)

    def columns(self, idx: Any) -> Floats:
        """Return X[:, idx] as a new Fortran-ordered array (m, k); idx may be a slice."""
        return np.array(self.X[:, idx], dtype=np.float64, order="F")


class View(NamedTuple):
    """Scaling and centring applied to stored columns: x·scale − means − rests.

    A field is None if that step is skipped. Flat columns become zero. For columns far from zero the
    mean and its rounding rest are subtracted one after the other, before every product, so that no
    digit is lost.
    """

    scale: Floats | None = None
    means: Floats | None = None
    rests: Floats | None = None
    is_flat: Bools | None = None
    is_far: Bools | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the view leaves columns as they are."""
        return self.scale is None and self.means is None

    def cut(self, part: Any) -> View:
        """Restrict the view to some columns."""
        own: list[Any] = [None if a is None else a[part] for a in self]
        return View(*own)

    def change(self, X: Any, sent: Callable[[Any], Any] = lambda a: a) -> Any:
        """Apply scaling and centring in place to stored columns (m, c), on any device."""
        if self.scale is not None:
            X *= sent(self.scale)
        if self.means is not None:
            X -= sent(self.means)
            # one after the other: their sum would be rounded to the precision of the mean
            if self.rests is not None and np.any(self.is_far):  # type: ignore[arg-type]
                X -= sent(self.rests)
            if np.any(self.is_flat):  # type: ignore[arg-type]
                X *= sent(~self.is_flat)  # type: ignore[operator]
        return X


NO_VIEW = View()


class ViewedBlock(Block):
    """A block seen through a view that was cut for it."""

    block: Block
    view: View

    def __init__(self, block: Block, view: View) -> None:
        self.block, self.view = block, view

    @property
    def shape(self) -> tuple[int, int]:
        """(m, c)."""
        return self.block.shape

    @property
    def space(self) -> Any:  # type: ignore[override]
        """Array functions of the wrapped block."""
        return self.block.space

    @property
    def step(self) -> int:
        """Number of columns converted to float64 at a time."""
        return self.block.step

    def sent(self, a: Any, dtype: Any = np.float64) -> Any:
        """Move a NumPy array to where the columns live."""
        return self.block.sent(a, dtype)

    def fetched(self, a: Any) -> Any:
        """Move an array back as a NumPy array."""
        return self.block.fetched(a)

    def chosen(self, X: Any, idx: Any, axis: int) -> Any:
        """Take rows or columns of a moved array by index, as a new array."""
        return self.block.chosen(X, idx, axis)

    def wide_parts(self) -> Iterator[slice]:
        """Iterate over the slices of the wrapped block."""
        return self.block.wide_parts()

    def fresh(self, part: slice) -> Any:
        """Return X[:, part] (m, k) in float64 there, as a new array."""
        return self.view.cut(part).change(self.block.fresh(part), self.sent)

    def product(self, V_t: Any, part: slice) -> Any:
        """Compute V_t X[:, part], (k, c), for V_t (k, m); all arrays live there.

        Means are subtracted from the products, unless a column of the piece is far from zero: then
        all columns of the piece are centred first.
        """
        U, view = self.block.product(V_t, part), self.view.cut(part)
        if view.scale is not None:
            U *= self.sent(view.scale)
        if view.means is None:
            return U
        # (X − 1·means')'v is X'v less means·Σv, without a centred copy of X
        U -= self.space.sum(V_t, axis=1)[:, None] * self.sent(view.means)[None, :]
        for some in cut(slice(0, part.stop - part.start), self.step):
            if np.any(view.is_far[some]):  # type: ignore[index]
                here = slice(part.start + some.start, part.start + some.stop)
                U[:, some] = V_t @ self.fresh(here)
        # exactly zero, as rounding of a large mean would not be
        if np.any(view.is_flat):  # type: ignore[arg-type]
            U *= self.sent(~view.is_flat)[None, :]  # type: ignore[operator]
        return U

    def columns(self, idx: Any) -> Floats:
        """Return X[:, idx] as a new Fortran-ordered array (m, k); idx may be a slice."""
        return self.view.cut(idx).change(self.block.columns(idx))

    def stored(self, idx: Any) -> Floats:
        """Return columns (m, k) as stored, before any scaling or centring."""
        return self.block.stored(idx)


Table = tuple[Floats, Floats, NDArray[np.bool_]]
"""A fit: K = inv(X_S'X_S + ridge), (s, s); its coefficients, (s,); which units may leave, (s,)."""

PIVOT_FLOOR = 1e-9
"""Pivots below this share of a column's squared length count it as in the span of the support."""
SMALLEST = 1e-300
"""Keeps a zero column from causing 0 / 0."""


def sent_table(table: Table, sent: Callable[..., Any]) -> tuple[Any, ...]:
    """Move a table to where columns live: K, its diagonal, coefficients, indices that may leave."""
    K, w, free = table
    return sent(K), sent(np.diag(K).copy()), sent(w), sent(np.flatnonzero(free), np.int64)


def changes_at(U: Any, tables: Sequence[tuple[Any, ...]], sq: Any, space: Any = np) -> Any:
    """Compute gains of additions, changes by the best swaps, and pivots at several fits, (k, 3, c).

    Parameters
    ----------
    U : array (Σ(s + 1), c)
        For every fit X_S'X, followed by the gradient of the columns.
    tables : sequence of moved tables
    sq : array (c,)
        Squared lengths of the columns, including the ridge.
    space : module
        The array functions, those of the array API.
    """
    found, at = [], 0
    for table in tables:
        size = table[0].shape[0]
        found.append(_changes(U[at : at + size, :], U[at + size, :], table, sq, space))
        at += size + 1
    return space.stack(found)


def _changes(U: Any, g: Any, table: tuple[Any, ...], sq: Any, xp: Any) -> Any:
    """Compute gains, swaps and pivots of some columns, (3, c), from U = X_S' X_part, (s, c)."""
    W = table[0] @ U
    # einsum avoids the temporary U * W, whose allocation would cost more than its entries
    taken = np.einsum("ij,ij->j", U, W) if xp is np else xp.sum(U * W, axis=0)
    M = xp.clip(sq - taken, min=0.0)
    least, is_zero, never = PIVOT_FLOOR * sq, sq <= 0.0, xp.full_like(sq, np.inf)
    gains = 0.5 * g * g / xp.where(M > least, M, never)
    swaps = (_swaps_here if xp is np else _swaps)(W, g, M, least + SMALLEST, table, xp)
    return xp.stack((xp.where(is_zero, -never, gains), xp.where(is_zero, never, swaps), M))


def _swaps(W: Any, g: Any, M: Any, least: Any, table: tuple[Any, ...], xp: Any) -> Any:
    """Find the best swap with each column, by array operations."""
    _, diagonal, w, free = table
    if free.shape[0] == 0:
        return xp.full_like(g, np.inf)
    W, diagonal, w = xp.take(W, free, axis=0), xp.take(diagonal, free), xp.take(w, free)
    diagonal, w = diagonal[:, None], w[:, None]
    slope = g[None, :] - W * (w / diagonal)
    pivot = xp.maximum(M[None, :] + W * W / diagonal, least[None, :])
    return xp.min(0.5 * w * w / diagonal - 0.5 * slope * slope / pivot, axis=0)


def _swaps_here(W: Any, g: Any, M: Any, least: Any, table: tuple[Any, ...], xp: Any) -> Any:
    """Find the best swap with each column, by the compiled kernel."""
    from blockl0 import (
        kernels,  # imported late: refusing a bad table must not wait for the compiler
    )

    _, diagonal, w, free = table
    may_leave = np.zeros(w.size, dtype=np.bool_)
    may_leave[free] = True
    swaps = np.full(g.size, np.inf)
    kernels.price_swaps(W, diagonal, w, may_leave, g, M, least, swaps)
    return swaps


FAR = 64.0
"""Columns whose mean is this many spreads from zero would lose two digits in products."""


class ColumnSummary(NamedTuple):
    """Statistics of c columns from a single read; sums are weighted, by default with ones.

    Attributes
    ----------
    low, high : ndarray (c,)
        The smallest and largest entry.
    squares, products : ndarray (c,)
        Σ_i w_i x_ij² and Σ_i w_i x_ij y_i; the latter zero without y.
    means, rests : ndarray (c,)
        Weighted means as a sum of two numbers; the rest is zero unless a column is far from zero.
    centred_squares, centred_products : ndarray (c,)
        The same of x_ij − mean_j and y − mean(y); far columns are centred in two steps.
    is_far : ndarray of bool (c,)
        Whether the mean is at least `FAR` spreads from zero.
    is_constant : ndarray of bool (c,)
        Whether all rows of positive weight hold the same nonzero number, up to rounding.
    bad : tuple (column, row, value) or None
        The first entry that is not finite or whose square overflows.
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

    def scaled(self, scale: Floats) -> ColumnSummary:
        """Return the summary of the columns multiplied by positive numbers, (c,)."""
        by_one, by_two = (
            {name: getattr(self, name) * factor for name in names}
            for names, factor in (
                (("low", "high", "products", "means", "rests", "centred_products"), scale),
                (("squares", "centred_squares"), scale**2),
            )
        )
        return self._replace(**by_one, **by_two)

    def of_centred(self) -> ColumnSummary:
        """Return the summary of the centred columns, with centred y."""
        zero, is_flat = np.zeros_like(self.means), self.is_flat
        low, high, squares, products = (
            np.where(is_flat, 0.0, a)
            for a in (
                (self.low - self.means) - self.rests, (self.high - self.means) - self.rests,
                self.centred_squares, self.centred_products,
            )
        )  # fmt: skip
        return ColumnSummary(low, high, squares, products, zero, zero, squares, products,
                       np.zeros_like(is_flat), np.zeros_like(is_flat))  # fmt: skip


def summarize(block: Block, y: Floats | None, weights: Floats | None) -> ColumnSummary:
    """Summarize any block from its columns, a few at a time."""
    m = block.shape[0]
    ones = np.ones(m) if weights is None else weights
    lines = np.stack([ones] if y is None else [ones, ones * y, ones * centre(y, weights)[0]])
    used = None if np.all(ones > 0.0) else np.flatnonzero(ones > 0.0)
    given = Sums(float(ones.sum()), block.sent(lines), used)
    # bad entries are reported below; NumPy-backed arrays would warn of them here
    with np.errstate(invalid="ignore", over="ignore"):
        parts = [_summary_of(block, part, given) for part in block.parts()]
    bad = next((part.bad for part in parts if part.bad is not None), None)
    return joined(parts)._replace(bad=bad)


def centre(y: Floats, weights: Floats | None) -> tuple[Floats, float, float]:
    """Centre y by its weighted mean; return it with the two numbers subtracted.

    The mean is rounded to its own precision, which may be coarse compared with y; the second number
    is what remains.
    """
    mean = float(y.mean() if weights is None else np.average(y, weights=weights))
    y = y - mean
    rest = float(y.mean() if weights is None else np.average(y, weights=weights))
    return y - rest, mean, rest


def joined(parts: list[ColumnSummary]) -> ColumnSummary:
    """Join summaries of consecutive columns, without bad entries."""
    fields: list[Any] = list(zip(*(part[:-1] for part in parts), strict=True))
    return ColumnSummary(*(np.concatenate(field) for field in fields))  # pyright: ignore[reportArgumentType]


class Sums(NamedTuple):
    """Vectors to multiply columns by: the weights, and weights times y and centred y.

    `used` are the rows of positive weight, None if that is all of them.
    """

    total: float
    lines: Any
    used: Any


def _summary_of(block: Block, part: slice, given: Sums) -> ColumnSummary:
    """Summarize some columns of a block.

    Where the mean is at most one spread, centring a sum by a difference loses at most one or two
    digits; other columns are centred first, in two steps.
    """
    X, xp, total = block.seen(part), block.space, given.total
    some_lines = xp.min(X, axis=0), xp.max(X, axis=0), given.lines[0, :] @ (X * X)
    found = block.fetched(xp.concat([xp.stack(some_lines), given.lines @ X]))
    low, high, squares, sums = found[:4]
    is_bad = is_refused(low, high)
    if is_bad.any():
        at = part.start + int(np.argmax(is_bad))
        return refused_summary(low, high, first_bad(block.columns(slice(at, at + 1)), at))
    k, means = low.size, sums / total
    products, centred_products = found[4:].copy() if len(found) > 4 else np.zeros((2, k))
    rests, centred = np.zeros(k), squares - sums * means
    is_far = np.zeros(k, dtype=np.bool_)
    is_constant = is_far.copy()
    some = np.flatnonzero(~(centred > total * means**2))
    if some.size:
        own = _centred_sums(block, block.chosen(X, some, 1), given)
        for whole, values in zip(
            (means, rests, centred, centred_products, is_far, is_constant), own, strict=True
        ):
            whole[some] = values
    return ColumnSummary(low, high, squares, products, means, rests, centred, centred_products,
                   is_far, is_constant)  # fmt: skip


def _centred_sums(
    block: Block, X: Any, given: Sums
) -> tuple[Floats, Floats, Floats, Floats, Bools, Bools]:
    """Compute statistics of columns far from zero, centring X in place.

    Returns means, rests, centred squares and products, and which columns are far and constant.
    """
    xp, total, ones = block.space, given.total, given.lines[0, :]
    used = X if given.used is None else block.chosen(X, given.used, 0)
    low, high = xp.min(used, axis=0), xp.max(used, axis=0)
    means = ones @ X / total
    X -= means
    rests = ones @ X / total
    X -= rests
    products = given.lines[-1, :] @ X
    X *= X
    found = block.fetched(xp.stack((low, high, means, rests, ones @ X, products)))
    low, high, means, rests, squares, products = found
    if given.lines.shape[0] == 1:
        products = np.zeros_like(products)
    is_far = FAR**2 * squares < total * means**2
    is_constant = is_rounding(low, high) & is_far
    means = np.where(is_far, means, means + rests)
    rests = np.where(is_far & ~is_constant, rests, 0.0)
    return means, rests, squares, products, is_far, is_constant


def is_refused(low: Floats, high: Floats) -> Bools:
    """Check which columns have an entry that is not finite or whose square overflows, (c,)."""
    return ~((high <= LARGEST_ENTRY) & (low >= -LARGEST_ENTRY))


def refused_summary(low: Floats, high: Floats, bad: tuple[int, int, float]) -> ColumnSummary:
    """Return a placeholder summary of columns with a bad entry."""
    rest: list[Any] = [np.zeros(low.size)] * 6 + [np.zeros(low.size, dtype=np.bool_)] * 2
    return ColumnSummary(low, high, *rest)._replace(bad=bad)


def first_bad(X: Floats, start: int) -> tuple[int, int, float]:
    """Find the first refused entry: its column, its row and its value."""
    is_bad = ~np.isfinite(X) | (np.abs(X) > LARGEST_ENTRY)
    column = int(np.argmax(is_bad.any(axis=0)))
    row = int(np.argmax(is_bad[:, column]))
    return start + column, row, float(X[row, column])
