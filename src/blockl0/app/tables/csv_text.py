"""The text of a CSV file and its records: encodings, dialects, quotes that do not close."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from importlib import import_module
from typing import Any, NamedTuple

from blockl0.validate import check_choice, check_integer

PACKED = {".gz": "gzip", ".bz2": "bz2", ".xz": "lzma"}
"""Suffixes of compressed text, and the module that opens it."""
BINARY = {
    b"PK\x03\x04": "an Excel workbook or another ZIP file; --format excel reads workbooks",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook (.xls); save it as CSV or .xlsx",
    b"PAR1": "a Parquet file; --format parquet reads it",
}
"""First bytes of files that are named .csv, but are something else."""
UNMARKED = {"utf-16-le": slice(1, 8, 2), "utf-16-be": slice(0, 8, 2)}
"""UTF-16 encodings without a byte order mark, and which bytes are zero in ASCII text."""
DELIMITERS = {"comma": ",", "tab": "\t", "semicolon": ";", "bar": "|", "blank": " "}
"""Delimiters by their names on the command line."""
QUOTES = ("double", "single", "backslash", "none")
"""Quotes around cells: double, single, double with backslash escapes, or none."""
LONGEST_RECORD = 1000
"""Lines per record with quoted line breaks, at most."""
BREAK = re.compile(rb"\r\n|\r|\n")


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written, as far as its lines do not show it.

    Attributes
    ----------
    delimiter : str or None
        One character; None to infer it from the first two lines.
    quote : str
        One of `QUOTES`.
    encoding : str or None
        None to try UTF-8, UTF-16 and Windows-1252.
    skip_rows : int
        Lines above the header.
    skip_bad_rows : bool
        Leave out rows with more or fewer values than names, rows that repeat the names, and rows
        with unclosed quotes.
    fill_short_rows : bool
        Treat the last values of rows with too few values as missing.
    """

    delimiter: str | None = None
    quote: str = "double"
    encoding: str | None = None
    skip_rows: int = 0
    skip_bad_rows: bool = False
    fill_short_rows: bool = False

    @property
    def mark(self) -> str:
        """The character around quoted cells, "" for none."""
        return {"single": "'", "none": ""}.get(self.quote, '"')

    @property
    def how(self) -> dict[str, Any]:
        """Options shared by `csv.reader` and `pandas.read_csv`."""
        return {
            "quotechar": self.mark or '"',
            "quoting": csv.QUOTE_MINIMAL if self.mark else csv.QUOTE_NONE,
            "escapechar": "\\" if self.quote == "backslash" else None,
            "skipinitialspace": True,
        }


PLAIN = Dialect()
DIALECT = tuple(field.name for field in fields(Dialect))
"""Options of the command line and of `read_table` that make a dialect."""


def make_dialect(given: dict[str, Any]) -> Dialect:
    """Check options by the names of `DIALECT`; None stands for the default."""
    known = {name: value for name, value in given.items() if value is not None}
    if "delimiter" in known:
        known["delimiter"] = _delimiter(known["delimiter"])
    check_choice("quote", known.get("quote", "double"), QUOTES)
    check_integer("skip_rows", known.get("skip_rows", 0), low=0)
    if "encoding" in known:
        try:
            codecs.lookup(known["encoding"])
        except LookupError:
            raise ValueError(
                f"There is no encoding {known['encoding']!r}; known are utf-8, utf-16, cp1252, "
                "latin-1, cp1250, shift_jis, gb18030 and others that Python has."
            ) from None
    return Dialect(**known)


def _delimiter(text: str) -> str | None:
    """Return the character of a delimiter, None for "auto"."""
    if text == "auto":
        return None
    mark = DELIMITERS.get(text, "\t" if text == "\\t" else text)
    if len(mark) != 1 or mark.isalnum() or mark in "\"'\r\n\\.":
        raise ValueError(
            f"`delimiter` must be {', '.join(DELIMITERS)}, or one letter as '~', got {text!r}."
        )
    return mark


# -- bytes -----------------------------------------------------------------------------------------


@contextmanager
def opened(source: Any) -> Iterator[Any]:
    """Open the bytes of a file or of standard input, from the beginning."""
    if isinstance(source, io.BytesIO):
        yield io.BytesIO(source.getvalue())
        return
    with import_module(PACKED.get(source.suffix.lower(), "builtins")).open(source, "rb") as file:
        yield file


def encodings(source: Any, dialect: Dialect) -> tuple[str, ...]:
    """Return the encodings to try: UTF-16 with a mark, as Excel writes it, or UTF-8 and
    Windows-1252.
    """
    with opened(source) as file:
        start = file.read(8)
    for mark, what in BINARY.items():
        if start.startswith(mark):
            raise ValueError(f"This is no text, but {what}.")
    if dialect.encoding is not None:
        is_utf_8 = codecs.lookup(dialect.encoding).name == "utf-8"
        return ("utf-8-sig" if is_utf_8 else dialect.encoding,)
    if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return ("utf-16",)
    for encoding, places in UNMARKED.items():
        if len(start) == 8 and not any(start[places]):
            return (encoding,)
    return ("utf-8-sig", "cp1252")


def read_text(source: Any, dialect: Dialect) -> tuple[bytes, str]:
    """Return (text in UTF-8, original encoding)."""
    with opened(source) as file:
        raw = file.read()
    failure: UnicodeError | None = None
    for encoding in encodings(source, dialect):
        try:
            text = raw.decode(encoding)
        except UnicodeError as error:
            failure = failure or error
            continue
        is_same = encoding == "utf-8-sig"
        return (raw.removeprefix(codecs.BOM_UTF8) if is_same else text.encode()), encoding
    raise ValueError(undecodable(raw, failure))


