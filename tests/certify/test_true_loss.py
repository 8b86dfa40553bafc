"""Losses other than the squared one: fits are minimizers, and "converged" means what it says.

The oracle is `convex`, which fits a support in extended precision by a method of its own.
"""

from __future__ import annotations

import numpy as np
import pytest

import blockl0
import convex
from blockl0 import L0Classifier, L0Regressor, l0_path
from blockl0.losses import LOSSES, Huber, Logistic, Softmax, Tweedie, entropy_excess
from blockl0.moves import dual_bounds, softmax_bounds
from blockl0.moves.dual_bounds import DualBounds, FittedSupport, largest_entries
from blockl0.moves.single_moves import SingleMoves
from blockl0.moves.softmax_bounds import SoftmaxBounds, inverses
from blockl0.problem.descent import search_length
from blockl0.problem.fits import make_fits
from blockl0.problem.newton import minimize_on
from blockl0.problem.preprocess import apply
from blockl0.problem.problem import as_problem
from blockl0.result import Status
from blockl0.run import Run
from blockl0.search.search import solve_refit
from grid import OTHERS
from targets import amounts, is_positive

TOLERANCE = 1e-11
"""Of the loss without columns: what an improvement must exceed, as the documentation states."""


def draw(loss, seed, n=None):
    """Columns in units from 1e-12 to 1e12; outliers of 1e5, separable classes, rates of zero."""
    rng = np.random.default_rng([seed, len(loss)])
    m, n = int(rng.integers(8, 30)), int(rng.integers(2, 6)) if n is None else n
    X = rng.standard_normal((m, n)) @ (np.eye(n) + rng.choice([0.0, 0.5, 3.0]))
    kind, decades = rng.choice(["plain", "separable", "outliers"]), rng.choice([0, 6, 12])
    eta = X @ rng.standard_normal(n) * rng.choice([0.3, 1.0, 3.0])
    if loss == "huber":
        y = eta * rng.choice([1.0, 100.0, 1e4]) + rng.standard_normal(m)
        y[rng.random(m) < 0.3 * (kind == "outliers")] += 1e5
    elif is_positive(loss):
        y = rng.poisson(np.exp(np.clip(eta + rng.choice([0, 5, 10]), -8, 14))).astype(float)
        y[(eta < 0.0) & (kind == "separable")] = 0.0
        y[0] += not y.any()
        y = amounts(loss, y)
    else:
        y = np.where(eta + (kind != "separable") * rng.logistic(size=m) > 0.0, 1.0, -1.0)
        y[0] *= -1.0 if abs(y.sum()) == m else 1.0
    ridge = float(rng.choice([0.0, 1e-12, 1e-6, 1e-3, 0.0485, 10.0]))
    units = 10.0 ** rng.integers(-decades, decades + 1, n)
    return X * units, y, ridge, bool(rng.integers(2))


def bind(loss, X, y, ridge, intercept, **form):
    return apply(as_problem(X, y, loss=loss, ridge=ridge, **form), intercept).problem


def solve_bound(problem, **options):
    return solve_refit(problem, Run(problem), rng=np.random.default_rng(0), **options)


def scale_of(problem):
    """The loss without columns."""
    return problem.smooth(np.zeros(problem.n_features))


# fits ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", OTHERS)
def test_fits_are_minimizers_in_any_units(loss):
    for seed in range(20):
        X, y, ridge, intercept = draw(loss, seed)
        problem = bind(loss, X, y, ridge, intercept, alpha=1.0)
        support = np.arange(X.shape[1])
        fit = minimize_on(problem, np.zeros(support.size), support)
        best = convex.Fit(loss, problem.design.columns(support), y, ridge, intercept)
        assert abs(fit.value - float(best.value)) <= 1e-13 * scale_of(problem), seed
        assert fit.value == pytest.approx(problem.smooth(fit.w), abs=1e-13 * scale_of(problem))


