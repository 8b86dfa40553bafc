"""Reading CSV as people write it: any separator, decimal commas, no header, several encodings."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from blockl0.app.tables.column_kinds import is_whole
from blockl0.app.tables.csv_layout import (
    CsvLayout,
    layout_of,
    name_notes,
    rows_of,
    skipped_note,
    unequal_rows,
)
from blockl0.app.tables.csv_text import (
    PLAIN,
    Dialect,
    below_preamble,
    encoding_notes,
    plainly,
    read_text,
)
from blockl0.app.tables.decimals import Decimals, resolve_decimals
from blockl0.app.tables.spellings import ROW, first_code

MISSING = frozenset(
    ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "<NA>", "#N/A", "-nan")
)
"""Texts that stand for a missing value in all tables."""
NO_MEMORY = "The memory does not suffice to read these rows; end other programs first."


def read_csv(
    source: Any,
    *,
    na: Sequence[str] = (),
    header: str = "auto",
    as_text: Sequence[str] = (),
    decimal: str = "auto",
    is_likely: bool = False,
    dialect: Dialect = PLAIN,
) -> Decimals:
    """Read a DataFrame, with notes on how it was read; parameters as in `read_raw`."""
    content, encoding = read_text(source, dialect)
    content, dialect = ready(content, dialect)
    layout = layout_of(content, dialect, header)
    found = read_cells(
        content, layout, dialect, na, as_text=as_text, decimal=decimal, is_likely=is_likely
    )
    found.notes = [*name_notes(layout.head, layout.is_named), *found.notes]
    if layout.has_unnamed_first and numbers_rows(found.frame.iloc[:, 0]):
        found.frame = found.frame.iloc[:, 1:].copy()
        found.notes.insert(0, "The first column has no name and numbers the rows: dropped.")
    found.notes += encoding_notes(encoding, dialect)
    return found


def ready(content: bytes, dialect: Dialect) -> tuple[bytes, Dialect]:
    """Return the text below a preamble, with plain quotes and delimiters."""
    return plainly(below_preamble(content, dialect.skip_rows), dialect)


def read_cells(
    content: bytes,
    layout: CsvLayout,
    dialect: Dialect,
    na: Sequence[str],
    *,
    as_text: Sequence[str],
    header: str = "auto",
    **how: Any,
) -> Decimals:
    """Read the cells of a text of known layout, whose lines follow `dialect.skip_rows` others.

    The other parameters are those of `resolve_decimals`.
    """
    import pandas

    rows = rows_of(content, layout, dialect)
    if rows.bad and not dialect.skip_bad_rows:
        raise ValueError(unequal_rows(content, layout, dialect, header, rows))
    known = set(layout.columns)

    def read(some: Sequence[int] | None = None) -> Any:
        """Read all columns, or some of them as plain text."""
        kinds: Any = {name: str for name in as_text if name in known} if some is None else str
        places: Any = some
        frame = pandas.read_csv(
            io.BytesIO(rows.content), sep=layout.separator, header=0 if layout.has_head else None,
            na_values=list(na), names=layout.columns, encoding="utf-8", low_memory=False,
            dtype=kinds, usecols=places, **dialect.how,
        )  # fmt: skip
        return with_padded_gaps(frame, {*MISSING, *na})

    frame = _frame(read)
    if len(frame) != len(rows.numbers):
        raise ValueError(
            f"This is not a table with a line for every row: {len(frame)} rows have values, and "
            f"{len(rows.numbers)} lines; write it again with quotes around line breaks."
        )
    frame.index = _index(rows.numbers, dialect.skip_rows)
    codes = _codes(frame, read, rows.content, layout.separator, as_text)
    frame = frame.assign(**codes) if codes else frame
    found = resolve_decimals(
        frame, read, has_free_comma=layout.separator != ",", as_text=as_text, **how
    )
    found.last_row = rows.last + dialect.skip_rows
    if rows.bad:
        found.skipped = [skipped_note(rows.bad, dialect.skip_rows)]
        found.notes = [*found.skipped, *found.notes]
    return found


def _frame(read: Any) -> Any:
    """Read all cells, turning errors of pandas into our own."""
    import pandas

    try:
        return read()
    except (pandas.errors.ParserError, pandas.errors.EmptyDataError) as error:
        raise ValueError(unreadable(str(error))) from error


def unreadable(said: str) -> str:
    """Say why pandas could not read rows of equal length."""
    if "out of memory" in said:
        return NO_MEMORY
    return "This is not a table with a line for every row."


def _index(numbers: Any, offset: int) -> Any:
    """Return the row numbers of the file as an index."""
    import pandas

    n = len(numbers)
    if n and numbers[-1] - numbers[0] == n - 1:
        start = int(numbers[0]) + offset
        return pandas.RangeIndex(start, start + n, name=ROW)
    return pandas.Index(np.asarray(numbers, dtype=np.int64) + offset, name=ROW)


def _codes(
    frame: Any, read: Any, content: bytes, separator: str, as_text: Sequence[str]
) -> dict[str, Any]:
    """Return integer columns with leading zeros, as they are written."""
    mark = re.escape(separator.encode())
    zero = re.compile(rb"(?:^|[" + mark + rb"\"'\r\n]) *0[0-9]+ *(?:[" + mark + rb"\"'\r\n]|$)")
    places = [
        j for j, name in enumerate(frame.columns)
        if name not in as_text and frame.dtypes.iloc[j].kind in "iuf" and is_whole(frame[name])
    ]  # fmt: skip
    if not places or zero.search(content) is None:
        return {}
    written = read(places).set_axis(frame.index)
    columns = {str(name): written[name].str.strip() for name in written.columns}
    return {name: texts for name, texts in columns.items() if first_code(texts) is not None}


def with_padded_gaps(frame: Any, missing: set[str]) -> Any:
    """Treat blanks, and padded texts for missing values, as missing."""
    changed = {}
    for j, kind in enumerate(frame.dtypes):
        if kind.kind in "biufcmM":
            continue
        # as an array of objects: iterating over Arrow strings is slow
        texts = frame.iloc[:, j].unique().astype(object)
        padded = (text for text in texts if isinstance(text, str) and text != text.strip())
        gaps = [text for text in padded if text.strip() in missing]
        if gaps:
            changed[frame.columns[j]] = frame.iloc[:, j].where(~frame.iloc[:, j].isin(gaps))
    return frame.assign(**changed) if changed else frame


def numbers_rows(column: Any) -> bool:
    """Check if integers are all different, as in an index that was saved too."""
    return column.dtype.kind in "iu" and column.is_unique
