"""Pursuits that exchange whole sets of columns: "cosamp", "ssp", "romp" and "grahtp"."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.baselines.common import (
    ROUNDING,
    BestSoFar,
    Patience,
    column_lengths,
    fit_support,
    iterate,
    largest,
    largest_and_kept,
    lipschitz_estimate,
)
from blockl0.dec.decomposition import starting_point
from blockl0.methods import method
from blockl0.problem.problem import Problem
from blockl0.result import Result
from blockl0.run import Run
from blockl0.validate import check_flag

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Pursuit(BestSoFar):
    """The best fit on a budget so far, with the operations that pursuits share.

    Correlations and coefficients are those of columns of length one, which the definitions of all
    three methods assume, or with ``normalize=False`` of the columns as they are.
    """

    def __init__(self, problem: Problem, w: Floats, normalize: bool, literal: bool) -> None:
        super().__init__(problem, w, literal)
        self.scale: Floats = column_lengths(problem) if normalize else np.ones(problem.n_features)

    def correlation(self, w: Floats) -> Floats:
        """Return |x_j'(y − Xw) − ridge·w_j|, (n,); one or two passes over X."""
        return np.abs(self.problem.gradient(w)) / self.scale

    def pruned(self, w: Floats) -> Ints:
        """Return the `budget` largest coefficients, kept columns among them."""
        problem = self.problem
        return largest_and_kept(np.abs(w) * self.scale, problem.sparsity.budget, problem.keep)

    def refit(self, support: Ints) -> Floats:
        """Return the fit on a support."""
        return fit_support(self.problem, support)

    def offer_on(self, support: Ints, fitted: Floats) -> bool:
        """Offer the fit on a support or, if `literal`, the part of a larger fit there."""
        kept = np.isin(np.arange(fitted.size), support)
        return self.offer(np.where(kept, fitted, 0.0) if self.literal else self.refit(support))


# -- compressive sampling matching pursuit ---------------------------------------------------------


class CoSaMP(Pursuit):
    """The running approximation, and the best fit on one of its supports."""

    def __init__(
        self, problem: Problem, init: Floats | None, normalize: bool, literal: bool
    ) -> None:
        zero = np.zeros(problem.n_features)
        super().__init__(problem, zero, normalize, literal)
        self.approximation = zero
        if init is not None:
            self.approximation = init
            self.offer(init)
        self.offer(self.refit(np.union1d(np.flatnonzero(self.approximation), problem.keep)))

    def advance(self) -> bool:
        """Join twice as many columns as the budget, fit, prune; return False if nothing changes."""
        problem, before = self.problem, self.approximation
        proxy = largest(self.correlation(before), 2 * problem.sparsity.budget)
        joined = np.union1d(np.union1d(np.flatnonzero(before), proxy), problem.keep)
        fitted = self.refit(joined)
        support = self.pruned(fitted)
        self.approximation: Floats = np.zeros_like(fitted)
        self.approximation[support] = fitted[support]
        self.offer_on(support, fitted)
        return not np.array_equal(self.approximation, before)


@method("cosamp", losses="quadratic", forms=("budget",))
def solve_cosamp(
    problem: Problem,
    run: Run,
    *,
    init: Floats | None = None,
    rng: np.random.Generator,
    normalize: bool = True,
    literal: bool = False,
    tol: float = 1e-5,
    window: int = 50,
    max_iter: int = 100,
) -> Result:
    """Repeat: join the 2s columns most correlated with the residual, fit, keep the s largest.

    The approximation goes on with the pruned coefficients as they are, and may get worse; what is
    recorded and returned is the best least squares fit on a support that it has visited. D. Needell
    and J. A. Tropp, "CoSaMP: iterative signal recovery from incomplete and inaccurate samples",
    Applied and Computational Harmonic Analysis 26 (2009). One pass over X and a fit on up to 3s
    columns each time.

    Parameters
    ----------
    problem : Problem
        A budget; squared loss.
    run : Run
    init : ndarray (n,), optional
        The first approximation; zero by default.
    rng : Generator
        Not used: the method is deterministic.
    normalize : bool
        Whether columns are compared as if they had length one.
    literal : bool
        Whether to return the last point as the method was published, without keeping the best one
        and without fitting it on its support. The objective may then rise.
    tol, window, max_iter : float, int, int
        As in `solve_pgm`, judged by the best objective so far.
    """
    patience = Patience(tol, window)
    literal = check_flag("literal", literal)
    method = CoSaMP(problem, init, check_flag("normalize", normalize), literal)
    return iterate(method, run, max_iter, patience)


# -- subspace pursuit ------------------------------------------------------------------------------


class SubspacePursuit(Pursuit):
    """The fit on a support of `budget` columns, exchanged as a whole while that helps."""

    def __init__(
        self, problem: Problem, init: Floats | None, normalize: bool, literal: bool
    ) -> None:
        super().__init__(problem, np.zeros(problem.n_features), normalize, literal)
        budget, keep = problem.sparsity.budget, problem.keep
        if init is None:
            first = largest_and_kept(self.correlation(self.w), budget, keep)
        else:
            first = np.union1d(np.flatnonzero(init), keep)
        self.offer(self.refit(first))

    def advance(self) -> bool:
        """Join as many columns as the budget, fit, prune, re-fit; return False if no better."""
        budget = self.problem.sparsity.budget
        joined = np.union1d(np.flatnonzero(self.w), largest(self.correlation(self.w), budget))
        return self.offer(self.refit(self.pruned(self.refit(joined))))


