"""Problems made to mislead, and their truth by enumeration with orthogonal factorizations.

Columns that nearly depend on each other, in every form the project claims something about. The
enumeration shares nothing with the package: each subset is orthogonalized by Gram-Schmidt, twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit

DEPENDENT = 1e-8
"""The package's definition: a unit column so close to the span of others depends on them."""
MARGIN = 1e-4
"""Relative width around it in which two right computations may disagree."""
ROUNDING = 16 * np.finfo(float).eps


@dataclass
class Hostile:
    """Arguments of `blockl0.solve`, and how they were made."""

    X: Any
    y: np.ndarray
    options: dict[str, Any]
    recipe: list[str] = field(default_factory=list)

    @property
    def dense(self):
        return self.X.toarray() if sp.issparse(self.X) else self.X


# making ------------------------------------------------------------------------------------------


def near(rng, low=-9.5, high=-3.0):
    return 10.0 ** rng.uniform(low, high)


def near_duplicate(rng, X):
    i, j = rng.integers(X.shape[1], size=2)
    X[:, i] = X[:, j] + near(rng) * np.linalg.norm(X[:, j]) * rng.standard_normal(len(X))


def duplicate(rng, X):
    i, j = rng.integers(X.shape[1], size=2)
    X[:, i] = rng.choice([-1.0, 1.0, 2.0, 1 / 3, 1e5]) * X[:, j]


def near_combination(rng, X):
    n = X.shape[1]
    i, others = rng.integers(n), rng.integers(n, size=min(n, rng.integers(2, 5)))
    X[:, i] = X[:, others] @ rng.standard_normal(len(others))
    X[:, i] += near(rng) * np.linalg.norm(X[:, i]) * rng.standard_normal(len(X))


def integer_combination(rng, X):
    n = X.shape[1]
    i, others = rng.integers(n), rng.integers(n, size=min(n, rng.integers(2, 5)))
    X[:, i] = X[:, others] @ rng.integers(-2, 3, len(others))


def one_hot(rng, X):
    m, n = X.shape
    levels = int(rng.integers(2, max(3, min(n, 5))))
    X[:, : min(n, levels)] = np.eye(levels)[rng.integers(levels, size=m)][:, :n]
    if n > levels:
        X[:, levels] = 1.0


def vandermonde(rng, X):
    m, n = X.shape
    t = rng.choice([0.0, 1.0, 10.0]) + np.sort(rng.uniform(0.0, 1.0, m))
    X[:] = np.vander(t, n, increasing=True)


def offsets(rng, X):
    X += 10.0 ** rng.uniform(0, 6) * rng.integers(0, 2, X.shape[1])


def scales(rng, X):
    X *= 10.0 ** rng.uniform(-8, 8, X.shape[1])


def low_rank(rng, X):
    m, n = X.shape
    rank = int(rng.integers(1, min(m, n) + 1))
    X[:] = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))
    X += near(rng, -9.5, -4) * rng.standard_normal((m, n))


def integers(rng, X):
    X[:] = rng.integers(-2, 3, X.shape)


def zero_column(rng, X):
    X[:, rng.integers(X.shape[1])] = 0.0


BASES = [integers, one_hot, vandermonde, low_rank]
TWISTS = [
    near_duplicate, near_duplicate, near_combination, near_combination, duplicate,
    integer_combination, offsets, scales, zero_column,
]  # fmt: skip


def make_target(rng, X, recipe):
    m, n = X.shape
    kind = rng.choice(["random", "fit", "nearly", "noisy"])
    recipe.append(f"y {kind}")
    if kind == "random":
        y = rng.standard_normal(m)
    else:
        chosen = rng.integers(n, size=min(n, rng.integers(1, 4)))
        lengths = np.linalg.norm(X[:, chosen], axis=0)
        y = X[:, chosen] / np.where(lengths > 0, lengths, 1.0) @ rng.standard_normal(len(chosen))
        noise = {"fit": 0.0, "nearly": 10.0 ** rng.uniform(-12, -3), "noisy": 1.0}[kind]
        y = y + noise * rng.standard_normal(m) / np.sqrt(m)
    return y * 10.0 ** rng.choice([0, 0, 0, -6, 6])


