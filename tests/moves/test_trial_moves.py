"""Losses that are not quadratic: no support of a small problem is missed, and models lie above."""

from __future__ import annotations

import numpy as np
import pytest

import blockl0
import oracles
from blockl0 import L0Classifier
from blockl0.losses import LOSSES, Huber, majorizer_curvature
from blockl0.moves.trial_moves import Trials, best_fit
from blockl0.problem.fits import make_fits
from blockl0.problem.newton import minimize_on
from blockl0.problem.preprocess import apply
from blockl0.problem.problem import as_problem
from blockl0.run import Run
from grid import BOUNDED, OTHERS
from targets import amounts, as_target, is_positive


def make_data(loss, seed, m=50, n=7):
    """Correlated columns; residuals beyond Huber's delta, classes that are nearly separable."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n)) @ (np.eye(n) + 0.5)
    eta = X @ (rng.standard_normal(n) * (rng.random(n) < 0.6)) + rng.standard_normal(m)
    if is_positive(loss):
        return X, amounts(loss, rng.poisson(np.exp(np.clip(eta, -3.0, 3.0))))
    return X, as_target(loss, 3.0 * eta)


def best_trial(problem, w, objective, run=None):
    """The coefficients of the best trial that lowers the objective; None for none."""
    fits = make_fits(problem)
    changes = Trials(problem, fits).changes(w)
    fit = best_fit(problem, fits, changes, objective - 1e-9, run)
    return None if fit is None else fit.w


def brute_force(problem):
    budget = problem.sparsity.budget
    supports = oracles.subsets(range(problem.n_features), budget)
    return min(problem.objective(make_fits(problem).on(np.array(S, np.int64)).w) for S in supports)


@pytest.mark.parametrize("alpha", [None, 2.0])
@pytest.mark.parametrize("loss", OTHERS)
def test_small_problems_are_solved_to_the_optimum(loss, alpha):
    """Not promised by single changes, but by these twelve problems of each kind."""
    ratios = []
    for seed in range(6):
        X, y = make_data(loss, seed)
        for k in (1, 3):
            form = {"n_nonzero_coefs": k, "alpha": alpha, "ridge": 0.1, "loss": loss}
            result = blockl0.solve(X, y, effort="fast", random_state=0, **form)
            ratios.append(result.objective / brute_force(as_problem(X, y, **form)))
    ratios = np.array(ratios)
    assert np.all(ratios >= 1.0 - 1e-8)
    assert ratios.max() <= 1.0 + 1e-7


@pytest.mark.parametrize("loss", OTHERS)
def test_a_trial_is_never_worse_and_finds_what_a_bad_support_lacks(loss):
    X, y = make_data(loss, 0)
    problem = as_problem(X, y, n_nonzero_coefs=1, ridge=0.1, loss=loss)
    points = [make_fits(problem).on(np.array([j])).w for j in range(7)]
    values = [problem.objective(w) for w in points]
    best = int(np.argmin(values))
    for j in range(7):
        found = best_trial(problem, points[j], values[j])
        assert (found is None) == (j == best)
        if found is not None:
            assert problem.objective(found) < values[j]


def test_a_trial_respects_kept_columns_and_weights():
    X, y = make_data("logistic", 1)
    weights = np.random.default_rng(0).integers(1, 3, 50).astype(float)
    form = {"n_nonzero_coefs": 2, "ridge": 0.1, "loss": "logistic", "keep": [0]}
    problem = as_problem(X, y, sample_weight=weights, **form)
    start = make_fits(problem).on(np.array([0, 1])).w
    found = best_trial(problem, start, problem.objective(start))
    again = np.repeat(np.arange(50), weights.astype(int))
    repeated = as_problem(X[again], y[again], **form)
    other = best_trial(repeated, start, repeated.objective(start))
    assert found is not None and found[0] != 0.0 and np.count_nonzero(found) == 2
    assert found == pytest.approx(other, rel=1e-6)


@pytest.mark.parametrize("loss", [*(LOSSES[name] for name in BOUNDED), Huber(delta=0.3)], ids=str)
def test_majorizers_touch_and_lie_above(loss):
    rng = np.random.default_rng(0)
    y = np.sign(rng.standard_normal(200))
    at = 6.0 * rng.standard_normal(200)
    bend = majorizer_curvature(loss, at, y)
    assert np.all(bend <= loss.curvature_bound + 1e-15) and np.all(bend > 0.0)
    for there in np.linspace(-20.0, 20.0, 81):
        step = there - at
        model = loss.value(at, y) + loss.gradient(at, y) * step + 0.5 * bend * step**2
        assert np.all(model >= loss.value(at + step, y) - 1e-12)


def test_newton_gives_up_what_cannot_reach_its_target():
    X, y = make_data("logistic", 2)
    problem = as_problem(X, y, n_nonzero_coefs=3, ridge=0.1, loss="logistic")
    support, zero = np.array([0, 1, 2]), np.zeros(7)
    fit = minimize_on(problem, zero, support)
    assert fit.value == fit.least == pytest.approx(problem.smooth(fit.w), rel=1e-12)
    given_up = minimize_on(problem, zero, support, target=0.01 * fit.value)
    assert given_up.value > fit.value > given_up.least
    reached = minimize_on(problem, zero, support, target=1.01 * fit.value)
    assert reached.value == reached.least == pytest.approx(fit.value, rel=1e-9)


def test_separable_classes_without_ridge_end_soon():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 12))
    y = np.where(X[:, 2] - 2.0 * X[:, 5] > 0.0, 1.0, -1.0)
    result = blockl0.solve(X, y, n_nonzero_coefs=2, loss="logistic", random_state=0)
    assert result.support.tolist() == [2, 5] and result.n_iter < 60
    assert result.objective < 1e-6 * 80 * np.log(2.0)


def test_newton_reaches_the_minimizer_from_flat_parts_and_from_far_away():
    """Residuals of a hundred deltas have no curvature; a rate of exp(1000) has too much."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3)) * [1.0, 0.01, 100.0]
    y = 30.0 * X[:, 0] + 100.0 * rng.standard_normal(50) + 1000.0
    counts = rng.poisson(np.exp(0.5 * X[:, 0])).astype(float)
    support = np.arange(3)
    for target, loss, start in ((y, "huber", 0.0), (counts, "poisson", 10.0)):
        for fit_intercept in (True, False):
            problem = as_problem(X, target, n_nonzero_coefs=3, loss=loss)
            problem = apply(problem, fit_intercept).problem
            fit = minimize_on(problem, np.full(3, start), support)
            norms = np.sqrt(problem.design.sq_norms())
            assert np.abs(problem.gradient(fit.w) / norms).max() < 1e-5
            assert fit.value == pytest.approx(problem.smooth(fit.w), rel=1e-9)


