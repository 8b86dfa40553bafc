"""Proofs about each point of a path within a few seconds, and how the page shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from blockl0.certify import certify_problem, words
from blockl0.certify.close_sets import count_close
from blockl0.certify.levels import (
    Choice,
    ProofStatus,
    is_better,
    is_perfect,
    objective_at_zero,
    proof_of,
    slack,
)
from blockl0.errors import OutOfReachError
from blockl0.exact import may_prove, obstacle
from blockl0.exact.watch import UNIT
from blockl0.moves.single_moves import SingleMoves
from blockl0.problem.fits import make_fits
from blockl0.problem.near_dependence import left_out
from blockl0.problem.problem import Sparsity
from blockl0.result import Result, Status
from blockl0.run import seconds_left
from blockl0.solve import open_run, solve_problem

WORK, WORK_EACH, LEAST_WORK = 10.0, 1.0, 0.05
"""Work for all proofs in units of 1e9 multiplications, about a second each; for the exact search of
one point, which gets at most half of what is left; and what any step counts at least. It is counted
so that the same data give the same claims on any machine.
"""
PAIRS = 1.0
"""Work that all exchanges of two columns count."""
MOST_ENTRIES = 20_000_000
"""Entries of X up to which all exchanges of two columns are tried."""

MARKS = {
    "all": "proven", "optimal": "proven", "pairs": "partly", "swaps": "partly", "single": "partly",
    "tried": "partly", "refuted": "refuted", "none": "searched",
}  # fmt: skip
"""Mark of each kind of proof."""
LEVELS = {"all": "n", "optimal": "n", "pairs": 4, "swaps": 2, "tried": 2, "single": 1}


def prove(problem: Any, path: Any, start: int) -> list[ProofStatus]:
    """Prove every point, the chosen one first, then those around it."""
    n, n_kept, has_ridge = problem.n_units, problem.keep.size, problem.ridge > 0.0
    choices = [
        Choice(result.n_nonzero, int(budget), n, n_kept, has_ridge, float(price))
        for result, budget, price in zip(path, path.n_nonzero_coefs, path.alphas, strict=True)
    ]
    proofs = [
        proof_of(result.status, result.certificate, choice)
        for result, choice in zip(path, choices, strict=True)
    ]
    at_zero = objective_at_zero(problem)
    prover = (_Quadratic if problem.is_quadratic else _Trials)(problem, at_zero)
    order = sorted(range(len(proofs)), key=lambda i: (abs(i - start), i))
    for i in order:
        if proofs[i].is_optimal:
            continue
        if prover.is_over:
            break
        if is_perfect(path[i].objective, at_zero):
            # no objective is negative: any difference is rounding
            proofs[i] = replace(proofs[i], kind="optimal")
            continue
        proofs[i] = prover.improve(proofs[i], path[i], choices[i])
    if obstacle(problem) is not None:
        proofs = [
            proof if proof.is_optimal else replace(proof, has_bound=False) for proof in proofs
        ]
    for i in order:
        here = replace(problem, sparsity=Sparsity(choices[i].price, choices[i].budget))
        if i == start or not prover.is_over:
            proofs[i] = replace(proofs[i], n_close=count_close(here, path[i].coef) or 0)
        if proofs[i].is_optimal:
            columns = left_out(here, here.from_given(path[i].coef))
            proofs[i] = replace(proofs[i], left_out=columns)
    return proofs


class _Prover:
    """Branch and bound while it is promising, then other statements about a loss."""

    def __init__(self, problem: Any, at_zero: float) -> None:
        self.problem, self.at_zero = problem, at_zero
        self.is_hopeful, self.failed_at = may_prove(problem), problem.n_features
        self.left = WORK

    @property
    def is_over(self) -> bool:
        """Whether the work, or the time of a surrounding limit, is used up."""
        return self.left <= 0.0 or seconds_left() <= 0.0

    def improve(self, proof: ProofStatus, result: Result, choice: Choice) -> ProofStatus:
        """Improve the proof of a point while there is work left."""
        if self.is_hopeful and choice.budget < self.failed_at:
            proof = self.search(proof, result, choice)
        if proof.kind in ("optimal", "refuted") or self.is_over:
            return proof
        return self.try_changes(proof, result, choice)

    def search(self, proof: ProofStatus, result: Result, choice: Choice) -> ProofStatus:
        """Run a short exact search on a point."""
        problem = replace(self.problem, sparsity=Sparsity(choice.price, choice.budget))
        work = max(min(WORK_EACH, 0.5 * self.left), LEAST_WORK)
        exact = solve_problem(
            problem, "exact", init=result.coef, random_state=0,
            work_limit=work,
        )  # fmt: skip
        self.left -= max(exact.work or 0.0, LEAST_WORK)
        if is_better(exact.objective, result.objective, self.at_zero):
            return self.refuted(proof, result, exact.coef, exact.objective)
        if exact.status is Status.OPTIMAL:
            return replace(proof, kind="optimal")
        proof = proof.bounded(exact.gap)
        # a useless bound here is no better at other sizes
        self.is_hopeful = proof.gap is not None
        if not problem.is_quadratic:
            # leave the time for changes of single columns, which are slow to try
            self.failed_at = choice.budget
        return proof

    def refuted(
        self, proof: ProofStatus, result: Result, better: Any, objective: float
    ) -> ProofStatus:
        """Record that a point is not optimal, with entering and leaving units."""
        units = self.problem.units
        here = units.of(result.support)
        return proof.refuted(here, result.objective, units.support(better), objective)

    def try_changes(self, proof: ProofStatus, result: Result, choice: Choice) -> ProofStatus:
        """Prove which changes of a point do not help."""
        raise NotImplementedError


class _Quadratic(_Prover):
    """Prover for the squared loss: after branch and bound all exchanges of two columns."""

    def __init__(self, problem: Any, at_zero: float) -> None:
        super().__init__(problem, at_zero)
        is_small = problem.n_samples * problem.n_features <= MOST_ENTRIES
        self.has_pairs = is_small and problem.is_plain

    def try_changes(self, proof: ProofStatus, result: Result, choice: Choice) -> ProofStatus:
        """Try exchanges of two columns."""
        if proof.kind != "swaps" or not self.has_pairs:
            return proof
        problem = replace(self.problem, sparsity=Sparsity(choice.price, choice.budget))
        return self.try_pairs(proof, result, choice, problem)

    def try_pairs(
        self, proof: ProofStatus, result: Result, choice: Choice, problem: Any
    ) -> ProofStatus:
        """Try all exchanges of two columns, if within reach."""
        self.left -= PAIRS
        try:
            pairs = certify_problem(problem, result.coef, level=4)
        except OutOfReachError:
            return proof
        if not (pairs.complete or pairs.better_coef is not None):
            return proof
        if pairs.better_coef is None or pairs.better_objective is None:
            # one or two columns to choose: all subsets are within an exchange of two
            return replace(proof, kind="optimal" if choice.is_settled_by(2) else "pairs")
        return self.refuted(proof, result, pairs.better_coef, pairs.better_objective)


class _Trials(_Prover):
    """Prover for other losses: every exchange of one column is excluded or re-fitted, in time."""

    def __init__(self, problem: Any, at_zero: float) -> None:
        super().__init__(problem, at_zero)
        self.fits = make_fits(problem)  # independent of price and budget

    def try_changes(self, proof: ProofStatus, result: Result, choice: Choice) -> ProofStatus:
        """Try exchanges of one column; for groups and bounds the search has tried them."""
        if not self.problem.is_plain:
            return proof
        # with a used-up budget and no price, only exchanges can help
        problem = replace(self.problem, sparsity=Sparsity(0.0, choice.n_chosen))
        run = open_run(problem, "refit", {})
        w, least = problem.from_given(result.coef), slack(result.objective, self.at_zero)
        moves = SingleMoves(problem, self.fits, UNIT * max(self.left, LEAST_WORK))
        verdict = moves.check(w, result.objective, least, run)
        self.left -= max(verdict.work / UNIT, LEAST_WORK)
        if verdict.better is not None:
            there = problem.objective(verdict.better)
            return self.refuted(proof, result, verdict.better, there)
        if not verdict.is_complete:
            kind = "tried" if verdict.n_tried else proof.kind
            return replace(proof, kind=kind, n_tried=verdict.n_tried)
        is_all = choice.is_settled_by(1) and choice.n_chosen == choice.budget
        return replace(proof, kind="optimal" if is_all else "tried", n_tried=proof.n_possible)


# -- on the page -----------------------------------------------------------------------------------


def certificate(
    proof: ProofStatus, point: dict[str, Any], data: dict[str, Any], names: Sequence[str],
    has_ridge: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Make the record of a point."""
    n_chosen, n_kept = len(point["support"]), len(data["kept"])
    price = point.get("price") or 0.0
    choice = Choice(n_chosen, point["k"], data["columns"], n_kept, has_ridge, price)
    return {
        "kind": proof.kind,
        "mark": MARKS[proof.kind],
        "holds": proof.kind != "refuted",
        "level": LEVELS.get(proof.kind),
        "complete": proof.is_complete,
        "gap": None if proof.gap is None else round(proof.gap, 4),
        "n_close": proof.n_close,
        "question": words.question(choice),
        "answer": words.answer(proof),
        "verdict": words.verdict(proof),
        "short": _given(proof, choice, words.short(proof, choice)),
        "proven": _given(proof, choice, words.proven(proof, choice, names)),
        "open": words.left_open(proof, choice) + words.apart_only(names, proof.left_out),
        "near_dependent": [names[j] for j in proof.left_out or ()],
    }


def _given(proof: ProofStatus, choice: Choice, text: str) -> str:
    """Add the conditions of a claim."""
    if not (choice.n_kept or choice.price) or proof.kind in ("all", "refuted", "none"):
        return text
    supposed = words.supposing(choice.n_kept, choice.price > 0.0).rstrip(", ")
    return f"{supposed[0].upper()}{supposed[1:]}: {text[0].lower()}{text[1:]}"
