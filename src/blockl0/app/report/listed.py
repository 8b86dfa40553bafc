"""Entries of the page: a column, or a category with its levels below it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.app.report.plain import compact

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Listed(NamedTuple):
    """A unit of the problem as shown on the page.

    Attributes
    ----------
    name : str
    columns : ndarray of int
        Columns of X.
    parts : list of str
        Names of its columns below its own; empty for a single column.
    reference : str or None
        The level that the others are compared with.
    """

    name: str
    columns: Ints
    parts: list[str]
    reference: str | None

    def coefs(self, coef: Floats) -> Any:
        """Return its coefficients: a number, or one per class; None for a group."""
        return None if self.parts else compact(coef[self.columns[0]])

    def part_coefs(self, coef: Floats) -> list[Any] | None:
        """Return the coefficients of each column of a group; None for a single column."""
        return compact(coef[self.columns]) if self.parts else None

    def effect(self, X: Any, coef: Floats) -> float | None:
        """Compute the standard deviation of a group's contribution, over all classes."""
        if not self.parts:
            return None
        added = np.asarray(X[:, self.columns] @ coef[self.columns])
        return compact(np.sqrt(np.sum(np.var(added, axis=0))))


def listed(units: Any, names: list[str], references: Mapping[str, str] | None) -> list[Listed]:
    """List every unit of a problem, using the names of the columns of X."""
    known = {} if references is None else {str(k): str(v) for k, v in references.items()}
    found = []
    for unit in range(units.number(len(names))):
        columns = units.members(unit)
        name = names[int(columns[0])]
        parts: list[str] = []
        if columns.size > 1:
            name = str(units.labels[unit])
            parts = [names[int(j)].removeprefix(f"{name}=") for j in columns]
        found.append(Listed(name, columns, parts, known.get(name)))
    return found
