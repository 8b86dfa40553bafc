"""The commands as a user meets them: answers as text and as JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from blockl0.app.model_file import load_model
from cli_runner import QUICK, answer, fit_json, folder, run

pd = pytest.importorskip("pandas")
__all__ = ["folder"]


# -- fit -------------------------------------------------------------------------------------------


def test_the_question_is_answered_in_one_command(folder):
    done = run("fit", "data.csv", "--target", "y", "-k", 3, "--test", 0.25, "--out", "m.json")
    for word in (
        "3 of 15 columns chosen for 'y'",
        "c1",
        "c4",
        "c9",
        "held out",
        "charged, no other",
    ):
        assert word in done.stdout, word
    assert "as a whole: city (2 values), kind (2 values), size (3 values);" in done.stderr
    assert "half-samples of the rows: 3 of 3 columns" in " ".join(done.stdout.split())
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
    assert all(row["drop_one"] > 0 and row["again"] == 1.0 for row in result["features"])
    assert result["certificate"]["optimal"] and result["certificate"]["gap"] == 0.0


def test_the_document_holds_what_it_promises(folder):
    document = fit_json("-t", "y", "-k", 3, "--seed", 7, *QUICK)
    assert document["schema"] == "blockl0-result" and document["schema_version"] == 3
    assert document["command"] == "fit" and document["status"] == "done"
    assert document["seed"] == 7 and document["options"]["columns"] == 3
    assert document["data"]["fingerprint"].startswith("sha256:")
    assert document["data"]["n_samples"] == 80 and document["data"]["n_features"] == 13
    assert set(document["timings"]) >= {"read", "fit"}
    assert any("each in or out as a whole: city" in notice for notice in document["notices"])


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
    assert "holds only 2 different numbers" in done.stderr and "R²" in done.stdout
    result = answer("fit", "numbers.csv", "-t", "kind", "-k", 2, "--loss", "logistic", *QUICK)
    assert result["result"]["classes"] == [0, 1]
    frame["kind"] = np.arange(len(frame)) % 3 + 1
    frame.to_csv("numbers.csv", index=False)
    said = "(1, 2, 3), taken as numbers; --loss logistic takes them as classes, --loss squared says"
    options = ("numbers.csv", "-t", "kind", "-k", 1, *QUICK)
    assert said in run("fit", *options).stderr
    assert said not in run("fit", *options, "--loss", "squared").stderr
    # which has no such option
    assert "--loss" not in run("compare", "numbers.csv", "-t", "kind", "-k", 1).stderr


def test_kept_columns_and_text(folder):
    options = ("-t", "y", "-k", 4, "--text", "one-hot", "--keep", "city=Rome", *QUICK)
    names = [row["name"] for row in fit_json(*options)["result"]["features"]]
    assert set(names) == {"c1", "c4", "c9", "city=Rome"}
    given = ("-t", "y", "-k", 4, "--keep", "size", "--levels", "separate", *QUICK)
    done = run("fit", "data.csv", *given, code=3)
    assert "'size' is a category; give its values, as --keep size=l --keep size=m" in done.stderr
    kept = fit_json("-t", "y", "-k", 4, "--keep", "city", *QUICK)["result"]["features"]
    assert {row["name"] for row in kept} == {"c1", "c4", "c9", "city=Rome"}
    options = ("-t", "y", "-k", 4, "--keep", "city", "--text", "drop", *QUICK)
    done = run("fit", "data.csv", *options, code=3)
    assert "--keep city: there is no such column" in done.stderr
    assert "3 columns (city, kind, size) of text dropped" in done.stderr
    done = run("fit", "data.csv", "-t", "y", "-k", 4, "--keep", "City=Rome", *QUICK, code=3)
    assert "there is no such column for the fit. Did you mean 'city=Rome'?" in done.stderr


def test_a_proof_supposes_the_kept_columns(folder):
    """There are better choices without them."""
    options = ("data.csv", "-t", "y", "-k", 3, "--keep", "c0")
    text = " ".join(run("fit", *options, "--half-samples", 0).stdout.split())
    kept = "Proven: with the column kept and the coefficients of categories charged, "
    assert f"{kept}no other 3 columns fit" in text
    assert kept in " ".join(run("certify", *options).stdout.split())
    options = (*options, "--costs", "none")
    text = " ".join(run("fit", *options, "--half-samples", 0).stdout.split())
    assert "Proven: with the column kept, no other 3 columns fit" in text
    text = " ".join(run("certify", *options).stdout.split())
    assert text.count("Proven: with the column kept, ") == 2


def test_no_columns_at_all(folder):
    result = fit_json("-t", "y", "-k", 0, "-o", "m.json")["result"]
    assert result["features"] == [] and result["scores"]["train"] == pytest.approx(0.0)
    assert answer("predict", "m.json", "data.csv")["result"]["score"]["value"] == pytest.approx(0)


def test_a_better_choice_of_the_exact_search_is_taken(folder, monkeypatch):
    """Were the first search to fail, the proof would mend it."""
    import blockl0.app.cli.fit as module
    from blockl0 import L0Regressor
    from blockl0.result import Status

    def poor(job, data, options):
        model = L0Regressor(3, keep=[0, 2, 3], random_state=0).fit(data.X, data.y)
        return module.Fitted(model.set_params(keep=None), data)

    monkeypatch.setattr(module, "fit_k", poor)
    document = fit_json("-t", "y", "-k", 3, "--half-samples", 0)
    assert {row["name"] for row in document["result"]["features"]} == {"c1", "c4", "c9"}
    assert any("better choice" in notice for notice in document["notices"])
    assert document["result"]["certificate"]["optimal"]
    # the exact search's own coefficients, not a second search
    frame = pd.read_csv("data.csv")
    names = [row["name"] for row in document["result"]["features"]]
    plain = LinearRegression().fit(frame[names], frame["y"])
    coef = [row["coef"] for row in document["result"]["features"]]
    np.testing.assert_allclose(coef, plain.coef_, rtol=1e-8)
    assert document["result"]["solver_status"] == "optimal" and not document["result"]["keep"]

    def unfinished(*arguments):
        proof = prove(*arguments)
        bound = 0.8 * proof.objective
        return replace(proof, status=Status.TIME_LIMIT, lower_bound=bound, certificate=None)

    prove = module.prove
    monkeypatch.setattr(module, "prove", unfinished)
    found = fit_json("-t", "y", "-k", 3, "--half-samples", 0)["result"]["certificate"]
    assert not found["optimal"] and "Proven up to one exchange" in found["words"]


def test_standard_input_is_read():
    text = "a,b,y\n" + "".join(f"{i},{i * i % 7},{2 * i}\n" for i in range(12))
    done = run("fit", "-", "-t", "y", "-k", 1, *QUICK, "--json", "-q", text=text)
    assert json.loads(done.stdout)["result"]["features"][0]["name"] == "a" and not done.stderr


# -- the other commands ----------------------------------------------------------------------------


def test_path_shows_every_k(folder):
    result = answer("path", "data.csv", "-t", "y", "-k", 5, "--rule", "ebic")["result"]
    assert [point["k"] for point in result["points"]] == [0, 1, 2, 3, 4, 5]
    assert result["chosen"] == 3 and set(result["points"][3]["columns"]) == {"c1", "c4", "c9"}
    losses = [point["loss"] for point in result["points"]]
    assert losses == sorted(losses, reverse=True)
    done = run("path", "data.csv", "-t", "y", "-k", 4, "--rule", "one_se", "--csv", "path.csv",
               "--costs", "none")  # fmt: skip
    assert "3*" in done.stdout and "CV R²" in done.stdout and "+c4" in done.stdout
    table = pd.read_csv("path.csv")
    assert table["k"].tolist() == [0, 1, 2, 3, 4] and table["columns"][1] == "size"


def test_certify_a_saved_model(folder):
    options = ("-t", "y", "-k", 3, "--test", 0.25, "--costs", "none")
    run("fit", "data.csv", *options, *QUICK, "-o", "m.json")
    done = run("certify", "data.csv", "--model", "m.json")
    text = " ".join(done.stdout.split())
    assert "best coefficients for the chosen columns" in text
    assert "none of the 105 ways to pick 2 of the 15 columns" in text
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
    base = ("certify", "data.csv", "-t", "kind", "-k", 2, "--drop", "y")
    for given, level in (
        (["--levels", "separate"], "block-2"), (["--costs", "none"], "block-2"), ([], "block-1"),
    ):  # fmt: skip
        result = answer(*base, *given)["result"]
        assert [claim["claim"] for claim in result["claims"]] == ["basic", level, "optimal"]
        assert all(claim["holds"] for claim in result["claims"])
        assert result["holds"] and result["claims"][-1]["complete"]
    options = ("-t", "y", "-k", 3, "--level", 4, "--samples", 50, "--no-exact")
    said = answer("certify", "data.csv", *options)["result"]["claims"][-1]["words"]
    assert "--samples is for columns that are chosen one by one" in said
    options = (*options, "--levels", "separate")
    claim = answer("certify", "data.csv", *options)["result"]["claims"][-1]
    assert claim["complete"] is False and 0.9 < claim["confidence"] < 1.0
    assert "Give --model FILE, or -k" in run("certify", "data.csv", "-t", "y", code=2).stderr


@pytest.mark.parametrize(
    ("target", "other", "why"),
    [("kind", "size", "loss='logistic' has a bound only with"),
     ("size", "kind", "loss='softmax' has several predictors")],
)  # fmt: skip
def test_what_has_no_bound_is_not_known(folder, no_enumeration, target, other, why):
    options = ("-t", target, "-k", 2, "--drop", "y", "--ridge", 0, "--exact", "--drop", other)
    done = run("certify", "data.csv", *options, code=5)
    assert f"Not known. No bound exists, as {why}" in done.stdout


def test_a_classification_is_proven(folder):
    options = ("data.csv", "-t", "kind", "-k", 2, "--drop", "y", "--ridge", 1, "--text", "drop")
    certificate = answer("fit", *options, "--half-samples", 0)["result"]["certificate"]
    assert certificate["optimal"] and certificate["gap"] == 0.0
    assert certificate["words"].startswith("Proven: no other 2 columns fit these rows better for ")
    claims = answer("certify", *options, "--level", 12)["result"]["claims"]
    # the highest level is the optimum, which is not searched for twice
    assert [claim["claim"] for claim in claims] == ["basic", "block-12"]
    assert claims[1]["holds"] and "Proven: the global optimum" in claims[1]["words"]
    done = run("certify", "data.csv", "-t", "size", "-k", 2, "--drop", "y", "--exact")
    assert "Proven: the global optimum. No other 2 columns" in done.stdout


def test_without_a_bound_it_is_said(folder, no_enumeration):
    options = ("-t", "kind", "-k", 2, "--drop", "y", "--ridge", 0, "--half-samples", 0)
    words = answer("fit", "data.csv", *options)["result"]["certificate"]["words"]
    assert words.endswith("More cannot be proven without a ridge, as no bound exists.")


def test_few_subsets_are_proven_without_a_bound(folder):
    options = ("-t", "kind", "-k", 2, "--drop", "y", "--ridge", 0, "--half-samples", 0)
    words = answer("fit", "data.csv", *options)["result"]["certificate"]["words"]
    charged = "Proven: with the coefficients of categories charged, "
    assert words == f"{charged}no other 2 columns fit these rows better."
    pd.read_csv("data.csv").head(9).to_csv("few.csv", index=False)
    options = ("-t", "y", "-k", 2, "--costs", "none")
    words = answer("fit", "few.csv", *options)["result"]["certificate"]["words"]
    assert words == "Proven: no other 2 columns fit these rows better."


@pytest.mark.parametrize("share", ["30%", "0.3"])
def test_a_gap_may_be_enough(folder, share):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((50, 30)), columns=[f"c{j}" for j in range(30)])
    frame["y"] = frame["c0"] + rng.standard_normal(50)
    frame.to_csv("noise.csv", index=False)
    options = ("noise.csv", "-t", "y", "-k", 6, "--ridge", 30, "--gap", share)
    claim = answer("certify", *options, "--exact")["result"]["claims"][-1]
    assert claim["status"] in ("gap_reached", "optimal") and claim["gap"] <= 0.3
    if claim["status"] == "gap_reached":
        assert claim["holds"] is None and "Proven to be within the gap" in claim["words"]
    for bad in ("-1", "100%", "much"):
        done = run("certify", *options[:-1], bad, code=2)
        assert f"{bad!r} is not a share like 0.01 or 1%" in done.stderr


def test_the_bar_of_a_proof_shows_the_gap():
    from blockl0.app.cli.progress import ProofWatch
    from blockl0.run import Progress

    seen = []
    watch = ProofWatch(lambda *said: seen.append(said), 60.0)
    watch(Progress(7, 4.0, 2, 12.3, np.zeros(3), 3.0), False)
    watch(Progress(7, 4.0, 2, 99.0, np.zeros(3)), False)
    assert seen == [(12, 60, "gap at most 25.0%"), (60, 60, "")]


def test_a_level_out_of_reach_is_not_known(folder, monkeypatch):
    from blockl0.certify import move_search, stationarity

    monkeypatch.setattr(stationarity, "GLOBAL_COLUMNS", 0)
    monkeypatch.setattr(move_search, "WORK_LIMIT", 1)
    options = ("certify", "data.csv", "-t", "y", "-k", 3, "--level", 4, "--no-exact")
    options = (*options, "--levels", "separate")
    claim = answer(*options)["result"]["claims"][-1]
    assert claim["holds"] is None and "--samples" in claim["words"]
    monkeypatch.setattr(stationarity, "NODE_LIMIT", 0)
    claim = answer(*options, "--samples", 5)["result"]["claims"][-1]
    assert claim["holds"] is None and "lower --level" in claim["words"]


def test_certify_judges_the_problem_that_was_fitted(folder):
    """Labels, ridge and kept columns are the estimator's own."""
    options = ("-t", "kind", "-k", 3, "--drop", "y", "--keep", "c0", "--ridge", 0.5)
    fitted = answer("fit", "data.csv", *options, *QUICK, "-o", "m.json")["result"]
    for given in (options, ("--model", "m.json")):
        result = answer("certify", "data.csv", *given)["result"]
        assert result["objective"] == pytest.approx(fitted["objective"], rel=1e-9)
        assert set(result["features"]) == {row["name"] for row in fitted["features"]}


