"""Columns far from zero: the answer is that of exact centring, to the digits that are stored."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import blockl0
from blockl0 import ConstantColumnWarning, L0Classifier, L0Regressor, L0RegressorCV
from blockl0.data.centred import Centered
from blockl0.data.centred import centred as in_its_way
from blockl0.data.design import as_design
from blockl0.losses import LOSSES
from blockl0.problem.preprocess import apply
from blockl0.problem.problem import as_problem
from blockl0.run import Run
from blockl0.search.search import solve_refit
from blockl0.units import FLAT
from grid import ONE_OUTPUT, SHIFTING
from targets import as_target

OFFSETS = [0.0, 1e3, 1e7, -1e10, 1e12]
STORAGES = {"dense": np.asfortranarray, "sparse": sp.csc_array}


def centre(X, weights):
    """X less its weighted means in long double; differences to the first row are exact first."""
    X = np.asarray(X).astype(np.longdouble)
    X, weights = X - X[0], weights.astype(np.longdouble)
    return X - weights @ X / weights.sum()


def least_squares(A, b):
    """argmin ‖b − Av‖ and half its square, in long double, by Gram-Schmidt done twice."""
    n = A.shape[1]
    Q, R = np.zeros_like(A), np.zeros((n, n), dtype=np.longdouble)
    for j in range(n):
        rest = A[:, j].copy()
        for _ in range(2):
            along = Q.T @ rest
            R[:, j] += along
            rest = rest - Q @ along
        R[j, j] = np.sqrt(rest @ rest)
        Q[:, j] = rest / R[j, j]
    c, v = Q.T @ b, np.zeros(n, dtype=np.longdouble)
    for j in reversed(range(n)):
        v[j] = (c[j] - R[j, j + 1 :] @ v[j + 1 :]) / R[j, j]
    rest = b - A @ v
    return v, rest @ rest / 2


def draw(offset, dtype=np.float64, seed=0, m=80, n=6):
    """Columns of different spreads, most of them far from zero, and a target of two."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((m, n))
    spread = 10.0 ** np.array([0, 1, -1, 0, 2, 0])
    X = (Z * spread + offset * np.array([1.0, -1.0, 1.0, 0.0, 1.0, 1.0])).astype(dtype)
    y = Z[:, 0] - 2.0 * Z[:, 2] + rng.standard_normal(m)
    return X, y, rng.integers(1, 4, m).astype(np.float64)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("offset", OFFSETS)
def test_coefficients_and_intercept_are_those_of_long_double(offset, is_weighted, storage):
    X, y, weights = draw(offset)
    weights = weights if is_weighted else np.ones(len(y))
    given = weights if is_weighted else None
    model = L0Regressor(2, random_state=0).fit(STORAGES[storage](X), y, given)
    assert model.support_.tolist() == [0, 2]
    root = np.sqrt(weights.astype(np.longdouble))
    A, b = centre(X[:, [0, 2]], weights), centre(y[:, None], weights)[:, 0]
    coef, objective = least_squares(A * root[:, None], b * root)
    np.testing.assert_allclose(model.coef_[[0, 2]], coef.astype(np.float64), rtol=1e-13)
    assert model.objective_ == pytest.approx(float(objective), rel=1e-13)
    # of the coefficients as they are rounded: theirs is the intercept to be reported
    used = model.coef_[[0, 2]].astype(np.longdouble)
    first = y[0] - X[0, [0, 2]].astype(np.longdouble) @ used
    rest = (y - y[0]) - (X[:, [0, 2]] - X[0, [0, 2]]).astype(np.longdouble) @ used
    intercept = first + weights @ rest / weights.sum()
    assert model.intercept_ == pytest.approx(float(intercept), rel=1e-15, abs=1e-13)


@pytest.mark.parametrize("kind", [np.float32, np.int64])
@pytest.mark.parametrize("storage", STORAGES)
def test_other_types_are_taken_at_face_value(kind, storage):
    rng = np.random.default_rng(0)
    X = (rng.integers(0, 9, (60, 5)) + 10_000_000).astype(kind)  # in float32 whole numbers, exactly
    y = X[:, 1] - 1e7 + rng.standard_normal(60)
    model = L0Regressor(1, random_state=0).fit(STORAGES[storage](X), y)
    A, b = centre(X[:, [1]], np.ones(60)), centre(y[:, None], np.ones(60))[:, 0]
    coef, objective = least_squares(A, b)
    assert model.coef_[1] == pytest.approx(float(coef[0]), rel=1e-13)
    assert model.objective_ == pytest.approx(float(objective), rel=1e-13)


