"""Recipe that turns columns of a table into numbers: learned from some rows, applied to others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from shlex import quote
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.app.tables.column_kinds import (
    as_texts,
    code_count,
    date_order,
    is_too_long,
    kind_of,
    numbers_the_rows,
    to_numbers,
)
from blockl0.app.tables.dates import SHORT_YEAR
from blockl0.app.tables.gaps import imputed_note, missing_message, with_counts
from blockl0.app.tables.spellings import SAMPLE, first_code, place_of, undress
from blockl0.app.tables.targets import is_missing
from blockl0.text import counted, listing

Floats = NDArray[np.float64]

MAX_LEVELS = 30
"""Text with more levels than this is left out, unless more are requested."""
REPEATED = 0.5
"""Levels per row above which text is not a category by default."""
UNIT = re.compile(r"[-+\u2212\u2013]?\s*\d[\d.,]*\s*(?P<unit>[^\d\s.,()+-]\D{0,11})")
"""A number followed by letters, such as 5 kg."""
WORDY, UNIQUE = 3.0, 0.9
"""Words per text of free text, at least; levels per row of an identifier, at least."""
MISSING = "(missing)"
"""Level of missing texts, if missing values are imputed."""


class Feature(NamedTuple):
    """Origin of a column of X.

    Attributes
    ----------
    name : str
    column : str
        The column of the table.
    kind : "number", "level" or "date"
        The number itself; 1 where the text equals `level` and 0 elsewhere; days since 1970.
    level : str or None
    fill : float or None
        Replaces missing values; None if there must not be any.
    levels : tuple of str or None
        For a level, all texts that the column held.
    order : "day-first", "month-first" or None
        For a date, if the spelling leaves that open.
    reference : str or None
        For a level of a category that is selected as a whole: the level without a column of its
        own, which the others are compared with.
    """

    name: str
    column: str
    kind: str = "number"
    level: str | None = None
    fill: float | None = None
    levels: tuple[str, ...] | None = None
    order: str | None = None
    reference: str | None = None


@dataclass(frozen=True)
class Choices:
    """Options for columns that are not numeric; see `table.read_table`."""

    text: str = "auto"
    impute: str | None = None
    dates: str = "drop"
    max_levels: int = MAX_LEVELS
    date_order: str = "auto"
    as_category: tuple[str, ...] = ()
    as_number: tuple[str, ...] = ()
    levels: str = "together"
    codes: tuple[str, ...] = ()

    def kind_of(self, series: Any) -> str:
        """Return the kind of a column: as requested, or from what it holds."""
        if series.name in self.as_number:
            return "number"
        is_text = series.name in self.as_category or series.name in self.codes
        return "text" if is_text else kind_of(series)


@dataclass
class Findings:
    """Observations made while columns are read."""

    missing: dict[str, int] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    dates: dict[str, str] = field(default_factory=dict)
    coded: dict[str, int] = field(default_factory=dict)
    free: list[str] = field(default_factory=list)
    identifiers: list[str] = field(default_factory=list)
    numbered: list[str] = field(default_factory=list)
    long: list[str] = field(default_factory=list)
    measured: dict[str, str] = field(default_factory=dict)
    crowded: dict[str, int] = field(default_factory=dict)
    codes: dict[str, int] = field(default_factory=dict)
    empty: list[str] = field(default_factory=list)
    short_years: dict[str, str] = field(default_factory=dict)
    zeros: dict[str, str] = field(default_factory=dict)


def learn(frame: Any, choices: Choices) -> tuple[tuple[Feature, ...], tuple[str, ...]]:
    """Learn the features of a table, with notes on what was done."""
    found = Findings()
    features: list[Feature] = []
    for name in frame.columns:
        features += _learn_column(frame[name], name, choices, found)
    return tuple(features), report_findings(found, choices, len(frame))


def report_findings(found: Findings, choices: Choices, n_rows: int) -> tuple[str, ...]:
    """Write notes on the findings, refusing what is not allowed."""
    if found.texts and choices.text == "refuse":
        raise ValueError(
            f"Columns of text: {listing(found.texts)}; --text drop leaves them out, --text auto "
            "makes columns of those that are categories, --text one-hot of all of them."
        )
    if found.dates and choices.dates == "refuse":
        raise ValueError(
            f"Columns of dates: {listing([*found.dates])}; --dates drop leaves them out, "
            "--dates days counts days since 1970."
        )
    gaps = {name: n for name, n in found.missing.items() if name not in found.coded}
    if gaps and choices.impute is None:
        raise ValueError(missing_message(gaps, n_rows))
    return tuple(_notes(found, choices))


def _learn_column(series: Any, name: str, choices: Choices, found: Findings) -> list[Feature]:
    n_missing = int(is_missing(series).sum())
    if n_missing == len(series):
        found.empty.append(name)
        return []
    kind = choices.kind_of(series)
    if kind == "text":
        return _learn_text(series, name, n_missing, choices, found)
    if kind == "date" and choices.dates != "days":
        found.dates[name] = str(series.dropna().iloc[0]) if series.dtype.kind in "iuf" else ""
        return []
    if kind == "number" and name not in choices.as_number:
        if numbers_the_rows(series) or is_too_long(series):
            (found.long if is_too_long(series) else found.numbered).append(name)
            return []
        if n_codes := code_count(series):
            found.codes[name] = n_codes
    if n_missing:
        found.missing[name] = n_missing
    order = _order_of(series, choices) if kind == "date" else None
    fill = None
    if choices.impute in ("median", "mean"):  # also without gaps: new rows may have some
        values = to_numbers(series, name, kind, order)
        fill = float(np.nanmean(values) if choices.impute == "mean" else np.nanmedian(values))
    return [Feature(name, name, kind, None, fill, None, order)]


def _order_of(series: Any, choices: Choices) -> str | None:
    return date_order(series) if choices.date_order == "auto" else choices.date_order


def _learn_text(
    series: Any, name: str, n_missing: int, choices: Choices, found: Findings
) -> list[Feature]:
    is_asked = name in choices.as_category
    if not is_asked and (code := first_code(series)) is not None:
        found.zeros[name] = code
    if choices.text in ("drop", "refuse") and not is_asked:
        found.texts.append(name)
        return []
    texts = as_texts(series).dropna()
    return text_features(name, texts.unique().tolist(), len(texts), n_missing, choices, found)


def text_features(
    name: str, levels: list[str], n_texts: int, n_missing: int, choices: Choices, found: Findings
) -> list[Feature]:
    """Make features of a text column, given its levels and number of texts."""
    is_asked = name in choices.as_category
    if not is_asked and all(map(SHORT_YEAR.fullmatch, levels)):
        found.short_years[name] = levels[0]
        return []
    is_open = is_asked or choices.text == "one-hot"
    if len(levels) > choices.max_levels or not (is_open or do_repeat(levels, n_texts)):
        _sort_out(name, n_texts, levels, found, is_asked)
        return []
    levels = sorted(levels)
    if n_missing:
        found.missing[name] = n_missing
        # a text that equals MISSING is the same level
        levels = [*(level for level in levels if level != MISSING), MISSING]
    found.coded[name] = len(levels)
    # beside an intercept all levels but one suffice: the first is the reference
    is_whole = choices.levels == "together" and len(levels) > 1
    used = levels_used(levels, is_whole)
    is_filled = choices.impute is not None or n_missing
    fills = {level: float(level == MISSING) for level in used} if is_filled else {}
    return [
        Feature(
            f"{name}={level}",
            name,
            "level",
            level,
            fills.get(level),
            tuple(levels),
            reference=levels[0] if is_whole else None,
        )
        for level in used
    ]


def do_repeat(levels: Sequence[str], n_texts: int) -> bool:
    """Check if texts repeat often enough to be a category."""
    return len(levels) <= max(2.0, REPEATED * n_texts)


def levels_used(levels: list[str], is_whole: bool) -> list[str]:
    """Select the sorted levels that become columns: without the first if it is redundant."""
    return levels[1:] if is_whole or len(levels) == 2 else levels


def _sort_out(name: str, n_texts: int, levels: list[str], found: Findings, is_asked: bool) -> None:
    """Record why a text column is not a category."""
    sample = levels[:SAMPLE]
    n_words = sum(len(level.split()) for level in sample) / len(sample)
    if is_asked:
        found.crowded[name] = len(levels)
    elif measured := _with_unit(sample):
        found.measured[name] = measured
    elif n_words >= WORDY:
        found.free.append(name)
    elif len(levels) > UNIQUE * n_texts:
        found.identifiers.append(name)
    else:
        found.crowded[name] = len(levels)


def _with_unit(levels: list[str]) -> str | None:
    """Return the first text if all are numbers followed by the same unknown unit."""
    matches = [m for level in levels if (m := UNIT.fullmatch(level)) and not undress(level)]
    units = Counter(match["unit"] for match in matches)
    if not units or max(units.values()) < UNIQUE * len(levels):
        return None
    return matches[0].string


def _notes(found: Findings, choices: Choices) -> Iterable[str]:
    if found.texts:
        yield f"{counted(found.texts, 'column')} of text dropped (--text auto codes categories)."
    if found.zeros:
        yield _zeros_note(found.zeros)
    if found.coded:
        yield _categories_note(found.coded, choices.levels)
    if found.free:
        yield f"{counted(found.free, 'column')} of free text left out."
    yield from _identifier_notes(found)
    if found.measured:
        shown = [f"{name} ({text})" for name, text in found.measured.items()]
        yield (
            f"Numbers with a unit that is not known left out: {listing(shown)}; write the unit "
            "into the name of the column."
        )
    if found.crowded:
        most = max(found.crowded.values())
        option = f"--max-levels {most}" if most > choices.max_levels else "--text one-hot"
        yield (
            "Text with too many different values left out: "
            f"{listing(with_counts(found.crowded, 'value'))} ({option} makes columns of them)."
        )
    if found.codes:
        yield _codes_note(found.codes)
    yield from _dates_notes(found.dates)
    for name, shown in found.short_years.items():
        yield (
            f"Column {name!r} left out: dates as {shown!r} do not tell the century; write years "
            "with four digits."
        )
    if found.empty:
        yield f"{counted(found.empty, 'column')} without any value dropped."
    if found.missing and choices.impute != "drop-rows":
        yield from _gap_notes(found, choices.impute)


def _categories_note(coded: dict[str, int], levels: str) -> str:
    shown = listing(with_counts(coded, "value"))
    if levels == "separate":
        return f"Text made into columns of 0 and 1: {shown}."
    many = max(coded.values()) > 2
    more = "; --levels separate chooses among their values" if many else ""
    return f"Categories, each in or out as a whole: {shown}{more}."


def _zeros_note(zeros: dict[str, str]) -> str:
    shown = listing([f"{name} (as {code})" for name, code in zeros.items()])
    return (
        f"Digits with leading zeros are codes, taken for categories: {shown}; --as-number "
        f"{quote(next(iter(zeros)))} takes them for numbers."
    )


def _identifier_notes(found: Findings) -> Iterable[str]:
    if found.identifiers:
        shown = listing(found.identifiers)
        yield f"Left out as identifiers, with a different value in every row: {shown}."
    if found.numbered:
        yield (
            f"Left out as identifiers, with a different value in every row: "
            f"{listing(found.numbered)} (--as-number {quote(found.numbered[0])} keeps it)."
        )
    if found.long:
        yield (
            f"Left out as identifiers, whole numbers of 16 digits or more: {listing(found.long)} "
            f"(--as-number {quote(found.long[0])} keeps it)."
        )


def _codes_note(codes: dict[str, int]) -> str:
    name = quote(next(iter(codes)))
    return (
        f"Few different whole numbers, taken as numbers: {listing(with_counts(codes, 'value'))}. "
        f"If they are codes, --as-category {name} makes a category of them; --as-number {name} "
        "says that they are numbers."
    )


def _dates_notes(dates: dict[str, str]) -> Iterable[str]:
    if dates:
        yield f"{counted([*dates], 'column')} of dates dropped (--dates days makes numbers)."
    for name, digits in dates.items():
        if digits:
            yield (
                f"Column {name!r} holds dates of eight digits, as {int(float(digits))} "
                f"(--as-number {quote(name)} takes them as they are)."
            )


def _gap_notes(found: Findings, impute: str | None) -> Iterable[str]:
    texts = {name: n for name, n in found.missing.items() if name in found.coded}
    numbers = {name: n for name, n in found.missing.items() if name not in found.coded}
    if texts:
        yield (
            f"Missing text is treated as a level of its own, {MISSING!r}: "
            f"{listing(with_counts(texts, 'row'))}."
        )
    if numbers:
        yield imputed_note(numbers, str(impute))


def build(frame: Any, features: Sequence[Feature]) -> Floats:
    """Build X (m, n) in Fortran order, with fills applied and NaN for other gaps."""
    X = np.empty((len(frame), len(features)), order="F")
    texts: dict[str, Any] = {}
    for j, feature in enumerate(features):
        series = frame[feature.column]
        if feature.kind == "level":
            if feature.column not in texts:
                texts = {feature.column: as_texts(series).fillna(MISSING)}
            values = (texts[feature.column] == feature.level).to_numpy(np.float64)
            if feature.fill is None:
                values[series.isna().to_numpy()] = np.nan
        else:
            order = feature.order
            if feature.kind == "date" and order is None:
                order = date_order(series)
            values = to_numbers(series, feature.column, feature.kind, order)
            if feature.fill is not None:
                values = np.where(np.isnan(values), feature.fill, values)
        X[:, j] = values
    return X


def apply(frame: Any, features: Sequence[Feature]) -> Floats:
    """Build X for new rows, ignoring other columns and refusing missing columns and values."""
    absent = [f.column for f in features if f.column not in frame.columns]
    if absent:
        raise ValueError(
            f"The data must hold the {counted(list(dict.fromkeys(absent)), 'column')} of the model."
        )
    X = build(frame, features)
    missing = {
        feature.column: int(np.isnan(X[:, j]).sum())
        for j, feature in enumerate(features)
        if np.isnan(X[:, j]).any()
    }
    if missing:
        raise ValueError(missing_message(missing, len(frame), is_new=True))
    if not np.isfinite(X).all():
        j = int(np.argmin(np.isfinite(X).all(axis=0)))
        where = place_of(frame, int(np.argmin(np.isfinite(X[:, j]))))
        raise ValueError(f"Column {features[j].column!r} is infinite in {where}; bound it.")
    return X


def unseen(frame: Any, features: Sequence[Feature]) -> list[str]:
    """Write notes on texts not seen in the fit, which count as none of the known ones."""
    known = {f.column: {*(f.levels or ()), MISSING} for f in features if f.levels is not None}
    references = {f.column: f.reference for f in features}
    notes = []
    for column, levels in known.items():
        texts = as_texts(frame[column]).dropna()
        other = texts[~texts.isin(levels)]
        if len(other):
            shown = listing([repr(text) for text in dict.fromkeys(other)])
            reference = references[column]
            counts = "none of the known ones" if reference is None else repr(reference)
            notes.append(
                f"Column {column!r} holds texts that the fit has not seen, in {len(other)} of "
                f"{len(frame)} rows: {shown}; they count as {counts}."
            )
    return notes
