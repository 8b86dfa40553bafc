"""False proofs that look like true ones: problems whose optimum is known, trees, and changes.

A problem is so small that the objective of each support is found on its own: of squares in whole
fractions, of other losses at a point, which is an upper bound. A draft is a proof that can be
changed and written again, so that nothing but mathematics can refuse it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from math import fsum
from typing import Any

import numpy as np

from blockl0 import ProofError
from blockl0.verify import verify_content
from blockl0.verify.base import CLOSE, FIX, SPLIT, centred
from blockl0.verify.check import Squares
from blockl0.verify.losses import GeneralLoss

LOSSES = ("logistic", "squared_hinge", "poisson", "gamma", "tweedie", "huber")
POWERS = {"poisson": 1.0, "gamma": 2.0}
PRECISE = 1e-12
"""To this share of its terms the objective of a loss other than squares is known."""


# problems -----------------------------------------------------------------------------------------


class Known:
    """A problem, and the least objective on each support."""

    def __init__(self, rng: Any, loss: str) -> None:
        self.loss, m, n = loss, int(rng.integers(1, 7)), int(rng.integers(1, 5))
        self.X, self.weights = _columns(rng, m, n), np.ones(m)
        if rng.random() < 0.3:
            self.weights = rng.choice([0.5, 1.0, 1.7, 3e-3, 0.0], m)
            self.weights[rng.integers(m)] = 1.0
        self.y = _target(rng, self.X, loss)
        self.parameter = {"huber": 0.8, "tweedie": 1.4}.get(loss)
        self.ridge = float(rng.choice([1e-6, 0.1, 1.0, 30.0]))
        if loss == "squared" and rng.random() < 0.6:
            self.ridge = 0.0
        self.intercept, self.values = bool(rng.random() < 0.3), {}
        if rng.random() < 0.2:
            self._rescale(rng)
        at = self.weights > 0.0
        flat = ~centred(self.X[at], self.weights[at]).any(axis=0)
        # beside an intercept, the statement is about such columns as constants
        self.X = np.where(flat, self.X[at][0], self.X)

    def _rescale(self, rng: Any) -> None:
        """Take other units, to where sums of weights overflow, or squares vanish."""
        unit = 10.0 ** rng.choice([rng.uniform(-160.0, 153.0), 153.9])
        self.weights = self.weights * unit * unit
        if self.loss == "squared" and rng.random() < 0.8:
            self.y = self.y / unit * 10.0 ** rng.choice([-70.0, -50.0, 0.0, 40.0])
        if rng.random() < 0.8:
            self.X = self.X / unit
        else:
            self.ridge = self.ridge * 10.0 ** rng.uniform(-140.0, 100.0)

    def value(self, S: tuple[int, ...], ridge: float, intercept: bool) -> Any:
        """The least of loss and ridge on a support: exactly, or from above."""
        key = S, ridge, intercept
        if key not in self.values:
            least = _least_squares if self.loss == "squared" else _least_loss
            try:
                self.values[key] = least(self, *key)
            except OverflowError:  # sums of exponentials; nothing is known then
                self.values[key] = np.inf
        return self.values[key]

    def optimum(self, claim: dict[str, Any]) -> Any:
        """The least objective of the problem that a header states; nothing is known of others."""
        n, keep = self.X.shape[1], set(claim["keep"])
        if claim["loss"] != self.loss or claim["parameter"] != self.parameter:
            return None
        rest, price = sorted(set(range(n)) - keep), Fraction(claim["price"])
        least, given = None, (claim["ridge"], claim["intercept"])
        for size in range(min(claim["budget"], n) - len(keep) + 1):
            for more in combinations(rest, size):
                value = self.value(tuple(sorted(keep.union(more))), *given)
                if value == np.inf:
                    return np.inf
                value = Fraction(value) + price * (len(keep) + size)
                least = value if least is None else min(least, value)
        return least


def _columns(rng: Any, m: int, n: int) -> Any:
    """Columns at random, some of which are zero, constant, equal, nearly so, or in other units."""
    X = rng.standard_normal((m, n))
    if rng.random() < 0.2:
        X = np.round(2.0 * X)
    for j in range(n):
        kind, i = rng.integers(10), rng.integers(n)
        if kind == 0:
            X[:, j] = 0.0
        elif kind == 1:
            spread = rng.choice([0.0, 1e-16, 1e-15, 1e-14]) * X[:, j]
            X[:, j] = rng.choice([1.0, 3.7, -1e6]) * (1.0 + spread)
        elif kind == 2:
            X[:, j] = X[:, i]
        elif kind == 3:
            X[:, j] = X[:, i] + 10.0 ** -rng.integers(1, 16) * X[:, j]
        elif kind == 4:
            X[:, j] *= 10.0 ** rng.choice([*range(-20, 12), -70, -160, -200, -320])
        elif kind == 5:
            X[:, j] += 10.0 ** rng.integers(1, 8)
    return X


def _target(rng: Any, X: Any, loss: str) -> Any:
    m, eta = len(X), X / np.maximum(abs(X).max(axis=0), 1e-300) @ rng.standard_normal(X.shape[1])
    if loss in ("logistic", "squared_hinge"):
        return np.where(eta + rng.standard_normal(m) > 0.0, 1.0, -1.0)
    if loss in ("poisson", "tweedie"):
        return rng.poisson(np.exp(0.5 * eta)).astype(float) + (np.arange(m) == 0)
    if loss == "gamma":
        return rng.gamma(2.0, np.exp(0.3 * eta)) + 1e-3
    noise = rng.choice([0.0, 1e-12, 1e-5, 1.0, 1.0])
    return rng.choice([0.0, 1.0, 1.0, 1e3]) * eta + noise * rng.standard_normal(m)


def _least_squares(known: Known, S: tuple[int, ...], ridge: float, intercept: bool) -> Fraction:
    """By elimination in fractions; a pivot of zero belongs to a column that depends on others."""
    weights = [Fraction(x) for x in known.weights]
    columns = [[Fraction(x) for x in known.X[:, j]] for j in S] + [[Fraction(x) for x in known.y]]
    if intercept:
        means = [sum(map(Fraction.__mul__, weights, a)) / sum(weights) for a in columns]
        columns = [[x - mean for x in a] for a, mean in zip(columns, means, strict=True)]
    G = [[sum(w * x * z for w, x, z in zip(weights, a, b, strict=True)) for b in columns]
         for a in columns]  # fmt: skip
    for j in range(len(S)):
        G[j][j] += Fraction(ridge)
    for j in range(len(S)):
        for i in range(j + 1, len(G)) if G[j][j] else ():
            share = G[i][j] / G[j][j]
            G[i] = [x - share * z for x, z in zip(G[i], G[j], strict=True)]
    return G[-1][-1] / 2


def pointwise(known: Known, eta: Any) -> tuple[Any, Any, Any]:
    """Values, slopes and what serves as curvature, as in a textbook."""
    y, t = known.y, known.y * eta
    if known.loss == "logistic":
        p = np.exp(-np.logaddexp(0.0, t))
        return np.logaddexp(0.0, -t), -y * p, p * (1.0 - p)
    if known.loss == "squared_hinge":
        short = np.maximum(1.0 - t, 0.0)
        return 0.5 * short**2, -y * short, 1.0 * (short > 0.0)
    if known.loss == "huber":
        r, k = eta - y, known.parameter
        inside = abs(r) <= k
        value = np.where(inside, 0.5 * r**2, k * (abs(r) - 0.5 * k))
        return value, np.clip(r, -k, k), np.where(inside, 1.0, k / np.maximum(abs(r), k))
    p = POWERS.get(known.loss, known.parameter)
    a, b, z = p - 1.0, 2.0 - p, np.where(y > 0.0, y, 1.0)
    up, down = np.exp(b * eta), y * np.exp(-a * eta)
    if p == 1.0:
        value = up - y * eta - np.where(y > 0.0, y - y * np.log(z), 0.0)
    elif p == 2.0:
        value = down + eta - 1.0 - np.log(y)
    else:
        value = down / a + up / b - np.where(y > 0.0, z**b * (1.0 / a + 1.0 / b), 0.0)
    return value, up - down, b * up + a * down


def objective(known: Known, v: Any, intercept: float, ridge: float) -> float:
    """Loss and ridge, all terms summed exactly."""
    values = pointwise(known, known.X @ v + intercept)[0]
    return fsum([*(known.weights * values), 0.5 * ridge * (v @ v)])


def _least_loss(known: Known, S: tuple[int, ...], ridge: float, intercept: bool) -> float:
    """By Newton steps, halved until they help, from zero; rounded up."""
    m, n = known.X.shape
    Z = np.column_stack([known.X[:, S], np.full(m, float(intercept))])
    scales = np.maximum(np.sqrt((Z**2).sum(axis=0) + ridge), 1e-150)
    Z, penalty = Z / scales, np.append(np.full(len(S), ridge), 1e-300) / scales**2

    def total(x: Any) -> float:
        values = pointwise(known, Z @ x)[0]
        return fsum([*(known.weights * values), *(0.5 * penalty * x**2)])

    x = np.zeros(len(S) + 1)
    for _ in range(200):
        _, slope, bend = pointwise(known, Z @ x)
        grad = Z.T @ (known.weights * slope) + penalty * x
        hess = (Z.T * (known.weights * bend)) @ Z + np.diag(penalty + 1e-12)
        if not np.isfinite(hess).all() or not np.isfinite(grad).all():
            raise OverflowError("exponentials of this problem are not finite")
        step = np.linalg.lstsq(hess, grad, rcond=None)[0]
        here, length = total(x), 1.0
        while not total(x - length * step) < here and length > 1e-9:
            length *= 0.5
        if length <= 1e-9:
            break
        x = x - length * step
    v = np.zeros(n)
    v[list(S)] = (x / scales)[:-1]
    found = objective(known, v, float(intercept) * x[-1] / scales[-1], ridge)
    eta, size = Z @ x, abs(known.y)
    size = known.weights @ (size * (1.0 + abs(eta) + abs(np.log(size + (size == 0.0)))))
    return max(found, 0.0) + PRECISE * (abs(found) + size)


# proofs -------------------------------------------------------------------------------------------


@dataclass
class Draft:
    """A header, records (kind, point, column, columns that are fixed), points and curvatures."""

    claim: dict[str, Any]
    records: list[list[Any]] = field(default_factory=list)
    points: list[list[Any]] = field(default_factory=list)
    curves: list[list[Any]] = field(default_factory=list)

    def copy(self) -> Draft:
        """Another one with lists and arrays of its own."""

        def anew(part: list[Any]) -> list[Any]:
            return [x.copy() if isinstance(x, np.ndarray | list) else x for x in part]

        parts = ([anew(x) for x in part] for part in (self.records, self.points, self.curves))
        return Draft({**self.claim}, *parts)

    def arrays(self) -> dict[str, Any]:
        """As they stand in a file."""

        def flat(name: str, parts: list[list[Any]]) -> dict[str, Any]:
            starts = np.cumsum([0, *(len(part[0]) for part in parts)])
            columns, values = ([np.empty(0), *(part[i] for part in parts)] for i in (0, 1))
            return {
                f"{name}_start": starts.astype(np.int64),
                f"{name}_columns": np.concatenate(columns).astype(np.int64),
                f"{name}_values": np.concatenate(values),
            }

        records = [(kind, point, column, len(out)) for kind, point, column, out in self.records]
        return {
            "records": np.array(records, dtype=np.int64).reshape(-1, 4),
            "fixed": np.array([j for x in self.records for j in x[3]], dtype=np.int64),
            "point_curve": np.array([point[2] for point in self.points], dtype=np.int64),
            **flat("point", self.points),
            **flat("curve", self.curves),
        }

    def add_point(self, w: Any, curve: int) -> int:
        """The number of a new point."""
        at = np.flatnonzero(w)
        self.points.append([at, w[at], curve])
        return len(self.points) - 1

    def add_curve(self, columns: Any, d: Any) -> int:
        """The number of a new curvature."""
        self.curves.append([np.asarray(columns), d])
        return len(self.curves) - 1


def stated(known: Known, *, price: float, budget: int, keep: list[int]) -> dict[str, Any]:
    """A header whose point is zero."""
    claim = {
        "n_samples": int((known.weights > 0.0).sum()), "n_features": known.X.shape[1],
        "loss": known.loss,
        "parameter": known.parameter, "budget": budget, "price": price, "ridge": known.ridge,
        "keep": keep, "intercept": known.intercept, "support": [], "coef": [], "objective": 0.0,
    }  # fmt: skip
    return restated(known, claim)


def restated(known: Known, claim: dict[str, Any]) -> dict[str, Any]:
    """With the objective that the point zero has, as the verifier finds it."""
    given = known.X, known.y, known.weights
    at = given[2] > 0.0
    given = *(x[at] for x in given), claim["intercept"]
    is_squared = claim["loss"] == "squared"
    loss = Squares(*given) if is_squared else GeneralLoss(claim["loss"], claim["parameter"], *given)
    value = float(loss.tangent(np.zeros(known.X.shape[1]))[0])
    return {**claim, "objective": value + claim["price"] * len(claim["keep"])}


def draw(rng: Any, loss: str) -> tuple[Known, Draft]:
    """A problem and a proof of it whose every bound is true."""
    known = Known(rng, loss)
    n = known.X.shape[1]
    budget = int(rng.integers(0, n + 1))
    keep = sorted(map(int, rng.permutation(n)[: rng.integers(0, budget + 1)]))
    price = float(rng.choice([0.0, 0.0, 1e-3, 0.3, 10.0]))
    claim = stated(known, price=price, budget=budget, keep=keep if rng.random() < 0.4 else [])
    draft, ends = Draft(claim), rng.choice([0.0, 0.3])
    waiting = [(set(claim["keep"]), set(range(n)) - set(claim["keep"]))]
    while waiting:
        included, free = waiting.pop()
        point = near_best(rng, known, draft, included, free)
        if not free or len(included) >= budget or rng.random() < ends:
            draft.records.append([CLOSE, point, -1, []])
        elif rng.random() < 0.2:
            out = sorted(map(int, rng.permutation(sorted(free))[: rng.integers(1, len(free) + 1)]))
            draft.records.append([FIX, point, -1, out])
            waiting.append((included, free - set(out)))
        else:
            j = int(rng.choice(sorted(free)))
            draft.records.append([SPLIT, -1, j, []])
            waiting += [(included, free - {j}), (included | {j}, free - {j})]
    return known, draft


def near_best(rng: Any, known: Known, draft: Draft, included: set[int], free: set[int]) -> int:
    """A point of a node, near the fit of some of its columns, and a curvature that is allowed."""
    n, columns = known.X.shape[1], np.array(sorted(included | free), dtype=np.int64)
    some = sorted(included) + [j for j in sorted(free) if rng.random() < 0.5]
    w, X = np.zeros(n), known.X
    if known.intercept and np.isfinite(known.weights.sum()):
        X = X - known.weights @ X / known.weights.sum()
    A = np.sqrt(known.weights)[:, None] * X
    A[:, abs(A).max(axis=0) < 1e-14 * abs(known.X).max(axis=0)] = 0.0
    scales = np.sqrt((A**2).sum(axis=0) + known.ridge)
    scales[scales == 0.0] = 1.0
    rows = np.vstack([A, np.sqrt(known.ridge) * np.eye(n)]) / scales
    y = np.sqrt(known.weights) * (
        known.y - known.intercept * np.average(known.y, weights=known.weights)
    )
    target = np.append(y, np.zeros(n))
    if not np.isfinite(target).all() or not np.isfinite(rows).all():
        return -1
    if some:
        w[some] = np.linalg.lstsq(rows[:, some], target, rcond=1e-13)[0] / scales[some]
    if known.loss != "squared" or (known.ridge and rng.random() < 0.4):
        return draft.add_point(w, -1)
    real = columns[A[:, columns].any(axis=0) | (known.ridge > 0.0)]
    least = np.linalg.eigvalsh(rows[:, real].T @ rows[:, real]).min(initial=1.0)
    if least < 1e-13:
        return -1
    d = np.ones(n)
    d[real] = rng.choice([0.1, 0.9, 0.999]) * least * scales[real] ** 2
    return draft.add_point(w, draft.add_curve(columns, d[columns]))


def outcome(
    known: Known, claim: dict[str, Any], arrays: dict[str, Any], exact: bool = False
) -> Fraction | str:
    """The bound that the verifier makes of a file, or why it refuses."""
    given = known.X, known.y, known.weights
    try:
        return Fraction(verify_content(claim, arrays, *given, exact=exact).lower_bound)
    except ProofError as error:
        return str(error)
