"""What every storage of X can do, dense, sparse, centred or taken as it is, against NumPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from blockl0.certificate import certify_problem
from blockl0.problem.centred import Centered
from blockl0.problem.design import Dense, Design, as_design
from blockl0.problem.design_base import SHORT_CHUNK
from blockl0.problem.fits import least_squares_on
from blockl0.problem.problem import as_problem
from blockl0.problem.scaling import MODERATE, balance

M, N = 21, 9
STORAGES = ["dense", "csc", "centred dense", "centred csc"]


def make_matrix(rng):
    X = rng.standard_normal((M, N)) * (rng.random((M, N)) < 0.5)
    X[:, 3] = 0.0
    X[:, 5] = 2.5  # constant: zero once it is centred
    X[:, 7] = np.abs(X[:, 7]) + 1.0
    return X


def store(X, storage):
    """The design, and the dense matrix that it stands for."""
    design = as_design(X if storage.endswith("dense") else sp.csc_array(X))
    if storage.startswith("centred"):
        return Centered(design), X - X.mean(axis=0)
    return design, X


@pytest.fixture(params=STORAGES)
def pair(request, rng):
    return store(make_matrix(rng), request.param)


def test_ranges(pair):
    design, X = pair
    low, high = design.ranges()
    np.testing.assert_allclose(low, X.min(axis=0), atol=1e-14)
    np.testing.assert_allclose(high, X.max(axis=0), atol=1e-14)


def test_lengths_also_of_columns_whose_squares_vanish(pair):
    design, X = pair
    np.testing.assert_allclose(design.lengths(), np.linalg.norm(X, axis=0), atol=1e-14)
    short = design.scaled(np.full(N, 2.0**-1000))
    np.testing.assert_allclose(
        short.lengths(), np.ldexp(np.abs(X).max(axis=0), -1000), rtol=1e-13, atol=1e-316
    )


def test_lengths_of_many_short_columns():
    n = 2 * SHORT_CHUNK + 3
    X = np.diag(np.arange(n) % 3 * 1e-200)
    for matrix in (X, sp.csc_array(X)):
        # a maximum of the entries themselves
        assert np.array_equal(as_design(matrix).lengths(), np.diag(X))


def test_scaled_columns(pair, rng):
    design, X = pair
    scale = 2.0 ** rng.integers(-3, 4, N)
    scaled = design.scaled(scale)
    assert type(scaled) is type(design)
    every = np.arange(N)
    # powers of two change no digit
    assert np.array_equal(scaled.columns(every), design.columns(every) * scale)
    np.testing.assert_allclose(scaled.rmatvec(np.ones(M)), X.sum(axis=0) * scale, atol=1e-12)
    np.testing.assert_allclose(scaled.sq_norms(), (X**2).sum(axis=0) * scale**2, atol=1e-12)
    np.testing.assert_allclose(design.columns(every), X, atol=1e-14)


def test_moderate_by_its_entries_is_moderate_by_its_lengths(pair):
    design, _ = pair
    for power in (-400, -90, 0, 90, 400):
        other = design.scaled(np.full(N, 2.0**power))
        lengths = other.lengths()
        real = lengths[lengths > 0.0]
        is_moderate = real.min() >= 1.0 / MODERATE and real.max() <= MODERATE
        # it may not know, but what it says is true
        assert is_moderate or not other.is_moderate(MODERATE)
        balanced, scale, _ = balance(other, 0.0)
        assert (scale is None) == is_moderate
        if scale is not None:
            np.testing.assert_allclose(balanced.columns([0]), other.columns([0]) * scale[0])


def test_moments_of_the_stored_entries(pair, rng):
    design, X = pair
    weights, means = rng.random(M), rng.standard_normal(N)
    moments = design.entry_moments(weights, means)
    if moments is not None:
        np.testing.assert_allclose(moments[0], weights @ (X - means), atol=1e-12)
        np.testing.assert_allclose(moments[1], weights @ (X - means) ** 2)


def test_moments_some_columns_at_a_time(rng, monkeypatch):
    monkeypatch.setattr("blockl0.problem.design.CACHE_BYTES", 80)
    X = make_matrix(rng)
    centred = Centered(as_design(sp.csc_array(X)))
    np.testing.assert_allclose(centred.sq_norms(), ((X - X.mean(axis=0)) ** 2).sum(axis=0))


def test_only_a_centred_design_is_flat_somewhere_and_centred_anew(pair, rng):
    design, _ = pair
    weights = rng.random(M)
    other = design.recentred(weights)
    if design.is_flat is None:
        assert design.is_constant is None and other is design
        assert not other.shift_from(design).any()
        return
    assert np.flatnonzero(design.is_flat).tolist() == [3, 5]
    assert np.flatnonzero(design.is_constant).tolist() == [5]
    np.testing.assert_allclose(other.rmatvec(weights), np.zeros(N), atol=1e-12)
    np.testing.assert_allclose(
        other.columns([0]) + other.shift_from(design)[0], design.columns([0])
    )


def test_a_design_is_taken_as_it_is(pair):
    design, X = pair
    assert as_design(design) is design and isinstance(design, Design)
    problem = as_problem(design, X[:, 0], n_nonzero_coefs=1)
    assert problem.design is design
    assert problem.objective(np.eye(N)[0]) == pytest.approx(0.0, abs=1e-20)


def test_a_storage_must_give_every_operation():
    class Half(Design):
        chunk = 1

    with pytest.raises(TypeError, match="abstract"):
        Half()  # pyright: ignore[reportAbstractUsage]


@pytest.mark.parametrize("offset", [0.0, 10.0, 1e7])
@pytest.mark.parametrize("storage", ["dense", "csc"])
@pytest.mark.parametrize("level", ["basic", "L", 1, 2, 3, 4])
def test_a_centred_design_is_certified_as_its_copy_is(storage, offset, level):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((40, 12)) + offset * (np.arange(12) % 2)
    X[:, 4] = 3.0
    X[:, 6] = X[:, 5] + 1e-3 * X[:, 6]
    y = X[:, :3] @ [1.0, 1.0, -1.0] + rng.standard_normal(40)
    problem = as_problem(X if storage == "dense" else sp.csc_array(X), y, n_nonzero_coefs=3)
    centred = replace(problem, design=Centered(problem.design), y=y - y.mean())
    copied = replace(centred, design=Dense(centred.design.columns(np.arange(12))))
    for support in ([0, 1, 2], [0, 1, 5], [5, 7, 9], [8]):
        w = least_squares_on(copied, np.array(support))
        for outside in ("refit", "fixed"):
            answers = [
                certify_problem(p, w, level=level, outside=outside) for p in (centred, copied)
            ]
            here, there = answers
            assert here.holds == there.holds
            assert here.objective == pytest.approx(there.objective, rel=1e-9)
            if not here.holds:
                assert here.better_objective == pytest.approx(there.better_objective, rel=1e-9)
