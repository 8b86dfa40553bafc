"""Losses that are not quadratic: models propose, pools find what all columns hold, walks agree."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from blockl0 import L0Classifier, l0_path, solve
from blockl0.problem.problem import as_problem
from blockl0.search.search import make_search, refit_options
from grid import OTHERS
from targets import amounts, is_positive


def data(loss, m=120, n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n))
    X[np.abs(X) < 0.5] = 0.0
    eta = X[:, [3, n // 12, 2 * n // 3]] @ [1.5, -1.5, 1.0]
    if is_positive(loss):
        return X, amounts(loss, rng.poisson(np.exp(0.5 * eta)))
    if loss == "huber":
        return X, eta + 0.5 * rng.standard_t(2, m)
    return X, np.where(eta + rng.logistic(size=m) > 0, 1.0, -1.0)


@pytest.mark.parametrize("loss", OTHERS)
def test_pools_are_as_good_as_all_columns(loss, monkeypatch):
    X, y = data(loss)
    problem = {"loss": loss, "ridge": 0.1, "effort": "fast", "random_state": 0}
    pooled = solve(X, y, n_nonzero_coefs=4, **problem)
    sparse = solve(sp.csr_array(X), y, n_nonzero_coefs=4, **problem)
    assert sparse.objective == pytest.approx(pooled.objective, rel=1e-8)
    assert np.all(np.diff(pooled.history.objective) <= 0.0)
    monkeypatch.setattr("blockl0.search.local_search.WHOLE", 10_000)
    whole = solve(X, y, n_nonzero_coefs=4, **problem)
    assert pooled.objective <= 1.01 * whole.objective


def test_small_pools_prices_and_kept_columns(monkeypatch):
    monkeypatch.setattr("blockl0.search.local_search.POOL", 20)
    monkeypatch.setattr("blockl0.search.local_search.POOL_FACTOR", 2)
    X, y = data("logistic")
    options = {"loss": "logistic", "ridge": 0.1, "effort": "fast", "random_state": 0}
    kept = solve(X, y, n_nonzero_coefs=4, keep=[7, 9], **options)
    assert {7, 9} <= set(kept.support) and kept.n_nonzero == 4
    priced = solve(X, y, alpha=3.0, **options)
    assert {3, 50} <= set(priced.support)
    again = solve(X, y, alpha=3.0, init=priced.coef, **options)
    assert again.objective <= priced.objective * (1 + 1e-9)
    path = l0_path(X, y, n_nonzero_coefs=4, loss="logistic", ridge=0.1, random_state=0)
    assert np.all(np.diff(path.objective) <= 0.0)


def test_only_wide_problems_use_pools_and_shrinking_reads_the_support():
    X, y = data("logistic")
    search = make_search(
        as_problem(X, y, alpha=1.0, loss="logistic", ridge=0.1), refit_options()[0]
    )
    w = np.zeros(600)
    w[[3, 50, 400, 5]] = 1.0
    point = search.start(w)
    columns, inside = search.pool_around(point)
    assert columns.size < 600 and set(point.support) <= set(columns) and inside is not search
    reduced = search.shrink(point.w, 3)
    assert np.count_nonzero(reduced) == 3 and not set(np.flatnonzero(reduced)) - {3, 5, 50, 400}
    narrow = as_problem(X[:, :500], y, alpha=1.0, loss="logistic")
    narrow_search = make_search(narrow, refit_options()[0])
    start = narrow_search.start(narrow.zero())
    assert narrow_search.pool_around(start)[1] is narrow_search
    few = make_search(narrow, refit_options(pool=30)[0])
    assert few.pool_around(start)[0].size == 30


def test_estimators_with_an_intercept():
    X, y = data("logistic")
    model = L0Classifier(3, ridge=0.1, effort="fast", random_state=0).fit(X + 5.0, y)
    assert model.support_.tolist() == [3, 50, 400]


@pytest.mark.parametrize("seed", range(3))
def test_a_check_before_trials_spares_them_and_changes_nothing(seed, monkeypatch):
    X, y = data("logistic", seed=seed)
    options = {"loss": "logistic", "ridge": 0.1, "effort": "fast", "random_state": 0}
    first = solve(X, y, n_nonzero_coefs=3, **options)
    monkeypatch.setattr("blockl0.search.local_search.MOST_REFITS", -1)
    trials = solve(X, y, n_nonzero_coefs=3, **options)
    assert np.array_equal(first.support, trials.support)
    assert first.objective == pytest.approx(trials.objective, rel=1e-11)


@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_walks_set_out_from_a_random_part_of_the_best_support(loss):
    X, y = data("logistic", n=40)
    y = (y + 1.0) / 2.0 if loss == "softmax" else y
    problem = as_problem(X, y, loss=loss, ridge=0.1, n_nonzero_coefs=6, keep=[7])
    search, w = make_search(problem, refit_options()[0]), problem.zero()
    w[[1, 3, 7, 11, 12, 30]] = 1.0
    rng, point = np.random.default_rng(0), search.start(w)
    parts = [search.start(search._part_of(point.w, rng)) for _ in range(60)]
    sizes = {part.n_nonzero for part in parts}
    assert sizes <= set(range(1, 7)) and len(sizes) > 3
    for part in parts:
        assert 7 in part.support and set(part.support) <= set(point.support)
        # it is a fit, and one of fewer columns
        assert part.objective >= point.objective - 1e-9
        assert part.objective == pytest.approx(search.start(part.w).objective, rel=1e-12)


@pytest.mark.parametrize("loss", OTHERS)
@pytest.mark.parametrize("form", [{"n_nonzero_coefs": 6}, {"alpha": 1.0}])
def test_more_effort_is_never_worse(loss, form):
    X, y = data(loss, m=60, n=40, seed=1)
    efforts = (0, 1, 2, 4, 16)
    found = [
        solve(X, y, loss=loss, ridge=0.1, random_state=0, effort=e, **form).objective
        for e in efforts
    ]
    assert np.all(np.diff(found) <= 1e-9 * abs(found[0]))


def test_walks_that_agree_end_a_run_before_many_rounds_bring_nothing():
    X, y = data("logistic", m=400, n=40)
    options = {"loss": "logistic", "ridge": 0.1, "random_state": 0, "n_nonzero_coefs": 5}
    assert solve(X, y, **options).n_iter < 14
