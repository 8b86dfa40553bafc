"""Every check of user input, and every message.

Each function returns the value in the form the library works with, or raises a ``ValueError`` or
``TypeError`` that names the argument, the value seen and the remedy.
"""

from __future__ import annotations

import math
import numbers
import os
import sys
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blockl0.text import cut, did_you_mean
from blockl0.units import COLUMNS, Groups, Units

if TYPE_CHECKING:
    import scipy.sparse as sp

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

LARGEST_ENTRY = 1e120
"""Largest magnitude accepted in data: sums of squares stay far from overflow (1.8e308)."""
SMALLEST_TOP = 1e-120
"""The largest entry of a target, or of weights, is zero or above: squares do not vanish (5e-324).

Columns of X are not bound to it, since their scale is free; the unit of the objective is not.
"""
GRAM_ROUNDING = 1e-8
"""Tolerance on the symmetry and definiteness of products of unit columns."""
LARGEST_N_JOBS = 10**6
"""Cores to leave free, at most: joblib reads negative numbers as all cores but some."""


def is_sparse(X: Any) -> bool:
    """Check if X is sparse, without the slow import of SciPy's sparse arrays."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and sparse.issparse(X)


def check_X(X: Any) -> Floats | sp.csc_array:
    """Return X (m, n) as float64: a Fortran-ordered array, or a canonical ``csc_array`` if sparse.

    Nothing is copied when X already is in that form; X itself is never changed.
    """
    if is_sparse(X):
        return _check_sparse_X(X)
    return check_rows(X, "F")


def check_rows(X: Any, order: Literal["K", "F"] = "K") -> Floats:
    """Return a dense X (m, n) as float64, in its own memory order or the given one."""
    X = as_numeric(X, "X")
    check_matrix_shape(X.shape)
    X = np.asarray(_as_float64(X), order=order)
    _check_entries(X, "X")
    return X


def check_y(y: Any, n_samples: int, takes_several: bool = False) -> Floats:
    """Return the target as a contiguous float64 vector (m,); a single column (m, 1) is ravelled.

    Several responses (m, q) are returned as they are, where the loss takes them.
    """
    if is_sparse(y):
        raise TypeError(
            "`y` must be a dense vector, got a sparse matrix; use y.toarray().ravel(), or "
            "y.toarray() for several responses."
        )
    y = as_numeric(y, "y")
    if y.ndim == 2 and y.shape[1] == 1:
        y = y.ravel()
    if takes_several and y.ndim == 2 and y.shape[0] == n_samples and y.shape[1] > 1:
        y = np.ascontiguousarray(_as_float64(y))
        _check_entries(y, "y")
    else:
        several = y.ndim == 2 and y.shape[1] > 1 and not takes_several
        what = "as this loss takes one response" if several else "one value per row of X"
        y = check_vector(y, "y", n_samples, what)
    _check_top(y, "y")
    return y


def check_sample_weight(
    sample_weight: Any, n_samples: int, *, is_part: bool = False
) -> Floats | None:
    """Return weights (m,), finite and nonnegative, or None for all ones.

    Their sum is positive, unless the rows are a part of those that are fitted.
    """
    if sample_weight is None:
        return None
    weights = as_numeric(sample_weight, "sample_weight")
    weights = check_vector(weights, "sample_weight", n_samples, "one value per row of X")
    if weights.min() < 0:
        i = int(np.argmax(weights < 0))
        raise ValueError(f"`sample_weight` must be nonnegative, got {weights[i]} in position {i}.")
    if not (is_part or weights.any()):
        raise ValueError("`sample_weight` must not be all zero; give at least one positive weight.")
    _check_top(weights, "sample_weight")
    return weights


def check_folds(folds: Any, n_samples: int, n_folds: int) -> Indices:
    """Return the fold of every row, (m,), each from 0 to n_folds − 1."""
    labels = np.asarray(folds)
    if labels.shape != (n_samples,) or not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(
            f"`folds` must be one whole number per row of X, ({n_samples},), got {labels.dtype} of "
            f"shape {labels.shape}."
        )
    if n_samples and not 0 <= labels.min() <= labels.max() < n_folds:
        seen = labels.min() if labels.min() < 0 else labels.max()
        raise ValueError(f"`folds` must be from 0 to {n_folds - 1}, got {seen}.")
    return labels.astype(np.int64)


def check_gram(
    XtX: Any, Xty: Any, yty: Any, X_colmeans: Any, y_mean: Any
) -> tuple[Floats, Floats, bool]:
    """Return [X y]'[X y] (p + 1, p + 1), the means (p + 1,), and whether they were given."""
    G = as_numeric(XtX, "XtX")
    if G.ndim != 2 or G.shape[0] != G.shape[1] or G.size == 0:
        raise ValueError(f"`XtX` must be a square matrix (p, p), got shape {G.shape}.")
    p = len(G)
    b = check_vector(as_numeric(Xty, "Xty"), "Xty", p, "one value per column of X")
    whole = np.empty((p + 1, p + 1))
    whole[:p, :p], whole[p, :p], whole[:p, p] = G, b, b
    whole[p, p] = check_nonnegative("yty", yty)
    _check_entries(whole, "XtX")
    # in units of the columns, as products of large columns are larger than any tolerance
    scale = np.sqrt(np.abs(whole.diagonal()))
    scale[scale == 0.0] = 1.0
    unit = whole / scale / scale[:, None]
    if np.abs(unit - unit.T).max() > GRAM_ROUNDING:
        i, j = np.unravel_index(np.argmax(np.abs(unit - unit.T)), unit.shape)
        raise ValueError(
            f"`XtX` must be symmetric, got {whole[i, j]:g} at ({i}, {j}) and {whole[j, i]:g} at "
            f"({j}, {i})."
        )
    least = float(np.linalg.eigvalsh(unit)[0])
    if least < -GRAM_ROUNDING:
        raise ValueError(
            "`XtX`, `Xty` and `yty` are not products of one table: their matrix, scaled to a unit "
            f"diagonal, has the eigenvalue {least:.3g}, and none may be negative. Are all three "
            "centred, or none, and of the same rows?"
        )
    if (X_colmeans is None) != (y_mean is None):
        raise ValueError("Give both `X_colmeans` and `y_mean`, or neither.")
    if X_colmeans is None:
        return whole, np.zeros(p + 1), False
    means = check_vector(
        as_numeric(X_colmeans, "X_colmeans"), "X_colmeans", p, "one value per column of X"
    )
    return whole, np.append(means, check_number("y_mean", y_mean)), True


