"""How the columns of a table become numbers: learned from some rows, applied to any others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.tables.column_kinds import kind_of, to_numbers
from blockl0.text import count, counted, listing

Floats = NDArray[np.float64]

MAX_LEVELS = 100
"""More different texts than this are not made into columns."""
MISSING = "(missing)"
"""The level of a text that is not there, where missing values are imputed."""


class Feature(NamedTuple):
    """A column of X: where it comes from, and how.

    Attributes
    ----------
    name : str
    column : str
        The column of the table.
    kind : "number", "level" or "date"
        As it is; 1 where the text equals `level` and 0 elsewhere; days since 1970.
    level : str or None
    fill : float or None
        What stands in for a missing value; None where there must not be any.
    levels : tuple of str or None
        For a level, all texts that the column held.
    """

    name: str
    column: str
    kind: str = "number"
    level: str | None = None
    fill: float | None = None
    levels: tuple[str, ...] | None = None


@dataclass
class Findings:
    """What is noticed while the columns are read."""

    missing: dict[str, int]
    texts: list[str]
    dates: list[str]
    crowded: dict[str, int]
    coded: dict[str, int]
    empty: list[str]


def learn(
    frame: Any, *, text: str, impute: str | None, dates: str
) -> tuple[tuple[Feature, ...], tuple[str, ...]]:
    """The features of a table, and notes on what was done; parameters as in `read_table`."""
    found = Findings({}, [], [], {}, {}, [])
    features: list[Feature] = []
    for name in frame.columns:
        features += _learn_column(frame[name], name, text, impute, dates, found)
    if found.texts and text == "refuse":
        raise ValueError(
            f"Columns of text: {listing(found.texts)}; --text drop leaves them out, "
            "--text one-hot makes a column of every value."
        )
    if found.dates and dates == "refuse":
        raise ValueError(
            f"Columns of dates: {listing(found.dates)}; --dates drop leaves them out, "
            "--dates days counts days since 1970."
        )
    if found.missing and impute is None:
        raise ValueError(missing_message(found.missing))
    return tuple(features), tuple(_notes(found, dates, impute))


def _learn_column(
    series: Any, name: str, text: str, impute: str | None, dates: str, found: Findings
) -> list[Feature]:
    kind = kind_of(series)
    if kind == "text" and text != "one-hot":
        found.texts.append(name)
        return []
    if kind == "date" and dates != "days":
        found.dates.append(name)
        return []
    n_missing = int(series.isna().sum())
    if n_missing == len(series):
        found.empty.append(name)
        return []
    if kind == "text":
        return _learn_levels(series, name, n_missing, impute, found)
    if n_missing:
        found.missing[name] = n_missing
    fill = None
    if impute in ("median", "mean"):  # also without gaps: new rows may have some
        values = to_numbers(series, name, kind)
        fill = float(np.nanmean(values) if impute == "mean" else np.nanmedian(values))
    return [Feature(name, name, kind, None, fill)]


def _learn_levels(
    series: Any, name: str, n_missing: int, impute: str | None, found: Findings
) -> list[Feature]:
    levels = sorted({str(value) for value in series.dropna()})
    if len(levels) > MAX_LEVELS:
        found.crowded[name] = len(levels)
        return []
    if n_missing:
        found.missing[name] = n_missing
        levels.append(MISSING)
    found.coded[name] = len(levels)
    # of two values one column says it all
    used = levels[1:] if len(levels) == 2 else levels
    fills = {level: float(level == MISSING) for level in used} if impute else {}
    return [
        Feature(f"{name}={level}", name, "level", level, fills.get(level), tuple(levels))
        for level in used
    ]


def _notes(found: Findings, dates: str, impute: str | None) -> Iterable[str]:
    if found.texts:
        yield f"{counted(found.texts, 'column')} of text dropped (--text one-hot codes them)."
    if found.coded:
        yield f"Text made into columns of 0 and 1: {listing(_with_counts(found.coded, 'value'))}."
    if found.crowded:
        crowded = listing(_with_counts(found.crowded, "value"))
        yield f"Text with more than {MAX_LEVELS} different values dropped: {crowded}."
    if found.dates:
        yield f"{counted(found.dates, 'column')} of dates dropped (--dates days makes numbers)."
    if found.empty:
        yield f"{counted(found.empty, 'column')} without any value dropped."
    if found.missing:
        has_text = bool(found.coded.keys() & found.missing.keys())
        yield imputed_note(found.missing, str(impute), has_text)


def build(frame: Any, features: Sequence[Feature]) -> Floats:
    """X (m, n) in Fortran order, without further ado but for the fills; NaN where missing."""
    X = np.empty((len(frame), len(features)), order="F")
    texts: dict[str, Any] = {}
    for j, feature in enumerate(features):
        series = frame[feature.column]
        if feature.kind == "level":
            if feature.column not in texts:
                texts = {feature.column: series.astype(object).where(series.notna(), MISSING)}
            values = (texts[feature.column].astype(str) == feature.level).to_numpy(np.float64)
            if feature.fill is None:
                values[series.isna().to_numpy()] = np.nan
        else:
            values = to_numbers(series, feature.column, feature.kind)
            if feature.fill is not None:
                values = np.where(np.isnan(values), feature.fill, values)
        X[:, j] = values
    return X


def apply(frame: Any, features: Sequence[Feature]) -> Floats:
    """X for new rows: other columns are ignored; missing columns and values are refused by name."""
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
        raise ValueError(missing_message(missing, is_new=True))
    return X


def unseen(frame: Any, features: Sequence[Feature]) -> list[str]:
    """Notes on texts that the fit did not know: they count as none of the known ones."""
    known = {f.column: {*(f.levels or ()), MISSING} for f in features if f.levels is not None}
    notes = []
    for column, levels in known.items():
        texts = frame[column].dropna().astype(str)
        other = texts[~texts.isin(levels)]
        if len(other):
            shown = listing([repr(text) for text in dict.fromkeys(other)])
            notes.append(
                f"Column {column!r} holds texts that the fit has not seen, in {len(other)} of "
                f"{len(frame)} rows: {shown}; they count as none of the known ones."
            )
    return notes


# -- words -----------------------------------------------------------------------------------------


def missing_message(missing: dict[str, int], is_new: bool = False) -> str:
    """Which columns lack values, how many, and what to do; `is_new` for the rows of a model."""
    advice = "--impute median or mean fills them, --impute drop-rows leaves those rows out, --drop "
    advice += "NAME the column"
    if is_new:
        advice = "the model has nothing to put there: fill them, leave those rows out, or fit "
        advice += "again with --impute median"
    return (
        f"Missing values in {count(len(missing), 'column')}: "
        f"{listing(_with_counts(missing, 'row'))}; {advice}."
    )


def imputed_note(missing: dict[str, int], impute: str, has_text: bool = False) -> str:
    """Which columns were filled, and by what."""
    texts = f", of text by {MISSING!r}" if has_text else ""
    where = listing(_with_counts(missing, "row"))
    return f"Missing values filled by the {impute} of the column{texts}: {where}."


def _with_counts(counts: dict[str, int], noun: str) -> list[str]:
    return [f"{name} ({count(number, noun)})" for name, number in counts.items()]
