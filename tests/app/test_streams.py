"""Tables read in parts: the same answers as from all rows at once, or a reason why not."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import pytest

from blockl0.app.cli import stream
from blockl0.app.model_file import load_model
from blockl0.app.tables import chunks
from cli_runner import answer, run

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")


def frame(seed=0, m=400):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 8)) * 10.0 ** np.arange(-2, 6) + 1e3 * np.arange(8)
    made = pd.DataFrame(X, columns=[f"c{j}" for j in range(8)])
    made["town"] = rng.choice(["Rome", "Oslo", 'a "b"', "x,y"], m)
    made["flat"] = 7
    made["y"] = X[:, 1] - 0.01 * X[:, 4] + 2.0 * (made["town"] == "Rome") + rng.standard_normal(m)
    return made


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder in which files of some kilobytes have several parts."""
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 4000)
    monkeypatch.setattr(chunks, "LEAST_ROWS", 40)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def both(*arguments):
    return answer("fit", *arguments), answer("fit", *arguments, "--stream")


def coefficients(features):
    """(name, coefficient) of every column, those of the values of categories as well."""
    for row in features:
        for one in row.get("levels", [row]):
            yield one["name"], one["coef"]


def check_equal(ours, known):
    """The same columns, coefficients, scores and choice."""
    a, b = ours["result"], known["result"]
    assert [row["name"] for row in a["features"]] == [row["name"] for row in b["features"]]
    made, expected = (dict(coefficients(r["features"])) for r in (a, b))
    assert list(made) == list(expected)
    np.testing.assert_allclose(list(made.values()), list(expected.values()), rtol=1e-8)
    assert a["intercept"] == pytest.approx(b["intercept"], rel=1e-8)
    assert a["objective"] == pytest.approx(b["objective"], rel=1e-10)
    assert a["scores"]["train"] == pytest.approx(b["scores"]["train"], rel=1e-10)
    assert ours["data"]["n_samples"] == known["data"]["n_samples"]
    assert ours["data"]["n_features"] == known["data"]["n_features"]
    if b["choice"]:
        for name in ("mean_scores", "se"):
            np.testing.assert_allclose(a["choice"][name], b["choice"][name], rtol=1e-8)
    for row, other in zip(a["features"], b["features"], strict=True):
        if other["coef"] is not None:  # a category has none of its own
            assert row["per_sd"] == pytest.approx(other["per_sd"], rel=1e-8)
        assert row["drop_one"] == (other["drop_one"] and pytest.approx(other["drop_one"], rel=1e-7))


def write(made, name):
    """The same rows in one of several forms."""
    if name == "t.parquet":
        made.to_parquet(name, index=False)
    elif name == "comma.csv":
        made.to_csv(name, index=False, sep=";", decimal=",")
    elif name == "latin.csv":
        made.assign(town=made["town"] + "é").to_csv(name, index=False, encoding="cp1252")
    elif name == "packed.csv.gz":
        with gzip.open(name, "wt") as file:
            made.to_csv(file, index=False)
    else:
        made.to_csv(name, index=name == "numbered.csv")


NAMES = ("t.csv", "t.parquet", "comma.csv", "latin.csv", "packed.csv.gz", "numbered.csv")


@pytest.mark.parametrize("name", NAMES)
def test_a_file_in_parts_gives_what_it_gives_at_once(here, name):
    write(frame(), name)
    kind = "parquet" if name.endswith("parquet") else "csv"
    assert sum(1 for _ in chunks.Chunks((here / name,), kind)) > 5
    known, ours = both(name, "-t", "y", "-k", 3)
    check_equal(ours, known)
    said = [text for text in known["notices"] if "half-samples" not in text]
    assert [text for text in said if text not in ours["notices"]] == []


def test_cross_validation_has_the_same_folds(here):
    write(frame(1), "t.csv")
    known, ours = both("t.csv", "-t", "y", "--max-k", 5, "--seed", 3)
    check_equal(ours, known)
    assert ours["result"]["choice"]["chosen"] == known["result"]["choice"]["chosen"]


def test_the_path_is_the_same(here):
    write(frame(2), "t.parquet")
    known, ours = (
        answer("path", "t.parquet", "-t", "y", "-k", 4, *more)["result"]["points"]
        for more in ((), ("--stream",))
    )
    assert [p["columns"] for p in ours] == [p["columns"] for p in known]
    for name in ("bic", "cv_loss", "cv_explained"):
        np.testing.assert_allclose([p[name] for p in ours], [p[name] for p in known], rtol=1e-8)


