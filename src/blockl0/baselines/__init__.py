"""The methods of the paper's comparison, one file each, and their names.

Each is called as every method of `blockl0.solve` is: method(problem, run, init=, rng=, **options).
"""

from collections.abc import Callable

from blockl0.baselines.apgm import solve_apgm
from blockl0.baselines.apgm_l0 import solve_apgm_l0
from blockl0.baselines.cosamp import solve_cosamp
from blockl0.baselines.cvx_l1 import solve_cvx_l1
from blockl0.baselines.forward import solve_forward
from blockl0.baselines.omp import solve_omp
from blockl0.baselines.pgm import solve_pgm
from blockl0.baselines.pgm_l0 import solve_pgm_l0
from blockl0.baselines.pgm_l1 import solve_pgm_l1
from blockl0.baselines.pgm_lp import solve_pgm_lp
from blockl0.baselines.qpm import solve_qpm
from blockl0.baselines.romp import solve_romp
from blockl0.baselines.ssp import solve_ssp
from blockl0.result import Result

BUDGET_BASELINES: dict[str, Callable[..., Result]] = {
    "pgm": solve_pgm,
    "apgm": solve_apgm,
    "qpm": solve_qpm,
    "ssp": solve_ssp,
    "romp": solve_romp,
    "omp": solve_omp,
    "cosamp": solve_cosamp,
    "cvx-l1": solve_cvx_l1,
    "forward": solve_forward,
}
"""For ‖w‖₀ <= n_nonzero_coefs."""

PRICE_BASELINES: dict[str, Callable[..., Result]] = {
    "pgm-l0": solve_pgm_l0,
    "apgm-l0": solve_apgm_l0,
    "pgm-l1": solve_pgm_l1,
    "pgm-lp": solve_pgm_lp,
}
"""For alpha·‖w‖₀."""
