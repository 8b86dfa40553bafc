"""The proven global optimum by branch and bound."""

from blockl0.exact.method import no_bound, solve_exact
from blockl0.exact.prover import obstacle
from blockl0.exact.stages import Stages, may_bound, may_prove

__all__ = ["Stages", "may_bound", "may_prove", "no_bound", "obstacle", "solve_exact"]
