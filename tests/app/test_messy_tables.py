"""Three messy tables: what they hold is what was meant, by pandas alone and by every command."""

from __future__ import annotations

import numpy as np
import pytest

from messy import TARGETS, clean_tables, main, make_messy_tables

pd = pytest.importorskip("pandas", reason="tables need pandas")


@pytest.fixture(scope="module")
def messy(tmp_path_factory):
    return make_messy_tables(tmp_path_factory.mktemp("messy"))


def by_hand(paths):
    """The files as a person who knows them reads them with pandas."""
    patients = pd.read_csv(
        paths["patients.csv"], sep=";", decimal=",", thousands=".", encoding="cp1252",
        na_values=["k. A."], dtype={"visit": str},
    )  # fmt: skip
    patients["visit"] = pd.to_datetime(patients["visit"], format="%d.%m.%Y")
    wines = pd.read_csv(paths["wines.csv"], encoding="utf-8-sig", thousands=",")
    wines["bottled"] = pd.to_datetime(wines["bottled"], format="%m/%d/%Y")
    wines["alcohol"] = wines["alcohol"].str.rstrip("%").astype(float)
    wines["tone"] = wines["tone"].str.replace(r"\((.*)\)", r"-\1", regex=True).astype(float)
    wines["price"] = wines["price"].str.replace("[$,]", "", regex=True).astype(float)
    tumours = pd.read_csv(paths["tumours.txt"], sep="\t", encoding="utf-16")
    tumours["taken"] = pd.to_datetime(tumours["taken"].astype(str), format="%Y%m%d")
    tumours["symmetry"] = tumours["symmetry"].str.replace("\u2212", "-").astype(float)
    for name in ("area", "perimeter"):
        tumours[name] = tumours[name].str.replace("[\u00a0']", "", regex=True).astype(float)
    return {"patients.csv": patients, "wines.csv": wines, "tumours.txt": tumours}


def test_the_script_writes_them_and_says_so(tmp_path, capsys):
    main([str(tmp_path / "made")])
    assert capsys.readouterr().out == f"{', '.join(TARGETS)} are in {tmp_path / 'made'}\n"
    assert {path.name for path in (tmp_path / "made").iterdir()} == set(TARGETS)
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "usage: python tests/messy.py" in capsys.readouterr().out


def test_what_is_written_is_what_was_meant(messy):
    clean = clean_tables()
    assert clean.keys() == TARGETS.keys() == messy.keys()
    for name, read in by_hand(messy).items():
        meant = clean[name]
        assert list(read) == list(meant) and TARGETS[name] in meant
        for column in meant:
            if meant[column].dtype.kind in "fiM":
                np.testing.assert_array_equal(read[column], meant[column], f"{name} {column}")
            else:
                has_text = meant[column].notna()
                assert (read[column].notna() == has_text).all()
                # lines end as on Windows inside quotes as well, or do not
                texts = read[column][has_text].str.replace("\r\n", "\n")
                assert (texts == meant[column][has_text]).all()


# -- the commands, beside statsmodels on the clean tables ------------------------------------------

READ = {
    "patients.csv": ("--na", "k. A.", "--impute", "median", "--drop", "followup"),
    "wines.csv": ("--impute", "median", "--as-category", "tank"),
    "tumours.txt": ("--impute", "median", "--dates", "days", "--ridge", "0"),
}
LEFT_OUT = {
    "patients.csv": ["patient", "visit", "remark", "followup"],
    "wines.csv": ["lot", "bottled", "note"],
    "tumours.txt": ["sample id", "remark", "spare"],
}


def by_pandas(name):
    """(X with columns of 0 and 1 for all values but the first, y) from the clean table."""
    clean = clean_tables()[name].dropna(subset=[TARGETS[name]]).drop(columns=LEFT_OUT[name])
    y, X = clean[TARGETS[name]], clean.drop(columns=TARGETS[name])
    if name == "wines.csv":
        X["tank"] = X["tank"].astype(str)
    if name == "tumours.txt":
        X["taken"] = (X["taken"] - pd.Timestamp("1970-01-01")).dt.days
    X = pd.get_dummies(X, prefix_sep="=", dtype=float, drop_first=True)
    return X.fillna(X.median()), y


def choices(X):
    """The columns of X by what is in or out as a whole: a category, or a number."""
    found = {}
    for column in X:
        found.setdefault(column.partition("=")[0], []).append(column)
    return found


def columns_of(rows):
    """(the columns of X, their coefficients) of the features of an answer."""
    parts = [part for row in rows for part in row.get("levels", [row])]
    return [part["name"] for part in parts], [part["coef"] for part in parts]


@pytest.fixture
def folder(messy, monkeypatch):
    pytest.importorskip("click")
    folder = messy["wines.csv"].parent
    monkeypatch.chdir(folder)
    return folder


def options_of(name, k):
    return (name, "-t", TARGETS[name], "-k", k, *READ[name])


def fitted(name, columns):
    """statsmodels' fit of some columns of the clean table."""
    sm = pytest.importorskip("statsmodels.api")
    X, y = by_pandas(name)
    design = sm.add_constant(X[columns])
    if name == "tumours.txt":
        return sm.Logit((y == "malignant").astype(float), design).fit(disp=0, tol=1e-10)
    return sm.OLS(y, design).fit()


