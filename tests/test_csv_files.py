"""CSV as people write it gives the same numbers as a tidy file, or a reason why not."""

from __future__ import annotations

import re

import numpy as np
import pytest

from blockl0.tables import read_table

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
