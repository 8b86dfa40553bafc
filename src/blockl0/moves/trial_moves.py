"""Single changes of a support, tried on the true objective of a loss that is not quadratic.

A local model may misjudge a column: it is flat where the loss is about to bend, or steep where it
is about to flatten. So before a search through models ends, its likeliest additions, removals and
swaps are priced on the loss itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.losses import Loss, majorizer_curvature
from blockl0.problem.fits import Fits, make_fits
from blockl0.problem.newton import Fit
from blockl0.problem.problem import Problem
from blockl0.run import Run

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEAVE, ENTER, REFIT = 6, 16, 3
"""Columns that may leave, columns that may enter for each, and entries that are re-fitted."""
LEAVE_UNCHECKED = 2
"""Columns that may leave where no answer is to be checked."""
LINE_STEPS = 4
"""Steps along a column, all others fixed, that tell the promising columns."""
LARGEST_STEP = 3.0
"""Of a predictor, where a loss has no curvature bound: e³ is a factor of twenty."""


class Proposal(NamedTuple):
    """A support worth a re-fit, and a point with an intercept, if known, to start from."""

    support: Ints
    w: Floats
    intercept: Any = None


def best_fit(
    problem: Problem,
    fits: Fits,
    proposals: Iterator[Proposal],
    ceiling: float,
    run: Run | None = None,
) -> Fit | None:
    """Return the fit with the lowest objective below a ceiling; None if there is none.

    Of those that there is time for. The prices are those of the problem: fits are shared by others.
    """
    best = None
    for support, start, intercept in proposals:
        if run is not None and run.seconds_left <= 0.0:
            break
        cost = problem.cost(problem.units.of(support))
        fit = fits.on(support, start, ceiling - cost, intercept)
        if fit.value + cost < ceiling:
            best, ceiling = fit, fit.value + cost
    return best


class Trials:
    """The likeliest single changes of a support, on the true objective.

    A column that is to enter is ranked by its slope, then by the loss along it, all else fixed, and
    the first few are re-fitted with the rest of the support. O(LEAVE) passes over X for a point.
    """

    problem: Problem
    weights: Floats
    leave: int

    def __init__(self, problem: Problem, fits: Fits | None = None, leave: int = LEAVE) -> None:
        self.problem, self.weights, self.leave = problem, problem.weights, leave
        self.fits: Fits = make_fits(problem) if fits is None else fits
        squares = problem.design.sq_norms(problem.sample_weight) + problem.ridge
        self.norms: Floats = np.sqrt(squares)

    def changes(self, w: Floats) -> Iterator[Proposal]:
        """Supports worth a re-fit, each with a point and an intercept to start from."""
        support = np.flatnonzero(w)
        price, budget = self.problem.sparsity
        eta, intercept = self.fits.predictor(w)
        if support.size < budget:
            yield from self._additions(w, support, eta, intercept)
        leaving = np.setdiff1d(support, self.problem.keep)
        losses = self._loss_without(w, eta, leaving)
        for j in leaving[np.argsort(losses, kind="stable")[: self.leave]]:
            rest = support[support != j]
            without = self.fits.on(rest, w, intercept=intercept)
            if price > 0.0:
                yield Proposal(rest, without.w, without.intercept)
            there = self.problem.design.column_matvec(rest, without.w[rest]) + without.intercept
            yield from self._additions(without.w, rest, there, without.intercept, tabu=j)

    def _loss_without(self, w: Floats, eta: Floats, columns: Ints) -> Floats:
        """Return the loss without each column, all else fixed."""
        without = eta[:, None] - self.problem.design.columns(columns) * w[columns]
        return self.weights @ self.problem.loss.value(without, self.problem.y[:, None])

    def _additions(
        self, w: Floats, support: Ints, eta: Floats, intercept: float, tabu: int | None = None
    ) -> Iterator[Proposal]:
        """Supports with one more column: those along which the loss falls most."""
        problem = self.problem
        slope = problem.design.rmatvec(self.weights * problem.loss.gradient(eta, problem.y))
        steepness = np.abs(slope) / np.where(self.norms > 0.0, self.norms, np.inf)
        steepness[support] = 0.0
        if tabu is not None:
            steepness[tabu] = 0.0
        entering = np.argsort(-steepness, kind="stable")[:ENTER]
        entering = entering[steepness[entering] > 0.0]
        steps, values = self._along(eta, entering, slope[entering])
        for i in np.argsort(values, kind="stable")[:REFIT]:
            point = w.copy()
            point[entering[i]] = steps[i]
            yield Proposal(np.sort(np.append(support, entering[i])), point, intercept)

    def _along(self, eta: Floats, columns: Ints, slope: Floats) -> tuple[Floats, Floats]:
        """Step along single columns from the predictor eta; return the steps and the loss there.

        `slope` is that of the loss along each, at eta.
        """
        loss, ridge = self.problem.loss, self.problem.ridge
        X, y = self.problem.design.columns(columns), self.problem.y[:, None]
        squares = X**2
        bend = (self.weights * safe_curvature(loss, eta, self.problem.y)) @ squares + ridge
        t = -slope / np.where(bend > 0.0, bend, np.inf)
        for _ in range(LINE_STEPS - 1):
            there = eta[:, None] + X * t
            slope = self.weights @ (loss.gradient(there, y) * X) + ridge * t
            bend = self.weights @ (safe_curvature(loss, there, y) * squares) + ridge
            t = t - slope / np.where(bend > 0.0, bend, np.inf)
        return t, self.weights @ loss.value(eta[:, None] + X * t, y) + 0.5 * ridge * t**2


def safe_curvature(loss: Loss, eta: Floats, y: Floats) -> Floats:
    """Curvatures with which a step cannot overshoot, or not far where they have no bound."""
    if np.isfinite(loss.curvature_bound):
        return majorizer_curvature(loss, eta, y)
    return np.maximum(loss.curvature(eta, y), np.abs(loss.gradient(eta, y)) / LARGEST_STEP)