def check_init(
    init: Any,
    n_features: int,
    budget: int,
    keep: Indices | None = None,
    scale: Floats | None = None,
    n_outputs: int = 1,
    units: Units = COLUMNS,
    limits: tuple[Floats, Floats] | None = None,
) -> Floats:
    """Return a fresh float64 copy of a starting point that leaves room for kept columns.

    It is (n,), or (n, n_outputs), divided by the `scale` of the columns, where they have one. The
    budget counts units, and the limits are those of the scaled columns.
    """
    # a copy: methods change their start
    w = check_coefficients("init", init, n_features, scale, n_outputs)
    chosen = units.support(w)
    nnz = chosen.size
    if nnz > budget:
        what = "nonzeros" if units is COLUMNS else "groups"
        raise ValueError(
            f"`init` must have at most n_nonzero_coefs={budget} {what}, got {nnz}; "
            "set the smallest ones to zero."
        )
    if limits is not None:
        check_within("init", w, limits)
    n_kept = 0 if keep is None else np.setdiff1d(keep, chosen).size
    if nnz + n_kept > budget:
        raise ValueError(
            f"`init` must leave room for the columns in `keep`: it has {nnz} nonzeros, {n_kept} of "
            f"the kept columns are zero in it, and n_nonzero_coefs={budget}; set others to zero."
        )
    return w


def check_coefficients(
    name: str, given: Any, n_features: int, scale: Floats | None = None, n_outputs: int = 1
) -> Floats:
    """Return a fresh float64 copy of a point (n,), or (n, n_outputs), divided by a scale."""
    w = as_numeric(given, name)
    if n_outputs == 1:
        return np.array(check_vector(w, name, n_features, "one value per column of X", scale))
    if w.shape != (n_features, n_outputs):
        raise ValueError(
            f"`{name}` must have shape ({n_features}, {n_outputs}), one value per column of X and "
            f"class, got shape {w.shape}."
        )
    each = [check_vector(column, name, n_features, "", scale) for column in w.T]
    return np.column_stack(each)


