"""Random small problems with structure, and the truth by enumeration."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.optimize import lsq_linear

KINDS = ("groups", "bounds", "positive", "responses", "costs", "groups+bounds",
         "groups+responses", "bounds+responses", "groups+costs", "bounds+costs",
         "responses+costs", "all", "all+costs", "groups+costs+budget",
         "all+costs+budget")  # fmt: skip
ALL = {"groups", "bounds", "responses"}


class Case(NamedTuple):
    """X, y and what `solve` is given beside them."""

    X: np.ndarray
    y: np.ndarray
    given: dict

    @property
    def labels(self):
        given = self.given.get("feature_groups")
        return list(range(self.X.shape[1])) if given is None else list(given)

    @property
    def bounds(self):
        n = self.X.shape[1]
        low, high = self.given.get("bounds", (-np.inf, np.inf))
        low, high = np.broadcast_to(low, n).copy(), np.broadcast_to(high, n)
        positive = self.given.get("positive", [])
        positive = np.arange(n) if positive is True else np.array(positive, dtype=int)
        low[positive] = np.maximum(low[positive], 0.0)
        return low, high

    @property
    def scale(self):
        return max(0.5 * float(np.sum(self.y**2)), 1e-12)


def parts(kind):
    named = set(kind.split("+"))
    return (named - {"all"}) | ALL if "all" in named else named


def draw(kind, seed):
    """A problem of a kind: dependent columns, zero columns, pinned and tight bounds among them."""
    rng, of = np.random.default_rng([seed, *kind.encode()]), parts(kind)
    m, n = int(rng.integers(3, 20)), int(rng.integers(1, 9))
    q = int(rng.integers(1, 4)) if "responses" in of else 1
    X = rng.standard_normal((m, n))
    if n > 2 and rng.random() < 0.3:
        X[:, 1] = X[:, 0] - X[:, 2]
    if rng.random() < 0.2:
        X[:, -1] = 0.0
    if rng.random() < 0.2:
        X[:, : n // 2 + 1] = levels(rng, m, n // 2 + 1)
    if n > 3 and rng.random() < 0.1:
        X[:, n // 2 :] = rng.choice([-1.0, 1.0, 3.0]) * X[:, : n - n // 2]
    truth = np.where(rng.random((n, q)) < 0.5, rng.standard_normal((n, q)), 0.0)
    y = X @ truth + rng.standard_normal((m, q)) * rng.choice([0.0, 0.3, 1.0])
    if q > 1 and rng.random() < 0.2:
        y[:, 0] = 0.0
    if rng.random() < 0.03:
        y[:] = 0.0
    y = y if "responses" in of else y[:, 0]
    given: dict = {}
    if "groups" in of:
        given["feature_groups"] = labels(rng, n)
    if "bounds" in of:
        given["bounds"] = limits(rng, truth[:, 0])
    if "positive" in of:
        signed = np.flatnonzero(rng.random(n) < 0.7)
        given["positive"] = True if rng.random() < 0.5 else signed.tolist()
    if rng.random() < 0.3:
        given["ridge"] = 0.5
    case = Case(X, y, given)
    n_units = len(set(case.labels))
    if "costs" in of:
        own = {label: 2.0 * rng.random() for label in dict.fromkeys(case.labels)}
        if rng.random() < 0.2:
            own[case.labels[0]] = 0.0
        given["costs"] = np.array([own[label] for label in case.labels])
    if "costs" in of or rng.random() < 0.5:
        given["alpha"] = 0.5 * rng.random()
    if "alpha" not in given or "budget" in of:
        given["n_nonzero_coefs"] = int(rng.integers(0, n_units + 1))
    if rng.random() < 0.2 and X[:, 0].any() and given.get("n_nonzero_coefs", 1) > 0:
        given["keep"] = [0]
    return case


def levels(rng, m, n):
    """The levels of one or two categories, some of which no row has."""
    split = int(rng.integers(0, n))
    parts = [
        np.eye(size + 1)[rng.integers(0, size + 1, m)][:, :size] for size in (split, n - split)
    ]
    return np.hstack(parts)


def labels(rng, n):
    """Labels of some kind in any order: one group, groups of one, words, numbers, pairs."""
    codes = rng.integers(0, max(1, int(rng.integers(1, 6))), n)
    kind = rng.integers(0, 4)
    if kind == 0:
        return [f"g{code}" for code in codes]
    if kind == 1:
        return [(int(code), "x") for code in codes]
    return codes.tolist() if kind == 2 else (100 - codes).astype(float)


def limits(rng, truth):
    n = truth.size
    low = -np.where(rng.random(n) < 0.5, 0.0, rng.random(n))
    high = np.where(rng.random(n) < 0.5, np.inf, 0.5 * rng.random(n))
    pinned = rng.random(n) < 0.1
    low[pinned] = high[pinned] = 0.0
    exact = rng.random(n) < 0.1  # the bound is the coefficient that made the target
    low[exact], high[exact] = np.minimum(truth[exact], 0.0), np.maximum(truth[exact], 0.0)
    return low, high


def best(case):
    """The least objective over all choices of units."""
    return least(case, allowed(case))


def best_near(case, point, swaps):
    """The least objective one addition or removal away, or a swap."""
    here = {case.labels[j] for j in case.given.get("keep", ())}
    here |= {case.labels[j] for j in np.flatnonzero(np.atleast_2d(point.T).any(axis=0))}
    near = []
    for chosen in allowed(case):
        out, into = len(here - set(chosen)), len(set(chosen) - here)
        if max(out, into) <= 1 and (swaps or out + into <= 1):
            near.append(chosen)
    return least(case, near)


def allowed(case):
    """All choices of units with the kept ones among them."""
    units = list(dict.fromkeys(case.labels))
    most = case.given.get("n_nonzero_coefs", len(units))
    kept = {case.labels[j] for j in case.given.get("keep", ())}
    every = (chosen for size in range(most + 1) for chosen in combinations(units, size))
    return [chosen for chosen in every if kept <= set(chosen)]


def least(case, choices):
    """The least objective of some choices.

    Without its bounds a fit is no worse, and many fits are made at once. So those within their
    bounds are made one by one, from the best without bounds on, until none of the rest can be best.
    Nothing is concluded from one of them for another: with dependent columns scipy may end early.
    """
    given, names = case.given, case.labels
    costs = given.get("costs", np.ones(len(names)))
    paid = np.array([sum(costs[names.index(unit)] for unit in chosen) for chosen in choices])
    prices = given.get("alpha", 0.0) * paid
    columns = [[j for j, name in enumerate(names) if name in chosen] for chosen in choices]
    below = free_values(case, columns) + prices
    if np.isinf(case.bounds).all():
        return below.min()
    found = np.inf
    for i in np.argsort(below):
        if below[i] > found + 1e-12 * case.scale:
            break
        found = min(found, fit_value(case, columns[i]) + prices[i])
    return found


def free_values(case, supports):
    """The least loss on each of some sets of columns, whatever the bounds."""
    ridge, Y = case.given.get("ridge", 0.0), case.y.reshape(len(case.X), -1)
    sizes, values = np.array([len(s) for s in supports]), np.empty(len(supports))
    for size in set(sizes.tolist()):
        of_size = np.flatnonzero(sizes == size)
        A = np.zeros((of_size.size, len(Y) + size, size))
        A[:, : len(Y)] = np.moveaxis(case.X[:, [supports[i] for i in of_size]], 1, 0)
        A[:, len(Y) :] = np.sqrt(ridge) * np.eye(size)
        B = np.vstack([Y, np.zeros((size, Y.shape[1]))])
        if size:
            U, lengths, _ = np.linalg.svd(A, full_matrices=False)
            # what `lstsq` takes for zero
            least_length = np.finfo(float).eps * max(A.shape[1:]) * lengths[:, :1]
            U *= (lengths > least_length)[:, None, :]
            B = B - U @ (np.swapaxes(U, 1, 2) @ B)
        values[of_size] = 0.5 * np.sum(B**2, axis=(-2, -1))
    return values


def fit_value(case, columns):
    """The least loss on some columns, by numpy, or scipy where there are bounds."""
    ridge, Y = case.given.get("ridge", 0.0), case.y.reshape(len(case.X), -1)
    A = np.vstack([case.X[:, columns], np.sqrt(ridge) * np.eye(len(columns))])
    B = np.vstack([Y, np.zeros((len(columns), Y.shape[1]))])
    low, high = (side[columns] for side in case.bounds)
    free = low < high
    A, low, high = A[:, free], low[free], high[free]
    if A.shape[1] == 0:
        return 0.5 * float(np.sum(B**2))
    if np.isinf(low).all() and np.isinf(high).all():
        return 0.5 * float(np.sum((B - A @ np.linalg.lstsq(A, B, rcond=None)[0]) ** 2))
    options = {"method": "bvls", "tol": 1e-14, "max_iter": 2000}
    return sum(lsq_linear(A, b, (low, high), **options).cost for b in B.T)
