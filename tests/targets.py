"""Targets that a loss takes, by the facts it states: a new loss is tested by being registered."""

from __future__ import annotations

import numpy as np

from blockl0.losses import get_loss


def is_positive(loss):
    """Whether the loss is for counts or amounts."""
    return get_loss(loss).has_positive_target


def takes_labels(loss):
    """Whether the loss is for classes."""
    return get_loss(loss).takes_labels


def amounts(loss, counts):
    """Counts as the loss takes them: half a unit more for one that refuses zeros."""
    counts = np.asarray(counts, dtype=np.float64)
    try:
        return get_loss(loss).check_target(counts)
    except ValueError:
        return counts + 0.5


def as_target(loss, y, threshold=0.0, growth=0.3):
    """Numbers as the loss takes them: labels by a threshold, or counts that grow with them."""
    if takes_labels(loss):
        return np.where(y > threshold, 1.0, -1.0)
    return amounts(loss, np.round(np.exp(growth * y))) if is_positive(loss) else y
