"""The one door: every solve of a bound problem, and what goes through it without a search."""

from __future__ import annotations

import numpy as np
import pytest

from blockl0 import L0Regressor, Status, l0_path, solve
from blockl0.problem.problem import as_problem
from blockl0.solve import open_run, solve_problem, solve_targets


def test_many_targets_are_each_solved_as_alone(rng):
    X, Y = rng.standard_normal((30, 40)), rng.standard_normal((5, 30))
    problem = as_problem(X, Y[0], n_nonzero_coefs=4)
    for y, result in zip(Y, solve_targets(problem, Y, seed=3, effort=2), strict=True):
        alone = solve(X, y, n_nonzero_coefs=4, random_state=3, effort=2)
        assert result.objective == pytest.approx(alone.objective)
        assert result.options == alone.options


def test_every_door_refuses_by_capability(rng):
    X, y = rng.standard_normal((20, 6)), rng.poisson(1.0, 20)
    problem = as_problem(X, y, alpha=1.0, loss="poisson")
    for door in (solve_problem, lambda *given: open_run(*given, {})):
        with pytest.raises(ValueError, match="method='dec' needs a quadratic above the loss"):
            door(problem, "dec")
    with pytest.raises(TypeError, match="frobnicate"):
        next(solve_targets(problem, [y], seed=0, frobnicate=1))
    with pytest.raises(TypeError, match="frobnicate"):
        l0_path(X, y, n_nonzero_coefs=2, frobnicate=1)


@pytest.mark.parametrize("loss", ["squared", "huber", "poisson"])
@pytest.mark.parametrize("form", [{"n_nonzero_coefs": 30}, {"n_nonzero_coefs": 2, "keep": [3, 8]}])
def test_with_nothing_to_choose_the_columns_are_only_fitted(rng, loss, form):
    X = rng.standard_normal((50, 30))
    X[:, 7] = 0.0
    y = np.abs(np.round(X[:, 3] + rng.standard_normal(50)))
    points = []
    result = solve(X, y, loss=loss, ridge=0.5, random_state=0, callback=points.append, **form)
    columns = form.get("keep", [j for j in range(30) if j != 7])
    budget = form["n_nonzero_coefs"]
    assert result.support.tolist() == columns and len(points) == 1
    # the gradient is zero on the columns, so that the point is the minimum over them
    problem = as_problem(X, y, loss=loss, ridge=0.5, **form)
    assert np.abs(problem.gradient(result.coef)[columns]).max() < 1e-6
    assert result.status is (Status.OPTIMAL if loss == "squared" else Status.CONVERGED)
    assert result.certificate is not None and result.certificate.holds
    path = l0_path(X, y, loss=loss, ridge=0.5, keep=form.get("keep"), n_nonzero_coefs=[budget])
    np.testing.assert_array_equal(path[0].coef, result.coef)


def test_between_perfect_fits_there_is_a_choice(rng):
    X = rng.standard_normal((50, 30))
    y = X[:, 3] - 2 * X[:, 8]
    for coef in (
        solve(X, y, n_nonzero_coefs=30, random_state=0).coef,
        L0Regressor(30, fit_intercept=False, random_state=0).fit(X, y).coef_,
    ):
        assert np.flatnonzero(coef).tolist() == [3, 8]
    # and which of columns that depend on each other stay out
    X[:, 20] = X[:, 4] + X[:, 5]
    y = rng.standard_normal(50)
    result = solve(X, y, n_nonzero_coefs=30, random_state=0)
    assert result.n_nonzero == 29
    left = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
    assert result.objective == pytest.approx(0.5 * left @ left)
