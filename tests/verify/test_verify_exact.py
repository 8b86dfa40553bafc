"""The verifier in exact arithmetic: what it computes is right to the last digit."""

from __future__ import annotations

import sys
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import blockl0
from blockl0 import ProofError
from blockl0.problem.preprocess import apply
from blockl0.problem.problem import as_problem
from blockl0.solve import solve_problem
from blockl0.verify import verify_content
from blockl0.verify.base import CLOSE, FIX, centred
from blockl0.verify.integers import integers, product, require_semidefinite, scale_of
from forged_proofs import Draft


def written(X: Any, y: Any, weights: Any = None, intercept: bool = False, **options: Any) -> Any:
    """The content of a proof."""
    problem = as_problem(X, y, sample_weight=weights, **options)
    problem = apply(problem).problem if intercept else problem
    proof = solve_problem(problem, "exact", random_state=0, proof=True).proof
    return proof.claim, proof._arrays


def objective(claim: Any, X: Any, y: Any, weights: Any, v: Any) -> Fraction:
    """F, row by row, with the best intercept."""
    rests = [Fraction(t) - sum(Fraction(a) * Fraction(b) for a, b in zip(row, v, strict=True))
             for row, t in zip(X.tolist(), y.tolist(), strict=True)]  # fmt: skip
    omega = [Fraction(w) for w in weights.tolist()]
    mean = sum(w * r for w, r in zip(omega, rests, strict=True)) / sum(omega)
    mean = mean if claim["intercept"] else Fraction(0)
    loss = sum(w * (r - mean) ** 2 for w, r in zip(omega, rests, strict=True)) / 2
    held = len({*np.flatnonzero(v), *claim["keep"]})
    squares = sum(Fraction(x) ** 2 for x in v)
    return loss + Fraction(claim["ridge"]) * squares / 2 + Fraction(claim["price"]) * held


def optimum(claim: Any, X: Any, y: Any, weights: Any) -> Fraction:
    """The least objective over all supports, each solved in fractions."""
    n, keep, found = X.shape[1], set(claim["keep"]), []
    rows = [[Fraction(x) for x in row] for row in np.column_stack([X, y]).tolist()]
    omega = [Fraction(w) for w in weights.tolist()]
    for j in range(n + 1) if claim["intercept"] else ():
        mean = sum(w * row[j] for w, row in zip(omega, rows, strict=True)) / sum(omega)
        for row in rows:
            row[j] -= mean
    for size in range(len(keep), min(claim["budget"], n) + 1):
        for S in combinations(range(n), size):
            if not keep <= set(S):
                continue
            at = [*S, n]
            G = [[sum(w * row[i] * row[j] for w, row in zip(omega, rows, strict=True)) for j in at]
                 for i in at]  # fmt: skip
            for j in range(size):
                G[j][j] += Fraction(claim["ridge"])
                for i in range(j + 1, size + 1):
                    share = G[i][j] / G[j][j] if G[j][j] else Fraction(0)
                    G[i] = [a - share * b for a, b in zip(G[i], G[j], strict=True)]
            found.append(G[-1][-1] / 2 + Fraction(claim["price"]) * size)
    return min(found)


FORMS = (
    {"n_nonzero_coefs": 2},
    {"alpha": 0.7},
    {"n_nonzero_coefs": 3, "alpha": 0.2, "ridge": 0.3, "keep": [4]},
    {"n_nonzero_coefs": 2, "ridge": 1e-3},
)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("intercept", [False, True])
def test_objective_and_bound_are_exact(rng, form, intercept):
    X = rng.standard_normal((14, 5)) * [1.0, 1e-9, 1e5, 1.0, 3.0] + [0.0, 0.0, 1e7, 0.0, 0.0]
    y, weights = X[:, 0] - 2e-5 * X[:, 2] + rng.standard_normal(14), rng.uniform(0.1, 3.0, 14)
    claim, arrays = written(X, y, weights, intercept, **form)
    found = verify_content(claim, arrays, X, y, weights, exact=True)
    assert all(type(x) is Fraction for x in found) and found.allowance == 0
    v = np.zeros(5)
    v[claim["support"]] = claim["coef"]
    assert found.objective == objective(claim, X, y, weights, v.tolist())
    assert found.at_zero == objective({**claim, "keep": []}, X, y, weights, [0.0] * 5)
    least = optimum(claim, X, y, weights)
    assert found.lower_bound <= least <= found.objective
    assert found.gap == (found.objective - found.lower_bound) / found.objective
    assert found.objective - found.lower_bound <= Fraction(1e-8) * found.at_zero
    rounded = verify_content(claim, arrays, X, y, weights)
    assert (
        rounded.lower_bound <= found.lower_bound <= rounded.lower_bound + 1.01 * rounded.allowance
    )


