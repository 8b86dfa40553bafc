from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from blockl0.data import design as design_module
from blockl0.data.design import Csc, Dense, as_design, by_column

M, N = 23, 17
FORMATS = ["csc", "csr", "coo", "lil", "dok", "bsr", "dia"]


def make_matrix(rng):
    X = rng.standard_normal((M, N)) * (rng.random((M, N)) < 0.4)
    X[:, 5] = 0.0  # an empty column
    X[3] = 0.0  # an empty row
    return X


@pytest.fixture(params=["dense", "csc"])
def pair(request, rng):
    X = make_matrix(rng)
    return X, as_design(X if request.param == "dense" else sp.csc_array(X))


@pytest.mark.parametrize("idx", [[], [5], [2, 0, 9], list(range(N)), np.array([16, 3], np.int32)])
def test_operations_equal_numpy(pair, rng, idx):
    X, design = pair
    X_B = X[:, np.asarray(idx, dtype=int)]
    w, r, v, weights = (rng.random(size) for size in (N, M, len(idx), M))
    allclose = np.testing.assert_allclose
    assert design.shape == (M, N)
    assert design.nbytes > 0
    allclose(design.matvec(w), X @ w)
    allclose(design.rmatvec(r), X.T @ r)
    allclose(design.columns(idx), X_B)
    allclose(design.column_matvec(idx, v), X_B @ v)
    allclose(design.gram(idx), X_B.T @ X_B)
    allclose(design.gram(idx, weights), X_B.T @ (weights[:, None] * X_B))
    allclose(design.full_gram(), X.T @ X, atol=1e-13)
    allclose(design.full_gram(weights), X.T @ (weights[:, None] * X), atol=1e-13)
    allclose(design.sq_norms(), (X**2).sum(axis=0))
    allclose(design.sq_norms(weights), weights @ X**2)
    part = design.take(idx)
    assert type(part) is type(design) and part.shape == X_B.shape
    allclose(part.columns(range(len(idx))), X_B)
    V = rng.random((M, 3))
    allclose(design.cross(V, slice(2, 11)), V.T @ X[:, 2:11])
    allclose(part.cross(V, slice(None)), V.T @ X_B)


def test_results_are_float64_and_columns_are_fresh_fortran(pair):
    _, design = pair
    columns = design.columns([1, 4])
    assert columns.flags.f_contiguous
    columns[:] = 7.0
    assert not (design.columns([1, 4]) == 7.0).any()
    for values in (design.matvec(np.zeros(N)), design.gram([0]), design.sq_norms(), columns):
        assert values.dtype == np.float64


def test_matvec_of_a_sparse_vector(pair, rng):
    X, design = pair
    w = np.zeros(N)
    np.testing.assert_array_equal(design.matvec(w), np.zeros(M))
    w[[2, 11]] = rng.standard_normal(2)
    np.testing.assert_allclose(design.matvec(w), X @ w)


def test_sparse_full_gram_in_chunks(rng, monkeypatch):
    monkeypatch.setattr(design_module, "GRAM_CHUNK", 5)
    X = make_matrix(rng)
    np.testing.assert_allclose(as_design(sp.csc_array(X)).full_gram(), X.T @ X, atol=1e-13)


def test_sums_in_parts_equal_sums_at_once(rng, monkeypatch):
    X, weights = make_matrix(rng), rng.random(M)
    monkeypatch.setattr(design_module, "GRAM_BYTES", 200)
    monkeypatch.setattr(Csc, "chunk", 4)
    for design in (as_design(X), as_design(sp.csc_array(X))):
        idx = [4, 0, 9, 9]
        expected = X[:, idx].T @ (weights[:, None] * X[:, idx])
        np.testing.assert_allclose(design.gram(idx, weights), expected, atol=1e-13)
        np.testing.assert_allclose(design.gram(idx), X[:, idx].T @ X[:, idx], atol=1e-13)
        np.testing.assert_allclose(design.sq_norms(weights), weights @ X**2)
        np.testing.assert_allclose(design.sq_norms(), (X**2).sum(axis=0))


def test_fortran_float64_is_not_copied(rng):
    X = np.asfortranarray(make_matrix(rng))
    assert np.shares_memory(as_design(X).X, X)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8, bool])
def test_any_numeric_type_becomes_fortran_float64(order, dtype):
    X = np.array([[0, 1, 1], [1, 0, 1]], dtype=dtype, order=order)
    for design in (as_design(X), as_design(X[::-1][::-1]), as_design(X.tolist())):
        assert isinstance(design, Dense)
        assert design.X.dtype == np.float64
        assert design.X.flags.f_contiguous
        np.testing.assert_array_equal(design.X, X.astype(float))


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("make", [sp.coo_array, sp.coo_matrix])
def test_every_sparse_format(rng, make, format_):
    X = make_matrix(rng)
    design = as_design(make(X).asformat(format_))
    assert isinstance(design, Csc)
    np.testing.assert_array_equal(design.columns(range(N)), X)
    assert design.matrix.has_sorted_indices


def test_csc_float64_is_shared_and_unsorted_input_is_left_alone(rng):
    A = sp.csc_array(make_matrix(rng))
    assert np.shares_memory(as_design(A).data, A.data)
    data, indices = np.array([1.0, 2.0, 3.0]), np.array([2, 0, 0], dtype=np.int32)
    unsorted = sp.csc_array((data, indices, np.array([0, 2, 3], dtype=np.int32)), shape=(3, 2))
    design = as_design(unsorted)
    assert design.indices.tolist() == [0, 2, 0]
    assert indices.tolist() == [2, 0, 0]
    np.testing.assert_array_equal(design.columns([0, 1]), [[2, 3], [0, 0], [1, 0]])


def test_duplicate_entries_are_summed():
    A = sp.coo_array(([1.0, 2.0, 4.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    np.testing.assert_array_equal(as_design(A).columns([0, 1]), [[0, 3], [4, 0]])
    repeated = sp.csc_array(
        (np.array([1.0, 2.0]), np.array([1, 1]), np.array([0, 2])), shape=(2, 1)
    )
    assert as_design(repeated).sq_norms().tolist() == [9.0]


def test_sparse_is_never_densified(rng):
    m, n = 20_000, 30_000  # 4.8 GB if dense
    rows, cols = rng.integers(m, size=6000), rng.integers(n, size=6000)
    A = sp.coo_array((rng.random(6000), (rows, cols)), shape=(m, n)).tocsc()
    tracemalloc.start()
    design = as_design(A)
    eta = design.matvec(np.ones(n))
    design.rmatvec(eta), design.sq_norms(eta), design.gram([1, 5], eta), design.columns([3])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20e6


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_extreme_scales(rng, scale):
    X = scale * make_matrix(rng)
    for design in (as_design(X), as_design(sp.csr_array(X))):
        np.testing.assert_allclose(design.full_gram(), X.T @ X, rtol=1e-10, atol=1e-14 * scale**2)


@pytest.mark.parametrize("shape", [(300, 7), (129, 3), (128, 4), (0, 3), (5, 0)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_rows_are_put_into_columns_some_at_a_time(monkeypatch, shape, dtype):
    monkeypatch.setattr(design_module, "MANY_ENTRIES", 1)
    X = (100.0 * np.random.default_rng(0).standard_normal(shape)).astype(dtype)
    for given in (X, X[::-1], np.asfortranarray(X)):
        found = by_column(given)
        assert found.flags.f_contiguous and found.dtype == np.float64
        assert np.array_equal(found, given)
    assert by_column(found) is found
