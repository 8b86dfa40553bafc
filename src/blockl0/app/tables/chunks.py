"""Files read a few rows at a time: a single file, or all CSV or Parquet files of a folder.

Every chunk goes through the reader of whole files, so that the same cells mean the same numbers.
What a single chunk leaves open, such as the decimal mark of 1.660, is settled by another chunk, or
the file is refused.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from blockl0.app.tables.csv_files import read_cells, ready
from blockl0.app.tables.csv_layout import layout_of, name_notes
from blockl0.app.tables.csv_text import (
    PACKED,
    PLAIN,
    Dialect,
    encoding_notes,
    encodings,
    opened,
    records,
    undecodable,
)
from blockl0.app.tables.decimals import Decimals, Shown
from blockl0.app.tables.formats import (
    Raw,
    format_of,
    from_decimals,
    from_frame,
    no_rows,
    pyarrow_parquet,
)
from blockl0.files import check_exists
from blockl0.text import listing

CHUNK_BYTES = 1 << 25
"""Bytes of a CSV file, or of the numbers of a Parquet file, read at a time."""
LEAST_ROWS = 1000
"""Rows of a Parquet file to read at a time, at least."""
LONGEST = 16
"""Most chunks per record: a quote that is never closed would otherwise take the whole file."""
PACKING = 5.0
"""Approximate ratio of text to compressed bytes."""
KEY = re.compile(r"[^=]+=.*")
"""Name of a folder whose rows share a value, as Hive and Spark write them."""
FORMATS = ("csv", "parquet")
"""Formats that can be read in chunks."""


class Chunk(NamedTuple):
    """Some rows, their file, and the share of all files read so far."""

    raw: Raw
    file: Path
    share: float
    found: Decimals | None = None


@dataclass
class Chunks:
    """The rows of some files, in order; each iteration reads from the beginning.

    Attributes
    ----------
    files : tuple of Path
        All of one format and with the same columns.
    format : "csv" or "parquet"
    na, header, decimal, as_text
        As in `formats.read_raw`.
    dialect : Dialect
        How CSV files are written.
    codes : set of str
        Columns found to hold codes such as 01067 in some chunk; they are read as text.
    shown : Shown or None
        The cell that shows the decimal mark of the files, once one was found.
    index : str or None
        The first column, if it has no name.
    notes : list of str
        On how the files are read.
    """

    files: tuple[Path, ...]
    format: str
    na: tuple[str, ...] = ()
    header: str = "auto"
    decimal: str = "auto"
    as_text: tuple[str, ...] = ()
    dialect: Dialect = PLAIN
    codes: set[str] = field(default_factory=set)
    shown: Shown | None = None
    index: str | None = None
    notes: list[str] = field(default_factory=list)
    _encodings: dict[Path, str] = field(default_factory=dict, repr=False)

    def __iter__(self) -> Iterator[Chunk]:
        read = _parquet_chunks if self.format == "parquet" else _csv_chunks
        total = sum(file.stat().st_size for file in self.files)
        before, names = 0, None
        for file in self.files:
            size = file.stat().st_size
            for chunk in read(self, file):
                names = names or (chunk.raw.names, file)
                raw = _aligned(chunk.raw, *names, file)
                share = (before + chunk.share * size) / max(total, 1)
                yield chunk._replace(raw=raw, share=share)
            before += size
        if names is None:
            where = self.files[0] if len(self.files) == 1 else os.path.commonpath(self.files)
            raise ValueError(no_rows(str(where)))

    def encoding(self, path: Path) -> str:
        """Return the first candidate encoding that decodes a whole file; found once."""
        if path not in self._encodings:
            self._encodings[path] = _encoding(path, self.dialect)
        return self._encodings[path]

    def note(self, *texts: str) -> None:
        """Add notes, each only once."""
        self.notes += [text for text in texts if text not in self.notes]


def find_files(source: Any, format: str | None = None) -> tuple[tuple[Path, ...], str]:
    """Return (files, format) of a path: the file itself, or those of a folder by name.

    In a folder, file names decide what is read even if the format is given: a README is not data.
    """
    path = Path(source)
    if not path.is_dir():
        path = check_exists(path)
        return (path,), format or format_of(path)
    kinds: dict[str, list[Path]] = {}
    for file in sorted(path.rglob("*")):
        is_hidden = any(part[0] in "._" for part in file.relative_to(path).parts)
        if file.is_file() and not is_hidden:
            kinds.setdefault(_kind(file), []).append(file)
    found = [kind for kind in FORMATS if kind in kinds and format in (None, kind)]
    if len(found) != 1:
        raise ValueError(f"The folder {str(path)!r} holds {_not_one_kind(found, format)}")
    _refuse_keys(path, kinds[found[0]])
    return tuple(kinds[found[0]]), found[0]


def _not_one_kind(found: list[str], format: str | None) -> str:
    """Write the error for a folder without files of exactly one kind."""
    if found:
        return "CSV and Parquet files; --format csv or --format parquet reads those of one kind."
    if format in FORMATS:
        return (
            f"no files whose names tell that they are {format}; name them so, as part-1.{format}."
        )
    return "no CSV or Parquet files; give one with files of one kind."


def _refuse_keys(path: Path, files: list[Path]) -> None:
    """Refuse folders such as year=2020, which stand for a column missing from the files."""
    for file in files:
        for part in file.relative_to(path).parts[:-1]:
            if KEY.fullmatch(part):
                raise ValueError(
                    f"The folder {str(path)!r} keeps a column in the names of folders, as "
                    f"{part!r}, and these are not read: write the column {part.split('=')[0]!r} "
                    "into the files, and give the folders names without '='."
                )


def _kind(file: Path) -> str:
    try:
        return format_of(file)
    except ValueError:
        return "other"


def _aligned(raw: Raw, names: tuple[str, ...], first: Path, file: Path) -> Raw:
    """Reorder columns as in the first file, refusing other columns."""
    if raw.names == names:
        return raw
    odd = sorted({*raw.names} ^ {*names})
    if odd:
        where = "lacks" if odd[0] in names else "has"
        raise ValueError(
            f"All files must have the same columns: {file.name} {where} {listing(odd)}, unlike "
            f"{first.name}."
        )
    return replace(raw, data=raw.data[list(names)], names=names)


# -- Parquet ---------------------------------------------------------------------------------------


def _parquet_chunks(chunks: Chunks, path: Path) -> Iterator[Chunk]:
    with pyarrow_parquet(path) as file:
        n_rows, n_columns = file.metadata.num_rows, len(file.schema_arrow.names)
        step, start = max(LEAST_ROWS, CHUNK_BYTES // (8 * max(n_columns, 1))), 0
        for batch in file.iter_batches(batch_size=step):
            frame = batch.to_pandas()
            if len(frame) == 0:
                continue
            frame = frame.replace(list(chunks.na), float("nan")) if chunks.na else frame
            frame.index = frame.index + start if frame.index.dtype.kind == "i" else frame.index
            start += len(frame)
            as_text = (*chunks.as_text, *chunks.codes)
            found = from_frame(frame, chunks.decimal, as_text, chunks.shown)
            yield Chunk(_sourced(from_decimals(found), path), path, start / n_rows, found)


def _sourced(raw: Raw, path: Path) -> Raw:
    return replace(raw, source=str(path))


# -- CSV -------------------------------------------------------------------------------------------


def _csv_chunks(chunks: Chunks, path: Path) -> Iterator[Chunk]:
    """Yield lines of a file, parsed as a file of their own, in the first encoding that fits."""
    encoding, size = chunks.encoding(path), path.stat().st_size
    total = size * (PACKING if path.suffix.lower() in PACKED else 1.0)
    head, dialect = ready(_beginning(path, encoding).encode(), chunks.dialect)
    layout, done = layout_of(head, dialect, chunks.header), 0
    if layout.has_unnamed_first:
        chunks.index = layout.columns[0]
    chunks.note(*name_notes(layout.head, layout.is_named), *encoding_notes(encoding, dialect))
    above, given = dialect.skip_rows, chunks.dialect
    for text in _blocks(path, encoding, CHUNK_BYTES, layout.separator, given):
        done += len(text)
        content, dialect = ready(text.encode(), given)
        given = replace(given, skip_rows=0)
        found = read_cells(
            content, layout, replace(dialect, skip_rows=above), chunks.na, header=chunks.header,
            as_text=(*chunks.as_text, *chunks.codes), decimal=chunks.decimal, shown=chunks.shown,
        )  # fmt: skip
        above = found.last_row
        if len(found.frame):
            yield Chunk(_sourced(from_decimals(found), path), path, min(done / total, 1.0), found)
        chunks.note(*found.skipped)
        layout = layout._replace(is_below=True)


def _encoding(path: Path, dialect: Dialect) -> str:
    failure, first = None, b""
    for encoding in encodings(path, dialect):
        try:
            with opened(path) as file, io.TextIOWrapper(file, encoding=encoding) as text:
                while text.read(CHUNK_BYTES):
                    pass
            return encoding
        except UnicodeDecodeError as error:
            if failure is None:
                failure, first = error, error.object
    raise ValueError(undecodable(first, failure))


def _beginning(path: Path, encoding: str) -> str:
    with opened(path) as file, io.TextIOWrapper(file, encoding=encoding, newline="") as text:
        return text.read(CHUNK_BYTES)


def _blocks(
    path: Path, encoding: str, size: int, separator: str, dialect: Dialect
) -> Iterator[str]:
    """Yield the text in pieces that end with a record."""
    rest = ""
    with opened(path) as file, io.TextIOWrapper(file, encoding=encoding, newline="") as text:
        while part := text.read(size):
            rest += part
            cut = _last_end(rest, separator, dialect)
            if cut == 0 and len(rest) > LONGEST * size:
                raise ValueError(
                    f"{path.name} holds a quote that is not closed within {len(rest)} letters, or "
                    "no line ends; it cannot be read in parts. --skip-bad-rows leaves rows with "
                    "such quotes out, --quote none takes quotes for letters."
                )
            if cut:
                yield rest[:cut]
            rest = rest[cut:]
    if rest.strip():
        yield rest


def _last_end(text: str, separator: str, dialect: Dialect) -> int:
    """Return the position after the last line break outside quotes, 0 if there is none."""
    mark = dialect.mark
    if mark and dialect.skip_bad_rows:  # bad rows may hold unpaired quotes
        return _last_record(text, separator, dialect)
    cut = text.rfind("\n") + 1
    n_quotes = _n_quotes(text[:cut], dialect) if mark else 0
    while cut and n_quotes % 2:
        before = text.rfind("\n", 0, cut - 1) + 1
        n_quotes -= _n_quotes(text[before:cut], dialect)
        cut = before
    return cut


def _n_quotes(text: str, dialect: Dialect) -> int:
    escaped = text.count(f"\\{dialect.mark}") if dialect.quote == "backslash" else 0
    return text.count(dialect.mark) - escaped


def _last_record(text: str, separator: str, dialect: Dialect) -> int:
    """Return the start of the first record that more text could change."""
    lines = list(io.StringIO(text, newline=""))
    ends = [0, *accumulate(map(len, lines))]
    reached = (r.start for r in records(lines, separator, dialect) if r.reach == len(lines))
    return ends[next(reached, 0)]


# -- sizes -----------------------------------------------------------------------------------------


def bytes_in_memory(files: tuple[Path, ...], format: str) -> float:
    """Estimate the memory that the numbers of some files take, in bytes."""
    if format == "parquet":
        total = 0
        for path in files:
            with pyarrow_parquet(path) as file:
                total += 8 * file.metadata.num_rows * file.metadata.num_columns
        return float(total)
    packed = (PACKING if path.suffix.lower() in PACKED else 1.0 for path in files)
    return sum(path.stat().st_size * factor for path, factor in zip(files, packed, strict=True))


def free_memory() -> float | None:
    """Return the bytes available to this process, or None if the system does not say.

    Respects the limit of a container.
    """
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = 1024.0 * next(int(x.split()[1]) for x in lines if x.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError, IndexError):
        try:
            return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        except (AttributeError, OSError, ValueError):
            return None
    return min(free, _left_in_group())


def _left_in_group() -> float:
    """Return the bytes left under the limit of a container, infinite without a limit."""
    group = Path("/sys/fs/cgroup")
    try:
        most = (group / "memory.max").read_text().strip()
        used = (group / "memory.current").read_text()
        return float("inf") if most == "max" else float(most) - float(used)
    except (OSError, ValueError):
        return float("inf")
