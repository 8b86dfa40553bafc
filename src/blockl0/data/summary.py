"""Statistics of columns from a single read: lengths, means, products and bad entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.units import is_rounding
from blockl0.validate import LARGEST_ENTRY

if TYPE_CHECKING:
    from blockl0.data.block import Block

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

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
