"""Rule "paired_se": the ridge that predicts best, and the fewest columns that do as well.

Scores of two models on the same folds vary together, so that their difference is known better than
either of them: the standard error is that of the difference. Means of folds are all it takes, so
that rows in memory, read in parts or summed up in moments have the same choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from blockl0.losses import Loss
from blockl0.path import Path
from blockl0.problem.factors import reduced
from blockl0.problem.fits import make_fits
from blockl0.problem.preprocess import Prepared, Ridge, standardized
from blockl0.selection import evidence, mean_scores

Floats = NDArray[np.float64]

SIZE_ERRORS = 0.25
"""Standard errors of the difference within which a smaller size is as good as a larger one. Tuned
on Hitters, Boston, and the diabetes data with and without products; `benchmarks/bench_rules.py`
judges on other data."""
LEAST_EVIDENCE = 2.0
"""How far EBIC must fall below that of no column: more by chance in about 1 % of tables of noise.
"""
RIDGES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Ridges that folds compare beside none, for each row and on standardized columns."""


def ridge_of(at: int, prepared: Prepared) -> float | str:
    """Return a ridge that was compared, counted from one, as the parameter `ridge` of all rows."""
    return Ridge(float(f"{RIDGES[at - 1] * prepared.problem.total_weight:.4g}"), True).given


def refit(
    prepared: Prepared, supports: list[NDArray[np.int64]], ridges: Sequence[float]
) -> Iterator[tuple[Prepared, list[Floats]]]:
    """Yield the problem with each ridge, and the coefficients on the supports under it."""
    total = prepared.problem.total_weight
    unit = standardized(prepared, total) if ridges else prepared
    for ridge in ridges:
        shrunk = replace(unit, problem=replace(unit.problem, ridge=ridge * total))
        fits = make_fits(reduced(shrunk.problem))
        coefs = [shrunk.problem.to_given(fits.on(support).w) for support in supports]
        yield shrunk, coefs


def has_signal(path: Path, loss: Loss, n_rows: int, scores: Floats) -> bool:
    """Check if some point of a path on all rows explains more than chance, beside its first one.

    EBIC pays for the choice among C(p, k) subsets and is decided by all rows, where the scores of a
    few folds, (folds, p), vary so much that noise often seems to be predicted. It needs a
    likelihood that fits: counts may vary more than a Poisson distribution, and the squared hinge
    has none. There the best mean score must be more than one standard error above the first.
    """
    if loss.has_scale or loss.has_probabilities:
        return evidence(path, n_rows) > LEAST_EVIDENCE
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
