"""Every registered loss with every method, form and storage, and against enumeration."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from grid import FORMS, LOSS_NAMES, METHOD_NAMES, RIDGE, STORAGES, enumerate_supports, features

from grid import make_problem, quick_first, target_for, zero  # isort: skip
from sklearn.base import clone

import blockl0
from blockl0.certify import certify_problem
from blockl0.losses import LOSSES
from blockl0.methods import METHODS
from blockl0.problem.fits import make_fits
from blockl0.solve import solve_problem

EXACT_LEVELS = {
    name
    for name, loss in LOSSES.items()
    if loss.is_quadratic or loss.n_outputs != 1 or not np.isfinite(loss.curvature_bound)
}
"""Losses whose certificates are about the loss itself, and not about a quadratic above it."""
SAME = 1e-7
"""Objectives of the same answer from sums in another order, or of another minimizer."""


def by_hand(problem, w):
    """The objective, written out from the loss alone."""
    support = np.flatnonzero(w if w.ndim == 1 else w.any(axis=1))
    eta = problem.design.columns(support) @ w[support]
    eta = eta if not problem.has_intercept else eta + problem.best_intercept(eta)
    loss = problem.loss.value(eta, problem.y).sum() + 0.5 * RIDGE * np.sum(w**2)
    return loss + problem.sparsity.price * support.size, support.size


@pytest.mark.parametrize("method", METHOD_NAMES)
@pytest.mark.parametrize("name", quick_first(LOSS_NAMES, 3))
def test_every_method_is_feasible_honest_and_reproducible(name, method):
    quick = {"effort": "fast"} if "effort" in METHODS[method].defaults else {}
    for form in FORMS:
        for has_intercept in (False, True):
            answers = {}
            # an intercept reads X through its centring, which has to know every storage as well
            for storage in STORAGES if has_intercept else ("fortran", "csc"):
                problem = make_problem(name, form, storage, has_intercept=has_intercept)
                if METHODS[method].refusal(problem):
                    with pytest.raises(ValueError, match=f"method='{method}' .*use method="):
                        solve_problem(problem, method, random_state=0)
                    continue
                result = solve_problem(problem, method, random_state=0, **quick)
                value, count = by_hand(problem, problem.from_given(result.coef))
                assert count == result.n_nonzero <= problem.sparsity.budget
                assert result.objective == pytest.approx(value, rel=1e-10)
                assert result.objective <= problem.objective(zero(problem)) * (1 + 1e-9)
                answers[storage] = result.objective
            if answers:
                problem = make_problem(name, form, has_intercept=has_intercept)
                again = solve_problem(problem, method, random_state=0, **quick).objective
                first = answers["fortran"]
                assert again == first
                assert answers == pytest.approx(dict.fromkeys(answers, first), rel=SAME)


@pytest.mark.parametrize("has_intercept", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", LOSS_NAMES)
def test_the_default_finds_what_enumeration_finds(name, form, has_intercept):
    weights = np.linspace(0.2, 2.0, 40)
    for more in [{"keep": [4]}, {"sample_weight": weights}] if has_intercept else [{}]:
        problem = make_problem(name, form, has_intercept=has_intercept, **more)
        result = solve_problem(problem, random_state=0)
        best, support = enumerate_supports(problem)
        assert result.objective == pytest.approx(best, rel=1e-6)
        assert result.objective <= best * (1 + 1e-9)
        assert tuple(result.support.tolist()) == support


@pytest.mark.parametrize("name", LOSS_NAMES)
def test_paths_fall_and_meet_single_answers(name):
    loss = LOSSES[name]
    X, y = features(), target_for(loss)
    path = blockl0.l0_path(X, y, n_nonzero_coefs=4, loss=loss, ridge=RIDGE, random_state=0)
    assert np.all(np.diff(path.objective) <= 1e-12 * path.objective[:-1])
    for k, result in enumerate(path, 1):
        alone = blockl0.solve(
            X, y, n_nonzero_coefs=k, loss=loss, ridge=RIDGE, random_state=0, effort="fast"
        )
        assert result.objective <= alone.objective * (1 + 1e-12)
    assert path.criterion("bic").shape == (4,) and path.best("bic").n_nonzero >= 1


@pytest.mark.parametrize("has_intercept", [False, True])
@pytest.mark.parametrize("name", LOSS_NAMES)
def test_certificates_of_every_loss_agree_with_enumeration(name, has_intercept):
    problem = make_problem(name, "budget", has_intercept=has_intercept)
    best = solve_problem(problem, random_state=0)
    for level in ("basic", 1, 2):
        assert certify_problem(problem, best.coef, level=level).holds
    # the fit on columns that are not the best ones is basic, and a swap improves it
    fits = make_fits(problem)
    for support in ([1, 3], [4, 5], [0, 5]):
        w = problem.to_given(fits.minimum(np.array(support)).w)
        near, _ = enumerate_supports(problem, np.array(support))
        here = problem.objective(problem.from_given(w))
        assert certify_problem(problem, w, level="basic").holds
        found = certify_problem(problem, w, level=2)
        if name in EXACT_LEVELS:
            assert found.holds == (here <= near + 1e-7 * here)
        if not found.holds:
            assert found.better_objective < here
            better = problem.objective(problem.from_given(found.better_coef))
            assert better == pytest.approx(found.better_objective, rel=1e-9)


@pytest.mark.parametrize("name", LOSS_NAMES)
def test_estimators_take_every_loss(name):
    problem = make_problem(name, has_intercept=True)
    X, y, expected = features(), target_for(LOSSES[name]), solve_problem(problem, random_state=0)
    if problem.n_outputs > 1:
        # of several classes the logistic loss is the softmax loss
        name = next(name for name, loss in LOSSES.items() if loss.takes_many_classes)
    loss = LOSSES[name]
    kind = blockl0.L0Classifier if loss.takes_labels else blockl0.L0Regressor
    for given in (name, loss):
        model = clone(kind(2, loss=given, ridge=RIDGE, random_state=0)).fit(X, y)
        assert model.objective_ == pytest.approx(expected.objective, rel=SAME)
        assert model.support_.tolist() == expected.support.tolist()
        assert np.atleast_2d(model.coef_).shape == (problem.n_outputs, problem.n_features)
        assert model.n_nonzero_ <= 2 and model.result_.objective == model.objective_
        predicted = pickle.loads(pickle.dumps(model)).predict(X)
        np.testing.assert_array_equal(predicted, model.predict(X))
        assert model.score(X, y) > 0.2
        if loss.takes_labels:
            assert set(predicted) <= set(y)
    chosen = type(model).__name__ + "CV"
    of_all = getattr(blockl0, chosen)(loss=name, ridge=RIDGE, cv=3, rule="min", random_state=0)
    cv = of_all.fit(X, y)
    assert 1 <= cv.n_nonzero_ <= 6