def check_within(name: str, w: Floats, limits: tuple[Floats, Floats]) -> None:
    """Refuse a point outside its bounds, naming the first column."""
    rows = w if w.ndim == 2 else w[:, None]
    is_out = (rows < limits[0][:, None]) | (rows > limits[1][:, None])
    if is_out.any():
        j = int(np.argmax(is_out.any(axis=1)))
        raise ValueError(
            f"`{name}` must stay within `bounds`, got {_brief(float(rows[j][is_out[j]][0]))} for "
            f"column {j} with bounds ({limits[0][j]:g}, {limits[1][j]:g}); clip it."
        )


def check_callback(callback: Any) -> Any:
    """Return a callback, or None for none."""
    if callback is not None and not callable(callback):
        raise TypeError(f"`callback` must be callable, got {_brief(callback)}.")
    return callback


def check_keep(keep: Any, n_features: int, budget: int, units: Units = COLUMNS) -> Indices:
    """Return the units that must stay, sorted, of columns; a boolean mask (n,) is accepted, too."""
    if keep is None:
        return np.empty(0, dtype=np.int64)
    columns = np.asarray(keep)
    if columns.shape == (0,):
        columns = columns.astype(np.int64)  # an empty list has no integer type
    if columns.dtype.kind == "b" and columns.shape == (n_features,):
        columns = np.flatnonzero(columns)
    if columns.ndim != 1 or columns.dtype.kind not in "iu":
        raise TypeError(
            f"`keep` must be a list of column numbers or a boolean mask of length {n_features}, "
            f"got {_brief(keep)}."
        )
    if columns.size == 0:
        return np.empty(0, dtype=np.int64)
    _check_numbers("keep", columns, n_features)
    unique, counts = np.unique(columns, return_counts=True)
    if unique.size < columns.size:
        raise ValueError(f"`keep` must not repeat a column, got {unique[counts > 1][0]} twice.")
    kept = units.of(unique.astype(np.int64))
    if kept.size > budget:
        what = "columns" if units is COLUMNS else "groups"
        raise ValueError(
            f"`keep` must not hold more {what} than n_nonzero_coefs={budget}, got {kept.size}; "
            "raise the budget or keep fewer."
        )
    return kept


def check_groups(feature_groups: Any, n_features: int) -> Units:
    """Return the units of a problem: columns, or groups from labels (n,) or lists of columns."""
    if feature_groups is None:
        return COLUMNS
    if isinstance(feature_groups, str | bytes) or not isinstance(feature_groups, Iterable):
        raise TypeError(
            "`feature_groups` must hold one label for each column of X, or lists of columns, got "
            f"{_brief(feature_groups)}."
        )
    given: Any = feature_groups
    if len(getattr(given, "shape", ())) > 1:
        raise ValueError(
            f"`feature_groups` must hold one label for each of the {n_features} columns of X, got "
            f"an array of shape {given.shape}; or give a list of lists of columns."
        )
    given = list(given.tolist() if hasattr(given, "tolist") else given)
    if given and all(isinstance(part, list | np.ndarray | range) for part in given):
        given = _labels_of_lists(given, n_features)
    if len(given) != n_features:
        raise ValueError(
            f"`feature_groups` must hold one label for each of the {n_features} columns of X, got "
            f"{len(given)}; or give a list of lists of columns."
        )
    # numbered by first appearance, which is the order of results
    codes: dict[Any, int] = {}
    for j, label in enumerate(given):
        if not _is_label(label):
            raise TypeError(
                f"`feature_groups` must hold labels that can be told apart, got {_brief(label)} "
                f"for column {j}."
            )
        codes.setdefault(label, len(codes))
    return Groups(np.array([codes[label] for label in given], dtype=np.int64), list(codes))


def _is_label(label: Any) -> bool:
    """Check if a value equals itself and is hashable."""
    try:
        return label is not None and hash(label) is not None and bool(label == label)
    except TypeError:
        return False


def _labels_of_lists(groups: list[Any], n_features: int) -> list[Any]:
    """Return the group of every column; a column in no list is a group of its own."""
    labels: list[Any] = [None] * n_features
    for label, part in enumerate(groups):
        for column in part:
            j = check_integer("feature_groups", column, 0, n_features - 1)
            if labels[j] is not None:
                raise ValueError(
                    f"`feature_groups` must name a column once, got {j} in the lists {labels[j]} "
                    f"and {label}."
                )
            labels[j] = label
    alone = iter(range(len(groups), len(groups) + n_features))
    return [next(alone) if label is None else label for label in labels]


