"""Reading a sheet of an Excel workbook as a table."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, field
from typing import Any

from blockl0.app.tables.csv_files import MISSING, numbers_rows
from blockl0.app.tables.csv_layout import has_header, name_notes, unique_names
from blockl0.app.tables.spellings import ROW
from blockl0.text import did_you_mean, install_hint, listing


@dataclass
class Sheet:
    """A sheet as a DataFrame, indexed by row of the sheet, with notes."""

    frame: Any
    notes: list[str] = field(default_factory=list)


def read_excel(
    stream: Any,
    *,
    na: tuple[str, ...] = (),
    header: str = "auto",
    sheet: str | int | None = None,
    skip_rows: int = 0,
) -> Sheet:
    """Read the cells of a sheet, by default the first, without empty margins."""
    name, rows, notes = _cells(stream, sheet)
    numbered = list(enumerate(rows, 1))[skip_rows:]
    filled = [(i, row) for i, row in numbered if any(cell is not None for cell in row)]
    if not filled:
        raise ValueError(f"The sheet {name!r} is empty; --sheet chooses another one.")
    places = [j for j in range(len(rows[0])) if any(row[j] is not None for _, row in filled)]
    table = [(i, [row[j] for j in places]) for i, row in filled]
    texts = [["" if cell is None else str(cell) for cell in row] for _, row in table[:2]]
    is_named = has_header(texts[0], texts[-1], ";") if header == "auto" else header == "yes"
    names = texts[0] if is_named else [f"x{j}" for j in range(len(places))]
    notes += name_notes(names, is_named)
    empty = [j for j in range(len(places)) if all(row[j] is None for _, row in table[is_named:])]
    if formulas := _with_formulas(stream, name, [places[j] for j in empty]):
        shown = [names[places.index(j)] for j in formulas]
        notes.append(
            f"Formulas whose values are not in the file: {listing(shown)}; open and save it in a "
            "spreadsheet program."
        )
    frame = _frame(table[is_named:], unique_names(names), {*MISSING, *na})
    if is_named and names[0] == "" and numbers_rows(frame.iloc[:, 0]):
        frame = frame.iloc[:, 1:].copy()
        notes.append("The first column has no name and numbers the rows: dropped.")
    return Sheet(frame, notes)


def _with_formulas(stream: Any, name: str, places: list[int]) -> list[int]:
    """Select empty columns that hold formulas."""
    if not places:
        return []
    from openpyxl import load_workbook

    book = load_workbook(stream, read_only=True)
    try:
        rows = [row for row in book[name].iter_rows(values_only=True)]
    finally:
        book.close()
    return [j for j in places if any(str(row[j]).startswith("=") for row in rows if j < len(row))]


def _cells(stream: Any, sheet: str | int | None) -> tuple[str, list[Any], list[str]]:
    """Return (name of the sheet, its rows, notes)."""
    try:
        from openpyxl import load_workbook
        from openpyxl.utils.exceptions import InvalidFileException
    except ImportError as error:
        raise ModuleNotFoundError(
            f"Reading Excel needs openpyxl: {install_hint('openpyxl')}; or save the sheet as CSV."
        ) from error
    try:
        book = load_workbook(stream, read_only=True, data_only=True)
    except (zipfile.BadZipFile, InvalidFileException, KeyError, OSError, ValueError) as error:
        raise ValueError(
            "This is not an Excel workbook (.xlsx); save it as CSV or .xlsx."
        ) from error
    try:
        known = book.sheetnames
        name = _sheet_name(sheet, known)
        page = book[name]
        page.reset_dimensions()  # some programs store dimensions that are too small
        rows = [list(row) for row in page.iter_rows(values_only=True)]
    finally:
        book.close()
    width = max(map(len, rows), default=0)
    rows = [row + [None] * (width - len(row)) for row in rows]
    others = [other for other in known if other != name]
    said = f"The sheet {name!r} is read; there are also {listing(others)} (--sheet NAME)."
    return name, rows, [said] if others and sheet is None else []


def _sheet_name(sheet: str | int | None, known: list[str]) -> str:
    """Find a sheet by name, or by number from 1."""
    if sheet is None:
        return known[0]
    if str(sheet) in known:
        return str(sheet)
    if str(sheet).isdigit() and 1 <= int(sheet) <= len(known):
        return known[int(sheet) - 1]
    hint = did_you_mean(sheet, known)
    raise ValueError(f"There is no sheet {str(sheet)!r}.{hint} There are {listing(known)}.")


def _frame(rows: list[tuple[int, list[Any]]], names: list[str], missing: set[str]) -> Any:
    """Make columns of the types of their cells."""
    import pandas

    index = pandas.Index([i for i, _ in rows], name=ROW)
    columns = {}
    for j, name in enumerate(names):
        cells = [row[j] for _, row in rows]
        known = [None if isinstance(c, str) and c.strip() in missing else c for c in cells]
        columns[name] = pandas.Series(known, index=index, dtype=object).infer_objects()
    return pandas.DataFrame(columns, index=index)
