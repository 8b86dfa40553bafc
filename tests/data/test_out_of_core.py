"""Files that are read in blocks: memory maps, `.npy`, zarr and HDF5, beside the array in memory."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest

from blockl0 import L0Regressor, l0_path, solve
from blockl0.data.blocks import Blocks
from blockl0.data.design import Dense, as_design
from blockl0.data.source import limits_of
from blockl0.storage import by_columns, opened

M, N, K = 60, 900, 4
LIMIT = 1e6
"""Under which X is read in about seven blocks."""


def draw(dtype="float64"):
    rng = np.random.default_rng(0)
    X = np.round(8 * rng.standard_normal((M, N)))
    y = X[:, 5:300:75].sum(axis=1) + 2.0 * rng.standard_normal(M)
    return np.asfortranarray(X.astype(dtype)), y


def as_npy(X, folder):
    np.save(folder / "X.npy", X)
    return folder / "X.npy"


def as_map(X, folder):
    return np.load(as_npy(X, folder), mmap_mode="r")


def as_part_of_a_map(X, folder):
    wider = np.asfortranarray(np.hstack([X[:, :3], X, X[:, :5]]))
    return as_map(wider, folder)[:, 3:-5]


def as_rows_of_a_map(X, folder):
    return as_map(np.asfortranarray(np.vstack([X, X[:7]])), folder)[:M]


def as_changed_map(X, folder):
    other = X.copy(order="F")
    other[:, 0] = 0
    changed = np.load(as_npy(other, folder), mmap_mode="c")
    changed[:, 0] = X[:, 0]  # which the file never sees
    return changed


def as_raw_map(X, folder):
    with open(folder / "X.bin", "wb") as file:
        file.write(b"head" + X.tobytes(order="F"))
    return np.memmap(folder / "X.bin", X.dtype, "r", 4, X.shape, "F")


def as_zarr(X, folder, chunks=(M, 64)):
    zarr = pytest.importorskip("zarr")
    stored = zarr.create_array(str(folder / "X.zarr"), shape=X.shape, chunks=chunks, dtype=X.dtype)
    stored[:] = X
    return stored


def as_zarr_path(X, folder):
    as_zarr(X, folder)
    return str(folder / "X.zarr")


def as_zarr_by_both(X, folder):
    return as_zarr(X, folder, (17, 100))


def as_hdf5(X, folder):
    h5py = pytest.importorskip("h5py")
    file = h5py.File(folder / "X.h5", "w")
    return file.create_dataset("X", data=X, chunks=(M, 50), compression="gzip")


STORAGES = [
    as_npy, as_map, as_part_of_a_map, as_rows_of_a_map, as_changed_map, as_raw_map, as_zarr,
    as_zarr_path, as_zarr_by_both, as_hdf5,
]  # fmt: skip


@pytest.fixture(params=STORAGES, ids=lambda make: make.__name__)
def make(request):
    return request.param


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int8"])
def test_the_same_answer_as_in_memory(make, dtype, tmp_path):
    X, y = draw(dtype)
    stored = make(X, tmp_path)
    assert isinstance(as_design(stored, LIMIT), Blocks)
    assert isinstance(as_design(stored), Dense)
    given: Any = {"n_nonzero_coefs": K, "random_state": 0, "effort": "fast", "pool": 60}
    here = solve(stored, y, memory_limit=LIMIT, **given)
    there = solve(X.astype(float), y, **given)
    assert here.support.tolist() == there.support.tolist()
    assert here.objective == pytest.approx(there.objective, rel=1e-10)
    assert here.certificate is not None and str(here.certificate) == str(there.certificate)
    assert (here.n_passes or 99) <= (there.n_passes or 0)


def test_estimators_and_paths(make, tmp_path):
    X, y = draw()
    source = opened(make(X, tmp_path), LIMIT)
    model = L0Regressor(K, random_state=0).fit(source, y)
    twin = L0Regressor(K, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.coef_, twin.coef_, atol=1e-8)
    np.testing.assert_allclose(model.predict(source), twin.predict(X), atol=1e-8)
    path = l0_path(source, y, n_nonzero_coefs=4, random_state=0)
    np.testing.assert_allclose(
        path.objective, l0_path(X, y, n_nonzero_coefs=4, random_state=0).objective
    )
    # the first point counts what all share, and nothing is lost
    assert sum(point.n_passes or 0 for point in path) >= 1


def test_a_bad_entry_is_named(make, tmp_path):
    X, y = draw()
    X[M - 2, N - 1] = np.nan
    with pytest.raises(ValueError, match="got nan in column 899, row 58"):
        solve(make(X, tmp_path), y, n_nonzero_coefs=K, memory_limit=LIMIT)


def test_single_columns_of_chunks_cost_no_pass(tmp_path):
    X, y = draw()
    passes = [
        solve(make(X, tmp_path), y, n_nonzero_coefs=K, memory_limit=LIMIT, random_state=0, pool=60)
        .n_passes
        for make in (as_npy, as_zarr)
    ]  # fmt: skip
    assert (passes[1] or 99) <= (passes[0] or 0) + 2


def test_a_map_by_rows_is_read_where_it_fits_and_refused_where_not(tmp_path):
    X, y = draw()
    np.save(tmp_path / "rows.npy", np.ascontiguousarray(X))
    stored = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert isinstance(as_design(stored), Dense)
    with pytest.raises(ValueError, match=r"stored by rows, 60 × 900 of float64.*by_columns"):
        solve(stored, y, n_nonzero_coefs=K, memory_limit=1e5)
    path = by_columns(stored, tmp_path / "columns.npy", memory_limit=1e5)
    copy = np.load(path, mmap_mode="r")
    assert np.array_equal(copy, X) and copy.flags.f_contiguous
    with pytest.raises(FileExistsError, match="exists"):
        by_columns(stored, path)


def test_a_copy_by_columns_is_there_whole_or_not_at_all(tmp_path):
    X, _ = draw()

    class Breaks:
        shape, dtype = X.shape, X.dtype

        def __getitem__(self, rows):
            assert not (tmp_path / "columns.npy").exists()
            if rows.start:
                raise OSError("the disk is gone")
            return X[rows]

    with pytest.raises(OSError, match="the disk is gone"):
        by_columns(Breaks(), tmp_path / "columns.npy", memory_limit=1e5)
    assert list(tmp_path.iterdir()) == []


def test_chunks_that_are_too_wide_are_refused_with_the_cure(tmp_path):
    X, y = draw()
    zarr = as_zarr(X, tmp_path, (1, N))
    with pytest.raises(ValueError, match=r"chunks of \(1, 900\).*chunks=\(60, \d+\)"):
        solve(zarr, y, n_nonzero_coefs=K, memory_limit=1e5)
    h5py = pytest.importorskip("h5py")
    dataset = h5py.File(tmp_path / "one.h5", "w").create_dataset("X", data=X)
    with pytest.raises(ValueError, match=r"in one piece.*create_dataset.*chunks=\(60, \d+\)"):
        solve(dataset, y, n_nonzero_coefs=K, memory_limit=1e5)


def test_a_file_that_was_cut_is_told(tmp_path):
    X, _ = draw()
    source = opened(as_map(X, tmp_path), LIMIT)
    assert source is not None
    with open(tmp_path / "X.npy", "r+b") as file:
        file.truncate(5000)
    with pytest.raises(OSError, match="ends before column"):
        source.block(len(source.parts) - 1)


def test_a_path_that_is_not_there(tmp_path):
    _, y = draw()
    with pytest.raises(FileNotFoundError, match="There is no file"):
        solve(tmp_path / "none.npy", y, n_nonzero_coefs=K)


def test_the_message_without_zarr_names_the_extra(monkeypatch, tmp_path):
    plain = builtins.__import__

    def without(name, *given, **more):
        if name == "zarr":
            raise ImportError(name)
        return plain(name, *given, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install 'blockl0\[zarr\]'"):
        opened(tmp_path / "X.zarr")


def test_the_shares_of_a_limit():
    limits = limits_of(1 << 30)
    assert 2 * limits.block + limits.held + limits.slab <= 1 << 30
    with pytest.raises(ValueError, match="memory_limit"):
        limits_of(-1.0)


def test_columns_of_a_map_by_rows_are_those_of_the_array(tmp_path):
    X, y = draw()[:2]
    X = np.ascontiguousarray(X, dtype=float)
    np.save(tmp_path / "c.npy", X)
    mapped = np.load(tmp_path / "c.npy", mmap_mode="r")
    one = solve(mapped[:, 2:3], y, n_nonzero_coefs=1)
    assert one.coef == pytest.approx(solve(X[:, 2:3], y, n_nonzero_coefs=1).coef)
    given = {"n_nonzero_coefs": 2, "effort": "fast", "random_state": 0}
    by_path = solve(str(tmp_path / "c.npy"), y, **given)
    assert by_path.support.tolist() == solve(X, y, **given).support.tolist()


def test_a_file_that_was_replaced_is_not_read(tmp_path):
    X = draw()[0]
    for name, sign in (("a.npy", 1.0), ("b.npy", -1.0)):
        np.save(tmp_path / name, np.asfortranarray(sign * X))
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    source = opened(mapped, 1e5)
    assert source is not None
    (tmp_path / "b.npy").replace(tmp_path / "a.npy")
    with pytest.raises(OSError, match="another file"):
        source.block(0)
