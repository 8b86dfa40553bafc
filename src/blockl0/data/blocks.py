"""X in blocks of columns, wherever they are stored.

Every operation is a scan over all blocks or reads a few columns. A scan is a pass over X that maps
a kernel over the blocks with the engine of their source, in any order; every answer has its own
place, so the result does not depend on the order. The first scan is fused: it computes lengths,
means, ranges and X'y and finds the first invalid entry, centred or not. Centring, scaling and
column selection are views, applied when columns are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.data.block import FAR, NO_VIEW, Block, ColumnSummary, View, centre
from blockl0.data.centred import Centered
from blockl0.data.design import Dense, Design
from blockl0.data.passes import Bag, ColumnCache, PassBatcher, Ranking, Scans, kernel_carry
from blockl0.data.source import SomeRows, Source, opened
from blockl0.validate import refuse_entry

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

TAKEN_BYTES = 256 << 20
"""Selected columns up to this size become an array in memory; larger selections stay in blocks."""
CARRIED = 2560
"""Columns that a pass prefetches where reading single columns is expensive, shared by its rankings:
two of them, of additions and of swaps, for pools of the usual size.
"""
GRAM_COLUMNS = 4096
"""Largest number of columns for which X'X is formed."""


def read_if_small(source: Source) -> Blocks | Floats:
    """Return the blocks of a source, or X in memory (not yet validated) if it is small."""
    blocks = Blocks(source)
    if blocks.nbytes > source.held_bytes:
        return blocks
    return source.columns(np.arange(source.shape[1]))


def stored(X: Any, memory_limit: float | None = None) -> Any:
    """Wrap X in `Blocks` if it is read in blocks; load it if small; return all else unchanged."""
    source = None if isinstance(X, Design) else opened(X, memory_limit)
    return X if source is None else read_if_small(source)


class Known(NamedTuple):
    """A summary of all columns, with the target and weights it was computed for."""

    summary: ColumnSummary
    y: Floats | None
    weights: Floats | None


