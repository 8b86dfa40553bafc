"""The entry point: check the input, bind the problem, run the method by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

# methods register when they are imported
from blockl0 import baselines, dec, exact, search  # noqa: F401
from blockl0.blas import one_blas_thread
from blockl0.lazy import late_generator
from blockl0.methods import METHODS
from blockl0.problem.factors import reduced
from blockl0.problem.near_dependence import left_out
from blockl0.problem.problem import Problem, problem_of
from blockl0.result import Result, Status, left_out_note
from blockl0.run import Callback, Run, begin, logger, timed_by
from blockl0.search.checkpoint import Checkpoint
from blockl0.search.search import make_search, refit_options, run_search
from blockl0.validate import (
    check_choice,
    check_init,
    check_options,
    check_random_state,
    check_seed,
)


@one_blas_thread()
def solve(
    X: Any,
    y: ArrayLike | None = None,
    *,
    n_nonzero_coefs: int | None = None,
    alpha: float | None = None,
    ridge: float = 0.0,
    loss: Any = "squared",
    method: str = "refit",
    keep: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    feature_groups: Any = None,
    bounds: Any = None,
    positive: Any = None,
    costs: Any = None,
    init: ArrayLike | None = None,
    random_state: Any = None,
    time_limit: float | None = None,
    memory_limit: float | None = None,
    checkpoint: Any = None,
    callback: Callback | None = None,
    verbose: int | bool = 0,
    **method_options: Any,
) -> Result:
    """Minimize Σ_i ℓ(x_i'w, y_i) + ½·ridge·‖w‖² + alpha·‖w‖₀ subject to ‖w‖₀ <= n_nonzero_coefs.

    The squared loss is ½(y_i − x_i'w)², summed and not averaged; scikit-learn's 1/(2m) scaling
    corresponds to alpha/m and ridge/m. There is no intercept and no scaling of columns here.

    Parameters
    ----------
    X : array-like, scipy.sparse, Moments, or a storage read in blocks of columns (m, n)
        Sparse input is never densified. A `numpy.memmap` in Fortran order, the path of such an
        ``.npy`` file, a zarr array or an HDF5 dataset is not read as a whole, unless it is small.
        A float64 array in Fortran order is not copied, unless columns are shorter than 1e-30 or
        longer than 1e30: these are then scaled by powers of two, and `coef` is for X as given.
        `blockl0.Moments` replace X, y and weights.
    y : array-like (m,), or (m, q)
        For "logistic" and "squared_hinge" labels in {-1, 1} or {0, 1}; for "softmax" class codes
        0, ..., C - 1. For "squared" also q responses, which share one support: `coef` is (n, q).
    n_nonzero_coefs : int, optional
        Budget s. Give it, `alpha`, or both.
    alpha : float, optional
        Price λ of a nonzero coefficient.
    ridge : float
    loss : str or Loss
        "squared", "huber", "poisson", "gamma", "tweedie", "logistic", "squared_hinge"; a parameter
        is given as in "huber:0.5" or "tweedie:1.7", or with an object, as of `blockl0.losses`.
    method : str
        "refit", single changes and walks whose support is re-fitted, with options
        ``effort="fast" | "balanced" | "thorough"`` or a number of rounds, ``pool``, ``n_jobs``
        (threads: two are used for supports that are not large, up to four for others; the answer
        is the same); "dec", the paper's block decomposition,
        with ``working_set="R10G2"``, ``theta=1e-3``, ``tol=1e-5``, ``window=50``,
        ``max_iter=1000``, ``greedy="split"``, ``theta_scale=True``, ``stopping="window"``; or
        "exact", the proven global optimum by branch and bound, or the best point with a lower bound
        (`Result.gap`).
        It takes the squared loss if there are no more columns than rows, and with a `ridge` any
        number of columns and any loss but "softmax"; few subsets (up to 5000, or of 20 columns or
        groups) are enumerated for any loss; otherwise no bound exists, status NO_BOUND.
        Options ``gap=0.01`` to stop as soon as the objective is proven to be within 1 % of the
        optimum (default: to rounding), ``node_limit``, ``work_limit`` (1e9 multiplications, about a
        second each, but counted: the same end on any machine), and ``proof="file.npz"`` for a
        proof that `blockl0.verify` checks. For comparison, see `blockl0.baselines`: with a budget
        "pgm" (iterative hard thresholding), "apgm", "qpm", "ssp", "romp", "omp", "gp", "cosamp",
        "grahtp", "sparse-simplex", "cvx-l1", "forward"; with a price "pgm-l0", "apgm-l0",
        "pgm-l1", "pgm-lp".
    keep : array-like, optional
        Columns that always stay, with their groups; they count towards the budget and the price,
        whatever their coefficients. A kept column that is zero, or without ridge a combination of
        other kept ones, is redundant and treated like any other column.
    sample_weight : array-like (m,), optional
    feature_groups : array-like (n,) or list of lists of int, optional
        A label for every column, in any order and of any type; columns with the same label enter
        and leave together. Or the columns of each group; others are on their own. Budget, price,
        `keep`, path and certificates count groups. See the page on structure.
    bounds : (low, high), optional
        Numbers, or arrays (n,), with low <= 0 <= high; None stands for infinity. All coefficients
        are inside, and those at zero are not selected.
    positive : bool or array-like, optional
        True, or the columns (or a mask of them) whose coefficients may not be negative.
    costs : array-like (n,) or dict, optional
        Multiplies the price `alpha` of each column or group (constant within groups); or
        {column or label: cost}, others costing 1. A budget beside it counts all alike.
    init : array-like (n,), or (n, C) for C classes or responses, optional
        Feasible starting point; "refit" and "exact" return nothing worse.
    random_state : int, Generator or None
        Same seed, same answer.
    time_limit : float, optional
        Seconds; the best point so far is returned with status TIME_LIMIT, and the lower bound so
        far with method "exact". Ctrl-C likewise, with status INTERRUPTED.
    memory_limit : float, optional
        Bytes. For method "exact", for its tree: 4e9 by default. For an X read in blocks, for blocks
        and cached columns, 1 GiB by default; a search needs a few further numbers per column.
    checkpoint : str or Path, optional
        A file that stores the passes over X, for method "refit" and the squared loss. A killed run
        that is restarted with the same data and options repeats none of them and returns the same
        result; other data or options are refused. See the page on scale.
    callback : callable, optional
        Called with a `Progress` after every iteration, with `lower_bound` and `gap` from method
        "exact"; returning True stops.
    verbose : int or bool
        Log progress (logger "blockl0", level INFO) every `verbose` seconds; 0 for never.
    **method_options
        Options of the method; others are refused by name.

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
    check_method(method, method_options)
    if memory_limit is not None and "memory_limit" in METHODS[method].defaults:
        method_options["memory_limit"] = memory_limit
    kept = None if checkpoint is None else Checkpoint(checkpoint, method, random_state)
    if kept is not None:
        random_state = kept.seed
    problem = problem_of(
        X,
        y,
        memory_limit=memory_limit,
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
    if kept is not None:
        kept.bind(problem, init, {"random_state": random_state, **method_options})
    result = solve_problem(
        problem,
        method,
        init=init,
        random_state=random_state,
        time_limit=time_limit,
        callback=callback,
        verbose=verbose,
        **method_options,
    )
    if kept is not None:
        kept.write(is_last=True)
    if result.note is not None:
        logger.warning(result.note)
    return result


@one_blas_thread()
def solve_problem(
    problem: Problem,
    method: str = "refit",
    *,
    init: ArrayLike | None = None,
    random_state: Any = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    verbose: int | bool = 0,
    **options: Any,
) -> Result:
    """Run a method on a bound problem; every solve goes through here.

    Problems that the method cannot solve are refused before it runs, see `blockl0.methods`.

    Parameters
    ----------
    problem : Problem
        From `as_problem`, or with an intercept from `preprocess.apply`.
    method : str
    init : array-like (n,), optional
        Feasible start, for the columns as given.
    random_state, time_limit, callback, verbose, **options
        As in `solve`.
    """
    around: Any = {"time_limit": time_limit, "callback": callback, "verbose": verbose}
    run = open_run(problem, method, options, init, **around)
    start = None
    if init is not None:
        start = check_init(
            init, problem.n_features, problem.sparsity.budget, problem.keep, problem.scale,
            problem.n_outputs, problem.units, problem.bounds,
        )  # fmt: skip
    known, rng = METHODS[method], late_generator(check_seed(random_state))
    # the run keeps the problem of all rows, from which the objective is computed in the end
    searched = reduced(problem, run) if known.reduces else problem
    try:
        with timed_by(run):
            result = known.solve(
                searched, run, init=start, rng=rng, **{**known.defaults, **options}
            )
    except KeyboardInterrupt as stop:
        # it came while the method prepared: there is no point but the start
        return run.result(problem.zero() if start is None else start, run.status_of(stop), 0)
    return with_left_out(result, searched, run)


def with_left_out(result: Result, problem: Problem, run: Run | None = None) -> Result:
    """Return an optimum with the columns whose supports were left out and may be lower.

    Within the time that the run has left, if there is one.
    """
    # only a proof is qualified by what it leaves out
    if result.status is not Status.OPTIMAL:
        return result
    try:
        with nullcontext() if run is None else timed_by(run):
            columns = left_out(problem, problem.from_given(result.coef))
    except KeyboardInterrupt:
        columns = None
    if columns == ():
        return result
    said = left_out_note(columns)
    note = said if result.note is None else f"{result.note} {said}"
    return replace(result, near_dependent=columns, note=note)


def solve_targets(
    problem: Problem, targets: Iterable[NDArray[np.float64]], *, seed: int, **options: Any
) -> Iterator[Result]:
    """Solve for one target after the other by method "refit", each seeded alike.

    Facts about the columns are shared, and nothing is proven.
    """
    check_method("refit", options)
    how, rounds = refit_options(**options)
    made = None
    for y in targets:
        here = replace(problem, y=y)
        with one_blas_thread():
            run = open_run(here, "refit", options)
            # lengths and rows of the Gram matrix do not depend on the target
            made = make_search(here, how, False) if made is None else made.for_target(y)
            result = run_search(made, None, run, check_random_state(seed), rounds)
        yield result


def open_run(
    problem: Problem, method: str, options: dict[str, Any], init: Any = None, **around: Any
) -> Run:
    """Begin a run of a method, refusing unknown options and unsuitable problems.

    `around` are the time limit, the callback and `verbose`, as in `solve`.
    """
    check_method(method, options)
    known = METHODS[method]
    known.check(problem, init)
    return begin(problem, {"method": method, **known.defaults, **options}, **around)


def check_method(method: str, options: dict[str, Any]) -> None:
    """Refuse an unknown method, or an unknown option of it, by name."""
    check_choice("method", method, METHODS)
    check_options(method, options, METHODS[method].defaults)
