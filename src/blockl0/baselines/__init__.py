"""The methods of the paper's comparison, one file each.

Importing them registers them, see `blockl0.methods`: each is called as every method of
`blockl0.solve` is, method(problem, run, init=, rng=, **options).
"""

from blockl0.baselines import (
    apgm,
    apgm_l0,
    cosamp,
    cvx_l1,
    forward,
    omp,
    pgm,
    pgm_l0,
    pgm_l1,
    pgm_lp,
    qpm,
    romp,
    ssp,
)
from blockl0.methods import METHODS

__all__ = [
    "BUDGET_BASELINES", "PRICE_BASELINES", "apgm", "apgm_l0", "cosamp", "cvx_l1", "forward", "omp",
    "pgm", "pgm_l0", "pgm_l1", "pgm_lp", "qpm", "romp", "ssp",
]  # fmt: skip

BUDGET_BASELINES = {
    name: known.solve for name, known in METHODS.items() if known.forms == ("budget",)
}
"""For ‖w‖₀ <= n_nonzero_coefs."""

PRICE_BASELINES = {
    name: known.solve for name, known in METHODS.items() if known.forms == ("price",)
}
"""For alpha·‖w‖₀."""
