"""No false proof passes: trees with changed points, curvatures, records and headers."""

from __future__ import annotations

import sys
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import blockl0
from blockl0.exact.proof import Proof
from blockl0.problem.preprocess import apply
from blockl0.problem.problem import as_problem
from blockl0.solve import solve_problem
from blockl0.verify import verify_content
from blockl0.verify.base import CLOSE, FIX, SPLIT
from forged_proofs import LOSSES, Draft, Known, draw, near_best, outcome, restated, stated

BOUND = "a bound that is true"
"""What became of a file that the verifier read to its end."""


# changes ------------------------------------------------------------------------------------------


def some(rng: Any, parts: list[Any]) -> Any:
    """One of a list; an error, and so no change, where there is none."""
    return parts[rng.integers(len(parts))]


def size_of_step(rng: Any) -> float:
    """From the last digit to far beyond all data, on either side."""
    return float(rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-17.0, 12.0))


def far_point(rng: Any, known: Known, draft: Draft) -> None:
    """A point goes far along a column, perhaps one that is zero, fixed out or without curvature."""
    w, point = np.zeros(known.X.shape[1]), some(rng, draft.points)
    w[point[0]] = point[1]
    w[rng.integers(w.size)] += size_of_step(rng)
    point[:2] = np.flatnonzero(w), w[w != 0.0]


def flat_direction(rng: Any, known: Known, draft: Draft) -> None:
    """A point goes along the direction in which the columns are longest or shortest."""
    n, point = known.X.shape[1], some(rng, draft.points)
    X = known.X - (known.weights @ known.X / known.weights.sum() if known.intercept else 0.0)
    scales = np.maximum(np.linalg.norm(X, axis=0), 1e-30)
    w = np.linalg.svd(X / scales)[2][rng.choice([0, -1])] / scales * size_of_step(rng)
    w[point[0]] += point[1]
    point[:2] = np.arange(n), w


def stretched_point(rng: Any, known: Known, draft: Draft) -> None:
    point = some(rng, draft.points)
    point[1] = point[1] * (1.0 + size_of_step(rng))


def odd_number(rng: Any, known: Known, draft: Draft) -> None:
    part = some(rng, draft.points + draft.curves)
    part[1] = part[1].copy()
    part[1][rng.integers(part[1].size)] = rng.choice([np.nan, np.inf, 1e308, 1e-320, -1.0, 0.0])


def larger_curvature(rng: Any, known: Known, draft: Draft) -> None:
    """Of all columns, or one; by little, or by much."""
    curve = some(rng, draft.curves)
    factors = np.full(curve[1].size, 1.0 + abs(size_of_step(rng)))
    if rng.random() < 0.5:
        factors[rng.permutation(factors.size)[1:]] = 1.0
    curve[1] = curve[1] * factors


def any_curvature(rng: Any, known: Known, draft: Draft) -> None:
    """A curvature for all columns, which may be too large, for a point that had another."""
    n, d = known.X.shape[1], (known.X**2).sum(axis=0) * rng.uniform(0.0, 1.0) + known.ridge
    d = np.where(d > 0.0, d, 10.0 ** rng.uniform(-6.0, 6.0))
    some(rng, draft.points)[2] = draft.add_curve(np.arange(n), d)


def fewer_curved_columns(rng: Any, known: Known, draft: Draft) -> None:
    curve = some(rng, draft.curves)
    kept = rng.permutation(curve[0].size)[1:]
    curve[:2] = curve[0][np.sort(kept)], curve[1][np.sort(kept)]


def curvature_of_zeros(rng: Any, known: Known, draft: Draft) -> None:
    """Columns that no curvature has, zeros among them, get one."""
    curve = some(rng, draft.curves)
    others = np.setdiff1d(np.arange(known.X.shape[1]), curve[0])
    columns = np.append(curve[0], others)
    d = np.append(curve[1], 10.0 ** rng.uniform(-12.0, 6.0, others.size))
    curve[:2] = np.sort(columns), d[np.argsort(columns)]


def another_curve(rng: Any, known: Known, draft: Draft) -> None:
    some(rng, draft.points)[2] = int(rng.integers(-1, len(draft.curves)))


