"""Interpret a fit: units, cancelling pairs, products; how well it separates classes."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtrc, fdtrc
from scipy.stats import rankdata

from blockl0.problem.orthogonal import WRITTEN
from blockl0.problem.preprocess import FOR_LABELS, Ridge
from blockl0.text import LISTED, weighted_sum

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

UNITS_DIFFER = 10.0
"""Ratio of standard deviations above which coefficients per unit are hard to compare."""
CORRELATED, CANCEL = 0.8, 0.6
"""Opposed pairs have at least the first correlation, in absolute value, and together move the
prediction by less than the second times what the larger would alone.
"""
POWER = re.compile(r"\s*(\^|\*\*)\s*\d+$|[²³]$")
TINY = float(np.finfo(float).tiny)
MANY_COEFS = 0.2
"""Coefficients per row above which groups have many."""
LEAK = (
    ", up to a constant and rounding: an identity, not a finding. If these columns become known "
    "only with the target, they cannot predict it; leave them out."
)
COMMON = 0.05
"""Share of groups of noise that lower the loss as much, above which a group is like noise."""
MOST_COMPARED = 500
"""Columns up to which all pairs are checked."""


class Opposed(NamedTuple):
    """Two correlated columns whose effects, per standard deviation, nearly cancel."""

    first: int
    second: int
    correlation: float
    effects: tuple[float, float]
    together: float

    def parts(self, names: Sequence[str]) -> list[Any]:
        """Describe the pair in parts; names are lists of one text."""
        one, other = self.effects
        text = (
            f" are correlated ({self.correlation:.2f}) and their effects nearly cancel: {one:.3g} "
            f"and {other:.3g} per standard deviation, {self.together:.3g} together. Their sizes "
            "depend on each other: interpret them as a pair, or stabilize them with a ridge."
        )
        return [[names[self.first]], " and ", [names[self.second]], text]

    def sentence(self, names: Sequence[str]) -> str:
        """Describe the pair as text."""
        return "".join(f"“{p[0]}”" if isinstance(p, list) else p for p in self.parts(names))


def units_differ(spread: ArrayLike) -> bool:
    """Check if the standard deviations of columns differ widely."""
    spread = np.asarray(spread, dtype=np.float64)
    known = spread[spread > 0.0]
    return bool(known.size) and float(known.max() / known.min()) > UNITS_DIFFER


def opposed_pairs(X: Any, coef: Any, groups: Any = None) -> list[Opposed]:
    """Find pairs of the chosen columns X (m, k) that are opposed by coef (k,) or (k, n_classes).

    Columns of the same group in `groups` (k,), such as levels of a category, are read together
    anyway.
    """
    if not 2 <= X.shape[1] <= MOST_COMPARED:
        return []
    X = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    coef = np.asarray(coef, dtype=np.float64).reshape(X.shape[1], -1)
    spread = X.std(axis=0)
    if not spread.all():
        return []
    correlation = np.corrcoef(X, rowvar=False)
    found = []
    for i, j in combinations(range(X.shape[1]), 2):
        r = float(correlation[i, j])
        if abs(r) < CORRELATED or (groups is not None and groups[i] == groups[j]):
            continue
        effects = coef[[i, j]] * spread[[i, j], None]
        together = np.sqrt(np.maximum((effects**2).sum(0) + 2.0 * r * effects.prod(0), 0.0))
        sizes = np.abs(effects).max(0)
        # for several classes those where the pair matters
        shares = np.where(sizes >= 0.5 * max(sizes.max(), TINY), together / (sizes + TINY), np.inf)
        at = int(np.argmin(shares))
        one, other = effects[:, at].tolist()
        if together[at] < CANCEL * max(abs(one), abs(other)):
            found.append(Opposed(i, j, r, (one, other), float(together[at])))
    return sorted(found, key=lambda pair: -abs(pair.correlation))


def factors_of(name: str, known: Collection[str]) -> tuple[str, ...]:
    """Return the known columns that a product or power consists of, by its name; else ().

    As ``a*b``, ``a:b``, ``a × b``, ``a b`` (scikit-learn's `PolynomialFeatures`), ``a^2``, ``a²``.
    """
    for sign in ("*", ":", "×", " "):
        bases = [POWER.sub("", part.strip()) for part in name.split(sign)]
        if bases != [name] and all(base in known for base in bases):
            return tuple(dict.fromkeys(bases))
    return ()


def guess_share(codes: Any, weights: Any = None) -> float:
    """Compute the accuracy of always guessing the most frequent class."""
    _, inverse = np.unique(codes, return_inverse=True)
    totals = np.bincount(inverse, weights)
    return float(totals.max() / totals.sum())


def crowded(n_chosen: int, n_coefs: int, n_rows: int) -> str | None:
    """Warn if groups have many coefficients for few rows; None if not."""
    if n_coefs == n_chosen or n_coefs <= MANY_COEFS * n_rows:
        return None
    return (
        f"The chosen columns have {n_coefs} coefficients, one for each compared value of a "
        f"category, for {n_rows} rows: a good part of the fit may be chance. Judge by held-out "
        "rows."
    )


def determined(
    names: Sequence[str], coef: Floats, spread: Floats, left: float, n_rows: int
) -> list[Any] | None:
    """Describe columns that add up to the target, in parts; None if there are none or too many.

    Parameters
    ----------
    names, coef, spread : of the chosen columns
    left : float
        Share of the squared deviations of the target that is left.
    n_rows : int
    """
    effects = np.abs(coef) * spread
    if not left <= WRITTEN**2 or n_rows <= 2 * (len(names) + 1) or not effects.size:
        return None
    at = np.flatnonzero(effects > WRITTEN * effects.max())
    if at.size > LISTED:
        return None
    said = weighted_sum([names[j] for j in at.tolist()], coef[at].tolist())
    return ["The target is ", *said, LEAK]


def like_noise(
    name: str, rise: float, n_columns: int, rest: float, n_left: float, loss: Any
) -> str | None:
    """Warn of a group that hardly explains more than noise; None otherwise, or for one column.

    The loss rises by `rise` without it, and is `rest` with it, which leaves `n_left` degrees of
    freedom. Twice the rise is then chi-squared for noise, times the variance of losses with a
    scale. None for losses without a likelihood.
    """
    n_coefs = n_columns * loss.n_directions
    has_likelihood = loss.has_probabilities or not loss.takes_labels
    if n_columns < 2 or not has_likelihood or not np.isfinite(rise) or n_left < 1.0:
        return None
    scale = 2.0 * rest / n_left if loss.has_scale else 1.0
    ratio = 2.0 * max(rise, 0.0) / max(n_coefs * scale, TINY)
    share = fdtrc(n_coefs, n_left, ratio) if loss.has_scale else chdtrc(n_coefs, n_coefs * ratio)
    if share <= COMMON:
        return None
    return (
        f"“{name}” has {n_coefs} coefficients, and lowers the loss {ratio:.2g} times as much as "
        "that many columns of noise on average. Noise often does as much: it may not matter."
    )


def separation(accuracy: float, ridge: Ridge) -> str | None:
    """Warn if a fit classifies all its rows correctly; None if not, or for numbers."""
    if not accuracy >= 1.0:
        return None
    held = (
        f"only the ridge of {ridge.words} keeps the coefficients finite" if ridge.value
        else "without a ridge the coefficients have no finite size"
    )  # fmt: skip
    larger = Ridge(max(FOR_LABELS, 10.0 * ridge.value) if ridge.per_spread else FOR_LABELS, True)
    return (
        f"The chosen columns separate the classes without an error on the rows of the fit: {held}, "
        f"and their size says little. A ridge of {larger.given} stabilizes them and the choice; "
        "judge by held-out rows."
    )


LEAST = 1e-15
"""Smallest probability in a log loss, so that one wrong row does not make it infinite."""


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
