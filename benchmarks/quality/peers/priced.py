"""The methods of blockl0 that take a price, and a long path of prices down to the one asked for."""

from __future__ import annotations

from functools import partial

import numpy as np

import blockl0

FIRST, RATIO = 1e6, 0.7


def _solve(X, y, price, **options):
    return blockl0.solve(X, y, alpha=price, random_state=0, **options).support


def _path(X, y, price):
    prices = price * RATIO ** -np.arange(np.log(price / FIRST) // np.log(RATIO), -1.0, -1.0)
    return blockl0.l0_path(X, y, alphas=prices, random_state=12345, effort="thorough")[-1].support


METHODS = {
    "blockl0-fast": partial(_solve, effort="fast"),
    "blockl0-balanced": partial(_solve, effort="balanced"),
    "blockl0-thorough": partial(_solve, effort="thorough"),
    "blockl0-dec": partial(_solve, method="dec"),
    "pgm-l0": partial(_solve, method="pgm-l0"),
    "blockl0-path": _path,
}
