"""A table on disk as X, y and names, with a record of its preparation."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.app.tables import recipe
from blockl0.app.tables.formats import Raw, read_raw
from blockl0.app.tables.learn import learn
from blockl0.app.tables.recipe import MAX_LEVELS, Choices, Feature, Unit, labels_of, units_of
from blockl0.app.tables.rows import (
    clean_targets,
    code_notes,
    imputed_note,
    missing_message,
    no_such_column,
    split_targets,
    with_target,
    without_gaps,
)
from blockl0.text import counted
from blockl0.units import is_rounding
from blockl0.validate import check_choice, check_integer, is_sparse

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Table:
    """Data ready for a fit.

    Attributes
    ----------
    X : ndarray (m, n) in Fortran order, or csc_array
        Sparse files stay sparse.
    y : ndarray (m,), or (m, q) for several targets
        Numbers; or labels, as text or booleans.
    feature_names : tuple of str
        Names of the columns of X.
    target : str
        The name of y; all names if there are several targets.
    notes : tuple of str
        What was done with text columns, missing values, constant columns and dates.
    fingerprint : str
        "sha256:..." of X, y and the names.
    source : str
    features : tuple of Feature, or None for a matrix
        How each column of X was made; `Feature.column` is its origin.
    decimal : "point" or "comma"
        How a text file writes its numbers.
    targets : tuple of str
        The name of every target.
    units : tuple of Unit
        What is selected as a whole: a column of X, or a category with all its levels.
    groups : list of str or None
        A label for every column of X, for `feature_groups`; None if each column is its own unit.
    """

    X: Any
    y: Any
    feature_names: tuple[str, ...]
    target: str
    notes: tuple[str, ...]
    fingerprint: str
    source: str
    features: tuple[Feature, ...] | None = None
    decimal: str = "point"
    targets: tuple[str, ...] = ()

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """Units that are selected as a whole, in the order of the columns."""
        return units_of(self.feature_names, self.features)

    @cached_property
    def unit_of(self) -> NDArray[np.int64]:
        """Index of the unit of every column of X."""
        return np.repeat(np.arange(len(self.units)), [len(unit.columns) for unit in self.units])

    @property
    def groups(self) -> list[str] | None:
        """Label of every column of X, for `feature_groups`."""
        return labels_of(self.units)

    @property
    def has_labels(self) -> bool:
        """Whether y holds text or booleans."""
        return self.y.dtype.kind not in "iuf"

    def recipe(self, columns: Iterable[int]) -> tuple[Feature, ...]:
        """Return how some columns of X are made from a table."""
        if self.features is None:
            return tuple(Feature(self.feature_names[j], self.feature_names[j]) for j in columns)
        return tuple(self.features[j] for j in columns)


def read_table(
    source: Any,
    *,
    target: str | int | Sequence[str | int] | None = None,
    text: str = "auto",
    impute: str | None = None,
    dates: str = "drop",
    drop: Sequence[str] = (),
    na: Sequence[str] = (),
    header: str = "auto",
    format: str | None = None,
    decimal: str = "auto",
    max_levels: int = MAX_LEVELS,
    date_order: str = "auto",
    as_category: Sequence[str] = (),
    as_number: Sequence[str] = (),
    sheet: str | int | None = None,
    levels: str = "together",
    delimiter: str | None = None,
    quote: str | None = None,
    encoding: str | None = None,
    skip_rows: int | None = None,
    skip_bad_rows: bool | None = None,
    fill_short_rows: bool | None = None,
) -> Table:
    """Read a file and convert its columns to numbers, with notes on what was done.

    Parameters
    ----------
    source : path-like, "-" for standard input, or DataFrame
        CSV (comma, tab, semicolon or bar; also .gz, .bz2, .xz), Excel (.xlsx), Parquet, LIBSVM,
        NPZ or MAT. Rows without a target are left out.
    target : str, int or list, optional
        The column to explain, by name or number (negative from the end), or several of numbers. By
        default the target in a LIBSVM, NPZ or MAT file, or the column "y" or "target".
    text : "auto" (default), "one-hot", "drop" or "refuse"
        What to do with text columns: encode categories as columns of 0 and 1 and leave out free
        text and identifiers; encode all of them; leave all of them out; refuse them.
    impute : None (default), "median", "mean" or "drop-rows"
        What to do with missing numbers: refuse them, fill them, or leave out their rows. Missing
        text is a level of its own, unless rows are left out.
    dates : "drop" (default), "refuse" or "days"
        What to do with dates; "days" counts from 1970-01-01.
    drop : sequence of str
        Columns to leave out.
    na : sequence of str
        Further texts to treat as missing.
    header : "auto" (default), "yes" or "no"
        Whether the first line of a CSV file holds the names.
    format : str, optional
        If the file name does not show it: "csv", "excel", "parquet", "libsvm", "npz" or
        "mat".
    decimal : "auto" (default), "point" or "comma"
        Decimal separator of numbers stored as text. By default a comma if some column cannot be
        read otherwise; points then separate thousands, and decimal points are refused.
    max_levels : int
        Text with more levels is left out.
    date_order : "auto" (default), "day-first" or "month-first"
        What comes first in 01/02/2012. By default inferred from other dates of the column.
    as_category, as_number : sequence of str
        Columns to treat as categories, or as numbers, whatever they look like.
    sheet : str or int, optional
        Which Excel sheet to read, by name or number; by default 1, the first.
    levels : "together" (default) or "separate"
        Whether a category enters or leaves as a whole: all levels but the first, the reference,
        have a column, and `Table.groups` labels them. Or each level is a column of its own,
        including the first if there are more than two.
    delimiter : str, optional
        Separator of a CSV file: "comma", "tab", "semicolon", "bar", "blank" or one character. By
        default the most frequent one in the first two rows.
    quote : "double" (default), "single", "backslash" or "none"
        Quotes around cells of a CSV file: "; '; " with backslash escapes; none.
    encoding : str, optional
        Encoding of a CSV file. By default UTF-8, UTF-16 or else Windows-1252.
    skip_rows : int
        Lines above the header of a CSV file or an Excel sheet.
    skip_bad_rows : bool
        Leave out rows of a CSV file that hold more or fewer values than there are names, repeat
        the names, or have unclosed quotes. By default they are refused.
    fill_short_rows : bool
        Treat the last values of rows with too few values as missing.

    Returns
    -------
    Table
        Without constant columns, which an intercept makes redundant.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [1, 2, 4], "b": ["u", "v", "u"], "y": [0.5, 1.0, 2.0]})
    >>> table = read_table(frame, target="y")
    >>> table.feature_names, table.notes
    (('a', 'b=v'), ('Categories, each in or out as a whole: b (2 values).',))
    """
    raw = read_raw(
        source, format=format, na=na, header=header, decimal=decimal, as_text=as_category,
        sheet=sheet, delimiter=delimiter, quote=quote, encoding=encoding, skip_rows=skip_rows,
        skip_bad_rows=skip_bad_rows, fill_short_rows=fill_short_rows,
    )  # fmt: skip
    return prepare(
        raw, target=target, text=text, impute=impute, dates=dates, drop=drop,
        max_levels=max_levels, date_order=date_order, as_category=as_category,
        as_number=as_number, levels=levels,
    )  # fmt: skip


def prepare(raw: Raw, *, target: Any = None, drop: Sequence[str] = (), **options: Any) -> Table:
    """Prepare a file that was read already; parameters as in `read_table`."""
    choices = check_choices(raw, options)
    raw, targets, values = split_targets(with_target(raw, target), target)
    raw = without_columns(raw, drop)
    raw.refuse_doubts(raw.names)
    if choices.impute == "drop-rows":
        raw, is_whole = without_gaps(raw, _used_columns(raw, choices))
        values = [y[is_whole] for y in values]
    y = clean_targets(values, targets)
    raw = replace(raw, notes=(*raw.notes, *code_notes(values, targets)))
    if raw.is_frame:
        features, said = learn(raw.data, choices)
        X: Any = recipe.build(raw.data, features)
    else:
        X, features, said = _fill_matrix(raw, choices.impute)
    notes = [*raw.notes, *said]
    names = raw.names if features is None else tuple(feature.name for feature in features)
    refuse_twice(names)
    table = Table(
        X, y, names, ", ".join(targets), tuple(notes), "", raw.source, features, raw.decimal,
        targets,
    )  # fmt: skip
    table = _without_constants(table, raw.is_open)
    _check_usable(table)
    from blockl0.app.tables.dependent import dependent_notes  # needs LAPACK, as above

    said = dependent_notes(table.X, table.y, table.feature_names, table.features, targets)
    return replace(table, notes=(*table.notes, *said), fingerprint=fingerprint(table))


def check_choices(raw: Raw, options: dict[str, Any]) -> Choices:
    """Check the requested options."""
    for key in ("as_category", "as_number"):
        options[key] = tuple(options.get(key, ()))
        for name in options[key]:
            if name not in raw.names:
                raise no_such_column(name, list(raw.names))
    choices = Choices(**options)
    both = sorted(set(choices.as_category) & set(choices.as_number))
    if both:
        raise ValueError(f"Column {both[0]!r} is to be a category and a number; give one of them.")
    check_choice("levels", choices.levels, ("together", "separate"))
    check_choice("text", choices.text, ("auto", "one-hot", "drop", "refuse"))
    check_choice("dates", choices.dates, ("drop", "refuse", "days"))
    check_choice("date_order", choices.date_order, ("auto", "day-first", "month-first"))
    check_integer("max_levels", choices.max_levels, low=2)
    if choices.impute is not None:
        check_choice("impute", choices.impute, ("median", "mean", "drop-rows"))
    return choices


def apply_recipe(raw: Raw, features: Sequence[Feature]) -> Floats:
    """Build the columns of a model (m, k) from new data, ignoring all others."""
    raw.refuse_doubts(f.column for f in features)
    if raw.is_frame:
        return recipe.apply(raw.data, features)
    place = {name: j for j, name in enumerate(raw.names)}
    absent = [f.column for f in features if f.column not in place]
    if absent and not raw.is_open:
        raise ValueError(f"The data must hold the {counted(absent, 'column')} of the model.")
    texts = [f.column for f in features if f.kind != "number"]
    if texts:
        raise ValueError(
            f"The model needs a table with text or dates in {counted(texts, 'column')}."
        )
    X = np.zeros((raw.n_rows, len(features)), order="F")
    for i, feature in enumerate(features):
        if feature.column in place:
            column = raw.data[:, [place[feature.column]]]
            values = (column.toarray() if is_sparse(column) else column)[:, 0]
            fill = np.nan if feature.fill is None else feature.fill
            X[:, i] = np.where(np.isnan(values), fill, values)
    names = [f.column for f in features]
    _refuse_missing(np.isnan(X).sum(axis=0), names, raw.n_rows, is_new=True)
    return X


def refuse_twice(names: Sequence[str]) -> None:
    """Refuse a column named like a level of a category, such as shop=B beside shop."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(
                f"Two columns would be called {name!r}: one of the file, and one for a value of a "
                f"category; rename one of them, or --drop {name.rpartition('=')[0]!r}."
            )
        seen.add(name)