def another_point(rng: Any, known: Known, draft: Draft) -> None:
    some(rng, draft.records)[1] = int(rng.integers(-1, len(draft.points)))


def another_column(rng: Any, known: Known, draft: Draft) -> None:
    splits = [record for record in draft.records if record[0] == SPLIT]
    some(rng, splits)[2] = int(rng.integers(known.X.shape[1]))


def other_order(rng: Any, known: Known, draft: Draft) -> None:
    at = np.sort(rng.integers(len(draft.records), size=2))
    records = draft.records
    records[at[0]], records[at[1]] = records[at[1]], records[at[0]]


def subtree(draft: Draft, first: int) -> int:
    """Where what follows from a record ends."""
    n_open, i = 1, first
    while n_open and i < len(draft.records):
        n_open += {CLOSE: -1, FIX: 0, SPLIT: 1}[draft.records[i][0]]
        i += 1
    return i


def closed_early(rng: Any, known: Known, draft: Draft) -> None:
    """A node is closed by a point of another one."""
    i = int(rng.integers(len(draft.records)))
    end, point = subtree(draft, i), int(rng.integers(-1, len(draft.points)))
    draft.records[i:end] = [[CLOSE, point, -1, []]]


def fixed_out(rng: Any, known: Known, draft: Draft) -> None:
    """Columns are fixed out at once, whether or not the best support needs them."""
    n, rest = known.X.shape[1], sorted(set(range(known.X.shape[1])) - set(draft.claim["keep"]))
    out = sorted(map(int, rng.permutation(rest)[: rng.integers(1, n + 1)]))
    point = int(rng.integers(-1, len(draft.points)))
    end = [CLOSE, int(rng.integers(-1, len(draft.points))), -1, []]
    tree = [[x[0], x[1], x[2], [j for j in x[3] if j not in out]] for x in draft.records]
    tree = [x for x in tree if x[3] or x[0] != FIX]
    whole = all(x[2] not in out for x in tree)
    draft.records[:] = [[FIX, point, -1, out], *(tree if whole else [end])]


def fix_more(rng: Any, known: Known, draft: Draft) -> None:
    fixes = [record for record in draft.records if record[0] == FIX]
    some(rng, fixes)[3].append(int(rng.integers(known.X.shape[1])))


def fix_instead(rng: Any, known: Known, draft: Draft) -> None:
    """Instead of a split: one side is taken for granted."""
    at = [i for i, record in enumerate(draft.records) if record[0] == SPLIT]
    i = int(some(rng, at))
    middle, end = subtree(draft, i + 1), subtree(draft, subtree(draft, i + 1))
    point = int(rng.integers(-1, len(draft.points)))
    rest = draft.records[middle:end]
    draft.records[i:end] = [[FIX, point, -1, [draft.records[i][2]]], *rest]


def other_statement(rng: Any, known: Known, draft: Draft) -> None:
    """The same tree is said to prove another problem."""
    claim, n = draft.claim, known.X.shape[1]
    name = rng.choice(["budget", "price", "ridge", "keep", "intercept"])
    if name == "budget":
        claim[name] = int(rng.integers(-1, n + 3))
    elif name == "price":
        claim[name] = float(claim[name] * rng.choice([0.0, 0.5, 2.0]) + rng.choice([0.0, 0.1]))
    elif name == "ridge":
        claim[name] = float(rng.choice([0.0, claim[name] * 0.9, claim[name] * 2.0, 1e-12]))
    elif name == "keep":
        claim[name] = sorted(map(int, rng.permutation(n)[: rng.integers(0, n)]))
    else:
        claim[name] = not claim[name]
    draft.claim = restated(known, claim)


CHANGES = (
    far_point, flat_direction, stretched_point, odd_number, larger_curvature, any_curvature,
    fewer_curved_columns, curvature_of_zeros, another_curve, another_point, another_column,
    other_order, closed_early, fixed_out, fix_more, fix_instead, other_statement,
)  # fmt: skip


# what becomes of them -----------------------------------------------------------------------------


