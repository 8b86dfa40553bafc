"""The frontier of best supports, and how a pool goes to them."""

from __future__ import annotations

import numpy as np
import pytest

from blockl0 import solve
from blockl0.problem.fits import least_squares_on
from blockl0.problem.problem import Sparsity, as_problem
from blockl0.search.frontier import Frontier
from blockl0.search.quadratic_search import QuadraticSearch
from blockl0.search.search import refit_options
from blockl0.search.walks import count_fruitless

OPTIONS = refit_options()[0]


def draw(m, n, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n))
    return X, X[:, : n // 3].sum(axis=1) + 2.0 * rng.standard_normal(m)


def pool_of(problem):
    search = QuadraticSearch(problem, OPTIONS)
    pool = search.make_pool(search.start(problem.zero()))
    pool.clear()
    return pool


def test_frontier_serves_every_price_and_budget():
    rng = np.random.default_rng(0)
    frontier, least = Frontier(), {}
    for _ in range(300):
        size, value = int(rng.integers(0, 40)), float(rng.uniform())
        is_best = frontier.offer(value, np.arange(size))
        assert is_best == (value < least.get(size, np.inf))
        least[size] = min(value, least.get(size, np.inf))
    for price, budget in [(0.0, 39), (0.0, 5), (0.01, 39), (0.1, 20), (10.0, 39)]:
        wanted = min(v + price * k for k, v in least.items() if k <= budget)
        size = frontier.best_size(Sparsity(price, budget))
        assert size <= budget
        assert frontier.best(Sparsity(price, budget)) == pytest.approx(wanted, rel=1e-15)
        assert frontier.support(size).size == size


def test_moving_to_a_support_is_loading_it():
    X, y = draw(40, 60, 1)
    problem = as_problem(X, y, alpha=0.1)
    rng = np.random.default_rng(0)
    pool = pool_of(problem)
    pool.load(np.arange(0, 30))
    for size in (30, 29, 12, 31):
        support = np.sort(rng.choice(36, size, replace=False))
        pool.move_to(support)
        assert np.array_equal(pool.support, support)
        value = problem.smooth(least_squares_on(problem, support)) - 0.5 * y @ y
        assert pool.value == pytest.approx(value, rel=1e-9)


def test_a_small_gain_takes_back_half_of_the_failures():
    assert count_fruitless(-1, 1.0, 1.0) == 0
    assert count_fruitless(7, 1.0, 1.0) == 8
    assert count_fruitless(7, 1.0, 0.9) == 0
    assert count_fruitless(7, 1.0, 1.0 - 1e-6) == 3
    assert count_fruitless(-1, 1.0, 1.0 - 1e-6) == 0


def test_a_low_price_does_not_fill_up_with_columns():
    # of planted columns without noise none is left out and none is added, where a descent
    # that adds for the price from the start ends with 109, whatever kicks follow
    rng = np.random.default_rng(3)
    X = rng.standard_normal((120, 300))
    w = np.zeros(300)
    w[:36] = rng.choice([-1.0, 1.0], 36) * rng.uniform(1.0, 2.0, 36)
    for effort in ("fast", 2):
        result = solve(X, X @ w, alpha=1e-3, random_state=0, effort=effort)
        assert result.support.tolist() == list(range(36))
        assert result.objective == pytest.approx(0.036, rel=1e-9)


@pytest.mark.parametrize("units", [1.0, 1e5])
def test_a_large_support_is_loaded_at_once_as_column_by_column(units, monkeypatch):
    rng = np.random.default_rng(1)
    X, y = draw(120, 150, 2)
    X *= units ** rng.uniform(-1.0, 1.0, 150)
    problem = as_problem(
        X, y, alpha=1e-9, keep=[3], ridge=0.0, sample_weight=rng.uniform(1, 2, 120)
    )
    support = np.sort(rng.choice(np.arange(4, 150), 80, replace=False))
    support = np.append(3, support)
    tables = []
    for fewest in (64, 1000):
        monkeypatch.setattr("blockl0.moves.pool.AT_ONCE", fewest)
        pool = pool_of(problem)
        pool.load(support)
        table, order = pool.table, np.argsort(pool.members)
        length = np.sqrt(pool.sq_norms)
        rows = table.rows[:81][order] * length[pool.members[order]][:, None] / length
        tables.append((pool.support, pool.value, table.border[0] / length, rows))
        assert pool.size == 81
        pool.descend()
        value = problem.smooth(least_squares_on(problem, pool.support)) - pool_constant(problem)
        assert pool.value == pytest.approx(value, rel=1e-8)
    for one, other in zip(*tables, strict=True):
        one, other = np.atleast_1d(one), np.atleast_1d(other)
        assert np.allclose(one, other, rtol=1e-7, atol=1e-7 * np.abs(other[0]).max())


def pool_constant(problem):
    return problem.smooth(problem.zero())


def test_a_nearly_dependent_large_support_is_loaded_column_by_column():
    X, y = draw(100, 120, 3)
    X[:, 70] = X[:, :70].sum(axis=1) * (1.0 + 1e-12)
    problem = as_problem(X, y, alpha=1e-9)
    pool = pool_of(problem)
    pool.load(np.arange(71))
    assert pool.size == 70
    value = problem.smooth(least_squares_on(problem, pool.support)) - pool_constant(problem)
    assert pool.value == pytest.approx(value, rel=1e-8)
