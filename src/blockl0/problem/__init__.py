"""The problem: objective, constraints, access to X, and fits on a support."""

from blockl0.problem.problem import Problem, as_problem, independent

__all__ = ["Problem", "as_problem", "independent"]