def test_a_folder_of_files_is_one_table(here):
    made = frame(3)
    made.to_csv("t.csv", index=False)
    (here / "parts").mkdir()
    made[:150].to_csv("parts/a.csv", index=False)
    # the order of columns is that of the first file
    made[150:][[*made.columns[::-1]]].to_csv("parts/b.csv", index=False)
    (here / "parts" / "_SUCCESS").write_text("")
    known, ours = (
        answer("fit", "t.csv", "-t", "y", "-k", 3),
        answer("fit", "parts", "-t", "y", "-k", 3),
    )
    check_equal(ours, known)
    assert "parts is read in parts, since it is a folder." in ours["notices"]
    made.rename(columns={"c1": "other"}).to_csv("parts/c.csv", index=False)
    done = run("fit", "parts", "-t", "y", "-k", 3, code=3)
    assert "c.csv lacks c1, other, unlike a.csv" in done.stderr


def test_columns_in_the_names_of_folders_are_refused(here):
    for year in (2020, 2021):
        (here / "parts" / f"year={year}").mkdir(parents=True)
        frame(year, 40).to_parquet(f"parts/year={year}/p.parquet", index=False)
    done = run("fit", "parts", "-t", "y", "-k", 1, code=3)
    assert "as 'year=2020', and these are not read: write the column 'year'" in done.stderr


def test_a_format_leaves_out_files_of_other_names(here):
    (here / "parts").mkdir()
    made = frame(3, 60)
    made.to_csv("parts/a.csv", index=False)
    made.to_parquet("parts/b.parquet", index=False)
    (here / "parts" / "README").write_text("what the files hold")
    (here / "parts" / "made.log").write_text("done")
    for kind, name in (("csv", "a.csv"), ("parquet", "b.parquet")):
        assert chunks.find_files("parts", kind) == ((Path("parts") / name,), kind)
    assert answer("fit", "parts", "-t", "y", "-k", 1, "--format", "csv")["data"]["n_samples"] == 60
    assert "--format csv or" in run("fit", "parts", "-t", "y", "-k", 1, code=3).stderr
    (here / "parts" / "a.csv").unlink()
    done = run("fit", "parts", "-t", "y", "-k", 1, "--format", "csv", code=3)
    assert "no files whose names tell that they are csv" in done.stderr


@pytest.mark.parametrize("impute", ["mean", "drop-rows"])
@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_missing_values_are_filled_or_left_out_alike(here, name, impute):
    made = frame(4)
    made.loc[::7, "c1"] = np.nan
    made.loc[::11, "town"] = None
    made.loc[5, "y"] = np.nan
    write(made, name)
    known, ours = both(name, "-t", "y", "-k", 3, "--impute", impute)
    check_equal(ours, known)


def test_missing_values_are_refused_by_name(here):
    made = frame(5)
    made.loc[300, "c2"] = np.nan
    write(made, "t.csv")
    done = run("fit", "t.csv", "-t", "y", "-k", 2, "--stream", code=3)
    assert "Missing values in 1 column: c2 (1 row)" in done.stderr
    done = run("fit", "t.csv", "-t", "y", "-k", 2, "--stream", "--impute", "median", code=3)
    assert "--impute mean" in done.stderr


def test_predictions_of_parts_are_those_of_the_file(here):
    made = frame(6)
    write(made, "t.csv")
    run("fit", "t.csv", "-t", "y", "-k", 4, "--stream", "--out", "m.json")
    known = answer("predict", "m.json", "t.csv")["result"]
    ours = answer("predict", "m.json", "t.csv", "--stream", "--out", "p.csv")["result"]
    np.testing.assert_allclose(pd.read_csv("p.csv")["y"], known["predictions"], rtol=1e-12)
    assert ours["score"]["value"] == pytest.approx(known["score"]["value"], rel=1e-10)
    chosen = {feature.column for feature in load_model("m.json").features}
    assert len(chosen) == 4 and chosen < set(made.columns)
    run("predict", "m.json", "t.csv", "--stream", code=2)
    # a row that cannot be read leaves no half of a file
    text = (here / "t.csv").read_text().splitlines()
    (here / "bad.csv").write_text("\n".join([*text[:-1], text[-1].replace(",", ",x", 2)]))
    run("predict", "m.json", "bad.csv", "--stream", "--out", "q.csv", code=3)
    assert not (here / "q.csv").exists()


