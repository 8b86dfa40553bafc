"""The methods of the paper's experiments by the names of ``blockl0.solve``."""

from __future__ import annotations

from functools import partial

import blockl0

from . import BASELINES


def _solve(X, y, s=None, price=None, *, method):
    return blockl0.solve(
        X, y, n_nonzero_coefs=s, alpha=price, method=method, random_state=0
    ).support


METHODS = {name: partial(_solve, method=name) for name in BASELINES.methods}
