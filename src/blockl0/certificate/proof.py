"""What is known of a point, whoever has found it out, and when another one is better."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from blockl0.result import Status

TOL = 1e-8
"""Relative decrease of the objective that counts as an improvement."""
ROUNDING = 1e-13
"""Decrease, relative to the objective at zero, that rounding alone can feign."""
PERFECT = 1e-12
"""Share of the objective at zero below which a fit is perfect: less is rounding."""
SURE = 0.95
"""Confidence level of a sampled certificate."""
TELLING_GAP = 0.5
"""A lower bound that is further away than this share of the objective says nothing."""


def slack(objective: float, at_zero: float, tol: float = TOL) -> float:
    """By how much another objective must be lower to be better than this one."""
    return tol * objective + ROUNDING * at_zero


def is_better(objective: float, than: float, at_zero: float, tol: float = TOL) -> bool:
    """Whether an objective is lower than another one by more than the tolerance and rounding."""
    return bool(objective < than - slack(than, at_zero, tol))


def is_perfect(objective: float, at_zero: float) -> bool:
    """Whether an objective is as good as zero, so that nothing is better."""
    return objective <= PERFECT * at_zero


def objective_at_zero(problem: Any) -> float:
    """The objective without any column, which rounding is measured by."""
    return float(problem.objective(problem.zero()))


class Choice(NamedTuple):
    """What there was to choose: at most `budget` of `n_features` columns, some of them kept.

    With a ridge, what is compared is the loss and its penalty.
    """

    n_chosen: int
    budget: int
    n_features: int
    n_kept: int = 0
    has_ridge: bool = False

    @property
    def n_free(self) -> int:
        """Columns that could be chosen."""
        return self.budget - self.n_kept

    @property
    def is_given(self) -> bool:
        """Whether there was nothing to choose."""
        return self.n_free == 0 or self.budget >= self.n_features

    def is_settled_by(self, n_exchanges: int) -> bool:
        """Whether any other choice of as many columns is so few exchanges away."""
        return min(self.n_free, self.n_features - self.budget) <= n_exchanges


@dataclass(frozen=True)
class Proof:
    """What is known of a point.

    Attributes
    ----------
    kind : "all", "optimal", "pairs", "swaps", "single", "tried", "refuted" or "none"
        Nothing to choose; best of all subsets; no exchange of two columns, or of one, helps; no
        addition or removal; exchanges tried one by one; something better is known; searched only.
    gap : float or None
        No choice of as many columns lowers the objective by a larger share.
    n_tried, n_possible : int
        Exchanges of one column for another.
    gain : float
        The share by which the better point is lower.
    leave, enter : tuple of int
        The exchange that leads there.
    has_bound : bool
        Whether all choices together can be bounded at all, which may need a ridge.
    n_close : int
        Choices one exchange away that are nearly as good, where they were counted.
    """

    kind: str
    gap: float | None = None
    n_tried: int = 0
    n_possible: int = 0
    gain: float = 0.0
    leave: tuple[int, ...] = ()
    enter: tuple[int, ...] = ()
    has_bound: bool = True
    n_close: int = 0

    @property
    def is_optimal(self) -> bool:
        """Whether no choice is better."""
        return self.kind in ("all", "optimal")

    @property
    def is_complete(self) -> bool:
        """Whether all was looked at that the kind is about."""
        if self.kind == "tried":
            return self.n_tried == self.n_possible
        return self.kind not in ("none", "refuted")

    def bounded(self, gap: float | None) -> Proof:
        """The same with a gap, where that is news; without any, the point is the best."""
        if gap == 0.0 and self.kind != "all":
            return replace(self, kind="optimal", gap=None)
        return replace(self, gap=gap if gap is not None and gap <= TELLING_GAP else None)

    def refuted(self, support: Any, objective: float, better: Any, there: float) -> Proof:
        """That another point is better; of both the columns and the objective."""
        return replace(
            self,
            kind="refuted",
            gap=None,
            gain=1.0 - there / objective,
            leave=tuple(int(j) for j in np.setdiff1d(support, better)),
            enter=tuple(int(j) for j in np.setdiff1d(better, support)),
        )


def proof_of(status: Status, certificate: Any, choice: Choice) -> Proof:
    """What a search has proven, by its status and its certificate."""
    n_possible = (choice.n_chosen - choice.n_kept) * (choice.n_features - choice.n_chosen)
    if choice.is_given:
        return Proof("all", n_possible=n_possible)
    if status is Status.OPTIMAL:
        return Proof("optimal", n_possible=n_possible)
    if certificate is None or not certificate.holds:
        return Proof("none", n_possible=n_possible)
    if certificate.level == 1:
        return Proof("single", n_possible=n_possible)
    # one column to choose, or one to leave out: then every subset is one exchange away
    kind = "optimal" if choice.is_settled_by(1) else "swaps"
    return Proof(kind, n_possible=n_possible)