def check_bounds(bounds: Any, positive: Any, n_features: int) -> tuple[Floats, Floats] | None:
    """Return (low, high), (n,) each, from the public pair; None if nothing is bounded."""
    if bounds is None and positive is None:
        return None
    low, high = np.full(n_features, -np.inf), np.full(n_features, np.inf)
    if bounds is not None:
        if not isinstance(bounds, tuple | list) or len(bounds) != 2:
            raise TypeError(
                "`bounds` must be a pair (low, high) of numbers or of one number for each column "
                f"of X, got {_brief(bounds)}."
            )
        # None means unbounded, as in scipy
        low = low if bounds[0] is None else _check_side(bounds[0], low.shape)
        high = high if bounds[1] is None else _check_side(bounds[1], high.shape)
    for j in check_columns("positive", positive, n_features):
        # a sign joins the bounds that were given
        low[j] = max(low[j], 0.0)
    is_bad = (low > 0.0) | (high < 0.0)
    if is_bad.any():
        j = int(np.argmax(is_bad))
        how = "are reversed" if low[j] > high[j] else "exclude zero"
        raise ValueError(
            f"`bounds` must hold low <= 0 <= high for every column, but those of column {j}, "
            f"({low[j]:g}, {high[j]:g}), {how}; a column that is not selected is zero."
        )
    # bounds that bind nothing are none, so that the quicker search of free columns applies
    if np.isneginf(low).all() and np.isposinf(high).all():
        return None
    # no negative zeros
    return low + 0.0, high + 0.0


def _check_side(side: Any, shape: tuple[int, ...]) -> Floats:
    """Return one side of the bounds, (n,)."""
    array = _as_float64(as_numeric(side, "bounds"))
    if array.ndim == 0:
        array = np.full(shape, float(array))
    if array.shape != shape:
        raise ValueError(
            f"`bounds` must hold numbers or arrays of shape {shape}, one value for each column of "
            f"X, got shape {array.shape}."
        )
    if np.isnan(array).any():
        j = int(np.argmax(np.isnan(array)))
        raise ValueError(f"`bounds` must not hold NaN, got it for column {j}; use infinity.")
    return array.copy()


def check_columns(name: str, given: Any, n_features: int) -> Indices:
    """Return columns from True or False for all of them, a boolean mask (n,), or their numbers."""
    if given is None or isinstance(given, bool | np.bool_):
        return np.arange(n_features if given else 0)
    columns = np.asarray(given)
    # an empty list is one of floats for NumPy
    if columns.shape == (0,):
        return np.empty(0, dtype=np.int64)
    if columns.dtype.kind == "b" and columns.shape == (n_features,):
        return np.flatnonzero(columns)
    if columns.ndim != 1 or columns.dtype.kind not in "iu":
        raise TypeError(
            f"`{name}` must be True, a list of column numbers or a boolean mask of length "
            f"{n_features}, got {_brief(given)}."
        )
    _check_numbers(name, columns, n_features)
    return np.unique(columns).astype(np.int64)


def _check_numbers(name: str, columns: NDArray[Any], n_features: int) -> None:
    """Refuse column indices that X does not have."""
    outside = columns[(columns < 0) | (columns >= n_features)]
    if outside.size:
        raise ValueError(
            f"`{name}` must hold column numbers between 0 and {n_features - 1}, got {outside[0]}."
        )


def check_costs(costs: Any, n_features: int, units: Units, alpha: Any) -> Floats | None:
    """Return the costs of the units, in prices, from one number for each column, or by label.

    None where all of them are one.
    """
    if costs is None:
        return None
    if alpha is None:
        raise ValueError(
            "`costs` multiply the price `alpha` of what is selected, got none, and a budget counts "
            "all alike; give `alpha`, alone or beside `n_nonzero_coefs`."
        )
    if isinstance(costs, dict):
        costs = _costs_by_label(costs, n_features, units)
    each = check_vector(
        as_numeric(costs, "costs"), "costs", n_features, "one value per column of X"
    )
    if each.min() < 0.0:
        j = int(np.argmax(each < 0.0))
        raise ValueError(f"`costs` must be nonnegative, got {each[j]:g} for column {j}.")
    # one price for a unit: its columns enter together
    found = np.empty(units.number(n_features))
    for unit in range(found.size):
        own = each[units.members(unit)]
        if own.max() > own.min():
            raise ValueError(
                "`costs` must be the same for all columns of a group, which is paid for once, got "
                f"{own.min():g} and {own.max():g}."
            )
        found[unit] = own[0]
    return None if (found == 1.0).all() else found