def without_columns(raw: Raw, drop: Sequence[str]) -> Raw:
    """Drop some columns, with a note."""
    if not drop:
        return raw
    names = list(raw.names)
    known = set(names)
    for name in drop:
        if name not in known:
            raise no_such_column(name, names)
    dropped = set(drop)
    gone = [j for j, name in enumerate(names) if name in dropped]
    left = [j for j, name in enumerate(names) if name not in dropped]
    data = raw.data.iloc[:, left] if raw.is_frame else raw.data[:, left]
    said = f"{counted([names[j] for j in gone], 'column')} dropped as asked."
    return replace(raw, data=data, names=tuple(names[j] for j in left), notes=(*raw.notes, said))


def _used_columns(raw: Raw, choices: Choices) -> set[str]:
    """Return the columns that are not dropped because of their contents."""
    if not raw.is_frame:
        return set(raw.names)
    return {feature.column for feature in learn(raw.data, choices)[0]}


def _fill_matrix(raw: Raw, impute: str | None) -> tuple[Any, Any, list[str]]:
    """Fill gaps of a dense matrix; return (X, features if any were filled, notes)."""
    X = raw.data
    if is_sparse(X):
        columns = np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))
        counts = np.bincount(columns[np.isnan(X.data)], minlength=X.shape[1])
    else:
        X = np.asfortranarray(X)
        counts = np.isnan(X).sum(axis=0)
    if impute in (None, "drop-rows") or is_sparse(X):
        _refuse_missing(counts, raw.names, raw.n_rows)
        return X, None, []
    if counts.max() == raw.n_rows:
        empty = raw.names[int(np.argmax(counts))]
        raise ValueError(f"Column {empty!r} has no value at all; leave it out with --drop {empty}.")
    fills = (np.nanmean if impute == "mean" else np.nanmedian)(X, axis=0)
    X = np.where(np.isnan(X), fills, X)
    features = tuple(Feature(name, name, fill=float(fills[j])) for j, name in enumerate(raw.names))
    filled = {raw.names[j]: int(counts[j]) for j in np.flatnonzero(counts)}
    said = [imputed_note(filled, impute)] if filled else []
    return np.asfortranarray(X), features, said


