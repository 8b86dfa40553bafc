"""Supports beside which there is nothing else: no rounds are made, and none were needed."""

import numpy as np
import pytest

from blockl0 import solve
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