class Judge:
    """Counts files; one that proves more than is true is an error at once."""

    def __init__(self, exact: bool = False) -> None:
        self.seen: Counter[str] = Counter()
        self.exact = exact

    def __call__(self, known: Known, draft: Draft, what: str) -> Any:
        """The bound of a file, which is not above the optimum; −∞ for one that is refused."""
        optimum = known.optimum(draft.claim)
        found = outcome(known, draft.claim, draft.arrays(), self.exact)
        self.seen[found[:40] if isinstance(found, str) else BOUND] += 1
        if isinstance(found, str):
            return -np.inf
        # where no support is admissible, no bound is one
        assert optimum is not None and found <= optimum, (what, draft, known.__dict__)
        return found


def forge(rng: Any, loss: str, judge: Judge, n_files: int = 60) -> None:
    """A true proof, and false ones with one to three changes each."""
    known, draft = draw(rng, loss)
    judge(known, draft, "true")
    for _ in range(n_files):
        false, changes = draft.copy(), rng.choice(len(CHANGES), size=rng.integers(1, 4))
        for i in changes:
            try:
                CHANGES[i](rng, known, false)
            except (ValueError, IndexError, FloatingPointError, np.linalg.LinAlgError):
                continue  # there is nothing of the kind in this proof
        judge(known, false, " ".join(CHANGES[i].__name__ for i in changes))


def climb(rng: Any, loss: str, judge: Judge, n_steps: int = 60) -> None:
    """The point and the curvature that prove most of a node with the best support, by trial."""
    known = Known(rng, loss)
    n = known.X.shape[1]
    budget = int(rng.integers(1, n + 1))
    draft = Draft(stated(known, price=float(rng.choice([0.0, 0.1])), budget=budget, keep=[]))
    out = sorted(map(int, rng.permutation(n)[: rng.integers(1, n + 1)]))
    point = near_best(rng, known, draft, set(), set(range(n)))
    first = [[], [[FIX, point, -1, out]], [[SPLIT, -1, out[0], []], [CLOSE, -1, -1, []]]]
    draft.records = [*some(rng, first), [CLOSE, point, -1, []]]
    if point < 0 or rng.random() < 0.3:
        any_point = [np.arange(n), rng.standard_normal(n), -1]
        draft.points = [any_point]
        any_curvature(rng, known, draft)
        for record in draft.records:
            record[1] = 0 if record[0] != SPLIT else -1
    best, step = judge(known, draft, "climb"), 1.0
    for _ in range(n_steps):
        trial = draft.copy()
        for part in trial.points if rng.random() < 0.6 else trial.curves:
            shift = 1.0 + step * rng.standard_normal(part[1].size)
            part[1] = abs(part[1]) * shift if part in trial.points else part[1] * abs(shift)
        if rng.random() < 0.2:
            far_point(rng, known, trial)
        bound = judge(known, trial, "climb")
        step *= 1.5 if bound > best else 0.9
        if bound > best:
            draft, best = trial, bound


@pytest.mark.parametrize("loss", ["squared", *LOSSES])
def test_no_false_proof_passes(loss):
    judge, rng = Judge(), np.random.default_rng(7)
    with np.errstate(all="ignore"):
        for _ in range(3):
            forge(rng, loss, judge, 12)
            climb(rng, loss, judge, 12)
    assert judge.seen[BOUND] > 10


@pytest.mark.parametrize("rational", ["gmpy2", "fractions"])
def test_no_false_proof_passes_in_exact_arithmetic(rational, monkeypatch):
    if rational == "fractions":
        monkeypatch.setattr(sys.modules["blockl0.verify.exact"], "Rational", Fraction)
    judge, rng = Judge(exact=True), np.random.default_rng(8)
    with np.errstate(all="ignore"):
        for _ in range(8):
            forge(rng, "squared", judge, 12)
            climb(rng, "squared", judge, 12)
    assert judge.seen[BOUND] > 30


