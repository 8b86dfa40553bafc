"""The softmax loss in its predictors, and its minimizer on given columns by Newton's method.

Adding a number to the coefficients of all classes changes nothing, so coefficients are written in
`contrasts`: C − 1 orthonormal directions that sum to zero over the classes. In these the Hessian in
a predictor, diag(p) − pp', is a sum over pairs of classes, p_c p_d times a square, in which nothing
cancels.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from blockl0.descent import (
    FAR,
    MAX_STEPS,
    ROUNDING,
    TOLERANCE,
    newton_direction,
    search_length,
    weighted_total,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def softmax_loss(eta: Floats, y: Ints) -> Floats:
    """log Σ_c exp(eta_ic) − eta_iy per sample, (m,), also where it is next to nothing."""
    rows = np.arange(y.size)
    above = eta - eta[rows, y][:, None]
    above[rows, y] = -np.inf
    top = np.maximum(above.max(axis=1), 0.0)
    others = np.exp(above - top[:, None]).sum(axis=1)
    # the own class is exp(−top), and one of the others is one where top > 0
    return top + np.log1p(np.where(top > 0.0, np.exp(-top) + (others - 1.0), others))


def probabilities(eta: Floats) -> Floats:
    """exp(eta_ic) / Σ_d exp(eta_id), (m, C), without overflow."""
    P = np.exp(eta - eta.max(axis=1, keepdims=True))
    return P / P.sum(axis=1, keepdims=True)


def softmax_slope(P: Floats, y: Ints) -> Floats:
    """p − e_y, (m, C): where the own class is nearly certain, from the others."""
    U, rows = P.copy(), np.arange(y.size)
    U[rows, y] = 0.0
    U[rows, y] = -U.sum(axis=1)
    return U


def softmax_conjugate(U: Floats, y: Ints) -> Floats:
    """Σ_c q_c log q_c with q = u + e_y, (m, ...); infinite where q is not in the simplex.

    The classes are the second axis of U, and u sums to zero over them.
    """
    Q = U.copy()
    Q[np.arange(y.size), y] += 1.0
    return np.where((Q >= 0.0).all(axis=1), xlogy(Q, np.maximum(Q, 0.0)).sum(axis=1), np.inf)


@cache
def contrasts(n_classes: int) -> Floats:
    """(C, C − 1) orthonormal columns that sum to zero."""
    upper = np.triu(np.ones((n_classes, n_classes)), 1)[:, 1:]
    upper[np.arange(1, n_classes), np.arange(n_classes - 1)] = -np.arange(1.0, n_classes)
    return upper / np.linalg.norm(upper, axis=0)


def class_pairs(P: Floats) -> list[tuple[Floats, Floats]]:
    """(p_c p_d (m,), contrast of c and d (C − 1,)) for each pair of classes; P is (m, C)."""
    Q = contrasts(P.shape[1])
    pairs = combinations(range(P.shape[1]), 2)
    return [(P[:, c] * P[:, d], Q[c] - Q[d]) for c, d in pairs]


def softmax_hessian(A: Floats, P: Floats, weights: Floats, ridge: Floats) -> Floats:
    """The Hessian in contrasts, (a (C − 1), a (C − 1)), column by column of A; P is (m, C)."""
    a, q = A.shape[1], P.shape[1] - 1
    pairs = class_pairs(P)
    grams = np.stack([(A * (weights * bends)[:, None]).T @ A for bends, _ in pairs])
    squares = np.stack([np.outer(contrast, contrast) for _, contrast in pairs])
    H = np.tensordot(grams, squares, (0, 0)).transpose(0, 2, 1, 3).reshape(a * q, a * q)
    H.flat[:: a * q + 1] += np.repeat(ridge, q)
    return H


def minimize_softmax(
    A: Floats,
    y: Ints,
    weights: Floats,
    ridge: Floats,
    start: Floats,
    offset: Floats | float = 0.0,
    ceiling: float = np.inf,
) -> Floats:
    """argmin_V of the softmax loss at offset + AV plus ½ Σ_j ridge_j‖V_j‖², (a, C), by Newton.

    It ends as `newton.minimize_on` does, never above its start; O(m a² C²) a step. Rows sum to
    zero.
    On separable data without ridge the minimizer is at infinity, and the loss is below 1e-13 of
    that at zero where it ends. It is given up once duality proves that it stays above the ceiling.
    """
    Q = contrasts(start.shape[1])
    if A.shape[1] == 0:
        return start
    part = Restricted(
        A, y, weights, ridge, Q, np.asfortranarray(np.zeros((len(A), len(Q))) + offset)
    )
    Z = (start @ Q) * part.scale[:, None]
    here, at_zero = part.value(Z), part.value(0.0 * Z)
    if not here <= at_zero:
        Z, here = 0.0 * Z, at_zero
    for _ in range(MAX_STEPS):
        P = probabilities(part.predictor(Z))
        slope, step = part.newton_step(Z, P)
        size, promised = max(here, 0.01 * at_zero), -float(np.sum(slope * step))
        if promised <= TOLERANCE * size:
            # known already, it doubles the digits of Z, where those of the value are exhausted
            Z = Z + step if part.value(Z + step) <= here + ROUNDING * size else Z
            break
        if np.isfinite(ceiling) and part.bound(Z, P, step) > ceiling:
            break
        length, lower = part.move(Z, step, here, -promised)
        if not lower < here:
            break
        Z, here = Z + length * step, lower
    return (Z / part.scale[:, None]) @ Q.T


class Restricted:
    """The softmax loss on some columns, in contrasts and in units of the columns' curvature."""

    def __init__(
        self, A: Floats, y: Ints, weights: Floats, ridge: Floats, Q: Floats, offset: Floats
    ) -> None:
        self.scale = np.sqrt(weights @ A**2 + ridge)
        self.scale[self.scale == 0.0] = 1.0
        self.A, self.ridge = A / self.scale, (ridge / self.scale**2)[:, None]
        self.y, self.weights, self.Q, self.offset = y, weights, Q, offset

    def predictor(self, Z: Floats) -> Floats:
        """offset + A Z Q', (m, C)."""
        return self.offset + self.classes(Z)

    def classes(self, Z: Floats) -> Floats:
        """A Z Q', (m, C), each class contiguous: sums over few classes are then quick."""
        return (self.Q @ (self.A @ Z).T).T

    def value(self, Z: Floats) -> float:
        """The objective."""
        losses = self.weights @ softmax_loss(self.predictor(Z), self.y)
        return float(losses + 0.5 * np.sum(self.ridge * Z**2))

    def newton_step(self, Z: Floats, P: Floats) -> tuple[Floats, Floats]:
        """(slope, step), (a, C − 1) each."""
        A, weights, ridge = self.A, self.weights, self.ridge
        dual = weights[:, None] * softmax_slope(P, self.y)
        slope = A.T @ dual @ self.Q + ridge * Z
        terms = np.abs(A).T @ np.abs(dual) @ np.abs(self.Q) + np.abs(ridge * Z)
        H = softmax_hessian(A, P, weights, ridge[:, 0])

        def rooted() -> Floats:
            rows = [
                np.einsum("ij,k->ijk", A * np.sqrt(weights * bends)[:, None], contrast)
                for bends, contrast in class_pairs(P)
            ]
            diagonal = np.diag(np.sqrt(np.repeat(ridge[:, 0], Z.shape[1])))
            return np.vstack([*(block.reshape(len(A), -1) for block in rows), diagonal])

        step = newton_direction(H, slope.ravel(), terms.ravel(), np.ones(Z.size), rooted)
        return slope, step.reshape(Z.shape)

    def move(self, Z: Floats, step: Floats, here: float, first: float) -> tuple[float, float]:
        """(length, value) of nearly the best length of a step."""
        eta, change = self.predictor(Z), self.classes(step)
        if not (first < 0.0 and np.isfinite(step).all()):
            return 0.0, here

        def look(length: float) -> tuple[float, float, float]:
            there, at = eta + length * change, Z + length * step
            P = probabilities(there)
            value = self.weights @ softmax_loss(there, self.y)
            slope = self.weights @ np.sum(softmax_slope(P, self.y) * change, axis=1)
            means = np.sum(P * change, axis=1, keepdims=True)
            bend = self.weights @ np.sum(P * (change - means) ** 2, axis=1)
            return (
                float(value + 0.5 * np.sum(self.ridge * at**2)),
                float(slope + np.sum(self.ridge * at * step)),
                float(bend + np.sum(self.ridge * step**2)),
            )

        return search_length(look, here, first)

    def bound(self, Z: Floats, P: Floats, step: Floats) -> float:
        """A value that the objective has nowhere on these columns, by duality; or −inf."""
        change = self.classes(step)
        # (diag(p) − pp') of the change, added to the slope, is feasible in the dual
        dual = softmax_slope(P, self.y) + P * (change - np.sum(P * change, axis=1, keepdims=True))
        own = np.sum(dual * self.offset, axis=1) - softmax_conjugate(dual, self.y)
        left = self.A.T @ (self.weights[:, None] * dual) @ self.Q + self.ridge * (Z + step)
        value = weighted_total(self.weights, own) - 0.5 * np.sum(self.ridge * (Z + step) ** 2)
        return float(value - FAR * np.sum(np.abs(left) * np.abs(Z + step)))
