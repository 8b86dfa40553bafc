"""Method "dec": Algorithm 1 of the paper, decomposition with a global search in every block."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.block_search import improve_block, is_proven, new_tree
from blockl0.dec.state import State, start_state
from blockl0.dec.working_set import as_working_set
from blockl0.methods import method
from blockl0.problem.problem import Problem
from blockl0.result import Result, Status
from blockl0.run import Run
from blockl0.validate import (
    check_choice,
    check_flag,
    check_integer,
    check_nonnegative,
)

Floats = NDArray[np.float64]

START_SCALE = 1e-7
"""The paper's start: this times standard normal numbers, projected to feasible."""
AS_PRINTED: dict[str, Any] = {"theta_scale": False, "greedy": "paper", "stopping": "paper"}
"""The options that make "dec" the printed algorithm to the letter; the rest is so by default."""
AS_PUBLISHED: dict[str, Any] = {
    "theta": 1e-5, "theta_scale": False, "greedy": "split", "window": 200, "max_iter": 5000,
    "stopping": "support",
}  # fmt: skip
"""The options of the program for a budget that the paper's authors published
(github.com/yuangzh/SparseBlockK, commit 91e5968)."""


@method("dec", losses="bounded", intercept=False)
def solve_dec(
    problem: Problem,
    run: Run,
    *,
    init: Floats | None = None,
    rng: np.random.Generator,
    working_set: Any = "R10G2",
    theta: float = 1e-3,
    tol: float = 1e-5,
    window: int = 50,
    max_iter: int = 1000,
    greedy: str = "split",
    theta_scale: bool = True,
    stopping: str = "window",
) -> Result:
    """Repeat: choose a block, search it globally with a proximal term, move.

    With ``**AS_PRINTED`` the paper to the letter; the defaults differ from it in those options.

    Parameters
    ----------
    problem : Problem
        For a loss other than the squared one the block model is the quadratic majorizer, and the
        limit a Newton block-k stationary point.
    run : Run
        Clock, callback and history.
    init : ndarray (n,), optional
        Feasible start; by default 1e-7·randn, projected.
    rng : Generator
    working_set : str or object
        "RiGj" (i random and j greedy coordinates), "cyclic", "cyclicK", or an object with
        ``select(state, rng)``.
    theta : float
        Weight of the proximal term ½θ‖z − w‖².
    tol, window : float, int
        Stop when the mean relative decrease over `window` iterations is at most `tol`.
    max_iter : int
    greedy : {"split", "ranked", "paper"}
        How greedy scores of zeros and of the support are combined; see `RandomGreedy`.
    theta_scale : bool
        Where the largest curvature of a single coordinate, max_j Q_jj, is below 1, multiply θ by
        it: in such units the proximal term would otherwise outweigh the loss. False is the paper.
    stopping : {"window", "paper", "support"}
        How the decrease is judged; see `Stopping`, `PrintedStopping` and `SupportStopping`.
    """
    # blocks are priced by the gradient at Xw, without an intercept
    theta = check_nonnegative("theta", theta)
    tol = check_nonnegative("tol", tol)
    window = check_integer("window", window, low=1)
    max_iter = check_integer("max_iter", max_iter, low=1)
    working_set = as_working_set(working_set, greedy)
    theta_scale = check_flag("theta_scale", theta_scale)
    check_choice("stopping", stopping, tuple(STOPPING))
    if stopping == "window" and hasattr(working_set, "cycle_length"):
        window = max(window, working_set.cycle_length(problem.n_features))

    state = start_state(problem, starting_point(problem, init, rng), max_iter)
    if theta_scale:
        theta *= min(1.0, float(state.curvature.max()))
    block_solver = BlockSolver(problem, theta, run)
    judge = STOPPING[stopping](tol, window)
    stop: Status | None = None
    try:
        stop = run.record(state)
        while stop is None and state.iteration < max_iter:
            before = judge.value(state)
            block = working_set.select(state, rng)  # (S1) find a working set B
            n_nonzero = int(np.count_nonzero(state.w[block]))
            z = block_solver.search(state, block)  # (S2) solve the subproblem globally
            if z is not None:
                state.move(block, z)
            state.iteration += 1  # (S3)

            stop = run.record(state)
            if judge.is_converged(before, state, n_nonzero):
                stop = Status.CONVERGED
    except KeyboardInterrupt as end:
        stop = run.status_of(end)
    return run.result(state.w, stop or Status.MAX_ITER, state.iteration)


