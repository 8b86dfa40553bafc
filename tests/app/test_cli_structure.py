"""Categories as one choice, signs and bounds, several targets: through the command line."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from blockl0.app.model_file import _checksum
from cli_runner import QUICK, answer, run

pd = pytest.importorskip("pandas")

NUMBERS = ["price", "size", "age"]
FREE = ("--costs", "none")


def shops(seed=0, m=120):
    """Categories of 4, 3 and 2 values beside three numbers; the target needs one of each kind."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "shop": rng.choice(["A", "B", "C", "D"], m, p=[0.4, 0.3, 0.2, 0.1]),
            "day": rng.choice(["Mon", "Tue", "Wed"], m),
            "open": rng.choice(["No", "Yes"], m),
            "price": rng.standard_normal(m).round(3),
            "size": 10.0 * rng.standard_normal(m).round(3),
            "age": rng.standard_normal(m).round(3),
        }
    )
    worth = table["shop"].map({"A": 0.0, "B": 1.0, "C": -1.0, "D": 2.0})
    noise = rng.standard_normal((m, 2))
    table["y"] = worth + 0.15 * table["size"] - 0.5 * table["price"] + 0.7 * noise[:, 0]
    table["z"] = 0.5 * worth + 1.5 * table["age"] + 0.7 * noise[:, 1]
    return table


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = shops()
    made.to_csv("shops.csv", index=False)
    return made


def coded(table, drop_first=True):
    """X as pandas codes it, and the columns of each column of the table."""
    parts = {}
    for name in ["shop", "day", "open", *NUMBERS]:
        column = table[name]
        if column.dtype.kind in "OUST":
            column = pd.get_dummies(column, prefix=name, prefix_sep="=", dtype=float)
            column = column.iloc[:, 1:] if drop_first or column.shape[1] == 2 else column
        parts[name] = pd.DataFrame(column)
    return parts


def fitted(X, y):
    """Half the residual sum of squares, and the coefficients behind an intercept."""
    A = np.column_stack([np.ones(len(y)), X])
    coef = np.linalg.lstsq(A, y, rcond=None)[0]
    return 0.5 * float(np.sum((y - A @ coef) ** 2)), coef


def best(parts, y, k):
    """(objective, names) of the best k of the parts, by enumeration."""
    return min(
        (fitted(np.hstack([parts[name] for name in names]), y)[0], names)
        for names in combinations(parts, k)
    )


def unit(name):
    """What the column of a table is called in an answer: of two values, one is in its name."""
    return "open=Yes" if name == "open" else name


def fit(*options, target="y", drop="z", code=0):
    given = ["--drop", drop] if drop else []
    return answer("fit", "shops.csv", "-t", target, *given, *QUICK, *options, code=code)


# -- categories ------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_a_category_is_one_choice_and_the_best_one(table, k):
    parts, y = coded(table), table["y"].to_numpy()
    objective, names = best(parts, y, k)
    result = fit("-k", k, *FREE)["result"]
    assert result["n_nonzero"] == k
    assert {row["name"] for row in result["features"]} == set(map(unit, names))
    assert result["objective"] == pytest.approx(objective, rel=1e-10)
    X = pd.concat([parts[name] for name in names], axis=1)
    expected = dict(zip(X.columns, fitted(X.to_numpy(), y)[1][1:], strict=True))
    found = {}
    for row in result["features"]:
        found |= {one["name"]: one["coef"] for one in row.get("levels", [row])}
    assert found == pytest.approx(expected, rel=1e-8)


def test_the_reference_and_the_levels_are_shown_below_the_category(table):
    document = fit("-k", 2)
    assert (document["data"]["n_columns"], document["data"]["n_features"]) == (6, 9)
    shop = next(row for row in document["result"]["features"] if row["name"] == "shop")
    assert (shop["coef"], shop["reference"]) == (None, "A")
    assert [one["level"] for one in shop["levels"]] == ["B", "C", "D"]
    lines = run("fit", "shops.csv", "-t", "y", "--drop", "z", "-k", 2, *QUICK).stdout.splitlines()
    assert "2 of 6 columns chosen for 'y' (squared loss):" in lines
    at = next(i for i, line in enumerate(lines) if line.startswith("  shop"))
    below = [line.split()[0] for line in lines[at + 1 : at + 5]]
    assert below == ["A", "B", "C", "D"]
    assert lines[at + 1].split() == ["A", "(reference)", "0"]


