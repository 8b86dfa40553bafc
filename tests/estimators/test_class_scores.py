"""AUC, log loss and recall beside accuracy; classes of one row; weights of classes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, recall_score, roc_auc_score
from sklearn.metrics import log_loss as sklearn_log_loss

from blockl0 import L0Classifier, L0ClassifierCV
from blockl0.app.report import make_report
from blockl0.estimators.reading import auc, class_scores
from cli_runner import answer, run

pd = pytest.importorskip("pandas")


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_are_those_of_scikit_learn(n_classes):
    rng = np.random.default_rng(n_classes)
    codes = rng.choice([*range(n_classes), 0, 0, 0], 200)
    eta = rng.standard_normal((200, n_classes)).round(1)
    eta[np.arange(200), codes] += 0.7
    eta = eta[:, 1] if n_classes == 2 else eta
    shares = np.exp(eta if n_classes > 2 else np.column_stack([0.0 * eta, eta]))
    shares /= shares.sum(axis=1, keepdims=True)
    weights = rng.integers(0, 4, 200).astype(float)
    found = class_scores(eta, codes, list("abc")[:n_classes], shares)
    predicted = np.argmax(eta, axis=1) if n_classes > 2 else (eta > 0) * 1
    assert found["log_loss"] == pytest.approx(sklearn_log_loss(codes, shares))
    assert found["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(codes, predicted))
    np.testing.assert_allclose(
        list(found["recall"].values()), recall_score(codes, predicted, average=None)
    )
    each = [roc_auc_score(codes == c, eta if n_classes == 2 else eta[:, c], sample_weight=w)
            for w in (None, weights) for c in range(n_classes)]  # fmt: skip
    expected = [each[1], each[3]] if n_classes == 2 else [np.mean(each[:3]), np.mean(each[3:])]
    assert found["auc"] == pytest.approx(expected[0])
    assert auc(eta, codes, weights) == pytest.approx(expected[1])
    assert np.isnan(auc(np.zeros(5), np.ones(5, dtype=int)))


def rare(m=60, n_alone=3):
    """Numbers and two classes, and classes of one row each."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, 5))
    kind = np.where(2.0 * X[:, 0] + rng.standard_normal(m) > 0.0, "high", "low").astype(object)
    kind[[3, 17, 30][:n_alone]] = ["odd", "weird", "rare"][:n_alone]
    return pd.DataFrame(X, columns=list("abcde")), kind


def test_rows_alone_in_their_class_are_fitted_in_every_fold_and_half():
    X, kind = rare()
    model = L0ClassifierCV(2, random_state=0).fit(X, kind)
    assert np.isfinite(model.cv_scores_).all() and model.cv_scores_.shape[0] == 5
    summary = model.summary(X, kind, n_half_samples=4)
    assert summary.n_half_samples == 4 and np.isfinite(summary.columns["again"]).all()
    # by one's own splitter folds may lack a class, and are left out
    lost = [(np.setdiff1d(np.arange(60), [3]), np.array([3])), (np.arange(31), np.arange(31, 60)),
            (np.arange(60), np.arange(60))]  # fmt: skip
    with pytest.warns(UserWarning, match="1 of 3 folds could not be scored"):
        L0ClassifierCV(1, cv=lost, random_state=0).fit(X, kind)


@pytest.mark.parametrize("n_columns", [2, 10])
def test_nothing_is_chosen_for_one_row_among_many(n_columns):
    """Folds score rows of the other class alone, and reward any model that is sure of it."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, n_columns)), np.zeros(40, dtype=int)
    y[7] = 1
    with pytest.warns(UserWarning, match="All rows but 1 are of one class"):
        model = L0ClassifierCV(random_state=0).fit(X, y)
    assert model.n_nonzero_ == 0


def test_nothing_is_said_of_half_samples_that_could_not_be_fitted(monkeypatch):
    import blockl0.estimators.half_samples as module

    X, kind = rare(n_alone=0)
    model = L0Classifier(1, random_state=0).fit(X, kind)
    monkeypatch.setattr(module, "_supports", lambda *arguments: None)
    summary = model.summary(X, kind, n_half_samples=4)
    assert "again" not in summary.columns and summary.n_half_samples == 0
    assert "could not be repeated on half-samples" in str(summary).replace("\n", " ")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Files with rare classes, and with one class of 6 %."""
    monkeypatch.chdir(tmp_path)
    X, kind = rare()
    X.assign(kind=kind).to_csv("rare.csv", index=False)
    rng = np.random.default_rng(1)
    Z = rng.standard_normal((400, 5))
    chance = 1.0 / (1.0 + np.exp(3.2 - 0.7 * Z[:, 0] - 0.5 * Z[:, 1]))
    bought = np.where(rng.random(400) < chance, "Yes", "No")
    pd.DataFrame(Z, columns=list("abcde")).assign(bought=bought).to_csv("bought.csv", index=False)
    return tmp_path


