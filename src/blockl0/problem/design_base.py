"""What every storage of X can do: one small interface, so that no solver asks how X is stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.storage.block import Block
from blockl0.storage.side_by_side import SideBySide

Floats = NDArray[np.float64]

VANISHING = 1e-150
"""A length that comes of vanishing squares: those of numbers below 1e-154 have few digits."""
SHORT_CHUNK = 64
"""Columns of such a length that are read at a time."""


class Design(ABC):
    """The matrix X (m, n) through the operations the solvers need.

    A storage gives the abstract ones; the others have a meaning that fits any X, and are written
    anew where a storage knows better.
    """

    chunk: int
    """Columns that are best handled at a time in a pass over X."""

    blur: float = 1.0
    """Rounding of products with columns, in units of that of products with stored numbers."""

    most_factored: int = 0
    """Columns up to which a triangular factor of all rows costs no more than it saves."""

    total: float | None = None
    """The sum of the weights of other rows that these stand for; None where they are the data."""

    is_flat: NDArray[np.bool_] | None = None
    """Of centred columns those that are zero, (n,); None where nothing is centred."""

    is_constant: NDArray[np.bool_] | None = None
    """Of centred columns those that were one number other than zero, (n,); None as above."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(n_samples, n_features)."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes held by the stored entries."""

    @abstractmethod
    def matvec(self, w: Floats) -> Floats:
        """X w, (m,)."""

    @abstractmethod
    def rmatvec(self, r: Floats) -> Floats:
        """X' r, (n,)."""

    @abstractmethod
    def columns(self, idx: Any) -> Floats:
        """X[:, idx] as a new dense Fortran-ordered array (m, k)."""

    @abstractmethod
    def row_chunks(self, step: int, rows: Any = None) -> Iterator[Floats]:
        """The rows, or those of an index array, `step` at a time: new Fortran-ordered (k, n)."""

    @abstractmethod
    def column_matvec(self, idx: Any, v: Floats) -> Floats:
        """X[:, idx] v, (m,)."""

    @abstractmethod
    def take(self, idx: Any) -> Design:
        """X[:, idx] as a design of its own, stored as X is."""

    @abstractmethod
    def cross(self, V: Floats, part: slice) -> Floats:
        """V' X[:, part] for V (m, k), (k, c)."""

    @abstractmethod
    def gram(self, idx: Any, weights: Floats | None = None) -> Floats:
        """X_B' diag(weights) X_B for the columns B = idx, (k, k)."""

    @abstractmethod
    def full_gram(
        self, weights: Floats | None = None, pause: Callable[[], Any] | None = None
    ) -> Floats:
        """X' diag(weights) X, dense (n, n); `pause`, called now and then, may end it by raising."""

    @abstractmethod
    def sq_norms(self, weights: Floats | None = None) -> Floats:
        """Σ_i weights_i x_ij² for every column j, (n,)."""

    @abstractmethod
    def ranges(self) -> tuple[Floats, Floats]:
        """The least and the largest entry of every column, (n,) each; one pass over X."""

    @abstractmethod
    def scaled(self, scale: Floats) -> Design:
        """X diag(scale), stored as X is; a copy."""

    def parts(self) -> Sequence[slice]:
        """The columns, those together that are best handled at a time."""
        n = self.shape[1]
        return [slice(i, min(i + self.chunk, n)) for i in range(0, n, self.chunk)]

    def scan(
        self, kernel: Callable[..., Any], *shared: Any, split: tuple[Any, ...] = ()
    ) -> Iterator[tuple[Any, Any]]:
        """(part, kernel(block, *shared, *own)) over all columns, in any order; one pass over X.

        A part is a slice of the columns, or their numbers, and `own` are the same parts of the
        arrays in `split`, whose last axis is that of the columns. The kernel is a function of a
        module, which may run where the `Block` lies.
        """
        for part in self.parts():
            yield part, kernel(Part(self, part), *shared, *(a[..., part] for a in split))

    def scan_for(
        self, ranking: Callable[[Any], Floats], kernel: Callable[..., Any], *shared: Any,
        split: tuple[Any, ...] = (),
    ) -> Iterator[tuple[Any, Any]]:  # fmt: skip
        """A scan whose answers rank the columns, (r, c) for a block; the first are wanted next.

        For storages that had better take them along.
        """
        return self.scan(kernel, *shared, split=split)

    def look(self, y: Floats | None = None, weights: Floats | None = None) -> None:
        """Read X once for all that is asked of it before a search, where reading is what costs."""
        return

    def known_products(self, y: Floats, weights: Floats | None) -> Floats | None:
        """X'(weights ∘ y), (n,), where a look at X has told it."""
        return None

    pool_bytes: float = np.inf
    """What the columns of a pool may take, where there is a limit."""
    n_searches = 1
    """Searches that share the memory for pools."""

    @property
    def n_read(self) -> float | None:
        """How often X has been read, by bytes; None where it is in memory."""
        return None

    @property
    def desk(self) -> SideBySide:
        """Runs tasks whose passes over X are made together; of an X that is read only."""
        raise TypeError("X is in memory: there are no reads to share.")

    def gathered(self, idx: Any) -> Design:
        """X[:, idx], ascending, in memory for many products; all of an X in memory is X itself."""
        return self if len(idx) == self.shape[1] else self.take(idx)

    def as_centred(self, weights: Floats | None = None) -> Design | None:
        """X less its weighted means, where a storage has a way of its own; see `centred`."""
        return None

    def recentred(self, weights: Floats, target: Floats | None = None) -> Design:
        """X with means of other weights taken away; X itself where nothing is centred.

        A target, already centred, is one that products with the weights are asked for next.
        """
        return self

    def shift_from(self, other: Any) -> Floats:
        """The means that are taken away less those of another centring of the same X, (n,)."""
        return np.zeros(self.shape[1])

    def entry_moments(self, weights: Floats, means: Floats) -> tuple[Floats, Floats] | None:
        """Σ_i weights_i (x_ij − mean_j) and the same of squares, (n,), to the digits of the means.

        None where the stored entries offer no quicker way than reading all columns.
        """
        return None

    def is_moderate(self, most: float) -> bool:
        """Whether a look at the entries tells that all lengths but zeros are in [1/most, most].

        False where that takes the lengths themselves.
        """
        return False

    def lengths(self) -> Floats:
        """The lengths of the columns, or where their squares vanish, the largest entries; (n,)."""
        lengths = np.sqrt(self.sq_norms())
        short = np.flatnonzero((lengths < VANISHING) & ~self.is_zero())
        for start in range(0, short.size, SHORT_CHUNK):
            part = short[start : start + SHORT_CHUNK]
            lengths[part] = np.abs(self.columns(part)).max(axis=0)
        return lengths

    def is_zero(self) -> NDArray[np.bool_]:
        """Columns that are known to be zero without being read, (n,)."""
        return np.zeros(self.shape[1], dtype=np.bool_)


class Part(Block):
    """Some columns of a design, side by side, as a block."""

    def __init__(self, design: Design, part: slice) -> None:
        self.design, self.part = design, part

    @property
    def shape(self) -> tuple[int, int]:
        """(m, c)."""
        return self.design.shape[0], self.part.stop - self.part.start

    def product(self, V_t: Floats, part: slice) -> Floats:
        """V_t X[:, part] for V_t (k, m), (k, c), as the design makes it."""
        start = self.part.start
        return self.design.cross(V_t.T, slice(start + part.start, start + part.stop))

    def columns(self, idx: Any) -> Floats:
        """X[:, idx] as a new Fortran-ordered array (m, k); idx may be a slice."""
        return self.design.columns(np.arange(self.part.start, self.part.stop)[idx])