def test_compare_ranks_the_methods(folder):
    separate = ("--levels", "separate")
    document = answer("compare", "data.csv", "-t", "y", "-k", 3, "--test", 0.25, *separate)
    rows = document["result"]["methods"]
    objectives = [row["objective"] for row in rows]
    assert objectives == sorted(objectives)
    methods = {row["method"]: row for row in rows}
    assert {"refit", "exact", "omp", "forward"} <= set(methods)
    assert methods["exact"]["objective"] == pytest.approx(objectives[0])
    assert all(0 <= row["same_as_best"] <= 3 and row["n_nonzero"] <= 3 for row in rows)
    assert methods["refit"]["r2_test"] > 0.8
    done = run("compare", "data.csv", "-t", "y", "-k", 3, "-m", "omp", "-m", "refit", *separate)
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
    import blockl0.app.demo

    monkeypatch.setattr(blockl0.app.demo, "LARGEST_K", 3)
    done = run("demo", "--out", "here")
    for word in ("Proven globally optimal", "none of 41664 blocks", "forward selection", "here"):
        assert word in done.stdout, word
    assert (folder / "here" / "report.html").stat().st_size > 10_000
    assert pd.read_csv("here/diabetes.csv").shape == (442, 65)
    assert "exists" in run("demo", "--out", "here", code=6).stderr


