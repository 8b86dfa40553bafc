"""Losses of a user's own, in a module of their own as a model file needs it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtr

from blockl0.losses import Loss, Words


@dataclass(frozen=True)
class LogCosh(Loss):
    """log cosh((y − eta)/width)·width²: a subclass with a parameter."""

    width: float = 1.0
    name = "logcosh"
    shifts_with_target = True
    has_scale = True
    words = Words("log-cosh loss", "share of the log-cosh loss explained")
    curvature_bound = 1.0

    def value(self, eta, y):
        r = np.abs(y - eta) / self.width
        return self.width**2 * (r + np.log1p(np.exp(-2.0 * r)) - np.log(2.0))

    def gradient(self, eta, y):
        return self.width * np.tanh((eta - y) / self.width)

    def curvature(self, eta, y):
        return 1.0 - np.tanh((eta - y) / self.width) ** 2


class Probit(Loss):
    """−log Φ(y·eta): labels with probabilities, and a link of their own."""

    name = "probit"
    takes_labels = True
    needs_ridge = True
    has_probabilities = True
    curvature_bound = 1.0
    words = Words("probit loss", "share of the probit loss explained", "accuracy")

    def value(self, eta, y):
        return -log_ndtr(y * eta)

    def _ratio(self, z):
        return np.exp(-0.5 * z**2 - 0.5 * np.log(2.0 * np.pi) - log_ndtr(z))

    def gradient(self, eta, y):
        return -y * self._ratio(y * eta)

    def curvature(self, eta, y):
        z = y * eta
        ratio = self._ratio(z)
        return np.clip(ratio * (ratio + z), 0.0, 1.0)

    def mean(self, eta):
        return ndtr(eta)


class Duck:
    """The functions of a loss, and nothing else: ½ (y − eta)² times a factor."""

    name = "duck"
    curvature_bound = 4.0

    def __init__(self, factor=2.0):
        self.factor = factor

    def value(self, eta, y):
        return 0.5 * self.factor * (y - eta) ** 2

    def gradient(self, eta, y):
        return self.factor * (eta - y)

    def curvature(self, eta, y):
        return np.full_like(eta, self.factor)


class Forgetful(Duck):
    """A parameter of which no attribute is left."""

    name = "forgetful"

    def __init__(self, half=1.0):
        super().__init__(2.0 * half)


class Ruined(Duck):
    """A parameter that JSON cannot hold."""

    name = "ruined"


NOT_A_CLASS = LogCosh()