def test_a_model_of_parts_is_certified_in_parts(here):
    write(frame(7), "t.csv")
    run("fit", "t.csv", "-t", "y", "-k", 2, "--stream", "--out", "m.json")
    found = answer("certify", "t.csv", "--model", "m.json", "--stream")
    assert found["result"]["holds"] and not any("not the data" in n for n in found["notices"])
    found = answer("certify", "t.csv", "--model", "m.json")
    assert found["result"]["holds"] and not any("not the data" in n for n in found["notices"])


# -- what a part alone does not tell ---------------------------------------------------------------


def two_files(here, *columns, m=60):
    """A folder of two files: a number, and columns that hold one cell in the one, one in the other.

    The same as one file, t.csv.
    """
    rng = np.random.default_rng(0)
    head = ";".join(["y", "x", *(f"z{i}" for i in range(len(columns)))])
    parts = [
        [";".join([f"{i % 7}", f"{rng.integers(100)}", *cells]) for i in range(m)]
        for cells in zip(*columns, strict=True)
    ]
    (here / "parts").mkdir()
    for name, part in zip("ab", parts, strict=True):
        (here / "parts" / f"{name}.csv").write_text("\n".join([head, *part]))
    (here / "t.csv").write_text("\n".join([head, *parts[0], *parts[1]]))