def make_hostile(seed: int, largest: int = 10, fewest: int = 1) -> Hostile:
    """The problem of a seed: at most `largest` columns and twice as many rows."""
    rng = np.random.default_rng([20261116, seed])
    n = int(rng.integers(fewest, largest + 1))
    m = int(rng.integers(1, 2 * largest + 1))
    X, recipe = rng.standard_normal((m, n)), []
    if rng.random() < 0.4:
        base = BASES[rng.integers(len(BASES))]
        base(rng, X)
        recipe.append(base.__name__)
    for _ in range(rng.integers(0, 4)):
        twist = TWISTS[rng.integers(len(TWISTS))]
        twist(rng, X)
        recipe.append(twist.__name__)
    y = make_target(rng, X, recipe)
    return Hostile(_stored(rng, X, recipe), y, _options(rng, X, y, recipe), recipe)


def _options(rng, X, y, recipe):
    m, n = X.shape
    options: dict[str, Any] = {}
    form = rng.choice(["budget", "price", "both"])
    half = 0.5 * float(y @ y)
    if form != "price":
        options["n_nonzero_coefs"] = int(rng.integers(0, n + 1))
    if form != "budget":
        options["alpha"] = float(half * 10.0 ** rng.uniform(-10, 0.3)) or 1.0
    if rng.random() < 0.4:
        largest = float((X**2).sum(axis=0).max())
        options["ridge"] = largest * 10.0 ** rng.uniform(-16, 2)
    if rng.random() < 0.2:
        options["sample_weight"] = rng.integers(0, 4, m) * rng.choice([1.0, 0.37]) + 0.0
        if not options["sample_weight"].any():
            options["sample_weight"][0] = 1.0
    budget = options.get("n_nonzero_coefs", n)
    if rng.random() < 0.2 and budget:
        options["keep"] = np.unique(rng.integers(n, size=min(budget, rng.integers(1, 4))))
    recipe.append(f"{m}x{n} {form} {sorted(set(options) - {'n_nonzero_coefs', 'alpha'})}")
    return options


def _stored(rng, X, recipe):
    kind = rng.choice(["dense", "dense", "fortran", "sparse"])
    recipe.append(str(kind))
    if kind == "sparse":
        return sp.csc_array(X)
    return np.asfortranarray(X) if kind == "fortran" else X


# truth -------------------------------------------------------------------------------------------


@njit(error_model="numpy", cache=True)
def _enumerate(A, b, values, apart, shaky, nothing):  # pragma: no cover
    """½‖r‖², least distance and rounding for every subset of the unit columns of A, by bit mask."""
    r, n = A.shape
    Q, inverse = np.zeros((r, n)), np.zeros((n, n))
    row_sq, projections = np.zeros((n + 1, n)), np.zeros(n)
    residual, column, coupling = np.zeros((n + 1, r)), np.zeros(r), np.zeros(n)
    members, size, last = np.zeros(n, np.int64), 0, -1
    residual[0] = b
    values[0], apart[0] = 0.5 * (b @ b), 1.0
    length = np.sqrt(b @ b)
    delta = ROUNDING * length
    shaky[0] = delta * length + 0.5 * delta * delta
    nothing[0] = shaky[0]
    while True:
        # the next subset in depth-first order: deeper, else sideways, else up and sideways
        j = last + 1
        while j >= n and size > 0:
            size -= 1
            j = members[size] + 1
        if j >= n:
            return
        members[size] = last = j
        column[:] = A[:, j]
        for i in range(size):
            coupling[i] = 0.0
        for _ in range(3):
            for i in range(size):
                share = 0.0
                for l in range(r):
                    share += Q[l, i] * column[l]
                coupling[i] += share
                for l in range(r):
                    column[l] -= share * Q[l, i]
        pivot = np.sqrt(column @ column)
        mask = 0
        for i in range(size + 1):
            mask |= 1 << members[i]
        if not pivot > 0.01 * DEPENDENT:
            values[mask], apart[mask], shaky[mask] = np.inf, 0.0, 0.0
            # so does every superset: go on sideways, with all below marked
            _mark_supersets(mask, j, n, apart, values)
            continue
        Q[:, size] = column / pivot
        # inv of [R c; 0 p] is [inv R, -inv(R)c/p; 0, 1/p]
        nearest = 1.0 / (1.0 / pivot) ** 2
        for i in range(size):
            entry = 0.0
            for l in range(i, size):
                entry += inverse[i, l] * coupling[l]
            inverse[i, size] = -entry / pivot
            row_sq[size + 1, i] = row_sq[size, i] + inverse[i, size] ** 2
            nearest = min(nearest, 1.0 / row_sq[size + 1, i])
        inverse[size, size] = 1.0 / pivot
        row_sq[size + 1, size] = 1.0 / pivot**2
        residual[size + 1] = residual[size]
        projections[size] = 0.0
        for _ in range(2):
            share = np.ascontiguousarray(Q[:, size]) @ residual[size + 1]
            projections[size] += share
            residual[size + 1] -= share * Q[:, size]
        size += 1
        total = 0.0
        for i in range(size):
            entry = 0.0
            for l in range(i, size):
                entry += inverse[i, l] * projections[l]
            total += abs(entry)
        sq = residual[size] @ residual[size]
        values[mask], apart[mask] = 0.5 * sq, np.sqrt(nearest)
        delta = ROUNDING * (length + total)
        shaky[mask] = delta * np.sqrt(sq) + 0.5 * delta * delta
        nothing[mask] = ROUNDING * length * np.sqrt(sq) + 0.5 * delta * delta


