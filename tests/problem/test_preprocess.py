"""The intercept: implicit centring equals explicit centring, and the answers equal enumeration."""

from __future__ import annotations

import tracemalloc
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from blockl0.data.centred import Centered
from blockl0.data.design import as_design
from blockl0.losses import LOSSES, best_intercept
from blockl0.problem.preprocess import apply, drop_unweighted
from blockl0.problem.problem import as_problem
from blockl0.run import Run
from blockl0.search.search import solve_refit
from grid import EACH_TARGET, ONE_OUTPUT, SHIFTING
from targets import amounts, as_target, is_positive, takes_labels

M, N = 23, 17


@pytest.fixture(params=["dense", "csc"])
def pair(request, rng):
    X = rng.standard_normal((M, N)) * (rng.random((M, N)) < 0.4) + (rng.random(N) < 0.3)
    X[:, 5] = 0.0
    X[:, 6] = 3.3  # constant
    weights = rng.random(M) + 0.1
    centred = X - np.average(X, axis=0, weights=weights)
    centred[:, 5:7] = 0.0
    base = as_design(X if request.param == "dense" else sp.csc_array(X))
    return centred, Centered(base, weights), weights


@pytest.mark.parametrize("idx", [[], [5], [2, 0, 6], list(range(N))])
def test_every_operation_equals_explicit_centring(pair, rng, idx):
    X, design, weights = pair
    X_B = X[:, np.asarray(idx, dtype=int)]
    w, r, v, V = rng.random(N), rng.random(M), rng.random(len(idx)), rng.random((M, 3))

    def allclose(a, b):
        np.testing.assert_allclose(a, b, atol=1e-12)

    assert design.shape == (M, N) and design.nbytes > 0
    allclose(design.matvec(w), X @ w)
    allclose(design.rmatvec(r), X.T @ r)
    allclose(design.columns(idx), X_B)
    allclose(design.column_matvec(idx, v), X_B @ v)
    allclose(design.cross(V, slice(2, 9)), V.T @ X[:, 2:9])
    for D in (None, weights):
        W = np.diag(np.ones(M) if D is None else D)
        allclose(design.gram(idx, D), X_B.T @ W @ X_B)
        allclose(design.full_gram(D), X.T @ W @ X)
        allclose(design.sq_norms(D), np.diag(X.T @ W @ X))
    part = design.take(idx)
    allclose(part.columns(np.arange(len(idx))), X_B)
    assert not design.columns([5, 6]).any() and not design.sq_norms()[[5, 6]].any()


def test_large_means_do_not_cost_the_digits(rng):
    X = rng.standard_normal((50, 8))
    design = Centered(as_design(X + 1e6))
    X -= X.mean(axis=0)
    np.testing.assert_allclose(design.sq_norms(), (X**2).sum(axis=0), rtol=1e-8)
    np.testing.assert_allclose(design.full_gram(), X.T @ X, atol=1e-6)


def test_sparse_is_never_densified_and_dense_is_never_copied(rng):
    m, n = 20_000, 30_000
    rows, cols = rng.integers(m, size=6000), rng.integers(n, size=6000)
    A = sp.coo_array((rng.random(6000), (rows, cols)), shape=(m, n)).tocsc()
    big = np.asfortranarray(rng.standard_normal((20_000, 500)))  # 80 MB
    for X, limit in ((A, 20e6), (big, 75e6)):
        base = as_design(X)
        tracemalloc.start()
        design = Centered(base)
        eta = design.matvec(np.ones(X.shape[1]))
        design.rmatvec(eta), design.sq_norms(), design.gram([1, 5]), design.columns([3])
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < limit


def make(loss, seed=0, m=60, n=5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n)) + np.array([3.0, 0, 0, -5.0, 0])
    X[np.abs(X) < 0.4] = 0.0
    eta = 1.0 + X[:, [0, 3]] @ [0.7, 0.5] + 0.3 * rng.standard_normal(m)
    if is_positive(loss):
        y = amounts(loss, rng.poisson(np.exp(eta)))
    elif takes_labels(loss):
        y = np.where(eta + rng.logistic(size=m) > 0.6, 1.0, -1.0)
    else:
        y = eta + rng.standard_normal(m)
    return X, y, rng.integers(1, 4, m).astype(float)