def test_a_perfect_fit_is_not_judged_by_rounding(folder):
    frame = pd.read_csv("data.csv")[[f"c{j}" for j in range(8)]]
    frame.assign(y=2.0 * frame["c0"] - frame["c3"]).to_csv("exact.csv", index=False)
    done = run("fit", "exact.csv", "-t", "y", "-k", 2, "--half-samples", 0)
    assert (
        "as a share of that without any column" in done.stdout
        and "Proven: no other 2 columns fit" in done.stdout
    )
    for k in (2, 3):
        assert answer("certify", "exact.csv", "-t", "y", "-k", k)["result"]["holds"]
    done = run("compare", "exact.csv", "-t", "y", "-k", 2)
    best = next(line for line in done.stdout.splitlines() if "of 2" in line)
    assert best.split()[:3:2] == ["refit", "-"]


def test_a_path_ends_where_the_columns_do(folder):
    done = run("path", "data.csv", "-t", "y", "-k", 50, "--rule", "bic")
    assert "There are 15 columns" in done.stderr and "\n  15  " in done.stdout


# -- losses with a log link and with a parameter ---------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "kind"), [("gamma", "gamma"), ("tweedie:1.7", "tweedie"), ("huber:0.5", "huber")]
)
def test_a_loss_and_its_parameter_go_from_the_fit_to_predictions(folder, loss, kind):
    frame = pd.read_csv("data.csv")
    frame["amount"] = np.exp(0.3 * frame["y"])
    frame.drop(columns=["y", "kind", "size"]).to_csv("amounts.csv", index=False)
    options = ["-t", "amount", "-k", 3, "--loss", loss, *QUICK]
    done = answer("fit", "amounts.csv", *options, "-o", "m.json")
    assert {row["name"] for row in done["result"]["features"]} == {"c1", "c4", "c9"}
    assert done["data"]["loss"] == loss
    assert done["result"]["scores"]["metric"] == ("R²" if kind == "huber" else "D²")
    model = load_model("m.json")
    assert model.loss == loss and type(model.loss_object).__name__.lower() == kind
    predicted = answer("predict", "m.json", "amounts.csv")["result"]
    assert predicted["score"]["value"] == pytest.approx(done["result"]["scores"]["train"])
    if kind == "huber":
        assert answer("certify", "amounts.csv", "--model", "m.json")["result"]["claims"]
        text = run("certify", "amounts.csv", "--model", "m.json", "--loss", "huber", code=2).stderr
        assert "fitted with --loss huber:0.5, not huber" in text
    else:
        claims = answer("certify", "amounts.csv", "--model", "m.json")["result"]["claims"]
        # few subsets are enumerated
        assert [(claim["claim"], claim["holds"]) for claim in claims] == [
            ("basic", True), ("block-2", True), ("optimal", True)
        ]  # fmt: skip
        assert "upper bound" not in claims[1]["words"]


