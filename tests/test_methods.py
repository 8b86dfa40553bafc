"""Capabilities: what a method declares it cannot do is refused before it runs, by name."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import blockl0
from blockl0.methods import METHODS
from blockl0.problem.preprocess import apply
from blockl0.problem.problem import as_problem
from blockl0.result import Status
from blockl0.solve import solve_problem
from blockl0.units import Columns
from grid import FORMS, LOSS_NAMES, make_problem
from targets import as_target


def make(loss="squared", m=40, n=6):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((m, n)) + 1.0
    y = X[:, 0] - X[:, 2] + 0.3 * rng.standard_normal(m)
    return as_problem(X, as_target(loss, y, np.median(y)), loss=loss, n_nonzero_coefs=2)


def accepted(problem):
    return {name for name, method in METHODS.items() if method.refusal(problem) is None}


def test_every_method_takes_some_problems_and_the_default_takes_all():
    """What is taken runs, and what is not is refused: `test_grid` asks each."""
    cases = product(LOSS_NAMES, FORMS, (False, True))
    taken = [
        accepted(make_problem(name, form, has_intercept=has_intercept))
        for name, form, has_intercept in cases
    ]
    assert all("refit" in names for names in taken)
    for name in METHODS:
        assert sum(name in names for names in taken) >= 2


def test_dec_has_no_intercept_inside_the_loss():
    problem = apply(make("logistic")).problem
    with pytest.raises(ValueError, match="method='dec' has no intercept for loss='logistic'"):
        solve_problem(problem, "dec")
    # the squared loss is centred beforehand, so that there is none inside
    assert solve_problem(apply(make()).problem, "dec", random_state=0).n_nonzero == 2


def test_a_gradient_method_minimizes_over_the_intercept_as_well():
    problem = apply(replace(make("logistic"), ridge=0.1)).problem
    result = solve_problem(problem, "pgm", random_state=0, tol=0.0, max_iter=5000)
    w = problem.from_given(result.coef)
    support = np.flatnonzero(w)
    assert np.abs(problem.gradient(w)[support]).max() < 1e-6


def test_unknown_methods_and_options_are_named_before_data_are_read():
    with pytest.raises(ValueError, match="'refitt'"):
        blockl0.solve("no data", None, method="refitt")
    with pytest.raises(TypeError, match="does not know the option `effrot`"):
        blockl0.solve("no data", None, effrot="fast")


def test_the_door_is_the_same_for_solve_and_for_estimators():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 8))
    y = X[:, 1] + 0.1 * rng.standard_normal(50)
    model = blockl0.L0Regressor(n_nonzero_coefs=2, random_state=0).fit(X, y)
    result = model.result_
    assert result.status is Status.OPTIMAL and result.gap == 0.0
    assert result.n_passes >= 1 and result.seconds > 0.0
    assert result.options["method"] == "refit" and result.options["effort"] == "balanced"
    np.testing.assert_array_equal(result.coef, model.coef_)
    assert result.objective == model.objective_ and result.certificate is model.certificate_


def test_what_a_budget_counts_is_a_capability():
    class Pairs(Columns):
        pass

    class Others:
        def support(self, w):
            return np.flatnonzero(w)

        def count(self, w):
            return int(np.count_nonzero(w))

    assert solve_problem(replace(make(), units=Pairs()), random_state=0).n_nonzero == 2
    for name in METHODS:
        if "budget" in METHODS[name].forms:
            with pytest.raises(ValueError, match="knows no `feature_groups`; no method can"):
                solve_problem(replace(make(), units=Others()), name)


def test_nothing_to_choose_still_checks_its_options():
    X = np.random.default_rng(0).standard_normal((20, 3))
    with pytest.raises(ValueError, match="`effort` must be one of"):
        blockl0.L0Regressor(3, effort="nonsense").fit(X, X[:, 0])
