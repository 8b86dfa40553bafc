"""What can be proven about each point in a few seconds, and how to say it."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from blockl0.certificate import certify_problem
from blockl0.design import Dense
from blockl0.exact import LARGEST
from blockl0.refit import make_search, refit_options
from blockl0.result import Result, Status
from blockl0.solve import solve_problem
from blockl0.sparsity import Sparsity

SECONDS, SECONDS_EACH = 10.0, 1.0
"""Time for all proofs where no limit is given, and for the exact search of one point."""
LEAST_SECONDS = 1e-3
"""Of a search that is begun, however little time is left."""
LARGEST_COPY = 20_000_000
"""Entries of X up to which a centred copy is made for certificates."""
HOPELESS = 0.5
"""A gap above this is no news."""
TOLERANCE = 1e-8
"""Share of the objective by which a trial must be lower to count as better."""
PERFECT = 1e-12
"""Share of the objective without any column below which a fit is perfect."""
ENTRY = 1e-6
"""Where the fit of a column that enters starts: anything but zero, which would be out."""


@dataclass(frozen=True)
class Proof:
    """What is known of a point.

    Attributes
    ----------
    kind : "all", "optimal", "pairs", "swaps", "single", "tried", "refuted" or "none"
        Nothing to choose; best of all subsets; no exchange of two columns, or of one, helps; no
        addition or removal; exchanges tried one by one; something better is known; searched only.
    gap : float or None
        No choice of as many columns lowers the objective by a larger share.
    n_tried, n_possible : int
        Exchanges of one column for another.
    gain : float
        The share by which the better point is lower.
    leave, enter : tuple of int
        The exchange that leads there.
    """

    kind: str
    gap: float | None = None
    n_tried: int = 0
    n_possible: int = 0
    gain: float = 0.0
    leave: tuple[int, ...] = ()
    enter: tuple[int, ...] = ()


def prove(
    problem: Any, path: Any, start: int, X: Any, y: Any, time_limit: float | None
) -> list[Proof]:
    """A proof for every point; the time goes to the chosen one first, then to those around it."""
    deadline = time.perf_counter() + (SECONDS if time_limit is None else time_limit)
    proofs = [_from_result(result, problem, int(path.n_nonzero_coefs[i]))
              for i, result in enumerate(path)]  # fmt: skip
    prover = _Quadratic(problem, X, y) if problem.is_quadratic else _Trials(problem)
    for i in sorted(range(len(proofs)), key=lambda i: (abs(i - start), i)):
        if proofs[i].kind in ("all", "optimal"):
            continue
        if time.perf_counter() >= deadline:
            break
        budget = int(path.n_nonzero_coefs[i])
        if path[i].objective <= PERFECT * problem.objective(np.zeros_like(path[i].coef)):
            # no objective is below zero: whatever is lower still differs by rounding
            proofs[i] = replace(proofs[i], kind="optimal")
            continue
        proofs[i] = prover.improve(proofs[i], path[i], budget, deadline)
    return proofs


def _from_result(result: Result, problem: Any, budget: int) -> Proof:
    """What the search itself has proven."""
    n, n_kept = problem.n_features, problem.keep.size
    n_free = budget - n_kept
    possible = (result.n_nonzero - n_kept) * (n - result.n_nonzero)
    if n_free == 0 or budget >= n:
        return Proof("all", n_possible=possible)
    if result.status is Status.OPTIMAL:
        return Proof("optimal", n_possible=possible)
    certificate = result.certificate
    if certificate is None or not certificate.holds:
        return Proof("none", n_possible=possible)
    if certificate.level == 1:
        return Proof("single", n_possible=possible)
    # one column to choose, or one to leave out: then every subset is one exchange away
    is_all = min(n_free, n - budget) == 1
    return Proof("optimal" if is_all else "swaps", n_possible=possible)


class _Quadratic:
    """The squared loss: branch and bound, then all exchanges of two columns."""

    def __init__(self, problem: Any, X: Any, y: Any) -> None:
        self.problem = problem
        self.is_hopeful = X.shape[1] <= LARGEST
        self.centred = None
        if X.shape[0] * X.shape[1] <= LARGEST_COPY:
            columns = problem.design.columns(np.arange(problem.n_features))
            self.centred = replace(problem, design=Dense(columns))

    def improve(self, proof: Proof, result: Result, budget: int, deadline: float) -> Proof:
        sparsity = Sparsity(0.0, budget)
        left = deadline - time.perf_counter()
        if self.is_hopeful:
            problem = replace(self.problem, sparsity=sparsity)
            seconds = max(min(SECONDS_EACH, left), LEAST_SECONDS)
            exact = solve_problem(problem, "exact", random_state=0, time_limit=seconds)
            if exact.objective < result.objective * (1.0 - TOLERANCE):
                return _refuted(proof, result, exact.coef, exact.objective)
            if exact.status is Status.OPTIMAL:
                return replace(proof, kind="optimal")
            gap = exact.gap
            # more columns than rows: the bound does not move, here or at other sizes
            self.is_hopeful = gap is not None and gap <= HOPELESS
            proof = replace(proof, gap=gap if self.is_hopeful else None)
        if proof.kind != "swaps" or self.centred is None or time.perf_counter() >= deadline:
            return proof
        try:
            pairs = certify_problem(
                replace(self.centred, sparsity=sparsity), result.coef, level=4, tol=TOLERANCE
            )
        except ValueError:  # out of reach
            return proof
        if pairs.holds:
            # one or two columns to choose: all subsets are an exchange of two away
            is_all = min(budget - self.problem.keep.size, self.problem.n_features - budget) <= 2
            return replace(proof, kind="optimal" if is_all else "pairs")
        return _refuted(proof, result, pairs.better_coef, float(pairs.better_objective or 0.0))


class _Trials:
    """Other losses: every exchange of one column is fitted anew, while there is time."""

    def __init__(self, problem: Any) -> None:
        self.problem = problem
        self.search = make_search(problem, refit_options()[0])

    def improve(self, proof: Proof, result: Result, budget: int, deadline: float) -> Proof:
        inside = result.support
        outside = np.setdiff1d(np.arange(self.problem.n_features), inside)
        movable = np.setdiff1d(inside, self.problem.keep)
        pairs = [(j, i) for j in movable for i in outside]
        # in random order, so that a part of them is a fair sample
        order = np.random.default_rng(0).permutation(len(pairs))
        for n_tried, at in enumerate(order):
            if time.perf_counter() >= deadline:
                kind = "tried" if n_tried else proof.kind
                return replace(proof, kind=kind, n_tried=n_tried)
            j, i = pairs[at]
            w = self.problem.from_given(result.coef).copy()
            w[j], w[i] = 0.0, ENTRY
            w = self.search.start(w).w
            there = self.problem.objective(w)
            if there < result.objective * (1.0 - TOLERANCE):
                return _refuted(replace(proof, n_tried=n_tried + 1), result, w, there)
        is_all = min(budget - self.problem.keep.size, outside.size) == 1
        kind = "optimal" if is_all and result.n_nonzero == budget else "tried"
        return replace(proof, kind=kind, n_tried=len(pairs))


def _refuted(proof: Proof, result: Result, better: Any, objective: float) -> Proof:
    chosen = np.flatnonzero(better if better.ndim == 1 else better.any(axis=1))
    return replace(
        proof,
        kind="refuted",
        gap=None,
        gain=1.0 - objective / result.objective,
        leave=tuple(int(j) for j in np.setdiff1d(result.support, chosen)),
        enter=tuple(int(j) for j in np.setdiff1d(chosen, result.support)),
    )