def fit(X, y, weights, loss):
    problem = as_problem(X, y, loss=loss, sample_weight=weights, n_nonzero_coefs=2, ridge=0.1)
    prepared = apply(problem)
    result = solve_refit(
        prepared.problem, Run(prepared.problem), rng=np.random.default_rng(0), effort="fast"
    )
    return result, *prepared.invert(result.coef)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("offset", [1e7, 1e12])
@pytest.mark.parametrize("loss", ONE_OUTPUT)
def test_shifted_columns_give_the_answer_of_exactly_centred_ones(loss, offset, storage):
    X, y, weights = draw(offset)
    y = as_target(loss, y, threshold=0.2)
    centred = centre(X, weights).astype(np.float64)
    expected, coef, _ = fit(centred, y, weights, loss)
    found, shifted, intercept = fit(STORAGES[storage](X), y, weights, loss)
    assert found.objective == pytest.approx(expected.objective, rel=1e-11)
    np.testing.assert_allclose(shifted, coef, rtol=1e-7, atol=1e-12)
    eta = X.astype(np.longdouble) @ shifted + np.longdouble(intercept)
    value = weights @ LOSSES[loss].value(eta.astype(np.float64), y) + 0.05 * shifted @ shifted
    # the intercept itself is rounded to the digits of mean times coefficient
    assert value == pytest.approx(found.objective, rel=1e-9 + 1e-15 * offset)


