"""Decimal commas and points of a CSV file: one of them for the whole file, or a reason why not.

Where a file has decimal commas, 1.660 is 1660 and not 1.66. The comma is recognized by a column
that cannot be read otherwise; all columns are then looked at again as they were written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from blockl0.tables.column_kinds import COMMA_NUMBER, POINT_NUMBER
from blockl0.tables.recipe import listing

SHARE = 0.5
"""Of numbers with a comma among the texts of a column that are taken as a hint at the comma."""
GROUPED_BY_POINT = r"[-+]?[1-9]\d{0,2}\.\d{3}"
"""1.660, which is 1660 or 1.66; any other number with one point and no comma has decimals."""
GROUPED_BY_COMMA = r"[-+]?[1-9]\d{0,2}(?:,\d{3})+"
"""1,234, which alone tells nothing either."""
UNGROUPED = r"[-+]?\d{4,}"


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
        _convert(found, texts, numbers, None if decimal == "comma" else sure)
    elif not any(_decimal_points(cells).any() for cells in numbers.values()):
        why = ", as in the data of the fit" if hint is None else f", as {hint} suggests"
        for name, cells in numbers.items():
            cell = _first(name, cells, cells.str.fullmatch(GROUPED_BY_POINT))
            if cell is not None:
                found.doubts[name] = _two_meanings(cell, why)
    return found


# -- looking ---------------------------------------------------------------------------------------


def _texts(frame: Any, as_text: Collection[str]) -> Iterator[tuple[str, Any]]:
    """The columns of text with a digit and a comma or a point somewhere, without blanks around."""
    left_alone = set(as_text)
    for j, name in enumerate(frame.columns):
        series = frame.iloc[:, j]
        if series.dtype.kind in "biufcmM" or name in left_alone:
            continue
        cells = series.dropna().astype(str).str.strip()
        if cells.str.contains(r"\d[.,]|[.,]\d").any():
            yield name, cells


def _numbers_as_written(
    frame: Any, reread: Callable[[Sequence[int]], Any], as_text: Collection[str]
) -> Iterator[tuple[str, Any]]:
    """The cells of the columns with a point in them that pandas took for numbers."""
    places = [j for j in range(frame.shape[1]) if frame.iloc[:, j].dtype.kind == "f"]
    places = [j for j in places if frame.columns[j] not in set(as_text)]
    if not places:
        return
    written = reread(places)
    for i, j in enumerate(places):
        cells = written.iloc[:, i].dropna().astype(str).str.strip()
        if cells.str.contains(".", regex=False).any():
            yield frame.columns[j], cells


def _decimal_points(cells: Any) -> Any:
    """Where a point cannot but begin the decimals."""
    is_point = cells.str.contains(".", regex=False) & cells.str.fullmatch(POINT_NUMBER)
    return is_point & ~cells.str.fullmatch(GROUPED_BY_POINT)


def _decimal_commas(cells: Any) -> Any:
    is_comma = cells.str.contains(",", regex=False) & cells.str.fullmatch(COMMA_NUMBER)
    return is_comma & ~cells.str.fullmatch(GROUPED_BY_COMMA)


def _evidence(texts: dict[str, Any], has_free_comma: bool) -> tuple[Cell | None, Cell | None]:
    """(a decimal comma in a column of such numbers alone, one in a column that is less clear)."""
    sure = hint = None
    for name, cells in texts.items():
        cell = _first(name, cells, _decimal_commas(cells))
        if cell is None:
            continue
        share = cells.str.fullmatch(COMMA_NUMBER).mean()
        if share == 1.0 and has_free_comma:
            sure = sure or cell
        elif share >= SHARE:
            hint = hint or cell
    return sure, hint


def _first(name: str, cells: Any, where: Any) -> Cell | None:
    """The first cell of a kind; the labels of the rows are their numbers."""
    if not where.any():
        return None
    row = where.idxmax()
    return Cell(name, int(row), str(cells[row]))


def _mixed_columns(texts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Columns of numbers alone, some with a decimal comma and some with a decimal point."""
    for name, cells in texts.items():
        comma = _first(name, cells, _decimal_commas(cells))
        point = _first(name, cells, _decimal_points(cells))
        is_number = cells.str.fullmatch(COMMA_NUMBER) | cells.str.fullmatch(POINT_NUMBER)
        if comma is not None and point is not None and is_number.all():
            why = (
                f"Column {name!r} has a decimal comma in row {comma.row}, {comma.text!r}, and a "
                f"decimal point in row {point.row}, {point.text!r}; write them in one way, or "
                f"leave the column out with --drop {name!r}."
            )
            yield name, why


# -- converting ------------------------------------------------------------------------------------


def _convert(
    found: Decimals, texts: dict[str, Any], numbers: dict[str, Any], sure: Cell | None
) -> None:
    """Make numbers of what has decimal commas; `sure` shows them, None if they are asked for."""
    found.decimal = "comma"
    changed, grouped = [], []
    for name, cells in (texts | numbers).items():
        is_comma = cells.str.fullmatch(COMMA_NUMBER)
        doubt = found.doubts.get(name) or (_doubt(name, cells, sure) if name in numbers else None)
        if name in texts and not doubt and is_comma.all():
            doubt = _doubt(name, cells, sure)
        if doubt:
            found.doubts[name] = doubt
        elif is_comma.all():
            plain = cells.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
            found.frame[name] = plain.astype(np.float64).reindex(found.frame.index)
            has_comma = cells.str.contains(",", regex=False).any()
            (changed if has_comma else grouped).append(name)
    order = {name: j for j, name in enumerate(found.frame.columns)}
    if changed:
        names = listing(sorted(changed, key=order.__getitem__))
        found.notes.append(f"Numbers with a decimal comma: {names}.")
    if grouped:
        names = listing(sorted(grouped, key=order.__getitem__))
        found.notes.append(
            f"In a file with decimal commas, points are between thousands (1.660 is 1660): {names}."
        )


def _doubt(name: str, cells: Any, sure: Cell | None) -> str | None:
    """Why a column of numbers is not read as one with decimal commas."""
    point = _first(name, cells, _decimal_points(cells))
    if point is not None:
        other = "but --decimal comma was given" if sure is None else f"but there is {sure}"
        return (
            f"Column {name!r} has a decimal point in row {point.row}, {point.text!r}, {other}; "
            "write the file in one way. --decimal point takes points for decimal and refuses "
            "commas, --decimal comma takes commas and refuses points, --drop leaves a column out."
        )
    if sure is None or cells.str.contains(r",|\..*\.").any():
        return None
    grouped = _first(name, cells, cells.str.fullmatch(GROUPED_BY_POINT))
    plain = _first(name, cells, cells.str.fullmatch(UNGROUPED))
    if grouped is None or plain is None:
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
