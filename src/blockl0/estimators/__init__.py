"""The scikit-learn estimators, thin shells around `solve_problem`."""

from blockl0.estimators.classifier import L0Classifier
from blockl0.estimators.regressor import L0Regressor
from blockl0.estimators.selector import BestSubsetSelector

__all__ = ["BestSubsetSelector", "L0Classifier", "L0Regressor"]
