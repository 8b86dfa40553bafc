"""What must be true of every claim about a hostile problem; each check returns what is wrong."""

from __future__ import annotations

from itertools import combinations

import numpy as np

import blockl0
import hostile
from blockl0.certify.levels import ROUNDING, TOL
from blockl0.methods import METHODS
from blockl0.problem.fits import least_squares_on
from blockl0.problem.problem import as_problem
from grid import METHOD_NAMES, OTHERS
from targets import amounts, as_target, is_positive

CERTIFIED_COLUMNS = 8
"""Columns up to which certificates of every level are compared."""
FIXED_COLUMNS = 5
"""The same for blocks with the outside fixed, each of which is a problem of its own."""


def check_problem(seed: int, largest: int = 10) -> list[str]:
    """All claims about the problem of a seed, as (what is wrong, …); empty when all are true."""
    problem = hostile.make_hostile(seed, largest)
    bound = as_problem(problem.X, problem.y, **problem.options)
    truth = hostile.enumerate_supports(problem, bound.keep)
    method, options = [("exact", {}), ("refit", {"effort": "fast"})][seed % 2]
    result = blockl0.solve(
        problem.X, problem.y, method=method, random_state=0, time_limit=60.0,
        **options, **problem.options,
    )  # fmt: skip
    wrong = [f"{method}: {what}" for what in _wrong_result(result, truth, bound)]
    if result.certificate is not None:
        what = _wrong_certificate(result.certificate, result.coef, truth, bound)
        wrong += [f"{method}'s own certificate: {what}"] if what else []
    rng = np.random.default_rng(seed)
    if bound.n_features <= CERTIFIED_COLUMNS:
        point = result.coef if rng.random() < 0.4 else _some_point(rng, truth, bound)
        wrong += _check_certificates(rng, problem, bound, truth, point)
    if rng.random() < 0.02:
        wrong += _check_path(problem)
    return [f"seed {seed} ({', '.join(problem.recipe)}): {what}" for what in wrong]


def _wrong_result(result, truth, bound) -> list[str]:
    best, mask = truth.best, hostile.mask_of(result.support)
    if not truth.allowed[best]:
        return []  # the kept columns fill the margin of the definition
    slack = truth.slack(best) + truth.nothing[mask]
    optimum, wrong = truth.objective[best], []
    if result.status is blockl0.Status.OPTIMAL and not result.objective <= optimum + slack:
        wrong.append(f"{result.objective!r} is called optimal, {optimum!r} is reached")
    if result.lower_bound is not None and not result.lower_bound <= optimum + slack:
        wrong.append(f"lower bound {result.lower_bound!r}, but {optimum!r} is reached")
    if not result.n_nonzero <= bound.sparsity.budget:
        wrong.append(f"{result.n_nonzero} nonzeros")
    if mask and truth.apart[mask] < hostile.DEPENDENT * (1.0 - hostile.MARGIN):
        wrong.append(f"columns of the support at distance {truth.apart[mask]:.2g}")
    there = truth.objective[mask]
    held = set(bound.keep.tolist()) <= set(result.support.tolist())
    if held and abs(result.objective - there) > truth.slack(mask, 1e-9):
        wrong.append(f"objective {result.objective!r} of a support that has {there!r}")
    return wrong


def _some_point(rng, truth, bound):
    """The fit on a random admissible support, or on one of the best."""
    allowed = np.flatnonzero(truth.allowed)
    if allowed.size == 0:
        return np.zeros(bound.n_features)
    order = allowed[np.argsort(truth.objective[allowed])]
    mask = (
        rng.choice(allowed) if rng.random() < 0.3 else order[min(rng.integers(6), len(order) - 1)]
    )
    return least_squares_on(
        bound, np.flatnonzero([(int(mask) >> j) & 1 for j in range(bound.n_features)])
    )


def _check_certificates(rng, problem, bound, truth, point) -> list[str]:
    if not np.isfinite(bound.objective(point)):
        return []
    if np.union1d(np.flatnonzero(point), bound.keep).size > bound.sparsity.budget:
        return []  # a kept column that was fitted with zero
    wrong, level = [], int(rng.integers(1, bound.n_features + 1))
    outside = "fixed" if bound.n_features <= FIXED_COLUMNS and rng.random() < 0.4 else "refit"
    answer = blockl0.certify(
        problem.X, problem.y, point, level=level, outside=outside, **problem.options
    )
    what = _wrong_certificate(answer, point, truth, bound, problem)
    if what:
        wrong.append(f"certify(level={level}, outside={outside!r}): {what}")
    return wrong


