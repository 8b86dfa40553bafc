"""What is certainly wrong with a plain CSV file, found without waiting for pandas.

Only where nothing is left to interpret: ASCII, names that are sure, and columns that hold plain
numbers or plain words. Anything else is left to the reader, which says the same in the same words.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from blockl0.tables.column_kinds import MOSTLY, dirty_message
from blockl0.tables.csv_files import (
    MISSING,
    PACKED,
    has_free_comma,
    longer_rows,
    plain_names,
    plain_records,
)
from blockl0.tables.decimals import certain_doubts
from blockl0.tables.formats import USUAL_TARGETS
from blockl0.tables.gaps import missing_message
from blockl0.tables.spellings import SAMPLE, Written, undress
from blockl0.tables.targets import column_number

LARGEST = 2_000_000
"""Bytes of a file up to which looking takes less time than importing pandas."""
NUMBER = re.compile(r"-?\d{1,7}(\.\d+)?")
"""Numbers that are read in one way only: not dates of eight digits, nor identifiers of more."""
WHOLE = re.compile(r"-?\d+(\.0*)?")
WORD = re.compile(r"[A-Za-z][A-Za-z _-]*")
CODE = re.compile(r"[A-Za-z][A-Za-z0-9 _-]*")
"""As P00017; unless the letters before a number are a unit."""
SPECIAL = frozenset(("true", "false", "t", "f", "inf", "infinity", "nan"))
"""Words that may be truth values or numbers."""
CERTAIN = {"text": "auto", "impute": None, "as_category": (), "as_number": (), "test": None}
"""Options, and the values for which all is certain."""


def refusal(source: Any, options: dict[str, Any]) -> ValueError | None:
    """The error that reading a file would end with; None where none is certain.

    Parameters
    ----------
    source : path
        A CSV file.
    options : dict
        Those of the command line.
    """
    path = Path(source)
    is_plain = path.suffix.lower() not in PACKED and os.path.getsize(path) <= LARGEST
    names = plain_names(path, options["header"]) if is_plain else None
    if names is None:
        return None
    with suppress(UnicodeError, csv.Error, OSError):
        rows = plain_records(path)
        if any(len(cells) > len(names) for cells in rows[1:]):
            return ValueError(longer_rows(path))
        if _are_certain(rows, names, options):
            return _mixed_marks(path, rows[1:], names, options) or _wrong_column(
                rows[1:], names, options
            )
    return None


def plain_columns(source: Any, options: dict[str, Any]) -> dict[str, list[str] | None]:
    """The cells of all columns, None of those that are not plain numbers or words without gaps.

    Empty where nothing is certain.
    """
    path = Path(source)
    is_plain = path.suffix.lower() not in PACKED and os.path.getsize(path) <= LARGEST
    names = plain_names(path, options["header"]) if is_plain else None
    if names is None:
        return {}
    missing = {*MISSING, *options["na"]}
    with suppress(UnicodeError, csv.Error, OSError):
        rows = plain_records(path)
        is_whole = all(len(cells) == len(names) for cells in rows) and len(rows) > 1
        if is_whole and _are_certain(rows, names, options):
            columns = {name: [cells[j] for cells in rows[1:]] for j, name in enumerate(names)}
            return {
                name: texts if _is_clear(texts) and not missing & {*texts} else None
                for name, texts in columns.items()
            }
    return {}


def _are_certain(rows: Sequence[list[str]], names: list[str], options: dict[str, Any]) -> bool:
    """Whether rows, names and options leave nothing to interpret."""
    is_asked = any((options.get(name) or value) != value for name, value in CERTAIN.items())
    is_asked |= isinstance(options["target"], list)  # several
    return not is_asked and rows[0] == names and all(rows)


def _mixed_marks(
    path: Path, rows: Sequence[list[str]], names: list[str], options: dict[str, Any]
) -> ValueError | None:
    """Decimal points in a file of decimal commas: the target is looked at first."""
    is_open = options.get("decimal") in (None, "auto") and not options.get("likely_decimal")
    if not is_open or not any("," in cell for cells in rows[:SAMPLE] for cell in cells):
        return None
    missing = {*MISSING, *options["na"]}
    columns: dict[str, Any] = {
        name: Written(name, [_known(cells, j, missing) for cells in rows])
        for j, name in enumerate(names)
    }
    doubts = certain_doubts(columns, has_free_comma(path))
    used = [target_of(names, options["target"]), *names]
    said = next((doubts[name] for name in used if name in doubts), None)
    return None if said is None or set(options["drop"]) & set(doubts) else ValueError(said)


def _known(cells: list[str], j: int, missing: set[str]) -> str | None:
    """A cell, None where it is missing."""
    return cells[j] if j < len(cells) and cells[j] not in missing else None


def _wrong_column(
    rows: Sequence[list[str]], names: list[str], options: dict[str, Any]
) -> ValueError | None:
    """A column of numbers with words in it, or else those with gaps."""
    missing, target = {*MISSING, *options["na"]}, target_of(names, options["target"])
    columns = {
        name: [row[j] if j < len(row) else "" for row in rows] for j, name in enumerate(names)
    }
    y = columns.pop(target)
    filled = [text for text in y if text not in missing]
    if not _is_clear(filled) or len({*filled}) < 2:
        return None
    gaps, first = {}, None
    places = [i for i, text in enumerate(y) if text not in missing]
    for name in (name for name in columns if name not in options["drop"]):
        cells = [columns[name][i] for i in places]
        known = [text for text in cells if text not in missing]
        if not known or not (_is_clear(known) or (first is None and _is_dirty(known))):
            return None
        if _is_dirty(known):
            first = _dirty(name, cells, known, places)
        elif NUMBER.fullmatch(known[0]):
            if len({*known}) == len(known) and all(map(WHOLE.fullmatch, known)):
                return None  # it may number the rows
            gaps[name] = len(cells) - len(known)
    gaps = {name: count for name, count in gaps.items() if count}
    return first or (ValueError(missing_message(gaps, len(places))) if gaps else None)


def target_of(names: list[str], given: Any) -> str:
    """The column to be explained."""
    usual = next((name for name in USUAL_TARGETS if name in names), names[0])
    return usual if given is None else names[column_number(given, names)]


def are_words(texts: list[str]) -> bool:
    """Whether cells of a column that is plain are words."""
    return not NUMBER.fullmatch(texts[0])


def _is_clear(texts: list[str]) -> bool:
    """Whether all are plain numbers, or all are words."""
    if texts and NUMBER.fullmatch(texts[0]):
        return all(map(NUMBER.fullmatch, texts))
    return all(map(_is_word, texts))


def _is_word(text: str) -> bool:
    """Whether a text is no number, in whatever spelling; dates have no letters."""
    if WORD.fullmatch(text) is None:
        return CODE.fullmatch(text) is not None and undress(text) is None
    return text.lower() not in SPECIAL


def _is_dirty(texts: list[str]) -> bool:
    """Whether most are plain numbers and the others words."""
    words = [text for text in texts if not NUMBER.fullmatch(text)]
    n_numbers = len(texts) - len(words)
    return 0 < len(words) and n_numbers >= MOSTLY * len(texts) and _is_clear(words)


def _dirty(name: str, cells: list[str], known: list[str], places: list[int]) -> ValueError:
    words = list(dict.fromkeys(text for text in known if not NUMBER.fullmatch(text)))
    n_words = sum(text in words for text in known)
    row = places[cells.index(words[0])] + 2
    return ValueError(dirty_message(name, words, n_words, len(known), f"row {row}"))
