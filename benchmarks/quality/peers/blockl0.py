"""blockl0 itself: the three efforts of "refit", and the paper's method."""

from __future__ import annotations

from functools import partial

import blockl0


def _solve(X, y, s, **options):
    return blockl0.solve(X, y, n_nonzero_coefs=s, random_state=0, **options).support


METHODS = {
    "blockl0-fast": partial(_solve, effort="fast"),
    "blockl0-balanced": partial(_solve, effort="balanced"),
    "blockl0-thorough": partial(_solve, effort="thorough"),
    "blockl0-dec": partial(_solve, method="dec"),
}
