"""The one entry: check the input, bind the problem, run the method by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

from numpy.typing import ArrayLike

from blockl0.baselines import BUDGET_BASELINES, PRICE_BASELINES
from blockl0.decomposition import solve_dec
from blockl0.exact import solve_exact
from blockl0.problem import as_problem
from blockl0.refit import solve_refit
from blockl0.result import Result
from blockl0.run import Callback, Run
from blockl0.validate import (
    check_callback,
    check_choice,
    check_init,
    check_one_output,
    check_options,
    check_random_state,
    check_time_limit,
    check_verbose,
)

METHODS: dict[str, Callable[..., Result]] = {
    "refit": solve_refit,
    "dec": solve_dec,
    "exact": solve_exact,
    **BUDGET_BASELINES,
    **PRICE_BASELINES,
}
"""Every method by name: called as method(problem, run, init=, rng=, **its own options)."""

_COMMON = ("problem", "run", "init", "rng")


def solve(
    X: ArrayLike,
    y: ArrayLike,
    *,
    n_nonzero_coefs: int | None = None,
    alpha: float | None = None,
    ridge: float = 0.0,
    loss: Any = "squared",
    method: str = "refit",
    keep: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    init: ArrayLike | None = None,
    random_state: Any = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    verbose: int | bool = 0,
    **method_options: Any,
) -> Result:
    """Minimize Σ_i ℓ(x_i'w, y_i) + ½·ridge·‖w‖² + alpha·‖w‖₀ subject to ‖w‖₀ <= n_nonzero_coefs.

    The squared loss is ½(y_i − x_i'w)², summed and not averaged; scikit-learn's 1/(2m) scaling
    corresponds to alpha/m and ridge/m. There is no intercept and no scaling of columns here.

    Parameters
    ----------
    X : array-like or scipy.sparse (m, n)
        Sparse input is never densified. A float64 array in Fortran order is not copied, unless
        columns are shorter than 1e-30 or longer than 1e30: all methods then work with these times
        powers of two, and `coef` is for X as given.
    y : array-like (m,)
        For "logistic" and "squared_hinge" labels in {-1, 1} or {0, 1}; for "softmax" class codes
        0, ..., C - 1.
    n_nonzero_coefs : int, optional
        Budget s. Give it, `alpha`, or both.
    alpha : float, optional
        Price λ of a nonzero coefficient.
    ridge : float
    loss : str or Loss
        "squared", "logistic", "huber", "squared_hinge", "poisson"; or "softmax", for which w is
        (n, C), a coefficient of every class, and a column is in or out for all classes at once
        (method "refit" only).
    method : str
        "refit", blocks whose outside support is re-fitted, with options
        ``effort="fast" | "balanced" | "thorough"`` or a number of rounds, ``block=(8, 8, 2)``,
        ``pool``, ``patience``; "dec", the paper's block decomposition, with
        ``working_set="R10G2"``, ``theta=1e-3``, ``tol=1e-5``, ``window=50``, ``max_iter=1000``,
        ``greedy="split"``, ``theta_scale=True``, ``stopping="window"``; or "exact", the proven
        global optimum of small problems, with ``node_limit``. For comparison, see
        `blockl0.baselines`: with a budget "pgm" (iterative hard thresholding), "apgm", "qpm",
        "ssp", "romp", "omp", "cosamp", "cvx-l1", "forward"; with a price "pgm-l0", "apgm-l0",
        "pgm-l1", "pgm-lp".
    keep : array-like, optional
        Columns that always stay; they count towards the budget. One that is zero, or without ridge
        a combination of other kept ones, adds nothing: it is treated like any other column.
    sample_weight : array-like (m,), optional
    init : array-like (n,), or (n, C) for C classes, optional
        Feasible starting point.
    random_state : int, Generator or None
        Same seed, same answer.
    time_limit : float, optional
        Seconds; the best point so far is returned with status TIME_LIMIT. Ctrl-C likewise.
    callback : callable, optional
        Called with a `Progress` after every iteration; returning True stops.
    verbose : int or bool
        Log progress (logger "blockl0", level INFO) every so many seconds; 0 for never.
    **method_options
        An option the method does not know is refused by name.

    Returns
    -------
    Result

    Examples
    --------
    >>> import numpy as np
    >>> import blockl0
    >>> X = np.random.default_rng(0).standard_normal((50, 20))
    >>> y = X[:, 3] - 2 * X[:, 7]
    >>> result = blockl0.solve(X, y, n_nonzero_coefs=2, method="exact")
    >>> result.support, str(result.status)
    (array([3, 7]), 'optimal')
    """
    check_choice("method", method, tuple(METHODS))
    solver, defaults = METHODS[method], _defaults(method)
    check_options(method, method_options, tuple(defaults))
    problem = as_problem(
        X,
        y,
        n_nonzero_coefs=n_nonzero_coefs,
        alpha=alpha,
        ridge=ridge,
        loss=loss,
        sample_weight=sample_weight,
        keep=keep,
    )
    if method != "refit":
        check_one_output(method, problem)
    options = {**defaults, **method_options}
    run = Run(
        problem,
        check_time_limit(time_limit),
        check_callback(callback),
        {"method": method, **options},
        check_verbose(verbose),
    )
    n, budget = problem.n_features, problem.sparsity.budget
    start = None
    if init is not None:
        start = check_init(init, n, budget, problem.keep, problem.scale, problem.n_outputs)
    return solver(problem, run, init=start, rng=check_random_state(random_state), **options)


@cache
def _defaults(method: str) -> dict[str, Any]:
    """The options of a method with their defaults."""
    return {
        name: parameter.default
        for name, parameter in inspect.signature(METHODS[method]).parameters.items()
        if name not in _COMMON
    }
