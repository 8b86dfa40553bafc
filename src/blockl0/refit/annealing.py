"""From nothing down to a price: trials by chance while the price falls, so that supports grow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockl0 import kernels
from blockl0.refit.frontier import Frontier
from blockl0.refit.pool import Pool
from blockl0.run import Run

Floats = NDArray[np.float64]

HEAT = 0.1
"""The temperature, in prices: what a column is worth is the unit in which supports differ."""
FIRST_SHARE = 0.25
"""Of the best gain of a single column: the price at which an annealing begins."""
LAST_SHARE = 0.1
"""Of what the least column of a full budget is worth: the price at which an annealing ends."""
SLICE = 2e8
"""Operations between two looks at the clock; about a tenth of a second."""
FIRST_MOVES, LONG_MOVES = 1_200, 16_000
"""Moves of the first annealing, and of the next, if each were made on the whole support."""
MOST_WORK = 8e9
"""Operations of an annealing, however large the support; a few seconds."""
SPARE = 1.1, 8
"""Columns that a support may have, of those of a descent: such a multiple, and so many more."""


def work_of(pool: Pool, n_nonzero: int, moves: float) -> float:
    """Operations for so many moves on a support of such a size."""
    return min(moves * pool.columns.size * max(n_nonzero, 1), MOST_WORK)


def most_columns(n_nonzero: int) -> int:
    """Columns in a support, where a descent, which fills up, has found so many."""
    return int(SPARE[0] * n_nonzero + SPARE[1])


def first_price(pool: Pool) -> float:
    """A price at which few columns are worth it."""
    safe = np.where(pool.sq_norms > 0.0, pool.sq_norms, np.inf)
    return float(np.max(FIRST_SHARE * 0.5 * pool.target**2 / safe))


def last_price(pool: Pool) -> float:
    """The price of the pool; where it has none, one at which its budget is full and all cold."""
    costs = pool.drop_costs(pool.movable)
    cheapest = LAST_SHARE * float(costs.min()) if costs.size else 0.0
    return max(pool.sparsity.price, cheapest, pool.tolerance)


def anneal(
    pool: Pool,
    frontier: Frontier,
    price: float,
    most: int,
    work: float,
    run: Run | None,
    rng: np.random.Generator,
) -> None:
    """Walk from the kept columns alone to the price, and offer the best of each size met.

    A descent for a low price fills up with columns, of which each alone is worth it. Here the price
    falls slowly from one that few columns are worth, and the support is at every price one of the
    many that are about as good as any: what is large was grown from what was good when small. The
    longer it takes the better it ends, and one long walk is better than many short ones.

    Parameters
    ----------
    pool : Pool
        Its whole Gram matrix is made. It is left at the end of the walk.
    frontier : Frontier
        All prices from the first to the last are served.
    price : float
        The last price, positive.
    most : int
        Columns in a support, at most; memory is quadratic in them.
    work : float
        Operations.
    run : Run or None
        Its clock ends the walk early.
    rng : Generator
        One number is drawn.
    """
    first = first_price(pool)
    seed = int(rng.integers(1, 2**63))
    if not price < first:
        return
    pool.know_all()
    pool.load(pool.columns[pool.table.kept])
    most = min(most, pool.sparsity.budget, pool.columns.size)
    cooling = kernels.Cooling(
        plan=np.array([first, price, HEAT, work, 0.0]),
        chances=np.array([seed], dtype=np.uint64),
        values=np.full(most + 1, np.inf),
        members=np.empty((most + 1, most), dtype=np.int32),
    )
    _walk(pool, cooling, most, run)
    for size in np.flatnonzero(cooling.values < np.inf):
        support = np.sort(pool.columns[cooling.members[size, :size]])
        frontier.offer(float(cooling.values[size]), support)


def _walk(pool: Pool, cooling: kernels.Cooling, most: int, run: Run | None) -> None:
    """All trials, in slices; a tableau that has drifted is built anew, which is work as well."""
    plan = cooling.plan
    while plan[kernels.WORK_DONE] < plan[kernels.WORK]:
        if run is not None and run.seconds_left <= 0.0:
            break
        until = min(plan[kernels.WORK], plan[kernels.WORK_DONE] + SLICE)
        if kernels.anneal(pool.table, cooling, pool.equal, most, until) == kernels.DRIFTED:
            plan[kernels.WORK_DONE] += float(pool.columns.size) * pool.size**2
            pool.refresh()
