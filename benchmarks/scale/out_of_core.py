"""X in a file beside which memory is small: time in reads of the file, reads, and peak memory.

    python benchmarks/scale/out_of_core.py --folder /tmp/big                   3000×200,000, 4.8 GB
    python benchmarks/scale/out_of_core.py --folder /tmp/big --columns 417000  10 GB

Makes `X.npy`, float64 by columns, s = 30 true columns of signal over noise 5, unless it is there,
and solves it in processes of their own, one thread, compiled before. `private` is the most memory
of the process that it shares with none, looked at twenty times a second; `ratio` is the processor
time of a call over that of reading the file once in the same process, and `wall` the same of the
clock, which counts on a quiet machine only, with files that are not in the system's cache
(`--drop`, as root). The file is removed with `--remove`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

TRUE, SNR = 30, 5.0
STEP = 2000
"""Columns that are made at a time."""
CALLS = ("fast", "balanced", "path")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}


def make(folder: Path, m: int, n: int, dtype: str) -> Path:
    """The file of X, with y beside it."""
    path = folder / f"X_{m}_{n}_{dtype}.npy"
    if path.exists() and path.with_suffix(".y.npy").exists():
        return path
    rng = np.random.default_rng(0)
    true, y = np.sort(rng.choice(n, TRUE, replace=False)), np.zeros(m)
    header = {"descr": np.dtype(dtype).str, "fortran_order": True, "shape": (m, n)}
    with open(path, "wb") as file:
        np.lib.format.write_array_header_2_0(file, header)
        for start in range(0, n, STEP):
            X = (32 * rng.standard_normal((min(STEP, n - start), m), dtype=np.float32)).round()
            X = np.clip(X, -127, 127).astype(dtype)
            here = true[(true >= start) & (true < start + STEP)]
            y += X[here - start].sum(axis=0, dtype=np.float64)
            file.write(X.tobytes())
    y += rng.standard_normal(m) * y.std() / np.sqrt(SNR)
    np.save(path.with_suffix(".y.npy"), y)
    return path


def read_once(path: Path) -> tuple[float, float]:
    """Processor and clock seconds of reading a file."""
    buffer, cpu, wall = bytearray(64 << 20), time.process_time(), time.perf_counter()
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
    return time.process_time() - cpu, time.perf_counter() - wall


def drop_cache(drops: bool) -> None:
    """Have the next read come from the disk."""
    if drops:
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("1")


class Peak:
    """The most private memory of this process, in MiB, while it runs."""

    def __init__(self) -> None:
        self.most, self._is_over = 0.0, False
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def end(self) -> float:
        """Look no more."""
        self._is_over = True
        self._thread.join()
        return self.most

    def _watch(self) -> None:
        while not self._is_over:
            self.most = max(self.most, private())
            time.sleep(0.05)


def private() -> float:
    """Memory of this process that it shares with none, in MiB; Linux only."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    parts = [int(line.split()[1]) for line in lines if line.startswith("Private_")]
    return sum(parts) / 1024


def cell(path: Path, call: str, drops: bool) -> dict[str, Any]:
    """One call, measured in this process."""
    from blockl0 import l0_path, solve
    from blockl0.storage import opened

    small, y = (
        np.random.default_rng(1).standard_normal((200, 3000)),
        np.load(path.with_suffix(".y.npy")),
    )
    solve(small, small[:, 0], n_nonzero_coefs=3, random_state=0)
    drop_cache(drops)
    cpu_read, wall_read = read_once(path)
    drop_cache(drops)
    source, peak = opened(path), Peak()
    cpu, wall = time.process_time(), time.perf_counter()
    if call == "path":
        results = l0_path(source, y, n_nonzero_coefs=20, random_state=0).results
    else:
        results = (solve(source, y, n_nonzero_coefs=TRUE, effort=call, random_state=0),)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    certificates = [result.certificate for result in results]
    return {
        "call": call, "GB": round(path.stat().st_size / 1e9, 2),
        "reads": sum(result.n_passes or 0 for result in results), "cpu": round(cpu, 1),
        "ratio": round(cpu / cpu_read, 1), "seconds": round(wall, 1),
        "wall": round(wall / wall_read, 1),
        "private": round(peak.end()),
        "certified": all(c is not None and c.holds for c in certificates),
        "objective": results[-1].objective,
    }  # fmt: skip


def main() -> None:
    """Make the file, and measure every call in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--columns", type=int, default=200_000)
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--calls", nargs="+", default=CALLS, choices=CALLS)
    parser.add_argument("--drop", action="store_true", help="empty the system's cache first")
    parser.add_argument("--remove", action="store_true", help="remove the file in the end")
    parser.add_argument("--cell", help=argparse.SUPPRESS)
    given = parser.parse_args()
    path = make(given.folder, given.rows, given.columns, given.dtype)
    if given.cell:
        print(json.dumps(cell(path, given.cell, given.drop)))
        return
    for call in given.calls:
        command = [sys.executable, *sys.argv, "--cell", call]
        done = subprocess.run(
            command, env=os.environ | ONE_THREAD, check=True, capture_output=True, text=True
        )
        print(done.stdout.strip(), flush=True)
    if given.remove:
        path.unlink()
        path.with_suffix(".y.npy").unlink()


if __name__ == "__main__":
    main()
