"""Polluted CSV files are read as they are meant, or refused with the option that reads them."""

from __future__ import annotations

import re
import shlex
from collections import Counter

import pytest

from blockl0.app.tables.formats import Raw, read_raw
from blockl0.app.tables.spellings import to_float, undress
from polluted import NAMES, Polluted, polluted_files

pytest.importorskip("pandas", reason="tables need pandas")

FLAGS = ("--skip-bad-rows", "--fill-short-rows")
OPTION = re.compile(
    r"--(?:skip-rows \d+|header no|delimiter (?:'.'|[a-z]+)|quote [a-z]+|encoding [a-z]+-?\d*|"
    r"skip-bad-rows)"
)


def cure(said: str) -> dict[str, object]:
    """Return the first options that a message names, as arguments of `read_raw`."""
    found: dict[str, object] = {}
    end = None
    for match in OPTION.finditer(said):
        if end is not None and match.start() != end + 1:
            break
        end = match.end()
        name, *value = shlex.split(match.group())
        key = name[2:].replace("-", "_")
        found[key] = True if name in FLAGS else int(value[0]) if key == "skip_rows" else value[0]
    return found


def is_same(cell: object, text: str) -> bool:
    """Return whether a cell that was read is what was written, a number among others."""
    if cell is None or cell != cell:
        return text == ""
    if isinstance(cell, str):
        return cell.strip() == text
    number = undress(text)
    return number is not None and to_float(number.bare, "point") == float(cell)  # pyright: ignore


def n_absent(raw: Raw, rows: list[list[str]]) -> int | None:
    """Return how many rows were not read; None if one was read that nobody has written."""
    rest = iter(rows)
    for cells in raw.data.to_numpy(object):
        if not any(all(map(is_same, cells, row)) for row in rest if len(row) == len(cells)):
            return None
    return len(rows) - raw.n_rows


def n_left_out(raw: Raw) -> int:
    """Return how many rows are said to be left out."""
    said = [note for note in raw.notes if "left out, as asked" in note]
    return int(said[0].split()[0]) if said else 0


def check(file: Polluted, path) -> str:
    """Read a file, if need be with what its refusal names, and compare it with what it means."""
    path.write_bytes(file.content)
    how: dict[str, object] = {}
    for _ in range(3):
        try:
            raw = read_raw(path, **how)
        except ValueError as error:
            said = str(error)
            assert said.endswith(".") and "token" not in said and "passed names" not in said, said
            more = cure(said)
            if not more:
                assert not file.has_cure, (file.name, said)
                return "refused"
            assert not set(more.items()) <= set(how.items()), (file.name, said)
            how |= more
            continue
        absent = n_absent(raw, file.rows)
        assert absent is not None, (file.name, how)
        assert absent <= n_left_out(raw) or "header" in how, (file.name, how, raw.notes)
        assert list(raw.names) == NAMES or any("no header" in note for note in raw.notes)
        return "read" if not how else "cured"
    raise AssertionError(f"{file.name} is not read with {how}: {said}")


def test_polluted_files_are_read_right_or_refused_with_what_reads_them(tmp_path):
    """A table of few rows: every kind of file, and some with a wrong header or row."""
    files = [*polluted_files(8, ()), *list(polluted_files(8, (0, 8)))[-52::4]]
    tally = Counter(check(file, tmp_path / "t.csv") for file in files)
    assert tally["cured"] > 5 * tally["refused"] and tally["read"] > 10


@pytest.mark.slow
def test_all_polluted_files_are_read_right_or_refused_with_what_reads_them(tmp_path):
    tally = Counter(check(file, tmp_path / "t.csv") for file in polluted_files(83, range(84)))
    assert tally.total() > 2200 and tally["cured"] > 0.9 * (tally["cured"] + tally["refused"])
