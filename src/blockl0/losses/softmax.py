"""The softmax loss of several classes, each with a predictor of its own.

Adding a number to the predictors of all classes changes nothing, so coefficients are written in
`contrasts`: C − 1 orthonormal directions that sum to zero over the classes. In these the Hessian in
a predictor, diag(p) − pp', is a sum over pairs of classes, p_c p_d times a square, in which nothing
cancels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from blockl0.losses.base import Loss, Words, plain_array, xlogy
from blockl0.validate import check_integer

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LISTED = 5
"""Values of a target that a message lists."""


@dataclass(frozen=True)
class Softmax(Loss):
    """log Σ_c exp(eta_c) − eta_y with y in {0, ..., C − 1}: multinomial logistic regression.

    The number of classes is that of the target, unless it is given.
    """

    n_classes: int | None = None
    name = "softmax"
    is_nonnegative = True
    takes_labels = True
    needs_ridge = True
    has_probabilities = True
    takes_bounds = False  # a number may be added to the coefficients of all classes
    words: ClassVar[Words] = Words("log loss", "share of the log loss explained", "accuracy")
    curvature_bound: ClassVar[float] = 0.5  # diag(p) − pp' ⪯ ½(I − 11'/C), by Böhning

    def __post_init__(self) -> None:
        if self.n_classes is not None:
            check_integer("n_classes", self.n_classes, low=2)

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        """Return the number of classes; 0 before it is known."""
        return self.n_classes or 0

    @property
    def n_directions(self) -> int:
        """Return one less than the classes: only differences matter."""
        return max(1, self.n_outputs - 1)

    def value(self, eta: Floats, y: Ints) -> Floats:  # type: ignore[override]
        """Return log Σ_c exp(eta_ic) − eta_iy per sample, (m,), accurate near zero."""
        rows = np.arange(y.size)
        above = eta - eta[rows, y][:, None]
        above[rows, y] = -np.inf
        top = np.maximum(above.max(axis=1), 0.0)
        others = np.exp(above - top[:, None]).sum(axis=1)
        # the own class is exp(−top), and one of the others is one where top > 0
        return top + np.log1p(np.where(top > 0.0, np.exp(-top) + (others - 1.0), others))

    def gradient(self, eta: Floats, y: Ints) -> Floats:  # type: ignore[override]
        """Return p − e_y, (m, C)."""
        return slope_at(self.mean(eta), y)

    def curvature(self, eta: Floats, y: Ints) -> Floats:  # type: ignore[override]
        """Return (1 − Σ_c p_c²)/(C − 1), (m,), the mean eigenvalue of diag(p) − pp'."""
        return (1.0 - np.sum(self.mean(eta) ** 2, axis=1)) / (eta.shape[1] - 1)

    def majorizer(self, eta: Floats, y: Ints) -> Floats:
        """Return Böhning's bound, (m,), on the curvature in any contrast of the classes."""
        return np.full(y.size, self.curvature_bound)

    def mean(self, eta: Floats) -> Floats:
        """Return exp(eta_ic) / Σ_d exp(eta_id), (m, C), without overflow: the probabilities."""
        P = np.exp(eta - eta.max(axis=1, keepdims=True))
        return P / P.sum(axis=1, keepdims=True)

    def conjugate(self, u: Floats, y: Ints) -> Floats:
        """Return Σ_c q_c log q_c with q = u + e_y, (m, ...); infinite outside the simplex.

        The classes are the second axis of u, and u sums to zero over them.
        """
        Q = u.copy()
        Q[np.arange(y.size), y] += 1.0
        return np.where((Q >= 0.0).all(axis=1), xlogy(Q, np.maximum(Q, 0.0)).sum(axis=1), np.inf)

    def check_target(self, y: Floats) -> Any:
        """Check codes 0, ..., C − 1 of two classes or more, all of them present."""
        seen = np.unique(y)
        n_classes = max(2, seen.size) if self.n_classes is None else self.n_classes
        if not np.array_equal(seen, np.arange(n_classes)):
            more = ", ..." if seen.size > LISTED else ""
            codes = "0, 1, ..., C - 1" if self.n_classes is None else f"0, ..., {n_classes - 1}"
            raise ValueError(
                f"loss={self.name!r} needs `y` to hold the class codes {codes}, each at least once "
                f"and at least two, got {', '.join(f'{code:g}' for code in seen[:LISTED])}{more}; "
                "np.unique(y, return_inverse=True)[1] are such codes."
            )
        return y.astype(np.int64)

    def probabilities(self, eta: Floats) -> Floats:
        """Return the probabilities of the classes, (m, C)."""
        return self.mean(eta)

    def for_target(self, y: Any) -> Softmax:
        """Return the loss of as many classes as the target has."""
        return Softmax(int(np.max(y)) + 1) if self.n_classes is None else self


