"""Approximate fits without one column of a support, by a Newton step or two, for use in bounds.

Bounds on the gain of a column hold at any point of a support (`dual_bounds`), once the remaining
gain of that point is added. Where removing a column costs far more than any other column gains,
that remainder may be large, and the current fit, less the column, is close enough.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.losses.softmax import softmax_hessian
from blockl0.moves.dual_bounds import CHUNK_ENTRIES, FittedSupport, inverse_of
from blockl0.problem.descent import descend, start_of
from blockl0.problem.problem import Problem
from blockl0.problem.softmax_newton import SoftmaxPart
from blockl0.run import look

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROUGH, NEAR = 0.05, 0.1
"""Largest remaining gain of the point, as a share of the needed gain, and largest change of
predictors from the fit, in units of the loss.
"""
MOST = 0.75
"""Share of columns whose removal must be expensive for the points to be worth a pass."""
MOST_STEPS, MIXED_STEPS = 3, 2
"""Newton steps towards a fit, and for several classes, whose steps are not tested in between."""


def rough_bases(
    problem: Problem, w: Floats, support: Ints, leaving: Ints, predictor: Any, ceiling: float
) -> list[FittedSupport]:
    """Refit approximately after removing one column, for columns whose removal is expensive.

    Returns nothing unless most columns are: cheap ones gain about as much as noise columns.

    Parameters
    ----------
    problem : Problem
        Without a price.
    w : ndarray (n,) or (n, C)
        The fit on the support.
    support, leaving : ndarray of int64
        Ascending; the columns of the point, and those to remove one at a time.
    predictor : (ndarray, float or ndarray)
        The predictor of w, and its intercept.
    ceiling : float
        Objective that a better point must be below.
    """
    if w.ndim == 2:
        return _rough_mixtures(problem, w, support, leaving, predictor, ceiling)
    rough = Rough(problem, w, support, *predictor)
    if rough.K is None:
        return []
    is_missed = rough.is_missed(leaving)
    if np.count_nonzero(is_missed) < MOST * leaving.size:
        return []
    leaving = leaving[is_missed]
    step, bases = max(1, CHUNK_ENTRIES // problem.n_samples), []
    for some in (leaving[i : i + step] for i in range(0, leaving.size, step)):
        bases += rough.without(some, ceiling)
    return bases


class Rough:
    """The fit on a support, and the steps towards those without one of its columns."""

    def __init__(
        self, problem: Problem, w: Floats, support: Ints, eta: Floats, intercept: float
    ) -> None:
        self.problem, self.support, self.n_free = problem, support, int(problem.has_intercept)
        self.A, self.ridge = problem.free_columns(support)
        self.v = np.concatenate([[intercept], w[support]]) if self.n_free else w[support]
        self.unit = float(getattr(problem.loss, "unit", 1.0))
        _, slopes, bends = problem.loss.terms(eta, problem.y)
        self.K = inverse_of(self._hessian(bends))
        weighted = problem.weights * slopes
        squares, bend = float(weighted @ weighted), float(problem.weights @ bends)
        self.chance = by_chance(problem, squares, bend)

    def is_missed(self, leaving: Ints) -> NDArray[np.bool_]:
        """Check which columns are worth more than the best noise column, (k,)."""
        K: Any = self.K
        places = self.n_free + np.searchsorted(self.support, leaving)
        return 0.5 * self.v[places] ** 2 / K[places, places] > self.chance

    def _hessian(self, bends: Floats) -> Floats:
        H = (self.A * (self.problem.weights * bends)[:, None]).T @ self.A
        H.flat[:: self.ridge.size + 1] += self.ridge
        return H

    def without(self, leaving: Ints, ceiling: float) -> list[FittedSupport]:
        """Return points without each of some columns."""
        K: Any = self.K
        places = self.n_free + np.searchsorted(self.support, leaving)
        V = self.v[:, None] - K[:, places] * (self.v[places] / K[places, places])
        V[places, np.arange(places.size)] = 0.0
        known = values, rests, bends, eta, slopes = self._at(V)
        inverses = [self._inverse_without(K, q) for q in places]
        for _ in range(MOST_STEPS):
            look()
            steps = np.column_stack([K_q @ r for K_q, r in zip(inverses, rests.T, strict=True)])
            gains = 0.5 * np.einsum("ij,ij->j", rests, steps)
            # near the fit in predictors, where bounds have their reach, and in value
            far = np.abs(steps.T @ self.A.T).max(axis=1) > NEAR * self.unit
            far = np.flatnonzero(far | (gains > ROUGH * (values - ceiling)))
            if far.size == 0:
                break
            for i in far:
                # the curvatures of the point itself, or of the fit if those have no inverse
                own = inverse_of(self._hessian(bends[:, i]))
                if own is not None:
                    inverses[i] = self._inverse_without(own, places[i])
            moved = V[:, far] - np.column_stack([inverses[i] @ rests[:, i] for i in far])
            found = self._at(moved)
            # steps are not searched along: one that raises the value is not made, and ends there
            is_lower = found[0] < values[far]
            far = far[is_lower]
            V[:, far] = moved[:, is_lower]
            for old, new in zip(known, found, strict=True):
                old[..., far] = new[..., is_lower]
        needed, sums = values - ceiling, self.problem.weights @ bends
        bases = []
        for i, j in enumerate(leaving):
            w, there = self.problem.zero(), self.support[self.support != j]
            w[self.support] = V[self.n_free :, i]
            bases.append(FittedSupport(
                there, w, float(V[0, i]) if self.n_free else 0.0, float(values[i]), eta[:, i],
                float(needed[i]), int(j), slopes[:, i], float(sums[i]),
            ))  # fmt: skip
        return bases

    def _inverse_without(self, K: Floats, q: int) -> Floats:
        """Return the inverse without one coordinate, whose row and column become zero."""
        K = K - np.outer(K[q], K[q]) / K[q, q]
        K[q] = K[:, q] = 0.0
        return K

    def _at(self, V: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Evaluate values (k,), slopes (p, k), and curvatures, predictors and slopes of samples (m,
        k).
        """
        problem, k = self.problem, V.shape[1]
        eta = (V.T @ self.A.T).T
        terms = problem.loss.terms(eta.ravel(order="F"), np.tile(problem.y, k))
        # copies: points that move are overwritten, and a loss may return its own arrays
        values, slopes, bends = (np.array(t).reshape(eta.shape, order="F") for t in terms)
        ridged = 0.5 * (self.ridge @ V**2)
        rests = (slopes.T * problem.weights @ self.A).T + self.ridge[:, None] * V
        return problem.weights @ values + ridged, rests, bends, eta, slopes


