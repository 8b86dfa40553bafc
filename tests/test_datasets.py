"""The paper's data: shapes, shares, scales, seeds, and what is said when a file is missing."""

from __future__ import annotations

import os

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from blockl0 import datasets
from blockl0.datasets import load_e2006, make_random, read_e2006

# -- random-m-n ------------------------------------------------------------------------------------


def test_random_is_the_model_of_the_paper():
    X, y, w = make_random(256, 1024, return_coef=True, random_state=0)
    assert X.shape == (256, 1024) and y.shape == (256,) and w.shape == (1024,)
    assert X.flags.f_contiguous and X.dtype == np.float64
    assert np.count_nonzero(w) == 100
    assert abs(X.mean()) < 0.01 and X.std() == pytest.approx(1.0, abs=0.01)
    assert w[w != 0].std() == pytest.approx(1.0, abs=0.25)
    noise = y - X @ w
    assert abs(noise.mean()) < 2.5 and noise.std() == pytest.approx(10.0, rel=0.15)


def test_without_noise_the_target_is_exact():
    X, y, w = make_random(20, 30, n_nonzero=3, noise=0.0, return_coef=True, random_state=1)
    np.testing.assert_allclose(y, X @ w)
    assert np.count_nonzero(w) == 3
    _, y = make_random(5, 4, n_nonzero=0, noise=0.0, random_state=1)
    assert not y.any()


def test_the_coefficients_are_returned_only_when_asked_for():
    # by one seed: every bit
    pair = make_random(6, 5, n_nonzero=2, random_state=3)
    triple = make_random(6, 5, n_nonzero=2, return_coef=True, random_state=3)
    assert len(pair) == 2 and len(triple) == 3
    assert np.array_equal(pair[0], triple[0]) and np.array_equal(pair[1], triple[1])


def test_same_seed_same_data():
    options = {"n_nonzero": 5, "corrupted": True}
    first, second, other = (make_random(30, 20, random_state=seed, **options) for seed in (4, 4, 5))
    assert np.array_equal(first[0], second[0]) and np.array_equal(first[1], second[1])
    assert not np.array_equal(first[0], other[0])
    third = make_random(30, 20, random_state=np.random.default_rng(4), **options)
    assert np.array_equal(first[1], third[1])


def test_corruption_scales_two_per_cent_of_the_design_before_the_target_is_formed():
    clean, _ = make_random(200, 300, random_state=6)
    X, y, w = make_random(200, 300, corrupted=True, return_coef=True, random_state=6)
    changed = X != clean
    assert changed.sum() == round(0.02 * X.size)
    np.testing.assert_allclose(X[changed], 100.0 * clean[changed])
    assert (y - X @ w).std() == pytest.approx(10.0, rel=0.2)


def test_corrupted_noise_scales_two_per_cent_of_the_noise_and_nothing_else():
    X, y, w = make_random(1000, 10, n_nonzero=4, return_coef=True, random_state=7)
    X_too, y_too, w_too = make_random(
        1000, 10, n_nonzero=4, corrupted_noise=True, return_coef=True, random_state=7
    )
    assert np.array_equal(X, X_too) and np.array_equal(w, w_too)  # by one seed
    ratio = (y_too - X @ w) / (y - X @ w)
    changed = ~np.isclose(ratio, 1.0, rtol=1e-6)
    assert changed.sum() == 20
    np.testing.assert_allclose(ratio[changed], 100.0, rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "error", "pattern"),
    [
        ({"m": 0, "n": 5}, ValueError, r"`m` must be at least 1, got 0"),
        ({"m": 5, "n": 2.0}, TypeError, r"`n` must be an integer, got 2\.0"),
        ({"m": 5, "n": 20}, ValueError, r"`n_nonzero` must be between 0 and n=20, got 100"),
        ({"m": 5, "n": 200, "noise": -1}, ValueError, r"`noise` must be nonnegative, got -1"),
        ({"m": 5, "n": 200, "random_state": "x"}, TypeError, r"`random_state` must be None"),
    ],
)
def test_random_says_what_is_wrong(arguments, error, pattern):
    with pytest.raises(error, match=pattern):
        make_random(**arguments)


