"""Proofs made up to be false, at the limits of what floating-point numbers can tell."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import blockl0
from blockl0 import ProofError
from blockl0.exact.proof import Proof
from blockl0.verify import verify_content
from blockl0.verify.files import read_proof
from cli_runner import QUICK, folder, run

__all__ = ["folder"]

PRECISE = 64.0 * float(np.finfo(np.longdouble).eps)


def made_up(X, y, d, w, *, ridge=0.0, price=0.0, budget=1, **claimed):
    """What the verifier makes of one tangent at w with the curvature d, None for the ridge."""
    (m, n), at = X.shape, np.flatnonzero(w)
    has_curve = d is not None
    claim = {
        "n_samples": m, "n_features": n, "loss": "squared", "parameter": None, "budget": budget,
        "price": price, "ridge": ridge, "keep": [], "intercept": False, "support": [], "coef": [],
        "objective": float(0.5 * y @ y), **claimed,
    }  # fmt: skip
    none, whole = np.empty(0, dtype=np.int64), np.arange(n)
    arrays = {
        "records": np.array([[0, 0, -1, 0]]), "fixed": none,
        "point_curve": np.array([0 if has_curve else -1]), "point_start": np.array([0, at.size]),
        "point_columns": at, "point_values": w[at],
        "curve_start": np.array([0, n] if has_curve else [0]),
        "curve_columns": whole if has_curve else none,
        "curve_values": d if has_curve else np.empty(0),
    }  # fmt: skip
    return verify_content(claim, arrays, X, y)


@pytest.mark.parametrize("size", [1e-200, 1e-163, 1e-155, 1e155, 1e160])
@pytest.mark.parametrize("ridge", [0.0, 1e-320])
def test_squares_that_vanish_prove_nothing(rng, size, ridge):
    """The column explains y, but its square is no number, and no score tells that it does."""
    y = rng.standard_normal(6)
    X = size * y[:, None]
    d = None if ridge else np.array([0.5 * max(size, 1e-100) ** 2 if size < 1.0 else 1e300])
    with pytest.raises(ProofError, match="scale them"):
        made_up(X, y, d, np.zeros(1), ridge=ridge)


def test_a_target_whose_square_vanishes(rng):
    X = rng.standard_normal((6, 2))
    with pytest.raises(ProofError, match="scale them"):
        made_up(X, 1e-140 * X[:, 0], np.full(2, 1e-100), np.zeros(2))


def test_a_budget_beyond_memory_is_that_of_all_columns(rng):
    X, y = rng.standard_normal((6, 2)), rng.standard_normal(6)
    d = np.full(2, 1e-3)
    assert made_up(X, y, d, np.zeros(2), budget=10**14) == made_up(X, y, d, np.zeros(2), budget=2)


def optimum(X, y, ridge, price, budget):
    """By orthogonal vectors in extended precision."""
    n = X.shape[1]
    A = np.vstack([X, np.sqrt(ridge) * np.eye(n)]).astype(np.longdouble)
    best = np.inf
    for size in range(budget + 1):
        for S in combinations(range(n), size):
            rest, basis = np.append(y, np.zeros(n)).astype(np.longdouble), []
            for j in S:
                v = A[:, j] / np.sqrt(A[:, j] @ A[:, j])
                for u in basis * 3:
                    v = v - u * (u @ v)
                length = np.sqrt(v @ v)
                if length > 1e-15:
                    basis.append(v / length)
                    rest = rest - basis[-1] * (basis[-1] @ rest)
            best = min(best, 0.5 * rest @ rest + price * size)
    return best


def test_the_largest_curvature_that_passes_proves_nothing_false():
    """Columns that nearly depend on each other, the point near the fit: where rounding counts."""
    n_proven = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        m, n = rng.integers(1, 8), rng.integers(1, 4)
        X = rng.standard_normal((m, n))
        X[:, 0] = X[:, -1] + 10.0 ** -rng.integers(0, 16) * X[:, 0]
        X *= 10.0 ** rng.integers(-18, 18, n)
        norms = np.linalg.norm(X, axis=0)
        y = X / norms @ rng.standard_normal(n) + 10.0 ** -rng.integers(0, 16) * rng.random(m)
        ridge = float(norms.min() ** 2 * 10.0 ** -rng.integers(0, 18)) * (seed % 2)
        price, budget = float(y @ y * 10.0 ** -rng.integers(0, 9)), int(rng.integers(0, n + 1))
        Z = np.vstack([X, np.sqrt(ridge) * np.eye(n)]) / norms
        w = np.linalg.lstsq(Z, np.append(y, np.zeros(n)), rcond=1e-14)[0] / norms
        d = norms**2 / np.maximum(np.linalg.pinv(Z.T @ Z).diagonal(), 1e-30)
        asked = {"ridge": ridge, "price": price, "budget": budget}
        low, high, found = 0.0, 2.0, None
        for _ in range(40):
            middle = 0.5 * (low + high)
            try:
                found, low = made_up(X, y, middle * d, w, **asked), middle
            except ProofError:
                high = middle
        if found is not None:
            n_proven += 1
            assert found.lower_bound <= optimum(X, y, **asked) * (1.0 + 1e-15) + PRECISE * (y @ y)
    assert n_proven > 30


def test_a_proof_that_rounding_blurs_is_said_to_be(rng, tmp_path, caplog):
    X = rng.standard_normal((9, 3))
    X[:, 1] = X[:, 0] + 3e-6 * rng.standard_normal(9)
    y = rng.standard_normal(9)
    path = tmp_path / "proof.npz"
    result = blockl0.solve(X, y, n_nonzero_coefs=3, method="exact", proof=path, random_state=0)
    assert result.status is blockl0.Status.OPTIMAL and result.gap == 0.0
    assert result.note is not None and "rounding hides more" in caplog.text
    assert result.proof.gap > 1e-6 and blockl0.verify(path, X, y).gap <= result.proof.gap
    assert 0.0 <= result.proof.claim["lower_bound"] < result.objective
    clear = blockl0.solve(X[:, 1:], y, n_nonzero_coefs=2, method="exact", proof=True)
    assert clear.note is None and clear.proof.gap < 1e-8


def test_the_command_line_refuses_a_file_without_a_loss(folder):
    given = ("data.csv", "--drop", "kind", "--drop", "size", "-t", "y")
    run("fit", *given, *QUICK, "-k", 3, "--proof", "proof.npz")
    claim, arrays = read_proof("proof.npz")
    arrays.pop("header")
    for loss in (None, "absolute", 3, ["squared"]):
        Proof({**claim, "loss": loss}, arrays).save("proof.npz", force=True)
        done = run("verify", "proof.npz", *given, code=1)
        assert "Refused: Loss" in done.stderr and "is unknown" in done.stderr


# columns that no curvature covers ----------------------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("w", [1e4, -1e9, 1e-3])
def test_a_column_without_effect_bends_nothing(rng, intercept, w):
    """Split by a column of zeros, or a constant one; a point far along it closes what is without.

    The tangent there would be ½·d·w² too high, whatever d is.
    """
    X = rng.standard_normal((50, 3))
    X[:, 0] = 3.7 * intercept
    y = 3.0 * X[:, 1]
    at_zero = 0.5 * np.sum((y - y.mean() * intercept) ** 2)
    claim = {
        "n_samples": 50, "n_features": 3, "loss": "squared", "parameter": None, "budget": 1,
        "price": 0.0, "ridge": 0.0, "keep": [], "intercept": intercept, "support": [], "coef": [],
        "objective": at_zero,
    }  # fmt: skip
    arrays = {
        "records": np.array([[2, -1, 0, 0], [0, 0, -1, 0], [0, 1, -1, 0]]),
        "fixed": np.empty(0, int), "point_curve": np.array([0, 0]),
        "point_start": np.array([0, 0, 1]), "point_columns": np.array([0]),
        "point_values": np.array([w]), "curve_start": np.array([0, 3]),
        "curve_columns": np.arange(3), "curve_values": np.array([0.5, 1.0, 1.0]),
    }  # fmt: skip
    assert verify_content(claim, arrays, X, y).lower_bound <= 1e-9 * at_zero
