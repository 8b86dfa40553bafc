"""CSV as people write it gives the same numbers as a tidy file, or a reason why not."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest

from blockl0.app.tables import read_table
from blockl0.app.tables.csv_files import unreadable
from blockl0.app.tables.csv_layout import unique_names

pd = pytest.importorskip("pandas", reason="tables need pandas")


@pytest.fixture
def frame(rng):
    X = rng.standard_normal((20, 3)) * 1000.0
    return pd.DataFrame(X, columns=["a", "b", "y"])


def notes_of(table):
    return " ".join(table.notes)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
@pytest.mark.parametrize("separator", [",", "\t", ";"])
def test_encodings(tmp_path, frame, encoding, separator):
    named = frame.rename(columns={"a": "größe"})
    text = named.to_csv(sep=separator, index=False)
    mark = b"\xff\xfe" if encoding == "utf-16-le" else b""
    (tmp_path / "t.csv").write_bytes(mark + text.encode(encoding))
    table = read_table(tmp_path / "t.csv")
    assert table.feature_names == ("größe", "b")
    # numbers are written in full and read back to the last bit
    np.testing.assert_array_equal(table.X, frame[["a", "b"]])
    assert ("Windows-1252" in notes_of(table)) == (encoding == "cp1252")


@pytest.mark.parametrize("separator", ["\t", ";", "|"])
def test_decimal_commas(tmp_path, frame, separator):
    frame["n"] = np.arange(20)
    frame.to_csv(tmp_path / "t.csv", sep=separator, decimal=",", index=False)
    table = read_table(tmp_path / "t.csv", target="y")
    np.testing.assert_array_equal(table.X, frame[["a", "b", "n"]])
    np.testing.assert_array_equal(table.y, frame["y"])
    assert "decimal comma: a, b, y." in notes_of(table)


def test_decimal_commas_with_dots_between_thousands(tmp_path):
    (tmp_path / "t.csv").write_text("a;y\n1.234,5;1\n-12,25;2\n;3\n7;4\n", encoding="utf-8")
    table = read_table(tmp_path / "t.csv", impute="mean")
    assert table.X[[0, 1, 3], 0].tolist() == [1234.5, -12.25, 7.0]


DISGUISED = {
    "thousands": ("a,y", '"{:,.1f}",{}', 1.0),
    "percent": ("a,y", "{:.1f}%,{}", 1.0),
    "dollars": ("a,y", "${:.1f},{}", 1.0),
    "brackets": ("a,y", "({:.1f}),{}", -1.0),
    "blanks": ("a;y", "{:_.0f} €;{}", 1.0),
}


@pytest.mark.parametrize("case", DISGUISED)
def test_numbers_in_disguise_are_numbers(tmp_path, case):
    """Dropped as text, or taken for labels, they would be missed without a word."""
    head, line, sign = DISGUISED[case]
    values = [1000.0 + 317.0 * i for i in range(12)]
    lines = [line.format(v, i * i % 7).replace("_", " ") for i, v in enumerate(values)]
    (tmp_path / "t.csv").write_text("\n".join([head, *lines]), encoding="utf-8")
    table = read_table(tmp_path / "t.csv", target="y")
    np.testing.assert_array_equal(table.X[:, 0], sign * np.array(values))
    said = "commas are between thousands" if case == "thousands" else "Read as numbers: a ("
    assert said in notes_of(table)
    flipped = "\n".join(["y,a" if head[1] == "," else "y;a", *lines])
    (tmp_path / "t.csv").write_text(flipped, encoding="utf-8")
    np.testing.assert_array_equal(read_table(tmp_path / "t.csv").y, sign * np.array(values))


UNITS = {
    "percent and none": ("12%", "0.3", "'12%' in row 2 and '0.3' in row 3"),
    "two currencies": ("$5", "5 €", "'$5' in row 2 and '5 €' in row 3"),
}


@pytest.mark.parametrize("case", UNITS)
def test_units_are_not_mixed(tmp_path, case):
    first, second, shown = UNITS[case]
    rows = [first, second, first, second]
    text = "a;y\n" + "".join(f"{value};{i}\n" for i, value in enumerate(rows))
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=f"Column 'a' holds {re.escape(shown)}: numbers with"):
        read_table(tmp_path / "t.csv")


def test_names_with_separators_and_line_breaks(tmp_path, frame):
    names = ["a;b;c;d", "two\nlines, one name", "y"]
    frame.set_axis(names, axis=1).to_csv(tmp_path / "t.csv", index=False)
    assert read_table(tmp_path / "t.csv").feature_names == tuple(names[:2])
    frame.set_axis(["a,b,c", "d", "y"], axis=1).to_csv(tmp_path / "s.csv", sep=";", index=False)
    assert read_table(tmp_path / "s.csv").feature_names == ("a,b,c", "d")


def test_names_that_occur_twice_are_told(tmp_path, frame):
    frame.set_axis(["a", "a", "y"], axis=1).to_csv(tmp_path / "t.csv", index=False)
    table = read_table(tmp_path / "t.csv")
    assert table.feature_names == ("a", "a.1") and "more than once" in notes_of(table)


def test_an_index_that_was_saved_along_is_dropped(tmp_path, frame):
    for saved in (frame, frame.sample(frac=1.0, random_state=0), frame.iloc[::3]):
        saved.to_csv(tmp_path / "t.csv")
        table = read_table(tmp_path / "t.csv")
        assert table.feature_names == ("a", "b") and "numbers the rows" in notes_of(table)
    frame.assign(b=0.5 + frame.index)[["b", "a", "y"]].rename(columns={"b": ""}).to_csv(
        tmp_path / "t.csv", index=False
    )
    assert len(read_table(tmp_path / "t.csv").feature_names) == 2


HEADERS = {
    "numbers": ("1.5,2,3\n2.5,3,4\n3,5,6\n", False),
    "a gap": ("1.5,,3\n2.5,3,4\n3,4,5\n", False),
    "labels": ("5.1,3.5,setosa\n4.9,3.0,virginica\n4,2,setosa\n", False),
    "whole labels": ("age,2019,2020\n3,4,5\n4,4,1\n", True),
    "years": ("name,2019,2020\nAnn,3.5,4\nBob,2,1\n", True),
    "wavelengths": ("400.5,401.5,fat\n0.1,0.2,3.5\n0.2,0.3,1\n", True),
    "counted": (",0,1,2\n0,3.5,1,2\n1,4,5,6\n", True),
    "words": ("a,b,c\n1,2,3\n2,3,4\n", True),
    "all text": ("a,b,c\nx,y,z\nu,v,w\n", True),
}


@pytest.mark.parametrize("case", HEADERS)
def test_headers_are_recognized(tmp_path, case):
    text, has_header = HEADERS[case]
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    for header, n_rows in (("auto", 2 if has_header else 3), ("yes", 2), ("no", 3)):
        options = {"target": -1, "header": header, "impute": "median", "text": "one-hot"}
        assert len(read_table(tmp_path / "t.csv", **options).y) == n_rows
    with pytest.raises(ValueError, match="`header` must be one of"):
        read_table(tmp_path / "t.csv", header="maybe")


def test_the_target_must_be_finite(frame):
    frame.loc[4, "y"] = np.inf
    with pytest.raises(ValueError, match="'y' is infinite in the row with index 4"):
        read_table(frame)


# -- hostile files ---------------------------------------------------------------------------------


def read(tmp_path, content, **options):
    (tmp_path / "t.csv").write_bytes(content)
    return read_table(tmp_path / "t.csv", **options)


BROKEN = {
    "empty": (b"", r"not a table: the file is empty"),
    "blank": (b"\n \n\n", r"not a table|at least one row"),
    "longer row": (b"a,y\n1,2\n1,2,3\n", r"row 3 holds 3 values, but the first row 2, sep.*','"),
    "longer rows": (b"a,y\n1,2,3\n4,5,6\n", r"row 2 holds 3 values, but the first row 2"),
    "after a break": (b'a,y\n"1\n",2\n1,2,3\n', r"row 3 \(line 4\) holds 3 values"),
    "after a gap": (b"a,y\n\n1,2\n1,2,3\n", r"row 4 holds 3 values"),
    "open quote": (
        b'a,y\n1,2\n"3,4\n5,6\n',
        r"row 3 holds a quote that is not closed",
    ),
    "no text": (b"a,y\n1,\x81\x8d\n", r"UTF-8"),
    "a workbook": (b"PK\x03\x04aaaa", "This is no text, but an Excel workbook"),
    "for Excel": (b"sep=;\na;y\n1;2\n", "The first line, 'sep=;', is for Excel alone"),
    "blanks": (b"a y\n1 2\n3 4\n", "The columns are separated by blanks"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_files_are_refused_in_words_of_the_file(tmp_path, case):
    content, pattern = BROKEN[case]
    with pytest.raises(ValueError, match=pattern) as caught:
        read(tmp_path, content)
    assert "C error" not in str(caught.value) and "tokeniz" not in str(caught.value)


def test_rows_are_those_of_the_file(tmp_path):
    """As a spreadsheet shows them: header and empty lines count, line breaks in quotes do not."""
    rows = [f"{i},{i * i},t{i % 2}" for i in range(12)]
    bad = "a,y,t\n" + "\n".join([*rows, "x,1,t0"]) + "\n"
    for content, row in (
        (bad, 14),
        (bad.replace("\n3,", "\n\n\n3,"), 16),
        ("\n\n" + bad, 16),
        (bad.replace("\n3,9,t1", '\n3,9,"t1\nand so on"'), 14),
        (bad.replace("\n3,9,t1", '\n\n3,9,"t1\n\nand so on"'), 15),
        (bad.replace("\n", "\r\n"), 14),
    ):
        with pytest.raises(ValueError, match=rf"'x' in 1 of 13 rows \(the first is row {row}\)"):
            read(tmp_path, content.encode())
    headless = "\n".join([*(f"{i}.5,{i}" for i in range(12)), "x,1"])
    with pytest.raises(ValueError, match=r"\(the first is row 13\)"):
        read(tmp_path, headless.encode(), target="x1", header="no")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_quotes_line_breaks_and_names(tmp_path, encoding):
    text = (
        'a,"b, and\nc",,a,"say ""yes""",y\r\n'
        '1,2,,4,"x, ""y""\nz",1\r\n2,5,,4.5,"x, ""y""\nz",3\r\n\r\n4,1,,7,w,2\r\n5,2,,1,w,1\r\n'
    )
    table = read(tmp_path, text.encode(encoding))
    assert table.feature_names == ("a", "b, and\nc", "a.1", 'say "yes"=x, "y"\nz')
    np.testing.assert_array_equal(
        table.X[:, [0, 1, 2]].T, [[1, 2, 4, 5], [2, 5, 1, 2], [4, 4.5, 7, 1]]
    )
    assert table.X[:, 3].tolist() == [1, 1, 0, 0] and table.y.tolist() == [1, 3, 2, 1]
    assert "(Unnamed: 2) without any value dropped" in notes_of(table)