def test_known_fits_are_those_of_newton():
    X, y = make_data("logistic", 3)
    problem = apply(as_problem(X, y, n_nonzero_coefs=3, ridge=0.1, loss="logistic")).problem
    fits, zero, support = make_fits(problem), np.zeros(7), np.array([1, 4])
    expected = minimize_on(problem, zero, support)
    given_up = fits.on(support, ceiling=0.1 * expected.value)
    assert given_up.least < given_up.value and given_up.value > expected.value
    # remembered, not computed again
    assert fits.on(support, ceiling=0.1 * expected.value).value == given_up.value
    for _ in range(2):
        fit = fits.on(support, zero)
        assert fit.value == fit.least == pytest.approx(expected.value, rel=1e-12)
        assert fit.w == pytest.approx(expected.w, rel=1e-6)
        fit.w[:] = 0.0  # a copy: what is known must not change
    eta, intercept = fits.predictor(expected.w)
    assert problem.best_intercept(eta) == pytest.approx(0.0, abs=1e-6)
    assert intercept == pytest.approx(expected.intercept, abs=1e-6)
    assert eta == pytest.approx(problem.predictor(expected.w), rel=1e-6)


def test_an_addition_that_promises_little_is_found():
    """A step of the squared hinge may bring more than it promises, to first order."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((40, 6)) @ (np.eye(6) + 1.0)
    signal = X @ (rng.standard_normal(6) * (rng.random(6) < 0.6)) + rng.standard_normal(40)
    model = L0Classifier(3, alpha=2.0, ridge=0.1, loss="squared_hinge", random_state=0)
    assert model.fit(X, signal > 0.0).support_.tolist() == [1, 2, 3]


def test_trials_end_with_the_time():
    X, y = make_data("logistic", 2)
    problem = as_problem(X, y, n_nonzero_coefs=2, ridge=0.1, loss="logistic")
    start = make_fits(problem).on(np.array([6])).w
    assert best_trial(problem, start, problem.objective(start), Run(problem)) is not None
    assert best_trial(problem, start, problem.objective(start), Run(problem, 0.0)) is None


@pytest.mark.parametrize("loss", OTHERS)
def test_a_path_of_prices_tries_moves_at_its_own_prices(loss):
    """Fits are shared along a path: what they were first made for says nothing of the price."""
    X, y = make_data(loss, 1)
    form = {"ridge": 0.1, "loss": loss}
    path = blockl0.l0_path(X, y, alphas=[30.0, 5.0, 1.0], random_state=0, **form)
    truth = [brute_force(as_problem(X, y, alpha=price, **form)) for price in path.alphas]
    assert path.objective == pytest.approx(np.array(truth), rel=1e-7)