class Stopping:
    """The mean of the last `window` relative decreases of F is at most `tol`.

    Fewer iterations than a window are never judged, and a cyclic working set is judged by the
    round: one block in which nothing was found says little about the others.
    """

    def __init__(self, tol: float, window: int) -> None:
        self.tol = tol
        self.window = window
        self.decreases: deque[float] = deque(maxlen=window)

    def value(self, state: State) -> float:
        """Return what is to decrease."""
        return state.objective

    def is_converged(self, before: float, state: State, n_nonzero: int) -> bool:
        """Record an iteration that began at `before`, on a block with nonzeros; True to stop."""
        self._note(before, state)
        return len(self.decreases) == self.window and self._is_flat()

    def _note(self, before: float, state: State) -> None:
        self.decreases.append((before - self.value(state)) / abs(before) if before else 0.0)

    def _is_flat(self) -> bool:
        return sum(self.decreases) <= self.tol * len(self.decreases)


class PrintedStopping(Stopping):
    """The paper's rule to the letter, with r_t = (f(x^t) − f(x^{t+1})) / f(x^t), t from 0.

    Stop at iteration t if mean([r_{t−min(t,ϱ)+1}, …, r_t]) ≤ ε: of f without h, from t = 1 on with
    as many as there are, and r_0 is never among them. Where f(x^t) is 0 we take r_t for 0.
    """

    def value(self, state: State) -> float:
        """Return what is to decrease."""
        return state.smooth

    def is_converged(self, before: float, state: State, n_nonzero: int) -> bool:
        """Record an iteration that began at `before`, on a block with nonzeros; True to stop."""
        if state.iteration == 1:
            return False
        self._note(before, state)
        return self._is_flat()


class SupportStopping(Stopping):
    """`Stopping` without the blocks that hold no nonzero.

    Under a full budget nothing can change in such a block. The published program skips it: the
    block is an iteration, but says nothing of convergence.
    """

    def is_converged(self, before: float, state: State, n_nonzero: int) -> bool:
        """Record an iteration that began at `before`, on a block with nonzeros; True to stop."""
        return n_nonzero > 0 and super().is_converged(before, state, n_nonzero)


STOPPING: Any = {"window": Stopping, "paper": PrintedStopping, "support": SupportStopping}


class BlockSolver:
    """(S2): min over z of f + h + ½θ‖z − w_B‖² with everything outside the block fixed."""

    def __init__(self, problem: Problem, theta: float, run: Run) -> None:
        self.sparsity: Any = problem.sparsity
        self.theta = theta
        self.run = run
        self.is_kept: NDArray[np.bool_] | None = None
        if problem.keep.size:
            self.is_kept = np.zeros(problem.n_features, dtype=np.bool_)
            self.is_kept[problem.keep] = True
        self.trees: dict[int, Any] = {}

    def search(self, state: State, block: NDArray[np.int64]) -> Floats | None:
        """Return the block's global minimizer, or None when w_B is one already."""
        H, c = state.block_model(block, self.theta)
        current = state.w[block]
        k, used = block.size, int(np.count_nonzero(current))
        budget = min(k, self.sparsity.budget - state.n_nonzero + used)
        tree = self.trees.get(k)
        if tree is None:
            tree = self.trees[k] = new_tree(k, k + 1)
        kept = None if self.is_kept is None else self.is_kept[block]
        z = improve_block(
            tree, H, c, self.sparsity.price, budget, current, kept, seconds=self.run.seconds_left
        )
        if not is_proven(tree):
            self.run.warn_once(f"a block of {k} was left unproven; choose smaller blocks")
        return z


def starting_point(problem: Problem, init: Floats | None, rng: np.random.Generator) -> Floats:
    """Return a feasible copy of `init`, or the paper's random start, with kept columns nonzero."""
    if init is not None:
        # a kept column that the start lacks comes in with a negligible coefficient
        return np.where(
            (init == 0.0) & np.isin(np.arange(init.size), problem.keep), START_SCALE, init
        )
    w = START_SCALE * rng.standard_normal(problem.n_features)
    if problem.keep.size == 0:
        return problem.sparsity.project(w)
    # lift the kept columns over the others, so that the projection leaves them in
    lifted = w.copy()
    lifted[problem.keep] += np.where(w[problem.keep] < 0.0, -1.0, 1.0)
    return np.where(problem.sparsity.project(lifted) != 0.0, w, 0.0)
