"""Layout of a CSV file: how its lines divide into columns, and what would read a refused file."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from blockl0.app.tables.csv_text import (
    BREAK,
    DELIMITERS,
    LONGEST_RECORD,
    CsvRecord,
    Dialect,
    below_preamble,
    lines_of,
    plainly,
    records,
)
from blockl0.app.tables.spellings import READ_AS, undress
from blockl0.text import count, cut, listing

EXCEL_HINT = "sep="
"""Start of a first line that tells Excel the separator."""
NOTHING = "This is not a table: the file is empty."
SEPARATORS = (",", "\t", ";", "|")
MOST_PREAMBLE = 20
"""Lines above a header to search at most."""
LOOKED_AT = 2000
"""Lines of a refused file on which other dialects are tried."""
SHOWN = 5
"""Rows named in a note at most."""


class CsvLayout(NamedTuple):
    """How the lines of a file divide into columns.

    Attributes
    ----------
    separator : str
    is_named : bool
        Whether the first line holds the names.
    head : list of str
        The names in that line; otherwise the columns by position.
    columns : list of str
        The same, made unique.
    is_below : bool
        Whether the text starts below that line.
    """

    separator: str
    is_named: bool
    head: list[str]
    columns: list[str]
    is_below: bool = False

    @property
    def has_head(self) -> bool:
        """Whether the first line of the text holds the names."""
        return self.is_named and not self.is_below

    @property
    def has_unnamed_first(self) -> bool:
        """Whether the first column has no name, as when an index was saved too."""
        return self.is_named and self.head[0] == ""


class Rows(NamedTuple):
    """The rows of a text that fit its layout.

    Attributes
    ----------
    content : bytes
        Without the other rows.
    numbers : sequence of int
        The row number of each, as in a spreadsheet; the header has none.
    last : int
        The last row, even if it is empty.
    bad : list of (CsvRecord, str)
        The other rows, and why they do not fit.
    """

    content: bytes
    numbers: Any
    last: int
    bad: list[tuple[CsvRecord, str]]


def layout_of(content: bytes, dialect: Dialect, header: str) -> CsvLayout:
    """Infer the layout from the first two rows, or refuse them and say what would help."""
    first, second = _first_records(content, dialect.mark)
    if not first:
        raise ValueError(NOTHING)
    _refuse_other_layouts(first, second, dialect)
    separator = separator_of(first, second, dialect)
    head = _cells(first, separator, dialect)
    swallowed = head is not None and any(_is_row(name, separator, len(head)) for name in head)
    if head is None or swallowed:
        raise ValueError(_broken_header(content, dialect, header))
    below = _cells(second, separator, dialect) or []
    is_named = has_header(head, below, separator) if header == "auto" else header == "yes"
    if is_named and header == "auto":
        _refuse_title(content, head, separator, dialect)
    names = head if is_named else [f"x{j}" for j in range(len(head))]
    return CsvLayout(separator, is_named, names, unique_names(names))


def rows_of(content: bytes, layout: CsvLayout, dialect: Dialect) -> Rows:
    """Split rows into those with as many values as there are names, and others.

    Texts without quotes are counted all at once.
    """
    if not dialect.mark or dialect.mark.encode() not in content:
        equal = _equal_lines(content, layout)
        if equal is not None:
            return equal
    lines = lines_of(content)
    numbers, bad, kept, is_head = [], [], [], layout.has_head
    last = 0
    for record in records(lines, layout.separator, dialect):
        last = record.row
        if record.is_empty:
            continue
        why = _fault(record, layout, dialect, is_head=is_head)
        if why:
            bad.append((record, why))
        else:
            kept.append((record.start, record.stop))
            if not is_head:
                numbers.append(record.row)
        is_head = False
    if bad:
        content = "".join("".join(lines[a:b]) for a, b in kept).encode()
    return Rows(content, numbers, last, bad)


def _equal_lines(content: bytes, layout: CsvLayout) -> Rows | None:
    """Return the rows of a text without quotes if all have as many cells, else None."""
    if len(layout.head) == 1 or (layout.is_named and _repeats_head(content, layout)):
        return None
    data = np.frombuffer(content, dtype=np.uint8)
    end = 10 if b"\n" in content else 13
    if end == 10 and content.count(b"\r") != content.count(b"\r\n"):
        return None
    ends = np.flatnonzero(data == end)
    if len(data) and (not len(ends) or ends[-1] != len(data) - 1):
        ends = np.append(ends, len(data))
    starts = np.concatenate([[0], ends[:-1] + 1])
    places = np.flatnonzero(data == ord(layout.separator))
    n_marks = np.searchsorted(places, ends) - np.searchsorted(places, starts)
    lengths = ends - starts
    is_empty = (lengths == 0) | ((lengths == 1) & (data[np.minimum(starts, len(data) - 1)] == 13))
    if np.any(n_marks[~is_empty] != len(layout.head) - 1):
        return None
    numbers = (1 + np.flatnonzero(~is_empty))[int(layout.has_head) :]
    return Rows(content, numbers, len(ends), [])


def _repeats_head(content: bytes, layout: CsvLayout) -> bool:
    """Check if the names may occur again: whether the first nonempty line is repeated."""
    if layout.is_below:
        return layout.head[0].encode() in content
    line = next((part for part in BREAK.split(content[: 1 << 20]) if part.strip()), b"")
    return content.count(line) > 1


def _fault(record: CsvRecord, layout: CsvLayout, dialect: Dialect, is_head: bool) -> str:
    """Say why a row does not fit, "" if it does."""
    cells, n_columns, above = record.cells, len(layout.head), dialect.skip_rows
    where = f"row {record.row + above}"
    if record.start + 1 != record.row and not layout.is_below:
        where += f" (line {record.start + 1 + above})"
    if cells is None:
        return f"{where} holds a quote that is not closed, or inside of a value"
    n = len(cells)
    if n > n_columns or (n < n_columns and not dialect.fill_short_rows):
        return f"{where} holds {count(n, 'value')}"
    if not is_head and layout.is_named and n > 1 and [c.strip() for c in cells] == layout.head:
        return f"{where} repeats the names"
    return ""


# -- refusals --------------------------------------------------------------------------------------


def skipped_note(bad: Sequence[tuple[CsvRecord, str]], above: int) -> str:
    """Say which rows were left out, given the number of lines above."""
    others = listing([str(record.row + above) for record, _ in bad[1:]], SHOWN)
    more = f"; neither do rows {others} fit" if others else ""
    return f"{count(len(bad), 'row')} left out, as asked: {bad[0][1]}{more}."


def unequal_rows(
    content: bytes, layout: CsvLayout, dialect: Dialect, header: str, rows: Rows
) -> str:
    """Say which row does not fit, and what would read the file."""
    record, why = rows.bad[0]
    n_bad, n_rows = len(rows.bad), len(rows.bad) + len(rows.numbers)
    said = f"This is not a table with equal rows: {why}"
    if record.cells is not None and len(record.cells) != len(layout.head):
        said += f", but the first row {len(layout.head)}, separated by {layout.separator!r}"
    said += f"; {n_bad} of {n_rows} rows do not fit" if n_bad > 1 else ""
    is_top = layout.is_named and 2 * n_bad > n_rows
    better = _better_dialect(content, dialect, header, n_bad, is_top=is_top)
    cures = [better] if better else []
    if 2 * n_bad <= n_rows:
        cures.append(f"--skip-bad-rows leaves {'it' if n_bad == 1 else 'them'} out")
    is_short = (r.cells is not None and len(r.cells) < len(layout.head) for r, _ in rows.bad)
    if n_bad < n_rows and all(is_short):
        cures.append("--fill-short-rows takes the values behind the last one for missing")
    if not cures:
        cures.append(
            "Give the letter between values (--delimiter), or the lines above (--skip-rows)"
        )
    return f"{said}. {', '.join(cures)}."


def _broken_header(content: bytes, dialect: Dialect, header: str) -> str:
    """Say that the names cannot be read, and what would read the rows."""
    said = (
        f"The row of names{_below(dialect)} holds a quote that is not closed, or inside of a name"
    )
    better = _better_dialect(content, dialect, header, LOOKED_AT, is_top=True)
    return f"{said}; {better}." if better else f"{said}; write the names again."


def _below(dialect: Dialect) -> str:
    return f" below {count(dialect.skip_rows, 'line')}" if dialect.skip_rows else ""


def _refuse_other_layouts(first: str, second: str, dialect: Dialect) -> None:
    """Refuse two layouts by name: a separator line for Excel, and columns separated by blanks."""
    line = first.strip()
    if line.lower().startswith(EXCEL_HINT) and len(line) == len(EXCEL_HINT) + 1:
        raise ValueError(
            f"The first line, {line!r}, is for Excel alone; --skip-rows {dialect.skip_rows + 1} "
            f"--delimiter '{line[-1]}' reads the lines below."
        )
    words, below = first.split(), second.split()
    has_mark = dialect.delimiter or any(mark in first + second for mark in SEPARATORS)
    if not has_mark and 1 < len(words) == len(below) and all(map(undress, below)):
        raise ValueError(
            f"The columns are separated by blanks, as in {cut(second.strip())!r}; --delimiter "
            "blank reads them."
        )


def _refuse_title(content: bytes, head: list[str], separator: str, dialect: Dialect) -> None:
    """Refuse a first row naming few columns if a row below names all."""
    n_named = sum(map(bool, head))
    if len(head) < 3 or 2 * n_named > len(head):
        return
    lines = lines_of(b"".join(content[: 1 << 16].splitlines(keepends=True)[: MOST_PREAMBLE + 1]))
    for record in records(lines, separator, dialect):
        cells = [cell.strip() for cell in record.cells or []]
        kinds = {_kind(cell, separator) for cell in cells}
        if len(cells) == len(head) and kinds == {"text"} and record.start:
            n = record.start + dialect.skip_rows
            raise ValueError(
                f"The first row names {n_named} of {len(head)} columns, and row "
                f"{record.row + dialect.skip_rows} all of them: --skip-rows {n} begins there, "
                "--header yes takes the first row for the names."
            )


def _better_dialect(
    content: bytes, dialect: Dialect, header: str, n_bad: int, is_top: bool
) -> str | None:
    """Name options that make most of the misfitting rows fit, None if there are none."""
    lines = lines_of(content)[:LOOKED_AT]
    head = "".join(lines).encode()
    found: list[tuple[int, str]] = []
    for options, other, top in _others(dialect, lines, is_top):
        text = below_preamble(head, top)
        faults = _n_faults(text, other, header)
        if faults is not None:
            options += " --header no" if top and not faults[1] else ""
            options += " --skip-bad-rows" if faults[0] else ""
            what = "rows, and calls columns x0, x1, …" if "--header no" in options else "file"
            found.append((faults[0], f"{options} reads the {what}"))
    best = min(found, key=lambda pair: pair[0], default=(n_bad, ""))
    return best[1] if 2 * best[0] < min(n_bad, len(lines)) and best[1] else None


def _others(dialect: Dialect, lines: list[str], is_top: bool) -> Iterator[tuple[str, Dialect, int]]:
    """Yield dialects to try: (options, dialect, further lines to skip)."""
    for quote in ("backslash", "none", "single"):
        if quote != dialect.quote:
            yield f"--quote {quote}", replace(dialect, quote=quote), 0
    if not is_top:
        return
    if dialect.delimiter is None:
        for name, mark in DELIMITERS.items():
            yield f"--delimiter {name}", replace(dialect, delimiter=mark), 0
    for n in range(1, min(MOST_PREAMBLE, len(lines) - 1) + 1):
        yield f"--skip-rows {dialect.skip_rows + n}", dialect, n


def _n_faults(content: bytes, dialect: Dialect, header: str) -> tuple[int, bool] | None:
    """Return (number of misfitting rows, whether the first names columns), None if none fit."""
    content, dialect = plainly(content, dialect)
    first, second = _first_records(content, dialect.mark)
    separator = separator_of(first, second, dialect)
    head = _cells(first, separator, dialect) if first else None
    below = _cells(second, separator, dialect) or []
    if head is None or len(head) < 2 or len(below) != len(head):
        return None
    if any(_is_row(name, separator, len(head)) for name in head) or 2 * head.count("") > len(head):
        return None
    is_named = has_header(head, below, separator) if header == "auto" else header == "yes"
    layout = CsvLayout(separator, is_named, head, head)
    found = list(records(lines_of(content), separator, dialect))[1:]
    if not dialect.mark and any(
        _is_quoted(cell) for record in found for cell in record.cells or ()
    ):
        return None
    is_bad = [bool(_fault(r, layout, dialect, is_head=False)) for r in found if not r.is_empty]
    return (sum(is_bad), is_named) if not all(is_bad) else None


def _is_quoted(cell: str) -> bool:
    """Check if quotes around a cell would become part of it."""
    return len(cell) > 1 and cell[0] == cell[-1] == '"'


# -- the first lines -------------------------------------------------------------------------------


def _first_records(content: bytes, mark: str) -> tuple[str, str]:
    """Return the first two nonempty rows, complete even if a quoted cell spans lines."""
    with io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", newline="") as lines:
        filled = (line for line in lines if line.strip())
        return _record(filled, mark), _record(filled, mark)


def _record(lines: Iterator[str], mark: str) -> str:
    record = next(lines, "")
    for _ in range(LONGEST_RECORD if mark else 0):
        if record.count(mark) % 2 == 0:
            break
        record += next(lines, "")
    return record


def separator_of(first: str, second: str, dialect: Dialect) -> str:
    """Return the most frequent separator that two rows have equally often, ignoring quotes."""
    if dialect.delimiter is not None:
        return dialect.delimiter
    parts = (r.split(dialect.mark)[::2] if dialect.mark else [r] for r in (first, second))
    head, below = map("".join, parts)
    equal = [mark for mark in SEPARATORS if 0 < head.count(mark) == below.count(mark)]
    return max(equal or SEPARATORS, key=head.count)


def _cells(record: str, separator: str, dialect: Dialect) -> list[str] | None:
    """Return the cells of the first row of a text, None if its quotes do not close."""
    found = next(records(lines_of(record.encode()), separator, dialect), None)
    if found is None or found.cells is None:
        return None
    return [cell.strip() for cell in found.cells]


def _is_row(name: str, separator: str, n_columns: int) -> bool:
    """Check if a name contains a whole row, after a stray opening quote."""
    below = name.splitlines()[1:]
    return n_columns > 1 and any(line.count(separator) >= n_columns - 1 for line in below)


def has_header(head: list[str], below: list[str], separator: str) -> bool:
    """Check if the first line names the columns.

    Numbers alone are data, but 0, 1, 2, … are names, and so are integers after an empty first cell,
    as pandas writes them. Numbers beside text are data if one is a fraction and the next line has
    numbers and text in the same places.
    """
    kinds = [_kind(cell, separator) for cell in head]
    start = 1 if len(head) > 1 and head[0] == "" else 0
    if len(head) > 1 and head[start:] == [str(j) for j in range(len(head) - start)]:
        return True
    if not {"whole", "fraction"} & set(kinds):
        return True
    if "text" not in kinds:
        return "empty" in kinds and "fraction" not in kinds
    alike = len(head) == len(below) and all(
        "empty" in (kind, other) or (kind == "text") == (other == "text")
        for kind, other in zip(kinds, (_kind(cell, separator) for cell in below), strict=True)
    )
    return not (alike and "fraction" in kinds)


def _kind(cell: str, separator: str) -> str:
    if cell == "":
        return "empty"
    try:
        float(cell)
    except ValueError:
        number = undress(cell)
        if number is None or (separator == "," and number.spelling not in READ_AS["point"]):
            return "text"
    return "whole" if cell.lstrip("+-").isdigit() else "fraction"


def name_notes(names: list[str], is_named: bool) -> Iterator[str]:
    """Yield notes on the names of columns."""
    if not is_named:
        yield "The first line holds data: there is no header, columns are x0, x1, …"
    twice = [name for name, count in Counter(names).items() if name and count > 1]
    if twice:
        yield f"Names that occur more than once get a number, as {twice[0]}.1: {listing(twice)}."
    unnamed = [f"Unnamed: {j}" for j, name in enumerate(names) if j and not name]
    if unnamed:
        yield f"Columns without a name are called by their place: {listing(unnamed)}."


def unique_names(names: list[str]) -> list[str]:
    """Make names unique as pandas does: a, a.1, …; columns without a name are Unnamed: 0, …"""
    seen: Counter[str] = Counter()
    given, made = set(names), []
    for j, name in enumerate(names):
        name = unique = name or f"Unnamed: {j}"
        while seen[name] and (unique == name or unique in given or unique in made):
            unique = f"{name}.{seen[name]}"
            seen[name] += 1
        seen[name] += not seen[name]
        made.append(unique)
    return made
