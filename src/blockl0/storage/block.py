"""Some columns of X over all rows: what they can be asked for where they lie.

Answers are float64 in NumPy, whatever the columns are stored as. Products accumulate in float64.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.storage.prices import Table, prices_at, sent_table
from blockl0.storage.summary import Summary, summarize

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

CACHE_BYTES = 1 << 20
"""Entries that become float64 at a time: what stays in cache is read and written there."""


class Block(ABC):
    """Columns of X over all rows, (m, c).

    A storage gives `shape` and `columns`. All else is made of float64 entries where the columns
    lie, some at a time: `seen`, in the words of `space`, to which `sent` and from which `fetched`
    carry arrays of NumPy. Here that is NumPy itself, and nothing is carried.
    """

    space: Any = np

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(m, c)."""

    @abstractmethod
    def columns(self, idx: Any) -> Floats:
        """X[:, idx] as a new Fortran-ordered array (m, k); idx may be a slice."""

    def stored(self, idx: Any) -> Floats:
        """The columns before anything was done to them, (m, k), as `columns` otherwise."""
        return self.columns(idx)

    # where the columns lie -------------------------------------------------------------------

    def sent(self, a: Any, dtype: Any = np.float64) -> Any:
        """An array of NumPy where the columns lie."""
        return a

    def fetched(self, a: Any) -> Any:
        """An array from there as one of NumPy."""
        return a

    def chosen(self, X: Any, idx: Any, axis: int) -> Any:
        """Some rows or columns of an array there, by their numbers, as a new one."""
        return X[idx] if axis == 0 else X[:, idx]

    def fresh(self, part: slice) -> Any:
        """X[:, part] there in float64, (m, k), as a new array."""
        return self.columns(part)

    def seen(self, part: slice) -> Any:
        """The same to read only; not copied where that is not needed."""
        return self.fresh(part)

    def product(self, V_t: Any, part: slice) -> Any:
        """V_t X[:, part] there for V_t (k, m) there, (k, c)."""
        U = np.empty((V_t.shape[0], part.stop - part.start))
        for some in cut(part, self.step):
            U[:, some.start - part.start : some.stop - part.start] = V_t @ self.seen(some)
        return U

    @property
    def step(self) -> int:
        """Columns that become float64 at a time."""
        return max(1, CACHE_BYTES // (8 * self.shape[0]))

    def parts(self) -> Iterator[slice]:
        """The columns that become float64 at a time."""
        return cut(slice(0, self.shape[1]), self.step)

    def wide_parts(self) -> Iterator[slice]:
        """The columns that are multiplied at a time: here all of them."""
        yield slice(0, self.shape[1])

    # answers ---------------------------------------------------------------------------------

    def cross(self, V: Floats) -> Floats:
        """V' X for V (m, k), (k, c)."""
        result, V_t = np.empty((V.shape[1], self.shape[1])), self.sent(V.T)
        for part in self.wide_parts():
            result[:, part] = self.fetched(self.product(V_t, part))
        return result

    def sq_norms(self, weights: Floats | None = None) -> Floats:
        """Σ_i weights_i x_ij², (c,)."""
        result = np.empty(self.shape[1])
        ones = self.sent(np.ones(self.shape[0]) if weights is None else weights)
        for part in self.parts():
            X = self.seen(part)
            result[part] = self.fetched(ones @ (X * X))
        return result

    def matvec(self, v: Floats) -> Floats:
        """X v for v (c,), (m,)."""
        result = np.zeros(self.shape[0])
        for part in self.parts():
            if v[part].any():
                result += self.fetched(self.seen(part) @ self.sent(v[part]))
        return result

    def summary(self, y: Floats | None, weights: Floats | None) -> Summary:
        """All that is known of columns before a search, from one read of them; O(mc)."""
        return summarize(self, y, weights)

    def prices(self, V: Floats, tables: tuple[Table, ...], sq: Floats) -> Floats:
        """Gains, swaps and pivots of the columns at some fits, (k, 3, c); see `prices_at`.

        V holds [X_S, residual], weighted, of each fit beside the other.
        """
        answer, V_t = np.empty((len(tables), 3, self.shape[1])), self.sent(V.T)
        there = [sent_table(table, self.sent) for table in tables]
        for part in self.wide_parts():
            U = self.product(V_t, part)
            answer[..., part] = self.fetched(prices_at(U, there, self.sent(sq[part]), self.space))
        return answer

    def through(self, view: View) -> Block:
        """These columns through a view that was cut for them."""
        return Seen(self, view)


def cut(part: slice, step: int) -> Iterator[slice]:
    """A slice in pieces of `step`, the last one shorter."""
    for start in range(part.start, part.stop, step):
        yield slice(start, min(start + step, part.stop))


class ArrayBlock(Block):
    """An array (m, c) of real numbers of any kind, best in Fortran order, never cast whole."""

    def __init__(self, X: NDArray[Any]) -> None:
        self.X = X

    @property
    def shape(self) -> tuple[int, int]:
        """(m, c)."""
        return self.X.shape

    def product(self, V_t: Floats, part: slice) -> Floats:
        """V_t X[:, part] for V_t (k, m), (k, c)."""
        if self.X.dtype == np.float64:
            return V_t @ self.X[:, part]
        return super().product(V_t, part)

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

    def change(self, X: Any, sent: Callable[[Any], Any] = lambda a: a) -> Any:
        """Stored columns (m, c) turned into those that are meant, in place, wherever they lie."""
        if self.scale is not None:
            X *= sent(self.scale)
        if self.means is not None:
            X -= sent(self.means)
            # one after the other: the sum of the two would be rounded to the digits of the mean
            if self.rests is not None and np.any(self.is_far):  # type: ignore[arg-type]
                X -= sent(self.rests)
            if np.any(self.is_flat):  # type: ignore[arg-type]
                X *= sent(~self.is_flat)  # type: ignore[operator]
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

    @property
    def space(self) -> Any:  # type: ignore[override]
        """That of the block."""
        return self.block.space

    @property
    def step(self) -> int:
        """That of the block."""
        return self.block.step

    def sent(self, a: Any, dtype: Any = np.float64) -> Any:
        """An array of NumPy where the columns lie."""
        return self.block.sent(a, dtype)

    def fetched(self, a: Any) -> Any:
        """An array from there as one of NumPy."""
        return self.block.fetched(a)

    def chosen(self, X: Any, idx: Any, axis: int) -> Any:
        """Some rows or columns of an array there, by their numbers, as a new one."""
        return self.block.chosen(X, idx, axis)

    def wide_parts(self) -> Iterator[slice]:
        """Those of the block."""
        return self.block.wide_parts()

    def fresh(self, part: slice) -> Any:
        """X[:, part] there in float64, (m, k), as a new array."""
        return self.view.cut(part).change(self.block.fresh(part), self.sent)

    def product(self, V_t: Any, part: slice) -> Any:
        """V_t X[:, part] there for V_t (k, m) there, (k, c).

        Means come off the products. Where some columns are far, all of a step are centred first.
        """
        U, view = self.block.product(V_t, part), self.view.cut(part)
        if view.scale is not None:
            U *= self.sent(view.scale)
        if view.means is None:
            return U
        U -= self.space.sum(V_t, axis=1)[:, None] * self.sent(view.means)[None, :]
        for some in cut(slice(0, part.stop - part.start), self.step):
            if np.any(view.is_far[some]):  # type: ignore[index]
                here = slice(part.start + some.start, part.start + some.stop)
                U[:, some] = V_t @ self.fresh(here)
        if np.any(view.is_flat):  # type: ignore[arg-type]
            U *= self.sent(~view.is_flat)[None, :]  # type: ignore[operator]
        return U

    def columns(self, idx: Any) -> Floats:
        """X[:, idx] as a new Fortran-ordered array (m, k); idx may be a slice."""
        return self.view.cut(idx).change(self.block.columns(idx))

    def stored(self, idx: Any) -> Floats:
        """The columns before anything was done to them, (m, k)."""
        return self.block.stored(idx)
