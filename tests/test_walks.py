"""Walks from nothing under a budget: what they are, when they agree; threads change nothing."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from itertools import combinations, pairwise

import numpy as np
import pytest

from blockl0 import Status, solve
from blockl0.problem.fits import least_squares_on
from blockl0.problem.problem import as_problem
from blockl0.refit.annealing import Landing, walk_at_size
from blockl0.refit.beside import FULL
from blockl0.refit.quadratic_search import QuadraticSearch
from blockl0.refit.rounds import refit_options
from blockl0.refit.threads import in_threads
from blockl0.refit.walks import AGREED, KICKED, ROUNDS_EACH, Walks
from blockl0.run import begin
from linear_data import Linear

noisy = Linear(60, 200, dict(enumerate(np.linspace(1.0, 0.2, 30))), noise=3.0, common=0.5)
OPTIONS = refit_options()[0]


def search_of(X, y, k, **form):
    """A search, its run, and a settled point."""
    problem = as_problem(X, y, n_nonzero_coefs=k, **form)
    search, run, rng = QuadraticSearch(problem, OPTIONS), begin(problem), np.random.default_rng(0)
    return search, run, search.settle(search.start(problem.zero()), run, rng)


def rngs(n):
    return [np.random.default_rng(seed) for seed in range(n)]


@pytest.mark.parametrize("form", [{}, {"ridge": 0.5, "keep": [3, 11]}])
def test_a_landing_is_a_fit_that_no_exchange_improves(form):
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((40, 25)), rng.standard_normal(40)
    weights = rng.uniform(0.5, 2.0, 40)
    search, run, point = search_of(X, y, 6, sample_weight=weights, **form)
    for walk in search.set_out(point, run, rngs(3)):
        support, objective = walk()
        assert support.size == 6 and set(form.get("keep", ())) <= set(support)
        w = least_squares_on(search.problem, support)
        assert objective == pytest.approx(search.problem.objective(w), rel=1e-10)
        for leaves in set(support) - set(form.get("keep", ())):
            for enters in set(range(25)) - set(support):
                other = np.sort([*(set(support) - {leaves}), enters])
                value = search.problem.objective(least_squares_on(search.problem, other))
                assert value >= objective - search.tolerance


def test_walks_know_nothing_of_where_the_search_is():
    X, y = noisy(seed=0)
    search, run, point = search_of(X, y, 30)
    here = [walk() for walk in search.set_out(point, run, rngs(4))]
    again = [walk() for walk in reversed(search.set_out(point, run, rngs(4)))][::-1]
    for one, other in zip(here, again, strict=True):
        assert np.array_equal(one.support, other.support) and one.objective == other.objective
    assert len({landing.support.tobytes() for landing in here}) > 1


def test_most_walks_on_few_columns_end_at_the_optimum():
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((30, 12)), rng.standard_normal(30)
    search, run, point = search_of(X, y, 4)
    problem = search.problem
    least = min(
        problem.objective(least_squares_on(problem, np.array(s)))
        for s in combinations(range(12), 4)
    )
    ends = [walk().objective for walk in search.set_out(point, run, rngs(10))]
    assert np.sum(np.isclose(ends, least, rtol=1e-9)) >= 8


@pytest.mark.parametrize("k", [12, KICKED + 4])
def test_the_answer_does_not_depend_on_the_number_of_threads(k):
    X, y = noisy(seed=3)
    one, two = (solve(X, y, n_nonzero_coefs=k, random_state=0, n_jobs=n) for n in (1, 2))
    # the same steps on the same data: to the last bit
    assert np.array_equal(one.coef, two.coef)
    assert np.array_equal(one.history.objective, two.history.objective)


@pytest.mark.parametrize("k", [8, KICKED + 4, FULL + 2])
def test_more_effort_goes_through_the_same_points(k):
    X, y = noisy(120, 200, seed=4)
    histories = [
        solve(X, y, n_nonzero_coefs=k, random_state=1, effort=effort).history.objective
        for effort in (0, 1, 3, 16, 40)
    ]
    for less, more in pairwise(histories):
        assert more.size >= less.size
        assert np.array_equal(more[: less.size], less)


def test_landings_at_the_best_point_are_counted_until_another_is_better():
    X, y = noisy(seed=5)
    search, run, _ = search_of(X, y, 10)
    point = search.fit(np.arange(100, 110), 0)
    walks = Walks(search, run, np.random.default_rng(0), 16)
    walks.begin(point)
    assert walks.are_made and not walks.agree
    here = Landing(point.support, point.objective)
    rng = np.random.default_rng(0)
    above = Landing(np.arange(10), 1.1 * point.objective)
    for landing in (here, above, here):
        assert walks._count(landing, point, rng) is point
    assert walks._agreed == 2
    (walk,) = search.set_out(point, run, rngs(1))
    landing = walk()
    found = walks._count(landing, point, rng)
    assert found.objective < point.objective and walks._agreed == 1
    while not walks.agree:
        assert walks._count(landing, found, rng) is found
    assert walks._agreed == AGREED + 16 // ROUNDS_EACH


def test_agreement_ends_a_search_that_effort_would_go_on_with():
    X, y = Linear(80, 100, {0: 3.0, 1: -2.0, 2: 1.0}, noise=1.0)(seed=0)
    long = solve(X, y, n_nonzero_coefs=6, effort=200, random_state=0)
    assert long.status is Status.CONVERGED and long.n_iter < 100


@pytest.mark.parametrize("form", [{"alpha": 3.0, "n_nonzero_coefs": 20}, {"n_nonzero_coefs": FULL}])
def test_at_a_price_or_on_large_supports_there_are_no_such_walks(form):
    X, y = noisy(120, 200, seed=6)
    problem = as_problem(X, y, **form)
    search, run = QuadraticSearch(problem, OPTIONS), begin(problem)
    walks = Walks(search, run, np.random.default_rng(0), 16)
    walks.begin(search.start(problem.zero()))
    assert not walks.are_made


def test_kicks_and_a_walk_are_made_at_the_same_time(monkeypatch):
    meet, seen = threading.Barrier(2, timeout=20), []
    kick_round = QuadraticSearch.kick_round

    def kick(self, *given, **options):
        if threading.current_thread() is not threading.main_thread():
            meet.wait()
            seen.append("kicks")
        return kick_round(self, *given, **options)

    def walk(walker, *given):
        meet.wait()
        seen.append("walk")
        return walk_at_size(walker, *given)

    monkeypatch.setattr(QuadraticSearch, "kick_round", kick)
    monkeypatch.setattr("blockl0.refit.quadratic_search.walk_at_size", walk)
    X, y = noisy(seed=3)
    solve(X, y, n_nonzero_coefs=12, effort=2, random_state=0, n_jobs=2)
    assert seen.count("kicks") == seen.count("walk") > 0


def test_columns_of_which_none_may_leave_are_not_walked():
    X, y = noisy(seed=7)
    keep = [0, 1, 2]
    search, run, point = search_of(X, y, 3, keep=keep)
    assert search.set_out(point, run, rngs(2)) == []
    assert solve(X, y, n_nonzero_coefs=3, keep=keep, random_state=0).support.tolist() == keep


@pytest.mark.parametrize("scale", [1e-100, 1e-8, 1e8, 1e100])
def test_units_change_no_walk(scale):
    X, y = noisy(seed=8)
    plain = solve(X, y, n_nonzero_coefs=KICKED, random_state=0)
    scaled = solve(X, y * scale, n_nonzero_coefs=KICKED, random_state=0)
    assert np.array_equal(plain.support, scaled.support)
    assert scaled.objective == pytest.approx(plain.objective * scale**2, rel=1e-9)


def test_calls_in_threads_see_the_clock_of_the_run():
    clock = ContextVar("clock", default="none")
    clock.set("run")
    for n_threads in (1, 2):
        assert in_threads([clock.get, clock.get], n_threads, None) == ["run", "run"]


def test_ctrl_c_in_one_thread_ends_the_others():
    problem = as_problem(*noisy(seed=0), n_nonzero_coefs=3)
    run, ended = begin(problem, time_limit=60.0), []

    def stop():
        raise KeyboardInterrupt

    def walk():
        while run.seconds_left > 0.0:
            pass
        ended.append(True)

    with pytest.raises(KeyboardInterrupt):
        in_threads([stop, walk], 2, run)
    assert ended and run.elapsed < 30.0


def test_time_and_ctrl_c_end_walks():
    X, y = noisy(seed=2)
    cut = solve(X, y, n_nonzero_coefs=KICKED, effort=10**6, random_state=0, time_limit=0.5)
    assert cut.status is Status.TIME_LIMIT and cut.n_nonzero == KICKED
    calls = []

    def stop(progress):
        calls.append(progress.objective)
        if len(calls) == 4:
            raise KeyboardInterrupt

    result = solve(X, y, n_nonzero_coefs=KICKED, random_state=0, callback=stop, n_jobs=2)
    assert result.status is Status.INTERRUPTED
    assert result.objective <= min(calls) * (1.0 + 1e-12)
