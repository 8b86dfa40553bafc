"""Certificates: the place of a point in the paper's hierarchy of stationarity."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.blas import one_blas_thread
from blockl0.certify import stationarity
from blockl0.certify.levels import SURE, TOL, Better, PointUnderTest
from blockl0.certify.stationarity import QuadraticPoint
from blockl0.certify.words import of_certificate
from blockl0.errors import OutOfTime
from blockl0.problem.factors import reduced
from blockl0.problem.near_dependence import left_out
from blockl0.problem.problem import Problem, problem_of
from blockl0.result import Status
from blockl0.run import Timer, timed_by
from blockl0.units import COLUMNS
from blockl0.validate import (
    check_choice,
    check_coefficients,
    check_integer,
    check_nonnegative,
    check_random_state,
    check_time_limit,
    check_within,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Certificate:
    """Result of `certify`; ``print`` it for a sentence.

    Attributes
    ----------
    holds : bool
        Whether there is no improvement beyond the tolerance (if sampled: none was found).
    level : "basic", "L" or int
    outside : "refit", "fixed", or None for the levels that have no blocks
    complete : bool
        Whether every block was examined or excluded by a bound. False: blocks were sampled.
    confidence : float
        1 for a complete or refuted certificate. If sampled: with 95 % confidence at least this
        share of all blocks cannot improve the point, that is 0.05^(1/T) after T blocks.
    block : tuple of int or None
        At most `level` sorted columns, a change in which improves the point; group numbers, in
        order of first appearance, if there are groups.
    better_coef, better_objective : ndarray (n,) and float, or None
        A feasible point with a lower objective, to restart from: ``solve(..., init=better_coef)``.
    n_blocks : int
        Blocks covered: C(n, level) if complete, else the number drawn.
    objective : float
        The objective at the point itself.
    status : Status
        TIME_LIMIT where the time was up first: `n_blocks` is then the number of samples drawn
        before, or 0, with a confidence of 0, where all blocks were to be examined. Else CONVERGED.
    ridge : float
        Of the problem; what is proven is proven of the objective with this penalty.
    near_dependent : tuple of int, or None
        As in `Result`, where the point is the global optimum: columns whose supports are left out.
        None if there was no time to look for them.
    """

    holds: bool
    level: str | int
    outside: str | None
    complete: bool
    confidence: float
    block: tuple[int, ...] | None
    better_coef: Floats | None
    better_objective: float | None
    n_blocks: int
    objective: float
    status: Status = Status.CONVERGED
    ridge: float = 0.0
    near_dependent: tuple[int, ...] | None = ()

    def __str__(self) -> str:
        return of_certificate(self)


@one_blas_thread()
def certify(
    X: Any,
    y: Any,
    coef: Any,
    *,
    n_nonzero_coefs: Any = None,
    alpha: Any = None,
    ridge: Any = 0.0,
    loss: Any = "squared",
    level: int | str = 2,
    outside: str = "refit",
    n_samples: int | None = None,
    random_state: Any = None,
    sample_weight: Any = None,
    keep: Any = None,
    feature_groups: Any = None,
    bounds: Any = None,
    positive: Any = None,
    costs: Any = None,
    tol: float = TOL,
    time_limit: float | None = None,
) -> Certificate:
    """Certify how strong a stationary point `coef` is, or return a better point.

    The levels get stronger: "basic" (the best point on its own support), "L" (a fixed point of the
    proximal gradient step of length 1/L, L the largest eigenvalue of the Hessian), and k = 1, 2, …:
    no change of k coordinates lowers the objective. Level n is global optimality, of the loss
    itself for every loss, by the search of ``method="exact"``; see there what it needs.

    Parameters
    ----------
    X, y, n_nonzero_coefs, alpha, ridge, loss, sample_weight, keep
        The problem, as in `solve`. For a loss other than "squared" the statement at a level below n
        is about its quadratic majorizer at `coef` (the paper's Newton block-k stationary points).
        If there is none, as for "poisson", "gamma", "tweedie" and "softmax", it is about the loss
        itself: levels "basic" and 1, and level 2 if there is no price and the budget is used up;
        the outside is re-fitted.
    feature_groups, bounds, positive, costs
        As in `solve`. Levels then count groups, if there are any, and the statement is about the
        loss itself within the bounds: levels "basic", 1, 2 as above, and the number of groups.
    coef : array-like (n,), or (n, C) for C classes or responses
        The point; at most `n_nonzero_coefs` nonzeros.
    level : "basic", "L" or int, default 2
    outside : "refit" or "fixed"
        Treatment of the support outside the block for every candidate: re-fitted, the stronger
        statement, or kept fixed, the paper's definition.
    n_samples : int, optional
        Examine this many blocks drawn uniformly instead of all.
    random_state : None, int or Generator
    tol : float, default 1e-8
        Only a decrease above ``tol * F(coef) + 1e-13 * F(0)`` counts as an improvement.
    time_limit : float, optional
        Seconds, after which the certificate is incomplete, with status TIME_LIMIT.

    Returns
    -------
    Certificate

    Raises
    ------
    OutOfReachError
        When a complete answer would take too long (about 30 s for level n), or for level n when no
        bound exists; then give `n_samples`, or a lower level.
    ValueError
        For bad input.

    Notes
    -----
    With m rows, n columns and s nonzeros, k = 2 costs O(m n s) when the budget is used up and
    O(m n²) otherwise; each further k multiplies the work not excluded by restricted curvature by n.

    Examples
    --------
    >>> import numpy as np
    >>> from blockl0 import certify
    >>> answer = certify(np.eye(3), [3.0, 2.0, 1.0], [0.0, 2.0, 0.0], n_nonzero_coefs=1)
    >>> answer.holds, answer.block, answer.better_coef, answer.better_objective
    (False, (0, 1), array([3., 0., 0.]), 2.5)
    """
    problem = problem_of(
        X,
        y,
        n_nonzero_coefs=n_nonzero_coefs,
        alpha=alpha,
        ridge=ridge,
        loss=loss,
        sample_weight=sample_weight,
        keep=keep,
        feature_groups=feature_groups,
        bounds=bounds,
        positive=positive,
        costs=costs,
    )
    return certify_problem(
        problem,
        coef,
        level=level,
        outside=outside,
        n_samples=n_samples,
        random_state=random_state,
        tol=tol,
        time_limit=time_limit,
    )


def certify_problem(
    problem: Problem,
    coef: Any,
    *,
    level: int | str = 2,
    outside: str = "refit",
    n_samples: int | None = None,
    random_state: Any = None,
    tol: float = TOL,
    time_limit: float | None = None,
) -> Certificate:
    """Certify a point of a problem that is already built; parameters as in `certify`."""
    check_choice("outside", outside, ("refit", "fixed"))
    tol, rng = check_nonnegative("tol", tol), check_random_state(random_state)
    clock, w = Timer(check_time_limit(time_limit)), _check_coef(coef, problem)
    try:
        with timed_by(clock):
            return _certify(problem, w, level, outside, n_samples, rng, tol)
    except OutOfTime:
        is_block = not isinstance(level, str)
        return Certificate(
            holds=True, level=level, outside=outside if is_block else None, complete=False,
            confidence=0.0, block=None, better_coef=None, better_objective=None, n_blocks=0,
            objective=float(problem.objective(w)), status=Status.TIME_LIMIT,
            ridge=problem.ridge,
        )  # fmt: skip


def _certify(
    problem: Problem,
    w: Floats,
    level: int | str,
    outside: str,
    n_samples: int | None,
    rng: np.random.Generator,
    tol: float,
) -> Certificate:
    """Answer `certify_problem`.

    Raises
    ------
    OutOfTime
        If the time is up before anything is known.
    """
    if stationarity.is_about_loss(problem):
        # tall data are replaced by a factor for several responses and groups, too
        itself = PointUnderTest(reduced(problem), w, tol)
        better = stationarity.improve_on_loss(itself, level, outside, n_samples)
        is_block = not isinstance(level, str)
        found = itself.on(problem, better)
        return _certificate(*found, level, outside if is_block else None, None)
    # on tall data the factor is tested, and its answer confirmed on all rows
    point = QuadraticPoint(reduced(problem), w, tol)
    if isinstance(level, str):
        check_choice("level", level, ("basic", "L"))
        if n_samples is not None:
            raise ValueError(
                f"`n_samples` needs an integer level, got level={level!r}; leave it out."
            )
        test = stationarity.improve_basic if level == "basic" else stationarity.improve_l
        return _certificate(*point.on(problem, test(point)), level, None, None)
    level = check_integer("level", level, low=1)
    refit = outside == "refit"
    if n_samples is None:
        better = stationarity.improve_block(point, level, refit)
        return _certificate(*point.on(problem, better), level, outside, None)
    n_samples = check_integer("n_samples", n_samples, low=1)
    better, n_drawn = stationarity.improve_sampled(point, level, refit, n_samples, rng)
    found = _certificate(*point.on(problem, better), level, outside, n_drawn)
    is_late = better is None and n_drawn < n_samples
    return replace(found, status=Status.TIME_LIMIT) if is_late else found


def _certificate(
    point: PointUnderTest,
    better: Better | None,
    level: str | int,
    outside: str | None,
    n_samples: int | None,
) -> Certificate:
    """Record the answer of a test."""
    problem = point.problem
    n, w = problem.n_units, point.w
    is_global = better is None and isinstance(level, int) and level >= n and n_samples is None
    n_blocks = comb(n, min(level, n)) if isinstance(level, int) else 0
    return Certificate(
        holds=better is None,
        level=level,
        outside=outside,
        complete=n_samples is None,
        confidence=1.0 if n_samples is None or better else (1.0 - SURE) ** (1.0 / n_samples),
        block=None if better is None else better.block,
        better_coef=None if better is None else point.problem.to_given(better.coef),
        better_objective=None if better is None else better.objective,
        n_blocks=n_blocks if n_samples is None else n_samples,
        objective=point.objective,
        ridge=problem.ridge,
        near_dependent=left_out(problem, w, point.objective) if is_global else (),
    )


def _check_coef(coef: Any, problem: Problem) -> Floats:
    """Return a fresh float64 copy of the point, scaled like the columns of the design."""
    n, budget = problem.n_features, problem.sparsity.budget
    w = check_coefficients("coef", coef, n, problem.scale, problem.n_outputs)
    nnz = problem.occupied(w).size
    if nnz > budget:
        what = "nonzeros (columns" if problem.units is COLUMNS else "groups (those"
        raise ValueError(
            f"`coef` must have at most n_nonzero_coefs={budget} {what} in `keep` "
            f"included), got {nnz}; raise the budget or set the smallest ones to zero."
        )
    if problem.bounds is not None:
        check_within("coef", w, problem.bounds)
    return w