def test_short_rows_lack_values_where_that_is_asked_for(tmp_path):
    content = b"y,a,b\n1,2,3\n2,3\n3,5,1\n4,1,1\n"
    with pytest.raises(ValueError, match=r"row 3 holds 2 values, but the first row 3"):
        read(tmp_path, content)
    with pytest.raises(ValueError, match=r"Missing values in 1 column: b \(1 row\)"):
        read(tmp_path, content, fill_short_rows=True)
    assert read(tmp_path, content, skip_bad_rows=True).y.tolist() == [1, 3, 4]


def test_long_files_are_read_in_time(tmp_path, rng):
    """Every different shape of a number is looked at once; cell by cell this takes seconds."""
    m = 20_000
    frame = pd.DataFrame(rng.standard_normal((m, 8)).round(4) * 1000, columns=list("abcdefgh"))
    frame.to_csv(tmp_path / "t.csv", sep=";", decimal=",", index=False)
    started = time.process_time()
    table = read_table(tmp_path / "t.csv", target="h")
    assert time.process_time() - started < 3.0
    np.testing.assert_array_equal(table.X, frame[list("abcdefg")])


BITS = (
    b",", b";", b"\t", b"\n", b"\r\n", b'"', b"1.660", b"1,660", b"12%", b"$5", b"(3)", b"20120101",
    b"01/02/2012", b"NaN", b"inf", b"1e999", b"-", b"\xff\xfe", b"\x00", b"", b"True", b"9" * 40,
)  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_damaged_tables_are_read_or_refused(tmp_path, seed):
    """Whatever is put into a file: finite numbers, or a refusal of ours."""
    rng = np.random.default_rng(seed)
    rows = [f"{i},5;0{i}/02/2012;{i * i % 5};t{i % 2};{i}%" for i in range(1, 9)]
    whole = "\n".join(["a;when;n;t;y", *rows]).encode()
    n_read = 0
    for i in range(40):
        content = bytearray(whole)
        for _ in range(1 + i % 4):
            start = int(rng.integers(len(content) + 1))
            content[start : start + int(rng.integers(6))] = BITS[rng.integers(len(BITS))]
        impute = (None, "median", "drop-rows")[i % 3]
        try:
            table = read(tmp_path, bytes(content), target=-1, impute=impute, dates="days",
                         date_order="day-first")  # fmt: skip
        except ValueError as error:
            assert str(error).endswith((".", "?")) and "C error" not in str(error)
        else:
            n_read += 1
            assert np.isfinite(table.X).all() and len(table.y) == len(table.X)
    assert n_read > 0


