"""Shared by the unit bounds: bisection on the multiplier of the budget, and conjugates within
bounds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from blockl0.exact.bounds import Node, Relaxed

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEVELS = 14
"""Levels to try."""
SLACK = 1e-3
"""Tolerance on the room, in memberships."""


def best_level(
    node: Node,
    room: int,
    cutoff: float,
    descend: Callable[[float], float],
    prove: Callable[[], Relaxed],
    keep: Callable[[], None],
    first: Callable[[], float],
) -> Relaxed:
    """Bisect the cost of memberships until they use up the room; return the best bound.

    Parameters
    ----------
    node : Node
        Its `theta` is the first level, and is set to the best one.
    room : int
    cutoff : float
        A bound that suffices.
    descend : callable
        Descends at a level; returns the sum of the free memberships.
    prove : callable
        Returns what the current point proves.
    keep : callable
        Called if that is the best so far.
    first : callable
        Returns a level to try while no upper limit is known.
    """
    low, high, mu, best = 0.0, np.inf, node.theta, None
    for n_levels in range(LEVELS):
        total, found = descend(mu), prove()
        if best is None or found.bound > best.bound:
            best, node.theta = found, mu
            keep()
        is_balanced = total <= room + SLACK and (mu == 0.0 or total >= room - SLACK)
        if best.bound >= cutoff or (is_balanced and n_levels > 1):
            break
        low, high = (mu, high) if total > room else (low, mu)
        if mu == 0.0 and total <= room:
            continue
        mu = max(2.0 * mu, first()) if np.isinf(high) else 0.5 * (low + high)
    assert best is not None
    return best


def first_level(gains: Floats, room: int, scale: float) -> float:
    """Estimate a level: half the gain of the first unit without room."""
    if room >= gains.size:
        return 1e-6 * (scale + 1e-300)
    level = float(np.sort(gains)[gains.size - room - 1])
    return max(0.5 * level, 1e-9 * (scale + 1e-300))


def effective(b: Floats, t: Floats, low: Floats, high: Floats) -> Floats:
    """Compute √(2t sup_v bv − ½tv²) within bounds, entry by entry: |b| without bounds."""
    v = np.clip(b / np.maximum(t, 1e-300), low, high)
    return np.sqrt(np.maximum(2.0 * t * v * (b - 0.5 * t * v), 0.0))
