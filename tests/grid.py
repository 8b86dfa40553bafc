"""The grid that every capability is tested on: losses × storages × methods × forms.

All axes but the storages are the library's own registries, so that what is registered is tested.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from blockl0.losses import LOSSES, names_of
from blockl0.methods import METHODS
from blockl0.problem.preprocess import apply
from blockl0.problem.problem import as_problem
from blockl0.solve import solve_problem  # noqa: F401  (it fills METHODS)


def quick_first(values, n):
    """Values of a parameter of which the first n are tested always, the others with `slow`."""
    values = list(values)
    return [*values[:n], *(pytest.param(value, marks=pytest.mark.slow) for value in values[n:])]


LOSS_NAMES = tuple(LOSSES)
METHOD_NAMES = tuple(METHODS)
FORMS = {
    "budget": {"n_nonzero_coefs": 2},
    "price": {"alpha": 1.5},
    "both": {"n_nonzero_coefs": 3, "alpha": 0.5},
}
STORAGES = {
    "fortran": np.asfortranarray,
    "rows": np.ascontiguousarray,
    "csc": sp.csc_array,
    "csr": sp.csr_array,
}
RIDGE = 0.3

ONE_OUTPUT = tuple(name for name, loss in LOSSES.items() if loss.n_outputs == 1)
"""The losses of one predictor a sample."""
OTHERS = tuple(name for name in ONE_OUTPUT if not LOSSES[name].is_quadratic)
BOUNDED = tuple(name for name in OTHERS if np.isfinite(LOSSES[name].curvature_bound))
"""Losses that are not quadratic, and those of them below a quadratic."""
SHIFTING = tuple(name for name in ONE_OUTPUT if LOSSES[name].shifts_with_target)
"""Losses of the difference between target and predictor."""
EACH_TARGET = (names_of(takes_labels=False)[0], names_of(takes_labels=True)[0])
"""A loss of numbers, searched as it is, and one of labels, searched through models."""


@cache
def features(m=40, n=6, seed=0):
    """X (m, n) with correlated columns, means other than zero, and some entries that are zero."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n)) + 0.7 * rng.standard_normal((m, 1)) + 0.5
    X[rng.random((m, n)) < 0.2] = 0.0
    return X


def target_for(loss, m=40, n=6, seed=0):
    """A target that the loss takes: the first of several kinds that it does not refuse."""
    rng = np.random.default_rng([seed, 1])
    X = features(m, n, seed)
    eta = X[:, 0] - 0.8 * X[:, 2] + 0.5 * rng.standard_normal(m)
    thirds = np.digitize(eta, np.quantile(eta, [1 / 3, 2 / 3])).astype(float)
    halves = (eta > np.median(eta)).astype(float)
    numbers = [eta + 1.0, np.round(np.exp(0.5 * eta)), np.exp(0.5 * eta)]
    for y in [thirds, halves] if loss.takes_labels else numbers:
        try:
            loss.check_target(y)
        except ValueError:
            continue
        return y
    raise AssertionError(f"no target for {loss.name}")


def make_problem(name, form="budget", storage="fortran", *, has_intercept=False, **more):
    """A small problem of a registered loss."""
    loss = LOSSES[name]
    X, y = STORAGES[storage](features()), target_for(loss)
    problem = as_problem(X, y, loss=loss, ridge=RIDGE, **{**FORMS[form], **more})
    return apply(problem).problem if has_intercept else problem


def losses_for(method):
    """The losses that a method takes in some form, by the capabilities it declares."""
    takes = METHODS[method].refusal
    return [
        name
        for name in LOSS_NAMES
        if any(takes(make_problem(name, form)) is None for form in FORMS)
    ]


def zero(problem):
    """The point without columns."""
    n, outputs = problem.n_features, problem.loss.n_outputs
    return np.zeros(n) if outputs == 1 else np.zeros((n, outputs))


def fit_value(problem, support):
    """min of the smooth part on a support, by a general-purpose minimizer; intercepts are free."""
    A, weights, loss = problem.design.columns(list(support)), problem.weights, problem.loss
    A = np.column_stack([np.ones((len(A), int(problem.has_intercept))), A])
    ridge = np.full((A.shape[1], problem.n_outputs), problem.ridge)
    ridge[: int(problem.has_intercept)] = 0.0

    def at(v):
        V = v.reshape(ridge.shape)
        eta = A @ V if problem.n_outputs > 1 else A @ v
        slope = A.T @ (weights * loss.gradient(eta, problem.y).T).T
        value = weights @ loss.value(eta, problem.y) + 0.5 * np.sum(ridge * V**2)
        return value, slope.ravel() + (ridge * V).ravel()

    start = np.zeros(ridge.size)
    if not start.size:
        return at(start)[0]
    options = {"maxiter": 2000, "ftol": 1e-15, "gtol": 1e-10}
    return float(minimize(at, start, jac=True, method="L-BFGS-B", options=options).fun)


def enumerate_supports(problem, near=None):
    """(objective, support) of the best of all supports, or of those one change from `near`."""
    price, budget = problem.sparsity
    n = problem.n_features
    supports = [
        support
        for size in range(min(budget, n) + 1)
        for support in combinations(range(n), size)
        if set(problem.keep) <= set(support)
    ]
    if near is not None:
        here = set(near.tolist())
        sizes = [(len(set(s) - here), len(here - set(s))) for s in supports]
        supports = [s for s, moved in zip(supports, sizes, strict=True) if max(moved) <= 1]
    return min((fit_value(problem, s) + price * len(s), s) for s in supports)
