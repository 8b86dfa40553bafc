"""What every storage of X can do, dense, sparse, centred or taken as it is, against NumPy."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from blockl0 import Moments, solve
from blockl0.certify import certify_problem
from blockl0.data.blocks import Blocks
from blockl0.data.centred import Centered, centred
from blockl0.data.design import MODERATE, SHORT_CHUNK, Dense, Design, as_design, balance
from blockl0.problem.fits import least_squares_on
from blockl0.problem.problem import as_problem
from blockl0.storage import ArraySource, ReadAhead

M, N = 21, 9
STORAGES = ["dense", "csc", "centred dense", "centred csc", "held dense"]


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
    if storage.startswith("held"):
        return centred(design), X - X.mean(axis=0)
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
    monkeypatch.setattr("blockl0.data.design.CACHE_BYTES", 80)
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


# -- the same answers from every storage -----------------------------------------------------------

ROWS, COLUMNS_OF, TRUE = 50, 300, 4
LIMIT = 100_000
"""Bytes under which nothing is read into memory for being small."""


def as_npy(X, folder, order="F"):
    np.save(folder / "X.npy", np.asarray(X, order=order))
    return folder / "X.npy"


def as_zarr(X, folder):
    zarr = pytest.importorskip("zarr", reason="zarr is not installed: it is not tested")
    path = str(folder / "X.zarr")
    zarr.create_array(path, shape=X.shape, chunks=(ROWS, 37), dtype=X.dtype)[:] = X
    return path


def as_hdf5(X, folder):
    h5py = pytest.importorskip("h5py", reason="h5py is not installed: HDF5 is not tested")
    return h5py.File(folder / "X.h5", "w").create_dataset("X", data=X, chunks=(20, 41))


def as_dask(X, folder):
    da = pytest.importorskip("dask.array", reason="dask is not installed: it is not tested")
    return da.from_array(X, chunks=(ROWS, (1, 60, 60, 60, 60, 59)))


def as_bed(X, folder):
    bed = pytest.importorskip("bed_reader", reason="bed-reader is not installed: not tested")
    bed.to_bed(folder / "X.bed", X)
    return folder / "X.bed"


def as_device(X, folder):
    return pytest.importorskip("array_api_strict").asarray(np.array(X))


class Backwards:
    """An engine that ends with the first block."""

    def map(self, task, source, calls):
        return iter([(i, task(source.block(i), *given)) for i, given in reversed(calls)])


def cut(ends, engine=None):
    """An array in blocks of certain ends."""

    def make(X, folder):
        source = ArraySource(np.asfortranarray(X), ends)
        source.held_bytes = LIMIT // 8
        source.engine = source.engine if engine is None else engine
        return source

    return make


KEPT: dict[str, Any] = {
    "csc": lambda X, folder: sp.csc_array(X.astype(float)),
    "rows": lambda X, folder: np.ascontiguousarray(X),
    "map": lambda X, folder: np.load(as_npy(X.astype(float), folder), mmap_mode="r"),
    "map by rows": lambda X, folder: np.load(as_npy(X, folder, "C"), mmap_mode="r"),
    "float64 file": lambda X, folder: as_npy(X.astype(float), folder),
    "float32 file": lambda X, folder: as_npy(X.astype(np.float32), folder),
    "float16 file": lambda X, folder: as_npy(X.astype(np.float16), folder),
    "int8 file": as_npy,
    "zarr": as_zarr,
    "zarr float32": lambda X, folder: as_zarr(X.astype(np.float32), folder),
    "hdf5": as_hdf5,
    "hdf5 float16": lambda X, folder: as_hdf5(X.astype(np.float16), folder),
    "dask": as_dask,
    "bed": as_bed,
    "device": as_device,
    "device float32": lambda X, folder: as_device(X.astype(np.float32), folder),
    "one block": cut([COLUMNS_OF]),
    "a column each": cut(range(1, COLUMNS_OF + 1)),
    "ragged": cut([1, 7, 200, 201, COLUMNS_OF]),
    "backwards": cut([1, 7, 200, 201, COLUMNS_OF], Backwards()),
    "read ahead": cut([1, 7, 200, 201, COLUMNS_OF], ReadAhead()),
}
IN_MEMORY = ("csc", "rows", "map by rows")
FORMS: dict[str, dict[str, Any]] = {
    "budget": {},
    "price": {"n_nonzero_coefs": None, "alpha": 3.0},
    "both": {"alpha": 0.5},
    "ridge": {"ridge": 0.5},
    "weights": {"sample_weight": np.linspace(0.0, 2.0, ROWS)},
    "keep": {"keep": [17, 299]},
    "groups": {"feature_groups": np.arange(COLUMNS_OF) // 2, "n_nonzero_coefs": 2},
    "positive": {"positive": True},
    "bounds": {"bounds": (-0.5, 0.7)},
    "costs": {"n_nonzero_coefs": None, "alpha": 3.0, "costs": np.linspace(1, 2, COLUMNS_OF)},
    "responses": {},
    "huber": {"loss": "huber"},
    "logistic": {"loss": "logistic", "ridge": 0.1, "n_nonzero_coefs": 3},
    "squared_hinge": {"loss": "squared_hinge", "ridge": 0.1, "n_nonzero_coefs": 3},
    "poisson": {"loss": "poisson", "ridge": 0.1, "n_nonzero_coefs": 3},
    "gamma": {"loss": "gamma", "ridge": 0.1, "n_nonzero_coefs": 3},
    "softmax": {"loss": "softmax", "ridge": 0.5, "n_nonzero_coefs": 2},
}


def genotypes():
    """Numbers that every storage holds exactly, and y of a few columns."""
    rng = np.random.default_rng(11)
    X = np.asfortranarray(rng.integers(0, 3, (ROWS, COLUMNS_OF), dtype=np.int8))
    signal = (X[:, [3, 90, 210, 299]] - 1.0) @ [2.0, -1.5, 1.0, 1.2]
    return X, signal + 0.5 * rng.standard_normal(ROWS)


def target_of(y, form):
    if form in ("logistic", "squared_hinge"):
        return (y > 0).astype(float)
    if form == "softmax":
        return np.digitize(y, [-1.5, 1.5])
    if form == "poisson":
        return np.round(np.exp(np.clip(0.3 * y, -2, 2)))
    if form == "gamma":
        return np.exp(np.clip(0.3 * y, -2, 2))
    return np.column_stack([y, -y + np.cos(np.arange(ROWS))]) if form == "responses" else y


def solved(stored, y, form, **more):
    given = {"n_nonzero_coefs": TRUE, **FORMS[form], **more}
    return solve(stored, target_of(y, form), effort="fast", random_state=0, **given)


def answer_of(stored, y, form):
    return solved(stored, y, form, memory_limit=LIMIT)


@cache
def known(form):
    X, y = genotypes()
    return solved(X.astype(float), y, form)


QUICK = ("budget", "price", "groups", "logistic")
FORMS_QUICK_AND_SLOW = [
    form if form in QUICK else pytest.param(form, marks=pytest.mark.slow) for form in FORMS
]


@pytest.mark.parametrize("form", FORMS_QUICK_AND_SLOW)
@pytest.mark.parametrize("storage", KEPT)
def test_every_storage_gives_the_answer_of_the_array(storage, form, tmp_path):
    X, y = genotypes()
    stored, there = KEPT[storage](X, tmp_path), known(form)
    if storage in IN_MEMORY:
        here = solved(stored, y, form)
    else:
        here = answer_of(stored, y, form)
        assert isinstance(as_design(stored, LIMIT), Blocks)
    assert here.support.tolist() == there.support.tolist()
    assert here.objective == pytest.approx(there.objective, rel=1e-10)
    assert (here.certificate is None) == (there.certificate is None)
    if here.certificate is not None:
        assert here.certificate.holds
        assert here.certificate.level == there.certificate.level


@pytest.mark.parametrize("storage", [name for name in KEPT if name not in IN_MEMORY])
def test_every_storage_is_read_as_often(storage, tmp_path):
    X, y = genotypes()
    passes = [
        answer_of(make(X, tmp_path), y, "budget").n_passes
        for make in (KEPT[storage], KEPT["ragged"])
    ]
    # of chunks a column costs its neighbours, too
    assert 1 < passes[0] <= passes[1] + 2 * (storage.split()[0] in ("zarr", "hdf5", "dask"))


@pytest.mark.parametrize("storage", [
    "csc", "rows", "float64 file", "map", "map by rows", "zarr float32", "hdf5 float16", "dask",
    "device float32", "one block", "a column each", "ragged", "backwards", "read ahead",
])  # fmt: skip
def test_every_storage_names_a_bad_entry(storage, tmp_path):
    X, y = genotypes()
    X = X.astype(float)
    X[48, 299] = np.nan
    stored = KEPT[storage](X, tmp_path)
    limit = None if storage in IN_MEMORY else LIMIT
    with pytest.raises(ValueError, match=r"nan in .*(column 299, row 48|row 48, column 299)"):
        solve(stored, y, n_nonzero_coefs=2, memory_limit=limit)


@pytest.mark.parametrize("form", ["budget", "price", "both", "ridge", "weights", "keep", "groups",
                                  "positive", "bounds", "costs"])  # fmt: skip
def test_moments_give_the_answer_of_the_array(form):
    X, y = genotypes()
    given: dict[str, Any] = {"n_nonzero_coefs": TRUE, **FORMS[form]}
    weights = given.pop("sample_weight", None)
    ours = solve(Moments.from_data(X, y, weights), effort="fast", random_state=0, **given)
    there = known(form)
    assert ours.support.tolist() == there.support.tolist()
    assert ours.objective == pytest.approx(there.objective, rel=1e-10)
    assert (ours.certificate is None) == (there.certificate is None)
