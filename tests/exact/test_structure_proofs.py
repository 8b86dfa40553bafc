"""Proofs of groups, bounds and costs for losses that are no squares, against enumeration."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize

import blockl0
from blockl0 import L0Classifier, L0Regressor
from blockl0.losses import LOSSES, get_loss
from structures import labels, limits

pytestmark = pytest.mark.usefixtures("no_enumeration")
"""The tree proves what few subsets would."""

NAMES = ("logistic", "squared_hinge", "poisson", "huber", "gamma", "tweedie")
KINDS = ("groups", "bounds", "costs", "groups+bounds", "groups+bounds+costs")
FEW, MANY = 4, 60


def target(name, eta, rng):
    if LOSSES[name].takes_labels:
        y = np.where(eta + rng.logistic(size=eta.size) > 0, 1.0, -1.0)
        y[:2] = -1.0, 1.0
        return y
    if name == "huber":
        return eta + rng.standard_normal(eta.size)
    return rng.poisson(np.exp(0.5 * eta)) + (0.5 if name == "gamma" else 1.0 * (eta > 1.0))


def draw(name, kind, seed):
    """X, y and the structure; some columns repeat others, or are zero."""
    rng = np.random.default_rng([seed, *name.encode(), *kind.encode()])
    m, n = int(rng.integers(8, 30)), int(rng.integers(1, 7))
    X = rng.standard_normal((m, n)) * 10.0 ** rng.integers(-1, 2, n)
    if n > 2 and rng.random() < 0.3:
        X[:, 1] = X[:, 0]
    if rng.random() < 0.2:
        X[:, -1] = 0.0
    truth = np.where(rng.random(n) < 0.5, rng.standard_normal(n), 0.0)
    eta = np.clip(X @ truth, -4.0, 4.0)
    given = {"ridge": float(10.0 ** rng.integers(-2, 2)), "loss": name}
    groups = labels(rng, n) if "groups" in kind else list(range(n))
    if "groups" in kind:
        given["feature_groups"] = groups
    if "bounds" in kind:
        given["bounds"] = limits(rng, truth)
    if "costs" in kind:
        own = {label: 2.0 * rng.random() for label in dict.fromkeys(groups)}
        given |= {"costs": [own[label] for label in groups], "alpha": rng.random()}
    else:
        given["n_nonzero_coefs"] = int(rng.integers(1, len(set(groups)) + 1))
    return X, target(name, eta, rng), list(groups), given


def lowest(X, y, groups, given, intercept=False):
    """The least objective over all choices, each by a general-purpose minimizer."""
    units = list(dict.fromkeys(groups))
    low, high = given.get("bounds", (np.full(len(groups), -np.inf), np.full(len(groups), np.inf)))
    costs = dict(zip(groups, given.get("costs", [0.0] * len(groups)), strict=True))
    found = []
    for size in range(given.get("n_nonzero_coefs", len(units)) + 1):
        for chosen in combinations(units, size):
            columns = [j for j, label in enumerate(groups) if label in chosen]
            price = given.get("alpha", 0.0) * sum(costs[label] for label in chosen)
            sides = [(low[j], high[j]) for j in columns]
            found.append(price + smooth(X[:, columns], y, given, sides, intercept))
    return min(found)


def smooth(A, y, given, sides, intercept):
    loss, ridge = get_loss(given["loss"]), given["ridge"]
    y = loss.check_target(np.asarray(y, dtype=float))
    if intercept:
        A, sides = np.column_stack([A, np.ones(len(A))]), [*sides, (-np.inf, np.inf)]
    own = np.full(A.shape[1], ridge)
    own[A.shape[1] - intercept :] = 0.0

    def at(v):
        eta = A @ v
        value = loss.value(eta, y).sum() + 0.5 * own @ (v * v)
        return value, A.T @ loss.gradient(eta, y) + own * v

    if A.shape[1] == 0:
        return at(np.zeros(0))[0]
    # the oracle works with columns of one length
    scale = np.sqrt((A * A).sum(axis=0) + own)
    scale[scale == 0.0] = 1.0
    scaled = [(a * s, b * s) for (a, b), s in zip(sides, scale, strict=True)]

    def unit(v):
        value, slope = at(v / scale)
        return value, slope / scale

    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000, "maxls": 50}
    start = np.zeros(A.shape[1])
    return minimize(unit, start, jac=True, method="L-BFGS-B", bounds=scaled, options=options).fun


def check(name, kind, seed):
    X, y, groups, given = draw(name, kind, seed)
    result = blockl0.solve(X, y, method="exact", random_state=0, **given)
    truth = lowest(X, y, groups, given)
    slack = 1e-6 * abs(truth) + 1e-9
    assert str(result.status) == "optimal", (kind, seed)
    assert result.objective == pytest.approx(truth, abs=slack), (kind, seed)
    assert result.lower_bound <= truth + 1e-3 * slack + 1e-9 * abs(truth), (kind, seed)
    early = blockl0.solve(X, y, method="exact", random_state=0, node_limit=1, **given)
    assert early.lower_bound <= truth + 1e-9 * abs(truth), (kind, seed)
    low, high = given.get("bounds", (-np.inf, np.inf))
    assert (result.coef >= low).all() and (result.coef <= high).all()


@pytest.mark.parametrize("name", NAMES)
def test_proofs_are_true(name):
    for kind in KINDS:
        for seed in range(FEW if kind == "groups+bounds" else 1):
            check(name, kind, seed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_many_proofs_are_true(name, kind):
    for seed in range(FEW, FEW + MANY // 5):
        check(name, kind, seed)


@pytest.mark.parametrize("name", ["logistic", "poisson"])
def test_an_intercept_is_outside_bounds_and_groups(name):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 6))
    y = target(name, 1.0 + X[:, 0] - X[:, 3], rng)
    groups, sides = [0, 0, 1, 2, 2, 3], (np.full(6, -0.5), np.full(6, 0.7))
    given = {"ridge": 0.5, "loss": name, "bounds": sides}
    kind = L0Classifier if LOSSES[name].takes_labels else L0Regressor
    model = kind(2, feature_groups=groups, method="exact", random_state=0, **given).fit(X, y)
    assert str(model.status_) == "optimal"
    truth = lowest(X, y, groups, given | {"n_nonzero_coefs": 2}, intercept=True)
    assert model.objective_ == pytest.approx(truth, rel=1e-7)


def test_without_a_ridge_many_groups_are_not_proven(no_enumeration):
    X, y, _, given = draw("logistic", "groups", 0)
    given["ridge"] = 0.0
    result = blockl0.solve(X, y, method="exact", random_state=0, **given)
    assert str(result.status) == "no_bound" and "ridge" in result.note


class Shifted(type(LOSSES["logistic"])):
    """The logistic loss less a number: it may be negative, and does not say otherwise."""

    name = "shifted"
    is_nonnegative = takes_many_classes = False

    def value(self, eta, y):
        return super().value(eta, y) - 5.0

    def terms(self, eta, y):
        return self.value(eta, y), self.gradient(eta, y), self.curvature(eta, y)


def test_losses_below_zero_are_not_bounded_by_zero():
    X, y, _, given = draw("logistic", "groups+bounds", 1)
    here = blockl0.solve(X, y, method="exact", random_state=0, **given)
    low = blockl0.solve(X, y, method="exact", random_state=0, **given | {"loss": Shifted()})
    assert low.objective == pytest.approx(here.objective - 5.0 * len(y), rel=1e-9)
    assert low.lower_bound <= low.objective and str(low.status) == "optimal"
