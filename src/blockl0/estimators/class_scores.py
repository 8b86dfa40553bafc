"""How well classes are told apart, beside accuracy: AUC, log loss, recall; classes of one row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEAST = 1e-15
"""Probability below which one counts as this, so that one wrong row has no infinite log loss."""


def lone_rows(labels: NDArray[Any]) -> Ints:
    """Return the rows whose class has no other row."""
    _, first, counts = np.unique(labels, return_index=True, return_counts=True)
    return np.sort(first[counts == 1])


def auc(eta: Floats, codes: Ints, weights: Floats | None = None) -> float:
    """Compute the area under the ROC curve: how often a row of a class ranks above one of another.

    Parameters
    ----------
    eta : ndarray (m,) or (m, n_classes)
        Scores of the second of two classes, or of every class: the mean over classes against the
        rest is then taken. Ties count half.
    codes : ndarray of int (m,)
    weights : ndarray (m,), optional

    Returns
    -------
    float
        NaN if there are rows of one class only.
    """
    if eta.ndim == 1:
        return _auc_of(eta, codes == 1, weights)
    each = [_auc_of(eta[:, c], codes == c, weights) for c in np.unique(codes)]
    return float(np.mean(each))


def _auc_of(score: Floats, is_in: NDArray[np.bool_], weights: Floats | None) -> float:
    weights = np.ones(len(score)) if weights is None else weights
    inside, outside = weights * is_in, weights * ~is_in
    total = inside.sum() * outside.sum()
    if total <= 0.0:
        return float("nan")
    place = rankdata(score, method="dense") - 1
    gained, lost = np.bincount(place, inside), np.bincount(place, outside)
    below = np.cumsum(lost) - lost
    return float(gained @ (below + 0.5 * lost) / total)


def log_loss(shares: Floats, codes: Ints) -> float:
    """Compute the mean of −log of the probability of the true class."""
    true = shares[np.arange(len(codes)), codes]
    return float(-np.mean(np.log(np.maximum(true, LEAST))))


def recalls(eta: Floats, codes: Ints, n_classes: int) -> Floats:
    """Compute the share of the rows of each class that are predicted; NaN without rows."""
    predicted = (eta > 0.0) * 1 if eta.ndim == 1 else np.argmax(eta, axis=1)
    rows = np.bincount(codes, minlength=n_classes)
    right = np.bincount(codes[predicted == codes], minlength=n_classes)
    return np.where(rows > 0, right / np.maximum(rows, 1), np.nan)


def class_scores(eta: Floats, codes: Ints, classes: Any, shares: Floats | None) -> dict[str, Any]:
    """Return AUC, log loss where there are probabilities, balanced accuracy and recalls."""
    each = recalls(eta, codes, len(classes))
    return {
        "auc": auc(eta, codes),
        **({} if shares is None else {"log_loss": log_loss(shares, codes)}),
        "balanced_accuracy": float(np.nanmean(each)),
        "recall": dict(zip(map(str, classes), each.tolist(), strict=True)),
    }