@pytest.mark.parametrize("loss", OTHERS)
def test_fits_from_bad_starts_and_in_extreme_units(loss):
    for seed in (3, 5):
        X, y, ridge, intercept = draw(loss, seed, n=3)
        problem = bind(loss, X, y, ridge, intercept, alpha=1.0)
        fit = minimize_on(problem, np.zeros(3), np.arange(3))
        for start in (1e3, -1e8):
            again = minimize_on(problem, start / np.abs(X).max(axis=0), np.arange(3))
            assert again.value == pytest.approx(fit.value, abs=1e-12 * scale_of(problem))


def test_separable_hinges_with_next_to_no_ridge_from_any_start():
    """Few samples bend such a loss, other ones at every step: a path of ridges finds the last."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((24, 6))
        y = np.where(X @ rng.standard_normal(6) > 0.0, 1.0, -1.0)
        X *= 10.0 ** rng.integers(-3, 8, 6)
        problem = bind("squared_hinge", X, y, 1e-6, True, alpha=1.0)
        best = convex.Fit("squared_hinge", problem.design.columns(np.arange(6)), y, 1e-6, True)
        for size in (0.0, 0.1, 10.0):
            start = size * rng.standard_normal(6) / np.abs(X).max(axis=0)
            fit = minimize_on(problem, start, np.arange(6))
            assert fit.value == pytest.approx(float(best.value), abs=1e-13 * scale_of(problem))


def test_intercepts_of_large_predictors_are_the_best_ones():
    """A loss of maxima: every face but the right one is flat."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        eta, y = 10.0 ** rng.uniform(0, 6) * rng.standard_normal((15, 3)), rng.integers(0, 3, 15)
        problem = bind("softmax", eta, y, 0.0, True, alpha=1.0)
        eta = eta + problem.best_intercept(eta)
        value = problem.loss.value(eta, problem.y).sum()
        for step in 10.0 ** rng.uniform(-3, 6, (200, 1)) * rng.standard_normal((200, 3)):
            assert problem.loss.value(eta + step, problem.y).sum() >= value * (1.0 - 1e-12)