POINT, COMMA = ("0.25", "0.25"), ("7", "0,5")
REFUSED = {
    "numbers, then texts": ([("12", "abc")], "holds a number as .* and a text"),
    "a decimal point, then a comma": ([("12.5", "12,5")], "decimal comma"),
    "only 1.660": ([("1.660", "1.660")], "1660 if points are between thousands"),
    "only 1,660": ([("1,660", "1,660")], "--decimal"),
    "1,660, then 1660": ([("1,660", "1660"), POINT], "in row 2, .1,660., but not in row 2"),
    "dates both ways": ([("31/01/2012", "01/31/2012")], "day-first from .* month-first"),
    "1,660, then 1.660": ([("1,660", "1.660"), POINT], "sets thousands apart"),
    "1 660, then 1.660": ([("1 660", "1.660"), POINT], "sets thousands apart"),
    "with and without %": ([("5%", "6")], "different units"),
    "different currencies": ([("$5", "€6")], "different units"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_parts_do_not_tell_is_refused(here, case):
    columns, pattern = REFUSED[case]
    two_files(here, *columns)
    options = ("-t", "y", "-k", 1, "--dates", "days")
    done = run("fit", "parts", *options, code=3)
    assert re.search(pattern, done.stderr), done.stderr
    run("fit", "parts", *options, "--drop", "z0")


def two_parts(here, one, other, m=30):
    """A folder of two files with columns y and x, made by functions of a number."""
    values = np.random.default_rng(0).uniform(20.0, 80.0, (2, m))
    (here / "parts").mkdir(exist_ok=True)
    for name, rows, line in zip("ab", values, (one, other), strict=True):
        (here / "parts" / f"{name}.csv").write_text("\n".join(["y,x", *map(line, rows)]))


@pytest.mark.parametrize(
    ("one", "pattern"),
    [
        (lambda v: f"{v:.2f}%,{v:.4f}", "numbers with different units"),
        (lambda v: f'"{1e3 * v:,.0f}",{v:.4f}', "sets thousands apart in row 2"),
    ],
)
def test_parts_of_the_target_that_contradict_each_other_are_refused(here, one, pattern):
    two_parts(here, one, lambda v: f"{v:.3f},{v:.4f}")
    done = run("fit", "parts", "-t", "y", "-k", 1, code=3)
    assert "Column 'y'" in done.stderr and re.search(pattern, done.stderr), done.stderr


def test_parts_of_new_rows_that_contradict_each_other_are_refused(here):
    two_parts(here, *[lambda v: f"{2 * v:.3f},{v:.4f}"] * 2)
    run("fit", "parts", "-t", "y", "-k", 1, "--out", "m.json")
    two_parts(here, lambda v: f"{2 * v:.3f},{v:.2f}%", lambda v: f"{2 * v:.3f},{v / 100:.4f}")
    done = run("predict", "m.json", "parts", "--out", "p.csv", code=3)
    assert "Column 'x' holds" in done.stderr and "numbers with different units" in done.stderr
    assert not (here / "p.csv").exists()


@pytest.mark.parametrize(
    ("other", "pattern"),
    [
        (lambda v: f"{v / 50:.4f},{v:.4f}", "numbers with different units"),
        (lambda v: f"much,{v:.4f}", "holds labels, as 'much'"),
    ],
)
def test_parts_of_the_target_that_contradict_each_other_have_no_score(here, other, pattern):
    two_parts(here, *[lambda v: f"{2 * v:.3f},{v:.4f}"] * 2)
    run("fit", "parts", "-t", "y", "-k", 1, "--out", "m.json")
    two_parts(here, lambda v: f"{2 * v:.2f}%,{v:.4f}", other)
    ours = answer("predict", "m.json", "parts", "--out", "p.csv")
    assert ours["result"]["score"] is None and len(pd.read_csv("p.csv")) == 60
    said = "The target is in the data, but there is no score: "
    assert any(n.startswith(said) and pattern in n for n in ours["notices"]), ours["notices"]


@pytest.mark.parametrize("n_files", [1, 2])
def test_headers_alone_are_refused(here, n_files):
    two_parts(here, *[lambda v: f"{2 * v:.3f},{v:.4f}"] * 2)
    run("fit", "parts", "-t", "y", "-k", 1, "--out", "m.json")
    (here / "none").mkdir()
    for i in range(n_files):
        (here / "none" / f"{i}.csv").write_text("y,x\n")
    where = "none/0.csv" if n_files == 1 else "none"
    for command in (("fit", "none", "-k", 1), ("predict", "m.json", "none", "--out", "p.csv")):
        done = run(*command, code=3)
        assert f"{where} must hold at least one row and one column" in done.stderr
    assert not (here / "p.csv").exists()


@pytest.mark.parametrize("dates", ["drop", "days"])
def test_eight_digits_that_are_dates_in_one_part_alone_are_refused(here, dates):
    def line(first):
        return lambda v: f"{v:.4f},{'' if v < 30 else first + int(v) % 28}"

    # the mean of both parts would be one of days and of numbers
    two_parts(here, line(20200101), line(90000000))
    options = ("-t", "y", "-k", 1, "--impute", "mean", "--dates", dates)
    done = run("fit", "parts", *options, code=3)
    assert "holds a date as '20200" in done.stderr and "--as-number x takes all" in done.stderr
    run("fit", "parts", *options, "--as-number", "x", "--out", "m.json")
    cells = pd.concat([pd.read_csv(f"parts/{name}.csv") for name in "ab"])["x"]
    assert load_model("m.json").features[0].fill == pytest.approx(cells.mean(), rel=1e-12)


def test_a_decimal_mark_that_shows_late_is_for_all_rows(here):
    # 1.660 is 1660 in a file with decimal commas, wherever these are
    two_files(here, ("1.660", "2.660"), COMMA)
    options = ("-t", "y", "-k", 2, "--keep", "z0", "--keep", "z1")
    known, ours = answer("fit", "t.csv", *options), answer("fit", "parts", *options)
    check_equal(ours, known)
    assert ours["data"]["decimal"] == "comma"


def test_what_moments_cannot_do_is_refused_with_the_reason(here):
    made = frame(8)
    made["label"] = np.where(made["y"] > made["y"].median(), "up", "down")
    write(made, "t.csv")
    cases = {
        ("-t", "y", "--loss", "huber"): "Loss huber needs the rows",
        ("-t", "y", "--test", "0.2"): "--test holds rows out",
        ("-t", "y", "--half-samples", "4"): "--half-samples",
        (
            "-t",
            "label",
        ): "holds labels, as 'down'|holds labels, as 'up'",
        (
            "-t",
            "flat",
        ): "There is nothing to explain: 'flat' is 7 in all 400 rows",
    }
    for options, pattern in cases.items():
        done = run("fit", "t.csv", *options, "-k", 2, "--stream", code=3)
        assert re.search(pattern, done.stderr), done.stderr
    run("fit", "-", "-t", "y", "--stream", code=3, text="y,x\n1,2\n")


def test_large_files_go_by_themselves(here, monkeypatch):
    write(frame(9, m=60_000), "t.csv")
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 1 << 20)
    monkeypatch.setattr(stream, "free_memory", lambda: 1e7)
    monkeypatch.setattr(stream, "SMALL", 1 << 20)
    done = run("fit", "t.csv", "-t", "y", "-k", 2)
    assert "is read in parts, since its numbers take about" in done.stderr
    done = run("report", "t.csv", "-t", "y", code=3)
    assert "`report` needs the rows in memory, but its numbers" in done.stderr


def test_a_quote_that_is_never_closed_is_placed(here):
    (here / "t.csv").write_text('y,x\n1,"a\n2,b\n3,c\n')
    done = run("fit", "t.csv", "-t", "y", "-k", 1, code=3)
    said = "row 2 holds a quote that is not closed, or inside of a value. --quote none reads"
    assert said in done.stderr
    done = run("fit", "t.csv", "-t", "y", "-k", 1, "--stream", code=3)
    assert said in done.stderr