@pytest.mark.parametrize("name", TARGETS)
def test_fit_and_predict_give_the_numbers_of_statsmodels(folder, name):
    from cli_runner import QUICK, answer

    model = f"{name}.json"
    document = answer("fit", *options_of(name, 3), *QUICK, "-o", model, "--force")
    X, y = by_pandas(name)
    assert document["data"]["n_samples"] == len(y)
    assert document["data"]["n_features"] == X.shape[1]
    result = document["result"]
    names, coef = columns_of(result["features"])
    assert len(result["features"]) == 3 and set(names) <= set(X.columns)
    truth = fitted(name, names)
    np.testing.assert_allclose(coef, truth.params[names], rtol=2e-5)
    predicted = answer("predict", model, name)["result"]
    assert predicted["n_samples"] == len(clean_tables()[name])
    assert predicted["score"]["n_samples"] == len(y)
    if name == "tumours.txt":
        accuracy = np.mean((truth.predict() > 0.5) == (y == "malignant"))
        assert predicted["score"]["value"] == pytest.approx(accuracy, abs=1e-12)
    else:
        assert result["scores"]["train"] == pytest.approx(truth.rsquared, rel=1e-9)
        assert predicted["score"]["value"] == pytest.approx(truth.rsquared, rel=1e-9)


def test_the_subset_is_the_best_of_all(folder):
    """By enumeration of all pairs of columns of the clean table, a category being one."""
    from itertools import combinations

    from cli_runner import QUICK, answer

    found = answer("fit", *options_of("wines.csv", 2), *QUICK)["result"]
    X, y = by_pandas("wines.csv")
    units, total = choices(X), float(((y - y.mean()) ** 2).sum())
    scores = {
        (one, other): 1.0 - _residual(X[units[one] + units[other]].to_numpy(), y) / total
        for one, other in combinations(units, 2)
    }
    best = max(scores, key=scores.__getitem__)
    assert found["scores"]["train"] == pytest.approx(scores[best], rel=1e-10)
    assert {row["name"] for row in found["features"]} == set(best) and "cultivar" in best


def _residual(X, y):
    X = np.column_stack([np.ones(len(X)), X])
    return float(((y - X @ np.linalg.lstsq(X, y, rcond=None)[0]) ** 2).sum())


@pytest.mark.parametrize("name", ["patients.csv", "wines.csv"])
def test_path_gives_the_numbers_of_statsmodels(folder, name):
    from cli_runner import answer

    points = answer("path", *options_of(name, 4), "--rule", "bic")["result"]["points"]
    assert [point["k"] for point in points] == [0, 1, 2, 3, 4]
    units = choices(by_pandas(name)[0])
    for point in points[1:]:
        chosen = [c for unit in point["columns"] for c in units.get(unit.partition("=")[0])]
        truth = fitted(name, chosen)
        assert 2.0 * point["loss"] == pytest.approx(truth.ssr, rel=1e-8)


def test_report_of_a_messy_table(folder, monkeypatch):
    from cli_runner import answer

    arguments = ("report", *options_of("wines.csv", 3), "--max-levels", 9, "-o", "page.html")
    # the page repeats how the file was read
    monkeypatch.setattr("sys.argv", ["blockl0", *map(str, arguments)])
    document = answer(*arguments, "--force")
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert "Barbera (reference)" in page and "of free text left out" in page
    notes = " ".join(document["data"]["notes"])
    for said in (
        "price ($1,128.00 is 1128)",
        "with a different value in every row: lot",
        "tank (6 values)",
    ):
        assert said in notes
    X, namespace = by_pandas("wines.csv")[0], {}
    code = document["result"]["recipes"]["python"][0]
    exec(code[: code.index("# the path")], namespace)
    np.testing.assert_allclose(namespace["X"][X.columns], X, rtol=1e-15)
    assert "--as-category tank --max-levels 9" in "".join(document["result"]["recipes"]["command"])


REFUSALS = {
    "na": (("patients.csv", "-t", "progression"), r"but also 'k. A.' in 17 of 430 rows"),
    "gaps": (("wines.csv", "-t", "proline"), "Missing values in 1 column: ash (9 rows); --impute"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_a_newcomer_is_asked(folder, case):
    from cli_runner import run

    options, said = REFUSALS[case]
    assert said in run("fit", *options, "-k", 2, code=3).stderr


def test_most_rows_are_not_lost_silently(folder):
    """Nearly no patient has a follow-up; with --test as without."""
    from cli_runner import QUICK, answer

    options = ("patients.csv", "-t", "progression", "-k", 2, "--na", "k. A.", *QUICK)
    for test in ((), ("--test", 0.3)):
        document = answer("fit", *options, "--impute", "drop-rows", *test)
        notes = " ".join(document["notices"])
        assert "--drop followup would keep" in notes and "rows: followup (" in notes
        assert "12 rows of 442 without a target (progression) left out." in notes
    clean = clean_tables()["patients.csv"].dropna(subset=["progression"])
    kept = answer("fit", *options, "--impute", "drop-rows", "--drop", "followup")
    assert kept["data"]["n_samples"] == int(clean["bmi"].notna().sum())
