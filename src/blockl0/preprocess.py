"""The former place of the exact intercept."""

from blockl0.problem.preprocess import ConstantColumnWarning, Prepared, apply

__all__ = ["ConstantColumnWarning", "Prepared", "apply"]
