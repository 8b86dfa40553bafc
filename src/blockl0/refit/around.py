"""A pool and the frontier around it: what annealings have found for its price and budget."""

from __future__ import annotations

from blockl0.refit.frontier import Frontier
from blockl0.refit.pool import Pool


class Around:
    """The best supports of a frontier for a pool.

    Parameters
    ----------
    pool : Pool
    frontier : Frontier
        Shared by all that is done around one point.
    """

    def __init__(self, pool: Pool, frontier: Frontier) -> None:
        self.pool, self.frontier = pool, frontier

    @property
    def best(self) -> float:
        """The best objective on the frontier."""
        return self.frontier.best(self.pool.sparsity)

    @property
    def best_size(self) -> int:
        """Its size."""
        return self.frontier.best_size(self.pool.sparsity)

    def note(self) -> None:
        """Offer where the pool stands to the frontier."""
        if self.pool.value < self.frontier.value(self.pool.size):
            self.frontier.offer(self.pool.value, self.pool.support)

    def return_to_best(self) -> None:
        """Load the best support of the frontier, and descend from it for its price."""
        self.pool.move_to(self.frontier.support(self.best_size))
        self.pool.descend()
        self.note()