def _costs_by_label(costs: dict[Any, Any], n_features: int, units: Units) -> Floats:
    """Return one cost per column from {label or column: cost}, by default 1."""
    each = np.ones(n_features)
    labels = getattr(units, "labels", tuple(range(n_features)))
    place = {label: unit for unit, label in enumerate(labels)}
    for label, cost in costs.items():
        if label not in place:
            what = "columns" if units is COLUMNS else "labels of `feature_groups`"
            raise ValueError(f"`costs` must name {what}, got {_brief(label)}.")
        each[units.members(place[label])] = check_nonnegative("costs", cost)
    return each


def check_keep_names(keep: Any, names: Any) -> Any:
    """Replace column names in `keep` by indices; return anything else unchanged."""
    if keep is None:
        return keep
    columns = np.asarray(keep)
    if columns.dtype.kind not in "OUST":
        return keep
    if columns.ndim != 1:
        raise TypeError(f"`keep` must be a list of columns, got {_brief(keep)}; write [{keep!r}].")
    if names is None:
        raise TypeError(
            f"`keep` must hold column numbers where X has no column names, got {_brief(keep)}; "
            "names need a DataFrame."
        )
    known = {str(name): j for j, name in enumerate(names)}
    unknown = [str(name) for name in columns if str(name) not in known]
    if unknown:
        raise ValueError(
            f"`keep` must hold names of columns of X, got {unknown[0]!r}."
            + did_you_mean(unknown[0], list(known))
        )
    return [known[str(name)] for name in columns]


def check_text_columns(X: Any) -> None:
    """Refuse text in a pandas DataFrame, naming the column; other data are not checked."""
    if not (hasattr(X, "iloc") and hasattr(X, "dtypes") and getattr(X, "ndim", 0) == 2):
        return
    for j, kind in enumerate(X.dtypes):
        if kind.kind == "O":
            value = _first_text(X.iloc[:, j].dropna())
            if value is not None:
                raise ValueError(
                    f"Column {str(X.columns[j])!r} of X must hold numbers, got {_brief(value)}; "
                    "encode categories, as `blockl0.app.tables.read_table` does, or leave it out."
                )


def check_target_numbers(y: Any) -> Floats:
    """Convert a regression target to float64, refusing labels and showing the first."""
    try:
        return np.asarray(y, dtype=np.float64)
    except ValueError:
        value = _first_text(np.ravel(y).tolist())
        raise ValueError(
            f"`y` must hold numbers, got {_brief(value)}; labels are for a classifier."
        ) from None


def _first_text(values: Any) -> Any:
    """Return the first value that is not a number."""
    for value in values:
        try:
            float(value)
        except (TypeError, ValueError):
            return value
    return None


def check_column_entries(X: Any, names: Any = None, used: Indices | None = None) -> None:
    """Refuse NaN, infinity and huge values in X (float64, dense or CSC), naming the column.

    Of X, or of its columns that are `used` only.
    """
    if used is not None:
        X = X[:, used]
    data = X.data if is_sparse(X) else X
    if data.size == 0 or _is_moderate(data):
        return
    is_bad = ~np.isfinite(data) | (np.abs(data) > LARGEST_ENTRY)
    if is_sparse(X):
        entry = int(np.argmax(is_bad))
        column = int(np.searchsorted(X.indptr, entry, side="right")) - 1
        row, value = int(X.indices[entry]), float(data[entry])
    else:
        column = int(np.argmax(is_bad.any(axis=0)))
        row = int(np.argmax(is_bad[:, column]))
        value = float(data[row, column])
    column = column if used is None else int(used[column])
    place = f"column {column if names is None else repr(str(names[column]))}, row {row}"
    if math.isfinite(value):
        refuse_entry("X", value, place)
    seen = "NaN" if math.isnan(value) else "infinity"
    raise ValueError(f"Input X contains {seen} in {place}; remove or impute it.")


