"""The hot loops are really compiled, once per kind of call, and do what their Python source says.

Inner kernels have no Python wrapper, so calling one from Python, or a kernel's `.py_func`, crashes:
the interpreted version runs in a process of its own with NUMBA_DISABLE_JIT=1.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import blockl0
from blockl0 import kernels

JIT_IS_OFF = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
compiled = pytest.mark.skipif(JIT_IS_OFF, reason="NUMBA_DISABLE_JIT is set: nothing is compiled")

# called with and without the perspective relaxation; `passes` is then an int or None
TWICE = {"search_tree"}

SCRIPT = """
import json
import numpy as np
import blockl0
from blockl0.block_search import search_block

answers = []
# with a copied column there is no relaxation; from 20 columns on there is one otherwise
cases = [(1, 0, 1), (2, 0.1, 2), (5, 0.3, 5), (7, 0.2, 4), (12, 0.3, 12), (17, 0, 3), (21, 0.3, 5)]
for k, price, budget in cases:
    rng = np.random.default_rng(k)
    X, y = rng.standard_normal((k + 5, k)), rng.standard_normal(k + 5)
    if k < 20:
        X[:, -1] = X[:, 0]
    forced = np.arange(k) == 1
    for must in (None, forced):
        solution = search_block(X.T @ X, -(X.T @ y), float(price), budget, forced=must)
        answers.append([*solution.z, solution.value, solution.proven, solution.n_nodes])
X, y = rng.standard_normal((20, 18)), rng.standard_normal(20)
for method in ("dec", "exact"):
    result = blockl0.solve(X, y, n_nonzero_coefs=3, method=method, random_state=0)
    answers.append([*result.coef, result.objective])
print(json.dumps(answers))
"""
DESCENTS = """
import numpy as np
from blockl0.moves.pool import Pool
from blockl0.problem.problem import as_problem

rng, rows = np.random.default_rng(1), []
for _ in range(5):
    X = rng.standard_normal((25, 8)) @ rng.standard_normal((8, 70))
    problem = as_problem(X, rng.standard_normal(25), n_nonzero_coefs=8)
    pool = Pool(problem, np.arange(70), problem.gradient(np.zeros(70)), (X**2).sum(axis=0))
    pool.descend()
    rows += pool.table.rows[: pool.size].ravel().tolist()
print(rows)
"""
"""Descents through nearly dependent columns, where a last bit that differs soon shows."""


def public_kernels():
    """The kernels with a Python wrapper: those declared with `kernel`."""
    return {
        name: f
        for name, f in vars(kernels).items()
        if isinstance(f, Dispatcher) and not f.targetoptions.get("no_cpython_wrapper", False)
    }


def solve_everything():
    """Reach the kernels from every public side, with every dtype and order a user may bring."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 24)), rng.standard_normal(40)
    for matrix in (X, np.asfortranarray(X), X.astype(np.float32), X.tolist()):
        for sparsity in (
            {"n_nonzero_coefs": 3},
            {"alpha": 1},
            {"n_nonzero_coefs": 4, "alpha": 0.5},
        ):
            for method in ("dec", "exact", "refit"):
                blockl0.solve(matrix, y, method=method, random_state=0, **sparsity)
    for k in (3, 20):
        H = X[:, :k].T @ X[:, :k]
        blockl0.block_search(H, X[:, :k].T @ y, budget=2)
        blockl0.block_search(np.asfortranarray(H), (X[:, :k].T @ y).tolist(), price=1)
        blockl0.block_search(
            H.astype(int) + 50 * np.eye(k, dtype=int), np.arange(k), 0, np.int32(2)
        )


@compiled
def test_there_are_kernels():
    assert set(public_kernels()) >= TWICE


@compiled
def test_every_kernel_is_compiled_once():
    solve_everything()
    counts = {name: len(f.signatures) for name, f in public_kernels().items()}
    assert {name: counts[name] for name in TWICE} == dict.fromkeys(TWICE, 2)
    # walks are made in single precision, and in double where that does not do; and both moves of a
    # pool once more where units, bounds or responses have a structure
    assert counts["anneal"] <= 3 and counts["descend"] <= 2
    # a kernel that these calls do not reach has none
    others = {n: k for n, k in counts.items() if n not in (*TWICE, "anneal", "descend")}
    assert max(others.values(), default=0) <= 1, others


@compiled
def test_kernels_are_compiled_not_interpreted():
    """No object mode, and a cache on disk for all that Python calls."""
    solve_everything()
    for name, f in public_kernels().items():
        assert all(not f.overloads[s].objectmode for s in f.signatures), name
        assert f.stats.cache_path is not None, name
        seen = sum(f.stats.cache_hits.values()) + sum(f.stats.cache_misses.values())
        assert seen >= len(f.signatures), name


def run_script(script=SCRIPT, **environment):
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.slow
def test_interpreted_equals_compiled():
    """The same search in plain Python: same nodes, same answers up to the order of additions."""
    fast, slow = run_script(NUMBA_DISABLE_JIT="0"), run_script(NUMBA_DISABLE_JIT="1")
    assert len(fast) == len(slow) == 16
    for a, b in zip(fast, slow, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@compiled
@pytest.mark.slow
def test_what_is_read_from_the_cache_is_what_was_compiled(tmp_path):
    """To the last bit: otherwise the first process would not repeat by its seed."""
    first, second = (run_script(DESCENTS, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert first == second