def test_a_loss_that_is_not_known_is_answered_with_those_that_are(folder):
    said = " ".join(run("fit", "data.csv", "-t", "y", "--loss", "gama", code=2).stderr.split())
    assert "must be one of 'gamma', 'huber'" in said and "Did you mean 'gamma'?" in said
    said = " ".join(run("fit", "data.csv", "-t", "y", "--loss", "tweedie:3", code=2).stderr.split())
    assert "`power` must be between 1 (Poisson) and 2 (gamma), got 3" in said


def test_cautions_name_the_columns(folder, rng):
    flow = rng.standard_normal(60)
    frame = pd.DataFrame({"inflow": flow, "outflow": flow + 1e-3 * rng.standard_normal(60)})
    frame["y"] = 900.0 * (frame["inflow"] - frame["outflow"]) + 0.1 * rng.standard_normal(60)
    frame.to_csv("flows.csv", index=False)
    done = run("fit", "flows.csv", "-t", "y", "-k", 2, *QUICK)
    assert "“inflow” and “outflow” are correlated (1.00)" in done.stdout
    assert "half-samples" not in done.stdout  # there was nothing to choose


@pytest.mark.parametrize("target, ridge", [("y", "0"), ("y", "2"), ("kind", "standardized:1.0")])
def test_a_path_says_which_ridge_its_losses_have(folder, target, ridge):
    options = "data.csv", "-t", target, "-k", 2, "--rule", "bic"
    given = () if target == "kind" else ("--ridge", ridge)  # of labels it is the default
    found = answer("path", *options, *given)["result"]
    text = run("path", *options, *given).stdout
    assert str(found["ridge"]).removesuffix(".0") == ridge.removesuffix(".0")
    assert ("fits with ridge" in text) == (ridge != "0")


def test_a_better_choice_of_columns_for_labels_is_taken(folder, monkeypatch):
    """The model that is taken predicts like any other."""
    import blockl0.app.cli.fit as module
    from blockl0 import L0ClassifierCV

    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 6))
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(6)])
    frame["y"] = np.where(2.0 * X[:, 0] - 2.0 * X[:, 1] + rng.standard_normal(80) > 0, "a", "b")
    frame.to_csv("labels.csv", index=False)

    def poor(job, data, options):
        model = L0ClassifierCV(2, keep=[4, 5], ridge=1.0, random_state=0).fit(data.X, data.y)
        return module.Fitted(model.set_params(keep=None), data)

    monkeypatch.setattr(module, "fit_k", poor)
    options = ("labels.csv", "-t", "y", "-k", 2, "--ridge", 1, "-o", "labels.json")
    result = answer("fit", *options)["result"]
    assert {row["name"] for row in result["features"]} == {"c0", "c1"}
    assert answer("predict", "labels.json", "labels.csv")["result"]["score"]["value"] > 0.8
