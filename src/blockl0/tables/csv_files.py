"""Reading CSV as people write it: any separator, decimal commas, no header, several encodings."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from shlex import quote
from typing import Any, NamedTuple

from blockl0.tables.decimals import Decimals, settle
from blockl0.tables.spellings import READ_AS, ROW, SAMPLE, undress
from blockl0.text import clause, cut, listing

PACKED = {".gz": "gzip", ".bz2": "bz2", ".xz": "lzma"}
"""Compressed text, and the module that opens it."""
BINARY = {
    b"PK\x03\x04": "an Excel workbook or another ZIP file; --format excel reads workbooks",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook (.xls); save it as CSV or .xlsx",
    b"PAR1": "a Parquet file; --format parquet reads it",
}
"""How files begin that are called .csv, but are not."""
UNMARKED = {"utf-16-le": slice(1, 8, 2), "utf-16-be": slice(0, 8, 2)}
"""Encodings of two bytes without a mark at the beginning, and which bytes of ASCII are zero."""
EXCEL_HINT = re.compile(r"sep=(.)\s*", re.I)
"""A first line that tells Excel the separator."""
MISSING = frozenset(
    ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "<NA>", "#N/A", "-nan")
)
"""Texts that stand for a missing value, in all tables."""
NOTHING = "This is not a table: the file is empty."
LEADING_ZERO = re.compile(r"[-+]?0\d")
SEPARATORS = (",", "\t", ";", "|")
LONGEST_RECORD = 1000
"""Lines that a record with quoted line breaks may have."""


def read_csv(
    source: Any,
    *,
    na: Sequence[str] = (),
    header: str = "auto",
    as_text: Sequence[str] = (),
    decimal: str = "auto",
    is_likely: bool = False,
) -> Decimals:
    """A DataFrame, with notes on how it was read; parameters as in `read_raw`."""
    import pandas

    failure: Exception | None = None
    for encoding in encodings(source):
        try:
            found = _read(source, encoding, na, header, as_text, decimal, is_likely)
        except UnicodeError as error:
            failure = failure or error
        except (pandas.errors.ParserError, pandas.errors.EmptyDataError, csv.Error) as error:
            raise ValueError(unreadable(source, encoding, str(error))) from error
        else:
            if encoding == "cp1252":
                found.notes.append("The text is not UTF-8; it is read as Windows-1252.")
            if encoding in UNMARKED:
                found.notes.append("The text is read as UTF-16, without a mark that says so.")
            return found
    raise ValueError(f"Text must be in UTF-8, got {failure}; convert the file.") from failure


def encodings(source: Any) -> tuple[str, ...]:
    """What to try: Excel writes UTF-16 with a mark, or else the encoding of Windows."""
    with opened(source) as file:
        start = file.read(8)
    for mark, what in BINARY.items():
        if start.startswith(mark):
            raise ValueError(f"This is no text, but {what}.")
    if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return ("utf-16",)
    for encoding, places in UNMARKED.items():
        if len(start) == 8 and not any(start[places]):
            return (encoding,)
    return ("utf-8-sig", "cp1252")


@contextmanager
def opened(source: Any) -> Iterator[Any]:
    """The bytes of a file or of standard input, from the beginning."""
    if isinstance(source, io.BytesIO):
        yield io.BytesIO(source.getvalue())
        return
    with import_module(PACKED.get(source.suffix.lower(), "builtins")).open(source, "rb") as file:
        yield file


class Layout(NamedTuple):
    """How the lines of a file are divided.

    Attributes
    ----------
    separator : str
    is_named : bool
        Whether the first line holds the names.
    head : list of str
        What it holds; the columns by their place where it holds no names.
    columns : list of str
        The same, all different.
    """

    separator: str
    is_named: bool
    head: list[str]
    columns: list[str]

    @property
    def has_unnamed_first(self) -> bool:
        """Whether the first column has no name, as where an index was saved along."""
        return self.is_named and self.head[0] == ""


def layout_of(source: Any, encoding: str, header: str) -> Layout:
    """What the first two lines tell."""
    first, second = _first_records(source, encoding)
    _refuse_other_layouts(first, second)
    separator = _separator(first, second)
    head, below = _cells(first, separator), _cells(second, separator)
    if len(below) > len(head):  # which pandas would take for names of rows
        raise ValueError(_longer_rows(source, encoding, separator))
    is_named = has_header(head, below, separator) if header == "auto" else header == "yes"
    names = head if is_named else [f"x{j}" for j in range(len(head))]
    return Layout(separator, is_named, names, unique_names(names))


def _read(
    source: Any, encoding: str, na: Sequence[str], header: str, as_text: Sequence[str],
    decimal: str, is_likely: bool,
) -> Decimals:  # fmt: skip
    layout = layout_of(source, encoding, header)
    found = read_cells(
        source, encoding, layout, na, as_text=as_text, decimal=decimal, is_likely=is_likely
    )
    found.notes = [*name_notes(layout.head, layout.is_named), *found.notes]
    if layout.has_unnamed_first and numbers_rows(found.frame.iloc[:, 0]):
        found.frame = found.frame.iloc[:, 1:].copy()
        found.notes.insert(0, "The first column has no name and numbers the rows: dropped.")
    return found


def read_cells(
    source: Any,
    encoding: str,
    layout: Layout,
    na: Sequence[str],
    *,
    as_text: Sequence[str],
    offset: int = 0,
    **how: Any,
) -> Decimals:
    """The cells of a file of a known layout, or of some lines of it after `offset` others.

    Other parameters are those of `settle`.
    """
    import pandas

    known = set(layout.columns)

    def read(some: Sequence[int] | None = None, n_rows: int | None = None) -> Any:
        """All columns, or some of them as they are written; all rows, or the first ones."""
        stream = io.BytesIO(source.getvalue()) if isinstance(source, io.BytesIO) else source
        kinds: Any = {name: str for name in as_text if name in known} if some is None else str
        places: Any = some
        frame = pandas.read_csv(
            stream, sep=layout.separator, header=0 if layout.is_named else None,
            na_values=list(na), names=layout.columns, encoding=encoding, skipinitialspace=True,
            low_memory=False, dtype=kinds, usecols=places, nrows=n_rows,
        )  # fmt: skip
        return with_padded_gaps(frame, {*MISSING, *na})

    frame = read()
    rows = _rows(source, encoding, layout.separator, layout.is_named, len(frame))
    frame.index = rows + offset if offset else rows
    found = settle(frame, read, has_free_comma=layout.separator != ",", as_text=as_text, **how)
    found.notes = [*_zero_notes(frame, read, as_text), *found.notes]
    return found


# -- rows ------------------------------------------------------------------------------------------


def _records(source: Any, encoding: str, separator: str) -> Iterator[tuple[int, int, list[str]]]:
    """(row, line, cells) of every record, as a spreadsheet numbers the rows: from 1, with gaps."""
    with opened(source) as file, io.TextIOWrapper(file, encoding=encoding, newline="") as text:
        reader = csv.reader(text, delimiter=separator, skipinitialspace=True)
        for row, cells in enumerate(reader, 1):
            if cells and not (len(cells) == 1 and cells[0].isspace()):
                yield row, reader.line_num, cells


def _rows(source: Any, encoding: str, separator: str, is_named: bool, n_rows: int) -> Any:
    """The rows of the file, the first of which is 1, as an index of the table."""
    import pandas

    first = 2 if is_named else 1
    plain = pandas.RangeIndex(first, first + n_rows, name=ROW)
    if not _has_empty_lines(source, encoding, first + n_rows - 1):
        return plain
    with suppress(csv.Error):
        rows = [row for row, _, _ in _records(source, encoding, separator)][is_named:]
        if len(rows) == n_rows:
            return pandas.Index(rows, name=ROW)
    return plain


def _has_empty_lines(source: Any, encoding: str, n_records: int) -> bool:
    """Whether there may be any: rows are then counted one by one."""
    with opened(source) as file:
        content = file.read()
    if encoding.startswith("utf-16"):
        content = content.decode(encoding).encode()
    if 0 <= n_records - content.count(b"\n") <= 1:
        return False
    return any(mark in content for mark in (b"\n\n", b"\n\r\n", b"\n ")) or content[:1] in b"\r\n"


def unreadable(source: Any, encoding: str, said: str, separator: str | None = None) -> str:
    """Why pandas could not read a file, in words of the file."""
    if "out of memory" in said:
        return "The memory does not suffice to read these rows; end other programs first."
    first, second = _first_records(source, encoding)
    if not first:
        return NOTHING
    if "EOF inside string" in said:
        return "This is not a table: a quote opens and is never closed." + _open_quote(
            source, encoding
        )
    return _longer_rows(source, encoding, separator or _separator(first, second))


def _longer_rows(source: Any, encoding: str, separator: str) -> str:
    """Which row holds more values than the first one."""
    n_names = 0
    try:
        for row, line, cells in _records(source, encoding, separator):
            n_names = n_names or len(cells)
            if len(cells) > n_names:
                where = f"row {row}" if line == row else f"row {row} (line {line})"
                return (
                    f"This is not a table with equal rows: {where} holds {len(cells)} values, but "
                    f"the first row {n_names}, separated by {separator!r}; add the names that are "
                    "missing, or put quotes around values with a separator inside."
                )
    except csv.Error as error:
        return f"This is not a table with a line for every row: {clause(error)}."
    return "This is not a table with a line for every row."


def _open_quote(source: Any, encoding: str) -> str:
    """Where the last record with a quote begins that goes on to the end of the file."""
    with opened(source) as file, io.TextIOWrapper(file, encoding=encoding, newline="") as text:
        begin, line = 0, 0
        for line, content in enumerate(text, 1):
            if content.count('"') % 2:
                begin = 0 if begin else line
    return f" It opens in line {begin} of {line}." if begin else ""


# -- the first lines -------------------------------------------------------------------------------


def _first_records(source: Any, encoding: str) -> tuple[str, str]:
    """The first two lines that are not empty, whole where a quoted cell goes over several."""
    with opened(source) as file, io.TextIOWrapper(file, encoding=encoding, newline="") as lines:
        filled = (line for line in lines if line.strip())
        return _record(filled), _record(filled)


def _record(lines: Iterator[str]) -> str:
    record = next(lines, "")
    for _ in range(LONGEST_RECORD):
        if record.count('"') % 2 == 0:
            break
        record += next(lines, "")
    return record


def _refuse_other_layouts(first: str, second: str) -> None:
    """Refuse two layouts by name: a first line for Excel, and columns apart by blanks."""
    if EXCEL_HINT.fullmatch(first):
        raise ValueError(f"The first line, {first.strip()!r}, is for Excel alone; delete it.")
    words, below = first.split(), second.split()
    has_mark = any(mark in first + second for mark in SEPARATORS)
    if not has_mark and 1 < len(words) == len(below) and all(map(undress, below)):
        raise ValueError(
            f"The columns are separated by blanks, as in {cut(second.strip())!r}; separate them by "
            "tabs or commas."
        )


def _separator(first: str, second: str) -> str:
    """The one that two lines have most of, and equally often; those in quotes do not count."""
    head, below = ("".join(record.split('"')[::2]) for record in (first, second))
    equal = [mark for mark in SEPARATORS if 0 < head.count(mark) == below.count(mark)]
    return max(equal or SEPARATORS, key=head.count)


def _cells(record: str, separator: str) -> list[str]:
    rows = csv.reader(io.StringIO(record, newline=""), delimiter=separator, skipinitialspace=True)
    return [cell.strip() for cell in next(rows, [])]


def has_header(head: list[str], below: list[str], separator: str) -> bool:
    """Whether the first line names the columns.

    Numbers alone are data, but 0, 1, 2, … are names, and so are whole numbers after an empty
    first cell, as pandas writes them. Numbers beside text are data if there is a fraction among
    them and the next line has numbers and text in the same places.
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


