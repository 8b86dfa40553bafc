"""The tableau in single precision, against the one in double and against fits."""

from __future__ import annotations

import numpy as np
import pytest

from blockl0 import kernels
from blockl0.problem.fits import least_squares_on
from blockl0.problem.problem import as_problem
from blockl0.search.annealing import FIRST, LONG, Walker, anneal, best_for, last_price
from blockl0.search.frontier import Frontier
from blockl0.search.quadratic_search import QuadraticSearch
from blockl0.search.search import refit_options

OPTIONS = refit_options()[0]


def draw(m, n, seed, length=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n))
    return X * length, X[:, : n // 3].sum(axis=1) + 2.0 * rng.standard_normal(m)


def pool_of(problem):
    pool = QuadraticSearch(problem, OPTIONS).whole_pool()
    pool.know_all()
    return pool


def gains(table):
    """What each column outside the support would gain, and each member would cost."""
    edge, pivots = (table.border[line].astype(float) for line in (kernels.EDGE, kernels.PIVOT))
    return 0.5 * edge**2 / np.abs(pivots)


@pytest.mark.parametrize("scale", [1e-40, 1.0, 1e40])
@pytest.mark.parametrize("work", [0.0, 2e3, 2e4, 1e6])
def test_it_tells_what_the_pool_tells(scale, work):
    lengths = np.random.default_rng(0).uniform(0.01, 100.0, 30)
    X, y = draw(40, 30, 1, lengths * scale)
    pool = pool_of(as_problem(X, y * scale, alpha=scale**2))
    pool.load(np.array([3, 7, 20]))
    walker = Walker(pool, 10, last_price(pool), None, np.random.default_rng(0))
    walker.walk(10.0 * scale**2, scale**2, work, 1.0)
    single = walker._single
    assert (walker.support.tolist() == [3, 7, 20]) == (work == 0.0)
    pool.load(walker.support)
    np.testing.assert_allclose(gains(single.table) * single.unit, gains(pool.table), rtol=2e-3)
    value = single.table.value[kernels.MINIMUM] * single.unit
    assert value == pytest.approx(pool.value, rel=1e-5)


def test_it_goes_where_the_pool_goes():
    pool = pool_of(as_problem(*draw(40, 30, 2), alpha=1.0))
    walker = Walker(pool, 10, last_price(pool), None, np.random.default_rng(0))
    walker.walk_from(np.array([1, 5, 9]), 2.0, 1.0, 1e4, 1.0)
    assert walker.support.tolist() != [1, 5, 9]
    walker.go_to(np.array([1, 5, 9]))
    assert walker.support.tolist() == [1, 5, 9]
    single = walker._single
    np.testing.assert_allclose(gains(single.table) * single.unit, gains(pool.table), rtol=1e-5)


def test_the_value_of_a_support_is_that_of_its_fit():
    X, y = draw(40, 30, 3)
    X[:, 29] = X[:, 28]
    problem = as_problem(X, y, alpha=1.0, ridge=0.0)
    search = QuadraticSearch(problem, OPTIONS)
    pool = search.whole_pool()
    pool.know_all()
    for support in ([], [4], [0, 4, 17, 29]):
        w = least_squares_on(problem, np.array(support, dtype=np.int64))
        value = pool.value_of(np.array(support, dtype=np.int64)) + search.constant
        assert value == pytest.approx(problem.smooth(w), rel=1e-12)
    assert pool.value_of(np.array([28, 29])) == np.inf


def test_walks_go_on_in_double_where_single_precision_drifts(monkeypatch):
    monkeypatch.setattr("blockl0.search.annealing.MAX_DRIFT", 0.0)
    monkeypatch.setattr("blockl0.search.annealing.MOST_REBUILT", 2)
    X, y = draw(60, 50, 4)
    problem = as_problem(X, y, alpha=0.5)
    search = QuadraticSearch(problem, OPTIONS)
    pool = search.make_pool(search.start(problem.zero()))
    frontier, rng = Frontier(), np.random.default_rng(0)
    walker = Walker(pool, 50, last_price(pool), None, rng)
    anneal([walker], frontier, 0.5, 3e6, FIRST, 1)
    assert walker.support.tolist() == pool.support.tolist()
    size = frontier.best_size(problem.sparsity)
    w = least_squares_on(problem, frontier.support(size))
    value = frontier.value(size) + search.constant
    assert value == pytest.approx(problem.smooth(w), rel=1e-9)


@pytest.mark.parametrize("pace", [FIRST, LONG])
def test_single_precision_ends_as_low_as_double(pace, monkeypatch):
    X, y = draw(60, 90, 5)
    problem = as_problem(X, y, alpha=0.5)
    search = QuadraticSearch(problem, OPTIONS)
    ends = []
    for least in (1e-6, np.inf):
        monkeypatch.setattr("blockl0.search.annealing.LEAST_PRICE", least)
        values = []
        for seed in range(12):
            pool = search.make_pool(search.start(problem.zero()))
            frontier = Frontier()
            rng, price = np.random.default_rng(seed), last_price(pool)
            pools = [pool, *(search._pool_of(pool.units, pool) for _ in range(pace.walks - 1))]
            walkers = [Walker(own, 60, price, None, rng) for own in pools]
            anneal(walkers, frontier, price, 3e7, pace, 1)
            values.append(frontier.best(problem.sparsity) + search.constant)
        ends.append(np.mean(values))
    # single walks differ by chance
    assert ends[0] <= 1.02 * ends[1]


@pytest.mark.parametrize("seed", range(5))
def test_sizes_that_are_best_for_a_price(seed):
    rng = np.random.default_rng(seed)
    sizes = np.sort(rng.choice(40, 25, replace=False))
    values = 100.0 / (1.0 + sizes) + rng.uniform(0.0, 1.0, 25)
    found = best_for(sizes, values, 0.05, 2.0).tolist()
    for price in np.geomspace(0.05, 2.0, 200):
        assert sizes[np.argmin(values + price * sizes)] in found
    assert sizes[-1] in found
    wanted = {int(sizes[np.argmin(values + p * sizes)]) for p in np.geomspace(0.05, 2.0, 20_000)}
    assert set(found) == wanted | {int(sizes[-1])}


def test_a_walk_may_begin_at_more_columns_than_it_may_come_to():
    pool = pool_of(as_problem(*draw(40, 30, 6), alpha=1.0))
    walker = Walker(pool, 4, last_price(pool), None, np.random.default_rng(0))
    walker.go_to(np.arange(12))
    assert walker.support.tolist() == list(range(12))
    walker.walk(30.0, 20.0, 1e5, 0.1)
    assert walker.support.size <= 12