def check_number(name: str, value: Any) -> float:
    """Return a finite real number as a float; booleans, strings and arrays are refused."""
    if type(value) is not float and (
        isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real)
    ):
        raise TypeError(f"`{name}` must be a number, got {_brief(value)}.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf  # an integer or fraction beyond float64
    if not math.isfinite(number):
        raise ValueError(f"`{name}` must be finite, got {number}.")
    return number


def check_nonnegative(name: str, value: Any) -> float:
    """Return a finite number >= 0 as a float."""
    number = check_number(name, value)
    if number < 0:
        raise ValueError(f"`{name}` must be nonnegative, got {number:g}.")
    return number


def check_positive(name: str, value: Any) -> float:
    """Return a finite number > 0 as a float."""
    number = check_number(name, value)
    if number <= 0:
        raise ValueError(f"`{name}` must be positive, got {number:g}.")
    return number


def check_integer(
    name: str, value: Any, low: int = 0, high: int | None = None, high_name: str = ""
) -> int:
    """Return an integer in [low, high] as an int; booleans and floats are refused."""
    # most are plain int, which need no abstract class check
    if type(value) is not int and (
        isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral)
    ):
        raise TypeError(f"`{name}` must be an integer, got {_brief(value)}.")
    integer = int(value)
    if low <= integer and (high is None or integer <= high):
        return integer
    upper = f"{high_name}={high}" if high_name else high
    allowed = f"at least {low}" if high is None else f"between {low} and {upper}"
    raise ValueError(f"`{name}` must be {allowed}, got {integer}.")


def check_sparsity(
    n_nonzero_coefs: Any, alpha: Any, n_units: int, name: str = "n_features"
) -> tuple[float, int]:
    """Return (price, budget) from the public pair; an absent budget is n, an absent price is 0."""
    if n_nonzero_coefs is None and alpha is None:
        raise ValueError("No sparsity was asked for: give `n_nonzero_coefs`, `alpha`, or both.")
    price = 0.0 if alpha is None else check_nonnegative("alpha", alpha)
    if n_nonzero_coefs is None:
        return price, n_units
    return price, check_integer("n_nonzero_coefs", n_nonzero_coefs, 0, n_units, name)


def check_path(
    n_nonzero_coefs: Any,
    alphas: Any,
    alpha: Any,
    n_features: int,
    n_kept: int,
    name: str = "n_features",
) -> list[tuple[float, int]]:
    """Return the points of a path as (price, budget), from the sparsest to the densest.

    A budget counts `n_features` units, which go by a `name`.
    """
    price = check_nonnegative("alpha", alpha)
    if (n_nonzero_coefs is None) == (alphas is None):
        raise ValueError(
            "A path needs either `n_nonzero_coefs` or `alphas`, "
            f"got {'neither' if alphas is None else 'both'}."
        )
    if alphas is not None:
        if price:
            raise ValueError(
                f"`alpha` goes with `n_nonzero_coefs`, not with `alphas`; got {alpha}."
            )
        grid = np.atleast_1d(as_numeric(alphas, "alphas"))
        if grid.ndim != 1 or grid.size == 0:
            raise ValueError(f"`alphas` must be a nonempty vector, got shape {grid.shape}.")
        # each price once, from the highest, which selects least
        prices = {check_nonnegative("alphas", value) for value in grid.tolist()}
        return [(value, n_features) for value in sorted(prices, reverse=True)]
    if isinstance(n_nonzero_coefs, str) or not isinstance(n_nonzero_coefs, Iterable):
        most = check_integer("n_nonzero_coefs", n_nonzero_coefs, 1, n_features, name)
        budgets = range(max(1, n_kept), most + 1)
    else:
        budgets = sorted(
            {
                check_integer("n_nonzero_coefs", value, 0, n_features, name)
                for value in n_nonzero_coefs
            }
        )
    if len(budgets) == 0 or budgets[0] < n_kept:
        raise ValueError(
            f"`n_nonzero_coefs` must name budgets of at least {n_kept}, the number of kept "
            f"columns, got {_brief(n_nonzero_coefs)}."
        )
    return [(price, budget) for budget in budgets]