def _wrong_certificate(answer, point, truth, bound, problem=None) -> str:
    here = bound.objective(point)
    slack = TOL * here + ROUNDING * bound.smooth(np.zeros(bound.n_features))
    start = hostile.mask_of(np.flatnonzero(point)) | hostile.mask_of(bound.keep)
    slack += truth.nothing[start] + 1e-9 * here
    if not answer.holds:
        better = bound.objective(answer.better_coef)
        return "" if better < here else f"{better!r} is no better than {here!r}"
    if answer.outside == "fixed":
        best = _best_fixed(answer.level, point, bound, problem, truth)
        # what stays is taken from y, with the rounding of its own coefficients
        slack += 2.0 * truth.shaky[start]
    else:
        changed = hostile.popcount(np.arange(truth.size.size) ^ start)
        near = truth.allowed & (changed <= answer.level)
        best = np.where(near, truth.objective + 2.0 * truth.shaky, np.inf).min()
    return f"{best!r} is reached from {here!r}" if best < here - slack else ""


def _best_fixed(level, point, bound, problem, whole) -> float:
    """The least objective over all blocks of `level` columns, the others as they are.

    Only of supports that are admissible as a whole.
    """
    n, best = bound.n_features, np.inf
    X, options = problem.dense, dict(problem.options)
    price, budget = bound.sparsity
    for block in combinations(range(n), min(level, n)):
        rest = point.copy()
        rest[list(block)] = 0.0
        # a kept column has its place also where its coefficient is zero
        held = np.setdiff1d(np.union1d(np.flatnonzero(rest), bound.keep), block).astype(int)
        room = budget - held.size
        if room < 0:
            continue
        options.update(n_nonzero_coefs=min(room, len(block)))
        inside = hostile.Hostile(X[:, block], problem.y - X @ rest, options)
        keep = [block.index(j) for j in bound.keep if j in block]
        truth = hostile.enumerate_supports(inside, np.array(keep, dtype=int))
        values = truth.objective + 2.0 * truth.shaky
        masks, union = np.arange(values.size), hostile.mask_of(held)
        for place, j in enumerate(block):
            union = union | (((masks >> place) & 1) << j)
        truth.allowed &= whole.apart[union] > hostile.DEPENDENT * (1.0 + hostile.MARGIN)
        fixed = price * np.count_nonzero(rest) + 0.5 * bound.ridge * (rest @ rest)
        best = min(best, np.where(truth.allowed, values, np.inf).min() + fixed)
    return best


def _check_path(problem) -> list[str]:
    """Every point of a path by budgets, judged like a single answer."""
    options, wrong = dict(problem.options), []
    kept = np.size(options.get("keep", []))
    options.pop("n_nonzero_coefs", None)
    sizes = np.arange(max(kept, 1), problem.X.shape[1] + 1)
    if options.pop("alpha", None) is None or sizes.size == 0:
        return wrong
    path = blockl0.l0_path(
        problem.X, problem.y, n_nonzero_coefs=sizes, random_state=0, effort="fast", **options
    )
    for size, result in zip(sizes, path, strict=True):
        here = hostile.Hostile(problem.X, problem.y, {**options, "n_nonzero_coefs": int(size)})
        bound = as_problem(here.X, here.y, **here.options)
        truth = hostile.enumerate_supports(here, bound.keep)
        wrong += [f"path, k = {size}: {what}" for what in _wrong_result(result, truth, bound)]
    return wrong


# every public entry, for what it does to memory and to bad data -----------------------------------


SLOW = ("cvx-l1",)
"""Methods that take too long to be called thousands of times."""
CALLED = [name for name in METHOD_NAMES if name not in SLOW]


