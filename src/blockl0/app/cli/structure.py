"""Columns and classes by name: the meaning of --keep, --positive, --bounds and --class-weight."""

from __future__ import annotations

import re
from collections.abc import Sequence
from shlex import quote
from typing import Any

import numpy as np

from blockl0.app.cli.job import DATA, Refused
from blockl0.app.tables import Table
from blockl0.text import did_you_mean, listing

LABELS = "logistic"
"""Default loss for labels."""
ALL = "all"
"""Value of --positive for all columns of numbers."""


def kept_columns(table: Table, keep: Sequence[str]) -> list[int] | None:
    """Return the columns of X that must stay, explaining unknown names."""
    found: list[int] = []
    for name in keep:
        columns = _columns_of(table, name)
        if columns is None:
            raise Refused(_no_such_column("--keep", name, table), DATA)
        unit = table.units[int(table.unit_of[columns[0]])]
        if len(columns) < len(unit.columns):
            raise Refused(
                f"--keep {name}: {unit.name!r} is in or out as a whole; --keep {quote(unit.name)} "
                "keeps it with all its values, and with --levels separate each value is a column "
                "by itself.",
                DATA,
            )
        found += columns
    return found or None


def bounds_of(table: Table, options: dict[str, Any]) -> tuple[Any, Any] | None:
    """Return (low, high) of the coefficients, each (n,), from --bounds and --positive."""
    given, signed = options.get("bounds") or (), options.get("positive") or ()
    if not given and not signed:
        return None
    n = len(table.feature_names)
    low, high = np.full(n, -np.inf), np.full(n, np.inf)
    for text in given:
        name, least, most = parse_bounds(text)
        columns = _bounded("--bounds", name, table)
        low[columns] = np.maximum(low[columns], least)
        high[columns] = np.minimum(high[columns], most)
    for name in signed:
        columns = _positive_columns(name, table)
        low[columns] = np.maximum(low[columns], 0.0)
    closed = np.flatnonzero(high <= low)
    if closed.size:
        name = table.feature_names[closed[0]]
        raise Refused(
            f"The bounds leave nothing but zero for {name!r}; --drop leaves a column out.", DATA
        )
    return low, high


def parse_bounds(text: str) -> tuple[str, float, float]:
    """Parse NAME=LOW:HIGH, either side possibly empty, to (name, low, high); else ValueError."""
    name, equals, sides = text.rpartition("=")
    low, colon, high = sides.partition(":")
    if not (name and equals and colon):
        raise ValueError(f"{text!r} is not NAME=LOW:HIGH, as price=-2:0 or price=:0.")
    try:
        least = float(low) if low.strip() else -np.inf
        most = float(high) if high.strip() else np.inf
    except ValueError:
        raise ValueError(f"{text!r} must hold numbers on both sides of the colon.") from None
    if least > most:
        raise ValueError(f"{text!r} is reversed: LOW must be at most 0, and HIGH at least 0.")
    if not least <= 0.0 <= most:
        raise ValueError(
            f"{text!r} excludes a coefficient of zero, which a column that is not chosen has; "
            "LOW must be at most 0, and HIGH at least 0."
        )
    return name, least, most


def _positive_columns(name: str, table: Table) -> list[int]:
    """Return the columns named by one `--positive` option: one, several with commas, or all.

    The sign of a category's level is that of its comparison with the reference.
    """
    found = _columns_of(table, name)
    if found is not None:
        return found
    if name == ALL:
        n = len(table.feature_names)
        numbers = [j for j in range(n) if not table.features or table.features[j].level is None]
        if not numbers:
            raise Refused("--positive all: there is no column of numbers for the fit.", DATA)
        return numbers
    parts = [part.strip() for part in name.split(",")]
    return [j for part in parts for j in _bounded("--positive", part, table)]


def _bounded(option: str, name: str, table: Table) -> list[int]:
    """Return the columns of X of a name; a category has one per level but the reference."""
    columns = _columns_of(table, name)
    if columns is None:
        raise Refused(_no_such_column(option, name, table), DATA)
    return columns


def _columns_of(table: Table, name: str) -> list[int] | None:
    """Return the columns of X of a table column or category, or of one of its levels."""
    if name in table.feature_names:
        return [table.feature_names.index(name)]
    return next(
        (list(unit.columns) for unit in table.units
         if unit.column == name and (unit.reference is not None or unit.name == name)),
        None,
    )  # fmt: skip


def _no_such_column(option: str, name: str, table: Table) -> str:
    """Say why a name is not a column: a category, left out, or misspelled."""
    made = [f.name for f in table.features or () if f.column == name]
    if made:
        return a_category(option, name, made)
    column, has_value, level = name.partition("=")
    if has_value:
        said = _no_such_value(option, name, column, level, table)
        if said is not None:
            return said
    known = [*table.feature_names, *(unit.name for unit in table.units)]
    hint = did_you_mean(name, dict.fromkeys(known))
    notes = [note for note in table.notes if re.search(rf"\b{re.escape(name)}\b", note)]
    return " ".join([f"{option} {name}: there is no such column for the fit.{hint}", *notes])


def a_category(option: str, name: str, made: Sequence[str]) -> str:
    """Return the error for a category whose levels are separate columns."""
    options = " ".join(f"{option} {quote(value)}" for value in made[:3])
    more = f" (and {len(made) - 3} more)" if len(made) > 3 else ""
    return f"{option} {name}: {name!r} is a category; give its values, as {options}{more}."


def _no_such_value(option: str, name: str, column: str, level: str, table: Table) -> str | None:
    """Say why a name is not a level of a column."""
    if column in table.feature_names:
        return (
            f"{option} {name}: {column!r} holds numbers; --as-category {quote(column)} makes a "
            "category of it."
        )
    unit = next((unit for unit in table.units if unit.column == column), None)
    if unit is not None and unit.reference == level:
        return (
            f"{option} {name}: {level!r} is what the other values of {column!r} are compared "
            f"with, and has no coefficient; give {quote(column)}."
        )
    return None


def class_weights(target: str, y: Any, options: dict[str, Any]) -> Any:
    """Return the weights of classes that --class-weight asks for, as the estimators take them.

    `y` holds the labels, and is None for a target of numbers.
    """
    given: list[str] = list(options.get("class_weight") or [])
    if not given:
        return None
    if y is None:
        raise Refused(
            f"--class-weight is for classes, and {target!r} holds numbers; --loss "
            f"{LABELS} takes them as classes.",
            DATA,
        )
    if given == ["balanced"]:
        return "balanced"
    labels: dict[str, Any] = {str(label): label for label in np.unique(y)}
    found = {}
    for text in given:
        name, _, weight = text.rpartition("=")
        if name not in labels:
            what = f"no class {name!r}" if name else "no CLASS=WEIGHT"
            raise Refused(
                f"--class-weight {text}: there is {what}. Give balanced alone, or the weight of "
                f"one of {listing(list(labels))} as {next(iter(labels))}=2.",
                DATA,
            )
        found[labels[name]] = _weight(text, weight)
    return found


def _weight(text: str, given: str) -> float:
    """Read the weight of a class."""
    try:
        weight = float(given)
    except ValueError:
        weight = np.nan
    if not 0.0 < weight < np.inf:
        raise Refused(f"--class-weight {text}: the weight must be a positive number.", DATA)
    return weight
