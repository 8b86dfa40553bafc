"""Annealings down to a price: what they note, against fits, enumeration and descents."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from blockl0 import kernels, solve
from blockl0.problem.fits import least_squares_on
from blockl0.problem.problem import Sparsity, as_problem
from blockl0.run import begin
from blockl0.search.annealing import (
    FIRST,
    LONG,
    SPAN,
    Walker,
    anneal,
    first_price,
    last_price,
    most_columns,
    work_of,
)
from blockl0.search.frontier import Frontier
from blockl0.search.quadratic_search import QuadraticSearch
from blockl0.search.search import refit_options

OPTIONS = refit_options()[0]


def draw(m, n, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n))
    return X, X[:, : n // 3].sum(axis=1) + 2.0 * rng.standard_normal(m)


def annealed(problem, seed=0, work=2e6, most=None, run=None, span=SPAN, jobs=1):
    """The frontier of an annealing to the price of the problem, and the search that made it."""
    search, frontier = QuadraticSearch(problem, OPTIONS), Frontier()
    pool = search.make_pool(search.start(problem.zero()), run)
    most = problem.n_features if most is None else most
    rng = np.random.default_rng(seed)
    pace = (LONG if seed % 2 else FIRST)._replace(span=span)
    pools = [pool, *(search.pool_like(pool, run) for _ in range(pace.walks - 1))]
    walkers = [Walker(own, most, last_price(pool), run, rng) for own in pools]
    anneal(walkers, frontier, last_price(pool), work, pace, jobs)
    return search, pool, frontier


def noted(frontier, n):
    return [k for k in range(n + 1) if k in frontier]


@pytest.mark.parametrize("form", [{"alpha": 0.5}, {"n_nonzero_coefs": 6}, {"alpha": 3.0}])
@pytest.mark.parametrize("seed", range(3))
def test_what_is_noted_is_the_fit_of_its_support(form, seed):
    X, y = draw(30, 12, seed)
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, 30)
    problem = as_problem(X, y, ridge=0.1, keep=[11], sample_weight=weights, **form)
    search, pool, frontier = annealed(problem, seed)
    before, price = frontier.best(problem.sparsity), last_price(pool)
    walker = Walker(pool, 12, price, None, np.random.default_rng(seed))
    start = frontier.support(frontier.best_size(Sparsity(5.0 * price, 12)))
    walker.walk_from(start, 5.0 * price, price, 1e6, 0.1)
    walker.offer_to(frontier, (price, SPAN * price))
    assert frontier.best(problem.sparsity) <= before
    sizes = noted(frontier, 12)
    assert sizes
    assert max(sizes) <= problem.sparsity.budget
    for k in sizes:
        support = frontier.support(k)
        assert 11 in support
        assert support.size == np.unique(support).size == k
        value = problem.smooth(least_squares_on(problem, support)) - search.constant
        assert frontier.value(k) == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_of_few_columns_it_meets_the_best_of_every_size(seed):
    X, y = draw(25, 9, seed)
    problem = as_problem(X, y, alpha=1e-3)
    # of every size where all prices are served alike, as for a path; else of those best for a price
    search, _, every = annealed(problem, seed, work=5e6, span=np.inf)
    some = annealed(problem, seed, work=5e6)[2]
    best = {}
    for k in range(1, 9):
        supports = combinations(range(9), k)
        best[k] = min(problem.smooth(least_squares_on(problem, np.array(s))) for s in supports)
        assert every.value(k) + search.constant == pytest.approx(best[k], rel=1e-9)
        assert k not in some or some.value(k) == pytest.approx(every.value(k), rel=1e-9)
    for price in np.geomspace(1e-3, 1e-3 * SPAN, 30):
        least = min(best[k] + price * k for k in best)
        found = some.best(Sparsity(price, 8)) + search.constant
        assert found == pytest.approx(least, rel=1e-9)


def test_the_seed_makes_the_walk():
    problem = as_problem(*draw(40, 60, 1), alpha=0.5)
    ends = []
    for seed in (0, 0, 1):
        pool = annealed(problem, seed)[1]
        walker = Walker(pool, 60, last_price(pool), None, np.random.default_rng(seed))
        walker.walk(2.0, 0.5, 1e5, 0.1)
        ends.append(walker.support.tolist())
    assert ends[0] == ends[1]
    walks = [annealed(problem, seed, work=2e5)[2] for seed in (0, 0, 1)]
    values = [[walk.value(k) for k in range(61)] for walk in walks]
    assert values[0] == values[1]
    assert values[0] != values[2]


@pytest.mark.parametrize("seed", [1, 3])
def test_threads_make_the_same_walks(seed):
    problem = as_problem(*draw(40, 60, seed), alpha=0.5)
    one, four = (annealed(problem, seed, jobs=jobs)[2] for jobs in (1, 4))
    assert [one.value(k) for k in range(61)] == [four.value(k) for k in range(61)]


@pytest.mark.parametrize(("n", "seed"), [(60, 0), (60, 1), (16, 2)])
def test_what_has_left_stays_away_for_some_moves(n, seed, monkeypatch):
    monkeypatch.setattr("blockl0.search.annealing.SLICE", 1.0)
    problem = as_problem(*draw(40, n, seed), alpha=0.5)
    search = QuadraticSearch(problem, OPTIONS)
    pool = search.make_pool(search.start(problem.zero()))
    walker = Walker(pool, n, last_price(pool), None, np.random.default_rng(seed))
    plan, away = walker._cooling.plan, walker._cooling.away
    anneal_once, n_away, rests = kernels.anneal, [], set()

    def look(*args):
        end = anneal_once(*args)
        resting = away[0, (away[0] >= 0) & (away[1] > plan[kernels.MOVES])]
        assert not set(pool.columns[resting]) & set(walker.support)
        n_away.append(resting.size)
        rests.update((away[1] - plan[kernels.MOVES]).tolist())
        return end

    monkeypatch.setattr(kernels, "anneal", look)
    walker.walk(5.0, 0.5, 1e6, 1.0)
    assert plan[kernels.MOVES] > 100
    # some are away, never most of those that could come, and none for long
    assert 0 < max(n_away) <= n // 4
    assert max(rests) < kernels.MOST_AWAY


def test_slices_of_a_walk_are_the_walk(monkeypatch):
    problem = as_problem(*draw(40, 60, 2), alpha=0.5)
    whole = annealed(problem)[2]
    monkeypatch.setattr("blockl0.search.annealing.SLICE", 1e4)
    sliced = annealed(problem)[2]
    assert [whole.value(k) for k in range(61)] == [sliced.value(k) for k in range(61)]


def test_no_support_has_more_columns_than_it_may():
    problem = as_problem(*draw(60, 80, 3), alpha=1e-3)
    assert max(noted(annealed(problem, most=17)[2], 80)) == 17
    capped = as_problem(*draw(60, 80, 3), alpha=1e-3, n_nonzero_coefs=9)
    assert max(noted(annealed(capped)[2], 80)) == 9


def test_without_time_nothing_is_walked():
    problem = as_problem(*draw(40, 60, 4), alpha=0.5)
    frontier = annealed(problem, run=begin(problem, time_limit=1e-9))[2]
    assert noted(frontier, 60) == []


def test_a_price_that_is_too_high_is_not_walked_to():
    problem = as_problem(*draw(40, 60, 5), alpha=1e6)
    _, pool, frontier = annealed(problem)
    assert not last_price(pool) < first_price(pool)
    assert noted(frontier, 60) == []


def test_dependent_columns_stay_apart():
    X, y = draw(30, 20, 6)
    X[:, 10:] = X[:, :10] @ np.random.default_rng(0).integers(-1, 2, (10, 10))
    search, pool, frontier = annealed(as_problem(X, y, alpha=1e-6))
    assert max(noted(frontier, 20)) <= 10
    assert pool.drift <= 1e-6
    for k in noted(frontier, 20):
        w = np.linalg.lstsq(X[:, frontier.support(k)], y, rcond=None)[0]
        left = y - X[:, frontier.support(k)] @ w
        assert frontier.value(k) + search.constant == pytest.approx(0.5 * left @ left, rel=1e-7)


def test_work_and_size_are_bounded():
    pool = annealed(as_problem(*draw(20, 30, 7), alpha=0.5))[1]
    pace = FIRST._replace(moves=100)
    assert work_of(pool, 10, pace) == 100 * 30 * 10
    assert work_of(pool, 0, pace) == 100 * 30
    assert work_of(pool, 10**9, pace) == FIRST.most_work <= 1e10
    assert work_of(pool, 10**9, LONG) <= 1e11
    assert most_columns(0) >= 1
    assert most_columns(1000) <= 1200


def test_numbers_by_chance_are_even():
    draw_chance = kernels.draw_chance
    state = np.array([12345], dtype=np.uint64)
    x = np.array([draw_chance.py_func(state) for _ in range(4000)])
    assert x.min() >= 0.0
    assert x.max() < 1.0
    assert abs(x.mean() - 0.5) < 0.03
    assert abs(np.corrcoef(x[1:], x[:-1])[0, 1]) < 0.05


@pytest.mark.parametrize("k", [70, 90])
def test_a_large_budget_finds_the_planted_columns(k):
    rng = np.random.default_rng(k)
    X = rng.standard_normal((220, 300))
    y = X[:, :k] @ rng.choice([-1.0, 1.0], k) + 1e-3 * rng.standard_normal(220)
    result = solve(X, y, n_nonzero_coefs=k, random_state=0)
    assert result.support.tolist() == list(range(k))


def test_more_effort_is_never_worse_on_a_large_support():
    rng = np.random.default_rng(8)
    X, y = rng.standard_normal((100, 300)), 10.0 * rng.standard_normal(100)
    for form in ({"alpha": 5.0}, {"n_nonzero_coefs": 66}):
        ends = [solve(X, y, effort=e, random_state=0, **form).objective for e in (0, 2)]
        assert ends[0] >= ends[1]
        again = solve(X, y, effort="fast", random_state=0, **form)
        assert again.objective == ends[0]
