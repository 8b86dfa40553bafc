"""The moving point of method "dec": w, its gradient, and the quadratic model of any block.

Around w the smooth part is bounded above (for the squared loss: described exactly) by
f(w) + g'δ + ½δ'Qδ with Q = X' diag(D) X + ridge·I, D the curvature bound of the loss times the
sample weights. A block needs only Q_BB and g_B. Two engines differ in where these come from: with
a Gram matrix at hand a move costs O(n) per changed coordinate; without one it costs a pass over X,
put off until the gradient is asked for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.problem.problem import SMALLEST, Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

GRAM_BYTES = 1 << 28
"""A Gram matrix larger than this is not formed."""
REFRESH_MOVES = 200
"""Moves between two recomputations of the gradient from the data, which bounds the drift."""
REFRESH_FALL = 1e-4
"""And at once when the loss fell to this share: what is left of it would be mostly rounding."""


class _Model(NamedTuple):
    """Q_BB and g_B of a block, at a version of the state."""

    version: int
    block: Ints
    Q: Floats
    gradient: Floats


class State(ABC):
    """w with everything the decomposition reads; changed only by `move`.

    Attributes
    ----------
    w : ndarray (n,)
    objective : float
        smooth(w) + price·nnz(w), kept up to date.
    n_nonzero : int
    curvature : ndarray (n,)
        The diagonal of Q.
    iteration : int
        Blocks tried so far.
    version : int
        Moves made so far.
    memo : dict
        Where a working set may keep what it derived from w; emptied by every move.
    """

    n_nonzero: int
    smooth: float
    version: int

    def __init__(self, problem: Problem, w: Floats) -> None:
        self.problem = problem
        self.w = w
        self.weights: Floats | None = problem.hessian_bound_weights()
        self.curvature: Floats = problem.design.sq_norms(self.weights) + problem.ridge
        # a column of zeros has neither slope nor curvature: whatever stands here, it gains nothing;
        # with a ridge below the normal range the inverse would overflow
        is_usable = self.curvature >= SMALLEST
        self._half_inverse = 0.5 / np.where(is_usable, self.curvature, np.inf)
        self.eta: Floats = problem.design.matvec(w)
        self.n_nonzero = int(np.count_nonzero(w))
        self.smooth = problem.smooth(w, self.eta)
        self._smooth_refreshed = self.smooth
        self.iteration = 0
        self.version = 0
        self.memo: dict[str, Any] = {}
        # the last model, of a block at a version: a move into that block needs it again
        self._model = _Model(-1, np.empty(0, np.int64), np.empty(0), np.empty(0))

    @property
    def objective(self) -> float:
        """Return smooth(w) + price·nnz(w), with kept columns at zero counted."""
        n_idle = int(np.count_nonzero(self.w[self.problem.keep] == 0.0))
        return self.smooth + self.problem.sparsity.cost(self.n_nonzero + n_idle)

    @property
    @abstractmethod
    def gradient(self) -> Floats:
        """Return ∇smooth(w), (n,)."""

    @property
    def descent(self) -> Floats:
        """Return g_j²/2Q_jj, (n,): the decrease of the model by each coordinate alone."""
        return self.gradient * (self._half_inverse * self.gradient)

    @abstractmethod
    def curvature_block(self, block: Ints) -> Floats:
        """Return Q_BB, (k, k), a fresh array."""

    @abstractmethod
    def follow(self, block: Ints, step: Floats) -> None:
        """Update the gradient for a step on the block."""

    def block_model(self, block: Ints, theta: float) -> tuple[Floats, Floats]:
        """Return H = Q_BB + θI and c = g_B − H w_B: the block's ½z'Hz + c'z up to a constant."""
        Q, gradient = self.curvature_block(block), self.block_gradient(block)
        self._model = _Model(self.version, block, Q, gradient)
        H = Q.copy()
        H.flat[:: block.size + 1] += theta
        return H, gradient - H @ self.w[block]

    def block_gradient(self, block: Ints) -> Floats:
        """Return g_B, (k,)."""
        return self.gradient[block]

    def move(self, block: Ints, z: Floats) -> None:
        """Set w_B = z and bring objective, nonzeros and gradient along."""
        model = self._model
        if model.version != self.version or not np.array_equal(model.block, block):
            self.block_model(block, 0.0)
        _, _, Q, gradient = self._model
        before = self.w[block]
        step = z - before
        self.n_nonzero += int(np.count_nonzero(z) - np.count_nonzero(before))
        self.version += 1
        self.memo.clear()
        if self.problem.is_quadratic:
            self.smooth += float(step @ (gradient + 0.5 * (Q @ step)))
        self.w[block] = z
        changed = step.nonzero()[0]
        fell = self.smooth < REFRESH_FALL * self._smooth_refreshed
        if fell or self.version % REFRESH_MOVES == 0:
            self.refresh()
            self._smooth_refreshed = self.smooth
        else:
            self.follow(block[changed], step[changed])

    @abstractmethod
    def refresh(self) -> None:
        """Recompute everything that `move` updates from w and the data."""


