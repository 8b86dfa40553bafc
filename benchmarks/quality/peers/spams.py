"""SPAMS: orthogonal matching pursuit (the order-recursive kind) on unit columns."""

from __future__ import annotations

import numpy as np
import spams

from ._support import column_norms


def _omp(X, y, s):
    D = np.asfortranarray(X / column_norms(X))
    target = np.asfortranarray(y[:, None])
    return spams.omp(target, D=D, L=s, numThreads=1).nonzero()[0]


METHODS = {"spams-omp": _omp}
