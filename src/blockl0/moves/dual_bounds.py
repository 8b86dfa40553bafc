"""Excluding columns that cannot improve a fit, by duality: lower bounds on re-fitted losses.

Let u be the slopes of the loss at the fit on columns B, and D numbers with ℓ*(u + Dz) ≤ ℓ*(u) +
eta·Dz + ½Dz² for |z| ≤ reach (`dual_curvature`). The quadratic model with curvatures D has a
minimum on B and one more column i, reached by a change z of the predictors. If
|z| ≤ reach, u + Dz is feasible in the dual of the loss on B + i, and its value is at least the
minimum of the model: so the model bounds the re-fitted loss from below, and adding i gains at most
g_i²/2M_i, where M_i is the part of the squared norm of i not explained by B. A bound for D holds
for smaller curvatures, too: with the elementwise minimum of D over several sets B, one pass over X
bounds the gains of every column for all of them.

The dual needs a step along which i becomes orthogonal to the slopes, but not necessarily a step
along i: z may use c = min(max(i, −r), r) instead of i, at the cost of g_i²·M_cc/2M_ic². A few large
entries of a column, which would leave the reach, then do not matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.data.design import Design
from blockl0.lazy import lazy
from blockl0.moves.tableau import clear_inverse
from blockl0.problem.descent import FAR, weighted_total
from blockl0.problem.problem import Problem
from blockl0.run import look

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

REACHES = (2.0, 0.5)
"""Reaches of the passes: changes of a predictor, in units of the loss, for which a bound holds."""
CLOSE_REACH = 0.1
"""Reach for single columns; dual points may leave it as long as they are feasible."""
NEARLY = 0.6
"""Share of the needed gain above which the model's gain is tested on the loss itself."""
CHORDS = 4
"""Newton steps of a re-fit with one more column, all with the curvatures of the base.

Each step gives a value, and a dual point that bounds all values from below.
"""
CLOSELY = 60
"""Cost of the conjugates of a column's dual point, in multiplications per sample."""
LEAST_PIVOT = 1e-8
"""Share of a squared norm below which a column counts as dependent, and is not excluded."""
ALIKE, TOGETHER = 0.7, 16
"""Fits in one pass: minimum curvature relative to their mean, and largest number."""
CHANCES, CLIPPED = 0.7, 2.0
"""Fits of unlike curvature share a pass if noise columns gain at most this share of the needed
gain.

CLIPPED is the length of a clipped column's step, in units of its own, with a margin.
"""
ROUGH, NEAR = 0.05, 0.1
"""Largest remaining gain of a rough point, as a share of the needed gain, and largest change of
predictors from the fit, in units of the loss.
"""
MISSED = 0.75
"""Share of columns whose removal must be expensive for rough points to be worth a pass."""
ROUGH_STEPS = 3
"""Newton steps from a point without one column towards its fit."""
CHUNK_ENTRIES = 1 << 18
"""Entries of columns to examine closely at a time."""
ROUNDING = 1e-6
"""Relative error of a gain whose pivot has lost eight digits, with a margin."""


@dataclass(eq=False)
class FittedSupport:
    """A fit on some columns, and the gain that one more column needs.

    The needed gain is relative to the point under test. The predictor `eta` includes the intercept;
    `left` is the column removed from the support of that point, −1 for none; `slope` is the slope
    of the loss at eta, and `bend` the sum of its curvatures, if known. `curvatures` are those that
    bound the loss within a reach, by reach, as far as computed.
    """

    support: Ints
    w: Floats
    intercept: Any
    value: float
    eta: Floats
    needed: float
    left: int
    slope: Floats | None = None
    bend: float = 0.0
    curvatures: dict[float, Floats] = field(default_factory=dict, repr=False)


class Passed(NamedTuple):
    """A base, the columns that passes over X leave to try, and the least cost of the others.

    That is an estimate, by the model of the loss, of what the cheapest change costs.
    """

    base: FittedSupport
    columns: Ints
    cheapest_change: float


