"""The sparsity record: penalty per nonzero and budget of nonzeros."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.validate import check_sparsity


class Sparsity(NamedTuple):
    """The paper's h(w): `price`·‖w‖₀ subject to ‖w‖₀ ≤ `budget`.

    The regularized form is a price with ``budget == n_features``, the constrained form a budget
    with ``price == 0``; every combination is allowed.
    """

    price: float
    budget: int

    def cost(self, nnz: int) -> float:
        """Return price · nnz."""
        return self.price * nnz

    def allows(self, nnz: int) -> bool:
        """Return whether nnz is within the budget."""
        return nnz <= self.budget

    def is_feasible(self, w: NDArray[np.float64]) -> bool:
        """Return whether ‖w‖₀ ≤ budget."""
        return self.allows(int(np.count_nonzero(w)))

    def project(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the nearest feasible point: w (n,) with only its `budget` largest |w_j| kept.

        Always a copy. Ties keep the lowest index. O(n log n).
        """
        if self.is_feasible(w):
            return w.copy()
        largest = np.argsort(-np.abs(w), kind="stable")[: self.budget]
        projected = np.zeros_like(w)
        projected[largest] = w[largest]
        return projected


def as_sparsity(
    n_nonzero_coefs: Any, alpha: Any, n_units: int, name: str = "n_features"
) -> Sparsity:
    """Build the record from the public pair (`n_nonzero_coefs`, `alpha`); one is required."""
    return Sparsity(*check_sparsity(n_nonzero_coefs, alpha, n_units, name))
