"""Method "exact": proofs of global optimality by branch and bound."""

from blockl0.exact.method import LARGEST, solve_exact

__all__ = ["LARGEST", "solve_exact"]
