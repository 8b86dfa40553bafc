"""Time and work limits of an exact search, and matrix operations that respect them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from blockl0.blas import cubic
from blockl0.run import Clock

Floats = NDArray[np.float64]
_blas: Any = blas
_lapack: Any = lapack

BLOCK, WHOLE, MOST_WHOLE = 512, 1024, 4096
"""Columns factorized between checks of the clock; up to which all are at once; and the same if
there is time enough.
"""
SLOW = 1e-9
"""Seconds per q³ in which a factorization ends on any machine."""


UNIT = 1e9
"""Multiplications that count as one unit: about what a core does in a second."""

DENSE = 0.2
"""Work of a multiplication in dense matrix operations, where a core does more."""


class LateError(Exception):
    """Raised if time or work is used up before something was done."""


class Watch:
    """Says when a search must end: its time or its work is used up.

    Work is counted, not timed: approximate multiplications of passes, factorizations and nodes. A
    search limited by work alone ends at the same node on any machine, however busy.

    Parameters
    ----------
    clock : Clock, optional
        Without one, time is unlimited.
    work_limit : float
        In units of 1e9 multiplications.

    Attributes
    ----------
    work : float
        Multiplications so far.
    """

    def __init__(self, clock: Clock | None = None, work_limit: float = np.inf) -> None:
        self._clock, self._most, self.work = clock, UNIT * work_limit, 0.0

    @property
    def seconds_left(self) -> float:
        """Seconds to the limit."""
        return np.inf if self._clock is None else self._clock.seconds_left

    @property
    def work_left(self) -> float:
        """Multiplications to the limit."""
        return self._most - self.work

    @property
    def is_spent(self) -> bool:
        """Whether the work is used up."""
        return self.work >= self._most

    def spend(self, multiplications: float) -> None:
        """Count work, before or after it is done."""
        self.work += multiplications

    def __call__(self) -> bool:
        """Check if the search must end."""
        return self.is_spent or self.seconds_left <= 0.0

    def check(self) -> None:
        """Raise LateError if the search must end."""
        if self():
            raise LateError

    def step(self, q: int) -> int:
        """Choose how many of q columns to factorize between checks: all if there is time."""
        is_whole = q <= MOST_WHOLE and self.seconds_left > SLOW * float(q) ** 3
        return max(q, 1) if q <= WHOLE or is_whole else BLOCK


NEVER = Watch()
"""For operations that must not be interrupted."""


@cubic(1 / 6)
def cholesky(A: Floats, watch: Watch = NEVER) -> Floats | None:
    """Compute L of A = LL' in the lower triangle; None if A is not definite.

    The columns of a block are reduced by those before it, then factorized. A (q, q), by columns, is
    overwritten; O(q³). Every entry of L comes from one sum of at most q products and a division, in
    any order, so that the rounding bound of an unblocked factorization holds. The upper triangle is
    undefined.

    Raises
    ------
    LateError
        If the search must end between two blocks.
    """
    q, step = A.shape[0], watch.step(A.shape[0])
    watch.spend(DENSE * q**3 / 6.0)
    for start in range(0, q, step):
        watch.check()
        stop = min(start + step, q)
        if start:
            A[start:, start:stop] -= (A[start:stop, :start] @ A[start:, :start].T).T
        L, info = _lapack.dpotrf(A[start:stop, start:stop], lower=1, clean=0)
        if info != 0:
            return None
        A[start:stop, start:stop] = L
        if stop < q:
            below = A[stop:, start:stop]
            A[stop:, start:stop] = _blas.dtrsm(1.0, L, below, side=1, lower=1, trans_a=1)
    return A


@cubic(1 / 3)
def inverse_diagonal(L: Floats, watch: Watch = NEVER) -> Floats:
    """Compute diag(inv(LL')) from the lower triangle of L, by blocks of inv(L); O(q³).

    Raises
    ------
    LateError
        If time is up between two blocks.
    """
    q = L.shape[0]
    watch.spend(DENSE * q**3 / 3.0)
    if q <= WHOLE:
        watch.check()
        inverse = np.tril(_lapack.dtrtri(L, lower=1, overwrite_c=0)[0])
        return np.einsum("ij,ij->j", inverse, inverse)
    # also faster than inverting all of L
    found = np.empty(q)
    for start in range(0, q, BLOCK):
        watch.check()
        stop = min(start + BLOCK, q)
        unit = np.zeros((q - start, stop - start), order="F")
        np.fill_diagonal(unit, 1.0)
        part = _lapack.dtrtrs(L[start:, start:], unit, lower=1, overwrite_b=1)[0]
        found[start:stop] = np.einsum("ij,ij->j", part, part)
    return found
