"""How the columns of a table become numbers: learned from some rows, applied to any others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOSTLY = 0.8
"""Share of numbers from which a column of text is a column of numbers with something wrong."""
MAX_LEVELS = 100
"""More different texts than this are not made into columns."""
MISSING = "(missing)"
"""The level of a text that is not there, where missing values are imputed."""
ISO_DATE = r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2})?(\.\d+)?(Z|[+-]\d{2}:?\d{2})?)?"
LISTED = 8
"""Names spelled out in a message."""


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
        What stands in for a missing number.
    """

    name: str
    column: str
    kind: str = "number"
    level: str | None = None
    fill: float | None = None


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
        return _learn_levels(series, name, n_missing, found)
    fill = None
    if n_missing:
        found.missing[name] = n_missing
        values = to_numbers(series, name, kind)
        fill = float(np.nanmean(values) if impute == "mean" else np.nanmedian(values))
    return [Feature(name, name, kind, None, fill)]


def _learn_levels(series: Any, name: str, n_missing: int, found: Findings) -> list[Feature]:
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
    return [Feature(f"{name}={level}", name, "level", level) for level in used]


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


def kind_of(series: Any) -> str:
    """What a column holds: "number", "date" or "text"; mostly numbers with some text is refused."""
    from pandas.api import types

    if types.is_complex_dtype(series.dtype):
        raise ValueError(f"Column {series.name!r} holds complex numbers; give real ones.")
    if types.is_timedelta64_dtype(series.dtype) or types.is_datetime64_any_dtype(series.dtype):
        return "date"
    if types.is_numeric_dtype(series.dtype):
        return "number"
    values = series.dropna()
    if len(values) == 0 or values.map(lambda value: isinstance(value, bool | np.bool_)).all():
        return "number"
    texts = values.astype(str)
    if texts.str.fullmatch(ISO_DATE).all():
        return "date"
    is_number = _parse(texts).notna()
    if is_number.all():
        return "number"
    if is_number.mean() >= MOSTLY:
        others = list(dict.fromkeys(texts[~is_number]))
        shown = ", ".join(repr(text) for text in others[:3])
        raise ValueError(
            f"Column {series.name!r} holds numbers, but also {shown} in {int((~is_number).sum())} "
            f"of {len(texts)} rows; correct them, or call them missing with --na {others[0]!r}, or "
            f"leave the column out with --drop {series.name!r}."
        )
    return "text"


def _parse(texts: Any) -> Any:
    import pandas

    return pandas.to_numeric(texts, errors="coerce")


def to_numbers(series: Any, name: str, kind: str) -> Floats:
    """A column of numbers or dates as float64, NaN where missing; text in it is refused."""
    import pandas

    if kind == "date":
        if series.dtype.kind == "m":
            return (series / pandas.Timedelta(days=1)).to_numpy(np.float64)
        days = pandas.to_datetime(series, utc=True, errors="coerce")
        values = ((days - pandas.Timestamp(0, tz="UTC")) / pandas.Timedelta(days=1)).to_numpy(
            np.float64
        )
    elif series.dtype.kind in "biuf":
        return series.to_numpy(np.float64)
    else:
        plain = series.map(float, na_action="ignore") if _is_bool(series) else series
        values = _parse(plain).to_numpy(np.float64, na_value=np.nan)
    is_bad = np.isnan(values) & series.notna().to_numpy()
    if is_bad.any():
        row = int(np.argmax(is_bad))
        raise ValueError(
            f"Column {name!r} must hold {kind}s, got {series.iloc[row]!r} in row {row}."
        )
    return values


def _is_bool(series: Any) -> bool:
    return bool(series.map(lambda v: isinstance(v, bool | np.bool_), na_action="ignore").any())


def build(frame: Any, features: Sequence[Feature]) -> Floats:
    """X (m, n) in Fortran order, without further ado but for the fills; NaN where missing."""
    X = np.empty((len(frame), len(features)), order="F")
    done: dict[str, Any] = {}
    for j, feature in enumerate(features):
        series = frame[feature.column]
        if feature.kind == "level":
            if feature.column not in done:
                done = {feature.column: series.astype(object).where(series.notna(), MISSING)}
            X[:, j] = done[feature.column].astype(str) == feature.level
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
        raise ValueError(missing_message(missing))
    return X


# -- words -----------------------------------------------------------------------------------------


def missing_message(missing: dict[str, int]) -> str:
    """Which columns lack values, how many, and what to do."""
    return (
        f"Missing values in {len(missing)} column{'s' if len(missing) > 1 else ''}: "
        f"{listing(_with_counts(missing, 'row'))}; --impute median or mean fills them, "
        "--impute drop-rows leaves those rows out, --drop NAME the column."
    )


def imputed_note(missing: dict[str, int], impute: str, has_text: bool = False) -> str:
    """Which columns were filled, and by what."""
    texts = f", of text by {MISSING!r}" if has_text else ""
    where = listing(_with_counts(missing, "row"))
    return f"Missing values filled by the {impute} of the column{texts}: {where}."


def listing(names: Sequence[str]) -> str:
    """'a, b and 3 more'."""
    more = len(names) - LISTED
    return ", ".join(names[:LISTED]) + (f" and {more} more" if more > 0 else "")


def counted(names: Sequence[str], noun: str) -> str:
    """'2 columns (a, b)'."""
    return f"{len(names)} {noun}{'' if len(names) == 1 else 's'} ({listing(names)})"


def _with_counts(counts: dict[str, int], noun: str) -> list[str]:
    return [f"{name} ({count} {noun}{'' if count == 1 else 's'})" for name, count in counts.items()]
