"""The softmax loss: derivatives, two classes as logistic, and enumeration over shared supports."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

import blockl0
import oracles
from blockl0 import certify, l0_path, solve
from blockl0.data.design import as_design
from blockl0.losses import Softmax
from blockl0.losses.softmax import contrasts, softmax_hessian
from blockl0.moves.grouped_search import GramRows, GroupedSearch
from blockl0.path import solve_path
from blockl0.problem import newton
from blockl0.problem.fits import make_fits
from blockl0.problem.newton import best_intercepts, minimize_on
from blockl0.problem.preprocess import apply
from blockl0.problem.problem import Sparsity, as_problem
from blockl0.run import Run
from blockl0.search.quadratic_search import Tally
from blockl0.search.search import solve_refit
from blockl0.units import COLUMNS
from grid import RIDGE, enumerate_supports, features, target_for

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


def slow_fit(X, y, weights, ridge, support, intercept=True):
    """The smooth part at its minimum on a support, by scipy."""
    n_free, n_classes = int(intercept), int(y.max()) + 1
    A = np.column_stack([np.ones((len(y), n_free)), X[:, list(support)]])
    pull = np.full((A.shape[1], 1), ridge)
    pull[:n_free] = 0.0

    def value(v):
        V = v.reshape(A.shape[1], n_classes)
        P = probabilities(A @ V)
        P[np.arange(len(y)), y] -= 1.0
        slope = A.T @ (weights[:, None] * P) + pull * V
        total = weights @ softmax_loss(A @ V, y) + 0.5 * np.sum(pull * V**2)
        return total, slope.ravel()

    start = np.zeros(A.shape[1] * n_classes)
    if start.size == 0:
        return weights.sum() * np.log(n_classes)
    return minimize(value, start, jac=True, method="BFGS", tol=1e-8).fun


def enumerate_best(X, y, weights, ridge, price, budget, intercept=True):
    return min(
        slow_fit(X, y, weights, ridge, S, intercept) + price * len(S)
        for S in oracles.subsets(range(X.shape[1]), budget)
    )


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
    monkeypatch.setattr("blockl0.moves.grouped_search.CHUNK", 16)
    monkeypatch.setattr("blockl0.search.local_search.POOL", 10)
    monkeypatch.setattr("blockl0.search.local_search.POOL_FACTOR", 2)
    for name in ("search.local_search.WHOLE", "moves.grouped_search.WHOLE"):
        with monkeypatch.context() as patch:
            patch.setattr(f"blockl0.{name}", 20)
            patch.setattr("blockl0.moves.grouped_search.POOL", 10)
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


# the one house --------------------------------------------------------------------------------


FORMS = {
    "budget": {"n_nonzero_coefs": 2},
    "price": {"alpha": 4.0},
    "both": {"n_nonzero_coefs": 3, "alpha": 2.0},
}
STORAGES = {"dense": np.asarray, "sparse": sp.csr_array}


def solve_softmax(X, y, **options):
    return solve(X, y, **{"loss": "softmax", "ridge": 0.1, "random_state": 0, **options})


@pytest.mark.parametrize("form", FORMS)
def test_solve_finds_the_best_of_all_supports(form):
    """The oracle fits every support by scipy."""
    for seed in range(2):
        X, y, weights = make(50, 6, seed=seed)
        price, budget = FORMS[form].get("alpha", 0.0), FORMS[form].get("n_nonzero_coefs", 6)
        truth = enumerate_best(X, y, weights, 0.1, price, budget, intercept=False)
        for storage in STORAGES.values():
            result = solve_softmax(
                storage(X), y, sample_weight=weights, effort="thorough", **FORMS[form]
            )
            assert result.objective == pytest.approx(truth, rel=1e-6)
            assert result.coef.shape == (6, 3) and result.n_nonzero == result.support.size
            assert np.flatnonzero(result.coef.any(axis=1)).tolist() == result.support.tolist()


def test_fits_are_those_of_scikit_learn():
    """Its multinomial regression minimizes the same, with C = 1/ridge."""
    from sklearn.linear_model import LogisticRegression

    X, y, weights = make(seed=1)
    for intercept in (False, True):
        peer = LogisticRegression(C=2.0, fit_intercept=intercept, tol=1e-10, max_iter=5000)
        peer.fit(X, y, sample_weight=weights)
        problem = apply(problem_of(X, y, 6, ridge=0.5, weights=weights), intercept)
        fit = make_fits(problem.problem).on(np.arange(6))
        coef, b = problem.invert(fit.w)
        assert coef == pytest.approx(peer.coef_.T, abs=1e-4)
        assert b - np.mean(b) == pytest.approx(peer.intercept_ - peer.intercept_.mean(), abs=1e-4)


def test_every_point_of_a_path_is_the_best_and_it_never_rises():
    X, y, weights = make(50, 6, seed=2)
    path = l0_path(
        X, y, n_nonzero_coefs=5, loss="softmax", ridge=0.1, sample_weight=weights, random_state=0
    )
    fits = {
        S: slow_fit(X, y, weights, 0.1, S, intercept=False) for S in oracles.subsets(range(6), 5)
    }
    truth = [min(v for S, v in fits.items() if len(S) <= k) for k in range(1, 6)]
    assert path.objective == pytest.approx(np.array(truth), rel=1e-6)
    assert np.all(np.diff(path.objective) <= 0.0) and path.loss == "softmax"
    losses = [p.objective - 0.05 * np.sum(p.coef**2) for p in path]
    assert path.losses == pytest.approx(np.array(losses))
    prices = l0_path(X, y, alphas=[30.0, 5.0, 1.0], loss="softmax", ridge=0.1, random_state=0)
    assert np.all(np.diff(prices.n_nonzero) >= 0)


def test_certificates_agree_with_all_single_changes():
    X, y, weights = make(40, 5, seed=3)
    fits = {
        S: slow_fit(X, y, weights, 0.1, S, intercept=False) for S in oracles.subsets(range(5), 3)
    }
    options = {"loss": "softmax", "ridge": 0.1, "sample_weight": weights}
    bound = problem_of(X, y, 5, weights=weights)
    seen = set()
    for S in combinations(range(5), 2):
        coef = make_fits(bound).on(np.array(S)).w
        others = [j for j in range(5) if j not in S]
        swaps = [fits[tuple(sorted((i, j)))] for i in S for j in others]
        full = certify(X, y, coef, n_nonzero_coefs=2, level=2, **options)
        assert full.holds == (min(swaps) >= fits[S]) and full.complete
        # with room and a price: additions and removals
        ones = [fits[tuple(sorted((*S, j)))] + 4.0 for j in others] + [fits[(i,)] - 4.0 for i in S]
        single = certify(X, y, coef, n_nonzero_coefs=4, alpha=4.0, level=1, **options)
        assert single.holds == (min(ones) >= fits[S])
        seen |= {full.holds, single.holds}
        for answer in (full, single):
            if not answer.holds:
                assert len(answer.block) <= answer.level
                assert answer.better_coef.shape == (5, 3)
                assert answer.better_objective < answer.objective and "Not block" in str(answer)
    assert seen == {True, False}


def test_a_point_that_is_no_fit_is_not_even_basic():
    X, y, _ = make(40, 5)
    result = solve_softmax(X, y, n_nonzero_coefs=2)
    options = {"loss": "softmax", "ridge": 0.1, "n_nonzero_coefs": 2}
    assert certify(X, y, result.coef, level="basic", **options).holds
    assert certify(X, y, result.coef, level=2, **options).holds
    for level in ("basic", 1):
        answer = certify(X, y, 1.1 * result.coef, level=level, **options)
        assert not answer.holds
        assert answer.better_objective == pytest.approx(result.objective, rel=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 3}, r"`level`=3 needs a quadratic above the loss.*level='basic', 1 or 2"),
        ({"level": "L"}, r"`level`='L' needs a quadratic above the loss"),
        ({"outside": "fixed"}, r"`outside`='fixed' needs a quadratic above the loss"),
        ({"n_samples": 5}, r"`n_samples` needs a quadratic above the loss"),
        ({"alpha": 1.0}, r"`level`=2 of loss='softmax' is known only without a price.*level=1"),
        ({"n_nonzero_coefs": 3}, r"2 of n_nonzero_coefs=3 columns; ask for level=1"),
    ],
)
def test_what_a_certificate_cannot_say_is_refused(options, message):
    X, y, _ = make(40, 5)
    coef = solve_softmax(X, y, n_nonzero_coefs=2, effort="fast").coef
    with pytest.raises(ValueError, match=message):
        certify(X, y, coef, **{"n_nonzero_coefs": 2, "loss": "softmax", "ridge": 0.1, **options})


def test_a_certificate_that_would_take_too_long_is_refused(monkeypatch):
    X, y, _ = make(40, 5)
    coef = solve_softmax(X, y, n_nonzero_coefs=2, effort="fast").coef
    monkeypatch.setattr("blockl0.moves.single_moves.MOST_WORK", 10.0)
    with pytest.raises(ValueError, match=r"`level`=2 is out of reach .* level='basic'"):
        certify(X, y, coef, n_nonzero_coefs=2, loss="softmax", ridge=0.1)


@pytest.mark.parametrize(
    "method", ["dec", "pgm", "apgm", "qpm", "omp", "forward", "pgm-l0", "pgm-lp"]
)
def test_methods_of_one_coefficient_per_column_refuse(method):
    X, y, _ = make(30, 5)
    form = {"alpha": 1.0} if method in ("pgm-l0", "pgm-lp") else {"n_nonzero_coefs": 2}
    with pytest.raises(
        ValueError, match=rf"method='{method}' .*got loss='softmax'; use method='refit'"
    ):
        solve(X, y, loss="softmax", method=method, **form)


def test_targets_are_codes():
    X, y, _ = make(30, 5)
    for bad, seen in ((y + 1, "1, 2, 3"), (2.0 * y, "0, 2, 4"), (0 * y, "0"), (y - 0.5, "-0.5")):
        with pytest.raises(ValueError, match=rf"class codes 0, 1, \.\.\., C - 1.*got {seen}"):
            solve(X, bad, loss="softmax", n_nonzero_coefs=1)
    with pytest.raises(ValueError, match=r"class codes 0, \.\.\., 3, each at least once"):
        solve(X, y, loss=Softmax(4), n_nonzero_coefs=1)
    with pytest.raises(ValueError, match=r"`n_classes` must be at least 2, got 1"):
        Softmax(1)
    same = [solve_softmax(X, y, loss=loss, n_nonzero_coefs=1) for loss in ("softmax", Softmax(3))]
    assert same[0].objective == same[1].objective  # the same steps
    assert (Softmax().n_outputs, Softmax(3).n_outputs) == (0, 3)


def test_a_start_has_a_coefficient_of_every_class():
    X, y, _ = make(50, 6)
    best = solve_softmax(X, y, n_nonzero_coefs=2)
    again = solve_softmax(X, y, n_nonzero_coefs=2, init=best.coef, effort="fast")
    assert again.objective <= best.objective * (1.0 + 1e-12)
    for init, message in (
        (np.zeros(6), r"`init` must have shape \(6, 3\), one value per column of X and class"),
        (np.ones((6, 3)), r"at most n_nonzero_coefs=2 nonzeros, got 6"),
        (np.full((6, 3), np.nan), r"`init` must be finite"),
    ):
        with pytest.raises(ValueError, match=message):
            solve_softmax(X, y, n_nonzero_coefs=2, init=init)
    with pytest.raises(ValueError, match=r"`coef` must have shape \(6, 3\)"):
        certify(X, y, np.zeros(6), n_nonzero_coefs=2, loss="softmax")


def test_callbacks_see_every_class_and_may_stop():
    X, y, _ = make(50, 6)
    seen = []
    result = solve_softmax(X, y, n_nonzero_coefs=2, callback=lambda p: seen.append(p.coef.shape))
    assert set(seen) == {(6, 3)} and len(seen) == len(result.history)
    stopped = solve_softmax(X, y, n_nonzero_coefs=2, callback=lambda p: True)
    assert str(stopped.status) == "stopped" and len(stopped.history) == 1


def test_kept_columns_stay_and_the_rest_is_the_best():
    X, y, weights = make(50, 6, seed=4)
    result = solve_softmax(X, y, n_nonzero_coefs=3, keep=[0, 5], sample_weight=weights)
    truth = min(slow_fit(X, y, weights, 0.1, (0, 5, j), intercept=False) for j in range(1, 5))
    assert {0, 5} < set(result.support) and result.objective == pytest.approx(truth, rel=1e-6)


def test_the_order_of_classes_columns_and_rows_and_the_units_do_not_matter(rng):
    X, y, weights = make(60, 7, 4, seed=5)
    weights = rng.integers(1, 4, y.size).astype(float)
    options = {"n_nonzero_coefs": 2, "sample_weight": weights, "ridge": 0.0}
    first = solve_softmax(X, y, **options)
    classes, columns, units = rng.permutation(4), rng.permutation(7), 10.0 ** rng.integers(-3, 4, 7)
    other = solve_softmax((X * units)[:, columns], classes[y], **options)
    assert other.objective == pytest.approx(first.objective, rel=1e-9)
    # coefficient of class c and column j, in the other's order and units
    back = np.zeros_like(first.coef)
    back[columns] = other.coef
    np.testing.assert_allclose((back * units[:, None])[:, classes], first.coef, atol=1e-6)
    again = np.repeat(np.arange(60), weights.astype(int))
    repeated = solve_softmax(X[again], y[again], n_nonzero_coefs=2, ridge=0.0)
    assert repeated.objective == pytest.approx(first.objective, rel=1e-9)
    np.testing.assert_allclose(repeated.coef, first.coef, atol=1e-6)


def test_two_classes_have_half_the_contrast_of_the_logistic_loss():
    """W = (−v, v)/2 has the predictors ±Xv/2, and half the squares of v."""
    X, y, _ = make(60, 8, n_classes=2)
    softmax = solve_softmax(X, y, n_nonzero_coefs=3, ridge=0.2)
    logistic = solve(X, y, n_nonzero_coefs=3, loss="logistic", ridge=0.1, random_state=0)
    assert softmax.objective == pytest.approx(logistic.objective, rel=1e-9)
    np.testing.assert_allclose(softmax.coef[:, 1], 0.5 * logistic.coef, atol=1e-6)
    np.testing.assert_allclose(softmax.coef[:, 0], -0.5 * logistic.coef, atol=1e-6)


def test_separable_classes_end_soon_and_are_finite():
    X, y, _ = make(60, 8)
    X[:, 2], X[:, 6] = 2.0 * (y == 0) - 1.0, 2.0 * (y == 1) - 1.0
    result = solve_softmax(X, y, n_nonzero_coefs=2, ridge=0.0)
    assert np.isfinite(result.coef).all() and result.n_iter < 60
    assert result.support.tolist() == [2, 6]


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("storage", STORAGES)
def test_gradients_are_those_of_finite_differences(storage, intercept, rng):
    X, y, weights = make(30, 5)
    problem = apply(problem_of(STORAGES[storage](X), y, 5, weights=weights), intercept).problem
    w, steps = rng.standard_normal((5, 3)), 1e-5 * np.eye(15).reshape(15, 5, 3)
    slope = [(problem.smooth(w + d) - problem.smooth(w - d)) / 2e-5 for d in steps]
    np.testing.assert_allclose(problem.gradient(w).ravel(), slope, atol=1e-4)
    assert problem.zero().shape == (5, 3) and problem.objective(w) == problem.smooth(w)


def test_units_are_columns():
    w = np.array([[0.0, 0.0], [1.0, -1.0], [0.0, 2.0]])
    assert COLUMNS.support(w).tolist() == [1, 2] and COLUMNS.count(w) == 2
    assert COLUMNS.support(w[:, 0]).tolist() == [1] and COLUMNS.count(w[:, 0]) == 1
    assert COLUMNS.members(2).tolist() == [2]


def test_a_budget_counts_columns_not_coefficients():
    X, y, _ = make(30, 5)
    problem = problem_of(X, y, 1)
    w = problem.zero()
    w[1] = 1.0
    assert problem.objective(w) < np.inf
    w[2, 0] = 1e-9
    assert problem.objective(w) == np.inf


@pytest.mark.parametrize("alpha", [0.5, 4.0])
@pytest.mark.parametrize("seed", [0, 3])
def test_columns_that_pay_together_are_found(alpha, seed):
    """Two of them from none, or from others, where no single change improves."""
    X, y = features(seed=seed), target_for(SOFTMAX, seed=seed)
    problem = as_problem(X, y, alpha=alpha, ridge=RIDGE, loss="softmax")
    best, support = enumerate_supports(problem)
    result = run_refit(problem, effort="fast")
    assert result.objective == pytest.approx(best, rel=1e-9)
    assert tuple(result.support.tolist()) == support


@pytest.mark.parametrize("separation", [0.5, 3.0])
def test_compiled_steps_end_where_those_by_arrays_do(separation, monkeypatch):
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 90)
    X = rng.standard_normal((90, 5)) + separation * np.eye(3)[y] @ rng.standard_normal((3, 5))
    problem = as_problem(X, y.astype(float), loss="softmax", ridge=1e-3, n_nonzero_coefs=5)
    problem = replace(problem, sample_weight=rng.uniform(0.5, 2.0, 90), has_intercept=True)
    for support in (np.array([1]), np.array([0, 2, 4]), np.arange(5)):
        fits = {}
        for little in (0.0, newton.LITTLE):
            monkeypatch.setattr(newton, "LITTLE", little)
            found = minimize_on(problem, problem.zero(), support)
            out_of_reach = minimize_on(problem, problem.zero(), support, 0.3 * found.value)
            assert out_of_reach.least > 0.3 * found.value
            assert out_of_reach.least <= found.value
            fits[little] = found
        by_arrays, compiled = fits.values()
        assert compiled.value == pytest.approx(by_arrays.value, rel=1e-12)
        np.testing.assert_allclose(compiled.w, by_arrays.w, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(compiled.intercept, by_arrays.intercept, rtol=1e-7, atol=1e-9)


def test_intercepts_without_columns_are_the_shares_of_the_classes(monkeypatch):
    rng = np.random.default_rng(0)
    y, weights, eta = rng.integers(0, 3, 50), rng.uniform(0.0, 2.0, 50), np.zeros((50, 3))
    shares = np.bincount(y, weights) / weights.sum()
    searched = best_intercepts(Softmax(3), eta + 1e-300, y, weights)
    monkeypatch.setattr(newton, "descend", None)
    b = best_intercepts(Softmax(3), eta, y, weights)
    assert np.allclose(np.exp(b) / np.exp(b).sum(), shares, rtol=1e-12)
    assert np.allclose(b, searched, rtol=1e-7) and abs(b.sum()) < 1e-12


def test_intercepts_of_a_class_without_weight_are_searched_and_finite():
    y, weights = np.arange(30) % 3, np.where(np.arange(30) % 3 == 2, 0.0, 1.0)
    assert np.isfinite(best_intercepts(Softmax(3), np.zeros((30, 3)), y, weights)).all()


def test_columns_that_all_depend_on_the_support_are_left_to_fits():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((18, 3))
        X[:, 0] = X[:, 1] + 4e-10 * rng.standard_normal(18)
        y = np.concatenate([np.arange(3), rng.integers(0, 3, 15)])
        result = blockl0.solve(X, y, loss="softmax", n_nonzero_coefs=2, alpha=5e-4, random_state=0)
        assert result.n_nonzero <= 2 and np.isfinite(result.objective)