def test_classes_of_one_row_are_named(folder):
    done = run("fit", "rare.csv", "-t", "kind", "-k", 2, "--half-samples", 2)
    assert "Classes odd, rare, weird of 'kind' have 1 row each" in done.stderr
    assert "nan" not in done.stdout and "Repeated on 2 half-samples" in done.stdout
    refused = run("fit", "rare.csv", "-t", "kind", "-k", 2, "--test", 0.2, code=3)
    assert "only one row is of class 'odd'" in refused.output
    assert answer("fit", "rare.csv", "-t", "kind", "--half-samples", 0)["result"]["n_nonzero"] >= 1


def test_an_accuracy_of_guessing_is_told_beside_what_it_hides(folder):
    given = ("bought.csv", "-t", "bought", "-k", 2, "--half-samples", 0)
    result = answer("fit", *given, "--out", "m.json")["result"]
    scores, frame = result["scores"], pd.read_csv("bought.csv")
    assert scores["train"] <= scores["guess"] + 0.005
    assert any("always guessing the most frequent class" in said for said in result["cautions"])
    found, names = scores["train_classes"], [row["name"] for row in result["features"]]
    eta = frame[names] @ [row["coef"] for row in result["features"]]
    assert found["auc"] == pytest.approx(roc_auc_score(frame["bought"] == "Yes", eta))
    assert found["recall"]["Yes"] < 0.1 and found["recall"]["No"] > 0.95
    text = run("fit", *given).stdout
    assert f"AUC {found['auc']:.4g}, log loss {found['log_loss']:.4g}, recall Yes" in text
    done = run("predict", "m.json", "bought.csv")
    assert f"AUC {found['auc']:.4g}, log loss" in done.stderr
    score = answer("predict", "m.json", "bought.csv")["result"]["score"]
    assert {name: score[name] for name in found} == found
    path = run("path", "bought.csv", "-t", "bought", "-k", 2)
    assert "CV AUC" in path.stdout


def test_class_weights_on_the_command_line_are_those_of_the_estimator(folder):
    frame = pd.read_csv("bought.csv")
    X, y = frame[list("abcde")], frame["bought"].to_numpy()
    given = ("bought.csv", "-t", "bought", "-k", 2, "--half-samples", 0)
    for option, weight in (
        (["balanced"], "balanced"),
        (["Yes=5", "No=0.5"], {"Yes": 5, "No": 0.5}),
    ):
        more = [part for text in option for part in ("--class-weight", text)]
        result = answer("fit", *given, *more, "--out", "m.json", "--force")["result"]
        model = L0Classifier(2, class_weight=weight, random_state=0).fit(X, y)
        assert result["objective"] == pytest.approx(model.objective_, rel=1e-8)
        assert result["scores"]["train_classes"]["recall"]["Yes"] > 0.3
        stored = json.loads(Path("m.json").read_text())["metadata"]["problem"]
        assert stored["class_weight"] == option
        certified = answer("certify", "bought.csv", "--model", "m.json")["result"]
        assert certified["holds"]
        assert certified["objective"] == pytest.approx(model.objective_, rel=1e-8)
    path = answer(
        "path", "bought.csv", "-t", "bought", "--class-weight", "balanced", "--rule", "bic"
    )
    model = L0ClassifierCV(class_weight="balanced", rule="bic", random_state=0).fit(X, y)
    losses = [point["loss"] for point in path["result"]["points"]]
    np.testing.assert_allclose(losses, model.path_.losses, rtol=1e-8)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["bought", "Ye=2"], "there is no class 'Ye'. Give balanced alone"),
        (["bought", "heavy"], "there is no CLASS=WEIGHT"),
        (["bought", "Yes=-1"], "the weight must be a positive number"),
        (["a", "balanced"], "is for classes, and 'a' holds numbers"),
        (["bought", "balanced", "--proof", "p.npz"], "without --class-weight"),
    ],
)  # fmt: skip
def test_wrong_class_weights_are_explained(folder, options, said):
    target, weight, *more = options
    given = ("-t", target, "-k", 1, "--class-weight", weight, *more)
    assert said in run("fit", "bought.csv", *given, code=3).output


def test_the_page_tells_classes_apart(folder, monkeypatch):
    given = ["report", "bought.csv", "-t", "bought", "--class-weight", "balanced"]
    given += ["-k", "2", "--folds", "3", "--half-samples", "0"]
    monkeypatch.setattr("sys.argv", ["blockl0", *given])
    data = answer(*given)["result"]
    point = data["points"][2]
    assert 0.5 < point["auc"] <= 1.0 and 0.0 < point["cv"]["auc"] <= 1.0
    assert "Recall on the rows of the fit:" in point["words"]["fit"]["text"]
    # without columns, a balanced table has half of its loss in either class
    assert data["null"] == pytest.approx(np.log(2.0), rel=1e-5)
    assert "--class-weight balanced" in "2".join(data["recipes"]["command"])
    assert 'class_weight="balanced"' in data["recipes"]["python"][0]
    with pytest.raises(ValueError, match="`class_weight` is for labels"):
        make_report(np.eye(5), np.arange(5.0), class_weight="balanced")
