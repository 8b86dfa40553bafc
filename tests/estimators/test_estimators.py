"""The estimators behave as scikit-learn's own, and select what enumeration selects."""

from __future__ import annotations

import copy
import pickle
import warnings
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import StackingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectFromModel
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LinearRegression, PoissonRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from blockl0 import (
    BestSubsetSelector,
    L0Classifier,
    L0ClassifierCV,
    L0Regressor,
    L0RegressorCV,
    Status,
)
from blockl0.estimators.linear import CLASSIFICATION, REGRESSION
from blockl0.losses import Huber, Logistic, SquaredHinge
from blockl0.problem.preprocess import count_distinct_rows
from grid import EACH_TARGET
from targets import amounts, is_positive

# small settings of the slower ones: the checks make hundreds of fits
CHECKED = [
    L0Regressor(),
    L0Regressor(loss="huber", effort="fast"),
    L0Regressor(loss="poisson", effort="fast"),
    L0Regressor(loss="gamma", effort="fast"),
    L0Regressor(loss="tweedie", effort="fast"),
    L0Classifier(effort="fast"),
    L0Classifier(class_weight="balanced", effort="fast"),
    L0Classifier(loss="squared_hinge", effort="fast"),
    BestSubsetSelector(),
    L0RegressorCV(1, cv=3),
    L0RegressorCV(rule="bic"),
    L0ClassifierCV(2, cv=2),
]
if sklearn.__version__.startswith("1.6."):
    # its check of weights makes labels binary after shuffling, so the two fits differ in their y
    CHECKED = [model for model in CHECKED if model.loss != "squared_hinge"]


def expected_failures(estimator):
    """`predict` reads the chosen columns only, and a cross-validation may not choose the first."""
    is_cv = isinstance(estimator, L0RegressorCV | L0ClassifierCV)
    return {"check_estimators_nan_inf": "NaN in a column without use"} if is_cv else {}


checks = parametrize_with_checks(CHECKED, expected_failed_checks=expected_failures).mark


QUICK = ("L0Regressor()", "L0Classifier(effort='fast')", "BestSubsetSelector()")
"""Models that are checked always; the others with the slow tests."""


def cases():
    """The checks of every model, with their marks."""
    for case in checks.args[1]:
        # what is expected to fail is marked already
        values, marks = (case.values, case.marks) if hasattr(case, "marks") else (case, ())
        is_slow = repr(values[0]) not in QUICK
        yield pytest.param(*values, marks=[*marks, *([pytest.mark.slow] if is_slow else [])])


@pytest.mark.parametrize(checks.args[0], list(cases()), **checks.kwargs)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def regression(seed=0, m=60, n=12):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n)) + 2.0
    X[np.abs(X) < 0.7] = 0.0
    return X, 5.0 + X[:, [1, 4, 7]] @ [1.0, -2.0, 1.5] + 0.3 * rng.standard_normal(m)


def target_for(loss, X, y, seed=0):
    rng = np.random.default_rng(seed)
    if is_positive(loss):
        return amounts(loss, rng.poisson(np.exp(1.0 + 0.3 * (y - y.mean()))))
    if loss in CLASSIFICATION:
        return np.where(y - y.mean() + rng.logistic(size=y.size) > 0, "yes", "no")
    return y


def model_for(loss, k=3, **options):
    kind = L0Classifier if loss in CLASSIFICATION else L0Regressor
    return kind(k, loss=loss, random_state=0, **options)


LOSSES = [*REGRESSION, *CLASSIFICATION]


def test_the_best_three_of_ten_by_enumeration():
    X, y = load_diabetes(return_X_y=True)
    model = L0Regressor(3, random_state=0).fit(X, y)
    best = min(
        combinations(range(10), 3),
        key=lambda S: -LinearRegression().fit(X[:, S], y).score(X[:, S], y),
    )
    assert model.support_.tolist() == list(best) and model.n_nonzero_ == 3
    plain = LinearRegression().fit(X[:, best], y)
    np.testing.assert_allclose(model.coef_[list(best)], plain.coef_)
    assert model.intercept_ == pytest.approx(plain.intercept_)
    assert model.status_ is Status.OPTIMAL and model.n_iter_ >= 1
    residual = y - model.predict(X)
    assert model.objective_ == pytest.approx(0.5 * residual @ residual)
    assert model.score(X, y) == pytest.approx(plain.score(X[:, best], y))


