"""The report's numbers are those of the data, its claims hold, its recipes run."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from itertools import combinations, count, product

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.model_selection import KFold

from blockl0 import L0ClassifierCV, L0RegressorCV
from blockl0.app.report import collect, make_report, proof
from blockl0.app.report.words import compact
from blockl0.certify.levels import ProofStatus
from blockl0.certify.words import VERDICTS, n_subsets
from blockl0.estimators.binding import bind
from blockl0.estimators.linear import seed_of
from blockl0.path import solve_path
from blockl0.problem.fits import make_fits
from blockl0.problem.preprocess import apply
from blockl0.problem.problem import as_problem
from blockl0.result import Status
from blockl0.run import Timer, limited_by
from blockl0.selection import CRITERIA
from blockl0.text import percent
from grid import EACH_TARGET
from linear_data import Linear
from targets import takes_labels

NAMES = ["a", "b", "c", "d", "e", "f", "g"]
HOSTILE = [
    "</script><script>document.title = 'hit'</script>", "\"double\" & 'single'",
    "<img src=x onerror=document.title='hit'>", "{{json}} ${1} \\u003c %s",
    "\u202eעברית", "new\nline", "😀 naïve",
]  # fmt: skip


make_data = Linear(70, 7, {0: 2.0, 1: -1.5, 2: 1.0}, common=0.5, constant=3.0)


def fit_on(X, y, support):
    """(coefficients, intercept, mean squared loss halved) by least squares."""
    A = np.column_stack([np.ones(len(y)), X[:, support]])
    w = np.linalg.lstsq(A, y, rcond=None)[0]
    return w[1:], w[0], 0.5 * np.mean((y - A @ w) ** 2)


@pytest.fixture(scope="module")
def report():
    X, y = make_data()
    return make_report(X, y, feature_names=NAMES, target="yield", ridge=0.0)


def test_fit_and_drop_one_losses_are_those_of_least_squares(report):
    X, y = make_data()
    data = report.to_dict()
    null = 0.5 * y.var()
    assert data["null"] == pytest.approx(null, rel=1e-5)
    assert [point["k"] for point in data["points"]] == list(range(8))
    for point in data["points"]:
        support = [data["numbers"][f] for f in point["support"]]
        coef, intercept, loss = fit_on(X, y, support)
        np.testing.assert_allclose(point["coef"], coef, rtol=1e-4)
        assert point["intercept"] == pytest.approx(intercept, rel=1e-4)
        assert point["explained"] == pytest.approx(1.0 - loss / null, rel=1e-4, abs=1e-9)
        assert point["objective"] == pytest.approx(len(y) * loss, rel=1e-4)
        for at, j in enumerate(support):
            without = fit_on(X, y, [i for i in support if i != j])[2]
            assert point["drop"][at] == pytest.approx((without - loss) / null, rel=1e-3)
        assert point["drop"] == sorted(point["drop"], reverse=True)


def test_cross_validation_repeats_the_selection(report):
    X, y = make_data()
    data, k = report.to_dict(), 3
    losses, nulls = [], []
    for train, test in KFold(5, shuffle=True, random_state=seed_of(0)).split(X):
        subsets = [list(s) for s in combinations(range(7), k)]
        best = min(subsets, key=lambda s: fit_on(X[train], y[train], s)[2])
        coef, intercept, _ = fit_on(X[train], y[train], best)
        losses.append(0.5 * np.mean((y[test] - X[test][:, best] @ coef - intercept) ** 2))
        nulls.append(0.5 * np.mean((y[test] - y[train].mean()) ** 2))
    point, error = data["points"][k], np.std(losses, ddof=1) / np.sqrt(5)
    assert point["cv"]["loss"] == pytest.approx(np.mean(losses), rel=1e-5)
    assert point["cv"]["loss_se"] == pytest.approx(error, rel=1e-5)
    share = 1.0 - np.mean(losses) / np.mean(nulls)
    assert point["cv"]["explained"] == pytest.approx(share, rel=1e-4)


def test_half_samples_repeat_the_selection(report):
    X, y = make_data()
    data, k = report.to_dict(), 3
    chosen = [data["numbers"][f] for f in data["points"][k]["support"]]
    again, rng = np.zeros(7), np.random.default_rng(seed_of(0))
    for _ in range(5):
        rows = rng.permutation(len(y))
        for half in (np.sort(rows[::2]), np.sort(rows[1::2])):
            subsets = [list(s) for s in combinations(range(7), k)]
            again[min(subsets, key=lambda s: fit_on(X[half], y[half], s)[2])] += 0.1
    assert data["half_samples"] == 10
    np.testing.assert_allclose(data["points"][k]["again"], again[chosen], atol=1e-9)


@pytest.mark.parametrize("loss", ["squared", "poisson", "logistic", "three"])
def test_the_folds_are_those_of_the_estimators(loss):
    """One cross-validation: the losses of the page are the scores of `L0RegressorCV`."""
    X, y = make_data(90)
    rng, kind = np.random.default_rng(1), L0RegressorCV
    if loss == "poisson":
        y = rng.poisson(np.exp(0.3 * (y - 3.0)))
    elif loss != "squared":
        kind, edges = L0ClassifierCV, [2.0, 4.0] if loss == "three" else [3.0]
        y = np.digitize(y + rng.logistic(size=90), edges)
    name = "logistic" if loss == "three" else loss
    splits = list(KFold(3, shuffle=True, random_state=5).split(X))
    data = make_report(
        X, y, loss=name, n_nonzero_coefs=3, cv=KFold(3, shuffle=True, random_state=5)
    )
    model = kind(3, loss=name, cv=splits, random_state=0).fit(X, y)
    for i, point in enumerate(data.to_dict()["points"]):
        assert point["cv"]["loss"] == pytest.approx(-model.mean_scores_[i], rel=1e-5)
        assert point["cv"]["loss_se"] == pytest.approx(model.se_scores_[i], rel=1e-5)
    if kind is L0ClassifierCV:
        by_share = kind(3, loss=name, cv=splits, scoring="accuracy", random_state=0).fit(X, y)
        shares = [point["cv"]["accuracy"] for point in data.to_dict()["points"]]
        np.testing.assert_allclose(shares, by_share.mean_scores_, rtol=1e-5)
    # without any column, the null is what an intercept alone loses on the whole
    assert data.to_dict()["points"][0]["loss"] == pytest.approx(data.to_dict()["null"], rel=1e-5)


def test_the_null_loss_does_not_need_a_path_from_zero():
    X, y = make_data()
    whole, kept = (
        make_report(X, y, n_nonzero_coefs=3, keep=keep).to_dict() for keep in (None, [0])
    )
    assert kept["points"][0]["k"] == 1 and kept["null"] == whole["null"]
    shares = [data["points"][-1]["cv"]["explained"] for data in (whole, kept)]
    assert all(0.5 < share < 1.0 for share in shares)


def test_the_choices_are_those_of_their_rules(report):
    X, y = make_data()
    data = report.to_dict()
    path = L0RegressorCV(7, rule="bic", random_state=0).fit(X, y).path_
    for name in CRITERIA:
        best = data["points"][data["choices"][name]]["k"]
        assert best == path.best(name).n_nonzero
        np.testing.assert_allclose(data["criteria"][name], path.criterion(name), rtol=1e-5)
    cv = [point["cv"] for point in data["points"]]
    best = min(range(8), key=lambda i: cv[i]["loss"])
    limit = cv[best]["loss"] + cv[best]["loss_se"]
    assert data["choices"]["min"] == best
    assert data["choices"]["paired_se"] == data["start"]
    assert data["choices"]["one_se"] == min(i for i in range(8) if cv[i]["loss"] <= limit)


def test_a_proven_point_is_the_best_of_all_subsets(report):
    X, y = make_data()
    for point in report.to_dict()["points"]:
        assert point["certificate"]["kind"] in ("all", "optimal")
        best = min(fit_on(X, y, list(s))[2] for s in combinations(range(7), point["k"]))
        assert point["loss"] == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("loss", EACH_TARGET)
def test_a_point_that_is_not_the_best_is_refuted(loss):
    X, y = make_data()
    y = np.where(y > 3.0, "high", "low") if takes_labels(loss) else y
    task = collect.ReportTask(X, y, loss, 3, "auto", None, "fast", 0, None)
    model = task.estimator().fit(X, y)
    problem = bind(model, task.data(model)).problem
    good = model.path_[2]
    # the best pair without its second column, and with the worst one
    coef = good.coef.copy()
    coef[good.support[1]], coef[6] = 0.0, 1.0
    fits = make_fits(problem)
    coef = fits.on(np.flatnonzero(coef), coef).w
    bad = replace(good, coef=coef, objective=problem.objective(coef), certificate=None)
    bad = replace(bad, status=Status.CONVERGED)
    path = replace(model.path_, results=(*model.path_.results[:2], bad, model.path_[3]))
    found = proof.prove(problem, path, 2)[2]
    assert found.kind == "refuted" and found.gain > 0.01 and 6 in found.leave
    better = coef.copy()
    better[list(found.leave)], better[list(found.enter)] = 0.0, 1.0
    there = problem.objective(fits.on(np.flatnonzero(better), better).w)
    assert there == pytest.approx(bad.objective * (1.0 - found.gain), rel=1e-6)
    point = {"k": 2, "support": [0, 1]}
    words = proof.certificate(found, point, {"columns": 7, "kept": []}, NAMES)
    assert not words["holds"] and "“g”" in words["proven"] and percent(found.gain) in words["short"]


def test_all_exchanges_of_a_classification_are_excluded_or_fitted(monkeypatch):
    X, y = make_data()
    y = np.where(y > 3.0, "high", "low")
    task = collect.ReportTask(X, y, "logistic", 3, "auto", None, "fast", 0, None)
    model = task.estimator().fit(X, y)
    problem = bind(model, task.data(model)).problem
    fits, path = make_fits(problem), model.path_
    plain = replace(path[2], certificate=None, status=Status.CONVERGED)
    path = replace(path, results=(*path.results[:2], plain, path[3]))
    assert proof.prove(problem, path, 2)[2].is_optimal  # there is a ridge
    monkeypatch.setattr(proof, "may_prove", lambda problem: False)
    found = proof.prove(problem, path, 2)[2]
    assert found.kind == "tried" and found.is_complete and found.n_possible == 2 * 5
    inside = plain.support.tolist()
    for j, i in product(inside, set(range(7)) - set(inside)):
        there = np.array(sorted({*inside, i} - {j}))
        assert problem.objective(fits.on(there).w) > plain.objective * (1.0 - 1e-8)
    # what could be looked at before the work that may be spent is over
    n_tried = []
    for most in (0.0, *np.geomspace(1e2, 1e5, 20)):
        monkeypatch.setattr(proof, "WORK", most / 1e9)
        monkeypatch.setattr(proof, "LEAST_WORK", 0.0)
        n_tried.append(proof.prove(problem, path, 2)[2].n_tried)
    assert n_tried == sorted(n_tried) and set(n_tried) <= {0, 5, 10}
    assert n_tried[0] == 0 and n_tried[-1] == 10


def test_a_classification_with_a_ridge_is_proven():
    """By branch and bound for any number of columns; enumeration agrees."""
    X, y = make_data()
    labels = np.where(y > np.median(y), "high", "low")
    data = make_report(X, labels, loss="logistic", n_nonzero_coefs=3, cv=None).to_dict()
    for point in data["points"][1:]:
        assert point["certificate"]["verdict"] == "Proven"
        problem = as_problem(
            X, labels == "high", loss="logistic", ridge=1e-3, n_nonzero_coefs=point["k"]
        )
        problem = apply(problem).problem
        fits = make_fits(problem)
        values = {
            S: problem.objective(fits.on(np.array(S)).w)
            for S in combinations(range(X.shape[1]), point["k"])
        }
        assert sorted(point["support"]) == list(min(values, key=lambda S: values[S]))


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_the_page_says_where_no_bound_exists(loss, monkeypatch):
    monkeypatch.setattr(proof, "MOST_ENTRIES", 0)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 1100)), rng.standard_normal(30)
    problem = as_problem(X, np.sign(y) if loss == "logistic" else y, loss=loss, n_nonzero_coefs=2)
    path = solve_path(problem, [(0.0, 2)], effort="fast", random_state=0)
    found = proof.prove(problem, path, 0)[0]
    assert not found.is_optimal and not found.has_bound
    point, data = {"k": 2, "support": path[0].support.tolist()}, {"columns": 1100, "kept": []}
    said = proof.certificate(found, point, data, [f"x{j}" for j in range(1100)])
    assert "More cannot be proven without a ridge, as no bound exists." in said["open"]


def test_proofs_are_the_same_on_a_slow_machine(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 300)), rng.standard_normal(60)
    problem = as_problem(X, np.sign(y), loss="logistic", ridge=1e-3, n_nonzero_coefs=6)
    path = solve_path(problem, [(0.0, k) for k in (2, 4, 6)], effort="fast", random_state=0)
    monkeypatch.setattr(proof, "WORK", 0.5)
    found = []
    for pace in (0.0, 0.3):
        now = count()
        monkeypatch.setattr("blockl0.run.time.perf_counter", lambda: pace * next(now))  # noqa: B023
        found.append(proof.prove(problem, path, 1))
    assert found[0] == found[1]
    assert all(each.kind in ("swaps", "tried", "optimal") for each in found[0])
    with limited_by(Timer(-1.0)):
        assert all(each.n_tried == 0 for each in proof.prove(problem, path, 1))


def test_certificates_say_how_far_they_go():
    point, data = {"k": 2, "support": [0, 1]}, {"columns": 400, "kept": []}
    say = {
        kind: proof.certificate(ProofStatus(kind, 0.05, 10, 796), point, data, NAMES)
        for kind in VERDICTS
    }
    assert say["optimal"]["complete"] and "79 800 ways" in say["optimal"]["proven"]
    assert not say["tried"]["complete"] and "10 of the 796" in say["tried"]["proven"]
    assert "5\N{NO-BREAK SPACE}%" in say["swaps"]["proven"]
    assert "not proven" in say["swaps"]["open"] and say["none"]["level"] is None
    assert n_subsets(500, 8) == "about 9.1 × 10¹⁶"
    one, fewer = {"k": 1, "support": [0]}, {"k": 6, "support": [0, 1]}
    say = [proof.certificate(ProofStatus("optimal"), p, data, NAMES)["short"] for p in (one, fewer)]
    assert say[0] == "No other column fits these rows better."
    assert say[1] == "No choice of up to 6 columns fits these rows better."
    kept = proof.certificate(ProofStatus("optimal"), point, data | {"kept": [1]}, NAMES)
    assert kept["short"] == "With the column kept: no other 2 columns fit these rows better."
    assert "there are 399 ways to take 2 of 400 columns" in kept["proven"]


def test_a_perfect_fit_is_the_best_whatever_rounding_says():
    """Of two objectives of 1e-30 one is lower, which means nothing."""
    X, _ = make_data(6)
    y = X[:, 0] - X[:, 4]
    for rows in (X[:4], X):
        data = make_report(rows, y[: len(rows)], n_nonzero_coefs=4, cv=2, ridge=0.0).to_dict()
        perfect = [point for point in data["points"] if point["explained"] == 1]  # to six digits
        assert perfect and all(p["certificate"]["kind"] in ("all", "optimal") for p in perfect)
    assert "any columns would fit" not in str(data["points"][2]["words"])
    small = make_report(X[:3], [1.0, 3.0, 2.0], n_nonzero_coefs=2, cv=3).to_dict()
    assert "any columns would fit" in small["points"][2]["words"]["fit"]["text"]


def test_steadiness_is_about_columns_that_were_chosen():
    X, y = make_data()
    points = make_report(X, y, keep=[6], n_nonzero_coefs=7).to_dict()["points"]
    steady = {point["k"]: point["words"]["steady"]["value"] for point in points}
    assert steady[1] == "–" and steady[4] == "3 of 3" and steady[7] == "–"


def test_a_size_of_zero_and_a_constant_target_are_told_as_such():
    X, y = make_data()
    nothing = make_report(X, y, n_nonzero_coefs=1).to_dict()["points"][0]["words"]["fit"]
    assert "standard error" not in nothing["text"] and nothing["value"] == percent(0.0)
    constant = make_report(X, np.ones(70), n_nonzero_coefs=1).to_dict()["points"][0]["words"]
    assert constant["headline"][0].startswith("There is nothing to explain")


LOSSES = {
    "huber": lambda eta, rng: eta + rng.standard_t(2, eta.size),
    "poisson": lambda eta, rng: rng.poisson(np.exp(0.4 * eta)),
    "gamma": lambda eta, rng: rng.gamma(2.0, np.exp(0.4 * eta)),
    "tweedie:1.7": lambda eta, rng: rng.poisson(1.0, eta.size) * rng.gamma(2.0, np.exp(0.6 * eta)),
    "squared_hinge": lambda eta, rng: np.where(eta > 0.0, "yes", "no"),
    "logistic": lambda eta, rng: np.digitize(eta + rng.standard_normal(eta.size), [-1, 1]),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss(loss):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 5))
    y = LOSSES[loss](X[:, 0] - X[:, 1], rng)
    made = make_report(X, y, loss=loss, n_nonzero_coefs=2, cv=2)
    data = made.to_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data and "</html>" in made.to_html()
    point = data["points"][2]
    assert {data["numbers"][f] for f in point["support"]} == {0, 1}
    assert 0.0 < point["explained"] < 1.0 and point["certificate"]["complete"]
    if loss == "logistic":
        assert data["classes"] == ["0", "1", "2"] and np.shape(point["coef"]) == (2, 3)
        W = np.zeros((5, 3))
        W[[data["numbers"][f] for f in point["support"]]] = point["coef"]
        right = np.argmax(X @ W + point["intercept"], axis=1) == y
        assert point["accuracy"] == pytest.approx(right.mean(), rel=1e-5)


def test_kept_columns_sparse_data_and_no_folds():
    X, y = make_data()
    made = make_report(sp.csr_array(X), y, feature_names=NAMES, keep=["f"], cv=None)
    data = made.to_dict()
    kept = data["features"].index("f")
    assert data["kept"] == [kept] and data["points"][0]["k"] == 1
    assert all(point["support"][-1] == kept for point in data["points"])
    assert all(point["drop"][-1] is None and point["cv"] is None for point in data["points"])
    assert data["start"] == data["choices"]["bic"] and "paired_se" not in data["choices"]
    assert "kept" in made.to_html()


def test_progress_and_time_limit():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((400, 300)), rng.standard_normal(400)
    seen = []
    made = make_report(
        X,
        y,
        n_nonzero_coefs=60,
        cv=2,
        half_samples=0,
        time_limit=0.8,
        progress=lambda *step: seen.append(step),
    )
    assert [done for done, _, _ in seen] == list(range(6)) and {t for _, t, _ in seen} == {5}
    data = made.to_dict()
    assert len(data["points"]) < 61 and "time limit" in data["about"]["notes"][0]


@pytest.mark.parametrize(
    "given, words",
    [
        ({"feature_names": ["a"]}, r"one name per column of X \(7\), got 1"),
        ({"cv": 1}, "between 2 and n_samples=70, got 1"),
        ({"loss": "abs"}, "`loss` must be one of"),
        ({"y": np.array(["u", "v"] * 35)}, "must hold numbers for loss='squared', got 'u'"),
        ({"keep": ["z"]}, "must hold names of columns of X, got 'z'"),
        ({"X": np.zeros(70)}, r"must be a matrix .* got shape \(70,\)"),
        ({"X": np.full((70, 7), np.nan)}, "NaN in column 'a', row 0"),
        ({"time_limit": -1.0}, "`time_limit` must be positive"),
    ],
)
def test_bad_input_is_refused(given, words):
    X, y = make_data()
    with pytest.raises(ValueError, match=words):
        make_report(**({"X": X, "y": y, "feature_names": NAMES} | given))


def test_compact_numbers():
    assert compact(1234567.0) == 1234570 and compact(0.1234567) == 0.123457
    assert compact([np.nan, np.inf, -2.0]) == [None, None, -2]
    assert percent(0.9996).startswith("more than") and percent(0.0) == "0\N{NO-BREAK SPACE}%"


# -- recipes ---------------------------------------------------------------------------------------


def run_python(data, k: int, monkeypatch, folder) -> dict:
    monkeypatch.chdir(folder)
    space: dict = {}
    exec(compile(str(k).join(data["recipes"]["python"]), "recipe", "exec"), space)
    return space


@pytest.mark.parametrize("loss", EACH_TARGET)
def test_the_python_recipe_gives_the_same_answer(loss, tmp_path, monkeypatch):
    X, y = make_data()
    y = np.where(y > 3.0, "high", "low") if takes_labels(loss) else y
    target = 'the "target"\n</script>'
    frame = pd.DataFrame(X, columns=HOSTILE)
    frame.assign(**{target: y}).to_csv(tmp_path / "it's.csv", index=False)
    data = make_report(
        frame, y, target=target, loss=loss, n_nonzero_coefs=4, ridge=0.01, source="it's.csv",
        keep=[HOSTILE[2]], cv=2,
    ).to_dict()  # fmt: skip
    for point in data["points"][1:4:2]:
        space = run_python(data, point["k"], monkeypatch, tmp_path)
        assert space["model"].support_.tolist() == sorted(
            data["numbers"][f] for f in point["support"]
        )
        coef = np.ravel(space["model"].coef_)[[data["numbers"][f] for f in point["support"]]]
        np.testing.assert_allclose(coef, point["coef"], rtol=1e-4)


def test_the_recipes_prepare_the_data_as_the_command_did(tmp_path, monkeypatch):
    from blockl0.app.tables import read_table

    X, y = make_data()
    frame = pd.DataFrame(X, columns=NAMES).assign(kind=["u", "v"] * 35, y=y)
    frame.loc[3, "a"] = np.nan
    frame.to_csv(tmp_path / "data.csv", index=False)
    table = read_table(tmp_path / "data.csv", target="y", text="one-hot", impute="median")
    data = make_report(
        table.X, table.y, feature_names=table.feature_names, target="y", source="data.csv", cv=None,
        notes=table.notes, command="blockl0 report data.csv -t y --text=one-hot --impute median",
    ).to_dict()  # fmt: skip
    space = run_python(data, 3, monkeypatch, tmp_path)
    chosen = {data["features"][f] for f in data["points"][3]["support"]}
    assert set(space["columns"]) == chosen
    assert shlex.split("3".join(data["recipes"]["command"])) == [
        "blockl0", "fit", "data.csv", "--target", "y", "-k", "3", "--text", "one-hot",
        "--impute", "median",
    ]  # fmt: skip


def test_the_command_is_quoted_and_understood():
    from blockl0.app.cli.commands import fit as command

    X, y = make_data()
    data = make_report(
        X, y > 3.0, feature_names=HOSTILE, target="it's $(y)", loss="logistic", ridge=0.5,
        source="my data; rm.csv", keep=[HOSTILE[1]], effort=2, random_state=7, n_nonzero_coefs=3,
        cv=None,
    ).to_dict()  # fmt: skip
    words = shlex.split("2".join(data["recipes"]["command"]))
    assert words[:2] == ["blockl0", "fit"]
    given = command.make_context("fit", words[2:]).params
    assert given["data"] == "my data; rm.csv" and given["target"] == "it's $(y)"
    assert given["columns"] == 2 and given["keep"] == (HOSTILE[1],) and given["effort"] == 2
    assert given["loss"] == "logistic" and given["ridge"] == 0.5 and given["seed"] == 7


def test_standard_input_has_no_name():
    X, y = make_data()
    made = make_report(
        X, y, source="standard input", command="blockl0 report - --header no", n_nonzero_coefs=1,
        cv=None,
    )  # fmt: skip
    recipes = made.to_dict()["recipes"]
    assert shlex.split("1".join(recipes["command"]))[2] == "data.csv"
    assert 'header="no"' in recipes["python"][0]


def test_a_file_that_pandas_would_misread_is_read_by_the_library(tmp_path, monkeypatch):
    X, y = make_data()
    frame = pd.DataFrame(X, columns=NAMES).assign(y=y)
    for name, separator in (("comma.csv", ","), ("semicolon.csv", ";")):
        file = tmp_path / name
        frame.to_csv(file, index=False, sep=separator)
        data = make_report(frame[NAMES], y, source=str(file), n_nonzero_coefs=2, cv=None).to_dict()
        assert ("read_table" in data["recipes"]["python"][0]) == (separator == ";")
        space = run_python(data, 2, monkeypatch, tmp_path)
        assert space["columns"] == sorted(data["features"][f] for f in data["points"][2]["support"])
