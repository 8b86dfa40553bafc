"""Many columns and a loss that is not quadratic: pools find what a search of all columns finds."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from blockl0 import L0Classifier, l0_path, solve
from blockl0.problem.problem import as_problem
from blockl0.search.pooled_search import PooledSearch
from blockl0.search.search import make_search, refit_options
from grid import OTHERS
from targets import amounts, is_positive


def data(loss, m=120, n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n))
    X[np.abs(X) < 0.5] = 0.0
    eta = X[:, [3, 50, 400]] @ [1.5, -1.5, 1.0]
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
    monkeypatch.setattr("blockl0.search.search.WIDE", 10_000)
    whole = solve(X, y, n_nonzero_coefs=4, **problem)
    assert pooled.objective <= 1.01 * whole.objective


def test_small_pools_prices_and_kept_columns(monkeypatch):
    monkeypatch.setattr("blockl0.search.pooled_search.POOL", 20)
    monkeypatch.setattr("blockl0.search.pooled_search.POOL_FACTOR", 2)
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
    options = refit_options()[0]
    wide = make_search(as_problem(X, y, alpha=1.0, loss="logistic", ridge=0.1), options)
    assert isinstance(wide, PooledSearch)
    narrow = as_problem(X[:, :500], y, alpha=1.0, loss="logistic")
    assert not isinstance(make_search(narrow, options), PooledSearch)
    w = np.zeros(600)
    w[[3, 50, 400, 5]] = 1.0
    reduced = wide.shrink(wide.start(w).w, 3)
    assert np.count_nonzero(reduced) == 3 and not set(np.flatnonzero(reduced)) - {3, 5, 50, 400}


def test_estimators_with_an_intercept():
    X, y = data("logistic")
    model = L0Classifier(3, ridge=0.1, effort="fast", random_state=0).fit(X + 5.0, y)
    assert model.support_.tolist() == [3, 50, 400]


@pytest.mark.parametrize("seed", range(3))
def test_a_check_before_trials_spares_them_and_changes_nothing(seed, monkeypatch):
    X, y = data("logistic", seed=seed)
    options = {"loss": "logistic", "ridge": 0.1, "effort": "fast", "random_state": 0}
    first = solve(X, y, n_nonzero_coefs=3, **options)
    monkeypatch.setattr(PooledSearch, "_is_end", lambda self, incumbent, run: False)
    trials = solve(X, y, n_nonzero_coefs=3, **options)
    assert np.array_equal(first.support, trials.support)
    assert first.objective == pytest.approx(trials.objective, rel=1e-11)
