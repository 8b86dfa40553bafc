"""`blockl0 predict`: new rows are prepared as those of the fit were, or refused."""

from __future__ import annotations

import numpy as np
import pytest

from blockl0.app.model_file import load_model
from cli_runner import QUICK, answer, folder, run

pd = pytest.importorskip("pandas")
__all__ = ["folder"]


def test_predictions_are_those_of_the_model(folder):
    run("fit", "data.csv", "-t", "size", "-k", 3, "--drop", "y", *QUICK, "-o", "m.json")
    frame = pd.read_csv("data.csv")
    new = frame.iloc[5:9].drop(columns=["size", "y"])
    new.to_csv("new.csv", index=False)
    done = run("predict", "m.json", "new.csv", "--proba")
    lines = done.stdout.splitlines()
    assert lines[0] == "size,P(l),P(m),P(s)" and len(lines) == 5 and not done.stderr
    model = load_model("m.json")
    expected = model.predict_proba(new)
    shares = np.array([line.split(",")[1:] for line in lines[1:]], dtype=float)
    np.testing.assert_allclose(shares, expected)
    assert [line.split(",")[0] for line in lines[1:]] == model.predict(new).tolist()
    result = answer("predict", "m.json", "data.csv")["result"]
    assert result["score"]["metric"] == "accuracy" and result["score"]["n_samples"] == 80
    run("predict", "m.json", "new.csv", "--out", "p.csv")
    assert (folder / "p.csv").read_text(encoding="utf-8").splitlines()[0] == "size"
    new.drop(columns=list(model.feature_names)[:1]).to_csv("less.csv", index=False)
    done = run("predict", "m.json", "less.csv", code=3)
    assert f"1 column ({model.feature_names[0]}) of the model" in done.stderr


def test_rows_of_the_fit_are_known_again(folder):
    frame = pd.read_csv("data.csv")
    frame.iloc[:40].to_csv("part.csv", index=False)
    said = "rows of the fit"
    for more, which in (((), "These are the"), (("--test", 0.25), "of the 80 rows are the")):
        run("fit", "data.csv", "-t", "y", "-k", 3, *more, *QUICK, "-o", "m.json", "--force")
        assert (
            f"{which} {said}" in run("predict", "m.json", "data.csv", "-o", "p", "--force").stderr
        )
        assert said not in run("predict", "m.json", "part.csv", "-o", "p", "--force").stderr
    assert answer("predict", "m.json", "data.csv")["data"]["n_of_fit"] == 60
    # without the target it is not known which of the rows were held out
    frame.drop(columns="y").to_csv("new.csv", index=False)
    assert said not in run("predict", "m.json", "new.csv", "-o", "p", "--force").stderr


def test_swapped_arguments_are_recognized(folder):
    run("fit", "data.csv", "-t", "y", "-k", 2, *QUICK, "-o", "m.json")
    done = run("predict", "data.csv", "m.json", code=2)
    assert "the model comes first, as in `blockl0 predict m.json data.csv`" in done.stderr
    assert "no model" in run("predict", "data.csv", "data.csv", code=4).stderr


@pytest.fixture
def coded(folder):
    """Text that looks like numbers, and a model that uses it."""
    frame = pd.read_csv("data.csv").drop(columns=["city", "kind", "size"])
    frame["code"] = np.array(["01", "02", "A3"])[np.arange(80) % 3]
    frame["y"] += 5.0 * (frame["code"] == "01")
    frame.to_csv("coded.csv", index=False)
    options = ("--text", "one-hot", "--levels", "separate")
    run("fit", "coded.csv", "-t", "y", "-k", 4, *options, *QUICK, "-o", "m.json")
    assert "code=01" in load_model("m.json").feature_names
    return frame


def test_text_stays_text_in_new_rows(coded):
    coded[coded["code"] == "01"].to_csv("new.csv", index=False)
    assert answer("predict", "m.json", "new.csv")["result"]["score"]["value"] > 0.95


def test_texts_that_the_fit_has_not_seen_are_told(coded):
    coded.head(6).assign(code=["01", "B7", "B7", "01", "02", "A3"]).to_csv("new.csv", index=False)
    done = run("predict", "m.json", "new.csv")
    assert "'code' holds texts that the fit has not seen, in 2 of 6 rows: 'B7'" in done.stderr
    coded.head(6).assign(code=["01", None, "02", "01", "02", "A3"]).to_csv("gap.csv", index=False)
    done = run("predict", "m.json", "gap.csv", code=3)
    assert "code (1 row); the model has nothing to put there" in done.stderr


