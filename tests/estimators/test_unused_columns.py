"""`predict` reads the columns of the model, and no others: those may hold NaN or infinity."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from blockl0 import L0Classifier, L0ClassifierCV, L0Regressor, L0RegressorCV
from blockl0.app.model_file import load_model, save_model

USED = [1, 4]
MODELS = {
    "regression": L0Regressor(2, random_state=0),
    "poisson": L0Regressor(2, loss="poisson", random_state=0),
    "two classes": L0Classifier(2, effort="fast", random_state=0),
    "three classes": L0Classifier(2, effort="fast", random_state=0),
    "regression by folds": L0RegressorCV([2], random_state=0),
    "classes by folds": L0ClassifierCV([2], random_state=0),
}


def make(name):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 6))
    eta = 2.0 * X[:, 1] - 2.0 * X[:, 4]
    if name == "poisson":
        return X, rng.poisson(np.exp(0.3 * eta)).astype(float)
    if "three" in name:
        return X, np.digitize(eta + rng.logistic(size=90), [-1.0, 1.0])
    return X, eta + rng.standard_normal(90) if "class" not in name else eta > rng.logistic(size=90)


def outputs(model):
    names = ("predict", "decision_function", "predict_proba", "predict_log_proba")
    return [getattr(model, name) for name in names if hasattr(model, name)]


@pytest.fixture(params=MODELS)
def fitted(request):
    X, y = make(request.param)
    model = MODELS[request.param].fit(X, y)
    assert model.support_.tolist() == USED
    return model, X, y


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e200])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_what_is_not_used_may_be_anything(fitted, value, storage):
    model, X, y = fitted
    broken = X.copy()
    broken[3:7, 0] = broken[5, 5] = value
    for output in outputs(model):
        np.testing.assert_array_equal(output(storage(broken)), output(storage(X)))  # same columns
    assert model.score(storage(broken), y) == model.score(storage(X), y)


@pytest.mark.parametrize("value, seen", [(np.nan, "NaN"), (np.inf, "infinity")])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_what_is_used_is_refused_by_its_place(fitted, value, seen, storage):
    model, X, y = fitted
    broken = X.copy()
    broken[0, 0] = np.nan
    broken[7, 4] = value
    for output in (*outputs(model), lambda X: model.score(X, y)):
        with pytest.raises(ValueError, match=f"contains {seen} in column 4, row 7; remove or"):
            output(storage(broken))
    broken[7, 4] = 1e200
    with pytest.raises(ValueError, match=r"got 1e\+200 in column 4, row 7; rescale it"):
        model.predict(storage(broken))


def test_by_name():
    pd = pytest.importorskip("pandas")
    X, y = make("regression")
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = L0Regressor(2, random_state=0).fit(frame, y)
    gaps = frame.assign(a=np.nan)
    np.testing.assert_array_equal(model.predict(gaps), model.predict(frame))  # same columns
    gaps.loc[2, "e"] = np.nan
    with pytest.raises(ValueError, match="contains NaN in column 'e', row 2"):
        model.predict(gaps)


def test_a_fit_and_a_summary_read_all_columns():
    X, y = make("regression")
    model = L0Regressor(2, random_state=0).fit(X, y)
    X[3, 0] = np.nan
    for read in (model.fit, model.summary):
        with pytest.raises(ValueError, match="contains NaN in column 0, row 3"):
            read(X, y)


def test_a_model_without_columns_reads_none():
    X, y = make("regression")
    model = L0Regressor(0).fit(X, y)
    np.testing.assert_allclose(model.predict(np.full((4, 6), np.nan)), y.mean())


def test_model_files(fitted, tmp_path):
    model, X, _ = fitted
    stored = load_model(save_model(model, tmp_path / "m.json"))
    broken = X.copy()
    broken[:, [0, 2]] = np.nan, np.inf
    np.testing.assert_array_equal(stored.predict(broken), stored.predict(X))  # same columns
    np.testing.assert_allclose(
        stored.decision_function(sp.csc_array(broken)), stored.decision_function(X)
    )
    broken[1, 1] = np.nan
    with pytest.raises(ValueError, match="contains NaN in column 'x1', row 1"):
        stored.predict(broken)
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(6)])
    np.testing.assert_array_equal(stored.predict(frame.assign(x0=np.nan)), stored.predict(frame))
