"""Method "exact": proofs of global optimality by branch and bound."""

from blockl0.exact.method import solve_exact
from blockl0.exact.stages import HOPELESS

__all__ = ["HOPELESS", "solve_exact"]
