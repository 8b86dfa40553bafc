"""The smooth losses, one class each with all its facts; a new one is one file and one line here."""

from __future__ import annotations

from collections.abc import Iterable
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
from blockl0.losses.log_link import LARGEST_LOG_MEAN, LogLink
from blockl0.losses.regression import Huber, Poisson, Squared
from blockl0.losses.softmax import Softmax
from blockl0.losses.stored import label_of, with_parameter
from blockl0.losses.tweedie import Gamma, Tweedie
from blockl0.validate import check_choice

__all__ = [
    "LARGEST_LOG_MEAN", "LOSSES", "Gamma", "Huber", "LogLink", "Logistic", "Loss", "Poisson",
    "Softmax", "Squared", "SquaredHinge", "Tweedie", "Words", "best_intercept", "entropy_excess",
    "get_loss", "label_of", "majorizer_curvature", "names_of",
]  # fmt: skip

LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        Squared(),
        Huber(),
        Poisson(),
        Gamma(),
        Tweedie(),
        Logistic(),
        SquaredHinge(),
        Softmax(),
    )
}
"""Every loss by the name users give."""

_REQUIRED = ("name", "value", "gradient", "curvature")


def get_loss(loss: Any, known: Iterable[str] | None = None) -> Loss:
    """The loss of a name, as "huber" or "huber:0.5", or the loss itself when an instance is given.

    An object that is not a `Loss` but has its functions is one, with the default facts. `known` are
    the names to choose from, by default all.
    """
    names = LOSSES if known is None else known
    if isinstance(loss, str) and ":" in loss:
        name, _, value = loss.partition(":")
        return with_parameter(LOSSES[check_choice("loss", name, names)], value)
    if isinstance(loss, str | type) or not all(hasattr(loss, name) for name in _REQUIRED):
        return LOSSES[check_choice("loss", loss, names)]
    return loss if isinstance(loss, Loss) else Adapted(loss)


def names_of(takes_labels: bool) -> tuple[str, ...]:
    """The losses of labels, or of numbers, that estimators take by name."""
    return tuple(
        name
        for name, loss in LOSSES.items()
        if loss.takes_labels is takes_labels and loss.n_outputs == 1
    )
