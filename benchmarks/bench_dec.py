"""Speed and memory of method "dec": warm, single thread, against the paper's printed seconds.

Run with OMP_NUM_THREADS=1. Give the path of E2006_5000_10000.mat as BLOCKL0_E2006 for its rows.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

import numpy as np

ITERATIONS = 1000
PAPER_SECONDS = {1024: 36.0, 2048: 66.0}  # DEC-R10G2 of the paper, MATLAB


def random_data(m, n, seed=0):
    """'random-m-n' of the paper: 100 true features, noise of deviation 10."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n))
    w = np.zeros(n)
    w[rng.choice(n, min(100, n), replace=False)] = rng.standard_normal(min(100, n))
    return np.asfortranarray(X), X @ w + 10 * rng.standard_normal(m)


def run(X, y, **options):
    """All the iterations: a window as long as the run never stops it early."""
    import blockl0

    options = {"working_set": "R10G2", "max_iter": ITERATIONS, "window": ITERATIONS} | options
    return blockl0.solve(X, y, method="dec", **{"random_state": 0, **options})


def seconds(X, y, repeats=5, **options):
    """The best wall-clock time of some runs, and the last result."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = run(X, y, **options)
        times.append(time.perf_counter() - start)
    return min(times), result


def against_the_paper():
    print(f"R10G2, {ITERATIONS} iterations, seconds (best of 5), and the paper's MATLAB")
    for n, paper in PAPER_SECONDS.items():
        X, y = random_data(256, n)
        for form in ({"n_nonzero_coefs": 20}, {"n_nonzero_coefs": 50}, {"alpha": 100.0}):
            took, result = seconds(X, y, **form)
            print(
                f"  random-256-{n:<5} {form!s:24} {took:7.3f} s   paper {paper:.0f} s"
                f"   {paper / took:6.0f}x   {result.n_iter} iterations, F {result.objective:.6g}"
            )


def unchanged_blocks():
    print("an iteration whose block does not change, started from the end of a long run")
    for n in PAPER_SECONDS:
        X, y = random_data(256, n)
        w = run(X, y, n_nonzero_coefs=20, max_iter=20_000, window=20_000).coef
        moves, points = 0, [w]

        def count(progress, points=points):
            nonlocal moves
            moves += not np.array_equal(points[-1], progress.coef)
            points[:] = [progress.coef.copy()]

        run(X, y, n_nonzero_coefs=20, init=w, callback=count)
        short, _ = seconds(X, y, n_nonzero_coefs=20, init=w, max_iter=1, window=1)
        took, _ = seconds(X, y, n_nonzero_coefs=20, init=w)
        print(
            f"  256x{n:<6} {1e6 * (took - short) / ITERATIONS:7.1f} us per iteration "
            f"({moves} of {ITERATIONS} blocks changed); set-up {1e3 * short:.1f} ms"
        )


def growth():
    print(f"growth with n (m = 256, s = 20), {ITERATIONS} iterations")
    sizes, times = [1_000, 10_000, 100_000], []
    for n in sizes:
        X, y = random_data(256, n)
        took, result = seconds(X, y, repeats=3 if n < 50_000 else 1, n_nonzero_coefs=20)
        times.append(took)
        moves = np.count_nonzero(np.diff(result.history.objective))
        print(f"  n = {n:<7} {took:8.3f} s   {moves} moves   F {result.objective:.6g}")
    slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
    print(f"  seconds ~ n^{slope:.2f}")


def load_e2006():
    from scipy.io import loadmat

    data = loadmat(os.environ["BLOCKL0_E2006"])
    matrices = sorted(
        (value for value in data.values() if hasattr(value, "shape")), key=lambda a: -a.shape[1]
    )
    X, y = matrices[:2]
    return X, np.asarray(y, dtype=np.float64).ravel()


MEMORY_CASES = {
    "sparse e2006 5000x10000": load_e2006,
    "dense random 500x50000": lambda: random_data(500, 50_000),
}


def peak_memory(case):
    """Print the memory above that of the data, in MiB, and the seconds; run in a fresh process."""
    import resource

    X, y = MEMORY_CASES[case]()
    rng = np.random.default_rng(0)
    run(rng.standard_normal((20, 30)), rng.standard_normal(20), n_nonzero_coefs=3)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    took, result = seconds(X, y, repeats=1, n_nonzero_coefs=20)
    extra = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    held = X.nbytes if isinstance(X, np.ndarray) else X.data.nbytes + X.indices.nbytes
    print(
        f"  {case:25} {took:7.2f} s   +{extra:6.0f} MiB peak over {held / 2**20:.0f} MiB of data"
        f"   {result.n_iter} iterations, F {result.objective:.6g}"
    )


def memory():
    print("peak memory, each in a fresh process (a Gram matrix would take 763 and 19073 MiB)")
    for case in MEMORY_CASES:
        if "e2006" in case and not os.environ.get("BLOCKL0_E2006"):
            print(f"  {case:25} SKIPPED: set BLOCKL0_E2006 to the path of E2006_5000_10000.mat")
            continue
        subprocess.run([sys.executable, __file__, case], check=True)


def main():
    X, y = random_data(32, 64)
    run(X, y, n_nonzero_coefs=3)  # compile, or load from the cache
    against_the_paper()
    unchanged_blocks()
    growth()
    memory()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        peak_memory(sys.argv[1])
    else:
        main()