def test_gaps_in_new_rows_are_filled_as_in_the_fit(coded):
    """Also where the rows of the fit had none: in rows held out, and in other files."""
    frame = coded.assign(c4=coded["c4"].where(np.arange(80) != 3))
    frame.loc[5, "code"] = None
    frame.to_csv("gaps.csv", index=False)
    options = ("-t", "y", "-k", 4, "--text", "one-hot", "--impute", "mean", *QUICK)
    for seed in range(3):
        run("fit", "gaps.csv", *options, "--test", 0.4, "--seed", seed)
    run("fit", "coded.csv", *options, "-o", "m.json", "--force")
    predicted = answer("predict", "m.json", "gaps.csv")["result"]["predictions"]
    filled = coded.assign(c4=coded["c4"].where(np.arange(80) != 3, coded["c4"].mean()))
    np.testing.assert_allclose(predicted[3], load_model("m.json").predict(filled)[3])


def test_rows_of_matrices_with_gaps_are_left_out_when_held_out(folder, rng):
    X = rng.standard_normal((60, 4))
    y = X[:, 0] + 0.1 * rng.standard_normal(60)
    X[::5, 1] = np.nan
    np.savez("t.npz", X=X, y=y)
    document = answer("fit", "t.npz", "-k", 1, "--impute", "drop-rows", "--test", 0.5, *QUICK)
    assert document["data"]["n_samples"] + document["data"]["n_held_out"] == 48


@pytest.mark.parametrize(
    ("seen", "new", "accuracy"),
    [(("not", "other"), ("no", "no"), 0.0), ((True, False), (1, 0), 1.0), ((3, 4), (3, 4), 1.0)],
)
def test_accuracy_compares_whole_labels(folder, seen, new, accuracy):
    frame = pd.read_csv("data.csv")[[f"c{j}" for j in range(12)]]
    is_first = frame["c0"] > 0
    frame.assign(y=np.where(is_first, *seen)).to_csv("fit.csv", index=False)
    frame.assign(y=np.where(is_first, *new)).to_csv("new.csv", index=False)
    run("fit", "fit.csv", "-t", "y", "-k", 1, "--loss", "squared_hinge", *QUICK,
        "--ridge", 1e-3, "-o", "m.json")  # fmt: skip
    assert answer("predict", "m.json", "new.csv")["result"]["score"]["value"] == accuracy


def test_dates_and_codes_of_new_rows_mean_what_they_did(folder, rng):
    """One row alone does not tell whether the day comes first, nor that 2 is a code."""
    days = pd.date_range("2012-01-01", periods=80)
    shop = np.arange(80) % 3 + 1
    y = np.arange(80.0) + 50.0 * (shop == 2) + 0.1 * rng.standard_normal(80)
    frame = pd.DataFrame({"when": days.strftime("%d/%m/%Y"), "shop": shop, "y": y})
    frame.to_csv("dated.csv", index=False)
    options = ("dated.csv", "-t", "y", "-k", 2, "--dates", "days", "--as-category", "shop", *QUICK)
    run("fit", *options, "-o", "m.json")
    assert set(load_model("m.json").feature_names) == {"when", "shop=2", "shop=3"}
    whole = answer("predict", "m.json", "dated.csv")["result"]
    assert whole["score"]["value"] > 0.99
    frame.iloc[[31]].drop(columns="y").to_csv("one.csv", index=False)  # 01/02/2012
    one = answer("predict", "m.json", "one.csv")["result"]["predictions"]
    np.testing.assert_allclose(one, whole["predictions"][31])
    assert answer("certify", "dated.csv", "--model", "m.json")["result"]["holds"]
    done = run("certify", "dated.csv", "--model", "m.json", "--date-order", "day-first", code=2)
    assert "The model was fitted with --date-order auto, not day-first" in done.stderr
    frame.assign(when="31/31/2012").to_csv("bad.csv", index=False)
    done = run("predict", "m.json", "bad.csv", code=3)
    assert "Column 'when' must hold dates, got '31/31/2012' in row 2;" in done.stderr
    frame.assign(when=frame["when"].where(shop != 2)).to_csv("gap.csv", index=False)
    assert "when (27 rows)" in run("predict", "m.json", "gap.csv", code=3).stderr


def test_rows_with_a_target_are_scored(folder):
    run("fit", "data.csv", "-t", "y", "-k", 3, *QUICK, "-o", "m.json")
    frame = pd.read_csv("data.csv")
    full = answer("predict", "m.json", "data.csv")["result"]["score"]
    assert full["n_samples"] == 80
    frame.assign(y=frame["y"].where(frame.index < 30)).to_csv("some.csv", index=False)
    done = answer("predict", "m.json", "some.csv")
    frame.head(30).to_csv("first.csv", index=False)
    first = answer("predict", "m.json", "first.csv")["result"]["score"]
    assert done["result"]["score"] == first and len(done["result"]["predictions"]) == 80
    assert "on the rows that have 'y' (30 of 80)." in done["notices"][-1]
    frame.assign(y=np.nan).to_csv("none.csv", index=False)
    assert answer("predict", "m.json", "none.csv")["result"]["score"] is None
