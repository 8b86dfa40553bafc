"""The softmax loss in its predictors, and its minimizer on given columns by Newton's method."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockl0.newton import ROUNDING

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_STEPS, STEP_TOLERANCE, DAMPING = 100, 1e-12, 1e-10
"""Newton steps, the share of the objective that ends them, and what is added to the Hessian."""
FLATTEST = 1e-4
"""Curvature of unit columns below which damping does not fall any more."""
DAMPINGS = (0.0, *10.0 ** np.arange(-9.0, 3.0))
"""What is added to the Hessian of unit columns until a step lowers the objective."""


def softmax_loss(eta: Floats, y: Ints) -> Floats:
    """log Σ_c exp(eta_ic) − eta_iy per sample, (m,)."""
    return _loss_and_probabilities(eta.T, y)[0]


def probabilities(eta: Floats) -> Floats:
    """exp(eta_ic) / Σ_d exp(eta_id), (m, C), without overflow."""
    P = np.exp(eta - eta.max(axis=1, keepdims=True))
    return P / P.sum(axis=1, keepdims=True)


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

    Damped where it must be, so it never ends above its start; O(m a² C²) a step. Rows sum to zero.
    On separable data without ridge the minimizer is at infinity; the steps are bounded in number.
    It ends early where even twice the decrease that a step promises leaves it above the ceiling.
    """
    n_classes = start.shape[1]
    if A.shape[1] == 0:
        return start
    # unit columns: damping must not depend on the user's units
    scale = np.sqrt(weights @ A**2)
    scale[scale == 0.0] = 1.0
    A, V, ridge = A / scale, start * scale[:, None], ridge / scale**2
    offset = np.transpose(offset)

    def evaluate(V: Floats) -> tuple[float, Floats]:
        losses, P = _loss_and_probabilities(offset + V.T @ A.T, y)
        return float(weights @ losses + 0.5 * np.sum(ridge[:, None] * V**2)), P

    def solve(H: Floats, slope: Floats) -> Floats:
        step = -np.linalg.solve(H, slope.T.ravel()).reshape(n_classes, -1).T
        return step - step.mean(axis=1, keepdims=True)

    here, P = evaluate(V)
    at_zero = evaluate(0.0 * V)[0]
    for _ in range(MAX_STEPS):
        H = softmax_hessian(A, P, weights, ridge)
        P[y, np.arange(y.size)] -= 1.0
        slope = ((P * weights) @ A).T + ridge[:, None] * V
        step = solve(H, slope)
        promised = -float(np.sum(slope * step))
        size = max(here, 0.01 * at_zero)
        if promised <= STEP_TOLERANCE * size:
            # known already, it doubles the digits of V, where those of the value are exhausted
            V = V + step if evaluate(V + step)[0] <= here + ROUNDING * size else V
            break
        if here - promised > ceiling:
            break
        # where all probabilities are 0 or 1 there is no curvature, and a Newton step has no length;
        # with the whole bound in its place a step never fails
        for damping in DAMPINGS:
            if damping > 0.0:
                step = solve(H + damping * np.eye(len(H)), slope)
            there, P_there = evaluate(V + step)
            if is_better := there < here:
                V, here, P = V + step, there, P_there
                break
        if not is_better:
            break
    V = V - V.mean(axis=1, keepdims=True)
    return V / scale[:, None]


def softmax_hessian(A: Floats, P: Floats, weights: Floats, ridge: Floats) -> Floats:
    """Blocks A' diag(w p_c (δ_cd − p_d)) A + ridge, made definite along equal shifts of classes.

    P is (C, m); the result (Ca, Ca).
    """
    n_classes, a = len(P), A.shape[1]
    rooted = (np.sqrt(weights) * P)[:, None, :] * A.T
    rooted = rooted.reshape(n_classes * a, -1)
    H = -(rooted @ rooted.T)
    for c, bend in enumerate(weights * P):
        H[c * a : (c + 1) * a, c * a : (c + 1) * a] += (A.T * bend) @ A
    # of unit columns: where all is flat, rounding must not make it indefinite
    largest = max(float(H.diagonal().max()), FLATTEST)
    # no gradient points along 1 ⊗ v, so what is added there changes no step
    diagonals = np.arange(a)
    H.reshape(n_classes, a, n_classes, a)[:, diagonals, :, diagonals] += largest / n_classes
    H.flat[:: H.shape[0] + 1] += np.tile(ridge, n_classes) + DAMPING * largest
    return H


def _loss_and_probabilities(eta: Floats, y: Ints) -> tuple[Floats, Floats]:
    """Losses (m,) and probabilities (C, m) at predictors (C, m): rows are long, so it is quick."""
    shifted = eta - eta.max(axis=0)
    P = np.exp(shifted)
    total = P.sum(axis=0)
    P /= total
    return np.log(total) - shifted[y, np.arange(y.size)], P
