"""The softmax loss: derivatives, two classes as logistic, and enumeration over shared supports."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

import blockl0
from blockl0.design import as_design
from blockl0.grouped_search import GramRows, GroupedSearch
from blockl0.losses import Softmax
from blockl0.losses.softmax import contrasts, softmax_hessian
from blockl0.newton import minimize_on
from blockl0.path import solve_path
from blockl0.preprocess import apply
from blockl0.problem import as_problem
from blockl0.quadratic_search import Tally
from blockl0.refit import solve_refit
from blockl0.run import Run
from blockl0.softmax import best_intercepts
from blockl0.sparsity import Sparsity

SOFTMAX = Softmax(3)
softmax_loss, probabilities = SOFTMAX.value, SOFTMAX.mean


def make(m=70, n=6, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n)) + rng.standard_normal((m, 1))
    X[np.abs(X) < 0.3] = 0.0
    W = np.zeros((n, n_classes))
    W[[1, 4]] = 1.5 * rng.standard_normal((2, n_classes))
    y = np.argmax(X @ W + rng.gumbel(size=(m, n_classes)) + [0.5, *[0] * (n_classes - 1)], axis=1)
    return X, y, rng.integers(1, 4, m).astype(float)


def run_refit(problem, **options):
    return solve_refit(problem, Run(problem), rng=np.random.default_rng(0), **options)


def problem_of(X, y, budget=2, price=None, ridge=0.1, weights=None, keep=None):
    return as_problem(
        X, y, n_nonzero_coefs=budget, alpha=price, ridge=ridge, loss="softmax",
        sample_weight=weights, keep=keep,
    )  # fmt: skip


def enumerate_best(X, y, weights, ridge, price, budget, n_classes=3):
    best = np.inf
    for size in range(budget + 1):
        for S in combinations(range(X.shape[1]), size):
            A = np.column_stack([np.ones(len(y)), X[:, S]])

            def value(v, A=A, size=size):
                V = v.reshape(size + 1, n_classes)
                P = probabilities(A @ V)
                P[np.arange(len(y)), y] -= 1.0
                slope = A.T @ (weights[:, None] * P)
                slope[1:] += ridge * V[1:]
                total = weights @ softmax_loss(A @ V, y) + 0.5 * ridge * np.sum(V[1:] ** 2)
                return total, slope.ravel()

            start = np.zeros((size + 1) * n_classes)
            found = minimize(value, start, jac=True, method="BFGS", tol=1e-8)
            best = min(best, found.fun + price * size)
    return best


def test_value_gradient_and_curvature_by_finite_differences(rng):
    X, y, weights = make()
    X = X[:, :3]
    V, ridge = rng.standard_normal((3, 3)), np.full(3, 0.2)

    def value(V):
        return weights @ softmax_loss(X @ V, y) + 0.1 * np.sum(V**2)

    def gradient(V):
        P = probabilities(X @ V)
        P[np.arange(y.size), y] -= 1.0
        return X.T @ (weights[:, None] * P) + 0.2 * V

    steps = 1e-5 * np.eye(9).reshape(9, 3, 3)
    slope = [(value(V + d) - value(V - d)) / 2e-5 for d in steps]
    np.testing.assert_allclose(gradient(V).ravel(), slope, rtol=1e-5, atol=1e-5)
    bend = np.array([(gradient(V + d) - gradient(V - d)).ravel() / 2e-5 for d in steps])
    H = softmax_hessian(X, probabilities(X @ V), weights, ridge)
    # on directions that sum to zero over classes, all that is ever used
    to_classes = np.kron(np.eye(3), contrasts(3))
    np.testing.assert_allclose(H, to_classes.T @ bend @ to_classes, rtol=1e-5, atol=1e-5)
    assert np.isfinite(softmax_loss(np.array([[1e300, -1e300, 0.0]]), np.array([1]))).all()


def test_the_bound_of_boehning_majorizes(rng):
    _, y, _ = make()
    eta, step = 3 * rng.standard_normal((2, y.size, 3))
    step -= step.mean(axis=1, keepdims=True)
    P = probabilities(eta)
    P[np.arange(y.size), y] -= 1.0
    model = softmax_loss(eta, y) + np.sum(P * step, axis=1) + 0.25 * np.sum(step**2, axis=1)
    assert np.all(softmax_loss(eta + step, y) <= model + 1e-12)


@pytest.mark.parametrize("price", [0.0, 3.0])
def test_the_answer_is_the_best_shared_support(price):
    X, y, weights = make(n=5)
    budget = 2 if price == 0.0 else 5
    truth = enumerate_best(X, y, weights, 0.1, price, budget)
    for data in (X, sp.csr_array(X)):
        prepared = apply(problem_of(data, y, budget, price, weights=weights))
        result = run_refit(prepared.problem)
        assert result.objective == pytest.approx(truth, rel=1e-6)
        assert np.all(np.diff(result.history.objective) <= 0.0)
        coef, intercept = prepared.invert(result.coef)
        eta = X @ coef + intercept
        value = weights @ softmax_loss(eta, y) + 0.05 * np.sum(coef**2) + price * result.n_nonzero
        assert value == pytest.approx(result.objective, rel=1e-9)
        np.testing.assert_allclose(coef.sum(axis=1), 0.0, atol=1e-9)


def test_two_classes_are_the_logistic_loss():
    X, y, _ = make(n_classes=2, n=12)
    softmax = run_refit(problem_of(X, y, 3, ridge=0.2))
    logistic = blockl0.solve(X, y, n_nonzero_coefs=3, loss="logistic", ridge=0.1, random_state=0)
    assert softmax.objective == pytest.approx(logistic.objective, rel=1e-9)
    np.testing.assert_allclose(softmax.coef[:, 1] - softmax.coef[:, 0], logistic.coef, atol=1e-6)


def test_many_columns_go_through_a_pool(monkeypatch):
    X, y, _ = make(120, 60, 4, seed=3)
    whole = run_refit(apply(problem_of(X, y, 4)).problem, effort="fast")
    monkeypatch.setattr("blockl0.grouped_search.CHUNK", 16)
    monkeypatch.setattr("blockl0.pooled_search.POOL", 10)
    monkeypatch.setattr("blockl0.pooled_search.POOL_FACTOR", 2)
    for name in ("refit.WIDE", "grouped_search.WHOLE"):
        with monkeypatch.context() as patch:
            patch.setattr(f"blockl0.{name}", 20)
            patch.setattr("blockl0.grouped_search.POOL", 10)
            pooled = run_refit(apply(problem_of(X, y, 4)).problem, effort="fast")
        assert pooled.objective == pytest.approx(whole.objective, rel=0.02)
        assert {1, 4} <= set(pooled.support)


def test_moves_are_priced_as_refits_are(rng):
    X, Z, weights = rng.standard_normal((30, 7)), rng.standard_normal((30, 3)), rng.random(30) + 0.1

    def best_of(S):
        A = X[:, S] * np.sqrt(weights)[:, None]
        V = np.linalg.solve(A.T @ A + 0.3 * np.eye(len(S)), A.T @ (Z * np.sqrt(weights)[:, None]))
        fit = Z - X[:, S] @ V
        return 0.5 * weights @ np.sum(fit**2, axis=1) + 0.15 * np.sum(V**2)

    gram = GramRows(as_design(X), weights, 0.3, Tally())
    B = X.T @ (weights[:, None] * Z)
    search = GroupedSearch(gram, B, Sparsity(0.0, 3), np.array([2]), 1e-12)
    found = search.descend(np.array([2]))
    truth = min(best_of([2, *S]) for S in combinations([0, 1, 3, 4, 5, 6], 2))
    start = best_of(sorted(found))
    assert (
        2 in found
        and start
        <= min(
            best_of(sorted({*found.tolist(), j} - {i}))
            for i in found
            if i != 2
            for j in range(7)
            if j not in found
        )
        + 1e-12
    )
    assert start >= truth - 1e-12
    assert search.shrink(np.array([0, 2, 5]), 1).tolist() == [2]


def test_kept_columns_separable_data_and_paths():
    X, y, _ = make()
    kept = run_refit(apply(problem_of(X, y, 2, keep=[0])).problem, effort="fast")
    assert 0 in kept.support and kept.n_nonzero == 2
    X[:, 2] = y == 0
    X[:, 3] = y == 1
    separable = run_refit(apply(problem_of(X, y, 2, ridge=0.0)).problem, effort="fast")
    assert np.isfinite(separable.coef).all() and separable.objective < 1e-4
    X, y, _ = make()
    path = solve_path(
        apply(problem_of(X, y, 6)).problem, [(0.0, k) for k in range(5)], random_state=0
    )
    assert np.all(np.diff(path.objective) <= 0) and path.n_nonzero.tolist() == [0, 1, 2, 3, 4]
    assert path.coefs.shape == (5, 6) and path.best("bic").n_nonzero >= 1
    assert "of 6" in repr(path[2]) and "2 of 6 columns" in path[2].summary()


def test_newton_never_ends_above_its_start(rng):
    X, y, weights = make()
    problem = problem_of(X[:, :4], y, 4, ridge=0.0, weights=weights)
    start = 5 * rng.standard_normal((4, 3))
    found = minimize_on(problem, start, np.arange(4))
    assert found.value <= problem.smooth(start)
    assert found.value == pytest.approx(problem.smooth(found.w), rel=1e-12)
    assert problem.units.count(found.w) == 4


@pytest.mark.parametrize("scale", [1.0, 30.0, 1e3])
def test_intercepts_are_found_from_any_predictors(scale):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        eta, y, weights = (
            scale * rng.standard_normal((50, 4)),
            rng.integers(0, 4, 50),
            rng.random(50),
        )
        if seed % 2:  # nearly separable: all probabilities are zero or one
            y = np.argmax(eta + scale * np.arange(4), axis=1)
            y[:4] = np.arange(4)
        b = best_intercepts(Softmax(4), eta, y, weights)
        P = probabilities(eta + b)
        P[np.arange(50), y] -= 1.0
        np.testing.assert_allclose(weights @ P, 0.0, atol=1e-6)


@pytest.mark.parametrize("ridge", [0.0, 1e-3])
def test_nearly_separable_classes_keep_their_intercepts(ridge):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((60, 10))
        y = np.digitize(X[:, 3] - 2 * X[:, 7] + 0.1 * rng.standard_normal(60), [-1, 1])
        prepared = apply(problem_of(X, y, 2, ridge=ridge))
        result = run_refit(prepared.problem, effort="fast")
        coef, intercept = prepared.invert(result.coef)
        empty = prepared.problem.objective(np.zeros((10, 3)))
        value = np.sum(softmax_loss(X @ coef + intercept, y)) + 0.5 * ridge * np.sum(coef**2)
        assert result.objective == pytest.approx(value, rel=1e-6, abs=1e-6)
        assert result.objective < 0.2 * empty


def test_a_single_addition_is_tried_on_the_true_loss():
    for seed in range(4, 12):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((40, 5)) @ (np.eye(5) + 1.0)
        eta = X @ (rng.standard_normal(5) * (rng.random(5) < 0.6)) + rng.standard_normal(40)
        y = np.digitize(eta, [-1.0, 1.0])
        result = run_refit(apply(problem_of(X, y, 3, price=2.0)).problem)
        truth = enumerate_best(X, y, np.ones(40), 0.1, 2.0, 3)
        assert result.objective == pytest.approx(truth, rel=1e-5)
