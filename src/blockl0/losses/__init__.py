"""The smooth losses, one class each with all its facts; a new one is one file and one line here."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from blockl0.losses.base import (
    Adapted,
    Loss,
    Words,
    best_intercept,
    entropy_excess,
    majorizer_curvature,
)
from blockl0.losses.classification import Logistic, SquaredHinge
from blockl0.losses.log_link import LARGEST_LOG_MEAN, Gamma, LogLink, Poisson, Tweedie
from blockl0.losses.regression import Huber, Squared
from blockl0.losses.softmax import Softmax
from blockl0.losses.stored import label_of, with_parameter
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


def get_loss(loss: Any, known: Collection[str] | None = None) -> Loss:
    """Return a loss by name, such as "huber" or "huber:0.5"; an instance is returned as it is.

    An object that is not a `Loss` but has its functions is one, with the default facts. `known` are
    the names to choose from, by default all.
    """
    names = LOSSES if known is None else known
    if isinstance(loss, str):
        name, colon, value = loss.partition(":")
        known_loss = LOSSES[check_choice("loss", name if colon else loss, names)]
        return with_parameter(known_loss, value) if colon else known_loss
    if isinstance(loss, type) or not all(hasattr(loss, name) for name in _REQUIRED):
        return LOSSES[check_choice("loss", loss, names)]
    return check_facts(loss if isinstance(loss, Loss) else Adapted(loss))


def check_facts(loss: Loss) -> Loss:
    """Refuse facts that a loss of one's own states and the library cannot rely on."""
    # facts of the library's own losses are tested once, not on every call
    if type(loss) in map(type, LOSSES.values()):
        return loss
    if loss.n_outputs != 1 or loss.takes_many_classes:
        raise ValueError(
            f"loss={loss.name!r} must have one predictor for a sample, n_outputs = 1 and "
            f"takes_many_classes = False, got n_outputs = {loss.n_outputs} and takes_many_classes "
            f"= {loss.takes_many_classes}; for several classes there is loss='softmax', which "
            "loss='logistic' becomes in L0Classifier."
        )
    if loss.is_quadratic:
        # three points are enough to tell a quadratic of this form
        eta, y = np.array([0.0, 1.0, -3.0]), np.array([2.0, 0.5, 4.0])
        if not np.allclose(loss.value(eta, y), 0.5 * (y - eta) ** 2, rtol=1e-9, atol=0.0):
            raise ValueError(
                f"loss={loss.name!r} says that it is quadratic, but it is not ½(y − eta)²; leave "
                "`is_quadratic` out."
            )
    return loss


def names_of(takes_labels: bool) -> tuple[str, ...]:
    """Return the names of the losses of labels, or of numbers."""
    return tuple(
        name
        for name, loss in LOSSES.items()
        if loss.takes_labels is takes_labels and loss.n_outputs == 1
    )
