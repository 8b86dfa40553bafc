"""Waves through sizes: what the frontier keeps, against enumeration and fits from the data."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from blockl0 import solve
from blockl0.problem.fits import least_squares_on
from blockl0.problem.problem import as_problem
from blockl0.problem.sparsity import Sparsity
from blockl0.refit.beside import count_fruitless
from blockl0.refit.frontier import Frontier
from blockl0.refit.quadratic_search import QuadraticSearch
from blockl0.refit.rounds import refit_options
from blockl0.refit.waves import Waves
from blockl0.run import begin

OPTIONS = refit_options()[0]


def draw(m, n, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n))
    return X, X[:, : n // 3].sum(axis=1) + 2.0 * rng.standard_normal(m)


def waves_of(problem):
    search = QuadraticSearch(problem, OPTIONS)
    pool = search.make_pool(search.start(problem.zero()))
    pool.clear()
    return search, Waves(pool, Frontier())


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


@pytest.mark.parametrize("form", [{"alpha": 0.5}, {"n_nonzero_coefs": 6}, {"alpha": 3.0}])
@pytest.mark.parametrize("seed", range(4))
def test_what_a_wave_notes_is_the_fit_of_its_support(form, seed):
    X, y = draw(30, 12, seed)
    problem = as_problem(X, y, ridge=0.1, keep=[11], **form)
    search, waves = waves_of(problem)
    waves.pool.load(problem.keep)
    run, rng = begin(problem), np.random.default_rng(seed)
    waves.note()
    waves.grow_to(problem.sparsity.budget, run)
    before = waves.best
    waves.make_round(run, rng)
    assert waves.best <= before
    noted = [k for k in range(13) if k in waves.frontier]
    assert max(noted) <= problem.sparsity.budget
    for k in noted:
        support = waves.frontier.support(k)
        assert 11 in support
        value = problem.smooth(least_squares_on(problem, support)) - search.constant
        assert waves.frontier.value(k) == pytest.approx(value, rel=1e-9)
    assert waves.pool.objective == pytest.approx(waves.best, rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_growing_ends_where_no_swap_helps(seed):
    X, y = draw(25, 9, seed)
    problem = as_problem(X, y, alpha=1e-3)
    search, waves = waves_of(problem)
    waves.grow_to(9, begin(problem))

    def value(support):
        return problem.smooth(least_squares_on(problem, np.array(sorted(support))))

    for k in range(1, 9):
        support = set(waves.frontier.support(k).tolist())
        others = set(range(9)) - support
        swaps = [value(support - {j} | {i}) for j in support for i in others]
        assert waves.frontier.value(k) + search.constant <= min(swaps) * (1 + 1e-9)
    # of one column the best is the best of all
    singles = [value(pair) for pair in combinations(range(9), 1)]
    assert waves.frontier.value(1) + search.constant == pytest.approx(min(singles), rel=1e-9)


def test_moving_to_a_support_is_loading_it():
    X, y = draw(40, 60, 1)
    problem = as_problem(X, y, alpha=0.1)
    rng = np.random.default_rng(0)
    _, waves = waves_of(problem)
    pool = waves.pool
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
        monkeypatch.setattr("blockl0.refit.pool.AT_ONCE", fewest)
        pool = waves_of(problem)[1].pool
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
    pool = waves_of(problem)[1].pool
    pool.load(np.arange(71))
    assert pool.size == 70
    value = problem.smooth(least_squares_on(problem, pool.support)) - pool_constant(problem)
    assert pool.value == pytest.approx(value, rel=1e-8)
