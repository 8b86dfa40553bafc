"""Walks from nothing: what they are, when they agree; threads change nothing."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from itertools import combinations, pairwise

import numpy as np
import pytest

from blockl0 import L0Regressor, Status, l0_path, solve
from blockl0.problem.fits import least_squares_on
from blockl0.problem.problem import as_problem
from blockl0.run import begin
from blockl0.search.frontier import Frontier
from blockl0.search.quadratic_search import QuadraticSearch
from blockl0.search.search import refit_options
from blockl0.search.threads import in_threads
from blockl0.search.walks import AGREED, FULL, PRICED, ROUNDS_EACH, IndependentWalks, WalkEnd
from blockl0.validate import count_jobs
from linear_data import Linear

noisy = Linear(60, 200, dict(enumerate(np.linspace(1.0, 0.2, 30))), noise=3.0, common=0.5)
OPTIONS = refit_options()[0]


def search_of(X, y, **form):
    """A search, its run, and a settled point."""
    problem = as_problem(X, y, **form)
    search, run = QuadraticSearch(problem, OPTIONS), begin(problem)
    return search, run, search.settle(search.start(problem.zero()), run)


def ends_of(search, run, point, n_rounds, seed=0):
    """The walks of some rounds, and where each has ended."""
    walks, ends = IndependentWalks(search, run, np.random.default_rng(seed), 16, Frontier()), []
    take = walks._take

    def note(end, best):
        ends.append(end)
        return take(end, best)

    walks._take = note
    for _ in range(n_rounds):
        point = walks.advance(point)
    return walks, ends


FORMS = [{"n_nonzero_coefs": 6}, {"alpha": 1.0}, {"alpha": 0.5, "n_nonzero_coefs": 5}]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("more", [{}, {"ridge": 0.5, "keep": [3, 11]}])
def test_an_end_is_a_fit_that_no_single_change_improves(form, more):
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((40, 25)), rng.standard_normal(40)
    weights, keep = rng.uniform(0.5, 2.0, 40), set(more.get("keep", ()))
    search, run, point = search_of(X, y, sample_weight=weights, **form, **more)
    problem = search.problem
    price, budget = problem.sparsity
    # of 25 columns the pool of the first round is all of them, too
    for support, objective in ends_of(search, run, point, 3)[1]:
        inside, outside = set(support), set(range(25)) - set(support)
        assert keep <= inside and len(inside) <= budget

        def value(chosen):
            w = least_squares_on(problem, np.array(sorted(chosen), dtype=np.int64))
            return problem.smooth(w) + price * len(chosen)

        assert objective == pytest.approx(value(inside), rel=1e-10)
        near = [inside - {j} | {i} for j in inside - keep for i in outside]
        near += [inside - {j} for j in inside - keep]
        near += [inside | {i} for i in outside] if len(inside) < budget else []
        assert min(map(value, near)) >= objective - search.tolerance


def test_walks_of_a_round_differ_and_the_seed_makes_them():
    X, y = noisy(seed=0)
    search, run, point = search_of(X, y, n_nonzero_coefs=30)
    one, again, other = (ends_of(search, run, point, 3, seed)[1] for seed in (0, 0, 1))
    for end, same in zip(one, again, strict=True):
        assert np.array_equal(end.support, same.support) and end.objective == same.objective
    assert len({end.support.tobytes() for end in one}) > 1
    assert {end.objective for end in one} != {end.objective for end in other}


@pytest.mark.parametrize("form", [{"n_nonzero_coefs": 4}, {"alpha": 0.5}])
def test_most_walks_on_few_columns_end_at_the_optimum(form):
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((30, 12)), rng.standard_normal(30)
    search, run, point = search_of(X, y, **form)
    problem = search.problem
    least = min(
        problem.smooth(least_squares_on(problem, np.array(s, dtype=np.int64)))
        + problem.sparsity.price * len(s)
        for k in range(min(problem.sparsity.budget, 12) + 1)
        for s in combinations(range(12), k)
    )
    ends = [end.objective for end in ends_of(search, run, point, 6)[1]]
    assert np.sum(np.isclose(ends, least, rtol=1e-9)) >= 8


def test_the_frontier_holds_the_fits_of_what_was_met():
    X, y = noisy(seed=1)
    search, run, point = search_of(X, y, alpha=6.0)
    frontier = ends_of(search, run, point, 4)[0].frontier
    sizes = [k for k in range(60) if k in frontier]
    assert len(sizes) > 5
    for k in sizes:
        w = least_squares_on(search.problem, frontier.support(k))
        value = frontier.value(k) + search.constant
        assert value == pytest.approx(search.problem.smooth(w), rel=1e-9)


BOTH = [
    {"n_nonzero_coefs": 12},
    {"n_nonzero_coefs": FULL + 2},
    {"alpha": 40.0},
    {"alpha": 40.0, "n_nonzero_coefs": 8},
    {"alpha": 0.05},
]
"""Independent walks and staged ones, in each form."""


@pytest.mark.parametrize("form", BOTH)
def test_the_answer_does_not_depend_on_the_number_of_threads(form):
    X, y = noisy(120, 200, seed=3)
    answers = [solve(X, y, random_state=0, effort=4, n_jobs=n, **form) for n in (None, 2, -1)]
    one, *others = answers
    large = FULL if "alpha" not in form else PRICED
    assert (one.n_nonzero >= large) == (form in (BOTH[1], BOTH[4]))
    # the same steps on the same data: to the last bit
    for other in others:
        assert np.array_equal(one.coef, other.coef) and one.n_passes == other.n_passes
        assert np.array_equal(one.history.objective, other.history.objective)


@pytest.mark.parametrize("form", BOTH)
def test_more_effort_goes_through_the_same_points(form):
    X, y = noisy(120, 200, seed=4)
    histories = [
        solve(X, y, random_state=1, effort=effort, **form).history.objective
        for effort in (0, 1, 3, 16, 40)
    ]
    for less, more in pairwise(histories):
        assert more.size >= less.size
        assert np.array_equal(more[: less.size], less)


def test_ends_at_the_best_point_are_counted_until_another_is_better():
    X, y = noisy(seed=5)
    search, run, settled = search_of(X, y, n_nonzero_coefs=10)
    point = search.fit(np.arange(100, 110), 0)
    walks = IndependentWalks(search, run, np.random.default_rng(0), 16, Frontier())
    here, above = (WalkEnd(point.support, f * point.objective) for f in (1.0, 1.1))
    for end in (here, above._replace(support=np.arange(10)), here):
        assert walks._take(end, point) is point
    assert walks._ends._agreed == 2 and not walks.are_over
    end = WalkEnd(settled.support, settled.objective)
    found = walks._take(end, point)
    assert found.objective < point.objective and walks._ends._agreed == 1
    while not walks.are_over:
        assert walks._take(end, found) is found
    # one more than where all have ended at one point
    assert walks._ends._agreed == AGREED + 16 // ROUNDS_EACH + 1


def test_agreement_ends_a_search_that_effort_would_go_on_with():
    X, y = Linear(80, 100, {0: 3.0, 1: -2.0, 2: 1.0}, noise=1.0)(seed=0)
    long = solve(X, y, n_nonzero_coefs=6, effort=200, random_state=0)
    assert long.status is Status.CONVERGED and long.n_iter < 100


def test_walks_of_a_round_are_made_at_the_same_time(monkeypatch):
    meet, seen = threading.Barrier(2, timeout=20), []
    descend = IndependentWalks._descend

    def walk(self, *given):
        # passed by both or by neither
        meet.wait()
        seen.append(threading.current_thread())
        return descend(self, *given)

    monkeypatch.setattr(IndependentWalks, "_descend", walk)
    X, y = noisy(seed=3)
    solve(X, y, n_nonzero_coefs=12, effort=1, random_state=0, n_jobs=2)
    assert len(seen) >= 4 and threading.main_thread() not in seen


def test_columns_of_which_none_may_leave_are_not_walked():
    X, y = noisy(seed=7)
    keep = [0, 1, 2]
    search, run, point = search_of(X, y, n_nonzero_coefs=3, keep=keep)
    assert ends_of(search, run, point, 1)[1] == []
    assert solve(X, y, n_nonzero_coefs=3, keep=keep, random_state=0).support.tolist() == keep


@pytest.mark.parametrize("scale", [1e-100, 1e-8, 1e8, 1e100])
def test_units_change_no_walk(scale):
    X, y = noisy(seed=8)
    plain = solve(X, y, n_nonzero_coefs=32, random_state=0)
    scaled = solve(X, y * scale, n_nonzero_coefs=32, random_state=0)
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
    cut = solve(X, y, n_nonzero_coefs=32, effort=10**6, random_state=0, time_limit=0.5)
    assert cut.status is Status.TIME_LIMIT and cut.n_nonzero == 32
    calls = []

    def stop(progress):
        calls.append(progress.objective)
        if len(calls) == 4:
            raise KeyboardInterrupt

    result = solve(X, y, n_nonzero_coefs=32, random_state=0, callback=stop, n_jobs=2)
    assert result.status is Status.INTERRUPTED
    assert result.objective <= min(calls) * (1.0 + 1e-12)


def test_a_time_limit_holds_and_paths_and_estimators_take_it():
    X, y = noisy(seed=2)
    cut = solve(X, y, n_nonzero_coefs=12, effort=10**6, random_state=0, n_jobs=2, time_limit=1.0)
    assert cut.status is Status.TIME_LIMIT and cut.seconds < 10.0
    paths = [l0_path(X, y, n_nonzero_coefs=3, effort=18, random_state=0, n_jobs=n) for n in (1, 2)]
    assert np.array_equal(paths[0].objective, paths[1].objective)
    models = [L0Regressor(12, effort=18, random_state=0, n_jobs=n).fit(X, y) for n in (None, 2)]
    assert np.array_equal(models[0].coef_, models[1].coef_)


def test_jobs_are_counted_as_scikit_learn_counts_them(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    assert [count_jobs(n) for n in (None, 1, 3, -1, -2, -20)] == [1, 1, 3, 8, 7, 1]
