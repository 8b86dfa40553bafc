"""The smooth losses, one class each with all its facts; a new one is one file and one line here."""

from __future__ import annotations

from typing import Any

from blockl0.losses.base import (
    Adapted,
    Loss,
    Words,
    best_intercept,
    entropy_excess,
    majorizer_curvature,
)
from blockl0.losses.classification import Logistic, SquaredHinge
from blockl0.losses.regression import LARGEST_LOG_MEAN, Huber, Poisson, Squared
from blockl0.losses.softmax import Softmax
from blockl0.validate import check_choice

__all__ = [
    "LARGEST_LOG_MEAN", "LOSSES", "Huber", "Logistic", "Loss", "Poisson", "Softmax", "Squared",
    "SquaredHinge", "Words", "best_intercept", "entropy_excess", "get_loss", "majorizer_curvature",
]  # fmt: skip

LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (Squared(), Logistic(), Huber(), SquaredHinge(), Poisson(), Softmax())
}
"""Every loss by the name users give."""

_REQUIRED = ("name", "value", "gradient", "curvature")


def get_loss(loss: Any) -> Loss:
    """The loss of that name, or the loss itself when an instance is given.

    An object that is not a `Loss` but has its functions is one, with the default facts.
    """
    if isinstance(loss, Loss):
        return loss
    if not isinstance(loss, str | type) and all(hasattr(loss, name) for name in _REQUIRED):
        return Adapted(loss)
    return LOSSES[check_choice("loss", loss, LOSSES)]
