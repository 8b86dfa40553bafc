"""One clean table and the ways in which CSV files go wrong, after Pollock (VLDB 2023).

A file differs from the clean one in one respect: its payload, header, dialect, or one row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

NAMES = ["DATE", "TIME", "Qty", "PRODUCT", "Price", "Kind", "Description", "URL", "Comments"]
QUOTED = (6, 7)
"""Columns whose values, and names, are always in quotes."""
KINDS = ["Hiking Boots", "Pillow, Wooden", "Cap", "Rods", "Towel, Cotton", 'Belt, 10" long']


class Polluted(NamedTuple):
    """A file, and the rows that it means.

    Attributes
    ----------
    name : str
    content : bytes
    rows : list of list of str
        Of the clean table; a reader may leave out those that it says it leaves out.
    has_cure : bool
        Whether there is an option with which the file can be read.
    """

    name: str
    content: bytes
    rows: list[list[str]]
    has_cure: bool = True


def clean_rows(n_rows: int = 83) -> list[list[str]]:
    """Make the values of the table as text."""
    rng = np.random.default_rng(0)
    rows = []
    for i in range(n_rows):
        kind = KINDS[int(rng.integers(len(KINDS)))]
        said = ["quick, light", "plain", 'called "best", and sold'][int(rng.integers(3))]
        rows.append([
            f"{1 + i % 28:02d}/{1 + i // 28:02d}/2018", f"{i % 24:02d}:15", str(rng.integers(9)),
            f"MG-{rng.integers(1000, 9999)}", f"${rng.integers(1, 99)}.{rng.integers(10, 99)}",
            kind, f"These are {said} {i}.", f"https://www.example.com/{i}.html", "",
        ])  # fmt: skip
    return rows


def values(
    cells: list[str], delimiter: str = ",", quote: str = '"', escape: str | None = None
) -> list[str]:
    """Write the values of a row: quotes where they are needed, and around some columns."""
    said = []
    for j, cell in enumerate(cells):
        if j in QUOTED or delimiter in cell or quote in cell:
            cell = (
                quote + cell.replace(quote, (quote if escape is None else escape) + quote) + quote
            )
        said.append(cell)
    return said


def written(cells: list[str], delimiter: str = ",", **how: str) -> str:
    """Write a row without its end."""
    return delimiter.join(values(cells, delimiter, **how))


def joined(rows: list[str], end: str = "\r\n") -> bytes:
    return (end.join(rows) + end).encode()


def polluted_files(n_rows: int, places: Iterable[int]) -> Iterator[Polluted]:
    """Yield the files: those with something wrong in one row for some rows, 0 the header."""
    rows = clean_rows(n_rows)
    yield from _payloads(rows)
    yield from _headers(rows)
    yield from _dialects(rows)
    yield from _tables(rows)
    for i in places:
        yield from _one_row(rows, i)


def _payloads(rows: list[list[str]]) -> Iterator[Polluted]:
    lines = [written(NAMES), *map(written, rows)]
    yield Polluted("source", joined(lines), rows)
    yield Polluted("no_payload", b"", [], False)
    yield Polluted("header_only", joined(lines[:1]), [], False)
    yield Polluted("one_row", joined(lines[:2]), rows[:1])
    yield Polluted("no_trailing_newline", joined(lines)[:-2], rows)
    yield Polluted("double_trailing_newline", joined(lines) + b"\r\n", rows)
    for name, end in (("lf", "\n"), ("cr", "\r")):
        yield Polluted(f"record_delimiter_{name}", joined(lines, end), rows)
    named = [[*row[:-1], "größer – 5 €"] for row in rows]
    text = joined([written(NAMES), *map(written, named)]).decode()
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"):
        yield Polluted(f"encoding_{encoding}", text.encode(encoding), named)
    odd = [[*row[:-1], "größer Ý\x81"] for row in rows]
    text = joined([written(NAMES), *map(written, odd)]).decode()
    yield Polluted("encoding_latin-1", text.encode("latin-1"), odd)


def _headers(rows: list[list[str]]) -> Iterator[Polluted]:
    lines, width = list(map(written, rows)), len(NAMES)
    yield Polluted("no_header", joined(lines), rows)
    for n in (2, 3):
        yield Polluted(f"header_multirow_{n}", joined([*[written(NAMES)] * n, *lines]), rows)
    preambles = {
        "delimited": ["PREAMBLE" + "," * (width - 1), "," * (width - 1)],
        "one": ["Sales of 2018"],
        "empty": ["Sales of 2018", ""],
        "commas": ["Sales, returns", "as of today", ""],
        "quoted": ['"Sales, returns"'],
    }
    for name, above in preambles.items():
        yield Polluted(f"preamble_{name}", joined([*above, written(NAMES), *lines]), rows)
    for name, below in {"one": ["Source: our shops"], "empty": ["", "Source: our shops"]}.items():
        yield Polluted(f"footnote_{name}", joined([written(NAMES), *lines, *below]), rows)


def _dialects(rows: list[list[str]]) -> Iterator[Polluted]:
    table = [NAMES, *rows]
    for delimiter in (";", "\t", "|", ", ", "~", "^"):
        lines = [written(row, delimiter) for row in table]
        yield Polluted(f"delimiter_{delimiter!r}", joined(lines), rows, delimiter not in "~^")
    words = [[cell.replace(" ", "_") or "-" for cell in row] for row in table]
    blanks = [written(row, " ") for row in words]
    yield Polluted("delimiter_blank", joined(blanks), words[1:])
    single = [written(row, quote="'") for row in table]
    yield Polluted("quotation_single", joined(single), rows)
    yield Polluted("escape_backslash", joined([written(r, escape="\\") for r in table]), rows)
    yield Polluted("escape_none", joined([written(row, escape="") for row in table]), rows)
    bare = [[cell.replace(",", "") for cell in row] for row in rows]
    pipes = [[*row[:5], f'{row[5]} 5"', *row[6:]] for row in bare]
    plain = [",".join(row) for row in [NAMES, *pipes]]
    yield Polluted("quotes_that_are_inches", joined(plain), pipes)
    opening = [[*row[:3], f'"{row[3]}', *row[4:]] for row in bare]
    lines = [",".join(NAMES), *(",".join(row).replace(' "best"', "") for row in opening)]
    meant = [[cell.replace(' "best"', "") for cell in row] for row in opening]
    yield Polluted("quotes_that_never_close", joined(lines), meant)


def _tables(rows: list[list[str]]) -> Iterator[Polluted]:
    lines, second = [written(NAMES), *map(written, rows)], rows[: len(rows) // 3]
    for name, n in (("less", len(NAMES) - 1), ("more", len(NAMES) + 1)):
        other = [written([*row, "1"][:n]) for row in [NAMES, *second]]
        yield Polluted(f"multitable_{name}", joined([*lines, *other]), rows)
    again = [written(NAMES), *map(written, second)]
    yield Polluted("multitable_same", joined([*lines, *again]), [*rows, *second])


def _one_row(rows: list[list[str]], i: int) -> Iterator[Polluted]:
    """Yield the files with something wrong in row i, of which 0 is the header."""
    lines = [written(row) for row in [NAMES, *rows]]
    parts = values([NAMES, *rows][i])

    def file(name: str, line: str) -> Polluted:
        return Polluted(name, joined([*lines[:i], line, *lines[i + 1 :]]), rows)

    for j in range(len(parts)):
        before, behind = parts[:j], parts[j:]
        yield file(f"row_more_sep_row{i}_col{j}", ",".join([*before, "", *behind]))
        if j:
            less = ",".join(before) + ",".join(behind)
            yield file(f"row_less_sep_row{i}_col{j}", less)
        quoted = ",".join([*before, '"' + behind[0], *behind[1:]])
        yield file(f"row_extra_quote{i}_col{j}", quoted)
    yield file(f"row_field_delimiter_{i}_blank", " ".join(parts))