def test_separable_classes_in_units_a_million_apart():
    """A ridge that weighs on one column only must not hold back the other."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 2))
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    X *= [1e6, 1e-6]
    problem = bind("logistic", X, y, 0.0485, False, alpha=1.0)
    values = [minimize_on(problem, np.zeros(2), np.array(S)).value for S in ([0], [0, 1])]
    best = [convex.Fit("logistic", X[:, S], y, 0.0485, False).value for S in ([0], [0, 1])]
    assert values == pytest.approx([float(v) for v in best], abs=1e-13 * scale_of(problem))
    assert values[1] <= values[0] * (1.0 + 1e-9)


def test_softmax_of_two_classes_is_the_logistic_loss():
    """V = (v, −v) has the predictors ±2Xv/2, and twice its ridge is that of 2v."""
    for seed in range(12):
        X, y, ridge, intercept = draw("logistic", seed)
        best = convex.Fit("logistic", X, y, 0.5 * ridge, intercept)
        problem = bind("softmax", X, (y > 0.0).astype(float), ridge, intercept, alpha=1.0)
        everything, start = np.arange(X.shape[1]), problem.zero()
        fit = minimize_on(problem, start, everything)
        assert fit.value - float(best.value) <= 1e-12 * len(y), seed
        # a ceiling that can be reached, if hardly, changes nothing
        again = minimize_on(problem, start, everything, float(best.value) + 1e-11 * len(y))
        np.testing.assert_array_equal(fit.w, again.w)  # the same steps


def test_a_length_is_found_a_million_times_too_long_or_too_short():
    for at in (1e-7, 0.3, 1.0, 2e6):
        length, value = search_length(
            lambda t, at=at: (np.hypot(t - at, at), (t - at) / np.hypot(t - at, at), 0.0),
            np.hypot(at, at),
            -np.sqrt(0.5),
        )
        assert value < 1.1 * at and 0.5 * at < length < 2.0 * at
    assert search_length(lambda t: (1.0 + t, 1.0, 0.0), 1.0, -1.0) == (0.0, 1.0)


# converged -------------------------------------------------------------------------------------


def assert_no_single_change_helps(loss, X, y, ridge, intercept, form, **options):
    problem = bind(loss, X, y, ridge, intercept, **form)
    result = solve_bound(problem, **options)
    price, budget = problem.sparsity
    tolerance = 1.1 * TOLERANCE * scale_of(problem)

    def objective(support):
        columns = problem.design.columns(np.array(support, dtype=np.int64))
        fit = convex.Fit(loss, columns, y, ridge, intercept)
        return float(fit.value) + price * len(support)

    support = tuple(result.support.tolist())
    assert result.status is Status.CONVERGED
    assert abs(result.objective - objective(support)) <= tolerance
    for other in convex.neighbours(support, X.shape[1], budget, price):
        assert objective(other) >= result.objective - tolerance, (support, other)
    if result.objective > 1.01e-3 * scale_of(problem):
        is_full = price == 0.0 and len(support) == budget
        assert result.certificate is not None and result.certificate.complete
        assert result.certificate.level == (2 if is_full else 1)
    return result


@pytest.mark.parametrize("form", ["budget", "price", "both"])
@pytest.mark.parametrize("loss", OTHERS)
def test_no_single_change_improves_what_has_converged(loss, form):
    for seed in range(100, 104):
        X, y, ridge, intercept = draw(loss, seed, n=4)
        alpha = 10.0 ** np.random.default_rng(seed).uniform(-5.0, -0.5)
        alpha *= scale_of(bind(loss, X, y, ridge, intercept, alpha=1.0))
        forms = {"budget": {"n_nonzero_coefs": 2}, "price": {"alpha": alpha}}
        forms["both"] = {**forms["budget"], **forms["price"]}
        assert_no_single_change_helps(loss, X, y, ridge, intercept, forms[form], effort="fast")


@pytest.mark.slow
@pytest.mark.parametrize("loss", OTHERS)
def test_no_single_change_improves_larger_problems(loss):
    for seed in range(200, 212):
        X, y, ridge, intercept = draw(loss, seed, n=7)
        alpha = 1e-3 * scale_of(bind(loss, X, y, ridge, intercept, alpha=1.0))
        form = ({"n_nonzero_coefs": 3}, {"alpha": alpha})[seed % 2]
        assert_no_single_change_helps(loss, X, y, ridge, intercept, form, effort="fast")


@pytest.mark.parametrize("effort", ["fast", "balanced", "thorough"])
def test_outliers_do_not_hide_a_column(effort):
    """A majorizer of residuals of 1e5 is so steep that it sees no gain in any column."""
    rng = np.random.default_rng(6)
    X = rng.standard_normal((12, 2))
    y = X @ rng.standard_normal(2) * rng.choice([1, 100, 1e4]) + rng.standard_normal(12)
    y[rng.random(12) < 0.3] += 1e5
    model = L0Regressor(alpha=1448.38, loss="huber", ridge=1e-3, effort=effort, random_state=0)
    model.fit(X, y)
    assert model.support_.tolist() == [0] and model.objective_ < 539512.0
    assert model.certificate_.level == 1


@pytest.mark.parametrize("loss", OTHERS)
@pytest.mark.parametrize("n", [60, 600])
def test_certified_swaps_are_those_that_all_refits_confirm(loss, n):
    rng = np.random.default_rng(n)
    X = rng.standard_normal((60, n)) + 0.5 * rng.standard_normal((60, 1))
    eta = X[:, :2] @ [1.5, -1.5] + rng.standard_normal(60)
    y = 3.0 * eta if loss == "huber" else np.where(eta > 0.0, 1.0, -1.0)
    if is_positive(loss):
        y = amounts(loss, np.round(np.exp(np.clip(eta, -2, 2))))
    problem = bind(loss, X, y, 0.1, True, n_nonzero_coefs=2)
    result = solve_bound(problem, effort="fast")
    assert result.certificate is not None and result.certificate.level == 2
    for j in result.support:
        rest = result.support[result.support != j]
        for i in np.setdiff1d(np.arange(n), result.support)[::7]:
            fit = minimize_on(problem, result.coef, np.sort([*rest, i]))
            assert fit.value >= result.objective * (1.0 - 1e-9)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", OTHERS)
def test_no_column_at_all_is_certified_too(loss, intercept):
    X, y, _, _ = draw(loss, 1, n=3)
    price = 2.0 * scale_of(bind(loss, X, y, 0.1, intercept, alpha=1.0))
    result = solve_bound(bind(loss, X, y, 0.1, intercept, alpha=price))
    assert result.n_nonzero == 0 and result.certificate.level == 1
    classes = np.arange(len(y)) % 3
    model = L0Classifier(alpha=1e3, ridge=0.1, fit_intercept=intercept, random_state=0)
    assert model.fit(X, classes).certificate_.level == 1 and model.n_nonzero_ == 0


def test_several_classes_are_checked_too():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 12)) * 10.0 ** rng.integers(-6, 7, 12)
    signal = (X / np.abs(X).max(axis=0))[:, :3] @ rng.standard_normal((3, 3))
    y = np.argmax(6.0 * signal + rng.gumbel(size=(60, 3)), axis=1)
    for form in ({"n_nonzero_coefs": 2}, {"alpha": 2.0}):
        model = L0Classifier(**form, ridge=1e-9, random_state=0, effort="fast").fit(X, y)
        assert model.certificate_.level == (2 if "n_nonzero_coefs" in form else 1)
        problem = bind("softmax", X, y, 1e-9, True, **form)
        price, budget = problem.sparsity
        for support in convex.neighbours(model.support_.tolist(), 12, budget, price):
            columns = np.array(support, dtype=np.int64)
            found = minimize_on(problem, problem.zero(), columns)
            assert found.value + price * columns.size >= model.objective_ * (1.0 - 1e-9)


def test_every_point_of_a_path_is_certified():
    X, y, _, _ = draw("logistic", 1, n=5)
    path = l0_path(X, y, n_nonzero_coefs=3, loss="logistic", ridge=0.1, random_state=0)
    assert [point.certificate.level for point in path] == [2, 2, 2]


# duality ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "loss",
    [*(LOSSES[name] for name in OTHERS), Huber(0.3), Tweedie(1.1), Tweedie(1.95), Tweedie(1.0)],
    ids=str,
)
def test_conjugates_and_dual_curvatures(loss, rng):
    y = np.where(rng.random(200) < 0.5, 1.0, -1.0)
    if is_positive(loss):
        y = amounts(loss, rng.poisson(2.0, 200))
    eta = 2.0 * rng.standard_normal(200)
    u, unit = loss.gradient(eta, y), getattr(loss, "unit", 1.0)
    # equality at the slope, and an inequality elsewhere
    assert loss.conjugate(u, y) == pytest.approx(u * eta - loss.value(eta, y), abs=1e-12)
    for other in 3.0 * rng.standard_normal(20):
        assert np.all(loss.conjugate(u, y) >= u * other - loss.value(0.0 * y + other, y) - 1e-12)
    for reach in (0.1, 1.0, 2.0, 7.0):
        D = loss.dual_curvature(eta, y, reach * unit)
        assert np.all(D <= loss.curvature(eta, y) + 1e-15)
        for z in np.linspace(-reach, reach, 21) * unit * (1.0 - 1e-9):
            bound = loss.conjugate(u, y) + eta * D * z + 0.5 * D * z**2
            assert np.all(loss.conjugate(u + D * z, y) <= bound + 1e-12)
    assert loss.conjugate(np.array([1e9, -1e9]), y[:2]).max() == np.inf


def test_the_excess_of_entropies_is_enough():
    for reach in (1e-3, 0.1, 1.0, 2.0, 5.0):
        c = entropy_excess(reach)
        s = np.linspace(-reach, reach, 1001)[1:-1] / c
        s = s[np.abs(s) > 1e-3 / c * reach]
        assert np.all((1 + s) * np.log1p(s) - s <= 0.5 * c * s**2 * (1.0 + 1e-9))


def test_softmax_conjugate_and_slope(rng):
    eta, y = 3.0 * rng.standard_normal((40, 3)), rng.integers(0, 3, 40)
    P = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
    loss = Softmax(3)
    U = loss.gradient(eta, y)
    assert U + np.eye(3)[y] == pytest.approx(P, abs=1e-14)
    expected = np.sum(U * eta, axis=1) - loss.value(eta, y)
    assert loss.conjugate(U, y) == pytest.approx(expected, abs=1e-12)
    # a loss of exp(−700) is not zero
    assert loss.value(np.array([[0.0, -700.0]]), np.array([0]))[0] == np.exp(-700.0)


def left_closely(bounds, base, columns):
    """The columns that dual points of their own do not exclude."""
    model = bounds.model_at(base)
    return set(columns if model is None else model.left(columns))


@pytest.mark.parametrize("has_price", [False, True])
@pytest.mark.parametrize("loss", OTHERS)
def test_no_column_is_excluded_that_would_improve(loss, has_price):
    for seed in range(300, 306):
        X, y, ridge, intercept = draw(loss, seed, n=6)
        problem = bind(loss, X, y, ridge, intercept, n_nonzero_coefs=3, alpha=float(has_price))
        fits, bounds, support = make_fits(problem), DualBounds(problem), np.array([0, 1, 2])
        bases, gains = [], []
        for left in (-1, 0, 1, 2):
            S = support[support != left]
            fit = fits.minimum(S)
            eta = problem.design.column_matvec(S, fit.w[S]) + fit.intercept
            there = [fits.minimum(np.sort([*S, i]), fit.w).value for i in (3, 4, 5)]
            gains.append(fit.value - np.array(there))
            needed = float(np.median(gains[-1])) * 0.99
            bases.append(FittedSupport(S, fit.w, fit.intercept, fit.value, eta, needed, left))
        for group in bounds.groups(bases):
            for base, columns, _ in bounds.candidates(support, group):
                own = gains[[b.left for b in bases].index(base.left)]
                improving = 3 + np.flatnonzero(own > base.needed + 1e-12 * scale_of(problem))
                assert set(improving) <= set(columns)
                assert set(improving) <= left_closely(bounds, base, np.array([3, 4, 5]))


@pytest.mark.parametrize("loss", [*OTHERS, "softmax"])
def test_no_column_is_excluded_at_points_that_are_no_fits(loss, monkeypatch):
    """Rough points, clipped columns: every change that they exclude is re-fitted, and no better."""
    for module in (dual_bounds, softmax_bounds):
        monkeypatch.setattr(module, "by_chance", lambda *given: 0.0)
    n_excluded = 0
    for seed in range(400, 410):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((60, 8)) * 10.0 ** rng.integers(-2, 3, 8)
        # a few entries that leave any reach
        X[rng.integers(0, 60, 6), rng.integers(0, 8, 6)] *= rng.choice([1.0, 10.0, 100.0])
        unit = X / np.abs(X).max(axis=0)
        eta = unit[:, :4] @ rng.standard_normal(4) * rng.choice([1.0, 4.0])
        if loss == "softmax":
            y = np.argmax(unit[:, :3] * 3.0 + rng.gumbel(size=(60, 3)), axis=1)
        elif is_positive(loss):
            y = amounts(loss, rng.poisson(np.exp(eta)).astype(float))
        elif loss == "huber":
            y = eta + rng.standard_t(2, 60)
        else:
            y = np.where(eta + rng.logistic(size=60) > 0.0, 1.0, -1.0)
        ridge, support = (0.0, 1e-3, 1.0)[seed % 3], np.arange(3)
        problem = bind(loss, X, y, ridge, bool(seed % 2), n_nonzero_coefs=3)
        fits, bounds = make_fits(problem), SingleMoves(problem, make_fits(problem)).bounds
        fit = fits.minimum(support)
        for share in (0.0, 0.02, 0.2):
            # also from points that are not the best ones, so that columns do improve
            ceiling = fit.value + share * abs(scale_of_any(problem) - fit.value)
            bases = bounds.rough_bases(fit.w, support, support, fits.predictor(fit.w), ceiling)
            for base, left, _ in bounds.roughly(support, bases):
                # its intercept need not be the best one
                assert base.value >= problem.smooth(base.w) * (1.0 - 1e-12)
                for i in np.setdiff1d(np.arange(3, 8), left):
                    there = fits.minimum(np.sort([*base.support, i]), fit.w).value
                    assert there >= ceiling - 1e-11 * scale_of_any(problem), (seed, base.left, i)
                    n_excluded += 1
    assert n_excluded > 20


def scale_of_any(problem):
    """The loss without columns, of any number of outputs."""
    return problem.smooth(problem.zero())


def test_bounds_exclude_nearly_all_of_many_columns(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 300))
    y = np.where(X[:, :3].sum(axis=1) + rng.logistic(size=400) > 0.0, 1.0, -1.0)
    counts, refit = [], SingleMoves._refit
    monkeypatch.setattr(SingleMoves, "_refit", lambda *a: (counts.append(1), refit(*a))[1])
    result = blockl0.solve(X, y, n_nonzero_coefs=3, loss="logistic", effort="fast", random_state=0)
    assert result.certificate.level == 2 and len(counts) < 30


@pytest.mark.parametrize("n_classes", [3, 7])
def test_softmax_bounds_exclude_no_column_that_would_improve(n_classes):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((40, 6)) * 10.0 ** rng.integers(-3, 4, 6)
        signal = (X / np.abs(X).max(axis=0)) @ rng.standard_normal((6, n_classes))
        y = np.argmax(signal + rng.gumbel(size=signal.shape), axis=1)
        y[:n_classes] = np.arange(n_classes)
        ridge = (0.0, 1e-3, 1.0)[seed % 3]
        problem = bind("softmax", X, y, ridge, bool(seed % 2), n_nonzero_coefs=3)
        bounds, zero, S = SoftmaxBounds(problem), problem.zero(), np.array([0, 1])
        point = minimize_on(problem, zero, S)
        eta = problem.predictor(point.w)
        there = [minimize_on(problem, zero, np.array([0, 1, i])).value for i in range(2, 6)]
        gains = point.value - np.array(there)
        for needed in np.quantile(gains, [0.3, 0.7, 0.99]):
            base = FittedSupport(S, point.w, 0.0, point.value, eta, needed, -1)
            improving = set(2 + np.flatnonzero(gains > needed + 1e-9))
            assert improving <= set(bounds.candidates(S, [base])[0].columns)
            assert improving <= left_closely(bounds, base, np.arange(2, 6))


def test_matrices_that_are_surely_regular_are_inverted(rng):
    for q in (1, 2, 6):
        R = rng.standard_normal((30, q, q))
        M = np.einsum("kij,klj->kil", R, R)
        M[0], M[1, :, 0], M[2] = 0.0, 0.0, 1.0
        M[3] = R[3, :, :1] @ R[3, :, :1].T
        least = 0.1 * np.trace(M, axis1=1, axis2=2)
        is_free, inverse = inverses(M, least)
        smallest = np.linalg.svd(M, compute_uv=False)[:, -1]
        assert np.all(smallest[is_free] > least[is_free]) and (is_free.any() or q == 6)
        # the Frobenius norm of an inverse is at most √q times the largest singular value
        assert is_free[smallest > np.sqrt(q) * least * (1.0 + 1e-9)].all()
        products = np.einsum("kij,kjl->kil", M[is_free], inverse[is_free])
        assert products == pytest.approx(np.tile(np.eye(q), (len(products), 1, 1)), abs=1e-9)


def test_largest_entries_of_every_storage(rng):
    import scipy.sparse as sp

    X = rng.standard_normal((20, 5)) * (rng.random((20, 5)) < 0.5) + [0.0, 0.0, 3.0, 0.0, 0.0]
    X[:, 4] = 0.0
    for matrix in (X, sp.csc_array(X)):
        for intercept in (False, True):
            design = bind("huber", matrix, X[:, 0], 0.0, intercept, alpha=1.0).design
            expected = np.abs(design.columns(np.arange(5))).max(axis=0)
            assert largest_entries(design) == pytest.approx(expected)


# limits ----------------------------------------------------------------------------------------


class Plain:
    """A loss of somebody else's, of which neither a majorizer nor a conjugate is known."""

    name, curvature_bound = "plain", 0.25
    value, gradient, curvature, check_target = (
        getattr(LOSSES["logistic"], name)
        for name in ("value", "gradient", "curvature", "check_target")
    )


