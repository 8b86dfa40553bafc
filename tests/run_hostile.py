"""Many hostile problems, more than a test suite has time for.

    python tests/run_hostile.py truth --problems 1000000 --jobs 2     claims against enumeration
    python tests/run_hostile.py trees --problems 100000 --largest 8   every bound of proof trees
    python tests/run_hostile.py losses --problems 10000 --largest 7   other losses, by enumeration
    python tests/run_hostile.py near --problems 10000 --largest 6     their near dependences
    NUMBA_BOUNDSCHECK=1 python tests/run_hostile.py entries --jobs 2  public entries, for crashes

Prints what is wrong, by seed, and counts. A run that is stopped says how far it came; --first goes
on from there. With bounds checking NUMBA_CACHE_DIR should name a folder of its own.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

CHUNK = 200

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")


def run_chunk(what: str, first: int, count: int, largest: int) -> tuple[Counter, list[str]]:
    """Check some seeds; what was called, and what was wrong."""
    import hostile_checks
    import hostile_losses
    import hostile_trees

    calls, wrong = Counter(), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(first, first + count):
            try:
                if what == "truth":
                    wrong += hostile_checks.check_problem(seed, largest)
                    calls["problems"] += 1
                elif what == "trees":
                    wrong += hostile_trees.check_tree(seed, largest)[1]
                    wrong += hostile_trees.check_structured(seed)[1]
                    calls["problems"] += 1
                elif what == "losses":
                    wrong += hostile_losses.check_losses(seed, largest)
                    calls["problems"] += 1
                elif what == "near":
                    wrong += hostile_losses.check_near(seed, largest)[0]
                    calls["problems"] += 1
                else:
                    calls.update(hostile_checks.call_entries(seed, largest))
            except Exception:
                wrong.append(f"seed {seed}: {traceback.format_exc(limit=-3)}")
    return calls, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("truth", "trees", "losses", "near", "entries"))
    parser.add_argument("--problems", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=1_000_000, help="first seed")
    parser.add_argument("--largest", type=int, default=10, help="most columns")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args()
    started, calls, n_wrong, done = time.time(), Counter(), 0, options.first
    starts = iter(range(options.first, options.first + options.problems, CHUNK))
    with ProcessPoolExecutor(options.jobs) as pool:
        waiting = []
        for first in starts:
            waiting.append(
                (first, pool.submit(run_chunk, options.what, first, CHUNK, options.largest))
            )
            if len(waiting) < 2 * options.jobs:
                continue
            done, found = waiting[0][0] + CHUNK, waiting.pop(0)[1].result()
            calls.update(found[0])
            n_wrong += _show(found[1])
            if time.time() - started > options.seconds:
                break
            if sum(calls.values()) % 20_000 == 0:
                print(f"{sum(calls.values())} done, {n_wrong} wrong, next seed {done}", flush=True)
        for first, future in waiting:
            found = future.result()
            calls.update(found[0])
            n_wrong += _show(found[1])
            done = first + CHUNK
    print(f"{sum(calls.values())} done in {time.time() - started:.0f} s: {dict(calls)}")
    print(f"{n_wrong} wrong; next seed {done}")
    return 1 if n_wrong else 0


def _show(wrong: list[str]) -> int:
    for line in wrong:
        print(line, flush=True)
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main())