class Blocks(Design):
    """X (m, n) by the blocks of a source.

    `nbytes` is the size as float64, on which the work and memory of a search depend; `n_read`
    counts bytes in the source's own format.

    Parameters
    ----------
    source : Source
    like : Blocks, optional
        Another view of the same source, with which columns, reads and cached entries are shared.
    """

    def __init__(self, source: Source, like: Blocks | None = None) -> None:
        self.source = source
        self.cache: ColumnCache = ColumnCache(source) if like is None else like.cache
        # one counter of reads for all views, and one batch of passes
        self.scans: Scans = Scans(source, self.cache.count) if like is None else like.scans
        self.n_searches = 1 if like is None else like.n_searches
        self.pool_bytes: int = max(source.held_bytes, 1)
        self.view: View = NO_VIEW
        self.chunk: int = max(part.stop - part.start for part in source.parts)
        # the selected columns, by their numbers in the source; None for all of them
        self._idx: Ints | None = None if like is None else like._idx
        everything: list[tuple[int, Any]] = list(enumerate(source.parts))
        self._places: list[tuple[int, Any]] = everything if like is None else like._places
        self._known: Known | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """(n_samples, n_features)."""
        m, n = self.source.shape
        return m, n if self._idx is None else self._idx.size

    @property
    def nbytes(self) -> int:
        """Bytes of the entries as float64."""
        return 8 * self.shape[0] * self.shape[1]

    @property
    def n_read(self) -> float:
        """Number of passes over the source, by bytes, of this design and its views together."""
        return self.cache.n_read

    @property
    def batcher(self) -> PassBatcher:
        """Runner of tasks that share their passes over X."""
        return self.scans.batcher

    # scans -----------------------------------------------------------------------------------

    def scan(
        self, kernel: Callable[..., Any], *shared: Any, split: tuple[Any, ...] = ()
    ) -> Iterator[tuple[Any, Any]]:
        """Yield (part, kernel(block, *shared, *own)) over all columns; one pass over X."""
        places = dict(self._places)
        for i, answer in self._map(kernel, *shared, split=split):
            yield places[i], answer

    def _map(
        self, kernel: Callable[..., Any], *shared: Any, split: tuple[Any, ...] = ()
    ) -> Iterator[tuple[int, Any]]:
        """Yield (number of the block, answer), like `scan`."""
        calls = [
            (i, (self.view.cut(part), self._own(i, part), kernel, shared,
                 tuple(a[..., part] for a in split)))
            for i, part in self._places
        ]  # fmt: skip
        return self.scans.map(calls)

    def scan_for(
        self, ranking: Ranking, kernel: Callable[..., Any], *shared: Any,
        split: tuple[Any, ...] = (),
    ) -> Iterator[tuple[Any, Any]]:  # fmt: skip
        """Scan X and prefetch the columns that `ranking` puts first.

        Where reading single columns would cost a good part of a pass, they are collected on the way
        and kept in the cache. No answer depends on that.
        """
        if not self.source.is_dear or self._idx is not None:
            yield from self.scan(kernel, *shared, split=split)
            return
        most = min(CARRIED, self.cache.most)
        share, bags = most / self.shape[1], None
        given = kernel, ranking, share, *shared
        for part, (answer, best) in self.scan(kernel_carry, *given, split=split):
            bags = bags or [Bag(-(-most // len(best))) for _ in best]
            for bag, (ranks, own, X) in zip(bags, best, strict=True):
                bag.add(ranks, own + part.start, X)
            yield part, answer
        for bag in bags or ():
            self.cache.keep(*bag.contents())

    def _own(self, i: int, part: Any) -> Ints | None:
        """Return which columns of a block are selected; None for all."""
        if self._idx is None:
            return None
        block = self.source.parts[i]
        own = self._idx[part] - block.start
        return None if np.array_equal(own, np.arange(block.stop - block.start)) else own

    def _gathered(self, kernel: Callable[..., Any], *shared: Any, lines: int) -> Floats:
        """Collect the answers of a scan side by side, (lines, n)."""
        result = np.empty((lines, self.shape[1]))
        for part, answer in self.scan(kernel, *shared):
            result[:, part] = answer
        return result

    def look(self, y: Floats | None = None, weights: Floats | None = None) -> None:
        """Read X once: reject its first invalid entry and remember a `ColumnSummary`."""
        if self._is_known_for(y, weights):
            return
        n, whole, bad = self.shape[1], {}, []
        for part, found in self.scan_for(first_gains, kernel_summary, y, weights):
            if found.bad is not None:
                column, row, value = found.bad
                bad.append((int(np.arange(n)[part][column]), row, value))
            for name, values in zip(ColumnSummary._fields[:-1], found[:-1], strict=True):
                whole.setdefault(name, np.empty(n, dtype=values.dtype))[part] = values
        if bad:
            column, row, value = min(bad)
            refuse_entry("X", value, f"column {column}, row {row}")
        self._known = Known(ColumnSummary(**whole), y, weights)

    def _is_known_for(self, y: Floats | None, weights: Floats | None) -> bool:
        known = self._known
        if known is None or not _same(known.weights, weights):
            return False
        return y is None or _same(known.y, y)

    # what the first pass tells ---------------------------------------------------------------

    def sq_norms(self, weights: Floats | None = None) -> Floats:
        """Return Σ_i weights_i x_ij² for every column j, (n,)."""
        if self._known is not None and _same(self._known.weights, weights):
            return self._known.summary.squares.copy()
        return self._gathered(kernel_sq_norms, weights, lines=1)[0]

    def known_products(self, y: Floats, weights: Floats | None) -> Floats | None:
        """Return X'(weights ∘ y), (n,), if the first pass computed it, else None."""
        if self._known is None or not self._is_known_for(y, weights):
            return None
        return self._known.summary.products.copy()

    def ranges(self) -> tuple[Floats, Floats]:
        """Return the smallest and the largest entry of every column, (n,) each."""
        summary = self._summary()
        return summary.low.copy(), summary.high.copy()

    def _summary(self) -> ColumnSummary:
        """Return the summary, for whichever weights it was made."""
        if self._known is None:
            self.look()
        assert self._known is not None
        return self._known.summary

    def is_moderate(self, most: float) -> bool:
        """Return whether the ranges show that all nonzero lengths are in [1/most, most]."""
        low, high = self.ranges()
        peaks = np.maximum(-low, high)
        real = peaks[peaks > 0.0]
        rows = float(np.sqrt(self.shape[0]))
        return real.size == 0 or bool(real.min() >= 1.0 / most and rows * real.max() <= most)

    @property
    def spreads(self) -> Floats:
        """Standard deviations of the columns, (n,), with the weights of the last `look`."""
        summary, weights = self._summary(), self._known.weights  # type: ignore[union-attr]
        total = self.shape[0] if weights is None else float(weights.sum())
        return np.sqrt(summary.centred_squares / total)

    def is_zero(self) -> Bools:
        """Return which columns are zero, (n,)."""
        low, high = self.ranges()
        return (low == 0.0) & (high == 0.0)

    # products --------------------------------------------------------------------------------

    def matvec(self, w: Floats) -> Floats:
        """Compute X w, (m,), reading only the support if it is small."""
        support = np.flatnonzero(w)
        if self._is_small(support.size):
            return self.column_matvec(support, w[support])
        # the sum depends on the order in the last digits, so add up in the order of the blocks
        answers = dict(self._map(kernel_matvec, split=(w,)))
        return np.sum([answers[i] for i in sorted(answers)], axis=0)

    def rmatvec(self, r: Floats) -> Floats:
        """Compute X' r, (n,)."""
        return self._gathered(kernel_cross, r[:, None], lines=1)[0]

    def cross(self, V: Floats, part: slice) -> Floats:
        """Compute V' X[:, part] for V (m, k), (k, c); one pass if part covers all columns."""
        chosen = np.arange(self.shape[1])[part]
        if chosen.size == self.shape[1]:
            return self._gathered(kernel_cross, V, lines=V.shape[1])
        return self._lazy(chosen).cross(V, slice(None))

    def columns(self, idx: Any) -> Floats:
        """Return X[:, idx] as a new Fortran-ordered array (m, k), from the cache or the source."""
        idx = np.asarray(idx, dtype=np.int64)
        stored = idx if self._idx is None else self._idx[idx]
        return self.view.cut(idx).change(self.cache.columns(stored))

    def column_matvec(self, idx: Any, v: Floats) -> Floats:
        """Compute X[:, idx] v, (m,)."""
        return self.columns(idx) @ v

    def gram(self, idx: Any, weights: Floats | None = None) -> Floats:
        """Compute X_B' diag(weights) X_B for the columns B = idx, (k, k)."""
        return Dense(self.columns(idx)).full_gram(weights)

    def full_gram(self, weights: Floats | None = None) -> Floats:
        """Compute X' diag(weights) X, dense (n, n), if X has few columns."""
        n = self.shape[1]
        if n > GRAM_COLUMNS:
            raise ValueError(
                f"X'X of {n} columns in blocks is not formed, {GRAM_COLUMNS} are the most; method "
                "'refit' does without it."
            )
        return Dense(self.columns(np.arange(n))).full_gram(weights)

    def row_chunks(self, step: int, rows: Any = None) -> Iterator[Floats]:
        """Raise an error: X is stored by columns."""
        raise ValueError(
            "X is stored in blocks of columns and is not read by rows; `Moments.from_data` takes "
            "chunks of rows."
        )

    def rows(self, rows: Ints) -> Blocks:
        """Return a view of some rows, for predictions; each column is still read as a whole."""
        return Blocks(SomeRows(self.source, rows, self.columns))

    # views -----------------------------------------------------------------------------------

    def take(self, idx: Any) -> Design:
        """Return X[:, idx] as a design: in memory, or as a view if it is large."""
        idx = np.asarray(idx, dtype=np.int64)
        return Dense(self.columns(idx)) if self._is_small(idx.size) else self._lazy(idx)

    def gathered(self, idx: Any) -> Design:
        """Return X[:, idx], idx ascending, in memory for many products unless it is large."""
        return Dense(self.columns(idx)) if self._is_small(len(idx)) else self._lazy(np.array(idx))

    def scaled(self, scale: Floats) -> Blocks:
        """Return X diag(scale) as a view; exact for powers of two. The scale is positive."""
        other, view, known = copy(self), self.view, self._known
        own = scale if view.scale is None else view.scale * scale
        means, rests = (None if a is None else a * scale for a in (view.means, view.rests))
        other.view = View(own, means, rests, view.is_flat, view.is_far)
        if known is not None:
            other._known = known._replace(summary=known.summary.scaled(scale))
        return other

    def as_centred(self, weights: Floats | None = None) -> CentredBlocks:
        """Return X less its weighted means as a view; no pass if the first had these weights."""
        self.look(None, weights)
        return CentredBlocks(self)

    def recentred(self, weights: Floats, target: Floats | None = None) -> Blocks:
        """Return X itself after a pass that computes lengths for other weights, and X'y."""
        other = copy(self)
        other.look(target, weights)
        return other

    def parts(self) -> Sequence[slice]:
        """Return the columns of each block, or equal chunks of selected columns."""
        return super().parts() if self._idx is not None else self.source.parts

    def _is_small(self, n_columns: int) -> bool:
        return 8 * self.shape[0] * n_columns <= TAKEN_BYTES

    def _lazy(self, idx: Ints) -> Blocks:
        """Return a view of X[:, idx], read from the source when needed."""
        other = copy(self)
        other._idx = idx if self._idx is None else self._idx[idx]
        where = self.source.blocks_of(other._idx)
        other._places = [(int(i), np.flatnonzero(where == i)) for i in np.unique(where)]
        other.view, other._known = self.view.cut(idx), None
        return other


class CentredBlocks(Blocks):
    """Blocks less their column means, accurate relative to every spread; see `Centered`.

    Parameters
    ----------
    base : Blocks
        After a `look` with the weights of the means.
    """

    is_flat: Bools
    is_constant: Bools

    rounding: float = 2.0 * (FAR + 1.0)

    def __init__(self, base: Blocks) -> None:
        super().__init__(base.source, base)
        known = base._known
        assert known is not None
        summary = known.summary
        self.is_constant, self.is_flat = summary.is_constant, summary.is_flat
        is_far = summary.is_far & ~summary.is_flat
        self.view = View(base.view.scale, summary.means, summary.rests, self.is_flat, is_far)
        y = None if known.y is None else centre(known.y, known.weights)[0]
        self._known = Known(summary.of_centred(), y, known.weights)

    @property
    def means(self) -> Floats:
        """The means as float64, (n,); see `rests`."""
        assert self.view.means is not None
        return self.view.means

    @property
    def rests(self) -> Floats:
        """Remainders of the exact means, (n,), for columns far from zero."""
        assert self.view.rests is not None
        return self.view.rests

    def recentred(self, weights: Floats, target: Floats | None = None) -> CentredBlocks:
        """Return the same X centred by the means for other weights.

        Takes one pass, which also computes X'y.
        """
        base = Blocks(self.source, self)
        base.view = View(self.view.scale)
        base.look(target, weights)
        other = CentredBlocks(base)
        assert other._known is not None
        # already centred by these weights, up to rounding
        other._known = other._known._replace(y=target)
        return other

    def as_centred(self, weights: Floats | None = None) -> CentredBlocks:
        """Return self: the columns are centred already."""
        return self

    def shift_from(self, other: Any) -> Floats:
        """Return the difference of the means of two centrings of the same X, (n,)."""
        return (self.means - other.means) + (self.rests - other.rests)

    def take(self, idx: Any) -> Design:
        """Return X[:, idx] as a design that can be centred again."""
        idx = np.asarray(idx, dtype=np.int64)
        if not self._is_small(idx.size):
            return self._lazy(idx)
        stored = idx if self._idx is None else self._idx[idx]
        view = self.view.cut(idx)
        X = View(view.scale).change(self.cache.columns(stored))
        facts: Any = view.means, view.rests, self.is_constant[idx], view.is_flat, view.is_far
        return Centered.known(Dense(X), *facts)

    def _lazy(self, idx: Ints) -> CentredBlocks:
        other: Any = super()._lazy(idx)
        other.is_flat, other.is_constant = self.is_flat[idx], self.is_constant[idx]
        return other


def kernel_cross(block: Block, V: Floats) -> Floats:
    """Compute V' X, (k, c)."""
    return block.cross(V)


def kernel_sq_norms(block: Block, weights: Floats | None) -> Floats:
    """Compute Σ_i weights_i x_ij², (c,)."""
    return block.sq_norms(weights)


def kernel_matvec(block: Block, v: Floats) -> Floats:
    """Compute X v, (m,)."""
    return block.matvec(v)


def kernel_summary(block: Block, y: Floats | None, weights: Floats | None) -> ColumnSummary:
    """Return the summary of a block."""
    return block.summary(y, weights)


def first_gains(summary: ColumnSummary) -> Floats:
    """Score each column by how much it lowers the objective as the first one entered.

    One row with an intercept, one without; negative, so that lower is better.
    """
    pairs = (
        (summary.centred_products, summary.centred_squares), (summary.products, summary.squares),
    )  # fmt: skip
    return np.array([-(p**2) / np.where(q > 0.0, q, np.inf) for p, q in pairs])


def _same(a: Floats | None, b: Floats | None) -> bool:
    if a is None or b is None:
        return a is b
    return a is b or np.array_equal(a, b)