def test_without_a_conjugate_all_changes_are_refitted():
    X, y, _, _ = draw("logistic", 2, n=6)
    found = [
        blockl0.solve(X, y, n_nonzero_coefs=2, ridge=0.1, loss=loss, random_state=0)
        for loss in (Plain(), "logistic")
    ]
    assert found[0].objective == pytest.approx(found[1].objective, rel=1e-12)
    assert found[0].certificate.level == 2


def test_a_check_that_is_cut_short_claims_nothing(monkeypatch):
    X, y, _, _ = draw("huber", 2, n=6)
    problem = bind("huber", X, y, 0.1, True, n_nonzero_coefs=2)
    moves, w = SingleMoves(problem, make_fits(problem)), np.zeros(6)
    fit = minimize_on(problem, w, np.array([0, 1]))
    verdict = moves.check(fit.w, fit.value, 0.0, Run(problem, 0.0))
    assert verdict.better is None and not verdict.is_complete
    monkeypatch.setattr("blockl0.moves.single_moves.MOST_WORK", 10.0)
    result = solve_bound(problem, effort="fast")
    assert result.status is Status.CONVERGED and result.certificate is None


def noise_problem(seed, **sparsity):
    """Labels that mean nothing: at a point of few columns many changes are nearly as good."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((40, 60)), np.where(rng.random(40) < 0.5, -1.0, 1.0)
    return as_problem(X, y, loss="logistic", ridge=1e-3, **sparsity)


def test_a_check_with_too_many_re_fits_is_given_up_before_they_are_made(monkeypatch):
    problem = noise_problem(0, n_nonzero_coefs=8)
    fit = minimize_on(problem, problem.zero(), np.arange(8))
    counts = []
    # that none improves is what makes a check long; these re-fits count nothing themselves
    monkeypatch.setattr(SingleMoves, "_refit", lambda *given: counts.append(1))
    monkeypatch.setattr("blockl0.moves.single_moves.AT_ONCE", 2)
    moves = SingleMoves(problem, make_fits(problem))
    verdict = moves.check(fit.w, fit.value, 0.0)
    assert verdict.is_complete
    n_all, n_bases = len(counts), 8
    assert n_all > 10 * n_bases
    most = verdict.work - 0.5 * n_all * moves._refit_cost(8)
    monkeypatch.setattr("blockl0.moves.single_moves.MOST_WORK", most)
    counts.clear()
    assert not SingleMoves(problem, make_fits(problem)).check(fit.w, fit.value, 0.0).is_complete
    assert len(counts) <= 2 * n_bases


@pytest.mark.parametrize("at_once", [0, 1, 10**6])
def test_re_fits_that_are_put_off_change_no_verdict(monkeypatch, at_once):
    monkeypatch.setattr("blockl0.moves.single_moves.AT_ONCE", at_once)
    for seed in range(4):
        problem = noise_problem(seed, alpha=2.0)
        for size in (1, 3):
            w = minimize_on(problem, problem.zero(), np.arange(size)).w
            here = problem.objective(w)
            supports = [
                np.array(sorted({*range(size)} - {j} | {i}))
                for j in range(-1, size)
                for i in range(60)
            ]
            best = min(
                minimize_on(problem, problem.zero(), S).value + 2.0 * S.size for S in supports
            )
            verdict = SingleMoves(problem, make_fits(problem)).check(w, here, 1e-9)
            assert (verdict.better is not None) == (best < here - 1e-9)
            assert verdict.is_complete == (verdict.better is None)


def test_an_improvement_of_the_check_is_taken_and_ctrl_c_keeps_it(monkeypatch):
    """Models are made blind, so that only the check moves the point; then it is interrupted."""
    X, y, _, _ = draw("logistic", 3, n=5)
    problem = bind("logistic", X, y, 0.1, True, n_nonzero_coefs=1)
    for name in ("settle", "walk"):
        monkeypatch.setattr(
            f"blockl0.search.local_search.LocalSearch.{name}", lambda self, point, *a, **k: point
        )
    worst = max(range(5), key=lambda j: minimize_on(problem, np.zeros(5), np.array([j])).value)
    init = np.eye(5)[worst]
    result = solve_bound(problem, init=init, effort="fast")
    best = min(minimize_on(problem, np.zeros(5), np.array([j])).value for j in range(5))
    assert result.objective == pytest.approx(best, rel=1e-12)
    check, calls = SingleMoves.check, []

    def interrupted(self, *arguments, **options):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return check(self, *arguments, **options)

    monkeypatch.setattr(SingleMoves, "check", interrupted)
    cut = solve_bound(problem, init=init, effort="fast")
    assert cut.status is Status.INTERRUPTED and cut.certificate is None
    assert cut.objective < minimize_on(problem, init, np.array([worst])).value


def test_the_poisson_loss_of_large_counts_keeps_its_digits():
    y = np.array([1e6, 1e9, 3.0, 0.0])
    for shift in (1e-7, 1e-4, 0.019, 0.021, 1.0):
        eta = np.log(np.where(y > 0.0, y, 1.0)) + shift
        exact = convex.terms("poisson", eta.astype(np.longdouble), y.astype(np.longdouble))[0]
        # the rounding of eta itself is all there is
        error = np.abs(LOSSES["poisson"].gradient(eta, y)) * 2e-16 * np.abs(eta)
        difference = np.abs(LOSSES["poisson"].value(eta, y) - exact.astype(float))
        assert np.all(difference <= 4.0 * error + 1e-14 * exact.astype(float))


@pytest.mark.parametrize("seed", range(12))
def test_what_a_point_that_is_no_fit_may_gain_itself_is_part_of_the_bound(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_t(3, (80, 40))
    y = X[:, :3].sum(axis=1) + 0.3 * rng.standard_normal(80)
    problem = as_problem(
        X, y, n_nonzero_coefs=3, loss=f"huber:{rng.choice([3, 10, 30])}", ridge=0.1
    )
    fits, there = make_fits(problem), np.arange(1, 3)
    w = problem.zero()
    w[there] = fits.minimum(there).w[there] + 0.3 * rng.standard_normal(2)
    value = problem.smooth(w)
    for enters in rng.choice(np.arange(3, 40), 4, replace=False):
        best = fits.minimum(np.append(there, enters)).value
        base = FittedSupport(there, w, 0.0, value, X @ w, (value - best) * (1.0 - 1e-4), 0)
        assert enters in DualBounds(problem).candidates(np.arange(3), [base])[0].columns


class Kept(Logistic):
    """A loss whose arrays are its own."""

    takes_many_classes = False

    def terms(self, eta, y):
        """Arrays that nobody may write to."""
        terms = tuple(np.array(term) for term in super().terms(eta, y))
        for term in terms:
            term.flags.writeable = False
        return terms


@pytest.mark.parametrize("seed", range(3))
def test_what_a_loss_returns_is_not_written_to(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((200, 60))
    y = np.where(rng.random(200) < 1.0 / (1.0 + np.exp(-2.0 * X[:, :5].sum(axis=1))), 1.0, -1.0)
    own, plain = (
        blockl0.solve(X, y, n_nonzero_coefs=5, loss=loss, random_state=0)
        for loss in (Kept(), "logistic")
    )
    assert np.array_equal(own.support, plain.support)
    assert own.objective == pytest.approx(plain.objective, rel=1e-12)
