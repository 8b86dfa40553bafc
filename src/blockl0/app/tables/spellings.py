"""Spellings of numbers: what may surround one, and the cells of a column as written.

The documentation of the command line lists the spellings and the value of each.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

ROW = "row"
"""Name of an index that holds the row numbers of the file."""


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
"""What may surround a number: sign, unit, brackets; and blanks between thousands."""
EXPONENT = r"(?:[eE][-+]?\d+)?"
LAKHS = r"[1-9]\d?(?:,\d{2})+,\d{3}"
"""Thousands as grouped in India."""
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
"""Spellings of a number; the first group that matches completely."""
NEUTRAL = ("whole", "long")
READ_AS = {
    "comma": (*NEUTRAL, "point_group", "point_groups", "comma_group", "comma"),
    "point": (*NEUTRAL, "comma_group", "comma_groups", "point_group", "point"),
}
"""Spellings in a file with decimal commas, and in one with decimal points."""
SURE = {"comma": ("comma", "point_groups"), "point": ("point", "comma_groups")}
"""Spellings that occur with one decimal mark only."""
MARKS = {"point": ".", "comma": ","}


class Undressed(NamedTuple):
    """A number stripped of its surroundings.

    Sign and body; its unit; its spelling in `BARE`; whether blanks or apostrophes separate
    thousands.
    """

    bare: str
    unit: str
    spelling: str
    is_spaced: bool = False


def undress(text: str) -> Undressed | None:
    """Strip the surroundings of a number; None if the text is not one."""
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
    """Convert a bare number with decimal point or comma."""
    if decimal == "comma":
        return float(bare.replace(".", "").replace(",", "."))
    return float(bare.replace(",", ""))


# -- one column ------------------------------------------------------------------------------------


class ShownCell(NamedTuple):
    """A cell used as evidence, with its row as the file numbers it."""

    column: str
    row: str
    text: str

    def __str__(self) -> str:
        return f"{self.text!r} in {self.row} of column {self.column!r}"


def place_of(series: Any, position: int) -> str:
    """Locate a cell: by row of the file, counting the header, or by index of a DataFrame."""
    label = series.index[position]
    return f"row {label}" if series.index.name == ROW else f"the row with index {label!r}"


SHAPE = str.maketrans("23456789", "11111111")
"""Numbers of the same shape are spelled alike: only a leading 0 matters, not other digits."""
BETWEEN = "\x1f"
"""Separates texts that are translated together; does not occur in text."""
TAKEN_OFF = dict.fromkeys(map(ord, "+) \u00a0\u202f\u2009'\u2019%$€£¥₹₽₩"))
BARED = {"comma": {ord("."): None, ord(","): "."}, "point": {ord(","): None}}
"""Translations that make a number readable, for each decimal mark."""


def translated(texts: list[str], table: dict[int, Any]) -> list[str]:
    """Translate all texts with one table, which is fast for many."""
    made = BETWEEN.join(texts).translate(table).split(BETWEEN)
    return made if len(made) == len(texts) else [text.translate(table) for text in texts]


class Column:
    """The cells of a column as written, and the spellings that occur.

    Each distinct text is parsed once per distinct shape, since columns are long.

    Parameters
    ----------
    series : Series
        Texts, with gaps.

    Attributes
    ----------
    name : str
    texts : list of str
        The distinct texts, stripped, in order of appearance.
    first : dict of ShownCell
        The first cell of each spelling of `BARE`, and "other".
    count : Counter
        Rows of each spelling.
    units : dict of ShownCell
        The first cell with each unit, "" for none (a lone 0 needs none).
    spaced : ShownCell or None
        The first integer with blanks or apostrophes between thousands.
    is_dressed : bool
        Whether a number has more than digits, a sign and a decimal mark.
    """

    def __init__(self, series: Any) -> None:
        import pandas

        self.name = str(series.name)
        self._series = series
        self._codes, texts = pandas.factorize(series)
        # as an array of objects: iterating over Arrow strings is slow
        self.texts = [str(text).strip() for text in np.asarray(texts, dtype=object)]
        codes, shapes = pandas.factorize(np.array(translated(self.texts, SHAPE), dtype=object))
        rows = np.bincount(self._codes[self._codes >= 0], minlength=len(self.texts))
        counts = np.bincount(codes, weights=rows, minlength=len(shapes))
        self.first: dict[str, ShownCell] = {}
        self.units: dict[str, ShownCell] = {}
        self.spaced: ShownCell | None = None
        self.count: Counter[str] = Counter()
        self.is_dressed, self._has_letters = False, False
        places = np.unique(codes, return_index=True)[1].tolist()
        for shape, n_rows, i in zip(shapes, counts.tolist(), places, strict=True):
            self._look(shape, int(n_rows), i)

    def _look(self, shape: str, n_rows: int, i: int) -> None:
        """Record a shape, given its rows and the index of its first text."""
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
        """Number of cells that are not missing."""
        return self.count.total()

    def cell(self, i: int) -> ShownCell:
        """Return the first cell with the i-th text."""
        row = np.flatnonzero(self._codes == i)[0]
        return ShownCell(self.name, place_of(self._series, int(row)), self.texts[i])

    def share(self, spellings: Sequence[str]) -> float:
        """Return the share of cells in some of the spellings."""
        return sum(self.count[spelling] for spelling in spellings) / max(self.n_cells, 1)

    def has(self, *spellings: str) -> bool:
        """Check if one of some spellings occurs."""
        return any(spelling in self.first for spelling in spellings)

    def sure(self, decimal: str) -> ShownCell | None:
        """Return a cell that occurs with one decimal mark only."""
        return next((self.first[s] for s in SURE[decimal] if s in self.first), None)

    def has_mark(self, mark: str) -> bool:
        """Check if some number holds a point or a comma."""
        return any(MARKS[mark] in text for text in self.texts)

    def values(self, decimal: str) -> NDArray[np.float64]:
        """Convert the column to numbers, NaN for gaps; all cells must be numbers."""
        if self._has_letters:
            bare = [number.bare if number else "nan" for number in map(undress, self.texts)]
        else:
            negative = dict.fromkeys(map(ord, "(\u2212\u2013"), "-")
            bare = translated(self.texts, TAKEN_OFF | negative)
        known = [float(text) for text in translated(bare, BARED[decimal])]
        return np.array([*known, np.nan])[self._codes]

    def example(self, decimal: str) -> str:
        """Show the first text that is more than a plain number, as in '($5 is 5)'."""
        for text in self.texts:
            number = undress(text)
            if number is not None and number.bare != text:
                return f"{self.name} ({text} is {to_float(number.bare, decimal):.10g})"
        return self.name


def text_columns(frame: Any, left_alone: set[str]) -> Iterator[Any]:
    """Yield the text columns that may hold numbers and are not codes."""
    for j, kind in enumerate(frame.dtypes):
        if kind.kind not in "biufcmM" and frame.columns[j] not in left_alone:
            series = frame.iloc[:, j]
            is_open = not is_categorical(series) and _may_hold_numbers(series)
            if is_open and first_code(series) is None:
                yield series


def first_code(series: Any) -> str | None:
    """Return the first code of a column of codes such as 01067, None for other columns.

    Codes consist of digits, and some have leading zeros, which numbers do not.
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
    """Check if a column was declared categorical."""
    from pandas import CategoricalDtype

    return isinstance(series.dtype, CategoricalDtype)


SAMPLE = 1000
"""Cells of a long column that decide if it is worth parsing completely."""


def _may_hold_numbers(series: Any) -> bool:
    """Check if there is a number among the first cells."""
    cells = series.dropna().iloc[:SAMPLE].unique()
    return any(undress(str(text).strip()) is not None for text in cells)
