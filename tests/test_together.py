"""The second walk of long runs: the same answer on any number of threads, and never a worse one."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from blockl0 import L0Regressor, Status, l0_path, solve
from blockl0.problem.problem import as_problem
from blockl0.refit.quadratic_search import QuadraticSearch
from blockl0.refit.rounds import make_search, refit_options
from blockl0.validate import count_jobs
from linear_data import Linear

noisy = Linear(60, 200, dict(enumerate(np.linspace(1.0, 0.2, 30))), noise=3.0, common=0.5)
LONG = 26
"""Rounds without improvement: ten of them are made together."""


def answers(n_jobs, **options):
    X, y = noisy(seed=3)
    return solve(X, y, effort=LONG, random_state=0, n_jobs=n_jobs, **options)


@pytest.mark.parametrize("options", [{"n_nonzero_coefs": 12}, {"alpha": 4.0}])
def test_the_answer_does_not_depend_on_the_number_of_threads(options):
    one, two, all_cores = (answers(n_jobs, **options) for n_jobs in (None, 2, -1))
    # the same steps on the same data: to the last bit
    for other in (two, all_cores):
        assert np.array_equal(one.coef, other.coef) and one.n_passes == other.n_passes
        assert np.array_equal(one.history.objective, other.history.objective)


def test_other_losses_too():
    X, y = noisy(50, 40, seed=1)
    labels = np.where(y > np.median(y), 1.0, -1.0)
    options = {"n_nonzero_coefs": 6, "loss": "logistic", "ridge": 0.1, "random_state": 0}
    one, two = (solve(X, labels, effort=LONG, n_jobs=n, **options) for n in (1, 2))
    assert np.array_equal(one.coef, two.coef)


@pytest.mark.parametrize("seed", range(3))
def test_it_is_never_worse_than_the_first_search_alone(seed, monkeypatch):
    X, y = noisy(seed=seed)
    options = {"alpha": 4.0, "effort": LONG, "random_state": seed}
    both = solve(X, y, **options)
    monkeypatch.setattr("blockl0.refit.together.FROM", 10**9)
    assert both.objective <= solve(X, y, **options).objective


def test_two_searches_run_at_the_same_time(monkeypatch):
    meet, seen = threading.Barrier(2, timeout=20), set()
    kick_round = QuadraticSearch.kick_round

    def kick(self, *given, **options):
        if threading.current_thread() is not threading.main_thread():
            # passed by both or by neither
            meet.wait()
            seen.add(id(self))
        return kick_round(self, *given, **options)

    monkeypatch.setattr(QuadraticSearch, "kick_round", kick)
    X, y = noisy(seed=3)
    # 15 is a round elsewhere, and 17 end it: one round is made by both
    solve(X, y, alpha=12.0, effort=17, random_state=0, n_jobs=2)
    assert len(seen) == 2


def test_ctrl_c_on_threads_returns_the_best_point(monkeypatch):
    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr("concurrent.futures.Future.result", interrupted)
    result = answers(2, n_nonzero_coefs=12)
    monkeypatch.undo()
    assert result.status is Status.INTERRUPTED and result.n_nonzero == 12
    assert result.objective <= answers(1, n_nonzero_coefs=12).history.objective[0]


def test_a_twin_shares_nothing_that_changes():
    X, y = noisy(seed=0)
    search = make_search(as_problem(X, y, n_nonzero_coefs=5), refit_options()[0])
    twin = search.twin()
    assert twin.tally is not search.tally
    assert not np.shares_memory(search.whole_pool().table.gram, twin.whole_pool().table.gram)


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
