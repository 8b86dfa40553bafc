"""The number of columns by cross-validation, beside scikit-learn's ℓ1 paths, on real data.

    python benchmarks/bench_cv.py

`L0RegressorCV` beside `LassoCV` on the diabetes data, alone and with products of columns, and on
the numbers of breast cancer cells (a column predicted by the others); `L0ClassifierCV` beside
`LogisticRegressionCV` on breast cancer; all take the point of the best mean score. Half of the rows
are held out, three times: CPU seconds of the fits, columns chosen, and R² or accuracy on the rows
that were held out. One thread.

The ℓ1 penalty shrinks what it selects, and best subset alone does not: "ridge" takes, of four
ridges on columns of standard deviation 1, the one of the best mean score.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
import warnings

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LassoCV, LogisticRegressionCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from blockl0 import L0ClassifierCV, L0RegressorCV

SPLITS = 3
RIDGES = (0.0, 0.03, 0.1, 0.3)


def data_sets() -> dict[str, tuple[np.ndarray, np.ndarray, bool]]:
    """(X, y, whether y holds labels) by name."""
    X, y = load_diabetes(return_X_y=True)
    cells, labels = load_breast_cancer(return_X_y=True)
    products = PolynomialFeatures(2, include_bias=False).fit_transform(X)
    return {
        "diabetes": (X, y, False),
        "diabetes, products": (products, y, False),
        "cells, last column": (cells[:, :-1], cells[:, -1], False),
        "breast cancer": (cells, labels, True),
    }


def models(is_labels: bool, most: int) -> dict[str, object]:
    """The two models of a kind of target; at most so many columns for ours."""
    if is_labels:
        ours = L0ClassifierCV(most, cv=5, rule="min", random_state=0)
        peer = LogisticRegressionCV(
            l1_ratios=(1.0,), solver="liblinear", cv=5, use_legacy_attributes=False
        )
    else:
        ours, peer = L0RegressorCV(most, cv=5, rule="min", random_state=0), LassoCV(cv=5)
    scaled = {"blockl0, ridge": Shrunk(ours), "scikit-learn": peer}
    pipes = {name: make_pipeline(StandardScaler(), model) for name, model in scaled.items()}
    return {"blockl0": ours, **pipes}


class Shrunk(BaseEstimator):
    """Of some ridges, per row, the cross-validated model of the best mean score."""

    def __init__(self, model: L0RegressorCV | L0ClassifierCV) -> None:
        self.model = model

    def fit(self, X: np.ndarray, y: np.ndarray) -> Shrunk:
        """Fit with every ridge, and keep the best."""
        found = [clone(self.model).set_params(ridge=r * len(y)).fit(X, y) for r in RIDGES]
        self.best_ = max(found, key=lambda model: model.best_score_)
        self.coef_ = self.best_.coef_
        return self

    def score(self, X: np.ndarray, y: np.ndarray) -> float:
        """That of the best."""
        return self.best_.score(X, y)


def measure(model: object, X: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """(CPU seconds, score on held-out rows, columns), means over the splits."""
    found = []
    for seed in range(SPLITS):
        parts = train_test_split(X, y, test_size=0.5, random_state=seed)
        started = time.process_time()
        model.fit(parts[0], parts[2])
        taken = time.process_time() - started
        last = model[-1] if hasattr(model, "steps") else model
        found.append((taken, model.score(parts[1], parts[3]), np.count_nonzero(last.coef_)))
    return tuple(np.mean(found, axis=0))


def main() -> None:
    warnings.simplefilter("ignore")
    print(f"{'data':20s} {'model':14s} {'CPU s':>8s} {'held out':>9s} {'columns':>8s}")
    for name, (X, y, is_labels) in data_sets().items():
        for kind, model in models(is_labels, min(20, X.shape[1])).items():
            if kind == "blockl0":
                model.fit(X[:60], y[:60])  # what it compiles
            seconds, score, columns = measure(model, X, y)
            print(f"{name:20s} {kind:14s} {seconds:8.2f} {score:9.3f} {columns:8.1f}", flush=True)


if __name__ == "__main__":
    main()
