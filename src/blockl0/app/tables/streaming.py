"""Tables larger than memory: two passes over their files, and their moments for least squares.

The first pass learns what the columns are, as if from all rows at once (`learn`); the second
converts them with the same recipe as small tables and accumulates moments.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.app.tables import recipe
from blockl0.app.tables.chunks import Chunk, Chunks
from blockl0.app.tables.dependent import dependent_in_factor
from blockl0.app.tables.formats import Raw
from blockl0.app.tables.learn import ColumnStats
from blockl0.app.tables.recipe import Choices, Feature, Findings
from blockl0.app.tables.rows import clean_target, is_missing, split_target, without_gaps
from blockl0.app.tables.spellings import first_code
from blockl0.app.tables.table import Table, check_choices, refuse_twice, without_columns
from blockl0.problem.moments import Moments
from blockl0.text import count, counted

Floats = NDArray[np.float64]
Tell = Callable[[float, str], Any]
Labels = Callable[[int], Any]

MOST_COLUMNS = 5000
"""Moments of n columns take n² numbers per fold, and n² operations per row."""
INDEX_NOTE = "The first column has no name and numbers the rows: dropped."


@dataclass
class Learned:
    """Outcome of the first pass.

    Attributes
    ----------
    features : tuple of Feature
        The columns of X, without constant ones.
    notes : list of str
    target : str
    y : ColumnStats
        Statistics of the target.
    n_rows : int
        Rows in use.
    label : str or None
        The first label, if the target is not numeric.
    """

    features: tuple[Feature, ...]
    notes: list[str]
    target: str
    y: ColumnStats
    n_rows: int
    label: str | None


class _Later(Exception):
    """Raised if a later chunk shows the decimal mark, or that digits are codes."""


def learn_columns(
    chunks: Chunks, *, target: str | int | None, drop: Sequence[str], tell: Tell, **options: Any
) -> Learned:
    """Run the first pass; parameters as in `read_table`, `tell` reports progress."""
    first = next(iter(chunks)).raw
    choices = check_choices(first, options)
    if choices.impute == "median":
        raise ValueError(
            "--impute median needs all rows in memory, and these are read in parts; --impute mean "
            "fills missing numbers, --impute drop-rows leaves their rows out."
        )
    found = _once_or_again(chunks, target, drop, choices, None, tell)
    if choices.impute == "drop-rows":
        # only gaps in columns that are used cost rows, and without those rows others are constant
        used = {feature.column for feature in found.features}
        found = _once_or_again(chunks, target, drop, choices, used, tell)
    return found


def _once_or_again(chunks: Chunks, *given: Any) -> Learned:
    # what a later part shows changes how the earlier ones are read; each part shows it once, so
    # that the passes end
    while True:
        try:
            return _learn(chunks, *given)
        except _Later:
            chunks.notes.clear()


def _learn(
    chunks: Chunks, target: Any, drop: Sequence[str], choices: Choices, used: Any, tell: Tell
) -> Learned:
    seen: dict[str, ColumnStats] = {}
    doubts: dict[str, str] = {}
    goal, n_rows, n_without, label = ColumnStats(""), 0, 0, None
    for i, chunk in enumerate(chunks):
        _look_ahead(chunks, chunk, i == 0, target, choices)
        choices = replace(choices, codes=tuple(chunks.codes))
        raw, goal.name, y, n_gaps = _ready(chunk.raw, target, drop, used)
        doubts = _doubts(chunk) | doubts
        if raw.n_rows:
            label = label or _first_label(y, goal.name)
            goal.add(y, Choices(), chunk.found)
            for name in raw.names:
                column = seen.setdefault(name, ColumnStats(name, name == chunks.index))
                column.add(raw.data[name], choices, chunk.found)
        n_rows, n_without = n_rows + raw.n_rows, n_without + n_gaps
        chunks.note(*(chunk.raw.notes if used is not None else raw.notes))
        tell(chunk.share, count(n_rows, "row"))
    _refuse_doubts(doubts, [goal.name, *seen])
    if n_without:
        what = f"without a target ({goal.name})" if used is None else "with missing values"
        chunks.note(f"{count(n_without, 'row')} {what} left out.")
    if n_rows == 0:
        raise ValueError(f"No row has a target ({goal.name}) and all values: nothing to fit.")
    goal.refuse_spellings()
    features, said = _features(seen, choices, n_rows)
    return Learned(features, [*chunks.notes, *said], goal.name, goal, n_rows, label)


def _first_label(y: Any, name: str) -> str | None:
    """Return the first value of a target that is not numeric."""
    values = clean_target(y, name)
    return None if values.dtype.kind in "iuf" else str(values[0])


def _look_ahead(
    chunks: Chunks, chunk: Chunk, is_first: bool, target: Any, choices: Choices
) -> None:
    """Record evidence for the decimal mark and codes; restart if it comes late."""
    shown = None if chunk.found is None else chunk.found.shown
    is_late = False
    if chunks.decimal == "auto" and chunks.shown is None and shown is not None:
        chunks.shown, is_late = shown, not is_first
    rest = split_target(replace(chunk.raw, doubts={}), target)[0]
    codes = {name for name in rest.names if first_code(rest.data[name]) is not None}
    if codes := codes - chunks.codes - {*choices.as_number}:
        chunks.codes |= codes
        is_late = not is_first
    if is_late:
        raise _Later


def _doubts(chunk: Chunk) -> dict[str, str]:
    """Collect ambiguous columns, including those that small files merely note."""
    lone = {} if chunk.found is None else chunk.found.lone
    return {**lone, **chunk.raw.doubts}


def _refuse_doubts(doubts: dict[str, str], names: Sequence[str]) -> None:
    for name in names:
        if name in doubts:
            raise ValueError(doubts[name])


def _ready(raw: Raw, target: Any, drop: Sequence[str], used: Any) -> tuple[Raw, str, Any, int]:
    """Return (columns without target and dropped ones, target name, target, rows left out)."""
    n_before = raw.n_rows
    raw, name, y = split_target(replace(raw, doubts={}), target)
    missing = is_missing(y)
    if missing.any():
        raw, y = raw.take(np.flatnonzero(~missing)), y[~missing]
        n_before = n_before if used is None else raw.n_rows
    raw = without_columns(raw, drop)
    if used is not None and raw.n_rows:
        raw, is_whole = without_gaps(raw, used)
        y = y[is_whole]
    return raw, name, y, n_before - raw.n_rows


def _features(
    seen: dict[str, ColumnStats], choices: Choices, n_rows: int
) -> tuple[tuple[Feature, ...], list[str]]:
    """Turn columns into features, without constant ones, and notes."""
    found: Findings = Findings(dict)
    features: list[Feature] = []
    constant: list[Feature] = []
    for column in seen.values():
        made = column.features(choices, found)
        (constant if made and _is_flat(column, made[0]) else features).extend(made)
    indices = [name for name in found["numbered"] if seen[name].is_index]
    for name in indices:
        del found["numbered"][name]
    notes = [INDEX_NOTE] * bool(indices)
    notes += recipe.report_findings(found, choices, n_rows)
    if constant:
        names = [feature.name for feature in constant]
        notes.append(f"{counted(names, 'constant column')} dropped.")
    return tuple(features), notes


def _is_flat(column: ColumnStats, feature: Feature) -> bool:
    """Check if the column of X would be constant: one number, or one text in every row."""
    return column.is_constant if feature.levels is None else len(feature.levels) == 1


# -- the second pass -------------------------------------------------------------------------------


def sum_up(
    chunks: Chunks,
    learned: Learned,
    *,
    target: str | int | None,
    drop: Sequence[str],
    source: str,
    n_folds: int,
    labels: Labels,
    tell: Tell,
    impute: str | None = None,
) -> Table:
    """Run the second pass: return a table whose X are the moments, which include y.

    Parameters
    ----------
    labels : callable
        Maps a number of rows to the fold of each, or to None to draw them one by one.
    """
    features = learned.features
    _check_width(learned, n_folds)
    refuse_twice([feature.name for feature in features])
    moments = Moments([feature.name for feature in features], folds=n_folds)
    # folds as of rows in memory, so that both ways choose the same
    fold = labels(learned.n_rows) if n_folds > 1 else None
    used = {f.column for f in features} if impute == "drop-rows" else None
    digest = hashlib.sha256(repr((moments.feature_names, learned.target)).encode())
    start = 0
    for X, y, share in _numbers(chunks, learned, target, drop, used):
        rows = slice(start, start + len(y))
        moments.update(X, y, folds=None if fold is None else fold[rows])
        digest.update(np.column_stack([X, y]).tobytes())
        start = rows.stop
        tell(share, count(start, "row"))
    R, names = moments.factor.triangle.R, moments.feature_names or ()
    said = dependent_in_factor(R[1:, 1:], names, features, learned.target, learned.n_rows)
    notes = [*learned.notes, *said]
    return Table(
        moments, None, names, learned.target, tuple(notes), f"rows-sha256:{digest.hexdigest()}",
        source, features, chunks.shown.mark if chunks.shown else "point", (learned.target,),
    )  # fmt: skip


def _numbers(
    chunks: Chunks, learned: Learned, target: Any, drop: Sequence[str], used: Any
) -> Iterator[tuple[Floats, Floats, float]]:
    """Yield (X, y, share read so far) of every chunk."""
    for chunk in chunks:
        raw, name, y, _ = _ready(chunk.raw, target, drop, used)
        if raw.n_rows:
            y = clean_target(y, name).astype(np.float64)
            yield recipe.apply(raw.data, learned.features), y, chunk.share


def _check_width(learned: Learned, n_folds: int) -> None:
    n = len(learned.features)
    if n == 0:
        said = " ".join(learned.notes)
        raise ValueError(f"No column is left to explain {learned.target!r}. {said}".rstrip())
    if n > MOST_COLUMNS:
        raise ValueError(
            f"There are {n} columns, and the table is read in parts: moments take n² numbers for "
            f"each of {n_folds} folds, and are for at most {MOST_COLUMNS}; --drop NAME leaves "
            "columns out, or give a sample of the rows that fits in memory."
        )
    if learned.n_rows < 2:
        raise ValueError(f"At least 2 rows are needed, got {learned.n_rows}.")
