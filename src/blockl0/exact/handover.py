"""Small nodes, passed on to the tableau search, which visits thousands per second."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from blockl0.exact.bounds import Node
from blockl0.exact.search import ExactSearch
from blockl0.exact.watch import NEVER, Watch
from blockl0.problem.orthogonal import DEPENDENT, smallest_distance, tolerance_at
from blockl0.problem.problem import Problem
from blockl0.run import Incumbent
from blockl0.units import COLUMNS

Ints = NDArray[np.int64]

FEW_COLUMNS, FEW_NODES, FEW_FITS = 40, 1000, 50
"""Columns of a node for a tableau search to be tried, its nodes, and with bounds its fits."""
AGAIN = 0.8
"""Share of the columns that descendants must reach before it is tried again."""


def has_tableaus(problem: Problem) -> bool:
    """Check if tableaus may search supports: of squares of one response, columns of one price.

    Bounds only raise what a tableau finds for a support, and are kept by the fits that decide.
    """
    is_single = problem.is_quadratic and problem.n_outputs == 1
    return is_single and problem.units is COLUMNS and problem.costs is None


def are_apart(problem: Problem, columns: Ints | None = None) -> bool:
    """Check that no column depends on others: within bounds a fit may need all of them."""
    columns = np.arange(problem.n_features) if columns is None else columns
    return smallest_distance(problem.unit_columns(columns)[0]) > DEPENDENT


def is_for_tableaus(problem: Problem, node: Node) -> bool:
    """Check if a node is worth a try."""
    size = node.included.size + node.free.size
    if size > FEW_COLUMNS or (node.tried > 0 and size > AGAIN * node.tried):
        return False
    return problem.bounds is None or are_apart(problem, np.sort(node.units))


def search_tableaus(
    problem: Problem, node: Node, best: Incumbent, watch: Watch = NEVER
) -> tuple[bool, Incumbent]:
    """Search the supports of a node; return whether it finished, and the best point."""
    columns, bounds = np.sort(node.units), problem.bounds
    node.tried = columns.size
    part = replace(
        problem,
        design=problem.design.take(columns),
        keep=np.sort(np.searchsorted(columns, node.included)),
        sparsity=problem.sparsity._replace(budget=min(problem.sparsity.budget, columns.size)),
        bounds=None if bounds is None else (bounds[0][columns], bounds[1][columns]),
        scale=None,
        limits=None,
    )
    start = Incumbent(np.zeros(columns.size), best.objective, 0)
    # given the rounding of the incumbent: that of zero is as large as the target
    own = Watch()
    search = ExactSearch(part, start, own, tolerance=tolerance_at(problem, best.w))
    while not search.finished and search.incumbent.iteration < FEW_NODES:
        if bounds is not None and search.n_fitted >= FEW_FITS:
            break
        search.advance(FEW_NODES)
    watch.spend(own.work)
    if search.incumbent.objective < best.objective:
        w = problem.zero()
        w[columns] = search.incumbent.w
        best = Incumbent.at(problem, w)
    return search.finished, best
