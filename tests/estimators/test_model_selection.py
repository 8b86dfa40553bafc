"""Choosing k: criteria by their formulas, cross-validation by its own arithmetic."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import parallel_config
from scipy.special import comb
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import GroupKFold, KFold, LeaveOneGroupOut, TimeSeriesSplit

from blockl0 import L0Classifier, L0ClassifierCV, L0Regressor, L0RegressorCV, Status, l0_path
from blockl0.estimators.linear import seed_of
from blockl0.losses import LOSSES
from blockl0.path import _solve_point
from blockl0.problem.newton import minimize_on
from blockl0.problem.preprocess import apply
from blockl0.problem.problem import as_problem
from blockl0.selection import CRITERIA, choose_by_score
from grid import ONE_OUTPUT
from linear_data import Linear
from targets import as_target

make = Linear(80, 15, {2: 2.0, 5: -1.5, 9: 1.0}, constant=3.0)
UNSCALED = [name for name in ONE_OUTPUT if not LOSSES[name].has_scale]
"""Losses whose size means something, so that criteria read them as they are."""


def test_criteria_by_hand():
    X, y = make()
    path = l0_path(X, y, n_nonzero_coefs=6, random_state=0)
    k, n, p = np.arange(1, 7), 80, 15
    rss = np.array([np.sum((y - X @ r.coef) ** 2) for r in path])
    deviance = n * np.log(rss / n)
    expected = {
        "aic": deviance + 2 * k,
        "bic": deviance + k * np.log(n),
        "ebic": deviance + k * np.log(n) + 2 * np.log(comb(p, k)),
        "gic": deviance + k * np.log(p) * np.log(np.log(n)),
    }
    for name in CRITERIA:
        np.testing.assert_allclose(path.criterion(name), expected[name])
        assert path.best(name) is path[int(np.argmin(expected[name]))]
    with pytest.raises(ValueError, match=r"`criterion` must be one of 'aic', .* got 'bik'"):
        path.best("bik")


@pytest.mark.parametrize("loss", UNSCALED)
def test_other_losses_use_twice_the_loss(loss):
    X, y = make()
    y = as_target(loss, y - 3.0)
    path = l0_path(X, y, n_nonzero_coefs=3, loss=loss, ridge=0.5, random_state=0)
    ridge = np.array([0.25 * r.coef @ r.coef for r in path])
    np.testing.assert_allclose(path.losses, path.objective - ridge)
    np.testing.assert_allclose(path.criterion("aic"), 2 * path.losses + 2 * np.arange(1, 4))


def test_perfect_fits_and_interpolation_do_not_win():
    X, y = make(noise=0.0)
    path = l0_path(X, y - 3.0, n_nonzero_coefs=8, random_state=0)
    assert all(path.best(name).n_nonzero == 3 for name in CRITERIA)
    X, y = make(10, 40)
    path = l0_path(X, y, n_nonzero_coefs=12, random_state=0)
    assert path.best("aic").n_nonzero < 9


def test_to_frame():
    pytest.importorskip("pandas")
    X, y = make()
    frame = l0_path(X, y - 3.0, n_nonzero_coefs=4, random_state=0).to_frame()
    assert frame["n_nonzero"].tolist() == [1, 2, 3, 4]
    assert frame["support"][2] == [2, 5, 9] and set(CRITERIA) <= set(frame.columns)


def test_cross_validation_by_hand():
    X, y = make()
    cv = KFold(4, shuffle=True, random_state=1)
    model = L0RegressorCV(5, cv=cv, rule="min", random_state=0).fit(X, y)
    assert model.cv_scores_.shape == (4, 6)
    for i, (train, test) in enumerate(cv.split(X)):
        for k in range(6):
            fold = L0Regressor(k, random_state=0).fit(X[train], y[train])
            score = -0.5 * np.mean((y[test] - fold.predict(X[test])) ** 2)
            assert model.cv_scores_[i, k] == pytest.approx(score, rel=1e-6)
    np.testing.assert_allclose(model.mean_scores_, model.cv_scores_.mean(axis=0))
    np.testing.assert_allclose(model.se_scores_, model.cv_scores_.std(axis=0, ddof=1) / 2)
    assert model.best_index_ == np.argmax(model.mean_scores_)
    # the chosen point is the fit on all data
    alone = L0Regressor(model.best_n_nonzero_coefs_, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=1e-9)
    assert model.intercept_ == pytest.approx(alone.intercept_)
    assert len(model.path_) == 6 and model.path_.intercepts.shape == (6,)
    assert pickle.loads(pickle.dumps(model)).best_index_ == model.best_index_


def test_one_standard_error_and_criteria():
    X, y = make()
    least, sparse = (
        L0RegressorCV(8, rule=rule, random_state=0).fit(X, y) for rule in ("min", "one_se")
    )
    assert sparse.n_nonzero_ <= least.n_nonzero_
    limit = least.mean_scores_.max() - least.se_scores_[least.best_index_]
    assert sparse.mean_scores_[sparse.best_index_] >= limit
    assert np.all(sparse.mean_scores_[: sparse.best_index_] < limit)
    for rule in CRITERIA:
        model = L0RegressorCV(8, rule=rule, random_state=0).fit(X, y)
        assert not hasattr(model, "cv_scores_")
        assert 3 <= model.n_nonzero_ <= 8
    with pytest.raises(ValueError, match=r"`rule` must be one of .* got '1se'"):
        L0RegressorCV(rule="1se").fit(X, y)


def test_splitters_groups_scoring_and_jobs():
    X, y = make()
    groups = np.repeat(np.arange(8), 10)
    by_group = L0RegressorCV(4, cv=GroupKFold(4), random_state=0).fit(X, y, groups=groups)
    assert by_group.cv_scores_.shape[0] == 4
    assert len(L0RegressorCV(3, cv=LeaveOneGroupOut()).fit(X, y, groups=groups).cv_scores_) == 8
    ordered = L0RegressorCV(4, cv=TimeSeriesSplit(3), random_state=0).fit(X, y)
    assert ordered.cv_scores_.shape[0] == 3
    folds = KFold(3, shuffle=True, random_state=seed_of(0))
    explicit = L0RegressorCV(4, cv=list(folds.split(X)), random_state=0).fit(X, y)
    with parallel_config(backend="threading"):  # processes take seconds to start
        parallel = L0RegressorCV(4, cv=3, n_jobs=2, random_state=0).fit(X, y)
    # a BLAS may split its sums by the threads that are free
    np.testing.assert_allclose(explicit.cv_scores_, parallel.cv_scores_, rtol=1e-8)
    absolute = L0RegressorCV(4, scoring="neg_mean_absolute_error", random_state=0).fit(X, y)
    custom = L0RegressorCV(
        4, scoring=make_scorer(mean_absolute_error, greater_is_better=False), random_state=0
    ).fit(X, y)
    np.testing.assert_array_equal(absolute.cv_scores_, custom.cv_scores_)  # one function
    weights = np.random.default_rng(0).integers(0, 3, 80)
    weighted = L0RegressorCV(4, scoring="r2", random_state=0).fit(X, y, weights)
    assert np.isfinite(weighted.cv_scores_).all()


def test_grids_keep_frames_and_sparse():
    X, y = make()
    assert L0RegressorCV([1, 3, 7], random_state=0).fit(X, y).path_.n_nonzero_coefs.tolist() == [
        1,
        3,
        7,
    ]
    kept = L0RegressorCV(5, keep=[0, 1], random_state=0).fit(X, y)
    assert kept.path_.n_nonzero_coefs.tolist() == [2, 3, 4, 5] and {0, 1} <= set(kept.support_)
    mask = np.isin(np.arange(15), [0, 1])
    assert (
        L0RegressorCV(5, keep=mask, random_state=0).fit(X, y).support_.tolist()
        == kept.support_.tolist()
    )
    X[np.abs(X) < 0.3] = 0.0
    dense, sparse = (L0RegressorCV(5, random_state=0).fit(A, y) for A in (X, sp.csr_array(X)))
    np.testing.assert_allclose(dense.cv_scores_, sparse.cv_scores_, rtol=1e-7)
    assert L0RegressorCV(random_state=0).fit(X[:12], y[:12]).path_.n_nonzero_coefs[-1] == 6
    pd = pytest.importorskip("pandas")
    named = L0RegressorCV(3, rule="bic").fit(pd.DataFrame(X, columns=list("abcdefghijklmno")), y)
    assert named.path_.to_frame()["support"][3] == ["c", "f", "j"]
    noise = np.random.default_rng(1).standard_normal(80)
    assert L0RegressorCV(5, rule="one_se", random_state=0).fit(X, noise).n_nonzero_ == 0


def test_classifiers():
    X, y = load_iris(return_X_y=True)
    model = L0ClassifierCV(3, cv=3, random_state=0).fit(X, y)
    assert model.coef_.shape == (3, 4) and model.score(X, y) > 0.9
    fold = L0Classifier(1, effort="fast", random_state=0)
    train = np.arange(150) % 3 > 0
    splits = [(np.flatnonzero(train), np.flatnonzero(~train))]
    by_hand = L0ClassifierCV([1], cv=splits, random_state=0).fit(X, y)
    proba = fold.fit(X[train], y[train]).predict_proba(X[~train])
    loss = -np.mean(np.log(proba[np.arange(50), y[~train]]))
    assert by_hand.cv_scores_[0, 0] == pytest.approx(-loss, rel=1e-6)
    binary = L0ClassifierCV(2, scoring="roc_auc", cv=3, random_state=0).fit(X, y == 1)
    assert 0.5 < binary.best_score_ <= 1.0


def test_the_chosen_point_of_many_columns_is_checked_on_the_loss():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 15)
    X = rng.standard_normal((60, 150)) + 1.2 * rng.standard_normal((4, 150))[y]
    model = L0ClassifierCV(4, ridge=1.0, cv=3, rule="min", random_state=0).fit(X, y)
    path, chosen = model.path_, model.path_[model.best_index_]
    assert np.all(np.diff(path.objective) <= 0.0)
    assert np.array_equal(chosen.support, model.support_) and chosen.objective == model.objective_
    assert model.certificate_.level == 2
    # every swap, re-fitted
    problem = apply(as_problem(X, y, loss="softmax", ridge=1.0, n_nonzero_coefs=4), True).problem
    for j in model.support_:
        for i in np.setdiff1d(np.arange(0, 150, 5), model.support_):
            there = np.sort(np.append(np.setdiff1d(model.support_, j), i))
            found = minimize_on(problem, problem.zero(), there)
            assert found.value >= model.objective_ * (1.0 - 1e-9)


def test_degenerate_folds_are_left_out():
    X, _ = make(30, 10)
    labels = np.array(["a"] * 4 + ["b"] * 26)
    cv = [(np.arange(4, 30), np.arange(4)), (np.arange(20), np.arange(20, 30))]
    with pytest.warns(UserWarning, match="1 of 2 folds could not be scored"):
        model = L0ClassifierCV(2, cv=cv, random_state=0).fit(X, labels)
    assert np.isnan(model.cv_scores_[0]).all() and np.isfinite(model.cv_scores_[1]).all()
    with pytest.raises(ValueError, match="no point of the path has a finite score"):
        L0ClassifierCV(2, cv=cv[:1], random_state=0).fit(X, labels)


def test_rules_with_ties_and_missing_scores():
    k = np.array([1, 2, 3])
    assert choose_by_score(np.array([[1.0, 1.0, 1.0]]), k, "min")[0] == 0
    assert choose_by_score(np.array([[0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]), k, "min")[0] == 1
    scores = np.array([[0.0, 0.9, 1.0], [0.0, 1.0, 1.1], [0.0, np.nan, 1.2]])
    chosen, mean, _ = choose_by_score(scores, k, "min")
    assert chosen == 2 and mean[1] == -np.inf
    spread = np.array([[0.0, 0.9, 0.2], [0.8, 0.9, 1.9]])
    assert choose_by_score(spread, k, "one_se")[0] == 0


def test_scorers_with_and_without_weights():
    X, y = make()
    weights = np.arange(80) % 3 + 1.0

    def plain(est, X, y):
        return -np.mean((est.predict(X) - y) ** 2)

    def weighted(est, X, y, sample_weight):
        return -np.average((est.predict(X) - y) ** 2, weights=sample_weight)

    by_plain = L0RegressorCV(3, scoring=plain, random_state=0).fit(X, y, weights)
    by_metric = L0RegressorCV(
        3, scoring=make_scorer(lambda a, b: -np.mean((a - b) ** 2)), random_state=0
    ).fit(X, y, weights)
    np.testing.assert_allclose(by_plain.cv_scores_, by_metric.cv_scores_)
    by_weight = L0RegressorCV(3, scoring=weighted, random_state=0).fit(X, y, weights)
    by_default = L0RegressorCV(3, ridge=0.0, random_state=0).fit(X, y, weights)
    np.testing.assert_allclose(by_weight.cv_scores_, 2 * by_default.cv_scores_)


def test_splits_may_be_masks_or_lists_also_with_weights():
    X, y = make()
    train = np.arange(80) < 50
    splits = {
        "numbers": [(np.flatnonzero(train), np.flatnonzero(~train))],
        "masks": [(train, ~train)],
        "lists": [(np.flatnonzero(train).tolist(), np.flatnonzero(~train).tolist())],
    }
    for weights in (None, np.arange(80) % 2 + 0.0):
        scores = [
            L0RegressorCV(2, cv=cv, random_state=0).fit(X, y, weights).cv_scores_
            for cv in splits.values()
        ]
        # copies of the same rows
        np.testing.assert_array_equal(scores[0], scores[1])
        np.testing.assert_array_equal(scores[0], scores[2])


def test_counts_that_are_all_zero_in_a_fold():
    X, _ = make()
    y = np.zeros(80)
    y[-30:] = np.random.default_rng(0).poisson(2.0, 30) + 1
    with pytest.warns(UserWarning, match="folds could not be scored"):
        model = L0RegressorCV(
            2, loss="poisson", cv=TimeSeriesSplit(3), ridge=0.1, random_state=0
        ).fit(X, y)
    assert np.isnan(model.cv_scores_[0]).all() and np.isfinite(model.cv_scores_[-1]).all()


def test_a_refit_forgets_the_scores_of_another_rule():
    X, y = make()
    model = L0RegressorCV(3, random_state=0).fit(X, y)
    model.set_params(rule="bic").fit(X, y)
    assert not any(hasattr(model, name) for name in ("cv_scores_", "mean_scores_", "best_score_"))


@pytest.mark.parametrize("rule", ["min", "bic"])
def test_a_cut_path_says_so(rule):
    X, y = make()
    with pytest.warns(ConvergenceWarning, match=r"path was cut \(time_limit\) after 1 of 9 points"):
        model = L0RegressorCV(8, rule=rule, time_limit=1e-6).fit(X, y)
    assert len(model.path_) == 1


def test_an_interrupt_ends_a_cross_validation(monkeypatch):
    X, y = make()
    monkeypatch.setattr(
        "blockl0.path._solve_point",
        lambda *args, real=_solve_point: replace(real(*args), status=Status.INTERRUPTED),
    )
    with pytest.raises(KeyboardInterrupt):
        L0RegressorCV(2, random_state=0).fit(X, y)


def test_criteria_say_when_weights_do_not_count_samples():
    X, y = make()
    with pytest.warns(UserWarning, match=r"sample weights sum to 1, which the criteria take"):
        L0RegressorCV(3, rule="bic").fit(X, y, np.full(80, 1 / 80))


@pytest.mark.parametrize("criterion", ["aic", "bic", "ebic", "gic"])
def test_criteria_choose_neither_noise_nor_the_largest_model_of_wide_data(criterion):
    """As many columns as rows: the best of many subsets fits noise nearly perfectly."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, noise = rng.standard_normal((40, 80)), rng.standard_normal(40)
        path = l0_path(X, noise, n_nonzero_coefs=38, effort="fast", random_state=0)
        assert path.best(criterion).n_nonzero <= 2
        y = X[:, :3] @ [3.0, -2.5, 2.0] + noise
        path = l0_path(X, y, n_nonzero_coefs=38, effort="fast", random_state=0)
        chosen = set(path.best(criterion).support.tolist())
        assert {0, 1, 2} <= chosen and len(chosen) <= 6


def test_the_charge_for_a_choice_never_falls(rng):
    X = rng.standard_normal((60, 12))
    path = l0_path(X, X[:, 0] + rng.standard_normal(60), n_nonzero_coefs=12, random_state=0)
    charge = path.criterion("ebic") - path.criterion("bic")
    assert np.all(np.diff(charge) >= -1e-9) and charge[-1] > 0.0