def _refuse_missing(counts: Any, names: Sequence[str], n_rows: int, is_new: bool = False) -> None:
    missing = {names[int(j)]: int(counts[j]) for j in np.flatnonzero(counts)}
    if missing:
        raise ValueError(missing_message(missing, n_rows, is_new))


def _without_constants(table: Table, is_open: bool) -> Table:
    X = table.X
    if is_sparse(X):
        low, top = (np.ravel(bound.toarray()) for bound in (X.min(axis=0), X.max(axis=0)))
        n_silent = int((np.diff(X.indptr) == 0).sum()) if is_open else 0
    else:
        low, top = (X.min(axis=0), X.max(axis=0)) if X.size else (np.zeros(0), np.zeros(0))
        n_silent = 0
    is_constant = is_rounding(low, top)
    if not is_constant.any():
        return table
    left = np.flatnonzero(~is_constant)
    names = [table.feature_names[j] for j in np.flatnonzero(is_constant)]
    notes = table.notes
    if len(names) > n_silent:
        notes = (*notes, f"{counted(names, 'constant column')} dropped.")
    return replace(
        table, X=X[:, left], feature_names=tuple(table.feature_names[j] for j in left),
        notes=notes, features=None if table.features is None else table.recipe(left),
    )  # fmt: skip