def test_proofs_of_one_tree_leave_hardly_a_gap(rng):
    """A support that is alone in its node is bounded by its own minimum, but for its rounding."""
    X = rng.standard_normal((60, 12))
    y = X[:, :3] @ [3.0, -2.0, 1.0] + rng.standard_normal(60)
    claim, arrays = written(X, y, n_nonzero_coefs=3)
    found = verify_content(claim, arrays, X, y, exact=True)
    assert found.gap < Fraction(1, 10**20) < verify_content(claim, arrays, X, y).gap


def test_the_standard_library_gives_the_same_fractions(rng, monkeypatch):
    pytest.importorskip("gmpy2")
    X, y = rng.standard_normal((30, 8)), rng.standard_normal(30)
    claim, arrays = written(X, y, n_nonzero_coefs=3, alpha=0.05, intercept=True)
    found = verify_content(claim, arrays, X, y, exact=True)
    monkeypatch.setattr(sys.modules["blockl0.verify.exact"], "Rational", Fraction)
    assert found == verify_content(claim, arrays, X, y, exact=True)


def test_files(rng, tmp_path):
    X, y, path = rng.standard_normal((30, 8)), rng.standard_normal(30), tmp_path / "proof.npz"
    blockl0.solve(X, y, n_nonzero_coefs=2, method="exact", proof=path)
    assert blockl0.verify(path, X, y, exact=True).gap < 1e-9
    with pytest.raises(ProofError, match="objective is"):
        blockl0.verify(path, X, 1.001 * y, exact=True)
    blockl0.solve(
        X, y > 0, n_nonzero_coefs=2, ridge=1.0, loss="logistic", method="exact", proof=path
    )
    with pytest.raises(ProofError, match="for the squared loss; that of the proof is 'logistic'"):
        blockl0.verify(path, X, y > 0, exact=True)


@pytest.mark.parametrize("name", ["curve_values", "point_values"])
def test_numbers_that_are_none_are_refused(rng, name):
    X, y = rng.standard_normal((30, 8)), rng.standard_normal(30)
    claim, arrays = written(X, y, n_nonzero_coefs=2)
    for number in (np.nan, np.inf, -np.inf):
        changed = {**arrays, name: arrays[name].copy()}
        changed[name][0] = number
        with pytest.raises(ProofError):
            verify_content(claim, changed, X, y, exact=True)


def test_columns_that_are_nearly_constant_are_named(rng):
    X, y = rng.standard_normal((30, 4)), rng.standard_normal(30)
    X[:, 2] = 0.3
    X[::2, 2] = 0.1 + 0.2
    claim, arrays = written(X, y, n_nonzero_coefs=2, intercept=True)
    assert verify_content(claim, arrays, X, y).gap < 1e-9
    with pytest.raises(ProofError, match=r"Columns \[2\] are constant but for rounding"):
        verify_content(claim, arrays, X, y, exact=True)
    X[:, 2] = 0.3
    assert verify_content(claim, arrays, X, y, exact=True).gap < 1e-9


def rough_draft(rng: Any) -> tuple[Any, ...]:
    """Many rows, columns that nearly depend on each other, in other units and far from zero."""
    m, n = int(rng.choice([3, 20, 100, 2000])), int(rng.integers(1, 13))
    X = rng.standard_normal((m, n)) + rng.choice([0.0, 10.0 ** rng.uniform(0, 8)])
    for j in range(1, n):
        if rng.random() < 0.4:
            X[:, j] = X[:, j - 1] + 10.0 ** -rng.uniform(0, 12) * X[:, j]
    X *= 10.0 ** rng.integers(-4, 5, n)
    y = X @ (rng.standard_normal(n) * (rng.random(n) < 0.4))
    y += 10.0 ** rng.uniform(-8, 3) * rng.standard_normal(m)
    weights = rng.choice([np.ones(m), rng.uniform(0.01, 1.0, m) * 10.0 ** rng.integers(-6, 6)])
    intercept, ridge = bool(rng.random() < 0.4), float(rng.choice([0.0, 0.0, 1e-6, 1.0]))
    given = (centred(X, weights), centred(y, weights)) if intercept else (X, y)
    A, t = np.sqrt(weights)[:, None] * given[0], np.sqrt(weights) * given[1]
    sizes = np.sqrt((A**2).sum(axis=0) + ridge)
    rows = np.vstack([A, np.sqrt(ridge) * np.eye(n)]) / sizes
    w = np.linalg.lstsq(rows, np.append(t, np.zeros(n)), rcond=None)[0] / sizes
    far = 10.0 ** rng.uniform(-12, 8) * np.linalg.svd(rows)[2][-1] / sizes
    w = w * (rng.random(n) < rng.choice([0.5, 1.0])) + rng.choice([0.0, 0.0, 1.0]) * far
    share = rng.choice([0.5, 0.9, 0.999, 1.0 - 1e-6, 1.0 - 1e-9, 1.0])
    least = max(np.linalg.eigvalsh(rows.T @ rows)[0], 1e-18)
    claim = {
        "n_samples": m, "n_features": n, "loss": "squared", "parameter": None, "keep": [],
        "budget": int(rng.integers(0, n + 1)), "price": float(rng.choice([0.0, 1.0])),
        "ridge": ridge, "intercept": intercept, "support": [], "coef": [],
        "objective": float(0.5 * t @ t),
    }  # fmt: skip
    draft = Draft(claim)
    point = draft.add_point(w, draft.add_curve(np.arange(n), share * least * sizes**2))
    fixed = [[FIX, point, -1, [int(rng.integers(n))]]] if rng.random() < 0.3 else []
    draft.records = [*fixed, [CLOSE, point, -1, []]]
    return draft, X, y, weights