# an older scikit-learn asks a newer SciPy for what it deprecates
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_poisson_agrees_with_scikit_learn_on_the_support():
    X, y = regression()
    y = target_for("poisson", X, y)
    model = L0Regressor(3, loss="poisson", random_state=0).fit(X, y)
    S = model.support_
    plain = PoissonRegressor(alpha=0.0, tol=1e-10, max_iter=10_000).fit(X[:, S], y)
    np.testing.assert_allclose(model.coef_[S], plain.coef_, atol=1e-4)
    assert model.score(X, y) == pytest.approx(plain.score(X[:, S], y), rel=1e-6)
    np.testing.assert_allclose(model.to_sklearn().predict(X), model.predict(X))


@pytest.mark.parametrize("loss", LOSSES)
def test_dense_sparse_weights_and_refit(loss):
    X, y = regression()
    y = target_for(loss, X, y)
    weights = np.random.default_rng(1).integers(0, 3, y.size)
    twice = np.repeat(np.arange(y.size), weights)
    model = model_for(loss, ridge=0.01, effort="fast")
    params = copy.deepcopy(model.get_params())
    weighted = model.fit(X, y, weights).coef_
    repeated = clone(model).fit(X[twice], y[twice]).coef_
    np.testing.assert_allclose(weighted, repeated, atol=1e-6)
    dense, sparse = (clone(model).fit(A, y) for A in (X, sp.csr_matrix(X)))
    np.testing.assert_allclose(dense.coef_, sparse.coef_, atol=1e-6)
    np.testing.assert_allclose(dense.intercept_, sparse.intercept_, atol=1e-6)
    # sparse rows are summed in another order than dense ones
    output = dense.decision_function if isinstance(dense, L0Classifier) else dense.predict
    np.testing.assert_allclose(output(sp.csr_array(X)), output(X), rtol=1e-13, atol=1e-13)
    # another y, the same object: the other answer, by the same steps to the last bit
    other = y[::-1].copy()
    np.testing.assert_array_equal(model.fit(X, other).coef_, clone(model).fit(X, other).coef_)
    assert model.get_params() == params


def test_forms_of_sparsity_and_the_default():
    X, y = regression(n=30)
    assert L0Regressor(random_state=0).fit(X, y).n_nonzero_ == 10
    assert L0Regressor(random_state=0).fit(X[:, :4], y).n_nonzero_ == 4
    assert L0Regressor(random_state=0).fit(X[:11], y[:11]).n_nonzero_ == 5
    assert L0Regressor(0).fit(X, y).predict(X) == pytest.approx(np.full(60, y.mean()))
    assert L0Regressor(alpha=20.0, random_state=0).fit(X, y).n_nonzero_ == 3
    assert L0Regressor(2, alpha=1e6).fit(X, y).n_nonzero_ == 0
    with pytest.raises(ValueError, match="between 0 and n_features=30, got 31"):
        L0Regressor(31).fit(X, y)
    with pytest.raises(ValueError, match=r"`loss` must be one of 'gamma', 'huber', 'poisson', 's"):
        L0Regressor(loss="logistic").fit(X, y)
    robust = L0Regressor(3, loss=Huber(delta=0.2), random_state=0).fit(X, y)
    assert robust.support_.tolist() == [1, 4, 7]
    without = L0Regressor(3, fit_intercept=False, random_state=0).fit(X, y)
    assert without.intercept_ == 0.0


def test_frames_names_keep_and_the_column_of_a_nan():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    X, y = regression()
    names = [f"f{j}" for j in range(12)]
    answers = []
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        model = L0Regressor(3, keep=["f9"], random_state=0).fit(frame, y)
        assert model.feature_names_in_.tolist() == names
        assert "f9" in model.feature_names_in_[model.support_]
        answers.append(model.predict(frame))
        picker = BestSubsetSelector(3, random_state=0).fit(frame, y)
        assert picker.get_feature_names_out().tolist() == ["f1", "f4", "f7"]
        for output in ("pandas", "polars"):
            out = picker.set_output(transform=output).transform(frame)
            assert list(out.columns) == ["f1", "f4", "f7"]
    # the two may differ in how their columns lie in memory, and so in the order of sums
    np.testing.assert_allclose(*answers, rtol=1e-10)
    with pytest.raises(ValueError, match=r"`keep` must hold names .* got 'f99'. Did you mean 'f9'"):
        L0Regressor(3, keep=["f99"]).fit(pd.DataFrame(X, columns=names), y)
    X[5, 3] = np.nan
    with pytest.raises(ValueError, match="contains NaN in column 'f3', row 5; remove or impute"):
        L0Regressor(3).fit(pd.DataFrame(X, columns=names), y)
    with pytest.raises(ValueError, match="contains NaN in column 3, row 5"):
        L0Regressor(3).fit(sp.csr_array(X), y)
    X[5, 3] = -np.inf
    with pytest.raises(ValueError, match="contains infinity in column 3, row 5"):
        L0Regressor(3).fit(X, y)
    X[5, 3] = 1e200
    with pytest.raises(ValueError, match=r"below 1e\+120 .* got 1e\+200 in column 3, row 5"):
        L0Regressor(3).fit(X, y)


