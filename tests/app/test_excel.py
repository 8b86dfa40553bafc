"""Excel workbooks: a sheet is the same table as a CSV file, or refused by name."""

from __future__ import annotations

import datetime
import re
import sys
import zipfile

import numpy as np
import pytest

from blockl0.app.tables import read_table
from blockl0.app.tables.formats import format_of, read_raw

pd = pytest.importorskip("pandas", reason="tables need pandas")


def test_what_is_no_workbook_is_refused_by_name(tmp_path, monkeypatch):
    for name in ("old.xls", "open.ods", "binary.xlsb"):
        with pytest.raises(ValueError, match=rf"{name[-3:]}.? files are not read; save it as CSV"):
            format_of(tmp_path / name)
    (tmp_path / "t.csv").write_bytes(b"PK\x03\x04 and so on")
    with pytest.raises(ValueError, match=r"no text, but an Excel workbook .*--format excel"):
        read_raw(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 and so on")
    with pytest.raises(ValueError, match=r"old Excel workbook \(\.xls\); save it as CSV or \.xlsx"):
        read_raw(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("a,y\n1,2\n", encoding="utf-8")
    with pytest.raises(ValueError, match="has no sheets: --sheet is for Excel files"):
        read_raw(tmp_path / "t.csv", sheet="data")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    (tmp_path / "t.xlsx").write_bytes(b"PK")
    with pytest.raises(ModuleNotFoundError, match="pip install openpyxl; or save"):
        read_raw(tmp_path / "t.xlsx")


@pytest.fixture
def book(tmp_path):
    """A workbook with three sheets, of which the first has a table below and beside nothing."""
    openpyxl = pytest.importorskip("openpyxl", reason="Excel files need blockl0[excel]")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "data"
    head = ["size", "share", "when", "city", "gap", "y"]
    rows = [
        [i * 1.5, f"{i + 1}%", datetime.datetime(2012, 1, 1 + i), ["Rome", "Oslo"][i % 2],
         None if i == 3 else "n/a" if i == 4 else i * i, 2.0 * i]
        for i in range(8)
    ]  # fmt: skip
    for i, row in enumerate([head, *rows]):
        for j, cell in enumerate(row):
            sheet.cell(row=i + 3, column=j + 2, value=cell)
    more = book.create_sheet("more")
    for row in (["a", "y"], [1, 2], ["many", 3], [3, 4], [4, 5], [5, 7], [6, 8]):
        more.append(row)
    book.create_sheet("empty")
    book.save(tmp_path / "t.xlsx")
    return tmp_path / "t.xlsx"


def test_a_sheet_is_a_table(book):
    table = read_table(book, impute="median", dates="days")
    assert table.feature_names == ("size", "share", "when", "city=Rome", "gap")
    np.testing.assert_array_equal(table.X[:, 0], np.arange(8) * 1.5)
    np.testing.assert_array_equal(table.X[:, 1], np.arange(8) + 1.0)
    np.testing.assert_array_equal(table.X[:, 2], 15340.0 + np.arange(8))
    np.testing.assert_array_equal(table.X[:, 3], np.arange(8) % 2 == 0)
    known = [0.0, 1.0, 4.0, 25.0, 36.0, 49.0]
    assert table.X[[0, 1, 2, 5, 6, 7], 4].tolist() == known and table.X[3, 4] == np.median(known)
    assert "The sheet 'data' is read; there are also more, empty (--sheet NAME)." in table.notes
    assert "Read as numbers: share (1% is 1)." in table.notes


def test_sheets_are_chosen(book):
    for sheet in ("more", 2, "2"):
        with pytest.raises(ValueError, match=r"'many' in 1 of 6 rows \(the first is row 3\)"):
            read_table(book, sheet=sheet)
    assert read_table(book, sheet="more", na=["many"], impute="mean").X.shape == (6, 1)
    with pytest.raises(ValueError, match="The sheet 'empty' is empty"):
        read_table(book, sheet="empty")
    with pytest.raises(ValueError, match=r"no sheet 'More'. Did you mean 'more'\? There are data"):
        read_table(book, sheet="More")


def test_damaged_workbooks(tmp_path, book):
    whole = book.read_bytes()
    for content in (b"nothing", b"", whole[: len(whole) // 2]):
        (tmp_path / "bad.xlsx").write_bytes(content)
        with pytest.raises(ValueError, match="This is not an Excel workbook"):
            read_raw(tmp_path / "bad.xlsx")


def test_commands_take_sheets(book, monkeypatch):
    pytest.importorskip("click")
    from cli_runner import QUICK, answer, run

    monkeypatch.chdir(book.parent)
    options = ("t.xlsx", "-t", "y", "-k", 1, "--sheet", "data", "--drop", "gap", *QUICK)
    assert answer("fit", *options, "-o", "m.json")["result"]["features"][0]["name"]
    assert run("predict", "m.json", "t.xlsx", "--sheet", "data").stdout.splitlines()[0] == "y"
    assert "no sheet 'x'" in run("predict", "m.json", "t.xlsx", "--sheet", "x", code=3).stderr


def test_a_sheet_is_read_to_its_end_whatever_size_it_claims(book, tmp_path):
    """Some programs write a size that is too small."""
    with zipfile.ZipFile(book) as old, zipfile.ZipFile(tmp_path / "small.xlsx", "w") as new:
        for name in old.namelist():
            content = old.read(name)
            content = re.sub(rb'<dimension ref="[^"]*"', b'<dimension ref="A1:D5"', content)
            new.writestr(name, content)
    whole = read_table(book, target="y", impute="median")
    table = read_table(tmp_path / "small.xlsx", target="y", impute="median")
    assert table.feature_names == whole.feature_names
    np.testing.assert_array_equal(table.X, whole.X)


def test_formulas_without_values_and_other_sheets_are_told(tmp_path):
    openpyxl = pytest.importorskip("openpyxl", reason="Excel files need blockl0[excel]")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["a", "twice", "text", "y"])
    for i in range(2, 12):
        sheet.append([i + 0.25, f"=2*A{i}", f"1.{i + 100}", i * i])
    book.save(tmp_path / "f.xlsx")
    table = read_table(tmp_path / "f.xlsx")
    said = "Formulas whose values are not in the file: twice; open and save it in a spreadsheet"
    assert said in " ".join(table.notes) and table.feature_names == ("a", "text")
    # cells that are numbers do not tell what the point of a text is
    assert "'1.102' in row 2 of column 'text' is read as 1.102" in " ".join(table.notes)
    front = book.create_sheet("front", 0)
    front["A1"] = "read me"
    book.save(tmp_path / "f.xlsx")
    with pytest.raises(ValueError, match=r"at least one row .* there are also Sheet \(--sheet"):
        read_table(tmp_path / "f.xlsx")