@method("ssp", losses="quadratic", forms=("budget",))
def solve_ssp(
    problem: Problem,
    run: Run,
    *,
    init: Floats | None = None,
    rng: np.random.Generator,
    normalize: bool = True,
    literal: bool = False,
    max_iter: int = 100,
) -> Result:
    """Repeat: join the s columns most correlated with the residual, fit, keep the s largest.

    Stops at the first exchange that does not lower the objective, which therefore always falls;
    taken literally, that exchange is made.
    W. Dai and O. Milenkovic, "Subspace pursuit for compressive sensing signal reconstruction", IEEE
    Transactions on Information Theory 55 (2009). One pass over X and fits on 2s columns each time.

    Parameters
    ----------
    problem : Problem
        A budget; squared loss.
    run : Run
    init : ndarray (n,), optional
        Its support is the first one; by default the s columns most correlated with y.
    rng : Generator
        Not used: the method is deterministic.
    normalize : bool
        Whether columns are compared as if they had length one.
    literal : bool
        Whether to return the last, worse point, as the published program does.
    max_iter : int
    """
    literal = check_flag("literal", literal)
    method = SubspacePursuit(problem, init, check_flag("normalize", normalize), literal)
    return iterate(method, run, max_iter)


# -- regularized orthogonal matching pursuit -------------------------------------------------------


def comparable_group(scores: Floats) -> Ints:
    """Return the group of largest Σscore² in which no score exceeds twice another.

    Such a group is a run of the scores in descending order that starts at some score and takes all
    that are at least half of it. O(k log k).
    """
    order = np.argsort(-scores, kind="stable")
    falling = scores[order]
    energy = np.concatenate([[0.0], np.cumsum(falling**2)])
    ends = np.searchsorted(-falling, -0.5 * falling, side="right")
    starts = np.arange(scores.size)
    best = int(np.argmax(energy[ends] - energy[starts]))
    return np.sort(order[best : ends[best]])


class RegularizedPursuit(Pursuit):
    """The fit on a set of up to 3s columns, and the best one on s of them."""

    def __init__(self, problem: Problem, normalize: bool, literal: bool) -> None:
        super().__init__(problem, np.zeros(problem.n_features), normalize, literal)
        self.joined: Ints = problem.keep
        self.fitted = self.refit(self.joined)
        self.offer(self.fitted)
        self.smallest: Any = ROUNDING * np.sqrt(2.0 * problem.smooth(np.zeros(problem.n_features)))

    def advance(self) -> bool:
        """Join a comparable group among the s best; return False from 2s columns on."""
        budget = self.problem.sparsity.budget
        scores = self.correlation(self.fitted)
        scores[self.joined] = 0.0
        scores[scores <= self.smallest] = 0.0
        candidates = largest(scores, budget)
        if candidates.size == 0:
            return False
        group = candidates[comparable_group(scores[candidates])]
        self.joined = np.union1d(self.joined, group)
        self.fitted: Floats = self.refit(self.joined)
        self.offer_on(self.pruned(self.fitted), self.fitted)
        return self.joined.size < 2 * budget


@method("romp", losses="quadratic", forms=("budget",), start=False)
def solve_romp(
    problem: Problem,
    run: Run,
    *,
    init: Floats | None = None,
    rng: np.random.Generator,
    normalize: bool = True,
    literal: bool = False,
) -> Result:
    """Repeat: add a comparable group of the s columns most correlated with the residual.

    D. Needell and R. Vershynin, "Signal recovery from incomplete and inaccurate measurements via
    regularized orthogonal matching pursuit", IEEE Journal of Selected Topics in Signal Processing 4
    (2010). The definition collects at least 2s columns; what is recorded and returned is the best
    least squares fit on the s largest coefficients of an iteration. One pass over X and a fit on up
    to 3s columns each time.

    Parameters
    ----------
    problem : Problem
        A budget; squared loss. Kept columns are in from the start.
    run : Run
    init : None
        The method starts at zero.
    rng : Generator
        Not used: the method is deterministic.
    normalize : bool
        Whether columns are compared as if they had length one.
    literal : bool
        Whether to return the last point as the method was published, without keeping the best one
        and without fitting the s coefficients that are kept. The objective may then rise.
    """
    literal = check_flag("literal", literal)
    return iterate(RegularizedPursuit(problem, check_flag("normalize", normalize), literal), run)


# -- gradient hard thresholding pursuit ------------------------------------------------------------


class GradientThresholdingPursuit(BestSoFar):
    """The fit on the s largest entries of a gradient step, while that helps."""

    def __init__(self, problem: Problem, start: Floats, lipschitz: float) -> None:
        super().__init__(problem, start)
        self.lipschitz = lipschitz

    def advance(self) -> bool:
        """Step along the gradient, keep the s largest entries, fit; return False if no better."""
        problem = self.problem
        step = np.abs(self.w - problem.gradient(self.w) / self.lipschitz)
        support = largest_and_kept(step, problem.sparsity.budget, problem.keep)
        return self.offer(fit_support(problem, support))


@method("grahtp", losses="quadratic", forms=("budget",))
def solve_grahtp(
    problem: Problem,
    run: Run,
    *,
    init: Floats | None = None,
    rng: np.random.Generator,
    max_iter: int = 1000,
) -> Result:
    """Repeat: fit the s largest entries of w − ∇f(w)/L.

    X.-T. Yuan, P. Li and T. Zhang, "Gradient hard thresholding pursuit", Journal of Machine
    Learning Research 18 (2018). Ends at the first support that is no better. Two passes over X and
    a fit on s columns each time.

    Parameters
    ----------
    problem : Problem
        A budget; squared loss.
    run : Run
    init : ndarray (n,), optional
        Feasible start; by default 1e-7·randn, projected.
    rng : Generator
    max_iter : int
    """
    start = starting_point(problem, init, rng)
    lipschitz = lipschitz_estimate(problem, rng)
    return iterate(GradientThresholdingPursuit(problem, start, lipschitz), run, max_iter)
