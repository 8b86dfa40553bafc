"""Recipe that turns columns of a table into numbers, for rows seen and new; units of columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.app.tables.column_kinds import (
    as_texts,
    date_order,
    kind_of,
    to_numbers,
)
from blockl0.app.tables.rows import imputed_note, missing_message, with_counts
from blockl0.app.tables.spellings import place_of
from blockl0.text import count, counted, listing

Floats = NDArray[np.float64]

MAX_LEVELS = 30
"""Text with more levels than this is left out, unless more are requested."""
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


Findings = defaultdict[str, dict[str, Any]]
"""Columns by what was found of them, as in `NOTES`, each with a number or a text that shows it."""

NOTES = {
    "texts": "{columns} of text dropped (--text auto codes categories).",
    "zeros": "Digits with leading zeros are codes, taken for categories: {shown}; --as-number "
    "{first} takes them for numbers.",
    "coded": "{made}: {shown}{apart}.",
    "free": "{columns} of free text left out.",
    "identifiers": "Left out as identifiers, with a different value in every row: {shown}.",
    "numbered": "Left out as identifiers, with a different value in every row: {shown} "
    "(--as-number {first} keeps it).",
    "long": "Left out as identifiers, whole numbers of 16 digits or more: {shown} (--as-number "
    "{first} keeps it).",
    "measured": "Numbers with a unit that is not known left out: {shown}; write the unit into the "
    "name of the column.",
    "crowded": "Text with too many different values left out: {shown} ({option} makes columns of "
    "them).",
    "codes": "Few different whole numbers, taken as numbers: {shown}. If they are codes, "
    "--as-category {first} makes a category of them; --as-number {first} says that they are "
    "numbers.",
    "dates": "{columns} of dates dropped (--dates days makes numbers).",
    "digits": "Column {name!r} holds dates of eight digits, as {value} (--as-number {first} takes "
    "them as they are).",
    "short_years": "Column {name!r} left out: dates as {value!r} do not tell the century; write "
    "years with four digits.",
    "empty": "{columns} without any value dropped.",
}
"""What is said of columns: of all together, or of each where its name is in the sentence."""


def report_findings(found: Findings, choices: Choices, n_rows: int) -> tuple[str, ...]:
    """Write notes on the findings, refusing what is not allowed."""
    if found["texts"] and choices.text == "refuse":
        raise ValueError(
            f"Columns of text: {listing([*found['texts']])}; --text drop leaves them out, --text "
            "auto makes columns of those that are categories, --text one-hot of all of them."
        )
    if found["dates"] and choices.dates == "refuse":
        raise ValueError(
            f"Columns of dates: {listing([*found['dates']])}; --dates drop leaves them out, "
            "--dates days counts days since 1970."
        )
    numbers = {name: n for name, n in found["missing"].items() if name not in found["coded"]}
    texts = {name: n for name, n in found["missing"].items() if name in found["coded"]}
    if numbers and choices.impute is None:
        raise ValueError(missing_message(numbers, n_rows))
    notes = [*_notes(found, choices)]
    if texts and choices.impute != "drop-rows":
        notes.append(
            f"Missing text is treated as a level of its own, {MISSING!r}: "
            f"{listing(with_counts(texts, 'row'))}."
        )
    if numbers and choices.impute != "drop-rows":
        notes.append(imputed_note(numbers, str(choices.impute)))
    return tuple(notes)


def _notes(found: Findings, choices: Choices) -> Iterator[str]:
    """Fill in the sentences of what was found."""
    is_apart = choices.levels == "separate"
    has_many = max(found["coded"].values(), default=0) > 2
    most = max(found["crowded"].values(), default=0)
    whole, apart = "Categories, each in or out as a whole", "Text made into columns of 0 and 1"
    words = {
        "made": apart if is_apart else whole,
        "apart": "; --levels separate chooses among their values" * (has_many and not is_apart),
        "option": f"--max-levels {most}" if most > choices.max_levels else "--text one-hot",
    }
    for reason, sentence in NOTES.items():
        columns = [*found[reason].items()]
        # one sentence for all columns, or one for each
        for some in [[item] for item in columns] if "{name" in sentence else [columns]:
            if some:
                (name, value), names = some[0], [name for name, _ in some]
                yield sentence.format(
                    columns=counted(names, "column"), shown=listing([*map(_shown, some)]),
                    first=quote(name), name=name, value=value, **words,
                )  # fmt: skip


def _shown(item: tuple[str, Any]) -> str:
    """Show a column with its number of values, or with a text."""
    name, value = item
    if value is None:
        return name
    return f"{name} ({count(value, 'value') if isinstance(value, int) else value})"


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


# -- units -----------------------------------------------------------------------------------------


class Unit(NamedTuple):
    """A column of the table that is in or out of the model as a whole.

    Attributes
    ----------
    name : str
        Name of the category, or of the only column of X.
    column : str
        Column of the table.
    columns : tuple of int
        Columns of X.
    levels : tuple of str
        The levels of a category with several columns, one for each; otherwise empty.
    reference : str or None
        The level that the others are compared with.
    """

    name: str
    column: str
    columns: tuple[int, ...]
    levels: tuple[str, ...] = ()
    reference: str | None = None


def units_of(names: Sequence[str], features: Sequence[Feature] | None) -> tuple[Unit, ...]:
    """Group the columns of X into units, in order; levels of a category are adjacent."""
    if features is None:
        return tuple(Unit(name, name, (j,)) for j, name in enumerate(names))
    places: dict[tuple[str, int], list[int]] = {}
    for j, feature in enumerate(features):
        # levels selected individually have no reference
        key = (feature.column, -1 if feature.reference is not None else j)
        places.setdefault(key, []).append(j)
    return tuple(_unit(columns, features) for columns in places.values())


def _unit(columns: list[int], features: Sequence[Feature]) -> Unit:
    first = features[columns[0]]
    if len(columns) == 1:
        return Unit(first.name, first.column, (columns[0],), (), first.reference)
    levels = tuple(str(features[j].level) for j in columns)
    return Unit(first.column, first.column, tuple(columns), levels, first.reference)


def labels_of(units: Sequence[Unit]) -> list[str] | None:
    """Label every column of X for `feature_groups`; None if each column is its own unit."""
    if not any(unit.levels for unit in units):
        return None
    return [unit.column for unit in units for _ in unit.columns]
