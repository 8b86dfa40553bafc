"""Record of what is known of a point, and the test whether another one is better."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.problem.problem import Problem
from blockl0.result import Status

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

TOL = 1e-8
"""Relative decrease of the objective that counts as an improvement."""
ROUNDING = 1e-13
"""Decrease, relative to the objective at zero, that may be rounding alone."""
PERFECT = 1e-12
"""Share of the objective at zero below which a fit is perfect: less is rounding."""
SURE = 0.95
"""Confidence level of a sampled certificate."""
TELLING_GAP = 0.5
"""Relative gap above which a lower bound is not worth mentioning."""


def slack(objective: float, at_zero: float, tol: float = TOL) -> float:
    """Compute by how much an objective must be lower than this one to be better."""
    return tol * objective + ROUNDING * at_zero


class Better(NamedTuple):
    """A feasible point with a lower objective, and the columns that show it."""

    block: tuple[int, ...]
    coef: Floats
    objective: float


class PointUnderTest:
    """A point with its units, including kept ones, its objective, and the slack of comparisons."""

    problem: Problem
    w: Floats
    tol: float

    def __init__(self, problem: Problem, w: Floats, tol: float = TOL) -> None:
        self.problem, self.w, self.tol = problem, w, tol
        self.objective: float = problem.objective(w)
        self.members: Indices = problem.occupied(w)
        self.slack: float = slack(self.objective, problem.smooth(problem.zero()), tol)

    def confirm(self, block: NDArray[np.integer], z: Floats) -> Better | None:
        """Return the better point if it is better on the data by more than the slack."""
        objective = self.problem.objective(z)
        if not objective < self.objective - self.slack:
            return None
        return Better(tuple(sorted(int(j) for j in block)), z, objective)

    def on(self, problem: Problem, better: Better | None) -> tuple[PointUnderTest, Better | None]:
        """Re-evaluate the point and its improvement on the full data.

        An improvement that vanishes there was rounding error.
        """
        if problem is self.problem:
            return self, better
        there = PointUnderTest(problem, self.w, self.tol)
        return there, None if better is None else there.confirm(np.array(better.block), better.coef)


def is_better(objective: float, than: float, at_zero: float, tol: float = TOL) -> bool:
    """Check if an objective is lower than another by more than tolerance and rounding."""
    return bool(objective < than - slack(than, at_zero, tol))


def is_perfect(objective: float, at_zero: float) -> bool:
    """Check if an objective is zero up to rounding, so that nothing is better."""
    return objective <= PERFECT * at_zero


def objective_at_zero(problem: Any) -> float:
    """Compute the objective without any column, the scale of rounding."""
    return float(problem.objective(problem.zero()))


class Choice(NamedTuple):
    """Size of the choice: at most `budget` of `n_features` columns, some of them kept.

    With a ridge, what is compared is the loss and its penalty. At a `price`, groups pay for their
    coefficients; fewer groups may then be better than more.
    """

    n_chosen: int
    budget: int
    n_features: int
    n_kept: int = 0
    has_ridge: bool = False
    price: float = 0.0

    @property
    def n_free(self) -> int:
        """Number of columns open to choice."""
        return self.budget - self.n_kept

    @property
    def is_given(self) -> bool:
        """Whether there was nothing to choose."""
        return self.n_free == 0 or (self.budget >= self.n_features and not self.price)

    def is_settled_by(self, n_exchanges: int) -> bool:
        """Check if every other choice of this size is within so many exchanges."""
        n_absent = self.n_free if self.price else self.n_features - self.budget
        return min(self.n_free, n_absent) <= n_exchanges


@dataclass(frozen=True)
class ProofStatus:
    """Record of what is known of a point.

    Attributes
    ----------
    kind : "all", "optimal", "pairs", "swaps", "single", "tried", "refuted" or "none"
        Nothing to choose; best of all subsets; no exchange of two columns, or of one, helps; no
        addition or removal; exchanges tried one by one; a better point is known; searched only.
    gap : float or None
        Bound on the relative decrease by any choice of the same size.
    n_tried, n_possible : int
        Exchanges of one column for another.
    gain : float
        The relative decrease of the better point.
    leave, enter : tuple of int
        The exchange that leads there.
    has_bound : bool
        Whether there is any bound on all choices together, which may need a ridge.
    n_close : int
        Choices one exchange away that are nearly as good, if counted.
    left_out : tuple of int, or None
        Columns that nearly depend on each other; the optimum is not about choices with all of them.
        None if there was no time to look for them.
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
    left_out: tuple[int, ...] | None = ()

    @property
    def is_optimal(self) -> bool:
        """Whether no choice is better."""
        return self.kind in ("all", "optimal")

    @property
    def is_complete(self) -> bool:
        """Whether everything that the kind covers was examined."""
        if self.kind == "tried":
            return self.n_tried == self.n_possible
        return self.kind not in ("none", "refuted")

    def bounded(self, gap: float | None) -> ProofStatus:
        """Add a gap if it is informative; a gap of zero makes the point optimal."""
        if gap == 0.0 and self.kind != "all":
            return replace(self, kind="optimal", gap=None)
        return replace(self, gap=gap if gap is not None and gap <= TELLING_GAP else None)

    def refuted(self, support: Any, objective: float, better: Any, there: float) -> ProofStatus:
        """Record that another point is better, given columns and objectives of both."""
        return replace(
            self,
            kind="refuted",
            gap=None,
            gain=1.0 - there / objective,
            leave=tuple(int(j) for j in np.setdiff1d(support, better)),
            enter=tuple(int(j) for j in np.setdiff1d(better, support)),
        )


def proof_of(status: Status, certificate: Any, choice: Choice) -> ProofStatus:
    """Derive what a search has proven from its status and certificate."""
    n_possible = (choice.n_chosen - choice.n_kept) * (choice.n_features - choice.n_chosen)
    if choice.is_given:
        return ProofStatus("all", n_possible=n_possible)
    if status is Status.OPTIMAL:
        return ProofStatus("optimal", n_possible=n_possible)
    if certificate is None or not certificate.holds:
        return ProofStatus("none", n_possible=n_possible)
    if certificate.level == 1:
        return ProofStatus("single", n_possible=n_possible)
    # with one column to choose or to leave out, every subset is one exchange away
    kind = "optimal" if choice.is_settled_by(1) else "swaps"
    return ProofStatus(kind, n_possible=n_possible)
