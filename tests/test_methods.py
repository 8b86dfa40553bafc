"""Capabilities: what a method declares it cannot do is refused before it runs, by name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import blockl0
from blockl0.methods import METHODS
from blockl0.problem.preprocess import apply
from blockl0.problem.problem import as_problem
from blockl0.result import Status
from blockl0.solve import solve_problem
from blockl0.units import Columns


def make(loss="squared", m=40, n=6, **sparsity):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((m, n)) + 1.0
    y = X[:, 0] - X[:, 2] + 0.3 * rng.standard_normal(m)
    if loss in ("logistic", "squared_hinge"):
        y = (y > np.median(y)).astype(float)
    elif loss == "poisson":
        y = np.round(np.exp(0.3 * y))
    return as_problem(X, y, loss=loss, **(sparsity or {"n_nonzero_coefs": 2}))


def accepted(problem):
    return {name for name, method in METHODS.items() if method.refusal(problem) is None}


@pytest.mark.parametrize("name", METHODS)
def test_what_is_not_refused_runs(name):
    problems = [
        make(loss, **sparsity)
        for loss in ("squared", "logistic", "poisson", "huber")
        for sparsity in ({"n_nonzero_coefs": 2}, {"alpha": 1.0}, {"n_nonzero_coefs": 2, "alpha": 1})
    ]
    problems += [apply(problem).problem for problem in problems]
    taken = 0
    for problem in problems:
        if METHODS[name].refusal(problem) is None:
            result = solve_problem(problem, name, random_state=0)
            assert result.objective <= problem.objective(np.zeros(6)) * (1.0 + 1e-9)
            taken += 1
        else:
            with pytest.raises(ValueError, match=rf"method='{name}' .*use method='refit'"):
                solve_problem(problem, name, random_state=0)
    assert taken >= 2


def test_the_default_takes_everything():
    for loss in ("squared", "logistic", "poisson"):
        for sparsity in (
            {"n_nonzero_coefs": 2},
            {"alpha": 1.0},
            {"n_nonzero_coefs": 2, "alpha": 1},
        ):
            assert "refit" in accepted(make(loss, **sparsity))
            assert "refit" in accepted(apply(make(loss, **sparsity)).problem)


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
            with pytest.raises(ValueError, match="counts columns, got Others; no method can"):
                solve_problem(replace(make(), units=Others()), name)


def test_nothing_to_choose_still_checks_its_options():
    X = np.random.default_rng(0).standard_normal((20, 3))
    with pytest.raises(ValueError, match="`effort` must be one of"):
        blockl0.L0Regressor(3, effort="nonsense").fit(X, X[:, 0])