class GramState(State):
    """Holds G = Q: a move adds |changed| columns of G to the gradient, O(n·|changed|).

    Only for the squared loss, whose gradient is linear in w.
    """

    def __init__(self, problem: Problem, w: Floats) -> None:
        super().__init__(problem, w)
        self.G = np.ascontiguousarray(problem.design.full_gram(self.weights))
        self.G.flat[:: w.size + 1] += problem.ridge
        self._gradient = problem.gradient(w, self.eta)

    @property
    def gradient(self) -> Floats:
        """Return ∇smooth(w), (n,)."""
        return self._gradient

    def curvature_block(self, block: Ints) -> Floats:
        """Return Q_BB, (k, k), a fresh array."""
        return self.G[block[:, None], block]

    def follow(self, block: Ints, step: Floats) -> None:
        """Add G[:, B] step to the gradient; G is symmetric, so its rows serve."""
        self._gradient += step @ self.G[block]

    def refresh(self) -> None:
        """Recompute everything that `move` updates from w and the data."""
        self.eta: Floats = self.problem.design.matvec(self.w)
        self.smooth: float = self.problem.smooth(self.w, self.eta)
        self._gradient = self.problem.gradient(self.w, self.eta)


class StreamState(State):
    """Holds eta = Xw: a move costs O(m·|changed|), and the gradient one pass over X when asked for.

    Serves every loss and every size; nothing of size n² is formed.
    """

    def __init__(self, problem: Problem, w: Floats) -> None:
        super().__init__(problem, w)
        self._gradient = problem.gradient(w, self.eta)
        self._gradient_version = 0

    @property
    def gradient(self) -> Floats:
        """Return ∇smooth(w), (n,)."""
        if self._gradient_version != self.version:
            self._gradient = self.problem.gradient(self.w, self.eta)
            self._gradient_version = self.version
        return self._gradient

    def block_gradient(self, block: Ints) -> Floats:
        """Return g_B, (k,), from X_B alone while the full gradient is out of date."""
        if self._gradient_version == self.version:
            return self._gradient[block]
        problem = self.problem
        slope = problem.loss.gradient(self.eta, problem.y)
        if problem.sample_weight is not None:
            slope = problem.sample_weight * slope
        return problem.design.columns(block).T @ slope + problem.ridge * self.w[block]

    def curvature_block(self, block: Ints) -> Floats:
        """Return Q_BB, (k, k), a fresh array."""
        Q = np.ascontiguousarray(self.problem.design.gram(block, self.weights))
        Q.flat[:: block.size + 1] += self.problem.ridge
        return Q

    def follow(self, block: Ints, step: Floats) -> None:
        """Add X_B step to eta; evaluate the loss anew unless its change is known exactly."""
        self.eta += self.problem.design.column_matvec(block, step)
        if not self.problem.is_quadratic:
            self.smooth = self.problem.smooth(self.w, self.eta)

    def refresh(self) -> None:
        """Recompute everything that `move` updates from w and the data."""
        self.eta: Floats = self.problem.design.matvec(self.w)
        self.smooth: float = self.problem.smooth(self.w, self.eta)


def start_state(problem: Problem, w: Floats, max_iter: int) -> State:
    """Choose the engine: a Gram matrix where the gradient is linear and the matrix pays.

    It pays when forming it, n passes' worth of arithmetic, is less than a pass for every iteration.
    """
    n = problem.n_features
    if problem.is_quadratic and 8 * n * n <= GRAM_BYTES and n <= 4 * max_iter:
        return GramState(problem, w)
    return StreamState(problem, w)
