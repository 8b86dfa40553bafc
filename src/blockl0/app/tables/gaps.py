"""Missing values: selecting rows without them, and the messages about them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from shlex import quote
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.app.tables.formats import Raw
from blockl0.app.tables.targets import is_missing, split_targets
from blockl0.text import count, listing
from blockl0.validate import is_sparse


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
