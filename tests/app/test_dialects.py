"""Options that say how a CSV file is written: in every command, and in files of models."""

from __future__ import annotations

import html

import numpy as np
import pytest

from blockl0.app.model_checks import check_reading
from blockl0.app.tables import chunks, read_table
from blockl0.app.tables.csv_text import make_dialect
from blockl0.app.tables.formats import read_raw
from cli_runner import answer, run

pd = pytest.importorskip("pandas", reason="tables need pandas")

OPTIONS = ("--skip-rows", 2, "--skip-bad-rows", "--delimiter", "~", "--quote", "single")
OPTIONS += ("--encoding", "latin-1")


@pytest.fixture
def here(tmp_path, rng, monkeypatch):
    """A folder with a plain table, and the same one as few programs would write it."""
    frame = pd.DataFrame(rng.standard_normal((60, 4)).round(6), columns=["größe", "b", "c", "y"])
    frame["town"] = rng.choice(["Rome", "~Oslo", "L'Aquila"], 60)
    frame["y"] = (frame["größe"] - frame["b"] + (frame["town"] == "Rome")).round(6)
    frame.to_csv(tmp_path / "plain.csv", index=False)
    lines = frame.to_csv(sep="~", quotechar="'", index=False).splitlines()
    bad = [*lines[:30], "1~2~3", lines[0], *lines[30:], "'1~2~3~4~5", "total ~ 7"]
    text = "\n".join(["Measured by us~", "'", *bad]) + "\n"
    (tmp_path / "odd.csv").write_text(text, encoding="latin-1")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_commands_read_files_of_another_dialect(here):
    quick = ("--prove", 0, "--half-samples", 0)
    plain = answer("fit", "plain.csv", "-t", "y", "-k", 3, *quick)
    odd = answer("fit", "odd.csv", "-t", "y", "-k", 3, *quick, *OPTIONS, "-o", "m.json")
    assert odd["result"]["objective"] == plain["result"]["objective"]
    assert odd["data"]["fingerprint"] == plain["data"]["fingerprint"]
    said = "4 rows left out, as asked: row 33 holds 3 values; neither do rows 34, 66, 67 fit."
    assert said in odd["data"]["notes"]
    document = answer("certify", "odd.csv", "--model", "m.json")
    assert "These are not the data" not in " ".join(document["notices"])
    points = [answer("path", f, "-t", "y", "-k", 2, *o)["result"]["points"]
              for f, o in (("plain.csv", ()), ("odd.csv", OPTIONS))]  # fmt: skip
    assert points[0] == points[1]


@pytest.mark.slow
def test_a_page_repeats_how_its_file_was_read(here, monkeypatch):
    report = ("report", "odd.csv", "-t", "y", "-k", 2, *OPTIONS, "-o", "p.html", "-q")
    monkeypatch.setattr("sys.argv", ["blockl0", *map(str, report)])
    run(*report)
    page = (here / "p.html").read_text(encoding="utf-8")
    for said in ("--skip-rows 2 --skip-bad-rows --delimiter", "skip_rows=2", "skip_bad_rows=True"):
        assert said in html.unescape(page)


def test_predict_reads_as_the_fit_did_unless_told_otherwise(here):
    options = ("-t", "y", "-k", 3, "--prove", 0, "--half-samples", 0, "-o", "m.json", "--force")
    run("fit", "odd.csv", *options, *OPTIONS)
    known = answer("predict", "m.json", "odd.csv")
    assert known["data"]["n_samples"] == 60
    other = ("--skip-rows", 0, "--delimiter", "auto", "--quote", "double", "--encoding", "utf-8")
    plain = answer("predict", "m.json", "plain.csv", *other)
    assert plain["result"]["predictions"] == known["result"]["predictions"]
    run("predict", "m.json", "odd.csv", "--stream", "-o", "p.csv")
    made = pd.read_csv("p.csv")["y"]
    np.testing.assert_allclose(made, known["result"]["predictions"], rtol=1e-12)
    done = run("predict", "m.json", "odd.csv", "--refuse-bad-rows", code=3)
    assert "row 33 holds 3 values, but the first row 5" in done.stderr
    with pytest.raises(ValueError, match=r"metadata\.reading: `quote` must be one of"):
        check_reading({"reading": {"quote": "many"}})


@pytest.mark.parametrize("size", [200, 700, 10_000])
def test_bad_rows_of_parts_are_those_of_the_file(here, monkeypatch, size):
    monkeypatch.setattr(chunks, "CHUNK_BYTES", size)
    options = ("fit", "odd.csv", "-t", "y", "-k", 3, "--prove", 0, *OPTIONS)
    whole, parts = answer(*options), answer(*options, "--stream")
    assert parts["data"]["n_samples"] == whole["data"]["n_samples"] == 60
    assert parts["result"]["objective"] == pytest.approx(whole["result"]["objective"], abs=1e-9)
    left = [int(n.split()[0]) for n in parts["data"]["notes"] if "left out, as asked" in n]
    assert sum(left) == 4


def test_options_that_are_none_are_refused(here):
    for given, said in (
        ({"delimiter": ", "}, "`delimiter` must be comma, tab, .* got ', '"),
        ({"delimiter": "a"}, "got 'a'"),
        ({"quote": "many"}, "`quote` must be one of"),
        ({"encoding": "klingon"}, "There is no encoding 'klingon'"),
        ({"skip_rows": -1}, "`skip_rows`"),
    ):
        with pytest.raises(ValueError, match=said):
            make_dialect(given)
    (here / "t.svm").write_text("1 1:2\n2 1:3\n", encoding="utf-8")
    with pytest.raises(ValueError, match="no CSV file: --quote is for these"):
        read_raw(here / "t.svm", quote="none")


def test_sheets_have_lines_above_their_names(here):
    openpyxl = pytest.importorskip("openpyxl", reason="Excel files need blockl0[excel]")
    book = openpyxl.Workbook()
    for row in (["Measured by us"], [], ["a", "y"], [1.5, 2], [2.5, 4], ["x", 5], [3.5, 6]):
        book.active.append(row)
    book.save(here / "t.xlsx")
    table = read_table(here / "t.xlsx", skip_rows=2, na=["x"], impute="drop-rows")
    assert table.X.tolist() == [[1.5], [2.5], [3.5]] and table.y.tolist() == [2.0, 4.0, 6.0]
    assert read_raw(here / "t.xlsx", skip_rows=2).data.index.tolist() == [4, 5, 6, 7]


def test_blanks_and_quotes_in_one_file():
    from io import BytesIO

    text = b"a  b   'c d'\n 1 2 'x y'\n3   4\tz \n"
    raw = read_raw_text(BytesIO(text), delimiter="blank", quote="single")
    assert list(raw.columns) == ["a", "b", "c d"] and raw["c d"].tolist() == ["x y", "z"]


def read_raw_text(source, **given):
    """Read the cells of a text."""
    from blockl0.app.tables.csv_files import read_csv

    return read_csv(source, dialect=make_dialect(given)).frame
