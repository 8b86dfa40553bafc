"""Arrays and frames of dask: on threads and on processes, that end or are ended in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from blockl0 import L0Classifier, L0Regressor, L0RegressorCV, Moments, l0_path, solve
from blockl0.data import dask_arrays
from blockl0.data.source import limits_of
from blockl0.storage import opened

da = pytest.importorskip("dask.array", reason="dask is not installed: pip install dask")
distributed = pytest.importorskip(
    "distributed", reason="distributed is not installed: pip install distributed"
)
M, N = 80, 600


@pytest.fixture(autouse=True)
def nothing_is_small(monkeypatch):
    set_block(monkeypatch, 1 << 20)


def set_block(monkeypatch, size):
    """Have blocks of so many bytes, and nothing read into memory for being small."""
    limits = limits_of()._replace(block=size, held=20_000)
    monkeypatch.setattr(dask_arrays, "limits_of", lambda memory_limit: limits)


def workers(n):
    """Processes of one thread each."""
    return distributed.LocalCluster(
        n_workers=n, processes=True, threads_per_worker=1, dashboard_address=":0"
    )


@pytest.fixture(scope="module")
def cluster():
    with workers(4) as made, distributed.Client(made):
        yield made


@pytest.fixture(params=["threads", pytest.param("processes", marks=pytest.mark.slow)])
def scheduler(request):
    if request.param == "processes":
        return request.getfixturevalue("cluster")
    return None


def draw(seed=0, m=M, n=N):
    rng = np.random.default_rng(seed)
    X = np.asfortranarray(rng.standard_normal((m, n)) + 5.0)
    return X, X[:, [3, n // 2, n - 1]] @ [1.0, -2.0, 1.5] + rng.standard_normal(m)


def many_blocks(X, monkeypatch, width=70):
    """An array whose chunks of so many columns are blocks of their own."""
    set_block(monkeypatch, X[:, :width].nbytes)
    return da.from_array(X, chunks=(len(X), width))


def check_same(ours, known):
    assert ours.support.tolist() == known.support.tolist()
    np.testing.assert_allclose(ours.coef, known.coef, rtol=1e-10)
    assert ours.objective == pytest.approx(known.objective, rel=1e-10)


def test_solve_and_path_are_those_in_memory(scheduler, monkeypatch):
    X, y = draw()
    D = many_blocks(X, monkeypatch)
    given = {"n_nonzero_coefs": 4, "effort": "fast", "random_state": 0}
    known, ours = solve(X, y, **given), solve(D, y, **given)
    check_same(ours, known)
    assert ours.certificate.holds and ours.n_passes > 1
    for point, other in zip(l0_path(D, y, **given), l0_path(X, y, **given), strict=True):
        check_same(point, other)


def test_estimators_take_arrays_of_dask(scheduler, monkeypatch):
    X, y = draw(1)
    D = many_blocks(X, monkeypatch)
    given = {"effort": "fast", "random_state": 0}
    ours, known = (L0Regressor(4, **given).fit(A, y) for A in (D, X))
    assert ours.support_.tolist() == known.support_.tolist()
    np.testing.assert_allclose(ours.coef_, known.coef_, rtol=1e-10)
    np.testing.assert_allclose(ours.predict(D), known.predict(X), rtol=1e-12)
    labels = y > np.median(y)
    ours, known = (L0Classifier(2, ridge=0.1, **given).fit(A, labels) for A in (D, X))
    assert ours.support_.tolist() == known.support_.tolist()


@pytest.mark.parametrize("width", [1, 7, N])
def test_any_chunks_give_the_same_answer(width):
    X, y = draw(2)
    source = opened(da.from_array(X, chunks=(M, width)))
    # small chunks are one block
    assert len(source.parts) == 1 and source.parts[0] == slice(0, N)
    given = {"n_nonzero_coefs": 3, "effort": "fast", "random_state": 0}
    check_same(solve(source, y, **given), solve(X, y, **given))


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_entries_travel_only_as_columns_that_are_asked_for(scheduler, monkeypatch, dtype):
    X, y = draw(3)
    X = np.round(X).astype(dtype)
    source = opened(many_blocks(X, monkeypatch))
    given = {"n_nonzero_coefs": 3, "pool": 20, "effort": "fast", "random_state": 0}
    check_same(solve(source, y, **given), solve(X.astype(float), y, **given))
    traffic = source.engine.traffic
    assert traffic.n_maps > 1
    assert 0 < traffic.received < traffic.n_maps * 8 * X.size / 4
    assert traffic.sent > 0
    idx = np.array([599, 3, 3, 70])
    np.testing.assert_array_equal(source.columns(idx), X[:, idx].astype(float))


def test_chunks_that_do_not_fit_are_refused_with_the_call(monkeypatch):
    X, y = draw(4)
    with pytest.raises(ValueError, match=r"80 rows and 600.*|use X.rechunk\(\(80, 600\)\)"):
        solve(da.from_array(X, chunks=(20, 100)), y, n_nonzero_coefs=2)
    D = da.from_array(X, chunks=(M, 300))
    with pytest.raises(ValueError, match=r"use X\.rechunk\(\(80, 15\)\)"):
        opened(D, memory_limit=4 * 15 * X[:, :1].nbytes)
    check_same(
        solve(D.rechunk((80, 15)), y, n_nonzero_coefs=2, random_state=0),
        solve(X, y, n_nonzero_coefs=2, random_state=0),
    )
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        solve(D[:, D[0] > 5.0], y, n_nonzero_coefs=2)


def test_a_bad_entry_is_named(scheduler, monkeypatch):
    X, y = draw(5)
    X[70, 598] = np.nan
    with pytest.raises(ValueError, match="column 598, row 70"):
        solve(many_blocks(X, monkeypatch), y, n_nonzero_coefs=2)


# -- rows ------------------------------------------------------------------------------------------


def tall(seed=6, m=3000, n=8):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n)) + 1e4
    return X, X[:, 1] - X[:, 5] + rng.standard_normal(m)


def test_tall_arrays_and_frames_are_read_by_rows(scheduler):
    dd = pytest.importorskip("dask.dataframe", reason="dask's data frames are not installed")
    pd = pytest.importorskip("pandas")
    X, y = tall()
    known = L0RegressorCV(5, random_state=0).fit(Moments.from_data(X, y, folds=5))
    D, d = da.from_array(X, chunks=(700, 8)), da.from_array(y, chunks=700)
    check_same(
        solve(D, y, n_nonzero_coefs=2, random_state=0),
        solve(X, y, n_nonzero_coefs=2, random_state=0),
    )
    for target in (y, d):
        ours = L0Regressor(2, random_state=0).fit(D, target)
        assert ours.support_.tolist() == [1, 5]
        np.testing.assert_allclose(ours.predict(D), ours.predict(X), rtol=1e-12)
    ours = L0RegressorCV(5, random_state=0, cv=4).fit(D, d)
    assert ours.support_.tolist() == known.support_.tolist() and len(ours.cv_scores_) == 4
    frame = pd.DataFrame(X, columns=[*"abcdefgh"]).assign(y=y)
    parts = dd.from_pandas(frame, npartitions=3)
    ours = L0Regressor(2, random_state=0).fit(parts[[*"abcdefgh"]], parts["y"])
    assert ours.feature_names_in_[ours.support_].tolist() == ["b", "f"]
    predicted = ours.predict(frame[[*"abcdefgh"]])
    np.testing.assert_allclose(ours.predict(parts[[*"abcdefgh"]]), predicted, rtol=1e-12)
    with pytest.raises(ValueError, match="in their order"):
        ours.predict(parts[[*"hbcdefga"]])
    with pytest.raises(ValueError, match="squared loss"):
        L0Regressor(2, loss="huber").fit(parts[[*"abcdefgh"]], parts["y"])
    with pytest.raises(ValueError, match="must be of dask"):
        L0Regressor(2).fit(parts[[*"abcdefgh"]], y)


def test_folds_of_partitions_are_those_of_the_rows():
    X, y = tall(7)
    D = da.from_array(X, chunks=(700, 8))
    ours, known = (Moments.from_data(A, y, folds=3) for A in (D, X))
    assert [f.n_rows for f in ours.fold_factors] == [f.n_rows for f in known.fold_factors]


# -- workers that are lost -------------------------------------------------------------------------


def after_some(n_answers, act):
    """An engine's map that acts in the middle of a pass."""
    plain, seen = dask_arrays.DaskEngine.map, [0]

    def map(self, *given):
        for answer in plain(self, *given):
            seen[0] += 1
            if seen[0] == n_answers:
                act()
            yield answer

    return map


