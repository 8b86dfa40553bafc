"""The same calls with the environment as a user has it, and with 1, 2 and many BLAS threads.

    python benchmarks/bench_threads.py [--repeats 3] [--only NAME]

Every setting is a process of its own, alone and then beside a process that keeps one core busy. A
number is the median wall time over that of the best setting in the same surroundings; "untouched"
should be at most 1.1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median

import numpy as np

import blockl0

SETTINGS = {"untouched": None, "1 thread": "1", "2 threads": "2", "many threads": "16"}
VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
NOISE = 1.1


def calls() -> dict[str, Callable[[], object]]:
    """Return the calls by name, on data that are made once."""
    rng = np.random.default_rng(0)

    def data(m: int, n: int, informative: int) -> tuple[np.ndarray, np.ndarray]:
        X = np.asfortranarray(rng.standard_normal((m, n)))
        return X, X[:, :informative].sum(axis=1) + rng.standard_normal(m)

    small, wide, tall, square = (
        data(100, 10, 3),
        data(300, 3000, 8),
        data(10**5, 30, 10),
        data(2000, 1000, 10),
    )
    hard, large = data(256, 1024, 60), data(6000, 1500, 10)
    solve, k10, exact = blockl0.solve, {"n_nonzero_coefs": 10}, {"ridge": 0.1, "method": "exact"}
    forty = {"n_nonzero_coefs": 40, "random_state": 0}
    return {
        "solve 100x10": lambda: [solve(*small, n_nonzero_coefs=5) for _ in range(50)],
        "solve 2000x1000": lambda: [solve(*square, **k10) for _ in range(3)],
        "solve 256x1024, 40 columns": lambda: solve(*hard, **forty),
        "solve 6000x1500, a price": lambda: solve(*large, alpha=20.0, random_state=0),
        "path 100000x30": lambda: blockl0.l0_path(*tall, n_nonzero_coefs=20),
        "exact 2000x1000": lambda: solve(*square, **k10, **exact),
        "exact 6000x1500": lambda: solve(*large, **k10, **exact),
        "L0Classifier 300x3000": lambda: blockl0.L0Classifier(5).fit(wide[0], wide[1] > 0),
        "L0RegressorCV 300x3000": lambda: blockl0.L0RegressorCV(n_nonzero_coefs=8, cv=3).fit(*wide),
        "dec 256x1024": lambda: solve(*hard, **forty, method="dec"),
    }


def measure(only: str, repeats: int) -> None:
    """Print the wall seconds of each call as JSON, in the environment of this process."""
    found = {}
    for name, call in calls().items():
        if only in name:
            call()
            found[name] = []
            for _ in range(repeats):
                started = time.perf_counter()
                call()
                found[name].append(time.perf_counter() - started)
    print(json.dumps(found))


@contextmanager
def a_busy_core() -> Iterator[None]:
    """Keep one core busy meanwhile."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def in_setting(threads: str | None, only: str, repeats: int) -> dict[str, float]:
    """Return the median seconds of each call in a process with so many threads."""
    environment = {k: v for k, v in os.environ.items() if k not in VARIABLES}
    if threads is not None:
        environment |= dict.fromkeys(VARIABLES, threads)
    command = [sys.executable, __file__, "--measure", "--only", only, "--repeats", str(repeats)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return {name: median(times) for name, times in json.loads(done.stdout).items()}


def show(title: str, only: str, repeats: int) -> bool:
    """Print a table of ratios; return whether "untouched" is among the best everywhere."""
    found = {label: in_setting(n, only, repeats) for label, n in SETTINGS.items()}
    print(f"\n{title}\n{'':30}{'best, s':>10}" + "".join(f"{label:>14}" for label in SETTINGS))
    is_good = True
    for name in found["untouched"]:
        best = min(times[name] for times in found.values())
        ratios = [times[name] / best for times in found.values()]
        is_good &= ratios[0] <= NOISE
        print(f"{name:30}{best:10.4f}" + "".join(f"{ratio:14.2f}" for ratio in ratios), flush=True)
    return is_good


def main() -> None:
    """Compare the settings, alone and beside a busy process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="", help="part of the name of a call")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        measure(given.only, given.repeats)
        return
    is_good = show("alone", given.only, given.repeats)
    with a_busy_core():
        is_good &= show("beside a busy process", given.only, given.repeats)
    print(f"\nuntouched within {NOISE} of the best everywhere: {'yes' if is_good else 'no'}")


if __name__ == "__main__":
    main()
