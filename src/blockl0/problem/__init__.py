"""The problem: what is minimized over what, and every way to read X and to fit on a support."""

from blockl0.problem.problem import Problem, as_problem, independent

__all__ = ["Problem", "as_problem", "independent"]