def test_paths_enter_categories_as_a_whole(table):
    parts, y = coded(table), table["y"].to_numpy()
    points = answer(
        "path", "shops.csv", "-t", "y", "--drop", "z", "--rule", "bic", "--csv", "path.csv", *FREE
    )["result"]["points"]
    assert [point["k"] for point in points] == list(range(7))
    for point in points[1:]:
        objective, names = best(parts, y, point["k"])
        assert set(point["columns"]) == set(map(unit, names))
        assert point["objective"] == pytest.approx(objective, rel=1e-9)
    assert "shop" in pd.read_csv("path.csv")["columns"][2].split("; ")


@pytest.mark.parametrize("k", [1, 3])
def test_separate_levels_are_columns_by_themselves(table, k):
    parts = {
        name: column.to_frame()
        for part in coded(table, drop_first=False).values()
        for name, column in part.items()
    }
    objective, names = best(parts, table["y"].to_numpy(), k)
    document = fit("-k", k, "--levels", "separate")
    assert document["data"]["n_columns"] == document["data"]["n_features"] == 11
    assert {row["name"] for row in document["result"]["features"]} == set(names)
    assert not any("reference" in row for row in document["result"]["features"])
    assert document["result"]["objective"] == pytest.approx(objective, rel=1e-10)


def test_a_saved_category_predicts_and_is_certified(table):
    fit("-k", 2, "--out", "m.json")
    stored = json.loads(Path("m.json").read_text())
    assert stored["format_version"] == 2
    assert {f["reference"] for f in stored["features"] if f["column"] == "shop"} == {"A"}
    parts, y = coded(table), table["y"].to_numpy()
    X = np.hstack([parts[name] for name in best(parts, y, 2)[1]])
    expected = np.column_stack([np.ones(len(y)), X]) @ fitted(X, y)[1]
    found = answer("predict", "m.json", "shops.csv")["result"]["predictions"]
    assert found == pytest.approx(expected.tolist(), rel=1e-8)
    assert answer("certify", "shops.csv", "--model", "m.json")["result"]["holds"]
    new = table.head(3).assign(shop=["A", "E", "B"], size=1.0)
    new.to_csv("new.csv", index=False)
    done = run("predict", "m.json", "new.csv")
    assert "'E'; they count as 'A'." in done.stderr
    first, other, _ = map(float, done.stdout.split()[1:])
    assert first == other


def test_models_from_before_are_read_with_their_values_one_by_one(table):
    fit("-k", 3, "--levels", "separate", "--out", "m.json")
    stored = json.loads(Path("m.json").read_text())
    assert stored["format_version"] == 1
    del stored["metadata"]["reading"]["levels"], stored["checksum"]
    stored["checksum"] = _checksum(stored)
    Path("m.json").write_text(json.dumps(stored))
    assert answer("certify", "shops.csv", "--model", "m.json")["result"]["holds"]


def test_categories_are_kept_as_a_whole_and_values_are_explained(table):
    result = fit("-k", 2, "--keep", "day")["result"]
    parts, y = coded(table), table["y"].to_numpy()
    objective = min(
        fitted(np.hstack([parts["day"], parts[name]]), y)[0] for name in parts if name != "day"
    )
    assert result["objective"] == pytest.approx(objective, rel=1e-10)
    assert "with the column kept" in result["certificate"]["words"]
    assert fit("-k", 1, "--keep", "open")["result"]["features"][0]["name"] == "open=Yes"
    base = ["fit", "shops.csv", "-t", "y", "-k", 2, "--keep"]
    assert "--keep day keeps it with all its values" in run(*base, "day=Tue", code=3).output
    assert "'Mon' is what the other values" in run(*base, "day=Mon", code=3).output
    assert "Did you mean 'day'?" in run(*base, "dey", code=3).output
    separate = run(*base, "day", "--levels", "separate", code=3).output
    assert "--keep day=Mon --keep day=Tue" in separate


def test_proofs_halves_and_choices_count_categories(table):
    done = run("fit", "shops.csv", "-t", "y", "--drop", "z", "-k", 2, "--half-samples", 4, *FREE)
    assert "Proven: no other 2 columns fit these rows better." in done.stdout
    assert "Repeated on 4 half-samples of the rows:" in done.stdout
    assert "of 2 columns are chosen again" in done.stdout
    chosen = fit("--folds", 3)["result"]
    assert chosen["choice"]["n_nonzero_coefs"] == list(range(7))
    assert "at most 6, the number of columns" in run(
        "fit", "shops.csv", "-t", "y", "--drop", "z", "-k", 7, code=3
    ).output  # fmt: skip