def check_verbose(verbose: Any) -> int:
    """Return the seconds between log lines; True is 1, 0 and False are never."""
    return check_integer("verbose", int(verbose) if isinstance(verbose, bool) else verbose, low=0)


def check_time_limit(time_limit: Any) -> float:
    """Return the limit in seconds; None (and infinity) mean no limit."""
    if time_limit is None or (isinstance(time_limit, float) and time_limit == math.inf):
        return math.inf
    return check_positive("time_limit", time_limit)


def check_random_state(random_state: Any) -> np.random.Generator:
    """Return a Generator: fresh for None, seeded by an int, the same object for a Generator."""
    return np.random.default_rng(check_seed(random_state))


def check_seed(random_state: Any) -> np.random.Generator | int | None:
    """Return the seed of a Generator, None for a fresh one, or the given Generator."""
    if random_state is None or isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, bool) or not isinstance(random_state, numbers.Integral):
        raise TypeError(
            "`random_state` must be None, an integer or a numpy.random.Generator, "
            f"got {_brief(random_state)}."
        )
    return check_integer("random_state", random_state)


def check_n_jobs(n_jobs: Any) -> int | None:
    """Return the number of parallel jobs: None (one, or what joblib's context says) or not zero."""
    if n_jobs is None or check_integer("n_jobs", n_jobs, low=-LARGEST_N_JOBS) != 0:
        return None if n_jobs is None else int(n_jobs)
    raise ValueError("`n_jobs` must not be 0; give None or 1 for one job, -1 for all cores.")


def count_jobs(n_jobs: Any) -> int:
    """Return the number of threads: one for None, and all cores but k − 1 for −k."""
    n_jobs = check_n_jobs(n_jobs)
    if n_jobs is None:
        return 1
    return n_jobs if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + n_jobs)


def check_terms(X: Any, y: Any) -> tuple[Floats, Floats]:
    """Return library terms (m, n) and derivatives (m, t), NaN included, of equally many rows."""
    if is_sparse(X):
        raise TypeError("`X` must be a dense array of library terms, got a sparse matrix.")
    terms, targets = _as_float64(as_numeric(X, "X")), _as_float64(as_numeric(y, "y"))
    check_matrix_shape(terms.shape)
    if targets.ndim == 1:
        targets = targets[:, None]
    if targets.ndim != 2 or targets.shape[0] != terms.shape[0] or targets.shape[1] == 0:
        raise ValueError(
            f"`y` must have one row for each of the {terms.shape[0]} rows of X, and a column for "
            f"each equation, got shape {np.shape(y)}."
        )
    return terms, targets


