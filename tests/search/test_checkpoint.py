"""A run that is killed and begun again: the same answer, and no pass twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

from blockl0 import solve
from blockl0.files import read_archive, write_archive
from blockl0.search import checkpoint
from blockl0.storage import ArraySource

GIVEN: Any = {"n_nonzero_coefs": 6, "random_state": 0, "pool": 40, "effort": 3}


class Counting(ArraySource):
    """Notes the passes, and may fail, or kill the process, in one of them."""

    held_bytes = 10_000

    def __init__(self, X, n_left=10**9, end=None):
        super().__init__(X, [200, 900, X.shape[1]])
        self.n_blocks, self.n_left, self.end = 0, n_left, end

    def block(self, i):
        self.n_blocks += 1
        if self.n_blocks > self.n_left:
            if self.end is None:
                raise OSError("the disk is gone")
            self.end()
        return super().block(i)


@pytest.fixture(autouse=True)
def written_at_once(monkeypatch):
    monkeypatch.setattr(checkpoint, "PATIENCE", 0.0)


def draw(seed=0):
    rng = np.random.default_rng(seed)
    X = np.asfortranarray(rng.standard_normal((60, 1500)))
    return X, X[:, :6].sum(axis=1) + 2.0 * rng.standard_normal(60)


def _with_one_column(X, j):
    """X with the rows of one column in another order."""
    X = X.copy()
    X[:, j] = X[::-1, j]
    return X


def same(here, there):
    assert here.objective == there.objective and here.n_iter == there.n_iter
    np.testing.assert_array_equal(here.coef, there.coef)  # the same steps, on the same blocks
    assert str(here.certificate) == str(there.certificate)


@pytest.mark.parametrize("n_left", [2, 4, 11])
def test_a_run_that_failed_goes_on_to_the_same_answer(tmp_path, n_left):
    X, y = draw()
    whole = Counting(X)
    alone = solve(whole, y, **GIVEN)
    path = tmp_path / "run.npz"
    with pytest.raises(OSError, match="the disk is gone"):
        solve(Counting(X, n_left), y, checkpoint=path, **GIVEN)
    again = Counting(X)
    same(solve(again, y, checkpoint=path, **GIVEN), alone)
    # passes that were ended were not made again, but for the first, which knows the data
    assert again.n_blocks == whole.n_blocks - 3 * max(0, n_left // 3 - 1)
    third = Counting(X)
    same(solve(third, y, checkpoint=path, **GIVEN), alone)
    assert third.n_blocks == 3


SCRIPT = """
import os, signal, sys
sys.path[:0] = [{tests!r}, os.path.dirname({tests!r})]
from test_checkpoint import Counting, GIVEN, checkpoint, draw, solve
checkpoint.PATIENCE = 0.0
X, y = draw()
solve(Counting(X, {n_left}, lambda: os.kill(os.getpid(), signal.SIGKILL)), y,
      checkpoint={path!r}, **GIVEN)
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_a_killed_process(tmp_path):
    path, n_left = tmp_path / "run.npz", 10
    script = SCRIPT.format(tests=os.path.dirname(__file__), path=str(path), n_left=n_left)
    done = subprocess.run([sys.executable, "-c", script], check=False, timeout=300)
    assert done.returncode == -signal.SIGKILL and path.exists()
    X, y = draw()
    again, whole = Counting(X), Counting(X)
    same(solve(again, y, checkpoint=path, **GIVEN), solve(whole, y, **GIVEN))
    assert again.n_blocks == whole.n_blocks - 3 * (n_left // 3 - 1)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_killed_at_any_moment_the_file_is_whole(tmp_path):
    """A child is killed after some time; whatever it left can be read, or is not there."""
    path = tmp_path / "run.npz"
    script = SCRIPT.format(tests=os.path.dirname(__file__), path=str(path), n_left=10**9)
    for pause in (2.0, 4.0):
        child = subprocess.Popen([sys.executable, "-c", script])
        time.sleep(pause)
        child.kill()
        child.wait()
        if path.exists():
            assert "options" in read_archive(path, "blockl0 checkpoint 2", "a checkpoint")


def test_what_is_not_the_same_run_is_refused(tmp_path):
    X, y = draw()
    path = tmp_path / "run.npz"
    solve(Counting(X), y, checkpoint=path, **GIVEN)
    refused = {
        "n_nonzero_coefs was 6 and is 5": (X, y, {"n_nonzero_coefs": 5}),
        "random_state was 0 and is 1": (X, y, {"random_state": 1}),
        "effort was 3 and is fast": (X, y, {"effort": "fast"}),
        "ridge was 0.0 and is 1.0": (X, y, {"ridge": 1.0}),
        "other data: y differs": (X, y + 1.0, {}),
        "other data: column 0 of X": (X + 1.0, y, {}),
        "other data: column 2 of X": (_with_one_column(X, 2), y, {}),
        "sample_weight": (X, y, {"sample_weight": np.arange(60.0)}),
        r"shape of X was \(60, 1500\) and is \(60, 1499\)": (X[:, 1:], y, {}),
        "init": (X, y, {"init": np.eye(1500)[3]}),
    }
    for match, (X_here, y_here, other) in refused.items():
        with pytest.raises(ValueError, match=match):
            solve(Counting(X_here), y_here, checkpoint=path, **{**GIVEN, **other})


def test_what_cannot_be_kept_is_refused(tmp_path):
    X, y = draw()
    path = tmp_path / "run.npz"
    with pytest.raises(ValueError, match="method='refit', got method='omp'"):
        solve(X, y, n_nonzero_coefs=3, method="omp", checkpoint=path)
    with pytest.raises(TypeError, match="got a Generator"):
        solve(X, y, n_nonzero_coefs=3, random_state=np.random.default_rng(0), checkpoint=path)
    with pytest.raises(ValueError, match="got loss='huber'"):
        solve(X, y, n_nonzero_coefs=3, loss="huber", checkpoint=path)
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match="is not a checkpoint"):
        solve(X, y, n_nonzero_coefs=3, checkpoint=path)
    write_archive(path, "another form", {"a": np.ones(3)}, force=True)
    with pytest.raises(ValueError, match="form or its checksum differs"):
        solve(X, y, n_nonzero_coefs=3, checkpoint=path)
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        solve(X, y, n_nonzero_coefs=3, checkpoint=tmp_path / "none" / "run.npz")


def test_a_seed_that_was_drawn_is_kept(tmp_path):
    X, y = draw(4)
    given: Any = {**GIVEN, "random_state": None}
    first = solve(X, y, checkpoint=tmp_path / "run.npz", **given)
    same(solve(X, y, checkpoint=tmp_path / "run.npz", **given), first)


def test_an_archive_that_was_changed_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    write_archive(path, "form", {"a": np.arange(300.0)})
    assert read_archive(path, "form", "it")["a"].tolist() == list(range(300))
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(ValueError, match="is not it"):
        read_archive(path, "form", "it")
