"""What is kept has its place and its price, whatever its coefficients."""

from __future__ import annotations

import numpy as np
import pytest

import blockl0
from blockl0.problem.problem import as_problem
from blockl0.solve import solve_problem

FORMS = {
    "budget": {"n_nonzero_coefs": 2},
    "price": {"alpha": 4.0},
    "both": {"n_nonzero_coefs": 2, "alpha": 4.0},
}
STRUCTURES = {
    "plain": {},
    "groups": {"feature_groups": [0, 1, 0, 2, 3]},
    "bounds": {"bounds": (-0.3, 2.0)},
    "positive": {"positive": True},
    "responses": {},
    "costs": {"costs": [2.0, 1.0, 1.0, 1.0, 1.0]},
    "groups+bounds": {"feature_groups": [0, 1, 0, 2, 3], "bounds": (-0.3, 2.0)},
}
LOSSES = ("squared", "logistic", "poisson")


def data(loss="squared", q=1):
    """The first column matters a little, the second much."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    Y = 0.3 * X[:, :1] + 2.0 * X[:, 1:2] + 0.2 * rng.standard_normal((40, q))
    if loss == "logistic":
        return X, np.where(Y[:, 0] > 0, 1.0, -1.0)
    if loss == "poisson":
        return X, np.round(np.exp(0.5 * Y[:, 0]))
    return X, Y if q > 1 else Y[:, 0]


def cases():
    for form in FORMS:
        for structure in STRUCTURES:
            for loss in LOSSES:
                is_possible = form == "price" or structure != "costs"
                if is_possible and (loss == "squared" or structure != "responses"):
                    yield form, structure, loss


@pytest.mark.parametrize(("form", "structure", "loss"), list(cases()))
def test_a_point_without_its_kept_column_is_refuted(form, structure, loss):
    """Its price is due all the same, so that a fit of the column is better."""
    X, y = data(loss, q=2 if structure == "responses" else 1)
    given = {**FORMS[form], **STRUCTURES[structure], "loss": loss, "keep": [0], "ridge": 0.1}
    without = {name: value for name, value in given.items() if name != "keep"}
    if "n_nonzero_coefs" in without:
        without["n_nonzero_coefs"] -= 1  # it has its place
    point = blockl0.solve(X, y, random_state=0, **without).coef
    point[[0, 2]] = 0.0
    for level in ("basic", 1, 5):
        found = blockl0.certify(X, y, point, level=level, **given)
        assert not found.holds, level
        assert found.better_objective < found.objective
        assert found.better_coef[0].any()


@pytest.mark.parametrize("structure", ["bounds", "groups+bounds"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", ["refit", "exact"])
def test_a_kept_column_that_is_best_at_zero_is_paid_for(form, structure, method):
    """A bound may leave it no other coefficient; what is kept counts even so."""
    X, y = data()
    given = {**FORMS[form], **STRUCTURES[structure], "keep": [0]}
    given["bounds"] = (np.r_[-1.0, np.full(4, -3.0)], np.r_[0.0, 3.0, 0.0, 3.0, 3.0])
    if "feature_groups" in given:
        given["bounds"][0][2] = 0.0
    result = blockl0.solve(X, y, random_state=0, method=method, **given)
    assert result.coef[0] == 0.0 and str(result.status) == "optimal"
    loss = 0.5 * np.sum((y - X @ result.coef) ** 2)
    price = given.get("alpha", 0.0)
    assert result.objective == pytest.approx(loss + price * (result.n_nonzero + 1), rel=1e-12)
    assert result.lower_bound <= result.objective
    assert result.n_nonzero < given.get("n_nonzero_coefs", 5)
    for level in ("basic", 1, 5):
        found = blockl0.certify(X, y, result.coef, level=level, **given)
        assert found.holds and found.objective == result.objective


def test_a_proof_for_others_counts_a_kept_column_at_zero(tmp_path):
    """The verifier agrees about what is paid for."""
    X, y = np.eye(6)[:, :4], np.array([0.0, 3.0, 2.0, 0.1, 0.0, 0.0])
    given = {"alpha": 0.5, "keep": [0], "ridge": 0.1}
    result = blockl0.solve(X, y, method="exact", proof=tmp_path / "proof.npz", **given)
    assert result.coef[0] == 0.0 and result.n_nonzero == 2
    loss = 0.5 * np.sum((y - X @ result.coef) ** 2) + 0.05 * result.coef @ result.coef
    assert result.objective == pytest.approx(loss + 1.5, rel=1e-12)
    checked = blockl0.verify(tmp_path / "proof.npz", X, y)
    assert checked.objective == pytest.approx(result.objective, rel=1e-12)


@pytest.mark.parametrize("method", ["dec", "pgm-l0", "apgm-l0"])
def test_methods_count_a_kept_column_that_starts_at_zero(method):
    X, y = data()
    problem = as_problem(X, y, alpha=0.5, keep=[0])
    seen = []

    def watch(progress):
        seen.append(progress.objective - problem.objective(progress.coef))

    start = np.zeros(5)
    result = solve_problem(problem, method, init=start, random_state=0, callback=watch)
    np.testing.assert_allclose(seen, 0.0, atol=1e-9)
    assert problem.objective(start) == pytest.approx(0.5 * y @ y + 0.5)
    assert result.history.objective[0] == pytest.approx(problem.objective(start))
    assert (np.diff(result.history.objective) <= 1e-9).all()
