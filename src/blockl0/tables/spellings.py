"""How numbers and dates are written, and what each spelling is taken for.

`NUMBERS` and `DATES` are the promise: the documentation shows them, and the tests read every cell
of them from files. `Column` looks at the cells of a column as they are written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

REFUSED = None
"""A cell of the tables: the column is refused when it is used, with what would decide."""
ROW = "row"
"""The name of an index that holds the rows as the file numbers them."""


class NumberSpelling(NamedTuple):
    """A number as it is written, and its value in three kinds of files.

    Attributes
    ----------
    text : str
    point : float or None
        Where another column shows a decimal point, as 12.5, or with ``--decimal point``.
    comma : float or None
        Where another column shows a decimal comma, as 12,5, or with ``--decimal comma``.
    alone : float or None
        Where nothing else tells.
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
    """A date as it is written, and what ``--dates days`` takes it for.

    Attributes
    ----------
    text : str
    auto : str or None
        As year-month-day, where the file alone decides.
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
"""Dates; by default their columns are left out, and named."""


def as_markdown() -> str:
    """The two tables as the documentation shows them."""
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


# -- one cell --------------------------------------------------------------------------------------

CURRENCY = (
    r"(?:US|CA|A|NZ|HK|R)?\$|[€£¥₹₽₩]|zł|Kč|S?Fr\.?|[kK]r\.?|Rs\.?"
    r"|USD|EUR|GBP|CHF|JPY|CNY|INR|CAD|AUD|SEK|NOK|DKK|PLN|CZK|BRL"
)
DRESS = re.compile(
    rf"""(?P<open>\()?\s*(?P<sign>[-+\u2212\u2013])?\s*(?P<before>%|{CURRENCY})?\s*
    (?P<sign2>[-+\u2212\u2013])?
    (?P<body>\d{{1,3}}(?P<gap>[ \u00a0\u202f\u2009'\u2019])\d{{3}}(?:(?P=gap)\d{{3}})*(?:[.,]\d*)?
     |(?:\d[\d.,]*|[.,]\d+)(?:[eE][-+]?\d+)?)
    \s*(?P<after>%|{CURRENCY})?\s*(?P<close>\))?""",
    re.VERBOSE,
)
"""What may be around a number: a sign, a unit, brackets; and blanks between its thousands."""
EXPONENT = r"(?:[eE][-+]?\d+)?"
LAKHS = r"[1-9]\d?(?:,\d{2})+,\d{3}"
"""Thousands as in India."""
BARE = re.compile(
    rf"""[-+]?(?:
    (?P<whole>\d{{1,3}}(?:[eE][-+]?\d+)?)
    |(?P<long>\d{{4,}}{EXPONENT})                          # 1660, without a point
    |(?P<point_group>[1-9]\d{{0,2}}\.\d{{3}})              # 1.660, which is 1660 or 1.66
    |(?P<point_groups>[1-9]\d{{0,2}}(?:\.\d{{3}}){{2,}})   # 1.234.567
    |(?P<comma_group>[1-9]\d{{0,2}},\d{{3}})               # 1,660, which alone tells nothing either
    |(?P<comma_groups>[1-9]\d{{0,2}}(?:,\d{{3}}){{2,}}|{LAKHS})    # 1,234,567; 12,34,567
    |(?P<comma>(?:\d+,\d*|,\d+){EXPONENT}|[1-9]\d{{0,2}}(?:\.\d{{3}})+,\d*)
    |(?P<point>(?:\d+\.\d*|\.\d+){EXPONENT}|(?:[1-9]\d{{0,2}}(?:,\d{{3}})+|{LAKHS})\.\d*)
    )""",
    re.VERBOSE,
)
"""How a number may be written; the first group that fits the whole of it."""
NEUTRAL = ("whole", "long")
READ_AS = {
    "comma": (*NEUTRAL, "point_group", "point_groups", "comma_group", "comma"),
    "point": (*NEUTRAL, "comma_group", "comma_groups", "point_group", "point"),
}
"""Spellings in a file with decimal commas, and in one with decimal points."""
MARKS = {"point": ".", "comma": ","}


class Undressed(NamedTuple):
    """A number without what is around it: sign and body; its unit; its spelling in `BARE`; and
    whether blanks or apostrophes part its thousands.
    """

    bare: str
    unit: str
    spelling: str
    is_spaced: bool = False


def undress(text: str) -> Undressed | None:
    """What is left of a cell, None where it is no number."""
    plain = BARE.fullmatch(text)
    if plain is not None and plain.lastgroup is not None:
        return Undressed(text.removeprefix("+"), "", plain.lastgroup)
    found = DRESS.fullmatch(text)
    if found is None:
        return None
    signs = [sign for sign in (found["sign"], found["sign2"]) if sign]
    units = [unit for unit in (found["before"], found["after"]) if unit]
    has_brackets = found["open"] is not None
    if len(signs) + has_brackets > 1 or len(units) > 1 or has_brackets != bool(found["close"]):
        return None
    is_negative = has_brackets or (bool(signs) and signs[0] != "+")
    body = found["body"].replace(found["gap"] or " ", "")
    match = BARE.fullmatch(body)
    if match is None or match.lastgroup is None:
        return None
    bare, is_spaced = "-" * is_negative + body, found["gap"] is not None
    return Undressed(bare, "".join(units), match.lastgroup, is_spaced)


def to_float(bare: str, decimal: str) -> float:
    """The number that is meant where decimals begin with a point or with a comma."""
    if decimal == "comma":
        return float(bare.replace(".", "").replace(",", "."))
    return float(bare.replace(",", ""))


# -- one column ------------------------------------------------------------------------------------


class Cell(NamedTuple):
    """A cell that shows something, and where it is: the row as the file numbers it."""

    column: str
    row: str
    text: str

    def __str__(self) -> str:
        return f"{self.text!r} in {self.row} of column {self.column!r}"


def place_of(series: Any, position: int) -> str:
    """Where a cell is: the row of the file, the header counted; of a DataFrame its index."""
    label = series.index[position]
    return f"row {label}" if series.index.name == ROW else f"the row with index {label!r}"


SHAPE = str.maketrans("23456789", "11111111")
"""Numbers of one shape are spelled alike; a leading 0 matters, other digits do not."""
BETWEEN = "\x1f"
"""Between texts that are worked on together; it does not occur in text."""
TAKEN_OFF = dict.fromkeys(map(ord, "+) \u00a0\u202f\u2009'\u2019%$€£¥₹₽₩"))
BARED = {"comma": {ord("."): None, ord(","): "."}, "point": {ord(","): None}}
"""What is done to the letters of a number before it can be read, for each decimal mark."""


def translated(texts: list[str], table: dict[int, Any]) -> list[str]:
    """All texts by one table of letters, which is fast for many."""
    made = BETWEEN.join(texts).translate(table).split(BETWEEN)
    return made if len(made) == len(texts) else [text.translate(table) for text in texts]


class Column:
    """The cells of a column as they are written, and which spellings there are.

    Every different text, and of those every different shape, is looked at once: columns are long.

    Parameters
    ----------
    series : Series
        Of texts, with gaps.

    Attributes
    ----------
    name : str
    texts : list of str
        The different ones, without blanks around, in the order of their first rows.
    first : dict of Cell
        Of each spelling of `BARE`, and "other".
    count : Counter
        Of the rows with each spelling.
    units : dict of Cell
        The first cell with each unit, "" for none (a lone 0 needs none).
    spaced : Cell or None
        The first whole number with blanks or apostrophes between its thousands.
    is_dressed : bool
        Whether a number is more than digits, a sign and a decimal mark.
    """

    def __init__(self, series: Any) -> None:
        import pandas

        self.name = str(series.name)
        self._series = series
        self._codes, texts = pandas.factorize(series)
        # as an array of objects: texts of Arrow are slow one by one
        self.texts = [str(text).strip() for text in np.asarray(texts, dtype=object)]
        codes, shapes = pandas.factorize(np.array(translated(self.texts, SHAPE), dtype=object))
        rows = np.bincount(self._codes[self._codes >= 0], minlength=len(self.texts))
        counts = np.bincount(codes, weights=rows, minlength=len(shapes))
        self.first: dict[str, Cell] = {}
        self.units: dict[str, Cell] = {}
        self.spaced: Cell | None = None
        self.count: Counter[str] = Counter()
        self.is_dressed, self._has_letters = False, False
        places = np.unique(codes, return_index=True)[1].tolist()
        for shape, n_rows, i in zip(shapes, counts.tolist(), places, strict=True):
            self._look(shape, int(n_rows), i)

    def _look(self, shape: str, n_rows: int, i: int) -> None:
        """Take a shape into account, whose first text is the i-th."""
        number = undress(shape)
        spelling = number.spelling if number else "other"
        self.count[spelling] += n_rows
        if spelling not in self.first:
            self.first[spelling] = self.cell(i)
        if number is None:
            return
        self.is_dressed |= number.bare != shape
        if number.is_spaced and spelling in NEUTRAL:
            self.spaced = self.spaced or self.cell(i)
        self._has_letters |= any(letter.isalpha() for letter in number.unit)
        if number.unit not in self.units and number.bare.strip("-+0.,"):
            self.units[number.unit] = self.cell(i)

    @property
    def n_cells(self) -> int:
        """Those that are not missing."""
        return self.count.total()

    def cell(self, i: int) -> Cell:
        """The first one with a text."""
        row = np.flatnonzero(self._codes == i)[0]
        return Cell(self.name, place_of(self._series, int(row)), self.texts[i])

    def share(self, spellings: Sequence[str]) -> float:
        """Of cells in some of the spellings."""
        return sum(self.count[spelling] for spelling in spellings) / max(self.n_cells, 1)

    def has(self, *spellings: str) -> bool:
        """Whether one of them occurs."""
        return any(spelling in self.first for spelling in spellings)

    def has_mark(self, mark: str) -> bool:
        """Whether there is a point or a comma in some number."""
        return any(MARKS[mark] in text for text in self.texts)

    def values(self, decimal: str) -> NDArray[np.float64]:
        """The column as it is meant, NaN where it is missing; all cells must be numbers."""
        if self._has_letters:
            bare = [number.bare if number else "nan" for number in map(undress, self.texts)]
        else:
            negative = dict.fromkeys(map(ord, "(\u2212\u2013"), "-")
            bare = translated(self.texts, TAKEN_OFF | negative)
        known = [float(text) for text in translated(bare, BARED[decimal])]
        return np.array([*known, np.nan])[self._codes]

    def example(self, decimal: str) -> str:
        """'($5 is 5)': the first text that is more than a plain number."""
        for text in self.texts:
            number = undress(text)
            if number is not None and number.bare != text:
                return f"{self.name} ({text} is {to_float(number.bare, decimal):.10g})"
        return self.name


def text_columns(frame: Any, left_alone: set[str]) -> Iterator[Any]:
    """Yield the columns of text that may hold numbers, and not codes."""
    for j, kind in enumerate(frame.dtypes):
        if kind.kind not in "biufcmM" and frame.columns[j] not in left_alone:
            series = frame.iloc[:, j]
            is_open = not is_categorical(series) and _may_hold_numbers(series)
            if is_open and first_code(series) is None:
                yield series


def first_code(series: Any) -> str | None:
    """Return the first code of a column of codes, as 01067; None where it holds something else.

    Codes are digits alone, some of them with zeros before: numbers are not written so.
    """
    if series.dtype.kind in "biufcmM" or is_categorical(series):
        return None
    shown = None
    for cell in series.dropna().unique():
        text = str(cell).strip()
        if not (text.isascii() and text.isdigit()):
            return None
        if shown is None and len(text) > 1 and text[0] == "0":
            shown = text
    return shown


def is_categorical(series: Any) -> bool:
    """Whether a column was declared to be a category."""
    from pandas import CategoricalDtype

    return isinstance(series.dtype, CategoricalDtype)


SAMPLE = 1000
"""Cells of a long column that tell whether it is worth looking at all of them."""


def _may_hold_numbers(series: Any) -> bool:
    """Whether there is a number among the first cells."""
    cells = series.dropna().iloc[:SAMPLE].unique()
    return any(undress(str(text).strip()) is not None for text in cells)