@pytest.mark.parametrize("loss", LOSSES)
def test_pickle_deepcopy_and_joblib(loss):
    X, y = regression()
    y = target_for(loss, X, y)
    model = model_for(loss, ridge=0.01, effort="fast").fit(X, y)
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        # the same coefficients and the same rows
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert again.status_ is model.status_
    if loss in EACH_TARGET:
        fits = Parallel(n_jobs=2, prefer="threads")(
            delayed(clone(model).fit)(X, y) for _ in range(4)
        )
        for fit in fits:
            # a BLAS may split its sums by the threads that are free
            np.testing.assert_allclose(fit.coef_, model.coef_, rtol=1e-8)


def test_random_states_and_verbosity(caplog):
    X, y = regression()
    for state in (0, np.random.RandomState(0), np.random.default_rng(0), None):
        assert L0Regressor(3, random_state=state).fit(X, y).support_.tolist() == [1, 4, 7]
    assert L0Regressor(3, time_limit=1e-9, random_state=0).fit(X, y).status_ is Status.TIME_LIMIT


def test_classifier_outputs():
    X, y = load_breast_cancer(return_X_y=True)
    labels = np.array(["bad", "good"])[y]
    model = L0Classifier(3, effort="fast", random_state=0).fit(X, labels)
    assert model.classes_.tolist() == ["bad", "good"]
    assert model.coef_.shape == (1, 30) and model.intercept_.shape == (1,)
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X), model.classes_[proba.argmax(axis=1)])
    assert model.score(X, labels) > 0.95
    np.testing.assert_allclose(model.to_sklearn().predict_proba(X), proba)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), proba)
    hinge = L0Classifier(3, loss="squared_hinge", effort="fast", random_state=0).fit(X, labels)
    assert not hasattr(hinge, "predict_proba") and hinge.score(X, labels) > 0.9
    np.testing.assert_array_equal(hinge.to_sklearn().predict(X), hinge.predict(X))
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"Only binary .* by loss='squared_hinge', got 3 classes"):
        L0Classifier(2, loss="squared_hinge").fit(X, y)
    with pytest.raises(ValueError, match=r"at least 2 classes .* only one class: .*1"):
        L0Classifier(2).fit(X, np.ones(150))


def test_three_classes():
    X, y = load_iris(return_X_y=True)
    model = L0Classifier(2, effort="fast", random_state=0).fit(X, y)
    assert model.coef_.shape == (3, 4) and model.support_.tolist() == [2, 3]
    assert not model.coef_[:, :2].any() and model.score(X, y) > 0.95
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    np.testing.assert_allclose(model.to_sklearn().predict_proba(X), model.predict_proba(X))
    sparse = L0Classifier(2, effort="fast", random_state=0).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.coef_, model.coef_, atol=1e-5)


def test_separable_data_end_and_are_announced():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6))
    y = (X[:, 0] > 0).astype(int)
    with pytest.warns(ConvergenceWarning, match="separate the data.*Set a small `ridge`"):
        model = L0Classifier(2, ridge=0.0, effort="fast", random_state=0).fit(X, y)
    assert np.isfinite(model.coef_).all() and model.score(X, y) == 1.0  # 40 of 40
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert L0Classifier(1, random_state=0).fit(X, y).support_.tolist() == [0]
    counts = np.where(X[:, 0] > 0, 0, rng.poisson(3.0, 40))
    X[:, 1] = X[:, 0] > 0
    with pytest.warns(ConvergenceWarning, match="separate"):
        L0Regressor(1, loss="poisson", keep=[1]).fit(X, counts)


