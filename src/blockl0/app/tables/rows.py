"""Rows of a table: those that have a target, those without gaps; and the target as numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from shlex import quote
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.app.tables.column_kinds import kind_of, to_numbers
from blockl0.app.tables.formats import TARGET_NAMES, USUAL_TARGETS, Raw
from blockl0.app.tables.spellings import first_code, place_of
from blockl0.text import count, did_you_mean, listing
from blockl0.validate import is_sparse

PLAIN = (np.dtype(np.float64), np.dtype(np.int64))
"""Types that need no pandas, which is slow for many columns."""


def split_target(raw: Raw, target: str | int | None) -> tuple[Raw, str, Any]:
    """Split off the target: return (other columns, its name, its raw values)."""
    names = list(raw.names)
    is_apart = target in (None, raw.y_name) or (target in TARGET_NAMES and target not in names)
    if raw.y is not None and is_apart:
        return replace(raw, y=None), raw.y_name, np.asarray(raw.y)
    if target is None:
        target = next((name for name in USUAL_TARGETS if name in names), None)
        if target is None:
            raise no_target(names)
    j = column_number(target, names)
    raw.refuse_doubts([names[j]])
    others = [i for i in range(len(names)) if i != j]
    if raw.is_frame:
        y, data = raw.data.iloc[:, j], raw.data.iloc[:, others]
    else:
        column = raw.data[:, [j]]
        y = (column.toarray() if is_sparse(column) else column)[:, 0]
        data = raw.data[:, others]
    return replace(raw, data=data, names=tuple(names[i] for i in others), y=None), names[j], y


def split_targets(raw: Raw, target: Any) -> tuple[Raw, tuple[str, ...], list[Any]]:
    """Split off one target or several: return (other columns, names, values)."""
    if not isinstance(target, list | tuple):
        rest, name, y = split_target(raw, target)
        return rest, (name,), [y]
    names = list(raw.names)
    found = tuple(names[column_number(one, names)] for one in target)
    if len(set(found)) < len(found):
        twice = next(name for name in found if found.count(name) > 1)
        raise ValueError(f"The target {twice!r} is given more than once.")
    values = []
    for name in found:
        raw, _, y = split_target(raw, name)
        values.append(y)
    return raw, found, values


def clean_targets(values: list[Any], names: Sequence[str]) -> NDArray[Any]:
    """Clean one target, (m,) numbers or labels, or several, (m, q) numbers."""
    cleaned = [clean_target(y, name) for y, name in zip(values, names, strict=True)]
    if len(cleaned) == 1:
        return cleaned[0]
    for y, name in zip(cleaned, names, strict=True):
        if y.dtype.kind not in "iuf":
            raise ValueError(
                f"Several targets must hold numbers, but {name!r} holds labels; explain it by "
                "itself."
            )
    return np.column_stack(cleaned)


def code_notes(values: list[Any], names: Sequence[str]) -> Iterator[str]:
    """Yield notes on targets with leading zeros, which are read as numbers."""
    for y, name in zip(values, names, strict=True):
        code = first_code(y) if hasattr(y, "iloc") else None
        if code is not None:
            yield (
                f"The target {name!r} holds {code!r}, read as the number {int(code)}; --loss "
                "logistic takes its values for classes."
            )


def column_number(target: str | int, names: list[str]) -> int:
    """Return the index of a column given by name or number."""
    if str(target) in names:
        return names.index(str(target))
    try:
        number = int(target)
    except ValueError:
        raise no_such_column(str(target), names) from None
    if not -len(names) <= number < len(names):
        raise ValueError(f"Columns are numbered 0 to {len(names) - 1}, got {number}.")
    return number % len(names)


def no_target(names: list[str]) -> ValueError:
    """Return the error for a target that was not named."""
    return ValueError(
        f"Which column is to be explained? Give --target; there are {listing(names)}."
    )


def no_such_column(name: str, names: list[str]) -> ValueError:
    """Return the error for an unknown column, suggesting a similar name."""
    hint = did_you_mean(name, names)
    return ValueError(f"There is no column {name!r}.{hint} There are {listing(names)}.")


def clean_target(y: Any, name: str) -> NDArray[Any]:
    """Convert to float64, booleans or stripped labels, refusing missing values."""
    values = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y)
    n_missing = int(is_missing(y).sum())
    if n_missing:
        raise ValueError(f"The target {name!r} is missing in {n_missing} of {len(values)} rows.")
    if values.dtype.kind in "bU":
        return values
    if hasattr(y, "iloc"):
        kind = kind_of(y)
        if kind == "date":
            raise ValueError(f"The target {name!r} holds dates; give numbers or labels.")
        if kind == "text" and first_code(y) is not None:
            kind = "number"
        if kind == "text":
            return np.strings.strip(values.astype(str))
        if values.dtype.kind == "O" and all(isinstance(value, bool) for value in values):
            return values.astype(bool)
        values = to_numbers(y, name, kind)
    values = values.astype(np.float64)
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        where = place_of(y, row) if hasattr(y, "iloc") else f"row {row + 1}"
        raise ValueError(f"The target {name!r} is infinite in {where}; remove or bound it.")
    return values


def is_missing(y: Any) -> NDArray[np.bool_]:
    """Mark the missing values of a column or array of any kind."""
    if hasattr(y, "isna") and y.dtype not in PLAIN:
        return y.isna().to_numpy(np.bool_)
    values = np.asarray(y)
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, dtype=np.bool_)


# -- gaps ------------------------------------------------------------------------------------------


def with_target(raw: Raw, target: Any) -> Raw:
    """Keep the rows that have all targets, noting how many are left out."""
    _, names, values = split_targets(raw, target)
    lacks = [is_missing(y) for y in values]
    empty = [name for name, gaps in zip(names, lacks, strict=True) if gaps.all()]
    if empty:
        raise ValueError(f"The target {empty[0]!r} has no value at all; give another --target.")
    missing = np.logical_or.reduce(lacks)
    name = ", ".join(names)
    n_missing = int(missing.sum())
    if n_missing == 0:
        return raw
    if n_missing == len(missing):
        raise ValueError(f"No row has all targets ({name}); give fewer of them.")
    left = raw.take(np.flatnonzero(~missing))
    said = f"{count(n_missing, 'row')} of {len(missing)} without a target ({name}) left out."
    return replace(left, notes=(*raw.notes, said))


def whole_rows(raw: Raw, columns: Collection[str]) -> NDArray[np.bool_]:
    """Find the rows without missing values in some columns."""
    rows: Any = _missing_in(raw, columns).any(axis=1)
    return ~rows


def without_gaps(raw: Raw, columns: Collection[str]) -> tuple[Raw, NDArray[np.bool_]]:
    """Return (rows without missing values in some columns, a mask of them), with a note."""
    lacks = _missing_in(raw, columns)
    lacking: Any = lacks.any(axis=1)
    is_whole = ~lacking
    if is_whole.all():
        return raw, is_whole
    names = [name for name in raw.names if name in set(columns)]
    left = raw.take(np.flatnonzero(is_whole))
    return replace(left, notes=(*raw.notes, _left_out_note(lacks, names))), is_whole


def _missing_in(raw: Raw, columns: Collection[str]) -> NDArray[np.bool_]:
    """Mark missing values of some columns, in the order of the table, (m, k)."""
    wanted = set(columns)
    places = [j for j, name in enumerate(raw.names) if name in wanted]
    if raw.is_frame:
        return raw.data.iloc[:, places].isna().to_numpy(np.bool_)
    data = raw.data[:, places]
    if not is_sparse(data):
        return np.isnan(data)
    missing = np.isnan(data.data)
    rows = np.zeros((data.shape[0], 1), dtype=np.bool_)  # one column for all of them together
    rows[data.indices[missing]] = True
    return rows


# -- words -----------------------------------------------------------------------------------------


def _left_out_note(lacks: NDArray[np.bool_], names: list[str]) -> str:
    """Say how many rows lack a value, in which columns, and what helps if it is most rows."""
    m, n_out = len(lacks), int(lacks.any(axis=1).sum())
    counts = lacks.sum(axis=0).tolist() if lacks.shape[1] == len(names) else []
    by_count = sorted(zip(counts, names[: len(counts)], strict=True), key=lambda pair: -pair[0])
    where = listing(with_counts({name: n for n, name in by_count if n}, "row"))
    where = f": {where}" if where else ""
    if 2 * n_out <= m or not where:
        return f"{count(n_out, 'row')} with missing values left out{where}."
    dropped, n_kept = _drops(lacks, names)
    options = " ".join(f"--drop {quote(name)}" for name in dropped)
    return (
        f"--impute drop-rows leaves out {n_out} of {m} rows{where}. {options} would keep {n_kept} "
        "rows."
    )


def _drops(lacks: NDArray[np.bool_], names: list[str]) -> tuple[list[str], int]:
    """Return (columns to drop so that most rows are complete, number of those rows)."""
    order = np.argsort(-lacks.sum(axis=0), kind="stable")
    n_kept, n_dropped = 0, 0
    while 2 * n_kept <= len(lacks):
        n_dropped += 1
        n_kept = int((~lacks[:, order[n_dropped:]].any(axis=1)).sum())
    return [names[j] for j in order[:n_dropped]], n_kept


def missing_message(missing: dict[str, int], n_rows: int, is_new: bool = False) -> str:
    """Say which columns lack values and what to do; `is_new` for rows to predict."""
    advice = "--impute median or mean fills them, --impute drop-rows leaves those rows out, --drop "
    advice += "NAME the column"
    mostly = [name for name, number in missing.items() if 2 * number > n_rows]
    if mostly:
        advice += f" (most rows lack {listing(mostly)})"
    if is_new:
        advice = "the model has nothing to put there: fill them, leave those rows out, or fit "
        advice += "again with --impute median"
    return (
        f"Missing values in {count(len(missing), 'column')}: "
        f"{listing(with_counts(missing, 'row'))}; {advice}."
    )


def imputed_note(missing: dict[str, int], impute: str) -> str:
    """Say which columns were filled, and with what."""
    where = listing(with_counts(missing, "row"))
    return f"Missing values filled by the {impute} of the column: {where}."


def with_counts(counts: dict[str, int], noun: str) -> list[str]:
    """Format counts, as in 'a (2 rows)'."""
    return [f"{name} ({count(number, noun)})" for name, number in counts.items()]