@njit(error_model="numpy", cache=True)
def _mark_supersets(mask, j, n, apart, values):  # pragma: no cover
    for other in range(1 << (n - j - 1)):
        values[mask | (other << (j + 1))] = np.inf
        apart[mask | (other << (j + 1))] = 0.0


@dataclass
class Truth:
    """For every bit mask of columns: the objective, the least distance, the rounding.

    `shaky` is by how much the objective of a support can be misjudged, `nothing` what is left of a
    perfect fit.
    """

    objective: np.ndarray
    apart: np.ndarray
    shaky: np.ndarray
    nothing: np.ndarray
    size: np.ndarray
    allowed: np.ndarray

    @property
    def best(self) -> int:
        """The mask of the best admissible support."""
        return int(np.argmin(np.where(self.allowed, self.objective, np.inf)))

    def slack(self, mask: int, tol: float = 3e-10) -> float:
        """What a claim about this support may be off by."""
        return tol * self.objective[mask] + 2.0 * self.shaky[mask]


def enumerate_supports(problem: Hostile, keep: np.ndarray | None = None) -> Truth:
    """The truth about a problem; `keep` are the kept columns that can be held at all."""
    X, y, options = problem.dense, problem.y, problem.options
    n = X.shape[1]
    root = np.sqrt(options.get("sample_weight", np.ones(len(y))))
    ridge = options.get("ridge", 0.0)
    A, b = X * root[:, None], y * root
    scale = np.sqrt((A**2).sum(axis=0) + ridge)
    is_zero = (A**2).sum(axis=0) == 0.0
    scale[scale == 0.0] = 1.0
    A = np.vstack([A, np.sqrt(ridge) * np.eye(n)]) / scale
    b = np.concatenate([b, np.zeros(n)])
    values, apart, shaky, nothing = (np.zeros(1 << n) for _ in range(4))
    _enumerate(np.asfortranarray(A), b, values, apart, shaky, nothing)
    masks = np.arange(1 << n)
    size = popcount(masks)
    allowed = (apart > DEPENDENT * (1.0 + MARGIN)) & (size <= options.get("n_nonzero_coefs", n))
    for j in range(n):
        if is_zero[j]:
            allowed &= (masks >> j) & 1 == 0
    for j in () if keep is None else keep:
        allowed &= (masks >> int(j)) & 1 == 1
    objective = values + options.get("alpha", 0.0) * size
    return Truth(objective, apart, shaky, nothing, size, allowed)


def popcount(masks: np.ndarray) -> np.ndarray:
    """The bits that are set in each mask."""
    return np.unpackbits(masks.astype("<u4").view(np.uint8).reshape(-1, 4), axis=1).sum(axis=1)


def mask_of(support) -> int:
    return int(sum(1 << int(j) for j in support))