def enumerate_best(X, y, weights, loss, ridge, budget, price=0.0):
    """The best subset with a free intercept, by enumeration and a general minimizer."""
    loss, best = LOSSES[loss], np.inf
    for size in range(budget + 1):
        for S in combinations(range(X.shape[1]), size):
            A = np.column_stack([np.ones(len(y)), X[:, S]])

            def value(v, A=A):
                eta = A @ v
                slope = A.T @ (weights * loss.gradient(eta, y))
                slope[1:] += ridge * v[1:]
                total = weights @ loss.value(eta, y) + 0.5 * ridge * v[1:] @ v[1:]
                return total, slope

            found = minimize(value, np.zeros(size + 1), jac=True, method="BFGS", tol=1e-9)
            best = min(best, found.fun + price * size)
    return best


def run_refit(problem, **options):
    return solve_refit(problem, Run(problem), rng=np.random.default_rng(0), **options)


@pytest.mark.parametrize("form", ["budget", "price"])
@pytest.mark.parametrize("loss", ONE_OUTPUT)
def test_the_answer_is_the_best_with_a_free_intercept(loss, form):
    X, y, weights = make(loss)
    ridge = 0.5
    options = {"n_nonzero_coefs": 2} if form == "budget" else {"alpha": 1.5}
    truth = enumerate_best(
        X, y, weights, loss, ridge, 2 if form == "budget" else 5, options.get("alpha", 0.0)
    )
    answers = []
    for data in (X, sp.csr_array(X)):
        problem = as_problem(data, y, loss=loss, ridge=ridge, sample_weight=weights, **options)
        prepared = apply(problem)
        result = run_refit(prepared.problem)
        assert result.objective == pytest.approx(truth, rel=1e-6)
        coef, intercept = prepared.invert(result.coef)
        # the objective, from the data as they were given
        value = weights @ LOSSES[loss].value(X @ coef + intercept, problem.y)
        value += 0.5 * ridge * coef @ coef + options.get("alpha", 0.0) * np.count_nonzero(coef)
        assert value == pytest.approx(result.objective, rel=1e-9)
        answers.append((coef, intercept))
    np.testing.assert_allclose(answers[0][0], answers[1][0], atol=1e-6)
    assert answers[0][1] == pytest.approx(answers[1][1], abs=1e-6)


@pytest.mark.parametrize("loss", ONE_OUTPUT)
def test_weight_two_is_the_row_twice_and_weight_zero_none(loss):
    X, y, weights = make(loss)
    weights -= 1.0
    twice = np.repeat(np.arange(len(y)), weights.astype(int))
    kept = drop_unweighted(X, y, weights)
    assert len(kept[1]) == np.count_nonzero(weights)
    answers = []
    for A, b, w in (kept, (X[twice], y[twice], None)):
        problem = as_problem(A, b, loss=loss, sample_weight=w, n_nonzero_coefs=3, ridge=0.1)
        prepared = apply(problem)
        answers.append(prepared.invert(run_refit(prepared.problem).coef))
    np.testing.assert_allclose(answers[0][0], answers[1][0], atol=1e-6)
    assert answers[0][1] == pytest.approx(answers[1][1], abs=1e-6)


@pytest.mark.parametrize("loss", ONE_OUTPUT)
def test_shifting_a_column_changes_the_intercept_only(loss):
    X, y, _ = make(loss)
    answers = []
    for shift in (0.0, 1e4):
        prepared = apply(as_problem(X + shift, y, loss=loss, n_nonzero_coefs=2, ridge=0.1))
        answers.append(prepared.invert(run_refit(prepared.problem).coef))
    np.testing.assert_allclose(answers[0][0], answers[1][0], atol=1e-5)
    assert answers[1][1] == pytest.approx(answers[0][1] - 1e4 * answers[0][0].sum(), rel=1e-5)


def test_without_an_intercept_nothing_changes():
    X, y, _ = make("squared")
    problem = as_problem(X, y, n_nonzero_coefs=2)
    prepared = apply(problem, fit_intercept=False)
    assert prepared.problem is problem
    w = np.arange(5.0)
    assert prepared.invert(w) == (w, 0.0)


