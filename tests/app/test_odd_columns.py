"""Columns that look like something else: numbers with fillers and units, dates, long codes."""

from __future__ import annotations

import numpy as np
import pytest

from blockl0.app.tables import read_table

pd = pytest.importorskip("pandas", reason="tables need pandas")

M = 40
A = np.arange(M) * 7 % 41 + 0.5


@pytest.fixture
def read(tmp_path):
    def read(cells, **options):
        lines = ["x;a;y", *(f"{c};{a};{a - 3}" for c, a in zip(cells, A, strict=True))]
        (tmp_path / "t.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return read_table(tmp_path / "t.csv", **options)

    return read


@pytest.mark.parametrize("filler", [".", "<0.5", "k. A."])
def test_many_numbers_with_one_text_are_numbers_however_often_it_stands(read, filler):
    cells = [filler if i % 5 < 2 else f"{a}" for i, a in enumerate(A)]
    with pytest.raises(ValueError, match=r"'x' holds numbers, but also .* in 16 of 40 .*row 2\)"):
        read(cells)
    table = read(cells, na=[filler], impute="median")
    known = np.arange(M) % 5 >= 2
    np.testing.assert_array_equal(table.X[known, 0], A[known])


def test_numbers_that_do_not_repeat_are_no_category_in_a_short_table(tmp_path):
    rows = [f"{'?' if i % 3 == 0 else i / 8};{i * i}" for i in range(12)]
    (tmp_path / "t.csv").write_text("\n".join(["x;y", *rows]), encoding="utf-8")
    with pytest.raises(ValueError, match=r"'x' holds numbers, but also '\?' in 4 of 12 rows"):
        read_table(tmp_path / "t.csv")


def test_few_numbers_and_texts_are_a_category(read):
    table = read(["1", "2-", "2", "none"] * 10)
    assert table.feature_names == ("x=2", "x=2-", "x=none", "a")
    assert [unit.name for unit in table.units] == ["x", "a"] and table.units[0].reference == "1"
    apart = read(["1", "2-", "2", "none"] * 10, levels="separate")
    assert apart.feature_names == ("x=1", "x=2", "x=2-", "x=none", "a")


def test_a_minus_behind_a_number_is_not_guessed_at(read):
    """In some programs 5- is -5, on price tags 5,- is 5."""
    for tail in ("-", ".-", "\u2013"):
        with pytest.raises(
            ValueError, match=r"'x' holds numbers in a form that is not read.*row 3"
        ):
            read([f"{a}{tail}" if i % 2 else f"{a}" for i, a in enumerate(A)])


@pytest.mark.parametrize(
    ("spell", "sign"),
    [("\u2013{}", -1), ("%{}", 1), ("Fr. {}", 1), ("{} zł", 1), ("-kr {}", -1), ("{} INR", 1)],
)
def test_more_signs_and_units(read, spell, sign):
    table = read([spell.format(a) for a in A])
    np.testing.assert_array_equal(table.X[:, 0], sign * A)
    assert any("Read as numbers: x" in note for note in table.notes)


def test_an_unknown_unit_is_named_and_no_identifier(read):
    table = read([f"{a} kg" for a in A])
    said = "Numbers with a unit that is not known left out: x (0.5 kg); write the unit into the"
    assert table.feature_names == ("a",) and said in " ".join(table.notes)


def test_identifiers_come_with_the_option_that_keeps_them(read):
    notes = " ".join(read([f"P-{i}" for i in range(M)]).notes)
    assert "Left out as identifiers, with a different value in every row: x." in notes
    asked = " ".join(read([f"P-{i}" for i in range(M)], as_category=["x"]).notes)
    assert "x (40 values) (--max-levels 40 makes columns of them)" in asked
    table = read([f"P-{i}" for i in range(M)], as_category=["x"], max_levels=40)
    assert table.X.shape == (M, 40) and len(table.units) == 2


def test_whole_numbers_too_long_for_floats_are_codes_and_not_constant(read):
    table = read([str(12345678901234567000 + i) for i in range(M)])
    said = "Left out as identifiers, whole numbers of 16 digits or more: x"
    assert said in " ".join(table.notes)


def test_dates_with_a_text_among_them_are_dates(read):
    cells = ["unknown" if i == 7 else f"{i % 28 + 1}/01/2012" for i in range(M)]
    left_out = " ".join(read(cells).notes)
    assert "1 column (x) of dates dropped" in left_out
    with pytest.raises(ValueError, match=r"'x' must hold dates, got 'unknown' in row 9; .*--na"):
        read(cells, dates="days")
    table = read(cells, dates="days", na=["unknown"], impute="median")
    assert table.X[1, 0] - table.X[0, 0] == 1.0


def test_points_of_numbers_with_units_are_doubted_as_those_of_others(tmp_path):
    """A comma in quotes hints at decimal commas: $664.475 is then not read as 664.475."""
    lines = ["price,rate,y", *(f'$6{i}4.475,"0,{i}5",{i}' for i in range(1, 9))]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"'price' holds '\$614.475' in row 2: 614475 if points"):
        read_table(tmp_path / "t.csv")
    point = read_table(tmp_path / "t.csv", decimal="point", drop=["rate"])
    assert point.X[0, 0] == 614.475


# -- layouts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_two_bytes_a_letter_without_a_mark(tmp_path, encoding):
    (tmp_path / "t.csv").write_bytes("größe;y\n1,5;2\n\n2,5;4\n3,5;7\n".encode(encoding))
    table = read_table(tmp_path / "t.csv")
    assert table.X[:, 0].tolist() == [1.5, 2.5, 3.5]
    assert "UTF-16, without a mark" in " ".join(table.notes)


def test_layouts_that_are_refused_by_name(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a b y\n1 2.5 3\n2 3.5 5\n", encoding="utf-8")
    with pytest.raises(
        ValueError, match=r"separated by blanks, as in '1 2.5 3'; --delimiter blank"
    ):
        read_table(path)
    path.write_text("sep=;\na;y\n1;2\n2;3\n", encoding="utf-8")
    with pytest.raises(ValueError, match="'sep=;', is for Excel alone; --skip-rows 1"):
        read_table(path)


def test_columns_without_a_name_are_told(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,,y\n1,7,2\n2,5,3\n3,6,9\n", encoding="utf-8")
    said = "Columns without a name are called by their place: Unnamed: 1."
    assert said in read_table(path).notes
