"""The best supports that a search has seen, by their size: they serve every price and budget."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockl0.problem.problem import Sparsity

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Frontier:
    """The smallest smooth minimum f(k) seen on k columns, and its support, for every k met.

    f depends on neither price nor budget: the best point for any pair of them is the one with the
    smallest f(k) + price·k among the k within the budget.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all supports."""
        self._values: Floats = np.full(16, np.inf)
        self._supports: dict[int, Ints] = {}

    def __contains__(self, size: int) -> bool:
        return size in self._supports

    def value(self, size: int) -> float:
        """f(size), infinity where none is known."""
        return float(self._values[size]) if size < self._values.size else np.inf

    def support(self, size: int) -> Ints:
        """Return the columns of X of the best support of that size."""
        return self._supports[size]

    def offer(self, value: float, support: Ints) -> bool:
        """Keep a support if it is the best of its size so far; tell whether it is."""
        size = support.size
        if not value < self.value(size):
            return False
        if size >= self._values.size:
            self._values = np.append(self._values, np.full(size, np.inf))
        self._values[size], self._supports[size] = value, support
        return True

    def best_size(self, sparsity: Sparsity) -> int:
        """Return the size of the best support within a budget at a price, smallest first."""
        values = self._values[: sparsity.budget + 1]
        return int(np.argmin(values + sparsity.price * np.arange(values.size)))

    def best(self, sparsity: Sparsity) -> float:
        """f(k) + price·k at the best size, infinity where none is known."""
        size = self.best_size(sparsity)
        return self.value(size) + sparsity.cost(size)
