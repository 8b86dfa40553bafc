"""Numbers and dates in every spelling are what the table of spellings says, or refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from blockl0.app.tables import apply_recipe, read_table
from blockl0.app.tables.formats import read_raw
from blockl0.app.tables.spellings import undress

pd = pytest.importorskip("pandas", reason="tables need pandas")

REFUSED = None
"""Entry of the tables: the column is refused when used, with what would decide."""


class NumberSpelling(NamedTuple):
    """Spelling of a number, and its value in three kinds of files.

    Attributes
    ----------
    text : str
    point : float or None
        If another column shows a decimal point, such as 12.5, or with ``--decimal point``.
    comma : float or None
        If another column shows a decimal comma, such as 12,5, or with ``--decimal comma``.
    alone : float or None
        If nothing else decides.
    """

    text: str
    point: float | None
    comma: float | None
    alone: float | None


NUMBERS = (
    NumberSpelling("12.5", 12.5, REFUSED, 12.5),
    NumberSpelling("12,5", REFUSED, 12.5, 12.5),
    NumberSpelling("1.660", 1.66, 1660.0, 1.66),
    NumberSpelling("1,660", 1660.0, 1.66, REFUSED),
    NumberSpelling("1.660,5", REFUSED, 1660.5, 1660.5),
    NumberSpelling("1,660.5", 1660.5, REFUSED, 1660.5),
    NumberSpelling("1.234.567", REFUSED, 1234567.0, 1234567.0),
    NumberSpelling("1,234,567", 1234567.0, REFUSED, 1234567.0),
    NumberSpelling("12,34,567", 1234567.0, REFUSED, 1234567.0),
    NumberSpelling("1 660", 1660.0, 1660.0, 1660.0),
    NumberSpelling("1'660", 1660.0, 1660.0, 1660.0),
    NumberSpelling("1e3", 1000.0, 1000.0, 1000.0),
    NumberSpelling("12%", 12.0, 12.0, 12.0),
    NumberSpelling("$5", 5.0, 5.0, 5.0),
    NumberSpelling("5 €", 5.0, 5.0, 5.0),
    NumberSpelling("(3)", -3.0, -3.0, -3.0),
    NumberSpelling("−4", -4.0, -4.0, -4.0),
)
"""Numbers; a column holds one of them in every row."""


class DateSpelling(NamedTuple):
    """Spelling of a date, and its value with ``--dates days``.

    Attributes
    ----------
    text : str
    auto : str or None
        As year-month-day, if the file alone decides.
    day_first, month_first : str or None
        The same with ``--date-order``.
    """

    text: str
    auto: str | None
    day_first: str | None
    month_first: str | None


DATES = (
    DateSpelling("2012-01-31", "2012-01-31", "2012-01-31", "2012-01-31"),
    DateSpelling("2012/01/31", "2012-01-31", "2012-01-31", "2012-01-31"),
    DateSpelling("31.01.2012", "2012-01-31", "2012-01-31", "2012-01-31"),
    DateSpelling("01.02.2012", "2012-02-01", "2012-02-01", "2012-02-01"),
    DateSpelling("01/31/2012", "2012-01-31", REFUSED, "2012-01-31"),
    DateSpelling("31/01/2012", "2012-01-31", "2012-01-31", REFUSED),
    DateSpelling("01/02/2012", REFUSED, "2012-02-01", "2012-01-02"),
    DateSpelling("20120131", "2012-01-31", "2012-01-31", "2012-01-31"),
)
"""Dates; by default their columns are left out, with a note."""


def as_markdown() -> str:
    """Format the two tables for the documentation."""
    heads = (
        ("written", "12.5 elsewhere, or `--decimal point`", "12,5 elsewhere, or `--decimal comma`",
         "nothing else tells"),
        ("written", "`--dates days` takes it for", "and `--date-order day-first`",
         "and `--date-order month-first`"),
    )  # fmt: skip
    return "\n\n".join(
        "\n".join([_line(head), _line(["---"] * 4), *(_line(_shown(row)) for row in rows)])
        for head, rows in zip(heads, (NUMBERS, DATES), strict=True)
    )


def _shown(row: Sequence[Any]) -> list[str]:
    cells = ("refused" if v is None else v if isinstance(v, str) else f"{v:.10g}" for v in row[1:])
    return [f"`{row[0]}`", *cells]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


SHOWN = {"point": "12.5", "comma": "12,5", "alone": "7"}
"""What another column holds, where a cell of the table is tried."""
DECIDED = {"point": "point", "comma": "comma", "alone": "auto"}


@pytest.fixture
def write(tmp_path):
    def write(columns, name="t.csv"):
        lines = [";".join(columns), *(";".join(row) for row in zip(*columns.values(), strict=True))]
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        return tmp_path / name

    return write


def test_the_documentation_shows_the_table():
    page = Path(__file__).parents[2] / "docs" / "cli.md"
    assert as_markdown() in page.read_text(encoding="utf-8")


# -- numbers ---------------------------------------------------------------------------------------


def check(path, expected, **options):
    """The target is read as a number, or refused by its name with what would decide."""
    if expected is None:
        with pytest.raises(ValueError, match=r"Column '\w+' .* row \d") as caught:
            read_table(path, target="a", **options)
        assert "--decimal" in str(caught.value)
    else:
        assert read_table(path, target="a", **options).y.tolist() == [expected] * 4


@pytest.mark.parametrize("context", SHOWN)
@pytest.mark.parametrize("spelling", NUMBERS, ids=lambda s: s.text)
def test_numbers(write, spelling, context):
    expected = getattr(spelling, context)
    other = [SHOWN[context], "3", "4", "9"]
    path = write({"a": [spelling.text] * 4, "b": other})
    check(path, expected)
    if context != "alone":  # the option says the same where nothing else does
        alone = write({"a": [spelling.text] * 4, "b": ["7", "3", "4", "9"]}, "alone.csv")
        check(alone, expected, decimal=DECIDED[context])


@pytest.mark.parametrize("spelling", NUMBERS, ids=lambda s: s.text)
def test_numbers_in_quotes_between_commas(tmp_path, spelling):
    """Where commas part the columns: points are decimal, decimal commas are asked about."""
    text = "a,b\n" + "".join(f'"{spelling.text}",{b}\n' for b in ("12.5", "3", "4", "9"))
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    check(tmp_path / "t.csv", spelling.point)


@pytest.mark.parametrize("spelling", NUMBERS, ids=lambda s: s.text)
def test_numbers_as_texts_of_a_frame(spelling):
    frame = pd.DataFrame({"a": [spelling.text] * 4, "b": [7, 3, 4, 9]})
    expected = 1.66 if spelling.text == "1.660" else spelling.alone
    if expected is None:
        with pytest.raises(ValueError, match="the row with index 0"):
            read_table(frame, target="a")
    else:
        assert read_table(frame, target="a").y.tolist() == [expected] * 4


@pytest.mark.parametrize(
    "text", ["", "-", "%", "$", "()", "(3", "3)", "1 66", "1 6600", "1'66", "--4", "(-3)", "$5$",
             "1,66,0", "1.66.0", "1.660.5", "1,660,5", "12 %%", "1e", "e3", "0x10", "1_000", "x5"]
)  # fmt: skip
def test_what_is_no_number(text):
    assert undress(text) is None


@pytest.mark.parametrize("seed", range(5))
def test_spelled_numbers_come_back(seed):
    """Any dress around any number with a decimal point: as it was before it was dressed."""
    rng = np.random.default_rng(seed)
    for _ in range(200):
        value = round(float(rng.uniform(-1, 1) * 10.0 ** rng.integers(0, 8)), 2)
        gap = rng.choice([",", " ", "'", "\u00a0", "\u202f", ""])
        body = f"{abs(value):,.2f}".replace(",", gap)
        unit = rng.choice(["", "$", "€", "US$"])
        sign = "" if value >= 0 else str(rng.choice(["-", "\u2212", "("]))
        text = f"{sign}{unit}{body}" if rng.integers(2) else f"{sign}{body} {unit}".rstrip()
        found = undress(text + ")" * (sign == "("))
        assert found is not None and found.unit == unit, text
        assert float(found.bare.replace(",", "")) == value, text


def test_a_column_with_other_things_in_it_is_refused(write):
    path = write({"a": ["$5", "12%", "$7", "$8", "$9", "$3"], "y": list("123456")})
    with pytest.raises(ValueError, match=r"'\$5' in row 2 and '12%' in row 3: numbers with diff"):
        read_table(path)
    path = write({"a": ["1,5", "2,5", "k. A.", "3,5", "4,5", "5,5"], "y": list("123456")})
    message = r"'a' holds numbers, but also 'k\. A\.' in 1 of 6 rows \(the first is row 4\).*--na"
    with pytest.raises(ValueError, match=message):
        read_table(path)
    assert read_table(path, na=["k. A."], impute="mean").X[2, 0] == 3.5


# -- dates -----------------------------------------------------------------------------------------


def days(text):
    return (pd.Timestamp(text) - pd.Timestamp("1970-01-01")).days


@pytest.mark.parametrize("order", ["auto", "day-first", "month-first"])
@pytest.mark.parametrize("spelling", DATES, ids=lambda s: s.text)
def test_dates(write, spelling, order):
    expected = {"auto": spelling.auto, "day-first": spelling.day_first}.get(
        order, spelling.month_first
    )
    # the same day in other years, so that the column is not constant
    texts = [spelling.text.replace("2012", year) for year in ("2012", "2013", "2016", "2014")]
    path = write({"when": texts, "b": list("1235"), "y": list("1342")})
    dropped = read_table(path)
    assert dropped.feature_names == ("b",)
    assert "1 column (when) of dates dropped (--dates days makes numbers)." in dropped.notes
    assert any("dates of eight digits" in note for note in dropped.notes) == texts[0].isdigit()
    if expected is None:
        with pytest.raises(ValueError, match=r"Column 'when' .*\brow 2\b"):
            read_table(path, dates="days", date_order=order)
        return
    table = read_table(path, dates="days", date_order=order)
    years = [expected.replace("2012", year) for year in ("2012", "2013", "2016", "2014")]
    assert table.X[:, 0].tolist() == [days(year) for year in years]
    # new rows, of which one alone would not tell
    new = apply_recipe(read_raw(path).take(np.array([3])), table.recipe([0]))
    assert new.tolist() == [[days(years[3])]]


def test_other_dates_of_a_column_tell(write):
    first = write({"when": ["01/02/2012", "05/06/2012", "31/01/2012"], "y": list("132")})
    table = read_table(first, dates="days")
    assert table.X[:, 0].tolist() == [days(d) for d in ("2012-02-01", "2012-06-05", "2012-01-31")]
    new = write({"when": ["01/02/2012", "02/02/2012"], "y": list("13")}, "new.csv")
    found = apply_recipe(read_raw(new), table.recipe([0]))
    assert found[:, 0].tolist() == [days("2012-02-01"), days("2012-02-02")]
    both = write({"when": ["01/31/2012", "31/01/2012", "01/01/2012"], "y": list("132")})
    message = "'31/01/2012' in row 3, with the day first, and '01/31/2012' in row 2, with the month"
    with pytest.raises(ValueError, match=message):
        read_table(both, dates="days", target="y")
    with pytest.raises(ValueError, match=r"'01/02/2012' \(row 2\), in which .*--date-order day-"):
        read_table(new, dates="days", target="y")


@pytest.mark.parametrize(
    ("cells", "shown", "point", "comma"),
    [
        (["9.135", "2.480", "5,135"], "'9.135' in row 2 and '5,135' in row 4", 5135, 5.135),
        (["9 135", "2 480", "5.135"], "'5.135' in row 4 and '9 135' in row 2", 5.135, 5135),
        (["€9.135", "€2.480", "€5,135"], "'€9.135' in row 2 and '€5,135' in row 4", 5135, 5.135),
    ],
)
def test_two_kinds_of_thousands_in_a_column_are_refused(write, cells, shown, point, comma):
    """One of them is likely decimal, whatever the other columns show."""
    for other in ("12.5", "12,5", "7"):
        path = write({"a": cells, "b": [other, "3", "4"], "y": list("132")})
        with pytest.raises(ValueError, match=f"Column 'a' holds {re.escape(shown)}: .*--decimal"):
            read_table(path)
    for decimal, expected in (("point", point), ("comma", comma)):
        assert read_table(path, decimal=decimal).X[2, 0] == expected
    path = write({"a": ["12 345,678", "345,678", "1,250"], "y": list("132")})
    assert read_table(path).X[:, 0].tolist() == [12345.678, 345.678, 1.25]


def test_times_and_what_is_no_date(write):
    path = write({"when": ["01.02.2012 06:00", "2.2.2012 12:30", "3.2.2012"], "y": list("132")})
    found = read_table(path, dates="days").X[:, 0] - days("2012-02-01")
    np.testing.assert_allclose(found, [0.25, 1 + 12.5 / 24, 2], atol=1e-9)
    path = write({"when": ["31.02.2012", "30.02.2012", "01.02.2012"], "y": list("132")})
    with pytest.raises(ValueError, match=r"must hold dates, got '31.02.2012' in row 2; .*--na"):
        read_table(path, dates="days")
    path = write({"n": ["20121301", "20120101", "20120230"], "y": list("132")})
    assert read_table(path).X[:, 0].tolist() == [20121301, 20120101, 20120230]
    path = write({"n": ["20121201", "20120101", "20120229"], "y": list("132")})
    assert read_table(path, as_number=["n"]).X[0, 0] == 20121201
    path = write({"n": ["20121201", "20120101", "20120229"], "b": list("124"), "y": list("132")})
    said = "Column 'n' holds dates of eight digits, as 20121201 (--as-number n takes them as they"
    assert f"{said} are)." in read_table(path).notes