def check_flag(name: str, value: Any) -> bool:
    """Return True or False; anything else is refused."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"`{name}` must be True or False, got {value!r}.")
    return bool(value)


def check_choice(name: str, value: Any, known: Collection[str]) -> str:
    """Return `value` if it is one of the known names; else list them and suggest the nearest."""
    if isinstance(value, str) and value in known:
        return value
    names = sorted(known)
    listing = ", ".join(repr(option) for option in names)
    error = ValueError if isinstance(value, str) else TypeError
    raise error(
        f"`{name}` must be one of {listing}, got {_brief(value)}.{did_you_mean(value, names)}"
    )


def check_options(method: str, options: Iterable[str], known: Collection[str]) -> None:
    """Refuse, by name, the first option that the method does not know."""
    for option in options:
        if option not in known:
            names = sorted(known)
            hint, listing = did_you_mean(option, names), ", ".join(names) or "none"
            raise TypeError(
                f"method={method!r} does not know the option `{option}`.{hint} "
                f"Its options: {listing}."
            )


def _check_sparse_X(X: Any) -> sp.csc_array:
    """Return a sparse X as a canonical float64 csc_array, sharing its memory where possible."""
    import scipy.sparse as sp  # already imported if X is sparse

    check_kind(X.dtype, "X", None)
    check_matrix_shape(X.shape)
    A: Any = sp.csc_array(X, dtype=np.float64)
    if not A.has_canonical_format:
        # sorting and summing duplicates work in place, possibly on the caller's arrays
        A = A.copy()
        A.sum_duplicates()
    if A.nnz and not _is_moderate(A.data):
        entry = int(np.argmax(~np.isfinite(A.data) | (np.abs(A.data) > LARGEST_ENTRY)))
        column = int(np.searchsorted(A.indptr, entry, side="right")) - 1
        refuse_entry("X", A.data[entry], f"column {column}, row {A.indices[entry]}")
    return A


def as_numeric(value: ArrayLike, name: str) -> NDArray[Any]:
    """Return `value` as an array of real numbers of any kind (bool, integer, float)."""
    if np.ma.is_masked(value):
        raise ValueError(f"`{name}` must not hold masked entries; fill them or drop their rows.")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"`{name}` must be rectangular; its rows differ in length.") from error
    check_kind(array.dtype, name, array.flat[0] if array.size else None)
    return array


def check_kind(dtype: np.dtype[Any], name: str, first: Any) -> None:
    """Refuse values that are not real numbers; `first` is an entry to show."""
    if dtype.kind == "c":
        raise TypeError(f"`{name}` must be real, got {dtype}; pass its real part, or split it.")
    if dtype.kind not in "biuf":
        seen = "" if first is None else f" (first entry {_brief(first)})"
        raise TypeError(
            f"`{name}` must hold numbers, got dtype {dtype}{seen}; "
            "encode categories and convert with .astype(float)."
        )


def _as_float64(array: NDArray[Any]) -> Floats:
    if array.dtype == np.float64:
        return array
    # a long double beyond float64 becomes inf here and is refused by name next
    with np.errstate(over="ignore"):
        return array.astype(np.float64)


def check_matrix_shape(shape: tuple[int, ...]) -> None:
    """Refuse shapes that are not those of a matrix, or have no entry."""
    if len(shape) != 2:
        raise ValueError(
            f"`X` must be 2-D (n_samples, n_features), got shape {shape}; reshape it, for example "
            "X.reshape(-1, 1) for a single feature or X.reshape(1, -1) for a single sample."
        )
    if 0 in shape:
        raise ValueError(f"`X` must have at least one row and one column, got shape {shape}.")


def check_vector(
    array: NDArray[Any], name: str, length: int, meaning: str, scale: Floats | None = None
) -> Floats:
    """Return a float64 vector of the given length, divided by a scale; entries are moderate."""
    if array.shape != (length,):
        raise ValueError(
            f"`{name}` must have shape ({length},), {meaning}, got shape {array.shape}."
        )
    vector = np.ascontiguousarray(_as_float64(array))
    if scale is not None:
        with np.errstate(over="ignore"):
            vector = vector / scale
    _check_entries(vector, name)
    return vector


def _is_moderate(values: Floats) -> bool:
    # min and max propagate NaN, need no temporary array, and a NaN fails the comparison
    return bool(values.max() <= LARGEST_ENTRY and values.min() >= -LARGEST_ENTRY)


def _check_entries(array: Floats, name: str) -> None:
    """Refuse NaN, infinities and values whose squares overflow, naming the first place."""
    if _is_moderate(array):
        return
    is_bad = ~np.isfinite(array) | (np.abs(array) > LARGEST_ENTRY)
    if array.ndim == 1:
        row = int(np.argmax(is_bad))
        refuse_entry(name, array[row], f"position {row}")
    column = int(np.argmax(is_bad.any(axis=0)))
    row = int(np.argmax(is_bad[:, column]))
    refuse_entry(name, array[row, column], f"column {column}, row {row}")


def _check_top(vector: Floats, name: str) -> None:
    """Refuse a nonzero vector so small that its squares vanish."""
    top = float(np.abs(vector).max())
    if 0.0 < top < SMALLEST_TOP:
        raise ValueError(
            f"`{name}` must reach {SMALLEST_TOP:g} in magnitude, got a largest "
            f"entry of {top:g}, whose square vanishes in float64; rescale it."
        )


def refuse_entry(name: str, value: float, place: str) -> None:
    """Refuse an entry that is not finite, or whose square overflows, by its position."""
    if math.isfinite(value):
        raise ValueError(
            f"`{name}` must stay below {LARGEST_ENTRY:g} in magnitude, got {value:g} in {place}; "
            "rescale it."
        )
    raise ValueError(f"`{name}` must be finite, got {value} in {place}; remove or impute it.")


def _brief(value: Any) -> str:
    """Describe a value and its type in a short phrase."""
    return f"{cut(repr(value))} ({type(value).__name__})"
