"""Supports beside which there is nothing else: no rounds are made, and none were needed."""

from itertools import combinations

import numpy as np
import pytest

from blockl0 import solve
from blockl0.problem.fits import make_fits
from blockl0.problem.preprocess import apply
from blockl0.problem.problem import as_problem
from blockl0.run import begin
from blockl0.search.search import make_search, refit_options


def draw(seed: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Some columns, correlated or not, that matter more or less."""
    rng = np.random.default_rng(seed)
    m, n, k = int(rng.integers(30, 120)), int(rng.integers(21, 30)), int(rng.integers(1, 5))
    common = rng.standard_normal((m, 1)) * rng.choice([0.0, 1.0, 3.0])
    X = common + rng.standard_normal((m, n))
    chosen = rng.choice(n, int(rng.integers(1, 2 * k + 1)), replace=False)
    y = X[:, chosen] @ rng.uniform(0.3, 2.0, chosen.size) + rng.uniform(0.1, 2.0) * (
        rng.standard_normal(m)
    )
    return np.asfortranarray(X), y, k


def settled(X: np.ndarray, y: np.ndarray, k: int):
    """The search, and the point at which it settles first."""
    problem = as_problem(X, y, n_nonzero_coefs=k)
    search, run = make_search(problem, refit_options("fast")[0]), begin(problem)
    point = search.start(problem.zero(), run)
    return search, search.settle(point, run)


def test_what_is_alone_is_optimal():
    n_alone = 0
    for seed in range(60):
        X, y, k = draw(seed)
        search, point = settled(X, y, k)
        if search.is_alone(point):
            n_alone += 1
            best = solve(X, y, n_nonzero_coefs=k, method="exact").objective
            assert point.objective == pytest.approx(best, rel=1e-9), seed
    assert n_alone >= 10


def test_no_rounds_are_made_where_a_support_is_alone():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 100))
    y = X[:, :5].sum(axis=1) + 0.1 * rng.standard_normal(300)
    for effort in ("fast", "balanced", "thorough"):
        result = solve(X, y, n_nonzero_coefs=5, effort=effort, random_state=0)
        assert result.support.tolist() == [0, 1, 2, 3, 4]
        assert result.history.objective.size == 1


def test_noise_is_not_alone():
    rng = np.random.default_rng(1)
    search, point = settled(rng.standard_normal((60, 40)), rng.standard_normal(60), 4)
    assert not search.is_alone(point)


@pytest.mark.parametrize("loss", ["logistic", "poisson", "softmax"])
def test_what_is_alone_is_the_best_of_all_supports(loss):
    """Of other losses, where a check tells that; by all pairs of columns, re-fitted."""
    n_alone = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((150, 26)) + rng.choice([0.0, 1.0]) * rng.standard_normal((150, 1))
        eta = X[:, :2] * rng.uniform(0.6, 2.0, 2)
        if loss == "softmax":
            y = np.argmax(np.hstack([eta, 0.0 * eta[:, :1]]) + rng.gumbel(size=(150, 3)), axis=1)
        elif loss == "logistic":
            y = (eta.sum(axis=1) + rng.logistic(size=150) > 0.0).astype(int)
        else:
            y = rng.poisson(np.exp(np.clip(0.5 * eta.sum(axis=1), -5.0, 5.0)))
        problem = as_problem(X, y, n_nonzero_coefs=2, loss=loss, ridge=1e-3)
        problem = apply(problem, bool(seed % 2)).problem
        search, run = make_search(problem, refit_options("fast")[0]), begin(problem)
        point = search.settle(search.start(problem.zero(), run), run)
        if search.is_alone(point):
            n_alone += 1
            fits, pairs = make_fits(problem), combinations(range(26), 2)
            best = min(fits.minimum(np.array(pair)).value for pair in pairs)
            assert point.objective == pytest.approx(best, rel=1e-9), seed
    assert n_alone >= 3
