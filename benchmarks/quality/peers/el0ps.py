"""El0ps: branch and bound for a price with a bound on the coefficients, along falling prices."""

from __future__ import annotations

import numpy as np
from el0ps.datafit import Leastsquares
from el0ps.path import Path
from el0ps.penalty import Bigm
from el0ps.solver import BnbSolver

from ._support import best_support, column_norms

SECONDS, PRICES, SMALLEST, BIG_M = 5.0, 20, 1e-3, 3.0


def _path(X, y, s):
    """Solve for falling prices until s is exceeded; every price has an equal share of the time."""
    scaled, target = np.asfortranarray(X / column_norms(X)), y / np.linalg.norm(y)
    bound = BIG_M * float(np.max(np.abs(scaled.T @ target)))
    path = Path(
        lmbd_min=SMALLEST, lmbd_num=PRICES, max_nnz=s, stop_if_not_optimal=False, verbose=False
    )
    solver = BnbSolver(time_limit=SECONDS / PRICES)
    results = path.fit(solver, Leastsquares(target), Bigm(bound), scaled)
    return best_support(X, y, (result.x for result in results.values()), s)


METHODS = {"el0ps": _path}
