"""One table of the kinds of problems, and of the classes that handle each of them.

A kind is a smooth part and a selection. Whoever needs fits, a local model or changes of a support
takes them from here, so that a new kind of problem is a row and no fork elsewhere. Classes
are named by their place, as most of them belong to rooms above this one.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from blockl0.units import COLUMNS

if TYPE_CHECKING:
    from blockl0.problem.problem import Problem


class Kind(NamedTuple):
    """A kind of problem, and the classes that handle it.

    Attributes
    ----------
    smooth : "squares", "curved" or "classes"
        The smooth part: a quadratic in w, a sum of other losses of one predictor, or of several.
    selection : "columns", "units" or "bounds"
        Single columns at one price; groups, or columns with costs or several responses; or any of
        these with bounds on the coefficients.
    fits : str
        Class of fits on a support, of (problem).
    model : str
        Class of the quadratic model at a point, of (models, w, is_global).
    moves : str
        Class of all single changes of a support on the true loss, of (problem, fits).
    """

    smooth: str
    selection: str
    fits: str
    model: str
    moves: str

    def load(self, what: str) -> Any:
        """Return the class of a field such as "fits", imported on first use."""
        return _load(getattr(self, what))


@cache
def _load(place: str) -> Any:
    module, _, name = place.rpartition(".")
    return getattr(import_module(f"blockl0.{module}"), name)


_ROWS = (
    ("squares", "columns", "Fits", "QuadraticModel", "UnitMoves"),
    ("squares", "units", "Fits", "UnitModel", "UnitMoves"),
    ("squares", "bounds", "BoundedFits", "UnitModel", "UnitMoves"),
    ("curved", "columns", "NewtonFits", "QuadraticModel", "SingleMoves"),
    ("curved", "units", "NewtonFits", "UnitModel", "UnitMoves"),
    ("curved", "bounds", "BoundedNewtonFits", "UnitModel", "UnitMoves"),
    ("classes", "columns", "NewtonFits", "GroupedModel", "SingleMoves"),
    ("classes", "units", "NewtonFits", "UnitModel", "UnitMoves"),
)  # fmt: skip
_ROOMS = ("problem.fits", "search.models", "moves.single_moves")
"""Where the classes of a row are."""

KINDS = {
    row[:2]: Kind(*row[:2], *(f"{room}.{name}" for room, name in zip(_ROOMS, row[2:], strict=True)))
    for row in _ROWS
}
"""Every kind by its smooth part and selection."""

LEAST_SQUARES = KINDS["squares", "columns"]
"""Plain least squares: tableaus of X'X are all that a search needs."""


def kind_of(problem: Problem) -> Kind:
    """Return the kind of a problem."""
    is_quadratic, has_several = problem.loss.is_quadratic, problem.n_outputs > 1
    smooth = "squares" if is_quadratic else "classes" if has_several else "curved"
    # bounds ask for other fits, whatever is selected
    if problem.bounds is not None:
        return KINDS[smooth, "bounds"]
    is_single = problem.units is COLUMNS and problem.costs is None
    return KINDS[smooth, "columns" if is_single and not (is_quadratic and has_several) else "units"]
