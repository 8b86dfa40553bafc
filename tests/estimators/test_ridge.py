"""The default ridge is in units of the columns: no default answer depends on those of the data."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

import blockl0
from blockl0.data.blocks import Blocks
from blockl0.losses import get_loss
from blockl0.problem.preprocess import as_ridge, read_ridge
from blockl0.storage import ArraySource
from cli_runner import QUICK, folder, run
from linear_data import Linear

__all__ = ["folder"]

pd = pytest.importorskip("pandas")

linear = Linear(90, 9, {1: 1.0, 4: -1.5, 6: 0.8, 7: 0.4}, common=0.4, constant=0.3)
REGRESSIONS = ("squared", "huber", "poisson", "gamma", "tweedie")
LABELS = ("logistic", "squared_hinge", "softmax")
FACTORS = {
    "powers of two": np.ldexp(1.0, [-20, 3, 20, 0, -7, 11, -3, 18, 5]),
    "powers of ten": 10.0 ** np.array([-6, 3, 0, 6, -3, 1, -1, 5, -5]),
    "a unit": np.array([1.0, 2.54, 0.3048, 1e-3, 25.4, 60.0, 0.45359237, 1609.344, 7.0]),
}
"""What the columns are multiplied by."""


def data(*, loss="squared", density=None):
    """X and y of the loss; three classes for softmax."""
    if loss != "softmax":
        return linear(loss=loss, density=density)
    X, y = linear(density=density)
    return X, np.digitize(y, [-1.0, 1.0])


def estimator(kind, loss, **given):
    loss = "logistic" if loss == "softmax" else loss
    return kind(loss=loss, random_state=0, **given)


def makers():
    for loss in REGRESSIONS:
        yield loss, blockl0.L0Regressor, {"n_nonzero_coefs": 3}
        yield loss, blockl0.L0RegressorCV, {"n_nonzero_coefs": 5, "cv": 3}
        yield loss, blockl0.BestSubsetSelector, {"n_nonzero_coefs": 3}
    for loss in LABELS:
        yield loss, blockl0.L0Classifier, {"n_nonzero_coefs": 3}
        yield loss, blockl0.L0ClassifierCV, {"n_nonzero_coefs": 5, "cv": 3}
        yield loss, blockl0.BestSubsetSelector, {"n_nonzero_coefs": 3}
    yield "logistic", blockl0.L0Classifier, {"alpha": 4.0}
    yield "squared", blockl0.L0Regressor, {"alpha": 4.0}
    yield "squared", blockl0.L0Regressor, {"n_nonzero_coefs": 3, "method": "exact"}
    yield "logistic", blockl0.L0Classifier, {"n_nonzero_coefs": 3, "method": "exact"}
    yield "softmax", blockl0.L0ClassifierCV, {"n_nonzero_coefs": 5, "rule": "bic"}
    yield "logistic", blockl0.L0Classifier, {"n_nonzero_coefs": 3, "fit_intercept": False}


def name_of(case):
    loss, kind, given = case
    return " ".join([loss, kind.__name__, *map(str, given)])


def assert_same_answer(found, expected, X, factors, atol=1e-6):
    np.testing.assert_array_equal(found.support_, expected.support_)
    assert found.ridge_ == expected.ridge_
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-8)
    assert found.status_ == expected.status_
    claims = [m.certificate_ for m in (found, expected)]
    assert len({None if c is None else (c.level, c.complete, c.holds) for c in claims}) == 1
    if hasattr(expected, "mean_scores_"):
        np.testing.assert_allclose(found.mean_scores_, expected.mean_scores_, rtol=1e-6)
        assert found.best_n_nonzero_coefs_ == expected.best_n_nonzero_coefs_
    coef = found.coef_ * factors
    np.testing.assert_allclose(coef, expected.coef_, rtol=1e-5, atol=atol)


@pytest.mark.parametrize("factors", FACTORS.values(), ids=FACTORS)
@pytest.mark.parametrize("case", list(makers()), ids=name_of)
def test_units_of_columns_change_no_default_answer(case, factors):
    loss, kind, given = case
    X, y = data(loss=loss)
    expected = estimator(kind, loss, **given).fit(X, y)
    found = estimator(kind, loss, **given).fit(X * factors, y)
    assert_same_answer(found, expected, X, factors)
    if hasattr(expected, "predict"):
        same = [np.asarray(m.predict(X * f), float) for m, f in ((found, factors), (expected, 1))]
        np.testing.assert_allclose(*same, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("storage", [np.asarray, sp.csc_array, sp.csr_array], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", LABELS)
def test_the_ridge_is_that_of_standardized_columns(loss, weighted, storage):
    """Of columns that scikit-learn standardizes, with a number as the ridge, it is the same fit."""
    X, y = data(loss=loss, density=0.5)
    X *= FACTORS["a unit"]
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(X)) if weighted else None
    scaler = StandardScaler().fit(X, sample_weight=weights)
    for ridge, number in (("auto", 1.0), ("standardized:0.3", 0.3)):
        found = estimator(blockl0.L0Classifier, loss, n_nonzero_coefs=3, ridge=ridge)
        found.fit(storage(X), y, sample_weight=weights)
        plain = estimator(blockl0.L0Classifier, loss, n_nonzero_coefs=3, ridge=number)
        plain.fit(scaler.transform(X), y, sample_weight=weights)
        np.testing.assert_array_equal(found.support_, plain.support_)
        assert found.objective_ == pytest.approx(plain.objective_, rel=1e-9)
        np.testing.assert_allclose(found.coef_ * scaler.scale_, plain.coef_, rtol=1e-6, atol=1e-9)
        assert read_ridge(found.ridge_) == (number, True)


def test_numbers_may_have_such_a_ridge_too():
    X, y = data()
    X *= FACTORS["a unit"]
    scaler = StandardScaler().fit(X)
    found = blockl0.L0Regressor(3, ridge="standardized:20", random_state=0).fit(X, y)
    plain = blockl0.L0Regressor(3, ridge=20.0, random_state=0).fit(scaler.transform(X), y)
    np.testing.assert_allclose(found.coef_ * scaler.scale_, plain.coef_, rtol=1e-8, atol=1e-12)
    # moments stand for the rows
    moments = blockl0.Moments.from_data(X, y)
    again = blockl0.L0Regressor(3, ridge="standardized:20", random_state=0).fit(moments)
    np.testing.assert_allclose(again.coef_, found.coef_, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_columns_read_in_blocks_have_the_same_ridge(loss):
    X, y = data(loss=loss)
    X = X * FACTORS["powers of ten"] + 3.0
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
    expected = blockl0.L0Classifier(3, random_state=0).fit(X, y, weights)
    blocks = Blocks(ArraySource(X, [2, 5, 9]))
    found = blockl0.L0Classifier(3, random_state=0).fit(blocks, y, weights)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("factors", FACTORS.values(), ids=FACTORS)
def test_bounds_are_kept_to_the_last_digit(factors):
    """They are in the units of the columns as given, in which coefficients are returned."""
    X, y = data(loss="logistic")
    low, high = np.full(9, -0.3), np.full(9, 0.1)
    bounds = low / factors, high / factors
    model = blockl0.L0Classifier(5, bounds=bounds, random_state=0).fit(X * factors, y)
    coef = model.coef_[0]
    assert np.all(coef >= bounds[0]) and np.all(coef <= bounds[1])
    at = (coef == bounds[0]) | (coef == bounds[1])
    free = blockl0.L0Classifier(5, bounds=(low, high), random_state=0).fit(X, y)
    np.testing.assert_array_equal(at, (free.coef_[0] == low) | (free.coef_[0] == high))
    assert at.any()
    np.testing.assert_allclose(coef * factors, free.coef_[0], rtol=1e-6, atol=1e-9)


@pytest.mark.slow
def test_the_command_line_in_other_units(folder):
    frame = pd.read_csv("data.csv")
    names = [f"c{j}" for j in range(9)]
    for target, drop in (("kind", ("y", "size")), ("size", ("y", "kind")), ("y", ("kind", "size"))):
        found = []
        for factors in (np.ones(9), *FACTORS.values()):
            other = frame.copy()
            other[names] = frame[names] * factors
            other.to_csv("other.csv", index=False)
            options = [part for name in drop for part in ("--drop", name)]
            done = run("fit", "other.csv", "-t", target, *options, "--half-samples", 0, "--json")
            result = json.loads(done.stdout)["result"]
            found.append((
                [row["name"] for row in result["features"]], result["certificate"]["words"],
                result["ridge"], result["scores"]["metric"],
                round(result["objective"], 6), round(result["scores"]["train"], 6),
            ))  # fmt: skip
        assert all(each == found[0] for each in found), found


def test_the_ridge_is_named(folder):
    options = ("data.csv", "-t", "kind", "--drop", "y", "--drop", "size", "-k", 2, *QUICK)
    done = run("fit", *options, "--out", "model.json")
    assert "(logistic loss, ridge 1 per standardized column)" in done.stdout
    assert "for this ridge penalty" in run("fit", *options, "--prove", 5).stdout
    assert json.loads((folder / "model.json").read_text())["metadata"]["problem"]["ridge"] == (
        "standardized:1.0"
    )
    done = run("certify", "data.csv", "--model", "model.json", "--json")
    assert json.loads(done.stdout)["result"]["holds"]
    other = run("fit", *options, "--ridge", "standardized:0.2").stdout
    assert "ridge 0.2 per standardized column" in other
    assert "ridge 0.2)" in run("fit", *options, "--ridge", "0.2").stdout
    done = run("fit", *options, "--ridge", "standardized:", code=2)
    assert (
        "'standardized:' is neither a number that is at least 0 nor one such after" in done.stderr
    )
    run("report", "data.csv", "-t", "kind", "--drop", "y", "--drop", "size", "--max-k", 2, "--out",
        "page.html", "--half-samples", 0)  # fmt: skip
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert "½·1 times the sum of squared coefficients of standardized columns" in page
    X, y = data(loss="logistic")
    text = str(blockl0.L0Classifier(2, random_state=0).fit(X, y).summary())
    assert "ridge 1 per standardized column" in text


def test_what_a_ridge_may_be():
    labels, numbers = get_loss("logistic"), get_loss("poisson")
    assert as_ridge("auto", labels) == (1.0, True) and as_ridge("auto", numbers) == (0.0, False)
    assert as_ridge("standardized:2", numbers) == (2.0, True) and as_ridge(2, labels) == (
        2.0,
        False,
    )
    for ridge in ((0.25, True), (3.0, False)):
        assert read_ridge(type(read_ridge(0))(*ridge).given) == ridge
    assert read_ridge("standardized:0") == (0.0, False)