# -- e2006 -----------------------------------------------------------------------------------------


ANOTHER = pytest.mark.filterwarnings("ignore:.*is not the e2006 file")


@pytest.fixture
def content():
    """60 x 40, one entry in ten, with a column of zeros in the middle."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.1, 1.0, (60, 40)) * (rng.random((60, 40)) < 0.1)
    X[:, 7] = 0.0
    X[0, [0, 39]] = 0.5
    return X, rng.standard_normal(60)


@pytest.fixture(params=["E2006.mat", "E2006.train", "E2006.train.bz2"])
def file(request, tmp_path, content):
    path = tmp_path / request.param
    X, y = content
    if path.suffix == ".mat":
        scipy.io.savemat(path, {"x": sp.csc_matrix(X), "y": y[:, None]})
        return path
    plain = tmp_path / "plain"
    dump_svmlight_file(X, y, str(plain), zero_based=False)
    if path.suffix == ".bz2":
        import bz2

        path.write_bytes(bz2.compress(plain.read_bytes()))
    else:
        plain.rename(path)
    return path


def test_a_file_that_is_not_the_authors_is_said_to_be_another_population(file):
    with pytest.warns(UserWarning, match=rf"'{file.name}' is not the e2006 file.*0fa60f91"):
        load_e2006(5, 6, random_state=0, path=file)


def test_both_formats_are_read_alike(file, content):
    X, y = read_e2006(file)
    assert isinstance(X, sp.csc_array) and X.has_canonical_format and X.dtype == np.float64
    np.testing.assert_allclose(X.toarray(), content[0], rtol=1e-12)
    np.testing.assert_allclose(y, content[1], rtol=1e-12)


@ANOTHER
def test_the_environment_variable_and_the_home_folder(file, monkeypatch):
    expected, _ = read_e2006(str(file))
    monkeypatch.setenv("BLOCKL0_E2006", str(file))
    assert (read_e2006()[0] != expected).nnz == 0
    assert load_e2006(5, 6, random_state=0)[0].shape == (5, 6)
    monkeypatch.setenv("HOME", str(file.parent))
    assert (read_e2006(f"~/{file.name}")[0] != expected).nnz == 0


@ANOTHER
def test_a_draw_takes_whole_rows_and_columns_in_their_order(file, content):
    X, y = load_e2006(25, 15, random_state=3, path=file)
    assert X.shape == (25, 15) and y.shape == (25,)
    full, target = content
    rows = [int(np.argmin(np.abs(target - value))) for value in y]
    assert np.all(np.diff(rows) > 0)
    used = {tuple(np.round(column, 9)) for column in full[rows].T}
    assert all(tuple(np.round(column, 9)) in used for column in X.toarray().T)
    again, _ = load_e2006(25, 15, random_state=3, path=file)
    assert (again != X).nnz == 0
    assert (load_e2006(25, 15, random_state=4, path=file)[0] != X).nnz > 0


@ANOTHER
def test_everything_by_default_and_zero_columns_are_kept(file, content):
    X, y = load_e2006(path=file)
    np.testing.assert_allclose(X.toarray(), content[0], rtol=1e-12)
    assert y.shape == (60,) and X[:, [7]].nnz == 0


@ANOTHER
def test_every_row_and_column_is_drawn_equally_often(file, content):
    hits = np.zeros(60)
    for seed in range(150):
        y = load_e2006(20, 10, random_state=seed, path=file)[1]
        hits[np.abs(content[1][:, None] - y).min(axis=1) < 1e-9] += 1
    assert hits.sum() == 150 * 20
    # 50 expected, standard deviation 5.8
    assert hits.min() > 25 and hits.max() < 75


@ANOTHER
def test_corruption_hits_two_per_cent_of_all_entries_zeros_included(file, content):
    clean, _ = load_e2006(random_state=1, path=file)
    shares = []
    for seed in range(60):
        X, y = load_e2006(corrupted=True, random_state=seed, path=file)
        assert np.array_equal(X.indices, clean.indices) and y.size == 60
        factor = X.data / clean.data
        assert np.all(np.isclose(factor, 1.0) | np.isclose(factor, 100.0))
        shares.append(np.mean(factor > 50.0))
    assert np.mean(shares) == pytest.approx(0.02, abs=0.006)
    assert np.std(shares) > 0.0  # how many of the chosen entries are zeros is left to chance


def test_corruption_of_matrices_too_large_for_a_hypergeometric_draw():
    entries = np.ones(100_000)
    datasets._corrupt(entries, np.random.default_rng(0), n_entries=3 * 10**9)
    assert np.count_nonzero(entries == 100.0) == pytest.approx(2000, abs=200)
    assert np.count_nonzero(entries == 1.0) + np.count_nonzero(entries == 100.0) == 100_000


def test_a_missing_file_says_where_to_get_it(monkeypatch, tmp_path):
    monkeypatch.delenv("BLOCKL0_E2006", raising=False)
    with pytest.raises(FileNotFoundError, match=r"BLOCKL0_E2006.*E2006-tfidf.*LIBSVM"):
        load_e2006(10, 10)
    monkeypatch.setenv("BLOCKL0_E2006", "")
    with pytest.raises(FileNotFoundError, match="BLOCKL0_E2006"):
        load_e2006(10, 10)
    with pytest.raises(FileNotFoundError, match=r"no file '.*nothing\.mat'.*'E2006\.train'"):
        load_e2006(10, 10, path=tmp_path / "nothing.mat")
    with pytest.raises(FileNotFoundError, match="no file"):
        read_e2006(tmp_path)


@ANOTHER
def test_too_many_rows_and_a_foreign_file(file, tmp_path):
    with pytest.raises(ValueError, match=r"`m` must be between 1 and n_rows=60, got 61"):
        load_e2006(61, 10, path=file)
    with pytest.raises(ValueError, match=r"`n` must be between 1 and n_columns=40, got 0"):
        load_e2006(10, 0, path=file)
    scipy.io.savemat(tmp_path / "other.mat", {"A": np.eye(2)})
    with pytest.raises(ValueError, match=r"variables 'x' and 'y' \(it holds \['A'\]\); e2006 is"):
        read_e2006(tmp_path / "other.mat")


@pytest.mark.parametrize(("name", "kind"), [("a.mat", "a MATLAB file"), ("a.train", "LIBSVM text")])
def test_a_file_of_another_kind_says_so(tmp_path, name, kind):
    (tmp_path / name).write_text("neither of the two\n")
    with pytest.raises(ValueError, match=rf"{name}' cannot be read as {kind}.*; e2006 is either"):
        read_e2006(tmp_path / name)


def test_a_target_of_another_length_is_refused(tmp_path):
    scipy.io.savemat(tmp_path / "short.mat", {"x": sp.eye(3, format="csc"), "y": np.ones(2)})
    with pytest.raises(ValueError, match="one target for each row, got 3 rows and 2 targets"):
        read_e2006(tmp_path / "short.mat")


@pytest.mark.skipif(
    not os.path.exists(os.environ.get("BLOCKL0_E2006", "")),
    reason="set BLOCKL0_E2006 to the path of E2006_5000_10000.mat",
)
def test_the_real_file():
    X, y = load_e2006(5000, 1024, random_state=0)
    assert X.shape == (5000, 1024) and y.shape == (5000,)
    # ½‖y‖² is what the paper prints for methods that leave w at zero
    assert 0.5 * y @ y == pytest.approx(3.2e4, rel=0.02)