def by_chance(problem: Problem, squares: float, bend: float) -> float:
    """Estimate the gain of the best noise column from the squares of the slopes."""
    return float(np.log(problem.n_features) * squares / bend) if bend > 0.0 else np.inf


def _rough_mixtures(
    problem: Problem, w: Floats, support: Ints, leaving: Ints, predictor: Any, ceiling: float
) -> list[FittedSupport]:
    """Return the same points for several classes."""
    loss: Any = problem.loss
    (A, ridge), (eta, intercept) = problem.free_columns(support), predictor
    n_free, v = int(problem.has_intercept), w[support]
    v = np.vstack([intercept, v]) if n_free else v
    part = SoftmaxPart(loss, A, problem.y, problem.weights, ridge)  # type: ignore[arg-type]
    V, q = part.enter(v), part.Q.shape[1]
    K = inverse_of(softmax_hessian(part.A, loss.mean(eta), problem.weights, part.ridge[:, 0]))
    bases: list[FittedSupport] = []
    if K is None:
        return bases
    slopes = (problem.weights * loss.gradient(eta, problem.y).T).ravel()
    bend = q * float(problem.weights @ loss.curvature(eta, problem.y))
    chance = by_chance(problem, float(slopes @ slopes), bend) * q
    for j in leaving:
        place = n_free + int(np.searchsorted(support, j))
        own, rest = slice(place * q, (place + 1) * q), np.arange(len(V)) != place
        # columns worth less than noise are left to fits, as bounds of noise columns fail there
        pull = np.linalg.solve(K[own, own], V[place])
        if not 0.5 * float(pull @ V[place]) > chance:
            continue
        start = V - (K[:, own] @ pull).reshape(V.shape)
        less: Any = SoftmaxPart(loss, A[:, rest], problem.y, problem.weights, ridge[rest])  # type: ignore[arg-type]
        less.at_zero = problem.loss_at_zero
        first = start_of(less, start[rest])
        found = less.begin(first, np.inf, MIXED_STEPS)
        found = descend(less, first, np.inf, MIXED_STEPS) if found is None else found
        coefficients, there = less.leave(found.v), support[support != j]
        point = problem.zero()
        point[there] = coefficients[n_free:]
        free = coefficients[0] if n_free else np.zeros(w.shape[1])
        eta, needed = less.predictor(found.v), found.value - ceiling
        bases.append(FittedSupport(there, point, free, found.value, eta, needed, int(j)))
    return bases