def _check_usable(table: Table) -> None:
    if table.X.shape[1] == 0:
        said = " ".join(table.notes)
        raise ValueError(f"No column is left to explain {table.target!r}. {said}".rstrip())
    if table.X.shape[0] < 2:
        raise ValueError(f"At least 2 rows are needed, got {table.X.shape[0]}.")
    data = table.X.data if is_sparse(table.X) else table.X
    if not np.isfinite(data).all():
        j = 0
        if not is_sparse(table.X):
            j = int(np.argmax(~np.isfinite(data).all(axis=0)))
        else:
            entry = int(np.argmax(~np.isfinite(data)))
            j = int(np.searchsorted(table.X.indptr, entry, side="right")) - 1
        raise ValueError(f"Column {table.feature_names[j]!r} holds infinity; remove or bound it.")


def rows_fingerprint(X: Any) -> str:
    """Hash the entries of a few columns, row by row, ignoring their names.

    Equal numbers give the same hash, sparse or dense, whatever the sign of zeros.
    """
    dense = np.asarray(X.toarray() if is_sparse(X) else X, dtype=np.float64) + 0.0
    digest = hashlib.sha256(repr(dense.shape).encode())
    digest.update(np.ascontiguousarray(dense).tobytes())
    return "sha256:" + digest.hexdigest()


def fingerprint(table: Table) -> str:
    """Hash X, y and the names."""
    digest = hashlib.sha256(repr((table.X.shape, table.feature_names, table.target)).encode())
    if is_sparse(table.X):
        for part in (table.X.data, table.X.indices, table.X.indptr):
            digest.update(np.ascontiguousarray(part).tobytes())
    else:
        for column in table.X.T:
            digest.update(np.ascontiguousarray(column).tobytes())
    labels = table.y.astype(str).tolist() if table.has_labels else table.y.tolist()
    digest.update(repr(labels).encode())
    return "sha256:" + digest.hexdigest()
