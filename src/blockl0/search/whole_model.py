"""A quadratic model of few columns: its best support, by one exact search of all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.block_search import improve_block, is_proven, new_tree
from blockl0.problem.problem import Sparsity

Floats = NDArray[np.float64]

MOST_COLUMNS, MOST_NODES = 24, 20_000
"""Columns up to which a model is searched as one block, and nodes after which that is given up."""


class WholeModel:
    """½‖z − Xw‖² with weights and a ridge, as a quadratic in all columns, each of unit length.

    Parameters
    ----------
    design : design
        X, (m, n).
    target, weights : ndarray (m,)
    ridge : float
    """

    def __init__(self, design: Any, target: Floats, weights: Floats, ridge: float) -> None:
        G = design.full_gram(weights)
        G.flat[:: len(G) + 1] += ridge
        diagonal = G.diagonal()
        self.scale = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
        self.H = np.ascontiguousarray(G / self.scale / self.scale[:, None])
        b = design.cross((weights * target)[:, None], slice(None))[0]
        self.c = -b / self.scale

    def best(self, w: Floats, sparsity: Sparsity, kept: NDArray[np.bool_]) -> Floats | None:
        """The minimizer, or w where nothing is below it; None where that is not proven."""
        (price, budget), n = sparsity, self.c.size
        tree, here = new_tree(n, min(n, budget) + 1), w * self.scale
        z = improve_block(tree, self.H, self.c, price, budget, here, kept, MOST_NODES)
        if not is_proven(tree):
            return None
        return w if z is None else z / self.scale