@pytest.mark.parametrize("offset", [1e7, 1e12])
def test_several_classes_of_shifted_columns(offset):
    X, y, _ = draw(offset)
    classes = np.digitize(y, [-1.0, 1.0])
    models = [
        L0Classifier(2, ridge=0.1, effort="fast", random_state=0).fit(A, classes)
        for A in (centre(X, np.ones(len(y))).astype(np.float64), X, sp.csr_array(X))
    ]
    for model in models[1:]:
        assert model.objective_ == pytest.approx(models[0].objective_, rel=1e-9)
        np.testing.assert_allclose(model.coef_, models[0].coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("loss", SHIFTING)
def test_a_target_far_from_zero(loss):
    X, y, weights = draw(0.0)
    y = np.round(y * 2**10) / 2**10  # y + 2**40 is then exact
    near, far = fit(X, y, weights, loss), fit(X, y + 2.0**40, weights, loss)
    assert far[0].objective == pytest.approx(near[0].objective, rel=1e-12)
    np.testing.assert_allclose(far[1], near[1], rtol=1e-10)
    assert far[2] - 2.0**40 == pytest.approx(near[2], abs=1e-3)


@pytest.mark.parametrize("make", [Centered, in_its_way])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("offset", OFFSETS)
def test_every_operation_is_right_to_the_spread(offset, storage, rng, make):
    X, _, weights = draw(offset)
    X[:, 5] = 7.3
    design, idx = make(as_design(STORAGES[storage](X)), weights), [4, 0, 5, 3]
    others = rng.random(80) * (rng.random(80) < 0.3) + 1e-9
    for centred, weights_of in ((design, weights), (design.recentred(others), others)):
        A = centre(X, weights_of).astype(np.float64)
        A[:, 5] = 0.0
        size = np.sqrt(np.mean(A**2, axis=0))

        def close(found, expected, scale):
            np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-11 * scale)

        r, w, V = (
            rng.standard_normal(80),
            rng.standard_normal(6) / (size + 1e-3),
            rng.random((80, 3)),
        )
        close(centred.columns(idx) / (size + 1e-3)[idx], A[:, idx] / (size + 1e-3)[idx], 1.0)
        close(centred.matvec(w), A @ w, 10.0)
        close(centred.column_matvec(idx, w[idx]), A[:, idx] @ w[idx], 10.0)
        scale = 80 * (size + 1e-3)
        close(centred.rmatvec(r) / scale, A.T @ r / scale, 1.0)
        close(centred.cross(V, slice(1, 5)) / scale[1:5], V.T @ A[:, 1:5] / scale[1:5], 1.0)
        G = (A * weights_of[:, None]).T @ A / scale / scale[:, None]
        close(centred.full_gram(weights_of) / scale / scale[:, None], G, 1.0)
        close(
            centred.gram(idx, weights_of) / scale[idx] / scale[idx, None], G[np.ix_(idx, idx)], 1.0
        )
        close(centred.sq_norms(weights_of) / scale**2, G.diagonal(), 1.0)
        part = centred.take(idx)
        close(part.rmatvec(r) / scale[idx], A[:, idx].T @ r / scale[idx], 1.0)
    shift = design.shift_from(design.recentred(others))
    exact = X.astype(np.longdouble) - X[0]
    exact = weights @ exact / weights.sum() - others @ exact / others.sum()
    np.testing.assert_allclose(shift[:5], exact[:5].astype(np.float64), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("make", [Centered, in_its_way])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("level", [1.0, -3e5, 1e12, 1e-20])
def test_a_column_is_constant_when_its_range_is_rounding(level, storage, make):
    ulp = np.spacing(abs(level))
    steps = np.arange(30) % 3  # ranges of 2 and of 64 ulps
    X = np.column_stack([np.full(30, level), level + steps * ulp, level + 32 * steps * ulp])
    design = make(as_design(STORAGES[storage](X)))
    assert design.is_constant.tolist() == design.is_flat.tolist() == [True, True, False]
    assert not design.columns([0, 1]).any()
    np.testing.assert_allclose(design.columns([2])[:, 0], 32 * (steps - 1.0) * ulp, rtol=1e-12)
    assert 2.0 < FLAT * abs(level) / ulp < 64.0


@pytest.mark.parametrize("make", [Centered, in_its_way])
@pytest.mark.parametrize("storage", STORAGES)
def test_rows_without_weight_do_not_make_a_column_vary(storage, rng, make):
    X, y, weights = draw(0.0)
    weights[:20] = 0.0
    X[:, 0] = np.where(weights > 0.0, 3.7, X[:, 0])
    design = make(as_design(STORAGES[storage](X)), weights)
    assert design.is_constant.tolist() == [True] + [False] * 5
    with pytest.warns(ConstantColumnWarning, match="Column x0 is constant"):
        model = L0Regressor(2, random_state=0).fit(STORAGES[storage](X), y, weights)
    assert 0 not in model.support_


def test_constant_columns_are_named():
    pd = pytest.importorskip("pandas")
    X, y, _ = draw(0.0)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["f"] = 0.0
    model = L0Regressor(2, random_state=0)
    model.fit(frame, y)  # nobody misses a column of zeros
    frame["e"] = 1e12 + 1e-6 * X[:, 4]
    with pytest.warns(ConstantColumnWarning, match="Column e is constant, up to the rounding"):
        model.fit(frame, y)
    frame["a"] = 2.0
    with pytest.warns(
        ConstantColumnWarning, match="Columns a, e are constant.*their place"
    ) as seen:
        L0RegressorCV(3, random_state=0).fit(frame, y)
    assert len(seen) == 1 and seen[0].filename == __file__
    with pytest.warns(ConstantColumnWarning) as seen:
        L0Regressor(2, random_state=0).fit(frame, y)
    assert len(seen) == 1 and seen[0].filename == __file__
    many = np.column_stack([X, np.tile(np.arange(1.0, 21.0), (80, 1))])
    with pytest.warns(ConstantColumnWarning, match="x6, x7, .*x13 and 12 more are constant"):
        L0Regressor(2, random_state=0).fit(many, y)
    L0Regressor(2, fit_intercept=False, random_state=0).fit(many, y)
    assert issubclass(blockl0.ConstantColumnWarning, UserWarning)


def test_a_column_that_is_constant_in_a_part_of_the_rows_only():
    X, y, _ = draw(0.0)
    X[:, 1] = 1.0
    X[3, 1] = 2.0
    model = L0RegressorCV(3, random_state=0).fit(X, y)  # in four folds it varies
    assert np.isfinite(model.mean_scores_).all() and np.isfinite(model.coef_).all()
    said = model.summary(X, y, n_half_samples=5, random_state=0)
    assert len(said.columns["feature"]) == model.n_nonzero_


def test_far_columns_are_read_some_at_a_time(rng):
    X = np.asfortranarray(rng.standard_normal((20_000, 200)) + 1e9)  # 32 MB
    for A in (X, sp.csc_array(X[:, :150])):
        base = as_design(A)
        tracemalloc.start()
        design = Centered(base)
        eta = design.matvec(np.ones(A.shape[1]))
        design.rmatvec(eta), design.sq_norms(), design.recentred(np.abs(eta))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 12e6


def test_a_zero_among_large_numbers_is_no_constant():
    X = np.full((50, 2), 1e12)
    X[7, 0] = 0.0
    X[:, 1] = np.random.default_rng(0).standard_normal(50)
    y = np.zeros(50)
    y[7] = 5.0
    for storage in STORAGES.values():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = L0Regressor(1, random_state=0).fit(storage(X), y)
        assert model.support_.tolist() == [0] and model.objective_ < 1e-20
