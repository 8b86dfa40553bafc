"""Targets that a loss takes, by the facts it states: a new loss is tested by being registered."""

from __future__ import annotations

import numpy as np

from blockl0.losses import get_loss


def is_positive(loss):
    """Whether the loss is for counts or amounts."""
    return get_loss(loss).has_positive_target


def amounts(loss, counts):
    """Counts as the loss takes them: half a unit more for one that refuses zeros."""
    counts = np.asarray(counts, dtype=np.float64)
    try:
        return get_loss(loss).check_target(counts)
    except ValueError:
        return counts + 0.5
