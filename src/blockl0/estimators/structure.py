"""Groups, bounds and costs by column name, and the groups of encoders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.text import did_you_mean
from blockl0.validate import check_integer

Floats = NDArray[np.float64]


def numbered(what: str, columns: Any, names: Any, n_features: int) -> list[int]:
    """Convert columns given by index or name to indices."""
    if isinstance(columns, str) or np.ndim(columns) == 0:
        columns = [columns]
    return [_number(what, column, names, n_features) for column in columns]


def _number(what: str, column: Any, names: Any, n_features: int) -> int:
    if not isinstance(column, str):
        return check_integer(what, column, 0, n_features - 1)
    if names is None:
        raise TypeError(
            f"`{what}` must hold column numbers where X has no column names, got {column!r}; names "
            "need a DataFrame."
        )
    known = [str(name) for name in names]
    if column not in known:
        raise ValueError(
            f"`{what}` must hold names of columns of X, got {column!r}."
            + did_you_mean(column, known)
        )
    return known.index(column)


def group_labels(feature_groups: Any, names: Any, n_features: int) -> Any:
    """Convert {label: columns} to labels of all columns, others alone; keep anything else."""
    if not isinstance(feature_groups, Mapping):
        return feature_groups
    labels: list[Any] = [None] * n_features
    for label, columns in feature_groups.items():
        for j in numbered("feature_groups", columns, names, n_features):
            if labels[j] is not None:
                raise ValueError(
                    f"`feature_groups` must name a column once, got column {j} in "
                    f"{labels[j]!r} and {label!r}."
                )
            labels[j] = label
    # a column on its own is labelled by its name or index, unless a group has that label
    taken = set(feature_groups)
    own = range(n_features) if names is None else map(str, names)
    alone = [name if name not in taken else ("column", name) for name in own]
    return [own if label is None else label for label, own in zip(labels, alone, strict=True)]


def bound_arrays(bounds: Any, names: Any, n_features: int) -> Any:
    """Convert {column: (low, high)} to arrays (low, high), others free; keep anything else."""
    if not isinstance(bounds, Mapping):
        return bounds
    low, high = np.full(n_features, -np.inf), np.full(n_features, np.inf)
    for column, pair in bounds.items():
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TypeError(
                f"`bounds` must hold a pair (low, high) for each column, got {pair!r} for "
                f"{column!r}."
            )
        j = _number("bounds", column, names, n_features)
        low[j], high[j] = (np.nan if side is None else side for side in pair)
        low[j], high[j] = np.nan_to_num(low[j], nan=-np.inf), np.nan_to_num(high[j], nan=np.inf)
    return low, high


def positive_columns(positive: Any, names: Any, n_features: int) -> Any:
    """Convert column names to indices; keep anything else."""
    if positive is None or isinstance(positive, bool | np.bool_):
        return positive
    if isinstance(positive, str) or np.asarray(positive).dtype.kind in "OUST":
        return numbered("positive", positive, names, n_features)
    return positive


def unit_costs(costs: Any, names: Any, n_features: int, has_groups: bool) -> Any:
    """Convert costs by name to costs by index if there are no groups; keep anything else."""
    if not isinstance(costs, Mapping) or has_groups:
        return costs
    return {_number("costs", column, names, n_features): cost for column, cost in costs.items()}


def groups_of(transformer: Any) -> list[str]:
    """Label the columns made by a fitted encoder by the input column they come from.

    Columns made from the same input column, such as the levels of a category or the powers of a
    number, have its name as their label, so that they form one group.

    Parameters
    ----------
    transformer : OneHotEncoder, ColumnTransformer, or a Pipeline that ends with one
        Fitted. A ColumnTransformer may hold any transformers: an unknown one of a single column
        may make any number, such as the terms of a spline, and one of several must make as many.

    Returns
    -------
    list of str
        For `feature_groups`.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.preprocessing import OneHotEncoder
    >>> from blockl0 import groups_of
    >>> table = pd.DataFrame({"size": list("SML"), "colour": list("rgr")})
    >>> groups_of(OneHotEncoder().fit(table))
    ['size', 'size', 'size', 'colour', 'colour']
    """
    if hasattr(transformer, "transformers_"):
        return _of_column_transformer(transformer)
    if hasattr(transformer, "steps"):
        return _of_pipeline(transformer)
    if hasattr(transformer, "categories_") and hasattr(transformer, "get_feature_names_out"):
        return _of_encoder(transformer)
    raise TypeError(
        "`groups_of` takes a fitted OneHotEncoder or ColumnTransformer, got "
        f"{type(transformer).__name__}; give `feature_groups` yourself, or fit it first."
    )


def _of_encoder(encoder: Any) -> list[str]:
    """Label each kept level with its input column."""
    names = _input_names(encoder)
    made = _counts(encoder)
    return [str(name) for name, count in zip(names, made, strict=True) for _ in range(count)]


def _counts(encoder: Any) -> list[int]:
    """Count the columns that an encoder makes of each input column."""
    if not hasattr(encoder, "drop_idx_"):
        # an ordinal encoder, or another that keeps the number of columns
        return [1] * len(encoder.categories_)
    infrequent = getattr(encoder, "infrequent_categories_", [None] * len(encoder.categories_))
    counts = []
    for j, levels in enumerate(encoder.categories_):
        rare = 0 if infrequent[j] is None else len(infrequent[j]) - 1
        dropped = encoder.drop_idx_ is not None and encoder.drop_idx_[j] is not None
        counts.append(len(levels) - rare - int(dropped))
    return counts


def _input_names(transformer: Any) -> list[str]:
    given = getattr(transformer, "feature_names_in_", None)
    return [f"x{j}" for j in range(transformer.n_features_in_)] if given is None else list(given)


def _of_pipeline(pipeline: Any) -> list[str]:
    """Return the labels of the last step that makes columns; other steps must not change them."""
    found = None
    for _, step in pipeline.steps:
        if step is None or isinstance(step, str):
            continue
        if hasattr(step, "categories_") or hasattr(step, "transformers_"):
            found = groups_of(step)
    if found is None:
        return [str(name) for name in pipeline.get_feature_names_out()]
    if len(found) != len(pipeline.get_feature_names_out()):
        raise ValueError(
            "The steps after the encoder change the number of columns, so that its groups are "
            "not those of the result; give `feature_groups` yourself."
        )
    return found


def _of_column_transformer(transformer: Any) -> list[str]:
    """Return the labels of all parts, in the order of their output."""
    labels: list[Any] = [None] * len(transformer.get_feature_names_out())
    names = _input_names(transformer)
    for name, part, columns in transformer.transformers_:
        place = transformer.output_indices_.get(name, slice(0, 0))
        size = place.stop - place.start
        if size:
            labels[place] = _of_part(part, _chosen(columns, names), size)
    return labels


def _chosen(columns: Any, names: list[str]) -> list[str]:
    """Return the names of the input columns of a part of a ColumnTransformer."""
    if isinstance(columns, slice):
        return list(np.array(names, dtype=object)[columns])
    columns = np.atleast_1d(np.asarray(columns))
    if columns.dtype.kind == "b":
        return [name for name, used in zip(names, columns, strict=True) if used]
    return [str(names[c]) if isinstance(c, int | np.integer) else str(c) for c in columns.tolist()]


def _of_part(part: Any, inputs: list[str], size: int) -> list[str]:
    try:
        found = inputs if isinstance(part, str) else groups_of(part)
    except TypeError:
        # everything made of a single column belongs to it, such as the terms of a spline
        found = inputs * size if len(inputs) == 1 else inputs
    if len(found) != size:
        raise ValueError(
            f"{type(part).__name__} makes {size} columns of {len(inputs)}, and does not say which "
            "of which; give `feature_groups` yourself."
        )
    return found
