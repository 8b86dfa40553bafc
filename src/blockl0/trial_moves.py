"""Single changes of a support, tried on the true objective of a loss that is not quadratic.

A local model may misjudge a column: it is flat where the loss is about to bend, or steep where it
is about to flatten. So before a search through models ends, its likeliest additions, removals and
swaps are priced on the loss itself.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from blockl0.losses import Loss, majorizer_curvature
from blockl0.newton import minimize_on, newton_on
from blockl0.problem import Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEAVE, ENTER, REFIT = 6, 16, 3
"""Columns that may leave, columns that may enter for each, and entries that are re-fitted."""
LINE_STEPS = 4
"""Steps along a column, all others fixed, that tell the promising columns."""
LARGEST_STEP = 3.0
"""Of a predictor, where a loss has no curvature bound: e³ is a factor of twenty."""


class Trials:
    """The likeliest single changes of a support, on the true objective.

    A column that is to enter is ranked by its slope, then by the loss along it, all else fixed, and
    the first few are re-fitted with the rest of the support. O(LEAVE) passes over X for a point.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        ones = np.ones(problem.n_samples)
        self.weights = ones if problem.sample_weight is None else problem.sample_weight
        squares = problem.design.sq_norms(problem.sample_weight) + problem.ridge
        self.norms = np.sqrt(squares)

    def best(self, w: Floats, objective: float, tolerance: float) -> Floats | None:
        """The best of the changes of w that lowers the objective by more, else None."""
        best, lowest, price = None, objective - tolerance, self.problem.sparsity.price
        for start, support in self._changes(w):
            cost = price * support.size
            point, value = minimize_on(self.problem, start, support, target=lowest - cost)
            if value + cost < lowest:
                best, lowest = point, value + cost
        return best

    def _changes(self, w: Floats) -> Iterator[tuple[Floats, Ints]]:
        """Supports worth a re-fit, each with a point to start from."""
        support = np.flatnonzero(w)
        price, budget = self.problem.sparsity
        if support.size < budget:
            yield from self._additions(w, support)
        leaving = np.setdiff1d(support, self.problem.keep)
        for j in leaving[np.argsort(self._loss_without(w, leaving), kind="stable")[:LEAVE]]:
            rest = support[support != j]
            without = newton_on(self.problem, w, rest)
            if price > 0.0:
                yield without, rest
            yield from self._additions(without, rest, tabu=j)

    def _loss_without(self, w: Floats, columns: Ints) -> Floats:
        """The loss without each column, all else fixed."""
        without = (
            self.problem.predictor(w)[:, None] - self.problem.design.columns(columns) * w[columns]
        )
        return self.weights @ self.problem.loss.value(without, self.problem.y[:, None])

    def _additions(
        self, w: Floats, support: Ints, tabu: int | None = None
    ) -> Iterator[tuple[Floats, Ints]]:
        """Supports with one more column: those along which the loss falls most."""
        problem = self.problem
        eta = problem.predictor(w)
        slope = problem.design.rmatvec(self.weights * problem.loss.gradient(eta, problem.y))
        steepness = np.abs(slope) / np.where(self.norms > 0.0, self.norms, np.inf)
        steepness[support] = 0.0
        if tabu is not None:
            steepness[tabu] = 0.0
        entering = np.argsort(-steepness, kind="stable")[:ENTER]
        entering = entering[steepness[entering] > 0.0]
        steps, values = self._along(eta, entering)
        for i in np.argsort(values, kind="stable")[:REFIT]:
            point = w.copy()
            point[entering[i]] = steps[i]
            yield point, np.sort(np.append(support, entering[i]))

    def _along(self, eta: Floats, columns: Ints) -> tuple[Floats, Floats]:
        """Steps along single columns from the predictor eta, and the loss there."""
        loss, ridge = self.problem.loss, self.problem.ridge
        X, y, t = (
            self.problem.design.columns(columns),
            self.problem.y[:, None],
            np.zeros(columns.size),
        )
        for _ in range(LINE_STEPS):
            there = eta[:, None] + X * t
            slope = self.weights @ (loss.gradient(there, y) * X) + ridge * t
            bend = self.weights @ (safe_curvature(loss, there, y) * X**2) + ridge
            t = t - slope / np.where(bend > 0.0, bend, np.inf)
        return t, self.weights @ loss.value(eta[:, None] + X * t, y) + 0.5 * ridge * t**2


def safe_curvature(loss: Loss, eta: Floats, y: Floats) -> Floats:
    """Curvatures with which a step cannot overshoot, or not far where they have no bound."""
    if np.isfinite(loss.curvature_bound):
        return majorizer_curvature(loss, eta, y)
    return np.maximum(loss.curvature(eta, y), np.abs(loss.gradient(eta, y)) / LARGEST_STEP)
