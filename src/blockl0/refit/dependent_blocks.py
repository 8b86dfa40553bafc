"""What a block is searched on where its columns depend on each other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from blockl0 import kernels

Floats = NDArray[np.float64]
_lapack: Any = lapack

LISTED_BLOCK, LISTED_NODES = 12, 2000
"""Columns of a block whose supports are soon listed, and nodes of the list of a larger one."""
LIFT = 1e-8
"""Added to the unit diagonal of a larger one; more than what makes a block singular."""


def block_models(H: Floats, node_limit: int) -> list[tuple[Floats, int]]:
    """What a block is searched on, one after the other until a point is better, and the nodes.

    A singular H has no bounds, so that its search is a list of all supports. A larger block is
    therefore searched on a diagonal that is a little larger first, where bounds prune; what that
    finds is a proposal, as everything that a pool finds. Some of the list follows, since points
    that differ by less than was added are told apart by H alone.
    """
    if H.shape[0] <= LISTED_BLOCK or is_regular(H):
        return [(H, node_limit)]
    return [(H + np.diag(LIFT * np.diag(H)), node_limit), (H, min(LISTED_NODES, node_limit))]


def is_regular(H: Floats) -> bool:
    """Whether a search on H has bounds: no relative pivot is too small; O(k³/3)."""
    L, info = _lapack.dpotrf(H, lower=1)
    return info == 0 and bool((L.diagonal() ** 2 > kernels.SINGULAR * H.diagonal()).all())
