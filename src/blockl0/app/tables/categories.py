"""Units of a table: what enters a model as a whole, a column of X or a category."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from blockl0.app.tables.recipe import Feature


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