def test_a_file_about_more_than_the_verifier_knows_is_refused(rng, tmp_path):
    """Groups, bounds, costs: a header that names them would be about another problem."""
    X, y, path = rng.standard_normal((20, 4)), rng.standard_normal(20), tmp_path / "proof.npz"
    proof = blockl0.solve(X, y, n_nonzero_coefs=2, method="exact", proof=True).proof
    Proof(proof.claim, proof._arrays).save(path)
    assert blockl0.verify(path, X, y).gap < 1e-8
    for more in ({"groups": [[0, 1], [2, 3]]}, {"lower": 0.0}, {"costs": [1.0, 2.0, 1.0, 1.0]}):
        Proof({**proof.claim, **more}, proof._arrays).save(path, force=True)
        with pytest.raises(blockl0.ProofError, match=f"knows nothing of '{next(iter(more))}'"):
            blockl0.verify(path, X, y)
    Proof(proof.claim, {**proof._arrays, "groups": np.arange(4)}).save(path, force=True)
    with pytest.raises(blockl0.ProofError, match="groups"):
        blockl0.verify(path, X, y)


def test_an_intercept_far_from_zero(rng):
    """Of a loss without exponentials, no intercept is too far."""
    X, y = rng.standard_normal((30, 4)), 5e4 + rng.standard_normal(30)
    given = {"sample_weight": None, "loss": "huber", "ridge": 0.1, "n_nonzero_coefs": 2}
    problem = apply(as_problem(X, y, **given)).problem
    proof = solve_problem(problem, "exact", random_state=0, proof=True).proof
    assert verify_content(proof.claim, proof._arrays, X, y).gap < 1e-6


def closed_by_zero(m: int, **statement: Any) -> Draft:
    """One record, which closes all by the tangent at zero, of two columns with some curvature."""
    claim = {
        "n_samples": m, "n_features": 2, "loss": "squared", "parameter": None, "budget": 0,
        "price": 0.0, "ridge": 0.0, "keep": [], "intercept": False, "support": [], "coef": [],
    }  # fmt: skip
    draft = Draft({**claim, **statement}, [[CLOSE, 0, -1, []]])
    draft.points = [[np.empty(0), np.empty(0), draft.add_curve([0, 1], np.full(2, 1e-3))]]
    return draft


def test_weights_whose_sum_overflows_are_refused(rng):
    """Means over an infinite sum are zero: y, a constant, would seem far from every intercept."""
    X, y, weights = 1e-154 * rng.standard_normal((20, 2)), np.full(20, 1e-154), np.full(20, 1e308)
    draft = closed_by_zero(20, intercept=True, objective=10.0)
    with pytest.raises(blockl0.ProofError, match="sum of the weights"):
        verify_content(draft.claim, draft.arrays(), X, y, weights)


def test_a_column_whose_square_vanishes_is_refused_beside_a_ridge(rng):
    X, y = rng.standard_normal((20, 2)) * [1.0, 1e-200], rng.standard_normal(20)
    draft = closed_by_zero(20, ridge=1.0, objective=float(0.5 * y @ y))
    with pytest.raises(blockl0.ProofError, match="beyond what is proven"):
        verify_content(draft.claim, draft.arrays(), X, y)
    found = verify_content(draft.claim, draft.arrays(), X * [1.0, 0.0], y)
    assert found.gap < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", *LOSSES])
def test_no_false_proof_passes_of_many(loss):
    """More than 10⁵ files of all losses; what is read to the end proves what is true, or less."""
    judge = Judge()
    for seed in range(720 if loss == "squared" else 25):
        rng = np.random.default_rng([seed, len(loss)])
        with np.errstate(all="ignore"):
            forge(rng, loss, judge)
            climb(rng, loss, judge)
    assert judge.seen.total() > (87000 if loss == "squared" else 3000)
    assert judge.seen[BOUND] > 0.3 * judge.seen.total()


@pytest.mark.slow
def test_no_false_proof_of_many_passes_in_exact_arithmetic():
    judge = Judge(exact=True)
    for seed in range(200):
        rng = np.random.default_rng([seed, 99])
        with np.errstate(all="ignore"):
            forge(rng, "squared", judge)
            climb(rng, "squared", judge)
    assert judge.seen.total() > 24000 and judge.seen[BOUND] > 0.3 * judge.seen.total()