def softmax_terms(eta: Floats, y: Ints) -> tuple[Floats, Floats, Floats]:
    """Return probabilities and slopes (m, C), each class contiguous, and losses (m,)."""
    from blockl0 import kernels  # only a search needs the compiler

    P, U, values = np.empty(eta.shape[::-1]), np.empty(eta.shape[::-1]), np.empty(y.size)
    kernels.softmax_terms(plain_array(eta.T), plain_array(y, np.int64), P, U, values)
    return P.T, U.T, values


def slope_and_bend(P: Floats, U: Floats, weights: Floats, change: Floats) -> tuple[float, float]:
    """Return slope and curvature of the loss along a change (m, C) of the predictors."""
    from blockl0 import kernels  # only a search needs the compiler

    return kernels.softmax_along(P.T, U.T, weights, np.ascontiguousarray(change.T))


def slope_at(P: Floats, y: Ints) -> Floats:
    """Return p − e_y, (m, C): where the own class is nearly certain, from the others."""
    U, rows = P.copy(), np.arange(y.size)
    U[rows, y] = 0.0
    U[rows, y] = -U.sum(axis=1)
    return U


@cache
def contrasts(n_classes: int) -> Floats:
    """Return (C, C − 1) orthonormal columns that sum to zero."""
    upper = np.triu(np.ones((n_classes, n_classes)), 1)[:, 1:]
    upper[np.arange(1, n_classes), np.arange(n_classes - 1)] = -np.arange(1.0, n_classes)
    return upper / np.linalg.norm(upper, axis=0)


@cache
def pair_squares(n_classes: int) -> tuple[list[int], list[int], Floats]:
    """Return both classes of every pair, and the squares ((C − 1)², pairs) of their contrasts."""
    Q, pairs = contrasts(n_classes), list(combinations(range(n_classes), 2))
    squares = [np.outer(Q[c] - Q[d], Q[c] - Q[d]).ravel() for c, d in pairs]
    return [c for c, _ in pairs], [d for _, d in pairs], np.column_stack(squares)


def class_pairs(P: Floats) -> list[tuple[Floats, Floats]]:
    """Return (p_c p_d (m,), contrast of c and d (C − 1,)) for each pair of classes; P is (m, C)."""
    Q = contrasts(P.shape[1])
    pairs = combinations(range(P.shape[1]), 2)
    return [(P[:, c] * P[:, d], Q[c] - Q[d]) for c, d in pairs]


def softmax_hessian(A: Floats, P: Floats, weights: Floats, ridge: Floats) -> Floats:
    """Return the Hessian in contrasts, (a (C − 1), a (C − 1)), by columns of A; P is (m, C)."""
    a, q = A.shape[1], P.shape[1] - 1
    firsts, seconds, squares = pair_squares(P.shape[1])
    grams = np.empty((len(firsts), a, a))
    for gram, c, d in zip(grams, firsts, seconds, strict=True):
        np.matmul(A.T * (weights * P[:, c] * P[:, d]), A, out=gram)
    H = (squares @ grams.reshape(len(firsts), a * a)).reshape(q, q, a, a)
    H = H.transpose(2, 0, 3, 1).reshape(a * q, a * q)
    H.flat[:: a * q + 1] += np.repeat(ridge, q)
    return H
