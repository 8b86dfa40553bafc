"""Every single addition, removal and swap of a support, re-fitted on the true objective.

Models propose moves; this is the final check. Moves that cannot improve are excluded by lower
bounds, the others re-fitted until their bound or value decides. Of the squared loss the bounds come
from projections (`projected_tableau`), of other losses from duality (`dual_bounds`), column by
column; of units of several columns, or within bounds, all moves are then fitted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.lazy import lazy
from blockl0.moves.dual_bounds import CHUNK_ENTRIES, DualBounds, FittedSupport
from blockl0.moves.projected_tableau import ProjectedTableau
from blockl0.moves.softmax_bounds import SoftmaxBounds
from blockl0.moves.tableau import UnitRules
from blockl0.problem.fits import Fits
from blockl0.problem.problem import Problem
from blockl0.run import Run, look

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_WORK = 3e10
"""Multiplications before a check gives up, about ten seconds."""
FEW_CLOSE = 0.005
"""A verdict is clear if at most this share of the changes needed a closer look."""
STEPS = 4
"""Newton steps counted per re-fit: most end after one or two."""
AT_ONCE = 16
"""Re-fits per base made immediately; further ones wait."""
TOO_LONG = "the re-fits would take too long"
UNRESOLVED = (
    "some columns are nearly, and not wholly, combinations of others, and which of them a fit "
    "leaves out may make a difference"
)
"""Reasons for uncertainty: a check that was given up, and one that made all re-fits."""


class Verdict(NamedTuple):
    """A better point, or whether no single change improves.

    Attributes
    ----------
    better : ndarray or None
    is_complete : bool
        Whether it is certain that no single change improves.
    is_clear : bool
        Whether almost every change was excluded by a cheap pass.
    why : str
        Reason for an incomplete check, used in messages.
    cheapest_change : float
        Estimated cost of the cheapest change, if passes excluded all of them.
    n_tried : int
        Changes excluded or re-fitted.
    work : float
        Multiplications, approximately.
    """

    better: Floats | None
    is_complete: bool
    is_clear: bool = False
    why: str = TOO_LONG
    cheapest_change: float = 0.0
    n_tried: int = 0
    work: float = 0.0


class GivenUp(Exception):
    """A check that may spend no more work, re-fits or time."""


class CheckedPoint(NamedTuple):
    """A point under a check.

    `ceiling` is the objective that a better point must be below.
    """

    w: Floats
    units: Ints
    objective: float
    ceiling: float
    swaps: bool


class CheckCost:
    """Work, re-fits and findings of one check; raises `GivenUp` beyond its limits."""

    run: Run | None
    most_work: float
    refits_left: float
    work: float
    planned: float

    def __init__(self, run: Run | None, most_work: float, most_refits: float) -> None:
        self.run, self.most_work, self.refits_left = run, most_work, most_refits
        self.work = self.planned = 0.0
        # moves excluded or re-fitted, and those that needed a closer look
        self.n_tried = self.n_close = 0
        # estimated cost of the cheapest change excluded by a pass
        self.cheapest_change = np.inf
        # whether every fit made was the only possible one
        self.is_certain = True

    def spend(self, work: float = 0.0) -> None:
        """Count work before it is done."""
        look()
        self.work += work
        is_late = self.run is not None and self.run.seconds_left <= 0.0
        if is_late or self.work + self.planned > self.most_work or self.refits_left < 0:
            raise GivenUp

    def refit(self, work: float) -> None:
        """Count a re-fit before it is made."""
        self.spend()
        self.refits_left -= 1
        self.work += work


class MoveCheck:
    """The check of one problem, which keeps facts about columns between points.

    Parameters
    ----------
    problem : Problem
    fits : Fits
    most_work : float, optional
        Multiplications before a check gives up.
    """

    problem: Problem
    fits: Fits
    rules: UnitRules

    def __init__(self, problem: Problem, fits: Fits, most_work: float | None = None) -> None:
        self.problem, self.fits, self.rules = problem, fits, UnitRules.of(problem)
        self.most_work: float = MOST_WORK if most_work is None else most_work

    def check(
        self,
        w: Floats,
        objective: float,
        tolerance: float,
        run: Run | None = None,
        swaps: bool = True,
        most_refits: float = np.inf,
        units: Ints | None = None,
    ) -> Verdict:
        """Look for a single change of w that lowers the objective by more than the tolerance.

        With s units in the support, and a price or a used-up budget, these are (s + 1)(n − s) + s
        changes. With room and no price, a swap never beats the addition it contains. Without swaps
        they are n. The check gives up after `most_refits` re-fits that bounds did not spare. The
        support is that of w, unless `units` are given, of which w is the fit.
        """
        units = self.problem.occupied(w) if units is None else units
        point = CheckedPoint(w, units, objective, objective - tolerance, swaps)
        cost = CheckCost(run, self.most_work, most_refits)
        try:
            better = next(self._better(point, cost), None)
        except GivenUp:
            return Verdict(None, False, n_tried=cost.n_tried, work=cost.work)
        if better is not None:
            return Verdict(better, False, n_tried=cost.n_tried, work=cost.work)
        return self._verdict(point, cost, tolerance)

    def _better(self, point: CheckedPoint, cost: CheckCost) -> Iterator[Floats]:
        """Yield points below the ceiling."""
        raise NotImplementedError

    def _verdict(self, point: CheckedPoint, cost: CheckCost, tolerance: float) -> Verdict:
        """Say what is known if no move is better."""
        raise NotImplementedError

    def _refit_cost(self, n_columns: int) -> float:
        """Estimate the work of a re-fit with so many columns."""
        # directions in which the predictors of a sample can differ
        unknowns = float(n_columns * self.problem.loss.n_directions)
        return STEPS * (self.problem.n_samples + unknowns / 3.0) * unknowns**2


class UnitMoves(MoveCheck):
    """Changes of units: bounded by projections for the squared loss, for others all re-fitted.

    Parameters
    ----------
    problem, fits, most_work
        As in `MoveCheck`.
    entering : ndarray of int64, optional
        The units that may enter; all by default.
    """

    def __init__(
        self, problem: Problem, fits: Fits, most_work: float | None = None,
        entering: Ints | None = None,
    ) -> None:  # fmt: skip
        super().__init__(problem, fits, most_work)
        self.entering = entering

    @lazy
    def _projections(self) -> ProjectedTableau:
        """Projections of the columns, for the squared loss."""
        return ProjectedTableau(self.problem)

    def _better(self, point: CheckedPoint, cost: CheckCost) -> Iterator[Floats]:
        problem = self.problem
        cost.is_certain = self._is_certain(point.units, point.w, point.objective, point.ceiling)
        for after in self.suspects(point, cost):
            columns, price = problem.units.columns(after), problem.cost(after)
            cost.refit(self._refit_cost(columns.size))
            cost.n_close += 1
            fit = self.fits.minimum(columns, point.w, point.ceiling - price)
            # units that are zero within their bounds cost nothing, unless they are kept
            occupied = problem.occupied(fit.w)
            there = fit.value + problem.cost(occupied)
            if there < point.ceiling and problem.sparsity.allows(occupied.size):
                yield fit.w
            # once lost, certainty does not come back: what is left to find is a better point
            if cost.is_certain:
                cost.is_certain = self._is_certain(after, fit.w, there, point.ceiling)

    def _verdict(self, point: CheckedPoint, cost: CheckCost, tolerance: float) -> Verdict:
        is_clear = cost.is_certain and cost.n_close <= FEW_CLOSE * cost.n_tried
        return Verdict(
            None, cost.is_certain, is_clear, UNRESOLVED, n_tried=cost.n_tried, work=cost.work
        )

    def _is_certain(self, units: Ints, w: Floats, objective: float, ceiling: float) -> bool:
        """Check that no point on some units is below a ceiling, given their fit w.

        A fit leaves out columns that are nearly combinations of others; leaving out other ones may
        be better. Supports of single columns with such columns do not count.
        """
        if self.problem.is_plain:
            return True
        columns = self.problem.units.columns(units)
        doubt = self.fits.doubt(columns, w)
        if doubt == 0.0 or objective - doubt >= ceiling:
            return True
        return self.fits.least_on(columns) + self.problem.cost(units) >= ceiling

    def suspects(self, point: CheckedPoint, cost: CheckCost) -> Iterator[Ints]:
        """Yield the units after every move that bounds do not exclude."""
        if not self.problem.is_quadratic:
            yield from self.moves(point, cost)
            return
        columns = self.problem.units.columns(point.units)
        fit = self.fits.minimum(columns, point.w)
        self._projections.load(point.units, fit.w)
        changes = self._projections.changes(self.entering)
        limits = changes.lower_bounds(point.swaps)
        cost.n_tried = limits.size
        # the most promising ones first
        at = np.flatnonzero(limits < point.ceiling - fit.value - self.problem.cost(point.units))
        for i in at[np.argsort(limits[at], kind="stable")]:
            yield changes.after(int(i))

    def moves(self, point: CheckedPoint, cost: CheckCost) -> Iterator[Ints]:
        """Yield the units after every move, removals first."""
        units, problem = point.units, self.problem
        others = np.arange(problem.n_units) if self.entering is None else self.entering
        others = np.setdiff1d(others, units)
        has_room, leaving = self.rules.leaving(units)
        movable = units[leaving]
        if problem.sparsity.price > 0.0:
            for unit in movable:
                yield units[units != unit]
        bases = [units] if has_room else []
        if point.swaps:
            bases += [units[units != unit] for unit in movable]
        cost.n_tried = len(bases) * others.size + movable.size
        for base in bases:
            for unit in others:
                yield np.sort(np.append(base, unit))


class SingleMoves(MoveCheck):
    """Changes of single columns of a loss that is not quadratic, bounded by duality."""

    def __init__(self, problem: Problem, fits: Fits, most_work: float | None = None) -> None:
        super().__init__(problem, fits, most_work)
        kind = SoftmaxBounds if problem.n_outputs > 1 else DualBounds
        self.bounds: DualBounds | SoftmaxBounds = kind(problem)

    def _better(self, point: CheckedPoint, cost: CheckCost) -> Iterator[Floats]:
        bounds, price = self.bounds, self.problem.sparsity.price
        # postponed re-fits: if there are too many, not even the first is worth making
        later: list[tuple[FittedSupport, Ints]] = []
        bases = []
        for base, columns in self._bases(point, cost):
            # a removal alone may do: the support is smaller, and may cost less
            if base.left >= 0 and base.value + price * base.support.size < point.ceiling:
                yield base.w
            if columns is not None:
                yield from self._enter(base, columns, point.ceiling, cost, later)
            elif point.swaps or base.left < 0:
                bases.append(base)
        for some in bounds.groups(bases):
            cost.spend(bounds.pass_cost(point.units, len(some)))
            for base, columns, cheapest in bounds.candidates(point.units, some):
                cost.cheapest_change = min(cost.cheapest_change, cheapest)
                yield from self._enter(base, columns, point.ceiling, cost, later)
        cost.planned = 0.0
        for base, columns in later:
            yield from self._refit_all(base, columns, point.ceiling, cost)

    def _verdict(self, point: CheckedPoint, cost: CheckCost, tolerance: float) -> Verdict:
        has_room, leaving = self.rules.leaving(point.units)
        n_bases = int(has_room) + leaving.size
        n_changes = n_bases * (self.problem.n_features - point.units.size)
        least = 0.0 if cost.n_close else max(cost.cheapest_change - tolerance, 0.0)
        is_clear = cost.n_close <= FEW_CLOSE * n_changes
        return Verdict(None, True, is_clear, "", least, cost.n_tried, cost.work)

    def _bases(
        self, point: CheckedPoint, cost: CheckCost
    ) -> Iterator[tuple[FittedSupport, Ints | None]]:
        """Yield the support if it has room, then without each column, and what may enter.

        That is None where no pass has looked yet; a removal after which a shared pass over rough
        points excludes every entry is not fitted.
        """
        has_room, positions = self.rules.leaving(point.units)
        predictor, leaving = self.fits.predictor(point.w), point.units[positions]
        if has_room:
            yield self._base(point, point.units, -1, predictor[1]), None
        rough: dict[int, Ints] = {}
        is_full = not has_room and self.problem.sparsity.price == 0.0
        if point.swaps and is_full and self.bounds.is_rough_worth(point.units):
            cost.work += self.bounds.pass_cost(point.units, leaving.size)
            bases = self.bounds.rough_bases(point.w, point.units, leaving, predictor, point.ceiling)
            for base, some, cheapest in self.bounds.roughly(point.units, bases):
                cost.cheapest_change = min(cost.cheapest_change, cheapest)
                rough[base.left] = some
            n_others = self.problem.n_features - point.units.size
            cost.n_tried += n_others * sum(some.size == 0 for some in rough.values())
        for j in leaving:
            cost.spend()
            columns = rough.get(int(j))
            if columns is None or columns.size:
                rest = point.units[point.units != j]
                yield self._base(point, rest, int(j), predictor[1]), columns

    def _base(self, point: CheckedPoint, support: Ints, left: int, intercept: Any) -> FittedSupport:
        """Fit a support, and compute the gain that an entering column needs."""
        price = self.problem.sparsity.price
        # the intercept of w is about as good a start as the best one for fixed coefficients
        fit = self.fits.minimum(support, point.w, np.inf, intercept)
        eta = self.problem.linear_on(support, fit.w[support]) + fit.intercept
        needed = fit.value + price * (support.size + 1) - point.ceiling
        return FittedSupport(support, fit.w, fit.intercept, fit.value, eta, needed, left)

    def _enter(
        self, base: FittedSupport, columns: Ints, ceiling: float, cost: CheckCost,
        later: list[tuple[FittedSupport, Ints]],
    ) -> Iterator[Floats]:  # fmt: skip
        """Look closely for columns that improve a base."""
        model = self.bounds.model_at(base) if columns.size else None
        chunk = max(1, CHUNK_ENTRIES // (self.problem.n_samples * self.problem.n_outputs))
        for start in range(0, columns.size, chunk):
            some = columns[start : start + chunk]
            cost.n_close += some.size
            cost.spend(some.size * self.bounds.closer_cost(base.support))
            # those that certainly improve come first
            left = some if model is None else model.left(some)
            # with a limit of re-fits there are never many, and they are best made in order
            if np.isinf(cost.refits_left) and left.size > AT_ONCE:
                later.append((base, left[AT_ONCE:]))
                cost.planned += (left.size - AT_ONCE) * self._refit_cost(base.support.size + 1)
                left = left[:AT_ONCE]
            yield from self._refit_all(base, left, ceiling, cost)
        if base.left >= 0:
            cost.n_tried += self.problem.n_features - base.support.size - 1

    def _refit_all(
        self, base: FittedSupport, columns: Ints, ceiling: float, cost: CheckCost
    ) -> Iterator[Floats]:
        """Yield the fits with one more column that improve."""
        for i in columns:
            cost.refit(self._refit_cost(base.support.size + 1))
            better = self._refit(base, int(i), ceiling)
            if better is not None:
                yield better

    def _refit(self, base: FittedSupport, column: int, ceiling: float) -> Floats | None:
        """Fit with one more column; return the point if it improves."""
        there = np.sort(np.append(base.support, column))
        price = self.problem.sparsity.price * there.size
        fit = self.fits.on(there, base.w, ceiling - price, base.intercept)
        return fit.w if fit.value + price < ceiling else None
