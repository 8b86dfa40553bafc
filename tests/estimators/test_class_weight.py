"""class_weight multiplies sample weights, as scikit-learn has it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import recall_score
from sklearn.utils.class_weight import compute_sample_weight

from blockl0 import BestSubsetSelector, L0Classifier, L0ClassifierCV

FAST = {"effort": "fast", "random_state": 0}
WEIGHTS = {
    "balanced": "balanced",
    "by label": {"a": 1.0, "b": 5.0, "c": 0.5},
    "some": {"b": 3.0},
    "none": None,
}


def draw(n_classes, m=150, seed=0):
    """Classes of unequal size."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 5))
    eta = 1.5 * X[:, 1] - X[:, 3] + rng.logistic(size=m)
    cuts = np.quantile(eta, [0.75] if n_classes == 2 else [0.2, 0.85])
    return X, np.array(["a", "b", "c"])[np.digitize(eta, cuts)]


def given(name, n_classes):
    weight = WEIGHTS[name]
    return (
        {k: v for k, v in weight.items() if k < "c" or n_classes > 2}
        if name == "by label"
        else weight
    )


@pytest.mark.parametrize("own", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_it_is_the_fit_with_these_sample_weights(n_classes, name, own):
    X, y = draw(n_classes)
    weight = given(name, n_classes)
    samples = np.random.default_rng(1).integers(0, 3, len(y)).astype(float) if own else None
    model = L0Classifier(2, class_weight=weight, **FAST).fit(X, y, samples)
    rows = np.ones(len(y)) if samples is None else samples
    if name == "balanced":
        # of weighted samples the sums are balanced, as if they were there that often
        counts = {label: rows[y == label].sum() for label in np.unique(y)}
        total = rows * np.array([rows.sum() / (len(counts) * counts[label]) for label in y])
        sums = [total[y == label].sum() for label in counts]
        np.testing.assert_allclose(sums, sums[0])
    else:
        total = rows * compute_sample_weight(weight, y)
    expected = clone(model).set_params(class_weight=None).fit(X, y, total)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.intercept_, expected.intercept_, rtol=1e-9, atol=1e-12)
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-12)
    assert model.class_weight_.shape == (n_classes,)
    table, other = model.summary(X, y, samples), expected.summary(X, y, total)
    np.testing.assert_allclose(table.columns["drop_one"], other.columns["drop_one"], rtol=1e-6)
    picker = BestSubsetSelector(2, loss="logistic", class_weight=weight, **FAST).fit(X, y, samples)
    np.testing.assert_array_equal(picker.coef_, model.coef_)  # the same steps


@pytest.mark.parametrize("n_classes", [2, 3])
def test_coefficients_are_those_of_scikit_learn(n_classes):
    X, y = draw(n_classes)
    model = L0Classifier(2, class_weight="balanced", ridge=0.5, **FAST).fit(X, y)
    S = model.support_
    plain = LogisticRegression(C=2.0, class_weight="balanced", tol=1e-10, max_iter=10_000)
    plain.fit(X[:, S], y)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X[:, S]), atol=1e-5)
    even = L0Classifier(2, ridge=0.5, **FAST).fit(X, y)
    rare = dict(zip(*np.unique(y, return_counts=True), strict=True))
    label = min(rare, key=rare.__getitem__)
    found = [recall_score(y == label, m.predict(X) == label) for m in (even, model)]
    assert found[1] > found[0]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_folds_use_the_weights_of_all_data(n_classes):
    X, y = draw(n_classes)
    model = L0ClassifierCV([2], class_weight="balanced", cv=3, random_state=0).fit(X, y)
    total = compute_sample_weight("balanced", y)
    expected = clone(model).set_params(class_weight=None).fit(X, y, total)
    np.testing.assert_allclose(model.cv_scores_, expected.cv_scores_, rtol=1e-8)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
    # a scorer is given the sample weights alone
    seen = []

    def scorer(estimator, X, y, sample_weight=None):
        seen.append(sample_weight)
        return estimator.score(X, y)

    model.set_params(scoring=scorer).fit(X, y)
    assert seen == [None] * 3
    assert np.isfinite(model.cv_scores_).all()


def test_a_class_of_weight_zero_and_wrong_weights_are_refused():
    X, y = draw(3)
    model = L0Classifier(2, **FAST)
    with pytest.raises(ValueError, match=r"class 'b' has none of positive weight"):
        model.set_params(class_weight={"b": 0.0}).fit(X, y)
    with pytest.raises(ValueError, match=r"class 'c' has none of positive weight"):
        model.set_params(class_weight="balanced").fit(X, y, (y != "c").astype(float))
    with pytest.raises(ValueError, match=r"The classes, \[.*\], are not in class_weight"):
        model.set_params(class_weight={"a": 1.0, "z": 2.0}).fit(X, y)
    with pytest.raises(
        ValueError, match=r"`class_weight` must hold nonnegative numbers, got \{'a'"
    ):
        model.set_params(class_weight={"a": -1.0}).fit(X, y)
    with pytest.raises(ValueError, match=r"`class_weight` must be None, 'balanced' or a dict"):
        model.set_params(class_weight="even").fit(X, y)
    with pytest.raises(ValueError, match=r"`class_weight` is for labels, got 'balanced' with los"):
        BestSubsetSelector(2, class_weight="balanced").fit(X, X[:, 0])
    assert BestSubsetSelector(1).fit(X, X[:, 0]).support_.tolist() == [0]