def call_entries(seed: int, largest: int = 8) -> list[str]:
    """Calls of public entries on hostile data, by their names. Errors are not caught.

    One entry in turn, and the block search, which is the quickest, for many prices and budgets.
    Only refusals with a reason, `ValueError`s of the package, are an answer too.
    """
    problem = hostile.make_hostile(seed, largest)
    rng = np.random.default_rng([seed, 1])
    called = [ENTRIES[seed % len(ENTRIES)]] + [block_any] * 5
    for entry in called:
        try:
            entry(rng, problem)
        except ValueError as error:
            if not str(error) or "invalid value" in str(error):
                raise
    return [entry.__name__ for entry in called]


def solve_any(rng, problem):
    method, options = CALLED[rng.integers(len(CALLED))], dict(problem.options)
    forms = METHODS[method].forms
    if len(forms) == 1:
        options.pop("keep", None)
        options.pop("n_nonzero_coefs" if "price" in forms else "alpha", None)
        if not {"alpha", "n_nonzero_coefs"} & set(options):
            options.update({"alpha": 0.1} if "price" in forms else {"n_nonzero_coefs": 1})
    result = blockl0.solve(problem.X, problem.y, method=method, random_state=0, **options)
    assert np.isfinite(result.coef).all() and result.objective >= 0.0
    assert result.n_nonzero <= options.get("n_nonzero_coefs", problem.X.shape[1])


def solve_loss(rng, problem):
    loss, y = OTHERS[rng.integers(len(OTHERS))], problem.y
    if is_positive(loss):
        y = amounts(loss, rng.poisson(1.0, y.size))
    else:
        y = as_target(loss, y, np.median(y))
    options = {"ridge": 1e-3, **problem.options, "effort": "fast", "time_limit": 5.0}
    result = blockl0.solve(problem.X, y, loss=loss, random_state=0, **options)
    assert np.isfinite(result.coef).all()


def path_any(rng, problem):
    options = dict(problem.options)
    if "alpha" in options:
        options["alphas"] = options.pop("alpha") * np.geomspace(10.0, 0.1, 3)
        options.pop("n_nonzero_coefs", None)
    else:
        options["n_nonzero_coefs"] = np.arange(1, problem.X.shape[1] + 1)
        options.pop("keep", None)
    path = blockl0.l0_path(problem.X, problem.y, random_state=0, effort="fast", **options)
    assert np.isfinite(path.objective).all()


def certify_any(rng, problem):
    n = problem.X.shape[1]
    point = rng.standard_normal(n) * (rng.random(n) < 0.4)
    level = ["basic", "L", *range(1, n + 1)][rng.integers(n + 2)]
    samples = 3 if rng.random() < 0.2 and not isinstance(level, str) else None
    outside = ("refit", "fixed")[rng.integers(2)]
    blockl0.certify(
        problem.X, problem.y, point, level=level, outside=outside, n_samples=samples,
        random_state=0, **problem.options,
    )  # fmt: skip


def block_any(rng, problem):
    X = problem.dense / np.maximum(np.linalg.norm(problem.dense, axis=0), 1e-300)
    n, half = X.shape[1], 0.5 * float(problem.y @ problem.y)
    H, c = X.T @ X + rng.choice([0.0, 1e-14, 1e-9]) * np.eye(n), -X.T @ problem.y
    budget = None if rng.random() < 0.3 else int(rng.integers(0, n + 1))
    price = half * 10.0 ** rng.uniform(-12, 0) if rng.random() < 0.7 else 0.0
    z, value = blockl0.block_search(0.5 * (H + H.T), c, price, budget)
    assert np.isfinite(z).all() and value <= 1e-12 * half


def fit_estimator(rng, problem):
    k = int(rng.integers(0, problem.X.shape[1] + 1))
    estimator = blockl0.L0Regressor(
        n_nonzero_coefs=k, random_state=0, ridge=float(rng.choice([0, 1e-8]))
    )
    if rng.random() < 0.3:
        estimator = blockl0.L0Classifier(
            n_nonzero_coefs=k, random_state=0, effort="fast", ridge=1e-3
        )
    y = problem.y
    if isinstance(estimator, blockl0.L0Classifier):
        y = (y > np.median(y)).astype(int)
    estimator.fit(problem.X, y)
    assert np.isfinite(np.asarray(estimator.predict(problem.X), dtype=float)).all()


ENTRIES = (
    solve_any, certify_any, path_any, solve_any, solve_loss, certify_any, fit_estimator, solve_any,
)  # fmt: skip