@pytest.mark.parametrize("n_drafts", [12, pytest.param(600, marks=pytest.mark.slow)])
def test_allowances_cover_every_rounding(n_drafts):
    """What rounding leaves of a bound is never above the bound itself."""
    n_compared = 0
    for seed in range(n_drafts):
        draft, *data = rough_draft(np.random.default_rng([seed, 5]))
        content = draft.claim, draft.arrays()
        try:
            rounded = verify_content(*content, *data)
        except ProofError:
            continue
        # what holds with roundings allowed for holds without them
        exact = verify_content(*content, *data, exact=True)
        assert rounded.lower_bound <= exact.lower_bound, seed
        n_compared += 1
    assert n_compared > 0.2 * n_drafts


# integers -----------------------------------------------------------------------------------------


def test_products_lose_no_digit(rng):
    for _ in range(30):
        m, p, q = rng.integers(1, 40, 3) * [rng.choice([1, 20]), 1, 1]
        A = rng.standard_normal((m, p)) * 10.0 ** rng.integers(-40, 40, p)
        B = rng.standard_normal((m, q)) * (rng.random((m, q)) < 0.5)
        left, right = integers(A, scale_of(A)), integers(B, scale_of(B))
        assert (product(left, right) == left.T @ right).all()


def test_integers_of_all_kinds_of_numbers():
    x = np.array([0.0, -0.0, 5e-324, -1e308, 0.1, 3.0, 2.0**52 + 1.0, -7.5])
    k = scale_of(x)
    assert k == 1074
    for whole, number in zip(integers(x, k), x, strict=True):
        assert type(whole) is int and Fraction(whole, 1 << k) == Fraction(float(number))
    assert scale_of(np.array([4.0, 8.0])) == 0 and list(integers(np.array([4.0]), 1)) == [8]


def is_semidefinite(G: Any) -> bool:
    """By elimination in fractions."""
    G = [[Fraction(int(x)) for x in row] for row in G]
    for j in range(len(G)):
        if G[j][j] < 0 or (G[j][j] == 0 and any(G[i][j] for i in range(j, len(G)))):
            return False
        for i in range(j + 1, len(G)) if G[j][j] else ():
            share = G[i][j] / G[j][j]
            G[i] = [a - share * b for a, b in zip(G[i], G[j], strict=True)]
    return True


def test_definite_is_what_is_definite_in_fractions(rng):
    """Matrices whose least eigenvalue is moved across zero, by much and by next to nothing."""
    seen = set()
    for _ in range(200):
        q = int(rng.integers(1, 7))
        B = integers(
            np.rint(1e6 * rng.standard_normal((q + 1, q)) * 10.0 ** rng.integers(0, 9, q)), 0
        )
        G = B.T @ B
        shift = float(np.linalg.eigvalsh(G.astype(float))[0]) * (
            1.0 + rng.choice([-1, 1]) * 10.0 ** rng.uniform(-17, 0)
        )
        G[np.diag_indices(q)] -= int(shift)
        try:
            require_semidefinite(G)
            assert is_semidefinite(G)
            seen.add(True)
        except ProofError:
            seen.add(False)
    assert seen == {True, False}
    with pytest.raises(ProofError, match="definite"):
        require_semidefinite(np.array([[10**400, 10**400 + 1], [10**400 + 1, 10**400]], object))
    require_semidefinite(
        np.array([[10**400, 10**400 - 10**390], [10**400 - 10**390, 10**400]], object)
    )
