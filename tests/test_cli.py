"""The command line as a user meets it: answers, files, JSON, exit codes, Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("click", reason="the command line needs blockl0[cli]")
pytest.importorskip("pandas", reason="the command line reads tables with pandas")

import pandas as pd
from click.testing import CliRunner
from sklearn.linear_model import LinearRegression

from blockl0 import cli
from blockl0.cli import progress as cli_progress
from blockl0.cli.compare import METHODS
from blockl0.cli.options import LOSSES, RULES
from blockl0.model_file import load_model

QUICK = ["--bootstrap", "0", "--prove", "0"]


@pytest.fixture
def folder(tmp_path, rng, monkeypatch):
    """A folder with a table of 12 columns, three of which explain y."""
    X = rng.standard_normal((80, 12))
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(12)])
    frame["city"] = np.array(["Paris", "Rome"])[np.arange(80) % 2]
    eta = X[:, 1] - 2.0 * X[:, 4] + 1.5 * X[:, 9]
    frame["y"] = eta + 0.2 * rng.standard_normal(80) + 3.0
    frame["kind"] = np.array(["low", "high"])[(eta + 0.5 * rng.standard_normal(80) > 0).astype(int)]
    frame["size"] = np.array(["s", "m", "l"])[np.digitize(eta + rng.standard_normal(80), [-1, 1])]
    frame.to_csv(tmp_path / "data.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments, code=0, text=None):
    done = CliRunner().invoke(cli.main, [str(a) for a in arguments], input=text)
    assert done.exit_code == code, (done.output, done.exception)
    return done


def answer(*arguments, code=0):
    """The JSON document, which is all that may be on standard output."""
    return json.loads(run(*arguments, "--json", code=code).stdout)


def fit_json(*arguments, code=0):
    return answer("fit", "data.csv", "--drop", "kind", "--drop", "size", *arguments, code=code)


# -- fit -------------------------------------------------------------------------------------------


def test_the_question_is_answered_in_one_command(folder):
    done = run("fit", "data.csv", "--target", "y", "-k", 3, "--test", 0.25, "--out", "m.json")
    for word in ("3 of 12 columns explain 'y'", "c1", "c4", "c9", "held out", "Proven: no other"):
        assert word in done.stdout, word
    assert "3 columns (city, kind, size) of text dropped" in done.stderr
    assert "bootstrap samples: 3 of 3 columns" in " ".join(done.stdout.split())
    model = load_model("m.json")
    assert model.feature_names == ("c1", "c4", "c9") and model.target == "y"


def test_the_numbers_of_a_fit_are_right(folder):
    result = fit_json("-t", "y", "-k", 3)["result"]
    frame = pd.read_csv("data.csv")
    names = [row["name"] for row in result["features"]]
    plain = LinearRegression().fit(frame[names], frame["y"])
    np.testing.assert_allclose([row["coef"] for row in result["features"]], plain.coef_, rtol=1e-8)
    assert result["intercept"] == pytest.approx(plain.intercept_)
    assert result["scores"]["train"] == pytest.approx(plain.score(frame[names], frame["y"]))
    assert sorted(row["entry"] for row in result["features"]) == [1, 2, 3]
    assert all(row["drop_one"] > 0 and row["inclusion"] == 1.0 for row in result["features"])
    assert result["certificate"]["optimal"] and result["certificate"]["gap"] == 0.0


def test_the_document_holds_what_it_promises(folder):
    document = fit_json("-t", "y", "-k", 3, "--seed", 7, *QUICK)
    assert document["schema"] == "blockl0-result" and document["schema_version"] == 1
    assert document["command"] == "fit" and document["status"] == "done"
    assert document["seed"] == 7 and document["options"]["columns"] == 3
    assert document["data"]["fingerprint"].startswith("sha256:")
    assert document["data"]["n_samples"] == 80 and document["data"]["n_features"] == 12
    assert set(document["timings"]) >= {"read", "fit"}
    assert any("text dropped" in notice for notice in document["notices"])


def test_rows_held_out_are_not_used(folder):
    first = fit_json("-t", "y", "-k", 3, "--test", 0.25, *QUICK)
    assert first["data"]["n_samples"] == 60 and first["data"]["n_held_out"] == 20
    scores = first["result"]["scores"]
    assert scores["n_test"] == 20 and 0.8 < scores["test"] < 1.0
    again = fit_json("-t", "y", "-k", 3, "--test", 0.25, *QUICK)
    assert again["data"]["fingerprint"] == first["data"]["fingerprint"]
    other = fit_json("-t", "y", "-k", 3, "--test", 0.25, "--seed", 1, *QUICK)
    assert other["data"]["fingerprint"] != first["data"]["fingerprint"]


def test_what_is_imputed_comes_from_the_rows_of_the_fit(folder):
    frame = pd.read_csv("data.csv")
    frame.loc[::7, "c4"] = np.nan
    frame.to_csv("gaps.csv", index=False)
    done = run("fit", "gaps.csv", "-t", "y", "-k", 3, code=3)
    assert "c4 (12 rows)" in done.stderr and not done.stdout
    options = ("-t", "y", "-k", 3, "--impute", "median", "--test", 0.5, *QUICK, "-o", "m.json")
    run("fit", "gaps.csv", *options)
    fill = next(f.fill for f in load_model("m.json").features if f.name == "c4")
    assert fill != frame["c4"].median()
    assert answer("certify", "gaps.csv", "--model", "m.json")["result"]["holds"]
    run("predict", "m.json", "gaps.csv")


def test_the_number_of_columns_is_chosen(folder):
    by_folds = fit_json("-t", "y", "--max-k", 6, "--rule", "one_se", *QUICK)["result"]
    assert by_folds["n_nonzero"] == 3 == by_folds["choice"]["chosen"]
    assert len(by_folds["choice"]["mean_scores"]) == 7
    by_bic = fit_json("-t", "y", "--max-k", 6, "--rule", "ebic", *QUICK)["result"]
    assert by_bic["n_nonzero"] == 3 and len(by_bic["choice"]["criterion"]) == 7


@pytest.mark.parametrize(("target", "n_classes"), [("kind", 2), ("size", 3)])
def test_labels_are_classified(folder, target, n_classes):
    done = run("fit", "data.csv", "-t", target, "-k", 3, "--drop", "y", *QUICK, "--test", 0.25)
    assert f"{target!r} holds {n_classes} labels: loss logistic" in done.stderr
    assert "accuracy" in done.stdout and "c4" in done.stdout


def test_numbers_can_be_labels(folder):
    frame = pd.read_csv("data.csv").drop(columns="y")
    frame["kind"] = (frame["kind"] == "high").astype(int)
    frame.to_csv("numbers.csv", index=False)
    done = run("fit", "numbers.csv", "-t", "kind", "-k", 2, *QUICK)
    assert "holds only two numbers" in done.stderr and "R²" in done.stdout
    result = answer("fit", "numbers.csv", "-t", "kind", "-k", 2, "--loss", "logistic", *QUICK)
    assert result["result"]["classes"] == [0, 1]


def test_kept_columns_and_text(folder):
    options = ("-t", "y", "-k", 4, "--text", "one-hot", "--keep", "city=Rome", *QUICK)
    names = [row["name"] for row in fit_json(*options)["result"]["features"]]
    assert set(names) == {"c1", "c4", "c9", "city=Rome"}
    done = run("fit", "data.csv", "-t", "y", "-k", 4, "--keep", "city", *QUICK, code=3)
    assert (
        "--keep city: there is no such column" in done.stderr and "of text dropped" in done.stderr
    )


def test_no_columns_at_all(folder):
    result = fit_json("-t", "y", "-k", 0, "-o", "m.json")["result"]
    assert result["features"] == [] and result["scores"]["train"] == pytest.approx(0.0)
    assert answer("predict", "m.json", "data.csv")["result"]["score"]["value"] == pytest.approx(0)


def test_a_better_choice_of_the_exact_search_is_taken(folder, monkeypatch):
    """Were the first search to fail, the proof would mend it."""
    import blockl0.cli.fit as module
    from blockl0 import L0Regressor

    def poor(job, data, options):
        return module.Fitted(L0Regressor(3, keep=[0, 2, 3], random_state=0).fit(data.X, data.y))

    monkeypatch.setattr(module, "fit_k", poor)
    document = fit_json("-t", "y", "-k", 3, "--bootstrap", 0)
    assert {row["name"] for row in document["result"]["features"]} == {"c1", "c4", "c9"}
    assert any("better choice" in notice for notice in document["notices"])


def test_standard_input_is_read():
    text = "a,b,y\n" + "".join(f"{i},{i * i % 7},{2 * i}\n" for i in range(12))
    done = run("fit", "-", "-t", "y", "-k", 1, *QUICK, "--json", "-q", text=text)
    assert json.loads(done.stdout)["result"]["features"][0]["name"] == "a" and not done.stderr


# -- the other commands ----------------------------------------------------------------------------


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


def test_path_shows_every_k(folder):
    result = answer("path", "data.csv", "-t", "y", "-k", 5, "--rule", "ebic")["result"]
    assert [point["k"] for point in result["points"]] == [0, 1, 2, 3, 4, 5]
    assert result["chosen"] == 3 and set(result["points"][3]["columns"]) == {"c1", "c4", "c9"}
    losses = [point["loss"] for point in result["points"]]
    assert losses == sorted(losses, reverse=True)
    done = run("path", "data.csv", "-t", "y", "-k", 4, "--rule", "one_se", "--csv", "path.csv")
    assert "3*" in done.stdout and "CV loss" in done.stdout and "+c4" in done.stdout
    table = pd.read_csv("path.csv")
    assert table["k"].tolist() == [0, 1, 2, 3, 4] and table["columns"][1] == "c4"


def test_certify_a_saved_model(folder):
    run("fit", "data.csv", "-t", "y", "-k", 3, "--test", 0.25, *QUICK, "-o", "m.json")
    done = run("certify", "data.csv", "--model", "m.json")
    text = " ".join(done.stdout.split())
    assert "best coefficients for the chosen columns" in text
    assert "none of the 66 ways to pick 2 of the 12 columns" in text
    assert "Proven: the global optimum" in text
    frame = pd.read_csv("data.csv")
    frame["y"] = frame["c0"]
    frame.to_csv("other.csv", index=False)
    document = answer("certify", "other.csv", "--model", "m.json", code=5)
    assert document["result"]["holds"] is False
    assert any("not the data of the fit" in notice for notice in document["notices"])
    claims = {claim["claim"]: claim for claim in document["result"]["claims"]}
    assert claims["optimal"]["better_features"] == ["c0"]


def test_certify_after_a_fit(folder):
    result = answer("certify", "data.csv", "-t", "kind", "-k", 2, "--drop", "y")["result"]
    assert [claim["claim"] for claim in result["claims"]] == ["basic", "block-2"]
    options = ("-t", "y", "-k", 3, "--level", 4, "--samples", 50, "--no-exact")
    claim = answer("certify", "data.csv", *options)["result"]["claims"][-1]
    assert claim["complete"] is False and 0.9 < claim["confidence"] < 1.0
    assert "Give --model FILE, or -k" in run("certify", "data.csv", "-t", "y", code=2).stderr
    options = ("-t", "kind", "-k", 2, "--drop", "y", "--exact")
    assert "--exact takes the squared loss" in run("certify", "data.csv", *options, code=3).stderr


def test_compare_ranks_the_methods(folder):
    document = answer("compare", "data.csv", "-t", "y", "-k", 3, "--test", 0.25)
    rows = document["result"]["methods"]
    objectives = [row["objective"] for row in rows]
    assert objectives == sorted(objectives)
    methods = {row["method"]: row for row in rows}
    assert {"refit", "exact", "omp", "forward"} <= set(methods)
    assert methods["exact"]["objective"] == pytest.approx(objectives[0])
    assert all(0 <= row["same_as_best"] <= 3 and row["n_nonzero"] <= 3 for row in rows)
    assert methods["refit"]["r2_test"] > 0.8
    done = run("compare", "data.csv", "-t", "y", "-k", 3, "-m", "omp", "-m", "refit")
    assert "omp" in done.stdout and "pgm" not in done.stdout
    done = run("compare", "data.csv", "-t", "kind", "-k", 3, code=3)
    assert "needs a target of numbers" in done.stderr


def test_report_writes_one_page(folder):
    done = run("report", "data.csv", "-t", "y", "-k", 4, "--out", "page.html")
    assert "The page is page.html" in done.stdout
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!") and "c4" in page and "sha256:" in page
    assert "exists" in run("report", "data.csv", "-t", "y", "-o", "page.html", code=6).stderr
    run("path", "data.csv", "-t", "y", "-k", 3, "--rule", "bic", "--html", "path.html")
    assert "c4" in (folder / "path.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_demo(folder, monkeypatch):
    import blockl0.demo

    monkeypatch.setattr(blockl0.demo, "LARGEST_K", 3)
    done = run("demo", "--out", "here")
    for word in ("Proven globally optimal", "none of 41664 blocks", "forward selection", "here"):
        assert word in done.stdout, word
    assert (folder / "here" / "report.html").stat().st_size > 10_000
    assert pd.read_csv("here/diabetes.csv").shape == (442, 65)
    assert "exists" in run("demo", "--out", "here", code=6).stderr


# -- errors, files, exit codes ---------------------------------------------------------------------


def test_files_are_not_overwritten(folder):
    (folder / "m.json").write_text("mine", encoding="utf-8")
    started = time.perf_counter()
    done = run("fit", "data.csv", "-t", "y", "-k", 3, "-o", "m.json", code=6)
    assert time.perf_counter() - started < 5.0 and "--force" in done.stderr
    assert (folder / "m.json").read_text(encoding="utf-8") == "mine"
    run("fit", "data.csv", "-t", "y", "-k", 3, *QUICK, "-o", "m.json", "--force")
    assert load_model("m.json").feature_names == ("c1", "c4", "c9")


ERRORS = {
    "no file": (("fit", "date.csv", "-t", "y"), 3, "Did you mean 'data.csv'?"),
    "no target": (("fit", "data.csv", "-t", "z"), 3, "There is no column 'z'"),
    "too many": (("fit", "data.csv", "-t", "y", "-k", 99), 3, "between 0 and n_features=12"),
    "labels": (("fit", "data.csv", "-t", "kind", "--loss", "huber"), 3, "loss huber needs numbers"),
    "usage": (("fit", "data.csv", "-k", "many"), 2, "not a valid integer"),
    "effort": (("fit", "data.csv", "-t", "y", "--effort", "lots"), 2, "neither fast, balanced"),
    "no folder": (("fit", "data.csv", "-t", "y", "-o", "no/m.json"), 3, "There is no folder 'no'"),
    "no model": (("predict", "none.json", "data.csv"), 3, "none.json"),
    "bad model": (("predict", "data.csv", "data.csv"), 4, "damaged, or no model"),
    "bad k": (("compare", "data.csv", "-t", "y", "-k", 50), 3, "-k must be at most 12"),
    "command": (("fti",), 2, "No such command 'fti'"),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors_are_explained(folder, case):
    arguments, code, pattern = ERRORS[case]
    done = run(*arguments, code=code)
    assert pattern in done.stderr and not done.stdout and "Traceback" not in done.output


def test_a_fault_of_ours_is_not_hidden(folder, monkeypatch):
    def fail(*_):
        raise ValueError("operands could not be broadcast")

    monkeypatch.setattr("blockl0.cli.data.load", fail)
    done = CliRunner().invoke(cli.main, ["fit", "data.csv", "-t", "y"])
    assert done.exit_code == 1 and isinstance(done.exception, ValueError)


def test_warnings_become_notices(folder):
    frame = pd.read_csv("data.csv")
    frame["kind"] = np.where(frame["c0"] > 0, "low", "high")
    frame.to_csv("split.csv", index=False)
    options = ("-t", "kind", "-k", 1, "--ridge", 0, "--effort", "fast", *QUICK)
    assert "separate the data" in run("fit", "split.csv", *options).stderr


# -- Ctrl-C ----------------------------------------------------------------------------------------


def interrupt_at(monkeypatch, watch, count):
    """As if the user pressed Ctrl-C at the so-and-so-many-th point that a search records."""
    seen = []
    original = watch.__call__

    def call(self, point, is_first):
        original(self, point, is_first)
        seen.append(point)
        if len(seen) == count:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(watch, "__call__", call)


def test_ctrl_c_saves_the_best_model_so_far(folder, monkeypatch):
    interrupt_at(monkeypatch, cli_progress.SearchWatch, 1)
    done = run("fit", "data.csv", "-t", "y", "-k", 3, "-o", "m.json", code=130)
    assert "Interrupted: this is the best model so far" in done.stderr
    assert "3 of 12 columns" in done.stdout and "chosen again" not in done.stdout
    assert len(load_model("m.json").features) == 3


@pytest.mark.parametrize("count", [6, 40])
def test_ctrl_c_while_choosing_leaves_a_model(folder, monkeypatch, count):
    """Early in the path on all rows, and late among the folds."""
    interrupt_at(monkeypatch, cli_progress.PathWatch, count)
    options = ("-t", "y", "--max-k", 6, "-o", "m.json")
    document = fit_json(*options, code=130)
    assert document["status"] == "interrupted"
    assert load_model("m.json").feature_names
    by_bic = any("chosen by BIC" in notice for notice in document["notices"])
    assert by_bic == (count == 40)


def test_ctrl_c_before_there_is_anything(folder, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("blockl0.cli.data.load", stop)
    done = run("fit", "data.csv", "-t", "y", "-k", 3, "-o", "m.json", code=130)
    assert "nothing is saved" in done.stderr and not (folder / "m.json").exists()


# -- help, progress --------------------------------------------------------------------------------


def test_help_is_quick_and_imports_nothing_heavy():
    code = (
        "import sys; from blockl0.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print(sorted({'numba', 'numpy', 'scipy', 'sklearn', 'pandas', 'rich'} & set(sys.modules)))"
    )
    for arguments in (["--help"], ["fit", "--help"], ["compare", "--help"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
        )
        assert done.stdout.splitlines()[-1] == "[]", arguments
    for name in cli.COMMANDS:
        assert name in run("--help").stdout and run(name, "--help").stdout.startswith("Usage")


def test_lists_that_help_needs_early_are_up_to_date():
    from blockl0.estimators import CLASSIFICATION, REGRESSION
    from blockl0.selection import CRITERIA
    from blockl0.selection import RULES as BY_SCORE
    from blockl0.solve import METHODS as KNOWN

    assert set(LOSSES) == {*REGRESSION, *CLASSIFICATION}
    assert set(RULES) == {*CRITERIA, *BY_SCORE}
    assert set(METHODS) == {m for m in KNOWN if not m.endswith(("-l0", "-lp")) and m != "pgm-l1"}


def test_progress_tells_the_time_left(capsys, monkeypatch):
    clock = iter([0.0, 1.0, 4.0, 4.0, 5.0, 20.0, 20.0])
    monkeypatch.setattr(cli_progress.time, "perf_counter", lambda: next(clock))
    with cli_progress.progress("Working") as shown:
        shown(1, 10, "early")
        shown(2, 10, "later")
        shown(3, 10, "too soon")
        shown(5, 10, "half")
    out, err = capsys.readouterr()
    assert not out
    assert err.splitlines() == [
        "Working: 2 of 10, later, about 16 s left", "Working: 5 of 10, half, about 20 s left",
    ]  # fmt: skip


def test_tables_on_a_terminal_show_names_as_they_are(monkeypatch):
    pytest.importorskip("rich")
    from blockl0.cli import output

    rows = [["a [bold]b[/bold]", "1"], ["c", "22"]]
    plain = output.table(["column", "x"], rows)
    monkeypatch.setattr(output.sys.stdout, "isatty", lambda: True, raising=False)
    fancy = output.table(["column", "x"], rows)
    assert "a [bold]b[/bold]" in plain and "a [bold]b[/bold]" in fancy and plain != fancy
