"""Moments: what is left of rows is all that least squares asks of them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import PredefinedSplit

import blockl0
from blockl0 import L0Regressor, L0RegressorCV, Moments, certify, l0_path, solve


def table(seed=0, m=400, n=12, mean=0.0, weights=False):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n)) @ (np.eye(n) + 0.3 * rng.standard_normal((n, n))) + mean
    y = (X - mean) @ np.where(np.arange(n) % 4 == 1, 1.0, 0.0) + rng.standard_normal(m) + 3.0
    return X, y, rng.uniform(0.5, 2.0, m) if weights else None


def in_chunks(X, y, weights, sizes, **options):
    moments, start = Moments(**options), 0
    for size in sizes:
        rows = slice(start, start + size)
        moments.update(X[rows], y[rows], None if weights is None else weights[rows])
        start += size
    assert start == len(y)
    return moments


CHUNKS = ([400], [1, 2, 3, 94, 300], [80] * 5, [399, 1])


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("sizes", CHUNKS)
def test_solve_finds_what_all_rows_tell(sizes, weights):
    X, y, w = table(weights=weights)
    moments = in_chunks(X, y, w, sizes)
    ours = solve(moments, n_nonzero_coefs=4, ridge=0.1, random_state=0)
    rows = solve(X, y, sample_weight=w, n_nonzero_coefs=4, ridge=0.1, random_state=0)
    assert ours.support.tolist() == rows.support.tolist()
    assert ours.objective == pytest.approx(rows.objective, rel=1e-12)
    np.testing.assert_allclose(ours.coef, rows.coef, atol=1e-11)


def test_a_proof_and_a_certificate_hold_for_all_rows():
    X, y, _ = table(3)
    moments = Moments.from_data(X, y)
    proven = solve(moments, alpha=2.0, method="exact")
    rows = solve(X, y, alpha=2.0, method="exact")
    assert proven.status is blockl0.Status.OPTIMAL
    assert proven.objective == pytest.approx(rows.objective, rel=1e-12)
    assert certify(moments, None, proven.coef, alpha=2.0, level=2).holds
    worse = rows.coef.copy()
    worse[rows.support[0]] = 0.0
    assert not certify(moments, None, worse, alpha=2.0, level=2).holds


def test_a_path_counts_the_rows_not_those_of_the_factor():
    X, y, w = table(4, weights=True)
    ours = l0_path(Moments.from_data(X, y, w), n_nonzero_coefs=6, random_state=0)
    rows = l0_path(X, y, sample_weight=w, n_nonzero_coefs=6, random_state=0)
    assert ours.n_samples == pytest.approx(rows.n_samples)
    np.testing.assert_allclose(ours.criterion("bic"), rows.criterion("bic"), rtol=1e-10)


@pytest.mark.parametrize("mean", [0.0, 1e4, 1e7])
def test_an_intercept_costs_no_digits_of_columns_far_from_zero(mean):
    X, y, _ = table(5, mean=mean)
    model = L0Regressor(4, random_state=0).fit(in_chunks(X, y, None, [50] * 8))
    chosen = model.support_
    A = np.column_stack([np.ones(len(y)), X[:, chosen] - X[:, chosen].mean(axis=0)])
    exact = np.linalg.lstsq(A, y, rcond=None)[0]
    np.testing.assert_allclose(model.coef_[chosen], exact[1:], rtol=1e-9)
    other = L0Regressor(4, random_state=0).fit(X, y)
    assert chosen.tolist() == other.support_.tolist()
    # a product of 1e7 is rounded to 2e-9
    np.testing.assert_allclose(model.predict(X), other.predict(X), atol=2e-8)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_moments_merge_in_any_order(order):
    X, y, w = table(6, mean=1e6, weights=True)
    cuts = [slice(0, 3), slice(3, 200), slice(200, None)]
    parts = [Moments.from_data(X[c], y[c], w[c]) for c in cuts]
    whole = Moments()
    for i in order:
        whole.merge(parts[i])
    assert whole.n_samples == 400
    assert whole.total == pytest.approx(w.sum())
    ours = L0Regressor(3, random_state=0).fit(whole)
    rows = L0Regressor(3, random_state=0).fit(X, y, w)
    assert ours.support_.tolist() == rows.support_.tolist()
    np.testing.assert_allclose(ours.coef_, rows.coef_, rtol=1e-8)


def test_columns_that_move_away_are_followed():
    rng = np.random.default_rng(7)
    moments, rows = Moments(), []
    for step in range(6):
        X = rng.standard_normal((100, 5)) + 10.0 ** (step + 2) * (step > 0)
        y = X[:, 1] - X[:, 2] + 0.1 * rng.standard_normal(100)
        moments.update(X, y)
        rows.append((X, y))
    X, y = np.vstack([X for X, _ in rows]), np.concatenate([y for _, y in rows])
    ours, other = (L0Regressor(2, random_state=0).fit(*d) for d in ((moments,), (X, y)))
    assert ours.support_.tolist() == other.support_.tolist() == [1, 2]
    np.testing.assert_allclose(ours.coef_, other.coef_, rtol=1e-7)


def test_sparse_rows_and_rows_without_weight():
    X, y, w = table(8, weights=True)
    X[np.abs(X) < 1.0] = 0.0
    w[::3] = 0.0
    ours = solve(Moments.from_data(sp.csr_array(X), y, w), n_nonzero_coefs=3, random_state=0)
    rows = solve(X, y, sample_weight=w, n_nonzero_coefs=3, random_state=0)
    assert Moments.from_data(X, y, w).n_samples == np.count_nonzero(w)
    assert ours.objective == pytest.approx(rows.objective, rel=1e-12)


def test_flat_and_dependent_columns():
    X, y, _ = table(9, n=6)
    X = np.column_stack([X, np.full(400, 7.0), X[:, 0] + X[:, 1], np.zeros(400)])
    with pytest.warns(blockl0.ConstantColumnWarning, match="x6"):
        ours = L0Regressor(9, random_state=0).fit(Moments.from_data(X, y))
    assert ours.coef_[6] == 0.0
    assert ours.n_nonzero_ <= 6


@pytest.mark.parametrize("without", [0, 1, 3])
@pytest.mark.parametrize("folds", [1, 3])
def test_chunks_without_weight_count_for_nothing(without, folds):
    """As the same rows do in memory; also in the first chunk, of which nothing can be fitted."""
    X, y, w = table(6, weights=True)
    w[100 * without : 100 * without + 100] = 0.0
    rows = solve(X, y, sample_weight=w, n_nonzero_coefs=4, random_state=0)
    moments, model = Moments(folds=folds), L0Regressor(4, random_state=0)
    for start in range(0, 400, 100):
        part = slice(start, start + 100)
        moments.update(X[part], y[part], w[part])
        model.partial_fit(X[part], y[part], w[part])
    assert moments.n_samples == 300
    np.testing.assert_allclose(
        solve(moments, None, n_nonzero_coefs=4, random_state=0).coef, rows.coef, rtol=1e-9
    )
    whole = L0Regressor(4, random_state=0).fit(X, y, w)
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.intercept_, whole.intercept_, rtol=1e-9)
    one = in_chunks(X, y, w, [400])
    np.testing.assert_allclose(one.total, moments.total)


def test_rows_without_any_weight_are_refused_in_the_end():
    X, y, _ = table(m=20, n=3)
    moments = Moments().update(X, y, np.zeros(20))
    with pytest.raises(ValueError, match="no rows of positive weight"):
        solve(moments, None, n_nonzero_coefs=1)
    model = L0Regressor(1).partial_fit(X, y, np.zeros(20))
    assert not hasattr(model, "coef_")
    with pytest.raises(ValueError, match="nonnegative"):
        moments.update(X, y, -np.ones(20))


def test_partial_fit_ends_where_fit_does():
    X, y, w = table(10, weights=True)
    ours = L0Regressor(4, random_state=0)
    for rows in (slice(0, 100), slice(100, 101), slice(101, None)):
        ours.partial_fit(X[rows], y[rows], w[rows])
    other = L0Regressor(4, random_state=0).fit(X, y, w)
    assert ours.support_.tolist() == other.support_.tolist()
    np.testing.assert_allclose(ours.coef_, other.coef_, rtol=1e-9)
    assert ours.moments_.n_samples == 400
    with pytest.raises(ValueError, match="12 features"):
        ours.partial_fit(X[:, :3], y)
    assert ours.moments_.n_samples == 400


def test_files_come_back_and_changed_ones_are_refused(tmp_path):
    X, y, _ = table(11)
    moments = in_chunks(X, y, None, [100] * 4, folds=3, feature_names=[f"c{j}" for j in range(12)])
    moments.save(tmp_path / "m.npz")
    back = Moments.load(tmp_path / "m.npz")
    assert back.feature_names == moments.feature_names
    for ours, theirs in zip(moments.fold_factors, back.fold_factors, strict=True):
        np.testing.assert_array_equal(ours.triangle.R, theirs.triangle.R)
    # rows that come later fall into the same folds
    for m in (moments, back):
        m.update(X, y)
    assert [f.n_rows for f in moments.fold_factors] == [f.n_rows for f in back.fold_factors]
    with np.load(tmp_path / "m.npz") as archive:
        content = {name: archive[name].copy() for name in archive.files}
    content["R"][0, 1, 1] += 1.0
    np.savez(tmp_path / "changed.npz", **content)
    with pytest.raises(ValueError, match="checksum"):
        Moments.load(tmp_path / "changed.npz")
    (tmp_path / "cut.npz").write_bytes((tmp_path / "m.npz").read_bytes()[:200])
    with pytest.raises(ValueError, match="not a file of moments"):
        Moments.load(tmp_path / "cut.npz")
    with pytest.raises(FileExistsError):
        moments.save(tmp_path / "m.npz")


def test_folds_do_not_depend_on_chunks():
    X, y, _ = table(12)
    whole = Moments.from_data(X, y, folds=5)
    parts = in_chunks(X, y, None, [7, 93, 150, 150], folds=5)
    assert [f.n_rows for f in whole.fold_factors] == [f.n_rows for f in parts.fold_factors]
    label = np.arange(400) % 3
    given = Moments.from_data(X, y, folds=label)
    assert [f.n_rows for f in given.fold_factors] == np.bincount(label).tolist()


def test_products_say_as_much_as_rows_of_moderate_numbers():
    X, y, _ = table(13)
    raw = Moments.from_gram(X.T @ X, X.T @ y, y @ y, len(y))
    ours = solve(raw, n_nonzero_coefs=4, random_state=0)
    rows = solve(X, y, n_nonzero_coefs=4, random_state=0)
    assert ours.support.tolist() == rows.support.tolist()
    assert ours.objective == pytest.approx(rows.objective, rel=1e-9)
    with pytest.raises(ValueError, match="X_colmeans"):
        L0Regressor(4).fit(raw)
    X_c, y_c = X - X.mean(axis=0), y - y.mean()
    centred = Moments.from_gram(
        X_c.T @ X_c, X_c.T @ y_c, y_c @ y_c, len(y), X_colmeans=X.mean(axis=0), y_mean=y.mean()
    )
    model, other = (L0Regressor(4, random_state=0).fit(*d) for d in ((centred,), (X, y)))
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-8)
    assert model.intercept_ == pytest.approx(other.intercept_, rel=1e-9)


GRAM = np.array([[2.0, 0.0], [0.0, 2.0]])
SKEW = np.array([[2.0, 1.0], [0.0, 2.0]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Moments.from_gram(np.ones((2, 3)), [1, 1], 1.0, 5), "square"),
        (lambda: Moments.from_gram(SKEW, [1, 1], 9.0, 5), "symmetric"),
        (lambda: Moments.from_gram(GRAM, [3.0, 3.0], 1.0, 5), "eigenvalue"),
        (lambda: Moments.from_gram(GRAM, [1.0, 1.0], 9.0, 5, y_mean=1.0), "both"),
        (lambda: Moments.from_gram(GRAM, [1.0, np.nan], 9.0, 5), "Xty"),
        (lambda: solve(Moments(), n_nonzero_coefs=1), "no rows"),
        (lambda: Moments.from_data([np.eye(2)]), "pair"),
        (lambda: Moments().update(np.eye(2), [1, 2]).update(np.eye(3), [1, 2, 3]), "2 columns"),
        (lambda: Moments().update(np.eye(2), [1, np.nan]), "y"),
        (lambda: Moments(folds=2).update(np.eye(2), [1, 2], folds=[0, 2]), "from 0 to 1"),
        (lambda: Moments(["a"]).update(np.eye(2), [1, 2]), "feature_names"),
        (lambda: Moments(folds=2).update(np.eye(2), [1, 2], folds=[0.5, 1]), "whole"),
    ],
)
def test_bad_input_is_refused_with_the_reason(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_what_moments_do_not_know_is_refused():
    X, y, _ = table(14)
    moments = Moments.from_data(X, y)
    with pytest.raises(ValueError, match="huber"):
        solve(moments, n_nonzero_coefs=2, loss="huber")
    with pytest.raises(ValueError, match="`y` already"):
        solve(moments, y, n_nonzero_coefs=2)
    with pytest.raises(TypeError, match="`y` is missing"):
        solve(X, n_nonzero_coefs=2)


def test_names_of_a_frame_are_kept_and_compared():
    pd = pytest.importorskip("pandas")
    X, y, _ = table(15)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(12)])
    moments = Moments.from_data(frame, y)
    model = L0Regressor(3, keep=["c5"], random_state=0).fit(moments)
    assert 5 in model.support_
    with pytest.raises(ValueError, match="'c1'"):
        moments.update(frame[["c1", "c0", *frame.columns[2:]]], y)


def test_cross_validation_is_that_of_the_rows():
    X, y, w = table(16, mean=1e3, weights=True)
    label = np.random.default_rng(0).integers(0, 4, 400)
    moments = Moments.from_data(X, y, w, folds=label)
    ours = L0RegressorCV(6, random_state=0).fit(moments)
    rows = L0RegressorCV(6, cv=PredefinedSplit(label), random_state=0).fit(X, y, w)
    np.testing.assert_allclose(ours.cv_scores_, rows.cv_scores_, rtol=1e-8)
    assert ours.best_n_nonzero_coefs_ == rows.best_n_nonzero_coefs_
    assert ours.support_.tolist() == rows.support_.tolist()
    np.testing.assert_allclose(ours.coef_, rows.coef_, rtol=1e-8)
    by_bic = L0RegressorCV(6, rule="bic", random_state=0).fit(moments)
    other = L0RegressorCV(6, rule="bic", random_state=0).fit(X, y, w)
    assert by_bic.best_n_nonzero_coefs_ == other.best_n_nonzero_coefs_


def test_cross_validation_needs_folds():
    X, y, _ = table(17)
    with pytest.raises(ValueError, match="folds=5"):
        L0RegressorCV(3).fit(Moments.from_data(X, y))
    with pytest.raises(ValueError, match="leave `scoring`"):
        L0RegressorCV(3, scoring="r2").fit(Moments.from_data(X, y, folds=3))


def test_arrays_and_frames_of_dask_are_read_part_by_part():
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    X, y, _ = table(18)
    ours = Moments.from_data(da.from_array(X, chunks=(150, 12)), da.from_array(y, chunks=150))
    found, known = (
        solve(moments, n_nonzero_coefs=3) for moments in (ours, Moments.from_data(X, y))
    )
    assert found.objective == pytest.approx(known.objective, rel=1e-12)
    with pytest.raises(ValueError, match="rechunk"):
        Moments.from_data(da.from_array(X, chunks=(150, 5)), da.from_array(y, chunks=150))


@pytest.mark.parametrize("empty", [np.empty((0, 4)), sp.csc_array((0, 4))])
def test_chunks_without_rows_change_nothing(empty):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 4))
    y = X[:, 1] + rng.standard_normal(30)
    none = empty, np.empty(0)
    chunks = [none, (X[:10], y[:10]), none, (X[10:], y[10:]), none]
    ours, known = Moments.from_data(chunks), Moments.from_data([(X[:10], y[:10]), (X[10:], y[10:])])
    assert ours.n_samples == 30
    np.testing.assert_array_equal(ours.factor.triangle.R, known.factor.triangle.R)
    with pytest.raises(ValueError, match="columns"):
        ours.update(np.empty((0, 3)), np.empty(0))


def test_what_is_explained_of_a_constant_target():
    X = np.random.default_rng(4).standard_normal((20, 3))
    moments = Moments.from_data(X, np.full(20, 2.0))
    assert moments.explained(np.zeros(3), 2.0) == 1.0
    assert moments.explained(np.zeros(3), 1.0) == 0.0