def test_interplay_with_scikit_learn():
    X, y = regression()
    pipe = make_pipeline(StandardScaler(), L0Regressor(effort="fast", random_state=0))
    search = GridSearchCV(pipe, {"l0regressor__n_nonzero_coefs": [1, 3]}, cv=3).fit(X, y)
    assert search.best_params_ == {"l0regressor__n_nonzero_coefs": 3}
    assert cross_val_score(L0Regressor(3, random_state=0), X, y, cv=3).min() > 0.9
    picked = SelectFromModel(L0Regressor(3, random_state=0), threshold=1e-8).fit(X, y)
    assert np.flatnonzero(picked.get_support()).tolist() == [1, 4, 7]
    model = L0Regressor(3, random_state=0).fit(X, y)
    importance = permutation_importance(model, X, y, n_repeats=2, random_state=0)
    assert set(np.argsort(importance.importances_mean)[-3:]) == {1, 4, 7}
    stack = StackingRegressor([("a", L0Regressor(2)), ("b", L0Regressor(3))], cv=3).fit(X, y)
    assert stack.score(X, y) > 0.9
    select = make_pipeline(BestSubsetSelector(3, random_state=0), LinearRegression()).fit(X, y)
    np.testing.assert_allclose(select.predict(X), model.predict(X))


@pytest.mark.parametrize("loss", LOSSES)
def test_selector_takes_every_loss(loss):
    X, y = regression()
    y = target_for(loss, X, y)
    picker = BestSubsetSelector(2, loss=loss, ridge=0.01, effort="fast", random_state=0).fit(X, y)
    assert picker.transform(X).shape == (60, 2)
    assert picker.get_support(indices=True).tolist() == picker.support_.tolist()
    assert type(picker.to_sklearn()).__module__.startswith("sklearn")


def test_drop_one_losses_do_not_depend_on_units():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 6))
    y = rng.poisson(np.exp(0.5 * X[:, 0] - 0.4 * X[:, 1])).astype(float)
    model = L0Regressor(2, loss="poisson", random_state=0)
    tables = [model.fit(scale * X, y).summary(scale * X, y) for scale in (1.0, 1e4)]
    losses = [table.columns["drop_one"] for table in tables]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6) and np.all(losses[0] > 0.0)


def test_summary():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = L0Regressor(4, random_state=0).fit(X, y)
    brief = model.summary()
    assert set(brief.columns) == {"feature", "coef"} and "too optimistic" in str(brief)
    full = model.summary(X, y, n_half_samples=5, random_state=0)
    assert full.columns["feature"].tolist() == ["bmi", "s5", "bp", "s1"]
    assert full.columns["entry"].tolist() == [1, 2, 3, 4]
    rises = full.columns["drop_one"]
    assert (np.diff(rises) <= 0).all()
    for name, rise in zip(full.columns["feature"], rises, strict=True):
        rest = [f for f in full.columns["feature"] if f != name]
        residual = y - LinearRegression().fit(X[rest], y).predict(X[rest])
        assert rise == pytest.approx(0.5 * residual @ residual - model.objective_)
    assert ((full.columns["again"] >= 0) & (full.columns["again"] <= 1)).all()
    assert "neither a probability" in str(full)
    with pytest.raises(ValueError, match="needs the data"):
        model.summary(n_half_samples=3)
    pytest.importorskip("pandas")
    assert full.to_frame().shape == (4, 6)
    shown = full._repr_html_()
    assert shown.count("<tr>") == 5 and "chosen again" in shown and "neither a probability" in shown
    Xi, yi = load_iris(return_X_y=True)
    for est in (L0Classifier(2, random_state=0, effort="fast"), L0ClassifierCV(2, rule="bic")):
        table = est.fit(Xi, yi).summary(Xi, yi, n_half_samples=2)
        assert table.columns["feature"].tolist() and "drop-one" in str(table)
    picker = BestSubsetSelector(2, random_state=0, keep=[0]).fit(Xi, yi)
    assert "kept" in str(picker.summary(Xi, yi))


