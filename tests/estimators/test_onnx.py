"""`to_sklearn` makes estimators that convert to ONNX and predict alike there."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from blockl0 import BestSubsetSelector, L0Classifier, L0ClassifierCV, L0Regressor, L0RegressorCV

skl2onnx = pytest.importorskip("skl2onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def run(model, X, **options):
    """What the converted model gives for X, in double precision."""
    kinds = [("X", skl2onnx.common.data_types.DoubleTensorType([None, X.shape[1]]))]
    session = onnxruntime.InferenceSession(
        skl2onnx.convert_sklearn(model, initial_types=kinds, **options).SerializeToString(),
        providers=["CPUExecutionProvider"],
    )
    return session.run(None, {"X": X})


@pytest.mark.parametrize(
    "model",
    [
        L0Regressor(3, random_state=0),
        L0Regressor(3, loss="huber", random_state=0, effort="fast"),
        L0Regressor(3, loss="poisson", random_state=0, effort="fast"),
        L0RegressorCV(4, rule="bic", random_state=0),
        BestSubsetSelector(3, random_state=0),
    ],
    ids=str,
)
def test_regression(model):
    X, y = load_diabetes(return_X_y=True)
    model = model.fit(X, y)
    expected = (model.estimator_ if hasattr(model, "estimator_") else model).predict(X)
    np.testing.assert_allclose(run(model.to_sklearn(), X)[0].ravel(), expected, rtol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", [L0Classifier, L0ClassifierCV])
def test_classification(kind, n_classes):
    X, y = (load_breast_cancer if n_classes == 2 else load_iris)(return_X_y=True)
    options = {"cv": 3} if kind is L0ClassifierCV else {}
    model = kind(2, effort="fast", random_state=0, **options).fit(X, y)
    plain = model.to_sklearn()
    labels, proba = run(plain, X, options={id(plain): {"zipmap": False}})
    # probabilities of linear classifiers are single precision in ONNX
    expected = model.predict_proba(X)
    np.testing.assert_allclose(proba, expected, atol=1e-5)
    first, second = np.sort(expected, axis=1).T[[-1, -2]]
    is_clear = first - second > 1e-4
    assert is_clear.mean() > 0.95
    np.testing.assert_array_equal(labels[is_clear], model.predict(X)[is_clear])


def test_a_pipeline():
    X, y = load_diabetes(return_X_y=True)
    scale = StandardScaler().fit(X)
    model = L0Regressor(3, random_state=0).fit(scale.transform(X), y)
    pipe = make_pipeline(scale, model.to_sklearn())
    np.testing.assert_allclose(run(pipe, X)[0].ravel(), pipe.predict(X), rtol=1e-6)
