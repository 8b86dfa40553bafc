"""Decimal commas and points of a file: one for the whole file, or a reason to refuse it.

With decimal commas, 1.660 is 1660 and not 1.66; with decimal points, 1,660 is 1660. A column that
allows only one reading decides for the file; all columns are then read again as written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from blockl0.app.tables.spellings import (
    NEUTRAL,
    READ_AS,
    SAMPLE,
    Column,
    ShownCell,
    place_of,
    text_columns,
    to_float,
    undress,
)
from blockl0.text import listing

Numbers = Callable[[], Iterator[tuple[str, Column]]]

SHARE = 0.5
"""Share of numbers with a comma above which a text column hints at decimal commas."""
OTHER = {"comma": "point", "point": "comma"}


@dataclass
class Decimals:
    """Outcome of `resolve_decimals`.

    Attributes
    ----------
    frame : DataFrame
        With numbers in place of their other spellings.
    decimal : "point" or "comma"
    notes : list of str
    doubts : dict of str
        Why a column is refused when it is used.
    shown : Shown or None
        The cell that shows the decimal mark, if there is one.
    lone : dict of str
        Columns read without evidence, and what else they could mean.
    looked : dict of Column
        The converted columns, as written.
    last_row : int
        Last row of a text file, as in a spreadsheet.
    skipped : list of str
        Which of its rows were left out on request.
    """

    frame: Any
    decimal: str = "point"
    notes: list[str] = field(default_factory=list)
    doubts: dict[str, str] = field(default_factory=dict)
    shown: Shown | None = None
    lone: dict[str, str] = field(default_factory=dict)
    looked: dict[str, Column] = field(default_factory=dict)
    last_row: int = 0
    skipped: list[str] = field(default_factory=list)

    def thousands(self, name: str) -> ShownCell | None:
        """Return the first cell of a converted column with a thousands separator."""
        column = self.looked[name]
        return column.first.get(f"{OTHER[self.decimal]}_group") or column.spaced


class Shown(NamedTuple):
    """A decimal mark, and an unambiguous cell that shows it."""

    mark: str
    cell: ShownCell


def resolve_decimals(
    frame: Any,
    reread: Callable[[Sequence[int]], Any] | None,
    *,
    decimal: str,
    has_free_comma: bool = True,
    as_text: Collection[str] = (),
    is_likely: bool = False,
    shown: Shown | None = None,
) -> Decimals:
    """Find the decimal mark of a table, and convert numbers spelled otherwise.

    Parameters
    ----------
    frame : DataFrame
        As read by pandas, with decimal points.
    reread : callable or None
        Returns columns, given by position, as text. None if numbers are numbers already.
    decimal : "auto", "point" or "comma"
    has_free_comma : bool
        Whether the comma is not the separator; otherwise it is quoted, and only a hint.
    as_text : collection of str
        Columns to leave alone.
    is_likely : bool
        Whether a file of the same origin had decimal commas.
    shown : Shown, optional
        Evidence from another part of the same file, for "auto".
    """
    left_alone = set(as_text)
    texts = {series.name: Column(series) for series in text_columns(frame, left_alone)}
    found = Decimals(frame, doubts=dict(_mixed_columns(texts)))
    if decimal == "auto":
        found.doubts |= _mixed_groups(texts)
    sure, hint = _commas(texts, has_free_comma)
    numbers = partial(_numbers_as_written, frame, reread, left_alone)
    if decimal == "auto" and shown is not None:
        columns = texts | dict(numbers()) if shown.mark == "comma" else texts
        found.shown = shown
        _convert(found, columns, shown.mark, shown.cell)
        return found
    found.shown = _evidence(frame, reread is not None, texts, sure)
    if decimal == "comma" or (decimal == "auto" and sure is not None):
        _convert(found, texts | dict(numbers()), "comma", None if decimal == "comma" else sure)
        return found
    if decimal == "auto" and (hint is not None or is_likely):
        _doubt_groups(found, _only(texts, "point") | dict(numbers()), hint)
    elif decimal == "auto" and (reread is None or not _shows_points(frame)):
        _doubt_lone_groups(found, texts, numbers)
    _convert_points(found, texts, numbers, decimal)
    return found


# -- looking ---------------------------------------------------------------------------------------


def _numbers_as_written(
    frame: Any, reread: Callable[[Sequence[int]], Any] | None, left_alone: Collection[str]
) -> Iterator[tuple[str, Column]]:
    """Yield the columns that pandas read as floats, as written, one by one."""
    places = [
        j for j, kind in enumerate(frame.dtypes)
        if kind.kind == "f" and frame.columns[j] not in left_alone
    ]  # fmt: skip
    if not places or reread is None:
        return
    written = reread(places).set_axis(frame.index)
    for i, j in enumerate(places):
        yield frame.columns[j], Column(written.iloc[:, i].rename(frame.columns[j]))


def _commas(
    texts: dict[str, Column], has_free_comma: bool
) -> tuple[ShownCell | None, ShownCell | None]:
    """Return (an unambiguous decimal comma, a likely one), each a cell or None."""
    sure = hint = None
    for column in texts.values():
        shown = column.sure("comma")
        if shown is None or column.sure("point"):
            continue
        share = column.share(READ_AS["comma"])
        if share == 1.0 and has_free_comma:
            sure = sure or shown
        elif share >= SHARE:
            hint = hint or shown
    return sure, hint


def _evidence(
    frame: Any, is_written: bool, texts: dict[str, Column], sure: ShownCell | None
) -> Shown | None:
    """Find a cell that shows the decimal mark, among numbers in the first rows only."""
    if sure is not None:
        return Shown("comma", sure)
    point = _point_in(texts)
    if point is not None:
        return Shown("point", point)
    for j in np.flatnonzero([kind.kind == "f" for kind in frame.dtypes]) if is_written else ():
        values = frame.iloc[:SAMPLE, j].to_numpy(np.float64)
        at = np.flatnonzero(are_points(values))
        if at.size:
            row = place_of(frame, int(at[0]))
            return Shown("point", ShownCell(str(frame.columns[j]), row, f"{values[at[0]]:.10g}"))
    return None


def _point_in(texts: dict[str, Column]) -> ShownCell | None:
    """Find an unambiguous decimal point in columns of text that hold nothing but numbers."""
    found = (column.sure("point") for column in _only(texts, "point").values())
    return next(filter(None, found), None)


def _mixed_columns(texts: dict[str, Column]) -> Iterator[tuple[str, str]]:
    """Yield numeric columns that contradict themselves, and how."""
    for name, column in texts.items():
        said = None
        if not column.has("other"):
            said = _two_marks(column) or two_units(name, column.units)
        if said:
            yield name, said


def _mixed_groups(texts: dict[str, Column]) -> dict[str, str]:
    """Describe columns with 1.660 and 1,660, or one of these and 1 660."""
    said = {}
    for name, column in texts.items():
        cells = [*map(column.first.get, ("point_group", "comma_group")), column.spaced]
        cells = [cell for cell in cells if cell is not None]
        if len(cells) > 1 and not column.has("other"):
            one, other = cells[:2]
            point, comma = (
                " and ".join(f"{_read(cell.text, mark):.10g}" for cell in (one, other))
                for mark in ("point", "comma")
            )
            said[name] = (
                f"Column {name!r} holds {one.text!r} in {one.row} and {other.text!r} in "
                f"{other.row}: thousands or decimals; --decimal point reads {point}, --decimal "
                f"comma {comma}, --drop {name!r} leaves the column out."
            )
    return said


def _two_marks(column: Column) -> str | None:
    comma, point = column.sure("comma"), column.sure("point")
    if comma is None or point is None:
        return None
    return (
        f"Column {column.name!r} has a decimal comma in {comma.row}, {comma.text!r}, and a decimal "
        f"point in {point.row}, {point.text!r}; write them in one way, or leave the column out "
        f"with --drop {column.name!r}."
    )


def two_units(name: str, units: dict[str, ShownCell]) -> str | None:
    """Describe two currencies, or numbers with and without percent sign; 0 needs no unit."""
    if len(units) < 2 or not ("%" in units or len(units.keys() - {""}) > 1):
        return None
    one, other = list(units.values())[:2]
    return (
        f"Column {name!r} holds {one.text!r} in {one.row} and {other.text!r} in {other.row}: "
        "numbers with different units; write them in one unit, or leave the column out with "
        f"--drop {name!r}."
    )


# -- converting ------------------------------------------------------------------------------------


def _convert(
    found: Decimals, columns: dict[str, Column], decimal: str, sure: ShownCell | None
) -> None:
    """Convert all unambiguous columns; `sure` is the evidence, None if the mark was requested."""
    frame, found.decimal = found.frame, decimal
    with_mark: list[str] = []
    grouped: list[str] = []
    dressed: list[str] = []
    made: dict[str, Any] = {}
    for name in frame.columns:
        column = columns.get(name)
        if column is None or not column.n_cells or column.has("other") or name in found.doubts:
            continue
        doubt = _contradiction(column, decimal, sure)
        if doubt:
            found.doubts[name] = doubt
        elif frame[name].dtype.kind != "f" or column.has(f"{OTHER[decimal]}_group"):
            made[name] = column.values(decimal)
            found.looked[name] = column
            if column.is_dressed:
                dressed.append(column.example(decimal))
            elif decimal == "comma" and column.has("comma", "comma_group"):
                with_mark.append(name)
            elif column.has_mark(OTHER[decimal]):
                grouped.append(name)
    _replace(found, made)
    _say(found, with_mark, grouped, dressed)


def _convert_points(
    found: Decimals, texts: dict[str, Column], numbers: Numbers, decimal: str
) -> None:
    """Convert text columns to numbers with decimal points."""
    open_ = {name for name, column in texts.items() if _is_open(column)}
    if decimal == "auto" and open_:
        written = (column.first["point"] for _, column in numbers() if column.has("point"))
        point = _point_in(texts) or next(written, None)
        if point is None:
            for name in open_:
                found.doubts.setdefault(name, two_meanings(texts[name].first["comma_group"]))
        _convert(found, _only(texts, "point"), "point", point)
    else:
        _convert(found, _only(texts, "point"), "point", None)


def _is_open(column: Column) -> bool:
    """Check if commas may be decimal or separate thousands."""
    is_point = column.share(READ_AS["point"]) == 1.0 and column.sure("point") is None
    return is_point and column.has("comma_group")


def _only(texts: dict[str, Column], decimal: str) -> dict[str, Column]:
    """Select columns that can be read with a mark; the others stay text."""
    return {name: column for name, column in texts.items() if column.share(READ_AS[decimal]) == 1.0}


def _replace(found: Decimals, made: dict[str, Any]) -> None:
    # all at once: column by column takes quadratic time
    import pandas

    if made:
        frame = found.frame
        columns = {name: made.get(name, frame[name]) for name in frame.columns}
        found.frame = pandas.DataFrame(columns, index=frame.index)


def _say(found: Decimals, with_mark: list[str], grouped: list[str], dressed: list[str]) -> None:
    if with_mark:
        found.notes.append(f"Numbers with a decimal comma: {listing(with_mark)}.")
    if grouped:
        mark, example = ("points", "1.660") if found.decimal == "comma" else ("commas", "1,660")
        found.notes.append(
            f"In a file with decimal {found.decimal}s, {mark} are between thousands ({example} is "
            f"1660): {listing(grouped)}."
        )
    if dressed:
        found.notes.append(f"Read as numbers: {listing(dressed)}.")


# -- words of refusal ------------------------------------------------------------------------------


def _contradiction(column: Column, decimal: str, sure: ShownCell | None) -> str | None:
    """Say why a column contradicts this decimal mark, None if it does not."""
    other = OTHER[decimal]
    wrong = column.sure(other)
    if wrong is not None:
        why = f"but --decimal {decimal} was given" if sure is None else f"but there is {sure}"
        return (
            f"Column {column.name!r} has a decimal {other} in {wrong.row}, {wrong.text!r}, {why}; "
            "write the file in one way. --decimal point takes points for decimal and refuses "
            "decimal commas, --decimal comma takes commas and refuses decimal points, --drop "
            "leaves a column out."
        )
    grouped, plain = column.first.get(f"{other}_group"), column.first.get("long")
    if sure is None or column.sure(decimal) or grouped is None or plain is None:
        return None
    return two_meanings(
        grouped,
        f" as in a file with decimal {decimal}s ({sure}), but {plain.text!r} in {plain.row} has no "
        f"{other}",
    )


def _doubt_groups(found: Decimals, numbers: dict[str, Column], hint: ShownCell | None) -> None:
    """Refuse 1.660 where decimal commas are likely, unless another column holds 0.5."""
    if any(column.has("point") for column in numbers.values()):
        return
    why = ", as in the data of the fit" if hint is None else f", as {hint} suggests"
    for name, column in numbers.items():
        if column.has("point_group"):
            found.doubts[name] = two_meanings(column.first["point_group"], why)


def _shows_points(frame: Any) -> bool:
    """Check if a number in the first rows must have a decimal point."""
    floats = [kind.kind == "f" for kind in frame.dtypes]
    return bool(np.any(are_points(frame.iloc[:SAMPLE, floats].to_numpy(np.float64))))


def are_points(values: Any) -> Any:
    """Check which numbers cannot be like 1.660 with a thousands point."""
    size = np.abs(np.where(np.isfinite(values), values, 0.0))
    rest = np.abs(1e3 * size - np.rint(1e3 * size))
    return (size != np.rint(size)) & ((size < 1.0) | (size >= 1e3) | (rest > 1e-6))


def _doubt_lone_groups(found: Decimals, texts: dict[str, Column], numbers: Numbers) -> None:
    """Note columns of 1.660 without evidence, refusing them beside integers such as 995."""
    columns = _only(texts, "point") | dict(numbers())
    if any(column.sure("point") for column in columns.values()):
        return
    for name, column in columns.items():
        if not column.has("point_group"):
            continue
        cell = column.first["point_group"]
        plain = _long_whole(column)
        if plain is not None:
            found.doubts.setdefault(name, two_meanings(cell, f", as {plain!r} beside it suggests"))
        elif name not in found.doubts:
            found.lone[name] = two_meanings(cell)
            found.notes.append(
                f"{cell} is read as {_read(cell.text, 'point'):.10g}: nothing tells whether its "
                f"point is between thousands; --decimal comma reads "
                f"{_read(cell.text, 'comma'):.10g}."
            )


def _long_whole(column: Column) -> str | None:
    """Find an integer of two digits or more, unlikely among numbers with three decimals."""
    for text in column.texts:
        number = undress(text)
        if number and number.spelling in NEUTRAL and len(number.bare.lstrip("-")) > 1:
            return text
    return None


def two_meanings(cell: ShownCell, why: str = "") -> str:
    """Describe both readings of 1.660 or 1,660, and the option for each."""
    bare = cell.text
    mark = "point" if "." in bare else "comma"
    whole, small = (f"{_read(bare, decimal):.10g}" for decimal in (OTHER[mark], mark))
    return (
        f"Column {cell.column!r} holds {cell.text!r} in {cell.row}: {whole} if {mark}s are "
        f"between thousands{why}; or {small}. --decimal {OTHER[mark]} reads {whole}, --decimal "
        f"{mark} {small}, --drop {cell.column!r} leaves the column out."
    )


def _read(text: str, decimal: str) -> float:
    number = undress(text)
    return to_float(number.bare if number else text, decimal)