def undecodable(raw: bytes, failure: UnicodeError | None) -> str:
    """Say which byte of which line cannot be decoded, and which option helps."""
    at = failure.start if isinstance(failure, UnicodeDecodeError) else 0
    line, seen = 1 + len(BREAK.findall(raw[:at])), raw[at : at + 1].hex()
    return (
        f"Text must be in UTF-8 or Windows-1252, got the byte 0x{seen} in line {line}; --encoding "
        "NAME reads another one, as --encoding latin-1."
    )


def encoding_notes(encoding: str, dialect: Dialect) -> Iterator[str]:
    """Yield notes on an encoding that was not requested."""
    if encoding == "cp1252" and dialect.encoding is None:
        yield "The text is not UTF-8; it is read as Windows-1252."
    if encoding in UNMARKED and dialect.encoding is None:
        yield "The text is read as UTF-16, without a mark that says so."


def below_preamble(content: bytes, n_lines: int) -> bytes:
    """Return the text without its first lines."""
    start = 0
    for _ in range(n_lines):
        found = BREAK.search(content, start)
        if found is None:
            return b""
        start = found.end()
    return content[start:]


def plainly(content: bytes, dialect: Dialect) -> tuple[bytes, Dialect]:
    """Normalize a text: double quotes instead of backslashes, tabs instead of blanks."""
    if dialect.quote == "backslash":
        content = re.sub(rb'\\(["\\])', lambda m: b'""' if m[1] == b'"' else b"\\", content)
        dialect = replace(dialect, quote="double")
    if dialect.delimiter == " ":
        return with_tabs(content, dialect.mark), replace(dialect, delimiter="\t")
    return content, dialect


def with_tabs(content: bytes, mark: str) -> bytes:
    """Replace blanks between cells by a tab, and strip lines."""
    quoted = rf"{mark}[^{mark}]*{mark}|[^ \t{mark}]+|{mark}" if mark else r"[^ \t]+"
    part = re.compile(rf"[ \t]+|{quoted}")
    lines = (part.findall(line.strip()) for line in lines_of(content))
    tabbed = ("".join("\t" if one.isspace() else one for one in line) for line in lines)
    return "\n".join([*tabbed, ""]).encode()


def lines_of(content: bytes) -> list[str]:
    """Return the lines with their ends: LF, CR LF or CR."""
    return list(io.StringIO(content.decode(errors="ignore"), newline=""))


# -- records ---------------------------------------------------------------------------------------


class CsvRecord(NamedTuple):
    """A row of a file.

    Attributes
    ----------
    row : int
        Its number in a spreadsheet, from 1.
    start, stop : int
        Its lines, from 0.
    cells : list of str or None
        None if a quote is not closed, or is inside a value.
    reach : int
        The last line read to decide that.
    """

    row: int
    start: int
    stop: int
    cells: list[str] | None
    reach: int

    @property
    def is_empty(self) -> bool:
        """Whether the line is blank."""
        cells = self.cells
        return cells is not None and (not cells or (len(cells) == 1 and cells[0].isspace()))


class _Feed:
    """Lines for `csv.reader`, ending where a record becomes too long."""

    def __init__(self, lines: list[str]) -> None:
        self.lines, self.start, self.at = lines, 0, 0

    def __iter__(self) -> _Feed:
        return self

    def __next__(self) -> str:
        if self.at >= len(self.lines) or self.at - self.start >= LONGEST_RECORD:
            raise StopIteration
        self.at += 1
        return self.lines[self.at - 1]


def records(lines: list[str], separator: str, dialect: Dialect) -> Iterator[CsvRecord]:
    """Yield the rows of a text, resuming at the next line after a broken quote.

    Blanks after a closing quote are removed from `lines`.
    """
    mark, feed, row = dialect.mark, _Feed(lines), 0
    padded = re.compile(rf"{mark} +(?=[{re.escape(separator)}\r\n]|$)") if mark else None
    value = _value(mark, separator)
    while feed.start < len(lines):
        feed.at = feed.start
        try:
            for cells in csv.reader(feed, delimiter=separator, strict=True, **dialect.how):
                row += 1
                is_clear = not mark or mark not in "".join(cells)
                is_clear = is_clear or not _is_torn(lines[feed.start : feed.at], value, mark)
                yield CsvRecord(row, feed.start, feed.at, cells if is_clear else None, feed.at)
                feed.start = feed.at
        except csv.Error:
            part = lines[feed.start : feed.at]
            mended = [padded.sub(mark, line) for line in part] if padded else part
            if mended != part:
                lines[feed.start : feed.at] = mended
                continue
            row += 1
            yield CsvRecord(row, feed.start, feed.start + 1, None, feed.at)
            feed.start += 1


def _value(mark: str, separator: str) -> re.Pattern[str]:
    """Return the pattern of a value as written, in quotes or without."""
    end = re.escape(separator)
    quoted = rf"{mark}(?:[^{mark}\\]|{mark}{mark}|\\.)*{mark}|" if mark else ""
    return re.compile(rf"(?:^|{end})[ ]*({quoted}[^{end}\r\n]*)", re.DOTALL)


def _is_torn(lines: list[str], value: re.Pattern[str], mark: str) -> bool:
    """Check if quotes inside values may enclose a separator: 5"a,b" is one value or two."""
    values = value.findall("".join(lines))
    return sum(text[0] != mark and mark in text for text in values if text) > 1