@pytest.mark.slow
def test_a_worker_that_is_killed_changes_nothing(monkeypatch):
    X, y = draw(8)
    with (
        workers(4) as cluster,
        distributed.Client(cluster) as client,
    ):

        def kill_one():
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

        D = many_blocks(X, monkeypatch)
        given = {"n_nonzero_coefs": 4, "pool": 20, "effort": "fast", "random_state": 0}
        undisturbed = solve(D, y, **given)
        monkeypatch.setattr(dask_arrays.DaskEngine, "map", after_some(12, kill_one))
        ours = solve(D, y, **given)
    np.testing.assert_array_equal(ours.coef, undisturbed.coef)
    check_same(ours, solve(X, y, **given))


def deadly(i, X):
    if i == 2:
        os._exit(1)
    return X


@pytest.mark.slow
def test_a_block_that_ends_its_workers_is_named(monkeypatch):
    import dask

    X, y = draw(9, n=40)
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        workers(2) as cluster,
        distributed.Client(cluster),
    ):
        set_block(monkeypatch, X[:, :10].nbytes)
        pieces = [dask.delayed(deadly)(i, X[:, 10 * i : 10 * i + 10]) for i in range(4)]
        D = da.concatenate([da.from_delayed(p, (M, 10), dtype=float) for p in pieces], axis=1)
        with pytest.raises(RuntimeError, match=r"columns 20 to 29; X\.rechunk\(\(80, 2\)\)"):
            solve(D, y, n_nonzero_coefs=2)