def test_points_that_nothing_explains_are_told_or_refused(tmp_path):
    lone = read(tmp_path, b"a;y\n1.188;1\n3.992;2\n", target="y")
    assert lone.X[:, 0].tolist() == [1.188, 3.992]
    assert "nothing tells" in notes_of(lone) and "--decimal comma reads 1188" in notes_of(lone)
    for decimal, value in (("point", 1.188), ("comma", 1188.0)):
        told = read(tmp_path, b"a;y\n1.188;1\n3.992;2\n", target="y", decimal=decimal)
        assert told.X[0, 0] == value and "nothing tells" not in notes_of(told)
    beside = b"a;b;y\n995;0;1\n3.992;0;2\n"
    with pytest.raises(ValueError, match=r"'3\.992' in row 3: 3992 if points .*'995' beside it"):
        read(tmp_path, beside, target="y")
    # a number that can only be decimal, in whichever column, decides
    for shown in (b"0.5", b"12.25", b"1.2345"):
        table = read(tmp_path, beside.replace(b";0;1", b";" + shown + b";1"), target="y")
        assert table.X[1, 0] == 3.992 and "nothing tells" not in notes_of(table)


def test_zeros_before_numbers_make_codes(tmp_path):
    content = b"code,x,y\n007,1.5,1\n011,2.5,2\n107,3.5,4\n" + b"107,1,2\n011,2,2\n007,7,1\n"
    table = read(tmp_path, content, target="y")
    assert "code=011" in table.feature_names and table.units[0].reference == "007"
    assert "codes, taken for categories: code (as 007); --as-number code" in notes_of(table)
    numbers = read(tmp_path, content, target="y", as_number=["code"])
    assert numbers.X[:, 0].tolist() == [7.0, 11.0, 107.0, 107.0, 11.0, 7.0]
    assert "codes" not in notes_of(numbers)
    asked = read(tmp_path, content, target="y", as_category=["code"])
    assert asked.feature_names == table.feature_names and "codes" not in notes_of(asked)


