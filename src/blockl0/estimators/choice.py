"""Rule "paired_se": the strongest ridge, and the fewest columns, that predict as well as the best.

Scores of two models on the same folds vary together, so that their difference is known better than
either of them: the standard error is that of the difference. Means of folds are all it takes, so
that rows in memory, read in parts or summed up in moments have the same choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from blockl0.problem.factors import reduced
from blockl0.problem.fits import make_fits
from blockl0.problem.preprocess import Prepared, Ridge, standardized
from blockl0.selection import mean_scores

Floats = NDArray[np.float64]
Candidate = tuple[int, int]

NULL_ERRORS, RIDGE_ERRORS, SIZE_ERRORS = 1.0, 0.75, 0.5
"""Standard errors within which nothing is chosen, a ridge is as good as the best candidate, and a
smaller size as good as a larger one. Tuned on Hitters, Boston, the diabetes data with and without
products, and noise; `benchmarks/bench_rules.py` judges on other data."""
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
    def best(self) -> Candidate:
        """The candidate with the highest mean score."""
        ridge, point = np.unravel_index(np.argmax(self.mean), self.mean.shape)
        return int(ridge), int(point)

    def is_close(self, candidate: Candidate, best: Candidate, errors: float) -> bool:
        """Check if a candidate is at most so many standard errors of the difference worse."""
        return self._is_within(candidate, best, errors, self.scores[:, *candidate])

    @property
    def has_nothing(self) -> bool:
        """Check if the first point is within `NULL_ERRORS` of the best one without a ridge.

        That is in standard errors of the score of the best: of noise, some point is often better
        than none by more than the error of the difference.
        """
        return self._is_within((0, 0), (0, int(np.argmax(self.mean[0]))), NULL_ERRORS, 0.0)

    def _is_within(
        self, candidate: Candidate, best: Candidate, errors: float, beside: Floats | float
    ) -> bool:
        gap = self.mean[best] - self.mean[candidate]
        values = self.scores[:, *best] - beside
        values = values[np.isfinite(values)]
        if gap <= 0.0 or not np.isfinite(gap) or values.size < 2:
            return bool(gap <= 0.0)
        return bool(gap <= errors * values.std(ddof=1) / np.sqrt(values.size))


def choose_ridge(comparison: Comparison, has_null: bool) -> int:
    """Return the strongest ridge whose best point is as good as the best candidate.

    None, the first, if nothing is chosen. `has_null` is whether the first point of the path is the
    one without a free column.
    """
    best, mean = comparison.best, comparison.mean
    if has_null and comparison.has_nothing:
        return 0
    for ridge in range(len(mean) - 1, best[0], -1):
        if comparison.is_close((ridge, int(np.argmax(mean[ridge]))), best, RIDGE_ERRORS):
            return ridge
    return best[0]


def choose_size(
    comparison: Comparison, ridge: int, sizes: NDArray[np.int64], has_null: bool
) -> int:
    """Return the sparsest point that is as good as the best one with the same ridge."""
    if has_null and comparison.has_nothing:
        return 0
    top = ridge, int(np.argmax(comparison.mean[ridge]))
    close = [comparison.is_close((ridge, i), top, SIZE_ERRORS) for i in range(sizes.size)]
    return int(np.argmin(np.where(close, sizes, np.iinfo(np.int64).max)))
