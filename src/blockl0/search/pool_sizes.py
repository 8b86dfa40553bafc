"""How a pool is searched, and how many columns it takes: few moves are cheap, many find more."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blockl0.problem.problem import Problem

NARROW_POOL, NARROW_FACTOR = 160, 8
"""Columns in the narrow pool of the start and the first round: this many, or so many supports."""
POOL_SIZE, POOL_FACTOR = 1024, 8
"""Columns in the pool: this many, or so many supports if that is more."""
POOL_BYTES = 64 << 20
"""Bytes of a pool's columns, unless so many supports need more; twice as many of an X that is one
pool."""
WALK_WORK = 2e9
"""Operations spent at most on the Gram matrix of a pool for walks."""
LARGEST_POOL = 4096
"""Columns in any pool that is not all of X."""
FEW_COLUMNS = 19
"""Columns up to which the squared loss is solved to proven optimality."""


class SearchOptions(NamedTuple):
    """How a pool is searched, and on how many threads; see `solve_refit`.

    Unless they are checked, points of other losses end where models and likely changes lead: for
    answers whose certificate nobody reads.
    """

    pool: int | None = None
    is_checked: bool = True
    n_jobs: int = 1


def pool_size(problem: Problem, options: SearchOptions) -> int:
    """Columns in a pool; all of them when they are not many."""
    n = problem.n_features
    # in columns, of units of the usual size
    budget = -(-problem.sparsity.budget * n // max(problem.n_units, 1))
    if options.pool is not None:
        return min(n, options.pool)
    m, design = problem.n_samples, problem.design
    room = min(POOL_BYTES, design.pool_bytes / design.n_searches)
    if n <= 2 * NARROW_POOL and design.nbytes <= 2 * room:
        return n
    affordable = int(room * n / max(design.nbytes, 1))
    most = min(POOL_FACTOR * min(budget, m), LARGEST_POOL)
    wanted = max(min(POOL_SIZE, affordable), most, NARROW_POOL)
    # twice as many cost no more than pricing those that a pool leaves out again and again
    is_whole = n <= 2 * wanted and design.nbytes <= 2 * room
    return n if is_whole else min(n, wanted)


def narrow_size(problem: Problem, options: SearchOptions, n_nonzero: int) -> int:
    """Columns in the pool of the start and of the first round, where moves are cheapest."""
    return min(pool_size(problem, options), max(NARROW_POOL, NARROW_FACTOR * n_nonzero))


def walk_size(problem: Problem, options: SearchOptions, n_nonzero: int) -> int:
    """Columns in a pool for walks, which need its whole Gram matrix."""
    affordable = int(np.sqrt(WALK_WORK / problem.n_samples))
    most = min(POOL_FACTOR * n_nonzero, LARGEST_POOL)
    return min(pool_size(problem, options), max(affordable, most))