def test_years_of_two_digits_are_left_out_by_name(tmp_path):
    content = b"when,x,y\n31.01.12,1.5,1\n01.02.12,2.5,2\n31.01.12,3.5,4\n01.02.12,1.0,4\n"
    table = read(tmp_path, content, target="y", dates="days")
    assert table.feature_names == ("x",)
    assert "'when' left out: dates as '31.01.12' do not tell the century" in notes_of(table)


def test_blanks_around_names_and_gaps_do_not_count(tmp_path):
    content = b'a , "b ",a,y\n1.5," NA ",3,1\n2.5," ",4,2\n3.5,7,6,4\n'
    table = read(tmp_path, content, target="y", impute="mean")
    assert table.feature_names == ("a", "a.1")
    content = content.replace(b'" "', b'"9"')
    table = read(tmp_path, content, target="y", impute="mean")
    assert table.feature_names == ("a", "b", "a.1")
    assert table.X[:, 1].tolist() == [8.0, 9.0, 7.0]


def test_names_made_for_others_are_new():
    assert unique_names(["a", "a", "a.1", "a", "", ""]) == [
        "a", "a.2", "a.1", "a.3", "Unnamed: 4", "Unnamed: 5",
    ]  # fmt: skip


def test_a_lack_of_memory_is_not_blamed_on_the_table():
    said = unreadable("Error tokenizing data. C error: out of memory")
    assert "memory does not suffice" in said


def test_blanks_around_texts_are_no_part_of_them(tmp_path, rng):
    rows = [f"{rng.normal():.2f},{rng.choice(['A', 'A ', 'B'])}" for _ in range(40)]
    content = "\n".join(["x,c", *rows]).encode()
    assert set(read(tmp_path, content, target="c").y) == {"A", "B"}
    assert read(tmp_path, content, target="x").feature_names == ("c=B",)
