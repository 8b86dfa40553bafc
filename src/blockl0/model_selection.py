"""The former place of the estimators with cross-validation."""

from blockl0.estimators.cv import L0ClassifierCV, L0RegressorCV

__all__ = ["L0ClassifierCV", "L0RegressorCV"]
