"""Decimal commas and points of a CSV file: one of them for the whole file, or a reason why not.

Where a file has decimal commas, 1.660 is 1660 and not 1.66. The comma is recognized by a column
that cannot be read otherwise; all columns are then looked at again as they were written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from blockl0.text import listing

SHARE = 0.5
"""Of numbers with a comma among the texts of a column that are taken as a hint at the comma."""
EXPONENT = r"(?:[eE][-+]?\d+)?"
SPELLINGS = re.compile(
    rf"""[-+]?(?:
    (?P<whole>\d{{1,3}}(?:[eE][-+]?\d+)?)
    |(?P<long>\d{{4,}}{EXPONENT})                          # 1660, without a point
    |(?P<point_group>[1-9]\d{{0,2}}\.\d{{3}})              # 1.660, which is 1660 or 1.66
    |(?P<point_groups>[1-9]\d{{0,2}}(?:\.\d{{3}}){{2,}})   # 1.234.567
    |(?P<comma_group>[1-9]\d{{0,2}},\d{{3}})               # 1,234, which alone tells nothing either
    |(?P<comma>(?:\d+,\d*|,\d+){EXPONENT}|[1-9]\d{{0,2}}(?:\.\d{{3}})+,\d*)
    |(?P<point>(?:\d+\.\d*|\.\d+){EXPONENT})
    )""",
    re.VERBOSE,
)
"""How a number may be written; the first group that fits the whole of it."""
WITH_COMMA = ("whole", "long", "point_group", "point_groups", "comma_group", "comma")
"""Spellings in a file with decimal commas."""


@dataclass
class Decimals:
    """What was found out.

    Attributes
    ----------
    frame : DataFrame
        With numbers for what was written with a decimal comma.
    decimal : "point" or "comma"
    notes : list of str
    doubts : dict of str
        Why a column is refused when it is used.
    """

    frame: Any
    decimal: str = "point"
    notes: list[str] = field(default_factory=list)
    doubts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Cell:
    """A number that shows something, and where it is."""

    column: str
    row: int
    text: str

    def __str__(self) -> str:
        return f"{self.text!r} in row {self.row} of column {self.column!r}"


def settle(
    frame: Any,
    reread: Callable[[Sequence[int]], Any],
    *,
    decimal: str,
    has_free_comma: bool,
    as_text: Collection[str] = (),
    is_likely: bool = False,
) -> Decimals:
    """Find out about the comma, and convert the columns that have it.

    Parameters
    ----------
    frame : DataFrame
        As pandas reads it, with points as decimals.
    reread : callable
        Of numbers of columns: the same cells as text.
    decimal : "auto", "point" or "comma"
    has_free_comma : bool
        Whether the comma does not separate columns; else it is in quotes, and only a hint.
    as_text : collection of str
        Columns to leave alone.
    is_likely : bool
        Whether a file of the same origin had decimal commas.
    """
    if decimal == "point":
        return Decimals(frame)
    texts = dict(_texts(frame, as_text))
    found = Decimals(frame, doubts=dict(_mixed_columns(texts)))
    sure, hint = _evidence(texts, has_free_comma)
    if decimal == "auto" and sure is None and hint is None and not is_likely:
        return found
    numbers = dict(_numbers_as_written(frame, reread, as_text))
    if decimal == "comma" or sure is not None:
        _convert(found, texts | numbers, None if decimal == "comma" else sure)
    elif not any("point" in column.first for column in numbers.values()):
        why = ", as in the data of the fit" if hint is None else f", as {hint} suggests"
        for name, column in numbers.items():
            if "point_group" in column.first:
                found.doubts[name] = _two_meanings(column.first["point_group"], why)
    return found


# -- looking ---------------------------------------------------------------------------------------


class Column:
    """The cells of a column as they are written, and which spellings there are.

    Parameters
    ----------
    name : str
    series : Series
        Of texts, with gaps.

    Attributes
    ----------
    cells : dict of str
        By row, without those that are missing and without blanks around.
    first : dict of Cell
        Of each spelling of `SPELLINGS`, and "other".
    count : Counter
    """

    def __init__(self, name: str, series: Any) -> None:
        rows = np.flatnonzero(series.notna().to_numpy(np.bool_)).tolist()
        values = series.tolist()
        self.name = name
        self.cells = {row: str(values[row]).strip() for row in rows}
        self.first: dict[str, Cell] = {}
        self.count: Counter[str] = Counter()
        for row, text in self.cells.items():
            match = SPELLINGS.fullmatch(text)
            spelling = (match.lastgroup if match else None) or "other"
            self.count[spelling] += 1
            if spelling not in self.first:
                self.first[spelling] = Cell(name, row, text)

    def share(self, spellings: Sequence[str]) -> float:
        """Of cells in some of the spellings."""
        return sum(self.count[spelling] for spelling in spellings) / max(len(self.cells), 1)

    def numbers(self, n_rows: int) -> Any:
        """The column as it is meant with decimal commas; NaN where it is missing."""
        values = np.full(n_rows, np.nan)
        for row, text in self.cells.items():
            values[row] = float(text.replace(".", "").replace(",", "."))
        return values


def _texts(frame: Any, as_text: Collection[str]) -> Iterator[tuple[str, Column]]:
    """The columns that pandas left as text."""
    left_alone = set(as_text)
    for name, kind in zip(frame.columns, (t.kind for t in frame.dtypes), strict=True):
        if kind not in "biufcmM" and name not in left_alone:
            yield name, Column(name, frame[name])


def _numbers_as_written(
    frame: Any, reread: Callable[[Sequence[int]], Any], as_text: Collection[str]
) -> Iterator[tuple[str, Column]]:
    """The columns that pandas took for numbers with decimals."""
    left_alone = set(as_text)
    places = [
        j for j, kind in enumerate(frame.dtypes)
        if kind.kind == "f" and frame.columns[j] not in left_alone
    ]  # fmt: skip
    if not places:
        return
    written = reread(places)
    for i, j in enumerate(places):
        yield frame.columns[j], Column(frame.columns[j], written.iloc[:, i])


def _evidence(texts: dict[str, Column], has_free_comma: bool) -> tuple[Cell | None, Cell | None]:
    """(a decimal comma in a column of such numbers alone, one in a column that is less clear)."""
    sure = hint = None
    for column in texts.values():
        if "comma" not in column.first:
            continue
        share = column.share(WITH_COMMA)
        if share == 1.0 and has_free_comma:
            sure = sure or column.first["comma"]
        elif share >= SHARE:
            hint = hint or column.first["comma"]
    return sure, hint


def _mixed_columns(texts: dict[str, Column]) -> Iterator[tuple[str, str]]:
    """Columns of numbers alone, some with a decimal comma and some with a decimal point."""
    for name, column in texts.items():
        comma, point = column.first.get("comma"), column.first.get("point")
        if comma is None or point is None or "other" in column.first:
            continue
        why = (
            f"Column {name!r} has a decimal comma in row {comma.row}, {comma.text!r}, and a "
            f"decimal point in row {point.row}, {point.text!r}; write them in one way, or leave "
            f"the column out with --drop {name!r}."
        )
        yield name, why


# -- converting ------------------------------------------------------------------------------------


def _convert(found: Decimals, columns: dict[str, Column], sure: Cell | None) -> None:
    """Make numbers of what has decimal commas; `sure` shows them, None if they are asked for."""
    import pandas

    frame, found.decimal = found.frame, "comma"
    changed: list[str] = []
    grouped: list[str] = []
    made: dict[str, Any] = {}
    for name in frame.columns:
        column = columns.get(name)
        if column is None or not column.cells or "other" in column.first:
            continue
        doubt = found.doubts.get(name) or _doubt(column, sure)
        if doubt:
            found.doubts[name] = doubt
        elif {"comma", "comma_group", "point_group", "point_groups"} & column.first.keys():
            made[name] = column.numbers(len(frame))
            has_comma = {"comma", "comma_group"} & column.first.keys()
            (changed if has_comma else grouped).append(name)
    # all at once: a column after the other takes time that grows with the square of their number
    found.frame = pandas.DataFrame({name: made.get(name, frame[name]) for name in frame.columns})
    if changed:
        found.notes.append(f"Numbers with a decimal comma: {listing(changed)}.")
    if grouped:
        found.notes.append(
            "In a file with decimal commas, points are between thousands (1.660 is 1660): "
            f"{listing(grouped)}."
        )


def _doubt(column: Column, sure: Cell | None) -> str | None:
    """Why a column of numbers is not read as one with decimal commas."""
    point, grouped, plain = (column.first.get(s) for s in ("point", "point_group", "long"))
    if point is not None:
        other = "but --decimal comma was given" if sure is None else f"but there is {sure}"
        return (
            f"Column {column.name!r} has a decimal point in row {point.row}, {point.text!r}, "
            f"{other}; write the file in one way. --decimal point takes points for decimal and "
            "refuses commas, --decimal comma takes commas and refuses points, --drop leaves a "
            "column out."
        )
    is_clear = {"comma", "point_groups"} & column.first.keys()
    if sure is None or is_clear or grouped is None or plain is None:
        return None
    return _two_meanings(
        grouped,
        f" as in a file with decimal commas ({sure}), but {plain.text!r} in row {plain.row} has no "
        "point",
    )


def _two_meanings(cell: Cell, why: str) -> str:
    whole = cell.text.replace(".", "")
    return (
        f"Column {cell.column!r} holds {cell.text!r} in row {cell.row}: {whole} if points are "
        f"between thousands{why}; or {float(cell.text):g}. --decimal comma reads {whole}, "
        f"--decimal point {float(cell.text):g}, --drop {cell.column!r} leaves the column out."
    )