def test_a_category_is_chosen_again_where_a_half_lacks_a_level(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = shops(3)
    made.loc[5, "shop"] = made.loc[6, "shop"] = "Z"
    made["y"] = made["shop"].map(dict(zip("ABCDZ", (0, 5, -5, 9, 1), strict=True))) + made["age"]
    made.to_csv("shops.csv", index=False)
    row = fit("-k", 1, "--half-samples", 10)["result"]["features"][0]
    assert (row["name"], row["again"]) == ("shop", 1.0)


def test_many_coefficients_of_few_columns_are_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    made = pd.DataFrame({name: rng.choice(list("abcdefghij"), 40) for name in ("u", "v")})
    made.assign(y=rng.standard_normal(40)).to_csv("shops.csv", index=False)
    assert fit("-k", 1, drop=None)["result"]["features"] == []
    result = fit("-k", 1, *FREE, drop=None)["result"]
    n_coefs = len(result["features"][0]["levels"])
    assert f"have {n_coefs} coefficients" in " ".join(result["cautions"])
    assert "for 40 rows" in " ".join(result["cautions"])
    made[["u"]].assign(y=rng.standard_normal(40)).to_csv("shops.csv", index=False)
    done = run("fit", "shops.csv", "-t", "y", "-k", 1, *QUICK, *FREE)
    assert "40 rows, 1 column to choose from" in done.stdout
    assert "Nothing to choose: the only column is in." in done.stdout


def test_a_level_that_only_rows_held_out_have_is_told(table):
    table.assign(shop=[f"s{i % 30}" if i < 30 else "A" for i in range(len(table))]).to_csv(
        "shops.csv", index=False
    )
    notes = fit("-k", 1, "--test", 0.3)["notices"]
    told = [note for note in notes if note.startswith("Rows held out: column 'shop' holds texts")]
    assert told and "they count as 'A'." in told[0]


def test_labels_and_categories(table):
    labels = np.where(table["y"] > table["y"].median(), "high", "low")
    table.assign(y=labels).to_csv("shops.csv", index=False)
    two = fit("-k", 2)["result"]
    assert "shop" in {row["name"] for row in two["features"]}
    cuts = np.quantile(table["y"], [0.3, 0.7])
    table.assign(y=np.array(["s", "m", "l"])[np.digitize(table["y"], cuts)]).to_csv(
        "shops.csv", index=False
    )
    refused = run("fit", "shops.csv", "-t", "y", "-k", 2, "--positive", "all", code=3)
    assert "for numbers and for two classes" in refused.output
    shop = next(r for r in fit("-k", 2)["result"]["features"] if r["name"] == "shop")
    assert all(len(one["coef"]) == 3 for one in shop["levels"])


def test_methods_that_know_no_categories_are_left_out_of_a_comparison(table):
    done = answer("compare", "shops.csv", "-t", "y", "--drop", "z", "-k", 2)
    assert {row["method"] for row in done["result"]["methods"]} == {"refit", "exact"}
    objective, names = best(coded(table), table["y"].to_numpy(), 2)
    first = done["result"]["methods"][0]
    assert (set(first["columns"]), first["objective"]) == (
        set(map(unit, names)), pytest.approx(objective, rel=1e-10),
    )  # fmt: skip
    assert any("--levels separate: dec, forward" in note for note in done["notices"])
    asked = ["compare", "shops.csv", "-t", "y", "-k", 2, "-m", "omp"]
    said = run(*asked, code=3).output
    assert "omp chooses columns one by one" in said and "; compare refit, exact, or give" in said
    run(*asked, "--levels", "separate")


# -- signs and bounds ------------------------------------------------------------------------------


def bounded_best(X, y, units, low, high, k):
    """The least objective within bounds of k units, by enumeration."""
    A, b = X - X.mean(axis=0), y - y.mean()
    found = []
    for names in combinations(units, k):
        columns = [j for name in names for j in units[name]]
        sides = low[columns], high[columns]
        found.append(lsq_linear(A[:, columns], b, sides, method="bvls", tol=1e-14).cost)
    return min(found)


def coefficients(result, names):
    found = dict.fromkeys(names, 0.0)
    for row in result["features"]:
        found |= {one["name"]: one["coef"] for one in row.get("levels", [row])}
    return np.array([found[name] for name in names])


@pytest.mark.parametrize(
    "options, bounds",
    [
        (["--positive", "all"], dict.fromkeys(NUMBERS, (0.0, np.inf))),
        (["--positive", "price,day"], {"price": (0.0, np.inf), "day": (0.0, np.inf)}),
        (["--bounds", "size=-1:0.1", "--bounds", "price=0:"],
         {"size": (-1.0, 0.1), "price": (0.0, np.inf)}),
        (["--bounds", "shop=-0.5:0.75"], {"shop": (-0.5, 0.75)}),
        (["--bounds", "shop=D=:0.5", "--positive", "open"],
         {"shop=D": (-np.inf, 0.5), "open": (0.0, np.inf)}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("k", [1, 3])
def test_coefficients_stay_within_their_bounds_and_are_the_best(table, options, bounds, k):
    parts, y = coded(table), table["y"].to_numpy()
    X = pd.concat(parts.values(), axis=1)
    place = {name: j for j, name in enumerate(X.columns)}
    units = {name: [place[c] for c in part.columns] for name, part in parts.items()}
    low, high = np.full(len(place), -np.inf), np.full(len(place), np.inf)
    for name, (least, most) in bounds.items():
        columns = units.get(name, [place[name]] if name in place else list(place.values()))
        low[columns], high[columns] = least, most
    result = fit("-k", k, *options, *FREE, "--prove", 5)["result"]
    coef = coefficients(result, X.columns)
    assert np.all((coef >= low) & (coef <= high))
    expected = bounded_best(X.to_numpy(), y, units, low, high, k)
    assert result["objective"] == pytest.approx(expected, rel=1e-8)
    assert result["certificate"]["optimal"]


def test_all_that_may_not_be_negative_are_columns_of_numbers(table):
    for more in (["-k", 5], ["-k", 2, "--levels", "separate", "--keep", "shop=C"]):
        given = ["--positive", "all", *more]
        coef = {
            one["name"]: one["coef"]
            for row in fit(*given)["result"]["features"]
            for one in row.get("levels", [row])
        }
        assert min(coef.get(name, 0.0) for name in NUMBERS) >= 0.0
        assert min(value for name, value in coef.items() if name not in NUMBERS) < 0.0
    table[["shop", "day", "y"]].to_csv("shops.csv", index=False)
    refused = run("fit", "shops.csv", "-t", "y", "-k", 1, "--positive", "all", code=3)
    assert "there is no column of numbers" in refused.output


def test_bounds_are_saved_certified_and_told(table):
    given = ["--bounds", "size=0:0.1", "--positive", "price"]
    document = fit("-k", 2, *given, "--out", "m.json")
    said = " ".join(document["result"]["cautions"])
    assert "at a bound that was given: size" in said
    certified = answer("certify", "shops.csv", "--model", "m.json")["result"]
    assert certified["holds"]
    assert certified["objective"] == pytest.approx(document["result"]["objective"], rel=1e-10)
    refused = run("certify", "shops.csv", "--model", "m.json", "--bounds", "size=0:9", code=2)
    assert "fitted with --bounds" in refused.output
    path = answer("path", "shops.csv", "-t", "y", "--rule", "bic", "--drop", "z", *given)
    assert all("price" not in point["columns"] for point in path["result"]["points"][:3])


@pytest.mark.parametrize(
    "options, code, said",
    [
        (["--bounds", "sise=0:1"], 3, "Did you mean 'size'?"),
        (["--positive", "pric"], 3, "Did you mean 'price'?"),
        (["--positive", "price,aje"], 3, "Did you mean 'age'?"),
        (["--bounds", "size=1:2"], 2, "excludes a coefficient of zero"),
        (["--bounds", "size=2:-1"], 2, "is reversed"),
        (["--bounds", "size=a:1"], 2, "must hold numbers"),
        (["--bounds", "size"], 2, "is not NAME=LOW:HIGH"),
        (["--positive", "size", "--bounds", "size=:0"], 3, "nothing but zero for 'size'"),
        (["--bounds", "shop=A=0:1"], 3, "'A' is what the other values"),
        (["-t", "shop", "--positive", "all"], 3, "Several targets must hold numbers"),
        (["--proof", "p.npz"], 3, "give it with --levels separate."),
        (["--positive", "age", "--proof", "p.npz"], 3, "give it without --positive and --bounds"),
    ],
)
def test_wrong_bounds_are_explained(table, options, code, said):
    done = run("fit", "shops.csv", "-t", "y", "-k", 2, *options, code=code)
    assert said in done.output


# -- several targets -------------------------------------------------------------------------------

BOTH = ["-t", "y", "-t", "z"]


def test_several_targets_have_one_choice(table):
    parts, Y = coded(table), table[["y", "z"]].to_numpy()
    objective, names = best(parts, Y, 3)
    document = answer("fit", "shops.csv", *BOTH, "-k", 3, *QUICK, "--out", "m.json", "--prove", 5)
    result = document["result"]
    assert result["targets"] == ["y", "z"]
    assert {row["name"] for row in result["features"]} == set(map(unit, names))
    assert result["objective"] == pytest.approx(objective, rel=1e-10)
    assert result["certificate"]["optimal"]
    X = np.hstack([parts[name] for name in names])
    expected = np.column_stack([np.ones(len(Y)), X]) @ fitted(X, Y)[1]
    done = run("predict", "m.json", "shops.csv", "--out", "p.csv")
    np.testing.assert_allclose(pd.read_csv("p.csv")[["y", "z"]], expected, rtol=1e-8)
    for j, name in enumerate(["y", "z"]):
        share = 1.0 - np.var(Y[:, j] - expected[:, j]) / np.var(Y[:, j])
        assert result["scores"]["train_of_each"][name] == pytest.approx(share, rel=1e-8)
        assert f"R² {share:.4g} on the rows that have '{name}'" in done.stderr
    assert answer("certify", "shops.csv", "--model", "m.json")["result"]["holds"]


def test_several_targets_in_words_and_with_held_out_rows(table):
    done = run("fit", "shops.csv", *BOTH, "-k", 2, *QUICK, "--test", 0.25)
    assert "2 of 6 columns chosen for 'y', 'z' (squared loss):" in done.stdout
    assert "coef y" in done.stdout and "coef z" in done.stdout
    assert "(y 0." in done.stdout and "rows held out" in done.stdout
    table.assign(z=100 * table["z"]).to_csv("shops.csv", index=False)
    wide = run("fit", "shops.csv", *BOTH, "-k", 1, *QUICK)
    assert "'z' varies" in wide.stderr and "decides most" in wide.stderr


def test_paths_and_certificates_of_several_targets(table):
    parts, Y = coded(table), table[["y", "z"]].to_numpy()
    points = answer("path", "shops.csv", *BOTH, "-k", 4, "--folds", 3, "--ridge", 0)["result"][
        "points"
    ]
    for point in points[1:]:
        assert point["objective"] == pytest.approx(best(parts, Y, point["k"])[0], rel=1e-9)
    certified = answer("certify", "shops.csv", *BOTH, "-k", 2, "--exact")["result"]
    assert certified["holds"] and certified["claims"][-1]["claim"] == "optimal"


def test_several_targets_with_gaps_and_what_is_refused(table):
    gaps = table.copy()
    gaps.loc[:4, "y"] = np.nan
    gaps.loc[3:9, "z"] = np.nan
    gaps.to_csv("shops.csv", index=False)
    document = answer("fit", "shops.csv", *BOTH, "-k", 2, *QUICK, "--out", "m.json")
    assert document["data"]["n_samples"] == len(gaps) - 10
    scores = answer("predict", "m.json", "shops.csv")["result"]["score"]
    assert (scores["y"]["n_samples"], scores["z"]["n_samples"]) == (len(gaps) - 5, len(gaps) - 7)
    for options, said in [
        (["report", *BOTH], "A page is about one target"),
        (["path", *BOTH, "--html", "p.html"], "A page is about one target"),
        (["fit", "-t", "y", "-t", "y", "-k", "1"], "more than once"),
        (["fit", "-t", "y", "-t", "shop", "-k", "1"], "'shop' holds labels"),
        (["fit", *BOTH, "--loss", "huber", "-k", "1"], "huber takes one --target"),
        (["fit", "-t", "y", "-t", "zz", "-k", "1"], "There is no column 'zz'"),
    ]:
        assert said in run(options[0], "shops.csv", *options[1:], code=3).output
