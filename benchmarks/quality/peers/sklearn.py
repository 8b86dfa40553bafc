"""scikit-learn: orthogonal matching pursuit, which does not scale columns, and with scaling."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import orthogonal_mp

from ._support import column_norms


def _omp(X, y, s):
    return np.flatnonzero(orthogonal_mp(X, y, n_nonzero_coefs=s))


METHODS = {
    "sklearn-omp": _omp,
    "sklearn-omp-unit": lambda X, y, s: _omp(X / column_norms(X), y, s),
}