@pytest.mark.slow
def test_workers_that_are_all_gone_in_the_middle_do_not_hang(monkeypatch):
    monkeypatch.setattr(dask_arrays, "PATIENCE", 2.0)
    X, y = draw(12)
    with (
        workers(2) as cluster,
        distributed.Client(cluster) as client,
    ):

        def close_all():
            cluster.scale(0)
            for _ in range(100):
                if not client.nthreads():
                    return
                time.sleep(0.1)

        D = many_blocks(X, monkeypatch)
        monkeypatch.setattr(dask_arrays.DaskEngine, "map", after_some(12, close_all))
        with pytest.raises(RuntimeError, match=r"no worker for 2 seconds|given a task up"):
            solve(D, y, n_nonzero_coefs=4, random_state=0)


@pytest.mark.slow
def test_cross_validation_on_workers_is_that_in_memory(cluster, monkeypatch):
    X, y = draw(13, n=300)
    D = many_blocks(X, monkeypatch)
    given = {"cv": 3, "random_state": 0}
    ours, known = (L0RegressorCV(4, **given).fit(A, y) for A in (D, X))
    np.testing.assert_allclose(ours.cv_scores_, known.cv_scores_, rtol=1e-9)
    assert ours.support_.tolist() == known.support_.tolist()


def test_a_cluster_without_workers_does_not_hang(monkeypatch):
    monkeypatch.setattr(dask_arrays, "PATIENCE", 2.0)
    X, y = draw(10, n=40)
    with (
        workers(0) as cluster,
        distributed.Client(cluster),
        pytest.raises(RuntimeError, match="no worker for 2 seconds"),
    ):
        solve(da.from_array(X, chunks=(M, 10)), y, n_nonzero_coefs=2)


SCRIPT = """
import os, signal, sys
sys.path[:0] = [{tests!r}, os.path.dirname({tests!r})]
import pytest
import test_dask as t
from blockl0.search import checkpoint

if __name__ == "__main__":
    checkpoint.PATIENCE = 0.0
    X, y = t.draw(11)
    with pytest.MonkeyPatch.context() as patch, t.workers(2) as made, t.distributed.Client(made):
        D = t.many_blocks(X, patch)
        end = lambda: os.kill(os.getpid(), signal.SIGKILL)
        patch.setattr(t.dask_arrays.DaskEngine, "map", t.after_some(30, end))
        t.solve(D, y, checkpoint={path!r}, **t.KEPT)
"""
KEPT = {"n_nonzero_coefs": 4, "pool": 20, "effort": "fast", "random_state": 0}


@pytest.mark.slow
def test_a_client_that_is_killed_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    script = tmp_path / "run.py"
    script.write_text(SCRIPT.format(tests=os.path.dirname(__file__), path=str(path)))
    done = subprocess.run([sys.executable, str(script)], check=False, timeout=300)
    assert done.returncode == -signal.SIGKILL and path.exists()
    X, y = draw(11)
    D = many_blocks(X, monkeypatch)
    whole, again = opened(D), opened(D)
    known = solve(whole, y, **KEPT)
    ours = solve(again, y, checkpoint=path, **KEPT)
    np.testing.assert_array_equal(ours.coef, known.coef)
    assert again.engine.traffic.n_maps < whole.engine.traffic.n_maps