def test_kept_columns_in_any_spelling():
    pd = pytest.importorskip("pandas")
    X, y = regression(n=30)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(30)])
    mask = np.arange(30) == 5
    for data, keep in ((X, [5]), (X, mask), (frame, ["c5"]), (frame, [5])):
        model = L0Regressor(keep=keep, random_state=0).fit(data, y)
        assert model.n_nonzero_ == 10 and 5 in model.support_
        table = model.summary(data, y, n_half_samples=2, random_state=0)
        assert table.columns["again"][np.isnan(table.columns["drop_one"])] == 1.0


def test_a_loss_instance_is_treated_as_its_name():
    X, y = regression()
    model = L0Classifier(2, loss=Logistic(), effort="fast", random_state=0).fit(X, y > y.mean())
    assert model.predict_proba(X).shape == (60, 2)
    assert not hasattr(L0Classifier(2, loss=SquaredHinge()), "predict_proba")


def test_poisson_predictions_are_positive_and_small_counts_no_alarm():
    X, y = regression()
    counts = target_for("poisson", X, y)
    model = L0Regressor(2, loss="poisson", ridge=1e-3, effort="fast", random_state=0).fit(X, counts)
    assert np.all(model.predict(-1e6 * X) > 0.0) and np.isfinite(model.score(-1e6 * X, counts))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        L0Regressor(2, loss="poisson", effort="fast", random_state=0).fit(X, 1e-9 * counts)


def test_classes_without_weight_are_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"every class, but class .*1.* none of positive weight"):
        L0Classifier(2).fit(X, y, (y != 1).astype(float))


def test_summary_checks_its_target():
    X, y = regression()
    labels = np.where(y > y.mean(), "b", "a")
    model = L0Classifier(2, effort="fast", random_state=0).fit(X, labels)
    with pytest.raises(ValueError, match=r"classes of the fit, got .*'ab'.*they are 'a', 'b'"):
        model.summary(X, np.where(labels == "a", "ab", "b"))
    with pytest.raises(ValueError, match="needs the target `y`"):
        model.summary(X)


def test_distinct_rows_are_counted_quickly_and_alike():
    rng = np.random.default_rng(0)
    few = rng.standard_normal((4, 5))[rng.integers(0, 4, 3000)]
    few[:, 0] = 0.0
    for data in (few, np.asfortranarray(few), sp.csr_array(few)):
        assert count_distinct_rows(data, 20) == 4
    assert count_distinct_rows(rng.standard_normal((50, 3)), 20) == 20
    assert count_distinct_rows(sp.csr_array((30, 4)), 20) == 1


def test_selector_gives_labels_a_ridge():
    X = regression()[0]
    labels = X[:, 1] > 2.0  # separable
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        picker = BestSubsetSelector(2, loss="logistic", effort="fast", random_state=0)
        assert 1 in picker.fit(X, labels).support_
    assert picker.estimator_.ridge_ == "standardized:1.0" == picker.ridge_


def test_plain_arrays_are_read_as_scikit_learn_reads_them(monkeypatch):
    import pandas as pd

    X, y = load_diabetes(return_X_y=True)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(10)])
    slow = L0Regressor(3, random_state=0).fit(frame, y)
    quick = L0Regressor(3, random_state=0).fit(frame, y)
    monkeypatch.setattr("blockl0.estimators.linear.validate_data", None)
    quick.fit(X, y)
    assert not hasattr(quick, "feature_names_in_") and quick.n_features_in_ == 10
    assert np.array_equal(quick.coef_, slow.coef_)
    assert np.allclose(quick.predict(X), slow.coef_ @ X.T + slow.intercept_, rtol=1e-13)


@pytest.mark.parametrize(
    "X, y",
    [
        (np.ones((3, 2)), np.array([1.0, np.nan, 0.0])),
        (np.ones((3, 2)), np.array([1.0, np.inf, 0.0])),
        (np.ones((3, 2)), np.ones(4)),
        (np.ones((0, 2)), np.ones(0)),
        (np.ones((3, 0)), np.ones(3)),
        (np.ones(3), np.ones(3)),
        (np.ones((3, 2), dtype=complex), np.ones(3)),
        (np.array([[1.0, np.nan]] * 3), np.ones(3)),
    ],
)
def test_plain_arrays_that_are_refused_still_are(X, y):
    with pytest.raises(ValueError):
        L0Regressor(1).fit(X, y)


def test_plain_arrays_of_another_width_are_refused_by_a_fitted_model():
    X, y = load_diabetes(return_X_y=True)
    model = L0Regressor(2, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="9 features, but L0Regressor is expecting 10"):
        model.predict(X[:, :9])
