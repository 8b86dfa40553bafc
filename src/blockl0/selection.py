"""Choosing a point of a path: information criteria and cross-validation rules."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from blockl0.validate import check_choice

if TYPE_CHECKING:
    from blockl0.losses import Loss
    from blockl0.path import Path

Floats = NDArray[np.float64]

CRITERIA = ("aic", "bic", "ebic", "gic")
PAIRED = "paired_se"
"""The rule of `has_signal` and `Comparison`."""
RULES = ("min", "one_se", PAIRED)
"""Rules that need folds."""
PERFECT = 1e-14
"""Loss, as a share of the path's largest, below which a fit counts as perfect."""
SIZE_ERRORS = 0.25
"""Standard errors of the difference within which a smaller size is as good as a larger one. Tuned
on Hitters, Boston, and the diabetes data with and without products; `benchmarks/bench_rules.py`
judges on other data."""
LEAST_EVIDENCE = 2.0
"""How far EBIC must fall below that of no column: more by chance in 1 to 2 % of tables of noise.
"""


def information_criterion(name: str, path: Path) -> Floats:
    """Compute the criterion at every point of a path, (p,); formulas in `Path.criterion`."""
    check_choice("criterion", name, CRITERIA)
    n, p, k = max(path.n_samples, 2.0), path.n_units, path.n_coefficients
    loss = np.maximum(path.losses, PERFECT * max(float(path.losses.max()), np.finfo(float).tiny))
    n_numbers = n * path.n_responses
    deviance = n_numbers * np.log(2.0 * loss / n_numbers) if path.has_scale else 2.0 * path.losses
    penalty, is_wide = coefficient_penalty(name, n, p) * k, p >= n
    if name == "ebic" or is_wide:
        # choosing more than half of the columns is no easier to get by chance than half of them
        chosen = np.minimum(path.n_nonzero, p // 2)
        penalty = penalty + 2.0 * (gammaln(p + 1) - gammaln(chosen + 1) - gammaln(p - chosen + 1))
    if is_wide and path.has_scale:
        # in noise, n·log(loss) of the best of C(p, k) sets falls by about 2·log C(p, k)·n/(n - k)
        penalty = penalty * n_numbers / np.maximum(n_numbers - k - 1.0, 1.0)
    return deviance + penalty


def coefficient_penalty(name: str, n_samples: float, n_units: int) -> float:
    """Compute a criterion's penalty per coefficient, given the number of candidate units."""
    if name == "aic":
        return 2.0
    if name == "gic":
        return float(np.log(max(n_units, 2)) * np.log(np.log(max(n_samples, 3.0))))
    return float(np.log(n_samples))


def coefficient_prices(name: str, path: Path, losses: Floats) -> Floats:
    """Convert a criterion's penalty to a price per coefficient in units of the loss, (p,).

    The criterion is concave in the loss L of a loss with a scale: where a set of columns is best by
    it among those of a size, it is also best by L + price × coefficients, at the price for its L.
    """
    penalty = coefficient_penalty(name, max(path.n_samples, 2.0), path.n_units)
    penalty *= path.n_directions
    if not path.has_scale:
        return np.full(len(losses), 0.5 * penalty)
    return penalty * losses / (max(path.n_samples, 2.0) * path.n_responses)


def best_point(name: str, path: Path) -> int:
    """Return the point with the lowest criterion; the sparsest of equal ones, without
    interpolation.
    """
    values, judged = information_criterion(name, path), can_judge(path)
    if judged.any():
        values = np.where(judged, values, np.inf)
    return _sparsest_of(
        values <= values.min() + 1e-9 * (1.0 + np.abs(values.min())), path.n_nonzero
    )


def count_samples(n_rows: int, weights: Floats | None) -> float:
    """Return the samples that rows stand for: weights that are whole numbers count them."""
    if weights is None or not (weights == np.round(weights)).all():
        return float(n_rows)
    return float(weights.sum())


def evidence(path: Path, n_samples: float) -> float:
    """Compute by how much EBIC falls below that of the first point, at most along a path.

    Sample weights are scaled to sum to `n_samples`, as what varies by chance are samples.
    """
    per_sample = n_samples / path.n_samples
    scaled = replace(path, n_samples=float(n_samples), losses=path.losses * per_sample)
    values = information_criterion("ebic", scaled)
    return float(values[0] - values[can_judge(scaled)].min(initial=values[0]))


def can_judge(path: Path) -> NDArray[np.bool_]:
    """Check which points have at most half as many coefficients as samples, (p,).

    Beyond that a fit nearly interpolates, and the criteria fall without a limit.
    """
    n_numbers = path.n_samples * path.n_responses
    return path.n_coefficients <= np.minimum(0.5 * n_numbers, n_numbers - 2.0)


def choose_by_score(
    scores: Floats, n_nonzero: NDArray[np.int64], rule: str
) -> tuple[int, Floats, Floats]:
    """Return (chosen point, mean scores (p,), standard errors (p,)) from scores (folds, p).

    Higher is better. Folds and points without a finite score are ignored. "one_se" takes the
    sparsest point whose mean is within one standard error of the best.
    """
    check_choice("rule", rule, ("min", "one_se"))
    mean, error = mean_scores(scores)
    best = int(np.argmax(mean))
    slack = error[best] if rule == "one_se" else 1e-12 * (1.0 + abs(mean[best]))
    return _sparsest_of(mean >= mean[best] - slack, n_nonzero), mean, error


def mean_scores(scores: Floats) -> tuple[Floats, Floats]:
    """Return (means (p,), standard errors (p,)) of scores (folds, p), without those missing.

    The mean of a point that fewer folds have scored than others is minus infinity.
    """
    is_good = np.isfinite(scores)
    count = is_good.sum(axis=0)
    filled = np.where(is_good, scores, 0.0)
    mean = np.where(count > 0, filled.sum(axis=0) / np.maximum(count, 1), -np.inf)
    spread = np.where(is_good, scores - np.where(count > 0, mean, 0.0), 0.0)
    variance = (spread**2).sum(axis=0) / np.maximum(count - 1, 1)
    error = np.sqrt(variance / np.maximum(count, 1))
    # a point scored in some folds only must not win by easy folds
    mean = np.where(count == count.max(), mean, -np.inf)
    if not np.isfinite(mean).any():
        raise ValueError(
            "no point of the path has a finite score in any fold; check `scoring`, and that every "
            "fold leaves enough samples of every class."
        )
    return mean, error


def has_signal(path: Path, loss: Loss, n_samples: float, scores: Floats) -> bool:
    """Check if some point of a path on all rows explains more than chance, beside its first one.

    EBIC pays for the choice among C(p, k) subsets and is decided by all rows, where the scores of a
    few folds, (folds, p), vary so much that noise often seems to be predicted. It needs a
    likelihood that fits: counts may vary more than a Poisson distribution, and the squared hinge
    has none. There the best mean score must be more than one standard error above the first.
    """
    if loss.has_scale or loss.has_probabilities:
        return evidence(path, n_samples) > LEAST_EVIDENCE
    mean, error = mean_scores(scores)
    best = int(np.argmax(mean))
    return bool(mean[best] - mean[0] > error[best])


class Comparison:
    """Mean scores of candidates (ridge, point), and standard errors of their differences.

    Parameters
    ----------
    scores : ndarray (folds, ridges, p)
        The higher the better; NaN where a fold has none.
    """

    def __init__(self, scores: Floats) -> None:
        self.scores = scores
        flat = scores.reshape(len(scores), -1)
        self.mean = mean_scores(flat)[0].reshape(scores.shape[1:])

    @property
    def ridge(self) -> int:
        """The ridge whose best point has the highest mean score; the weakest of equal ones."""
        return int(np.argmax(self.mean.max(axis=1)))

    def point(self, ridge: int, sizes: NDArray[np.int64]) -> int:
        """Return the sparsest point as good as the best one with the same ridge."""
        top = int(np.argmax(self.mean[ridge]))
        close = [self._is_close(ridge, i, top) for i in range(sizes.size)]
        return int(np.argmin(np.where(close, sizes, np.iinfo(np.int64).max)))

    def _is_close(self, ridge: int, point: int, top: int) -> bool:
        """Check if a point is at most `SIZE_ERRORS` of the difference worse than the best."""
        gap = self.mean[ridge, top] - self.mean[ridge, point]
        worse = self.scores[:, ridge, top] - self.scores[:, ridge, point]
        worse = worse[np.isfinite(worse)]
        if gap <= 0.0 or not np.isfinite(gap) or worse.size < 2:
            return bool(gap <= 0.0)
        return bool(gap <= SIZE_ERRORS * worse.std(ddof=1) / np.sqrt(worse.size))


def readable_scores(model: Any) -> dict[str, tuple[Floats, Floats]]:
    """Convert cross-validation scores to readable ones: {name: (means (p,), standard errors (p,))}.

    "explained": the explained share of the loss, R² for the squared one; "accuracy" and "auc", for
    labels. Empty if the scores of `model` come from a scorer, or not from folds.
    """
    nulls = getattr(model, "cv_null_scores_", None)
    if nulls is None or not np.nanmean(nulls) < 0.0:
        return {}
    null = -float(np.nanmean(nulls))
    found = {"explained": (1.0 + model.mean_scores_ / null, model.se_scores_ / null)}
    for name, attribute in (("accuracy", "cv_accuracies_"), ("auc", "cv_aucs_")):
        scores = getattr(model, attribute, None)
        if scores is not None and np.isfinite(scores).any():
            sizes = np.zeros(scores.shape[1], dtype=np.int64)
            found[name] = choose_by_score(scores, sizes, "min")[1:]
    return found


def path_frame(path: Path) -> Any:
    """Build a pandas DataFrame with one row per point."""
    import pandas as pd

    names = path.feature_names
    columns: dict[str, Any] = {
        "n_nonzero_coefs": path.n_nonzero_coefs,
        "alpha": path.alphas,
        "n_nonzero": path.n_nonzero,
        "loss": path.losses,
        "objective": path.objective,
        **{name: information_criterion(name, path) for name in CRITERIA},
        "status": [str(result.status) for result in path],
        "support": [s.tolist() if names is None else [names[j] for j in s] for s in path.supports],
    }
    return pd.DataFrame(columns)


def _sparsest_of(candidates: NDArray[np.bool_], n_nonzero: NDArray[np.int64]) -> int:
    return int(np.argmin(np.where(candidates, n_nonzero, np.iinfo(np.int64).max)))
