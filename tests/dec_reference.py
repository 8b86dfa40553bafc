"""The specification of method "dec": slow, obvious, plain NumPy, and the squared loss only.

Everything is evaluated from F(w) = ½‖y − Xw‖² + ½·ridge·‖w‖² + price·‖w‖₀ itself: no gradient is
carried along, nothing is remembered between iterations, and a block is solved by trying all 2^k
supports. The compiled engine must produce the same points, iteration by iteration. This is "dec"
with its defaults, `greedy` "split" or "ranked"; what is to the letter of the paper has a reference
of its own in the tests.
"""

from __future__ import annotations

import re
from itertools import chain, combinations, cycle
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blockl0.dec.working_set import draw_distinct

Floats = NDArray[np.float64]

STRICTLY = 1e-13
"""Relative decrease from which a block counts as improved; the rounding of F itself."""


def dec_reference(
    X: ArrayLike,
    y: ArrayLike,
    *,
    n_nonzero_coefs: int | None = None,
    alpha: float | None = None,
    ridge: float = 0.0,
    working_set: str = "R3G2",
    theta: float = 1e-3,
    tol: float = 1e-5,
    window: int = 50,
    max_iter: int = 1000,
    greedy: str = "split",
    init: ArrayLike | None = None,
    random_state: Any = None,
) -> list[Floats]:
    """Algorithm 1 as it is written; return w after 0, 1, 2, … iterations. O(2^k) solves each.

    Random numbers are drawn as the compiled engine draws them: n standard normal ones for the start
    (none when `init` is given), then per RiGj block one `draw_distinct` of i positions among the
    coordinates that the greedy part left over.
    """
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    n, rng = X.shape[1], np.random.default_rng(random_state)
    price = alpha or 0.0
    theta *= min(1.0, float((X**2).sum(axis=0).max() + ridge))
    budget = n if n_nonzero_coefs is None else n_nonzero_coefs

    def F(w: Floats) -> float:
        smooth = 0.5 * np.sum((y - X @ w) ** 2) + 0.5 * ridge * np.sum(w**2)
        return float(smooth + price * np.count_nonzero(w))

    w = 1e-7 * rng.standard_normal(n) if init is None else np.array(init, dtype=np.float64)
    w[np.argsort(-np.abs(w), kind="stable")[budget:]] = 0.0
    if match := re.fullmatch(r"cyclic(\d*)", working_set):
        size = min(int(match[1] or 2), n)
        blocks, window = cycle(combinations(range(n), size)), max(window, comb(n, size))
    else:
        i, j = map(int, re.fullmatch(r"R(\d+)G(\d+)", working_set).groups())  # type: ignore[union-attr]
        blocks = None

    trajectory, decreases = [w], []
    while len(trajectory) <= max_iter:
        if blocks is not None:
            block = np.array(next(blocks))
        else:
            block = _greedy(F, X, y, w, ridge, j, greedy)
            rest = np.setdiff1d(np.arange(n), block)
            drawn = draw_distinct(rng, rest.size, i)
            block = np.sort(np.concatenate([block, rest[drawn]]))
        before = F(w)
        w = _solve_block(F, X, y, w, block, ridge, theta, budget)
        trajectory.append(w)
        decreases.append((before - F(w)) / before if before else 0.0)
        if len(decreases) >= window and np.mean(decreases[-window:]) <= tol:
            break
    return trajectory


def _greedy(
    F: Any, X: Floats, y: Floats, w: Floats, ridge: float, j: int, greedy: str
) -> NDArray[np.int64]:
    """The j coordinates whose own move lowers F most: by c for the zeros, by d for the support."""
    unit = np.eye(w.size)
    score = np.zeros(w.size)
    for i in range(w.size):
        step = -w[i]
        if w[i] == 0.0:
            curvature = X[:, i] @ X[:, i] + ridge
            step = X[:, i] @ (y - X @ w) / curvature if curvature > 0.0 else 0.0
        score[i] = F(w + step * unit[i]) - F(w)
    order = np.argsort(score, kind="stable")
    if greedy == "ranked":
        return order[:j]
    zeros, support = order[w[order] == 0.0], order[w[order] != 0.0]
    n_zeros = min(j - min(j // 2, support.size), zeros.size)
    return np.concatenate([zeros[:n_zeros], support[: j - n_zeros]])


def _solve_block(
    F: Any, X: Floats, y: Floats, w: Floats, block: Any, ridge: float, theta: float, budget: int
) -> Floats:
    """argmin of F(v) + ½θ‖v − w‖² over v that equal w outside the block; w itself unless beaten."""
    outside = w.copy()
    outside[block] = 0.0
    room = min(len(block), budget - np.count_nonzero(outside))
    best, best_value = w, F(w) - STRICTLY * abs(F(w))
    for S in chain.from_iterable(combinations(block, size) for size in range(room + 1)):
        v, A = outside.copy(), X[:, S]
        H = A.T @ A + (ridge + theta) * np.eye(len(S))
        v[list(S)] = np.linalg.solve(H, A.T @ (y - X @ outside) + theta * w[list(S)])
        value = F(v) + 0.5 * theta * np.sum((v - w) ** 2)
        if value < best_value:
            best, best_value = v, value
    return best