# -- the columns -----------------------------------------------------------------------------------


def name_notes(names: list[str], is_named: bool) -> Iterator[str]:
    """What is to be said of the names of columns."""
    if not is_named:
        yield "The first line holds data: there is no header, columns are x0, x1, …"
    twice = [name for name, count in Counter(names).items() if name and count > 1]
    if twice:
        yield f"Names that occur more than once get a number, as {twice[0]}.1: {listing(twice)}."
    unnamed = [f"Unnamed: {j}" for j, name in enumerate(names) if j and not name]
    if unnamed:
        yield f"Columns without a name are called by their place: {listing(unnamed)}."


def _zero_notes(frame: Any, read: Any, as_text: Sequence[str]) -> Iterator[str]:
    """Whole numbers with zeros before them are numbers, but may be codes."""
    places = [
        j for j, kind in enumerate(frame.dtypes)
        if kind.kind in "iu" and frame.columns[j] not in as_text
    ]  # fmt: skip
    if not places:
        return
    for name, texts in read(places, SAMPLE).items():
        shown = next((text for text in texts.dropna() if LEADING_ZERO.match(text.strip())), None)
        if shown is not None:
            yield (
                f"Column {name!r} holds {shown.strip()!r}, read as the number {int(shown)}; "
                f"--as-category {quote(str(name))} keeps such codes as they are written."
            )


def unique_names(names: list[str]) -> list[str]:
    """As pandas makes them: a, a.1, …; those without a name are Unnamed: 0, …"""
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


def with_padded_gaps(frame: Any, missing: set[str]) -> Any:
    """Blanks, or blanks around what stands for a missing value, are missing as well."""
    changed = {}
    for j, kind in enumerate(frame.dtypes):
        if kind.kind in "biufcmM":
            continue
        # as an array of objects: texts of Arrow are slow one by one
        texts = frame.iloc[:, j].unique().astype(object)
        padded = (text for text in texts if isinstance(text, str) and text != text.strip())
        gaps = [text for text in padded if text.strip() in missing]
        if gaps:
            changed[frame.columns[j]] = frame.iloc[:, j].where(~frame.iloc[:, j].isin(gaps))
    return frame.assign(**changed) if changed else frame


def numbers_rows(column: Any) -> bool:
    """Whole numbers, all different: an index that was saved along, in order or not."""
    return column.dtype.kind in "iu" and column.is_unique
