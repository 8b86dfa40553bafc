"""Stability of the selection: repeated on random halves of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.estimators.binding import Data, rows_of
from blockl0.estimators.folds import Tell, each_fold
from blockl0.estimators.reading import lone_rows
from blockl0.path import solve_path
from blockl0.result import Status
from blockl0.search.local_search import FEW_ABOVE

Floats = NDArray[np.float64]
Supports = list[NDArray[np.int64]]

HALF_SAMPLES = 10
"""Number of half-samples: five shuffles with two halves each."""
FIRM = 0.8
"""Share of half-samples from which a column counts as firmly selected."""
LARGEST = 20_000_000
"""Entries of X up to which the selection is repeated by default."""


@dataclass(frozen=True, eq=False)
class ChosenAgain:
    """Columns selected by half-samples at every budget.

    Attributes
    ----------
    budgets : sequence of int
    supports : list of lists of ndarray
        For each half-sample that could be fitted, at the budgets that it reached.
    """

    budgets: Sequence[int]
    supports: list[Supports]

    @property
    def n_samples(self) -> int:
        """Number of half-samples that could be fitted."""
        return len(self.supports)

    def shares(self, budget: int, columns: NDArray[np.int64]) -> Floats | None:
        """Compute the share of half-samples that select each column; None without any."""
        at = list(self.budgets).index(budget)
        found = [supports[at] for supports in self.supports if at < len(supports)]
        if not found:
            return None
        return np.mean([np.isin(columns, support) for support in found], axis=0)


def default_half_samples(X: Any) -> int:
    """Return the default number of half-samples: ten, none for large data or moments."""
    if rows_of(X).has_target:
        return 0
    return HALF_SAMPLES if X.shape[0] * X.shape[1] <= LARGEST else 0


def half_samples(data: Data, n_samples: int, seed: int) -> list[NDArray[np.int64]]:
    """Draw the rows of complementary halves, two per shuffle, stratified by class.

    The only row of a class is in both halves, which could not be fitted without it.
    """
    rng, halves = np.random.default_rng(seed), []
    alone = lone_rows(data.y) if data.n_classes else np.empty(0, dtype=np.int64)
    while len(halves) < n_samples:
        rows = rng.permutation(len(data.y))
        if data.n_classes:
            rows = rows[np.argsort(data.y[rows], kind="stable")]
        halves += [np.union1d(rows[::2], alone), np.union1d(rows[1::2], alone)]
    return halves[:n_samples]


def chosen_again(
    est: Any,
    data: Data,
    budgets: Sequence[int],
    n_samples: int,
    seed: int,
    *,
    n_jobs: int | None = None,
    tell: Tell | None = None,
) -> ChosenAgain:
    """Repeat the selection of a fitted estimator on half-samples, for every budget.

    Every budget gets a fast search, without a price but that of coefficients, which learns at most
    from smaller budgets: a share depends only on data, budget, ridge and seed, whoever computes it.
    """
    jobs = [(est, data.to_fit(rows), budgets, seed) for rows in half_samples(data, n_samples, seed)]
    found = each_fold(_supports, jobs, n_jobs or 1, tell, "half-sample")
    return ChosenAgain(budgets, [supports for supports in found if supports is not None])


def _supports(est: Any, half: Data, budgets: Sequence[int], seed: int) -> Supports | None:
    """Select columns from one half at every budget that it reaches; None if it cannot be fitted."""
    if not half.can_train(est._loss()):
        return None
    problem = est._prepare(half, None, 0.0).problem
    steps = _all_up_to(problem, budgets)
    path = solve_path(
        problem, [(est._price_at(budget), budget) for budget in steps], random_state=seed,
        time_limit=est.time_limit, effort="fast", are_linked=False, is_checked=False,
    )  # fmt: skip
    if path[-1].status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    # a point that was cut short is none that the half chooses
    is_cut = path[-1].status not in (Status.CONVERGED, Status.OPTIMAL)
    found = dict(zip(steps, path.supports[: len(path) - is_cut], strict=False))
    if not found:
        return None
    # a group counts as selected even if a half lacks some of its levels
    whole = problem.units
    return [whole.columns(whole.of(found[int(b)])) for b in budgets if int(b) in found]


def _all_up_to(problem: Any, budgets: Sequence[int]) -> Sequence[int]:
    """Return the budgets to search so that none depends on which others are requested.

    With few columns and losses other than squared, a budget learns from the smaller ones: then
    these are all of them.
    """
    if problem.is_quadratic or problem.n_features > FEW_ABOVE:
        return [int(budget) for budget in budgets]
    return range(problem.keep.size, max(map(int, budgets)) + 1)
