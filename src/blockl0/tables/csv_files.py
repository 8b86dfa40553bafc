"""Reading CSV as people write it: any separator, decimal commas, no header, several encodings."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from blockl0.tables.column_kinds import COMMA_NUMBER
from blockl0.tables.decimals import Decimals, settle
from blockl0.text import listing

PACKED = {".gz": "gzip", ".bz2": "bz2", ".xz": "lzma"}
"""Compressed text, and the module that opens it."""
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
    likely_decimal: str | None = None,
) -> Decimals:
    """A DataFrame, with notes on how it was read; parameters as in `read_raw`."""
    import pandas

    failure: Exception | None = None
    for encoding in _encodings(source):
        try:
            found = _read(source, encoding, na, header, as_text, decimal, likely_decimal)
        except UnicodeError as error:
            failure = failure or error
        except (pandas.errors.ParserError, pandas.errors.EmptyDataError, csv.Error) as error:
            raise ValueError(f"This is not a table with a line for every row: {error}.") from error
        else:
            if encoding == "cp1252":
                found.notes.append("The text is not UTF-8; it is read as Windows-1252.")
            return found
    raise ValueError(f"Text must be in UTF-8, got {failure}; convert the file.") from failure


def _encodings(source: Any) -> tuple[str, ...]:
    """What to try: Excel writes UTF-16 with a mark, or else the encoding of Windows."""
    with _opened(source) as file:
        start = file.read(2)
    has_mark = start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return ("utf-16",) if has_mark else ("utf-8-sig", "cp1252")


@contextmanager
def _opened(source: Any) -> Iterator[Any]:
    """The bytes of a file or of standard input, from the beginning."""
    if isinstance(source, io.BytesIO):
        yield io.BytesIO(source.getvalue())
        return
    with import_module(PACKED.get(source.suffix.lower(), "builtins")).open(source, "rb") as file:
        yield file


def _read(
    source: Any, encoding: str, na: Sequence[str], header: str, as_text: Sequence[str],
    decimal: str, likely_decimal: str | None,
) -> Decimals:  # fmt: skip
    import pandas

    first, second = _first_records(source, encoding)
    separator = _separator(first, second)
    head, below = _cells(first, separator), _cells(second, separator)
    has_header = _has_header(head, below, separator) if header == "auto" else header == "yes"
    names = head if has_header else [f"x{j}" for j in range(len(head))]
    known = set(names)

    def read(columns: Sequence[int] | None = None) -> Any:
        """All columns, or some of them as they are written."""
        stream = io.BytesIO(source.getvalue()) if isinstance(source, io.BytesIO) else source
        kinds: Any = {name: str for name in as_text if name in known} if columns is None else str
        places: Any = columns
        return pandas.read_csv(
            stream, sep=separator, header=0 if has_header else None, na_values=list(na),
            names=None if has_header else names, encoding=encoding, skipinitialspace=True,
            low_memory=False, dtype=kinds, usecols=places,
        )  # fmt: skip

    frame = read()
    if not isinstance(frame.index, pandas.RangeIndex):
        raise ValueError("The rows hold more values than the header has names; add the names.")
    found = settle(
        frame, read, decimal=decimal, has_free_comma=separator != ",", as_text=as_text,
        is_likely=likely_decimal == "comma",
    )  # fmt: skip
    notes = list(_name_notes(names, has_header))
    if has_header and head[0] == "" and _numbers_rows(found.frame.iloc[:, 0]):
        found.frame = found.frame.iloc[:, 1:].copy()
        notes.append("The first column has no name and numbers the rows: dropped.")
    found.notes = notes + found.notes
    return found


# -- the first lines -------------------------------------------------------------------------------


def _first_records(source: Any, encoding: str) -> tuple[str, str]:
    """The first two lines that are not empty, whole where a quoted cell goes over several."""
    with _opened(source) as file, io.TextIOWrapper(file, encoding=encoding, newline="") as lines:
        filled = (line for line in lines if line.strip())
        return _record(filled), _record(filled)


def _record(lines: Iterator[str]) -> str:
    record = next(lines, "")
    for _ in range(LONGEST_RECORD):
        if record.count('"') % 2 == 0:
            break
        record += next(lines, "")
    return record


def _separator(first: str, second: str) -> str:
    """The one that two lines have most of, and equally often; those in quotes do not count."""
    head, below = ("".join(record.split('"')[::2]) for record in (first, second))
    equal = [mark for mark in SEPARATORS if 0 < head.count(mark) == below.count(mark)]
    return max(equal or SEPARATORS, key=head.count)


def _cells(record: str, separator: str) -> list[str]:
    rows = csv.reader(io.StringIO(record, newline=""), delimiter=separator, skipinitialspace=True)
    return [cell.strip() for cell in next(rows, [])]


def _has_header(head: list[str], below: list[str], separator: str) -> bool:
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
        if separator == "," or re.fullmatch(COMMA_NUMBER, cell) is None:
            return "text"
    return "whole" if cell.lstrip("+-").isdigit() else "fraction"


# -- the columns -----------------------------------------------------------------------------------


def _name_notes(names: list[str], has_header: bool) -> Iterator[str]:
    if not has_header:
        yield "The first line holds data: there is no header, columns are x0, x1, …"
    twice = [name for name, count in Counter(names).items() if name and count > 1]
    if twice:
        yield f"Names that occur more than once get a number, as {twice[0]}.1: {listing(twice)}."


def _numbers_rows(column: Any) -> bool:
    """Whole numbers, all different: an index that was saved along, in order or not."""
    return column.dtype.kind in "iu" and column.is_unique
