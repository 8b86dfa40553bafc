"""Columns of extreme size: powers of two change the coefficients by themselves and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import blockl0
from blockl0 import L0Classifier, L0Regressor, certify, l0_path, solve, sparse_encode
from blockl0.data.design import as_design, balance
from blockl0.problem.problem import as_problem
from grid import ONE_OUTPUT
from targets import as_target, is_positive, takes_labels

EXPONENTS = {
    "one 1e-160": [0, 0, 0, -532, 0, 0],
    "one 1e-300": [0, 0, 0, -996, 0, 0],
    "one 1e117": [0, 0, 0, 390, 0, 0],
    "all 1e-160": [-532] * 6,
    "all 1e-270": [-896] * 6,
    "all 1e117": [390] * 6,
    "mixed": [390, -532, 0, -900, 200, -120],
}
STORAGES = {"dense": np.asfortranarray, "sparse": sp.csc_array}


def draw(seed=0, m=50, n=6):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n)) + np.array([3.0, 0, 0, -5.0, 0, 0])
    y = X[:, 0] - 2.0 * X[:, 3] + X[:, 1] + rng.standard_normal(m)
    return X, y


def target_for(loss, y):
    low = y.min() if is_positive(loss) else 0.0
    return as_target(loss, y - low, np.median(y), growth=0.1)


def close(found, expected, rtol=1e-12):
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-13)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("powers", EXPONENTS.values(), ids=EXPONENTS)
@pytest.mark.parametrize("method", ["refit", "exact", "dec", "forward", "omp", "ssp"])
def test_solve_is_invariant(method, powers, storage):
    X, y = draw()
    options = {"n_nonzero_coefs": 2, "method": method, "random_state": 0}
    options |= {"tol": 0.0} if method == "dec" else {}
    expected = solve(X, y, **options)
    found = solve(STORAGES[storage](np.ldexp(X, powers)), y, **options)
    assert found.support.tolist() == expected.support.tolist()
    assert found.objective == pytest.approx(expected.objective, rel=1e-12)
    close(np.ldexp(found.coef, powers), expected.coef, 1e-7 if method == "dec" else 1e-12)


@pytest.mark.parametrize("powers", EXPONENTS.values(), ids=EXPONENTS)
def test_a_start_a_callback_and_kept_columns_are_in_the_units_given(powers):
    X, y = draw()
    scaled, seen = np.ldexp(X, powers), []
    options = {"n_nonzero_coefs": 3, "keep": [5], "random_state": 0}
    expected = solve(X, y, **options)
    found = solve(scaled, y, callback=lambda progress: seen.append(progress.coef), **options)
    close(np.ldexp(found.coef, powers), expected.coef)
    close(np.ldexp(seen[-1], powers), expected.coef)
    again = solve(scaled, y, init=found.coef, **options)
    close(again.coef, found.coef)


@pytest.mark.parametrize("powers", EXPONENTS.values(), ids=EXPONENTS)
def test_paths_and_codes_are_invariant(powers):
    X, y = draw()
    scaled = np.ldexp(X, powers)
    for weights in (None, np.arange(1.0, 51.0)):
        expected, found = (
            l0_path(A, y, n_nonzero_coefs=3, sample_weight=weights, random_state=0)
            for A in (X, scaled)
        )
        close(found.objective, expected.objective)
        close(found.losses, expected.losses)
        for here, there in zip(found, expected, strict=True):
            close(np.ldexp(here.coef, powers), there.coef)
    expected, found = (
        sparse_encode(y[None], A.T, n_nonzero_coefs=2, random_state=0)[0] for A in (X, scaled)
    )
    close(np.ldexp(found, powers), expected)


@pytest.mark.parametrize("powers", EXPONENTS.values(), ids=EXPONENTS)
def test_certificates_are_invariant(powers):
    X, y = draw()
    scaled = np.ldexp(X, powers)
    best = solve(X, y, n_nonzero_coefs=2, method="exact").coef
    for level in ("basic", 1, 2, 6):
        assert certify(
            scaled, y, np.ldexp(best, np.negative(powers)), n_nonzero_coefs=2, level=level
        ).holds
    worse = np.where(np.arange(6) == 3, 0.0, best)
    found = certify(scaled, y, np.ldexp(worse, np.negative(powers)), n_nonzero_coefs=2)
    expected = certify(X, y, worse, n_nonzero_coefs=2)
    assert not found.holds and found.block == expected.block
    assert found.better_objective == pytest.approx(expected.better_objective, rel=1e-12)
    close(np.ldexp(found.better_coef, powers), expected.better_coef)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("powers", EXPONENTS.values(), ids=EXPONENTS)
@pytest.mark.parametrize("loss", ONE_OUTPUT)
def test_estimators_are_invariant(loss, powers, storage):
    X, y = draw()
    y = target_for(loss, y)
    kind = L0Classifier if takes_labels(loss) else L0Regressor
    model = kind(1, loss=loss, ridge=0.0, effort="fast", random_state=0)
    expected = model.fit(X, y)
    coef, intercept, objective = model.coef_, model.intercept_, expected.objective_
    found = model.fit(STORAGES[storage](np.ldexp(X, powers)), y)
    assert found.objective_ == pytest.approx(objective, rel=1e-11)
    close(np.ldexp(np.ravel(found.coef_), powers), np.ravel(coef), 1e-7)
    close(found.intercept_, intercept, 1e-7)
    close(model.predict(np.ldexp(X, powers)), expected.predict(np.ldexp(X, powers)))
    summary = model.summary(np.ldexp(X, powers), y)
    assert np.all(summary.columns["drop_one"] > 0.0)


def test_several_classes_are_invariant():
    X, y = draw()
    classes = np.digitize(y, np.quantile(y, [0.33, 0.66]))
    model = L0Classifier(1, ridge=0.0, effort="fast", random_state=0)
    expected = model.fit(X, classes).coef_
    powers = EXPONENTS["mixed"]
    found = model.fit(np.ldexp(X, powers), classes).coef_
    close(np.ldexp(found, powers), expected, 1e-6)


@pytest.mark.parametrize("power", [-532, -400, 390])
def test_a_ridge_goes_with_a_common_factor(power):
    X, y = draw()
    ridge = np.ldexp(3.0, power) ** 2 if power > -500 else 0.0
    expected = solve(X, y, n_nonzero_coefs=2, ridge=9.0 if ridge else 0.0, random_state=0)
    found = solve(np.ldexp(X, power), y, n_nonzero_coefs=2, ridge=ridge, random_state=0)
    assert found.objective == pytest.approx(expected.objective, rel=1e-12)
    close(np.ldexp(found.coef, power), expected.coef)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("loss", ONE_OUTPUT)
@pytest.mark.parametrize("power", [-532, -320, -250])
def test_a_short_column_beside_a_ridge_has_no_coefficient_to_speak_of(loss, storage, power):
    X, y = draw()
    y = target_for(loss, y)
    X[:, 3] = np.ldexp(X[:, 3], power)
    options: dict = {"loss": loss, "ridge": 0.5, "random_state": 0, "effort": "fast"}
    others = np.delete(X, 3, axis=1)
    expected = solve(others, y, n_nonzero_coefs=2, **options)
    found = solve(STORAGES[storage](X), y, n_nonzero_coefs=2, **options)
    assert found.objective == pytest.approx(expected.objective, rel=1e-12)
    assert 3 not in found.support
    close(np.delete(found.coef, 3), expected.coef)


@pytest.mark.parametrize("power", [-532, -320, -250, -60])
def test_a_short_column_that_is_kept_beside_a_ridge(power):
    X, y = draw()
    X[:, 3] = np.ldexp(X[:, 3], power)
    # what is zero beside the ridge cannot be kept, and takes no room
    room = 2 if power == -532 else 1
    expected = solve(np.delete(X, 3, axis=1), y, n_nonzero_coefs=room, ridge=0.5, random_state=0)
    found = solve(X, y, n_nonzero_coefs=2, ridge=0.5, keep=[3], random_state=0)
    assert found.objective == pytest.approx(expected.objective, rel=1e-12)
    # x'r / ridge, of which a factorization of all columns keeps few digits
    assert abs(found.coef[3]) <= 1e4 * 2.0**power
    close(np.delete(found.coef, 3), expected.coef)


def test_a_coefficient_beyond_float64_is_refused_by_column():
    X, y = draw()
    X[:, 3] = np.ldexp(X[:, 3], -1000)
    with pytest.raises(ValueError, match=r"coefficient of column 3 exceeds .* size 7e-301"):
        solve(X, 1e60 * y, n_nonzero_coefs=2, random_state=0)
    with pytest.raises(ValueError, match=r"coefficient of column 3 exceeds"):
        L0Regressor(2, random_state=0).fit(X, 1e60 * y)


@pytest.mark.parametrize("scale", [1e-115, 1e-60, 1e60, 1e115])
def test_targets_of_extreme_size(scale):
    X, y = draw()
    power = int(np.round(np.log2(scale)))
    for columns in ([0] * 6, [390, -532, 0, -400, 200, -120]):
        expected = solve(X, y, n_nonzero_coefs=2, random_state=0)
        found = solve(np.ldexp(X, columns), np.ldexp(y, power), n_nonzero_coefs=2, random_state=0)
        close(np.ldexp(np.ldexp(found.coef, columns), -power), expected.coef)
        assert np.ldexp(found.objective, -2 * power) == pytest.approx(expected.objective, rel=1e-12)
    with pytest.raises(ValueError, match=r"`y` must reach 1e-120 in magnitude"):
        L0Regressor(2).fit(X, y * 1e-160)
    with pytest.raises(ValueError, match=r"`y` must stay below 1e\+120"):
        solve(X, y * 1e160, n_nonzero_coefs=2)


@pytest.mark.parametrize("storage", STORAGES)
def test_moderate_columns_are_left_alone(storage, rng):
    X = rng.standard_normal((20, 5)) * 10.0 ** np.array([-25, 0, 25, 3, -8])
    X[:, 3] = 0.0
    design = as_design(STORAGES[storage](X))
    assert balance(design, 0.0) == (design, None, 0.0)
    assert as_problem(X, np.ones(20), n_nonzero_coefs=1).scale is None
    X[:, 1] *= 1e-200
    scaled, scale, _ = balance(as_design(STORAGES[storage](X)), 0.0)
    assert scale is not None and np.flatnonzero(scale != 1.0).tolist() == [1]
    assert np.array_equal(np.frexp(scale)[0], np.full(5, 0.5))
    assert 0.5 <= np.abs(scaled.columns([1])).max() * np.sqrt(20) and scaled.sq_norms()[1] <= 20
    # the ridge is one for all columns
    assert balance(design, 1.0)[1] is None
    assert blockl0.solve(X, X[:, 0], n_nonzero_coefs=1, ridge=1.0).objective >= 0.0
