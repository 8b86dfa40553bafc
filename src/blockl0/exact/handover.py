"""Small nodes, passed on to the tableau search, which visits thousands per second."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from blockl0.exact.bounds import Node
from blockl0.exact.search import ExactSearch
from blockl0.exact.watch import NEVER, Watch
from blockl0.problem.orthogonal import tolerance_at
from blockl0.problem.problem import Problem
from blockl0.run import Incumbent

FEW_COLUMNS, FEW_NODES = 40, 1000
"""Columns of a node for a tableau search to be tried, and its nodes."""
AGAIN = 0.8
"""Share of the columns that descendants must reach before it is tried again."""


def is_for_tableaus(node: Node) -> bool:
    """Check if a node is worth a try."""
    size = node.included.size + node.free.size
    return size <= FEW_COLUMNS and (node.tried == 0 or size <= AGAIN * node.tried)


def search_tableaus(
    problem: Problem, node: Node, best: Incumbent, watch: Watch = NEVER
) -> tuple[bool, Incumbent]:
    """Search the supports of a node; return whether it finished, and the best point."""
    columns = np.sort(np.concatenate([node.included, node.free]))
    node.tried = columns.size
    part = replace(
        problem,
        design=problem.design.take(columns),
        keep=np.sort(np.searchsorted(columns, node.included)),
        sparsity=problem.sparsity._replace(budget=min(problem.sparsity.budget, columns.size)),
        scale=None,
    )
    start = Incumbent(np.zeros(columns.size), best.objective, 0)
    # given the rounding of the incumbent: that of zero is as large as the target
    own = Watch()
    search = ExactSearch(part, start, own, tolerance=tolerance_at(problem, best.w))
    while not search.finished and search.incumbent.iteration < FEW_NODES:
        search.advance(FEW_NODES)
    watch.spend(own.work)
    if search.incumbent.objective < best.objective:
        w = problem.zero()
        w[columns] = search.incumbent.w
        best = Incumbent.at(problem, w)
    return search.finished, best