class DualBounds:
    """Exclusion of columns, for a loss with a `conjugate` and a `dual_curvature`."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.loss = problem, problem.loss
        self.weights = problem.weights
        self.unit = float(getattr(self.loss, "unit", 1.0))
        self.is_known = hasattr(self.loss, "conjugate") and hasattr(self.loss, "dual_curvature")

    @lazy
    def largest(self) -> Floats:
        """The largest absolute entry of every column, (n,)."""
        return largest_entries(self.problem.design)

    def is_rough_worth(self, support: Ints) -> bool:
        """Decide if approximate fits are worth a pass: one pass serves many of them."""
        return self.is_known

    def pass_cost(self, support: Ints, n_bases: int) -> float:
        """Count the multiplications of a pass over X for some bases."""
        return self.problem.design.nbytes / 8 * (support.size + 1 + n_bases)

    def closer_cost(self, support: Ints) -> float:
        """Count the multiplications of a closer look at one column."""
        return float(self.problem.n_samples * (support.size + CLOSELY))

    def groups(self, bases: list[FittedSupport]) -> Iterator[list[FittedSupport]]:
        """Group fits whose curvatures are similar, so that their minimum bounds all of them
        tightly.

        A group is also kept if its minimum is large enough to exclude pure-noise columns.
        """
        group: list[FittedSupport] = []
        least, total, largest = np.zeros(0), 0.0, 0.0
        for base in sorted(bases, key=lambda base: base.needed):
            own = self._curvature(base, REACHES[0] * self.unit)
            both, sums = np.minimum(least, own) if group else own, total + float(own.sum())
            slopes = self.weights * self._slope(base)
            most, bend = max(largest, float(slopes @ slopes)), float(both.sum())
            is_unlike = bool(group) and bend * (len(group) + 1) < ALIKE * sums
            if is_unlike and self._is_enough(bend, most, group[0].needed):
                is_unlike = False
            if is_unlike or len(group) == TOGETHER:
                yield from self._released(group)
                group, both, sums, most = [], own, float(own.sum()), float(slopes @ slopes)
            group, least, total, largest = [*group, base], both, sums, most
        if group:
            yield from self._released(group)

    def _released(self, group: list[FittedSupport]) -> Iterator[list[FittedSupport]]:
        """Yield a group, and drop its curvatures once its pass is over."""
        yield group
        for base in group:
            base.curvatures.clear()

    def _is_enough(self, bend: float, squares: float, needed: float) -> bool:
        """Check if curvatures of this sum exclude the best of all noise columns.

        Given the squares of the slopes, such a column gains about log n times their ratio.
        """
        if bend <= 0.0:
            return False
        gain = by_chance(self.problem, squares, bend)
        step, is_small = np.sqrt(2.0 * gain / bend), gain <= CHANCES * needed
        return bool(is_small and CLIPPED * step <= REACHES[0] * self.unit)

    def candidates(self, support: Ints, bases: list[FittedSupport]) -> list[Passed]:
        """Find, for each base, the columns outside the support that passes over X do not exclude.

        A base is the support, possibly less one column. Passes with decreasing reach continue as
        long as they cost less than a close look at the remaining columns; each takes O(mns), plus
        O(n) per base. Zero columns are left out.
        """
        outside = self.largest > 0.0
        outside[support] = False
        cheapest = np.inf
        left = np.tile(outside, (len(bases), 1))
        if self.is_known:
            a_pass = outside.size * (support.size + 1 + len(bases))
            for reach in REACHES:
                if np.count_nonzero(left) * (support.size + 1 + CLOSELY) <= a_pass:
                    break
                shared = self._share(support, bases, reach * self.unit)
                if shared is None:
                    continue
                for part in self.problem.design.parts():
                    look()
                    is_out, least = shared.excluded(part, self.largest[part], left[:, part])
                    left[:, part] &= ~is_out
                    cheapest = min(cheapest, least)
        return [
            Passed(base, np.flatnonzero(row), cheapest)
            for base, row in zip(bases, left, strict=True)
        ]

    def _share(self, support: Ints, bases: list[FittedSupport], reach: float) -> SharedModel | None:
        """Build the model with the minimum curvatures of some bases."""
        A, ridge = self.problem.free_columns(support)
        look()
        h = np.minimum.reduce([self._curvature(base, reach) for base in bases])
        K = _inverse(A, h, ridge)
        if K is None:
            return None
        slopes = [self._slope(base) * self.weights for base in bases]
        n_free = int(self.problem.has_intercept)
        rests, places = [], []
        for slope, base in zip(slopes, bases, strict=True):
            # the slopes at a fit are tiny, but not zero
            rests.append(A.T @ slope + ridge * self._coefficients(base, support))
            place = -1 if base.left < 0 else n_free + int(np.searchsorted(support, base.left))
            places.append(place)
        needed = np.array([base.needed for base in bases])
        bends = [base.bend for base in bases]
        return SharedModel(self.problem, A, h, K, reach, slopes, rests, places, needed, bends)

    def rough_bases(
        self, w: Floats, support: Ints, leaving: Ints, predictor: Any, ceiling: float
    ) -> list[FittedSupport]:
        """Refit approximately after removing one column, for columns whose removal is expensive.

        Return nothing unless most columns are: cheap ones gain about as much as noise columns.

        Parameters
        ----------
        w : ndarray (n,)
            The fit on the support, of a problem without a price.
        support, leaving : ndarray of int64
            Ascending; the columns of the point, and those to remove one at a time.
        predictor : (ndarray, float)
            The predictor of w, and its intercept.
        ceiling : float
            Objective that a better point must be below.
        """
        rough = RoughFits(self.problem, w, support, *predictor)
        if rough.K is None:
            return []
        is_missed = rough.is_missed(leaving)
        if np.count_nonzero(is_missed) < MISSED * leaving.size:
            return []
        leaving = leaving[is_missed]
        step, bases = max(1, CHUNK_ENTRIES // self.problem.n_samples), []
        for some in (leaving[i : i + step] for i in range(0, leaving.size, step)):
            bases += rough.without(some, ceiling)
        return bases

    def roughly(self, support: Ints, bases: list[FittedSupport]) -> list[Passed]:
        """Find `candidates` of rough points, by a pass for each group."""
        return [passed for some in self.groups(bases) for passed in self.candidates(support, some)]

    def model_at(self, base: FittedSupport) -> ColumnModel | None:
        """Return the model for single columns at a base; None if it excludes nothing."""
        if not self.is_known:
            return None
        h = self._curvature(base, CLOSE_REACH * self.unit)
        A, ridge = self.problem.free_columns(base.support)
        K = _inverse(A, h, ridge)
        if K is None:
            return None
        v = self._coefficients(base, base.support)
        return ColumnModel(self.problem, base, A, ridge, v, h, K)

    def _curvature(self, base: FittedSupport, reach: float) -> Floats:
        """Return the curvatures of a base within a reach, computed once."""
        if not self.is_known:
            return np.zeros(self.problem.n_samples)
        if reach not in base.curvatures:
            # a loss may lack it, which `is_known` says
            own: Any = self.loss
            bends = own.dual_curvature(base.eta, self.problem.y, reach)
            base.curvatures[reach] = self.weights * bends
        return base.curvatures[reach]

    def _slope(self, base: FittedSupport) -> Floats:
        """Return the slopes of the loss at a base, (m,)."""
        if base.slope is None:
            return self.loss.gradient(base.eta, self.problem.y)
        return base.slope

    def _coefficients(self, base: FittedSupport, support: Ints) -> Floats:
        v = base.w[support]
        return np.concatenate([[base.intercept], v]) if self.problem.has_intercept else v


class RoughFits:
    """The fit on a support, and points near those without one of its columns.

    Bounds on the gain of a column hold at any point of a support, once the remaining gain of that
    point is added. Where removing a column costs far more than any other column gains, that
    remainder may be large, and the current fit, less the column, and a Newton step or two, is close
    enough.
    """

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
        for _ in range(ROUGH_STEPS):
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


class SharedModel:
    """Model with curvatures h on columns A, shared by fits with and without one column.

    For each fit: its weighted slopes per sample, those of its coordinates, the coordinate it lacks
    (−1 for none), the gain a column needs, and the sum of its curvatures if known.
    """

    def __init__(
        self, problem: Problem, A: Floats, h: Floats, K: Floats, reach: float,
        slopes: list[Floats], rests: list[Floats], places: list[int], needed: Floats,
        bends: list[float],
    ) -> None:  # fmt: skip
        self.problem, self.A, self.K, self.reach, self.needed = problem, A, K, reach, needed
        self.h, self.total = h, float(h.sum()) or 1.0
        # gains under the curvatures of the loss itself are smaller by about this factor; that is
        # only an estimate, and used only for the cost of the cheapest change, not for a bound
        self.ratios = [min(1.0, self.total / bend) if bend > 0.0 else 1.0 for bend in bends]
        self.places, self.shifts, excess, self.shift_reach = places, [], [], []
        for rest, q in zip(rests, places, strict=True):
            shift = K @ rest
            if q >= 0:
                # without coordinate q: K less its part along q, applied to slopes without it
                rest = np.where(np.arange(rest.size) == q, 0.0, rest)
                shift = K @ rest - K[q] * (K[q] @ rest) / K[q, q]
            self.shifts.append(shift)
            excess.append(0.5 * float(rest @ shift))
            self.shift_reach.append(np.abs(A @ shift).max())
        self.excess = np.array(excess)
        # curvatures and slopes together: products with X are what a pass costs
        self.V = np.column_stack([A * h[:, None], *slopes])
        self.squares = problem.design.sq_norms(h) + problem.ridge
        self.longest = float(np.sqrt(np.einsum("ij,ij->i", A, A).max(initial=0.0)))
        self.removal_reach = [np.abs(A @ K[q]).max() / K[q, q] if q >= 0 else 0.0 for q in places]

    def excluded(self, part: slice, largest: Floats, tested: Bools) -> tuple[Bools, float]:
        """Find which columns of a part cannot reach the needed gain, (fits, c), and at what cost.

        Only columns marked in `tested` are tested. The cost is that of the cheapest one excluded.
        """
        p = self.A.shape[1]
        U, squares = self.problem.design.cross(self.V, part), self.squares[part]
        U, G = U[:p], U[p:]
        W = self.K @ U
        M = squares - np.einsum("ij,ij->j", U, W)
        is_small, steps, wider, rises = [], [], [], []
        for i, q in enumerate(self.places):
            pivots = M if q < 0 else M + W[q] ** 2 / self.K[q, q]
            # nothing is said of a column near the span of the base: its pivot is rounding
            is_free = pivots > LEAST_PIVOT * squares
            step = np.abs(G[i] - self.shifts[i] @ U) / np.where(is_free, pivots, 1.0)
            # a base that is no fit may gain its excess without the column, too
            gains = 0.5 * step**2 * pivots + self.excess[i]
            is_small.append(is_free & (gains <= (1.0 - ROUNDING) * self.needed[i]))
            steps.append(step)
            rises.append(self.needed[i] - self.ratios[i] * gains)
            wider.append(0.0 * M if q < 0 else self.removal_reach[i] * np.abs(W[q]))
        is_out, lengths = tested & np.array(is_small), np.array(steps)
        room = self.reach - np.array(self.shift_reach)[:, None] - lengths * np.array(wider)
        # a bound of the largest change of a predictor, by the longest row, without the columns
        is_near = lengths * (largest + self.longest * np.sqrt(np.einsum("ij,ij->j", W, W))) <= room
        # columns whose largest entries leave the reach: only these are read, and clipped
        unsure = np.flatnonzero(np.any(is_out & ~is_near, axis=0))
        chunk = max(1, CHUNK_ENTRIES // len(self.A))
        for some in (unsure[i : i + chunk] for i in range(0, unsure.size, chunk)):
            look()
            X, open_ = self.problem.design.columns(part.start + some), (is_out & ~is_near)[:, some]
            size = np.sqrt(np.maximum(M[some], 0.0) / self.total)
            is_near[:, some] |= self._clipped(
                X, size, U[:, some], W[:, some], G[:, some], squares[some], open_
            )
        is_out &= is_near
        return is_out, float(np.min(rises, initial=np.inf, where=is_out))

    def _clipped(
        self, X: Floats, size: Floats, U: Floats, W: Floats, G: Floats, squares: Floats,
        tested: Bools,
    ) -> Bools:  # fmt: skip
        """Check if clipped columns prove that no fit reaches the needed gain.

        Tests the marked columns, (fits, k); other parameters as in `excluded`.
        """
        # clipping the residual of X on A, column-major like X, stays closer to that residual
        C = X - (W.T @ self.A.T).T
        own, C = self.problem.ridge, np.minimum(np.maximum(C, -size, out=C), size, out=C)
        hC = C * self.h[:, None]
        U_c = self.A.T @ hC
        W_c = self.K @ U_c
        both = np.einsum("ij,ij->j", X, hC) + own - np.einsum("ij,ij->j", U, W_c)
        alone = np.einsum("ij,ij->j", C, hC) + own - np.einsum("ij,ij->j", U_c, W_c)
        width = size + self.longest * np.sqrt(np.einsum("ij,ij->j", W_c, W_c))
        is_small, steps, room = [], [], []
        for i, q in enumerate(self.places):
            pivots, lengths, wider = both, alone, 0.0
            if q >= 0:
                along = W_c[q] / self.K[q, q]
                pivots, lengths = both + W[q] * along, alone + W_c[q] * along
                wider = self.removal_reach[i] * np.abs(W_c[q])
            is_free = pivots > LEAST_PIVOT * squares
            step = np.abs(G[i] - self.shifts[i] @ U) / np.where(is_free, pivots, 1.0)
            gains = 0.5 * step**2 * lengths + self.excess[i]
            is_small.append(is_free & (gains <= (1.0 - ROUNDING) * self.needed[i]))
            steps.append(step)
            room.append(self.reach - self.shift_reach[i] - step * wider)
        is_out, lengths, rooms = tested & np.array(is_small), np.array(steps), np.array(room)
        unsure = np.flatnonzero(np.any(is_out & (lengths * width > rooms), axis=0))
        if unsure.size:
            # the bound by the longest row fails: compute the largest entry; column-major, like X
            left = C[:, unsure] - (W_c[:, unsure].T @ self.A.T).T
            width[unsure] = np.abs(left).max(axis=0)
        return is_out & (lengths * width <= rooms)


class ColumnModel:
    """Re-fits of a base with one more column each, by steps that share the base's curvatures h.

    With K = inv(A'hA + ridge), W = K A'hx and M = ‖x‖²_h − (A'hx)'W, the Newton step of slopes
    (r_A, r_x) is t = −(r_x − W'r_A)/M along x, and −K r_A − Wt along A. The slopes u of the loss at
    any predictors, plus h times the predictors of that step, are feasible in the dual.
    """

    def __init__(
        self, problem: Problem, base: FittedSupport, A: Floats, ridge: Floats, v: Floats, h: Floats,
        K: Floats,
    ) -> None:  # fmt: skip
        self.problem, self.base, self.A, self.ridge, self.v = problem, base, A, ridge, v
        self.loss: Any = problem.loss
        self.h, self.K, self.weights = h, K, problem.weights
        safe = np.where(self.weights > 0.0, self.weights, 1.0)
        # per unit of weight: samples without weight stay where they are
        self.bends = np.where(self.weights > 0.0, h / safe, 0.0)
        self.dual: Floats = self.loss.gradient(base.eta, problem.y)
        self.slopes = self.weights * self.dual

    def left(self, columns: Ints) -> Ints:
        """Return the columns not excluded by their own dual points; O(m(s + 1)) each.

        Those that certainly improve come first.
        """
        return improving_first(columns, *self.decide(columns))

    # chords of exponentials may leave the floats: nothing is decided of such a column
    @np.errstate(over="ignore", invalid="ignore")
    def decide(self, columns: Ints) -> tuple[Bools, Bools]:
        """Decide for each column if it certainly fails to improve the point, and if it improves,
        (k,).

        Stops at the first column that improves.
        """
        problem, weights, ridge = self.problem, self.weights[:, None], self.ridge[:, None]
        ceiling = self.base.value - self.base.needed
        X = problem.design.columns(columns)
        excluded, improving = np.zeros((2, columns.size), dtype=np.bool_)
        W, M, left = self._regress(X)
        X, eta, u = X[:, left], self.base.eta[:, None], self.dual[:, None]
        # all start from the base, where the new coefficient t is zero
        V, t, values = self.v[:, None] + 0.0 * W, 0.0 * M, 0.0 * M + self.base.value
        for chord in range(CHORDS):
            weighted = weights * u
            slopes, slope = self.A.T @ weighted + ridge * V, problem.ridge * t
            slope = slope + np.einsum("ij,ij->j", X, np.broadcast_to(weighted, X.shape))
            step = -(slope - np.einsum("ij,ij->j", W, slopes)) / M
            steps = -(self.K @ slopes) - W * step
            change = self.A @ steps + X * step
            V, t, eta = V + steps, t + step, eta + change
            # if the model gains nearly enough, the first dual point is too far from the loss
            sharp = np.flatnonzero((chord > 0) | (step**2 * M < 2.0 * NEARLY * self.base.needed))
            dual = (u + self.bends[:, None] * change)[:, sharp]
            lower = np.full(t.size, -np.inf)
            lower[sharp] = self._dual_values(dual, X[:, sharp], V[:, sharp], t[sharp])
            excluded[left] = is_out = lower >= -self.base.needed
            # a column whose value has met its bound is decided: it is the fit, and no better
            is_open = ~is_out & (values - self.base.value - lower > ROUNDING * self.base.needed)
            X, W, V, eta = X[:, is_open], W[:, is_open], V[:, is_open], eta[:, is_open]
            M, t, left = M[is_open], t[is_open], left[is_open]
            if chord == CHORDS - 1 or left.size == 0:
                break
            values, u = self._losses(eta)
            values = values + 0.5 * (self.ridge @ V**2 + problem.ridge * t**2)
            improving[left] = values < ceiling
            if improving.any():
                break
        return excluded, improving

    def _regress(self, X: Floats) -> tuple[Floats, Floats, Ints]:
        """Return (W, M) of columns independent of the base, and their positions."""
        hX = X * self.h[:, None]
        U, squares = self.A.T @ hX, np.einsum("ij,ij->j", X, hX) + self.problem.ridge
        W = self.K @ U
        M = squares - np.einsum("ij,ij->j", U, W)
        free = np.flatnonzero(M > LEAST_PIVOT * squares)
        return W[:, free], M[free], free

    def _losses(self, eta: Floats) -> tuple[Floats, Floats]:
        """Compute the losses (k,) and slopes (m, k) at predictors (m, k)."""
        m, k = eta.shape
        values, slopes, _ = self.loss.terms(eta.ravel(order="F"), np.tile(self.problem.y, k))
        return self.weights @ values.reshape((m, k), order="F"), slopes.reshape((m, k), order="F")

    def _dual_values(self, dual: Floats, X: Floats, V: Floats, t: Floats) -> Floats:
        """Compute lower bounds (k,) on the change, from dual points (m, k) at coefficients V (a,
        k), t.
        """
        weighted, own = self.weights[:, None] * dual, self.problem.ridge
        value = -weighted_total(self.weights, self.loss.conjugate(dual, self.problem.y[:, None]))
        value -= 0.5 * (self.ridge @ V**2 + own * t**2)
        # infeasibility left by rounding
        left = np.abs((self.A.T @ weighted + self.ridge[:, None] * V) * V).sum(axis=0)
        left += np.abs((np.einsum("ij,ij->j", X, weighted) + own * t) * t)
        return value - FAR * left - self.base.value


def by_chance(problem: Problem, squares: float, bend: float) -> float:
    """Estimate the gain of the best noise column from the squares of the slopes."""
    return float(np.log(problem.n_features) * squares / bend) if bend > 0.0 else np.inf


def improving_first(columns: Ints, excluded: Bools, improving: Bools) -> Ints:
    """Return the columns that are not excluded, those that certainly improve first."""
    return np.concatenate([columns[improving], columns[~(excluded | improving)]])


def _inverse(A: Floats, h: Floats, ridge: Floats) -> Floats | None:
    """Compute inv(A' diag(h) A + ridge), or None if the columns are nearly dependent."""
    H = (A * h[:, None]).T @ A
    H.flat[:: ridge.size + 1] += ridge
    return inverse_of(H)


def inverse_of(H: Floats) -> Floats | None:
    """Invert a Hessian, or return None if its columns are nearly dependent."""
    return clear_inverse(H, LEAST_PIVOT)


def largest_entries(design: Design) -> Floats:
    """Compute max_i |x_ij| of every column j, (n,), or slightly more; one pass over X."""
    low, high = design.ranges()
    return np.maximum(high, -low)
