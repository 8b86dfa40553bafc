"""One number of columns and one measure of stability, by whichever door the question comes in."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from blockl0 import L0Classifier, L0ClassifierCV, L0Regressor, L0RegressorCV
from blockl0.app.report import make_report
from blockl0.estimators.binding import Data
from blockl0.estimators.folds import make_splits
from blockl0.estimators.half_samples import chosen_again, half_samples
from blockl0.estimators.linear import seed_of
from blockl0.selection import choose_by_score
from cli_runner import answer, run

MOST = 3


def diabetes():
    return load_diabetes(return_X_y=True, as_frame=True, scaled=False)


def cancer():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return X.iloc[:60, :3], y[:60].map({0: "malignant", 1: "benign"})


def wine():
    X, y = load_wine(return_X_y=True, as_frame=True)
    return X.iloc[::4, [0, 6]], y[::4].map({0: "a", 1: "b", 2: "c"})


CASES = [(diabetes, 0, MOST), (diabetes, 3, MOST), (cancer, 5, 2), (wine, 1, 1)]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0].__name__}-{case[1]}")
def case(request, tmp_path, monkeypatch):
    """X, y, the seed and the largest k, and the file data.csv with X and y."""
    make, seed, most = request.param
    X, y = make()
    monkeypatch.chdir(tmp_path)
    X.assign(target=y).to_csv("data.csv", index=False)
    return X, y, seed, most


def test_all_doors_choose_the_same_k_and_say_the_same_of_it(case):
    X, y, seed, most = case
    given = ("data.csv", "-t", "target", "--max-k", most, "--seed", seed)
    fit = answer("fit", *given, "--prove", 0)["result"]
    path = answer("path", *given)["result"]
    page = answer("report", *given, "--out", "page.html")["result"]
    is_number = y.dtype.kind == "f"
    kind, plain = (L0RegressorCV, L0Regressor) if is_number else (L0ClassifierCV, L0Classifier)
    model = kind(most, random_state=seed).fit(X, y)
    k = model.best_n_nonzero_coefs_
    point = page["points"][page["start"]]
    assert k == fit["choice"]["chosen"] == path["chosen"] == point["k"]
    assert page["choices"]["paired_se"] == page["start"]
    # the scores are the same numbers, too
    np.testing.assert_allclose([-p["cv"]["loss"] for p in page["points"]], model.mean_scores_, 1e-5)
    np.testing.assert_allclose([-p["cv_loss"] for p in path["points"]], model.mean_scores_, 1e-9)
    # chosen again: by the page, the command, the summary, and a model of that size alone
    shares = {page["features"][f]: s for f, s in zip(point["support"], point["again"], strict=True)}
    assert {row["name"]: row["again"] for row in fit["features"]} == pytest.approx(shares)
    for est in (model, plain(k, ridge=model.ridge_, random_state=seed, effort="fast").fit(X, y)):
        found = est.summary(X, y, n_half_samples=10).columns
        assert dict(zip(found["feature"], found["again"], strict=True)) == pytest.approx(shares)
    assert not any("separate" in str(p["cautions"]) for p in page["points"] if is_number)
    if not is_number:
        guess = y.value_counts(normalize=True).iloc[0]
        assert fit["scores"]["guess"] == pytest.approx(guess)
        assert page["guess"] == pytest.approx(guess, abs=1e-6)


def test_one_standard_error_by_hand():
    X, y = diabetes()
    model = L0RegressorCV(MOST, rule="one_se", random_state=0).fit(X, y)
    best = int(np.argmax(model.mean_scores_))
    limit = model.mean_scores_[best] - model.se_scores_[best]
    assert model.best_index_ == np.flatnonzero(model.mean_scores_ >= limit)[0]
    # without a seed the folds are those of seed 0, so that two fits agree
    again = L0RegressorCV(MOST, rule="one_se").fit(X, y)
    np.testing.assert_allclose(again.cv_scores_, model.cv_scores_)


def data_of(y, n_classes):
    return Data(np.zeros((len(y), 1)), y, y, n_classes, None)


@pytest.mark.parametrize("m", [2, 7, 40])
def test_half_samples_are_complementary(m):
    y = np.arange(m) % 2
    for n_classes in (0, 2):
        halves = half_samples(data_of(y, n_classes), 6, 0)
        assert len(halves) == 6
        if n_classes and m == 2:  # each row is alone in its class, and in both halves
            assert all(half.tolist() == [0, 1] for half in halves)
            continue
        for first, second in zip(halves[::2], halves[1::2], strict=True):
            assert sorted([*first, *second]) == list(range(m))
            assert abs(len(first) - len(second)) <= 1
            if n_classes:
                assert abs(y[first].sum() - y[second].sum()) <= 1
    assert len(half_samples(data_of(y, 0), 3, 0)) == 3


def test_a_share_does_not_depend_on_the_sizes_beside_it():
    X, y = diabetes()
    model = L0Regressor(3, random_state=0).fit(X, y)
    data = model._read(X, y, reset=False)
    columns, seed = np.arange(X.shape[1]), seed_of(0)
    whole = chosen_again(model, data, range(6), 4, seed)
    for budget in range(6):
        alone = chosen_again(model, data, [budget], 4, seed).shares(budget, columns)
        np.testing.assert_array_equal(whole.shares(budget, columns), alone)
        assert alone.sum() == pytest.approx(budget)


def test_folds_reach_every_row_and_every_class():
    y = np.array([0] * 30 + [1] * 12 + [2] * 2)
    splits = make_splits(5, np.zeros((44, 1)), y, True, 0)
    assert sorted(np.concatenate([test for _, test in splits])) == list(range(44))
    assert all(set(y[train]) == {0, 1, 2} for train, _ in splits)
    assert len(make_splits(None, np.zeros((3, 1)), np.zeros(3), False, 0)) == 3


def test_a_class_of_one_row_costs_no_fold():
    X, y = wine()
    y = y.where(np.arange(len(y)) > 0, "alone")
    model = L0ClassifierCV(1, random_state=0).fit(X, y)
    assert np.isfinite(model.cv_scores_).all()
    data = make_report(X, y, loss="logistic", n_nonzero_coefs=1, half_samples=2).to_dict()
    assert data["folds"] == 5 and data["points"][data["start"]]["k"] == model.best_n_nonzero_coefs_
    assert data["half_samples"] == 2


def test_guessing_stands_beside_every_accuracy(tmp_path, monkeypatch):
    X, y = cancer()
    monkeypatch.chdir(tmp_path)
    X.assign(target=y).to_csv("data.csv", index=False)
    guess = f"{y.value_counts(normalize=True).iloc[0]:.4g}"
    fit = run("fit", "data.csv", "-t", "target", "-k", 2, "--test", 0.25, "--prove", 0).stdout
    line = next(line for line in fit.splitlines() if line.startswith("accuracy"))
    assert line.count("guessing") == 2
    path = run("path", "data.csv", "-t", "target", "-k", 2).stdout
    assert "CV accuracy" in path and f"Guessing the commonest class: {guess}" in path
    page = make_report(X, y, loss="logistic", n_nonzero_coefs=2, half_samples=0).to_dict()
    for point in page["points"][1:]:
        assert "uessing" in "".join(map(str, point["words"]["headline"]))
        assert "Guessing" in point["words"]["fit"]["text"]


def test_perfect_separation_is_flagged_with_its_cure(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((60, 3)), columns=["a", "b", "c"])
    y = np.where(X["a"] > 0, "yes", "no")
    monkeypatch.chdir(tmp_path)
    X.assign(y=y).to_csv("data.csv", index=False)
    # the default ridge keeps coefficients of such data small, and does not need the caution
    fit = answer("fit", "data.csv", "-t", "y", "-k", 1, "--prove", 0, "--ridge", 1e-3)
    said = " ".join(fit["result"]["cautions"])
    assert "separate the classes" in said and "ridge" in said
    page = make_report(
        X, y, loss="logistic", n_nonzero_coefs=1, half_samples=0, ridge=1e-3
    ).to_dict()
    assert "separate the classes" in json.dumps(page["points"][1]["cautions"])
    assert page["points"][0]["cautions"] == []
    model = L0Classifier(1, ridge=1e-3, random_state=0).fit(X, y)
    assert "ridge of standardized:1.0 stabilizes" in str(model.summary(X, y)).replace("\n", " ")
    noisy = np.where(X["a"] + rng.standard_normal(60) > 0, "yes", "no")
    assert model.fit(X, noisy).summary(X, noisy).cautions == ()


def test_scores_that_choose_are_those_that_are_kept():
    X, y = diabetes()
    model = L0RegressorCV(MOST, rule="one_se", random_state=0).fit(X, y)
    chosen, mean, error = choose_by_score(model.cv_scores_, model.path_.n_nonzero, "one_se")
    assert chosen == model.best_index_
    np.testing.assert_array_equal(mean, model.mean_scores_)
    np.testing.assert_array_equal(error, model.se_scores_)
    # without a column the score is that of the intercept alone
    np.testing.assert_allclose(model.cv_null_scores_, model.cv_scores_[:, 0])