def test_a_kept_constant_column_gets_no_coefficient():
    X, y, _ = make("squared")
    X[:, 1] = 7.0
    for loss in SHIFTING:
        prepared = apply(as_problem(X, y, loss=loss, n_nonzero_coefs=3, keep=[1]))
        coef, _ = prepared.invert(run_refit(prepared.problem).coef)
        assert coef[1] == 0.0


@pytest.mark.parametrize("loss", ONE_OUTPUT)
def test_the_best_intercept_is_a_stationary_point(loss, rng):
    _, y, weights = make(loss)
    for scale in (1.0, 30.0):
        eta = scale * rng.standard_normal(y.size)
        b = best_intercept(LOSSES[loss], eta, y, weights)
        slopes = LOSSES[loss].gradient(eta + b, y)
        assert abs(weights @ slopes) <= 1e-9 * (weights @ np.abs(slopes))


def test_the_best_intercept_at_infinity_is_finite():
    eta = np.linspace(-2.0, 2.0, 9)
    assert -50 < best_intercept(LOSSES["logistic"], eta, -np.ones(9)) < -20
    assert -50 < best_intercept(LOSSES["poisson"], eta, np.zeros(9)) < -20
    assert best_intercept(LOSSES["squared_hinge"], eta, np.ones(9)) >= 3.0 - 1e-6
    assert best_intercept(LOSSES["poisson"], eta - 400.0, np.full(9, 1e9)) == pytest.approx(
        np.log(9e9 / np.exp(eta).sum()) + 400.0
    )
    assert best_intercept(LOSSES["huber"], eta, np.full(9, 1e9)) == pytest.approx(1e9)


def test_poisson_with_extreme_and_separable_counts():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 8))
    X[:, 7] = np.where(np.arange(40) < 20, 0.0, 1.0)
    separable = np.where(np.arange(40) < 20, rng.poisson(3.0, 40), 0).astype(float)
    huge = np.exp(3 * X[:, 0]) * 1e9
    for y in (separable, huge, np.eye(40)[3] * 1e12):
        for fit_intercept in (True, False):
            problem = as_problem(X, y, loss="poisson", n_nonzero_coefs=2)
            prepared = apply(problem, fit_intercept)
            result = run_refit(prepared.problem, effort="fast")
            assert np.isfinite(result.objective) and np.isfinite(result.coef).all()
            assert np.all(np.diff(result.history.objective) <= 0.0)
            zero = prepared.problem.smooth(np.zeros(8))
            assert result.objective < zero
    assert (
        0
        in run_refit(apply(as_problem(X, huge, loss="poisson", n_nonzero_coefs=1)).problem).support
    )


@pytest.mark.parametrize("loss", EACH_TARGET)
def test_more_columns_than_the_pool_holds(loss, rng):
    X = rng.standard_normal((50, 2500)) + 1.0  # wider_than_the_pool: prices come in passes over X
    X[np.abs(X) < 0.5] = 0.0
    y = X[:, 7] - X[:, 2400] + 0.1 * rng.standard_normal(50)
    y = as_target(loss, y)
    answers = []
    for data in (X, sp.csc_array(X)):
        prepared = apply(as_problem(data, y, loss=loss, n_nonzero_coefs=2, ridge=0.1))
        answers.append(prepared.invert(run_refit(prepared.problem, effort="fast").coef)[0])
    assert np.flatnonzero(answers[0]).tolist() == [7, 2400]
    np.testing.assert_allclose(answers[0], answers[1], atol=1e-6)


def test_the_best_intercept_of_large_counts_takes_few_steps(rng, monkeypatch):
    loss, n_steps = LOSSES["poisson"], []
    terms = type(loss).terms
    eta = rng.standard_normal(200)
    y = rng.poisson(1e6 * np.exp(eta)) * 1.0
    monkeypatch.setattr(
        type(loss), "terms", lambda self, *given: n_steps.append(1) or terms(self, *given)
    )
    found = best_intercept(loss, eta, y, None, np.log(1e6) - 0.01)
    assert found == pytest.approx(np.log(y.sum() / np.exp(eta).sum()), rel=1e-14)
    assert len(n_steps) <= 8
