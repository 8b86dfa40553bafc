"""What every storage of X can do: one small interface, so that no solver asks how X is stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

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

    def recentred(self, weights: Floats) -> Design:
        """X with means of other weights taken away; X itself where nothing is centred."""
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
