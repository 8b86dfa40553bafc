"""Time and peak memory of blockl0, abess and OMP as X grows: one command, resumable.

    python benchmarks/scale/run.py            the whole benchmark; again: only what is missing
    python benchmarks/scale/run.py --quick    small sizes, about a minute, to results/quick
    python benchmarks/scale/run.py --rerun "blockl0 fast"    measure a method again

Every cell runs in a process of its own, one thread, and is appended to the CSV when it ends.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import report
from cells import SPARSE, Cell, all_cells

HERE = Path(__file__).parent
TIME_LIMIT = 120.0
"""Seconds for all calls of a cell; set-up does not count."""
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
MEASURED = (
    "status", "seconds", "cpu_seconds", "first_seconds", "calls", "data_bytes", "extra_bytes",
    "objective", "n_nonzero", "certified", "n_passes", "n_iter", "source", "when",
)  # fmt: skip
TOGETHER = "race"
"""The series whose verdict compares methods within one run."""


def run_cell(cell: Cell, time_limit: float = TIME_LIMIT) -> dict[str, Any]:
    """Start the worker, wait for its set-up, and then no longer than the limit."""
    process = subprocess.Popen(
        [sys.executable, str(HERE / "worker.py"), json.dumps(cell)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **ONE_THREAD},
    )
    assert process.stdout is not None
    try:
        is_ready = process.stdout.readline().strip() == "ready"
        output, errors = process.communicate(timeout=time_limit if is_ready else None)
        if process.returncode == 0:
            return json.loads(output.splitlines()[-1])
        if "bad_alloc" in errors:  # compiled code without a MemoryError to raise
            return {"status": "out of memory"}
        return {"status": "failed: " + "".join(errors.strip().splitlines()[-1:])}
    except subprocess.TimeoutExpired:
        return {"status": "did not finish"}
    finally:
        process.kill()
        process.communicate()


def source_of_blockl0() -> str:
    """A fingerprint of the installed sources, so that rows of different ones can be told apart."""
    package = Path(importlib.util.find_spec("blockl0").origin).parent
    digest = hashlib.sha1()
    for file in sorted(package.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:8]


def read_rows(path: Path) -> dict[Cell, dict[str, str]]:
    """The finished cells of a CSV; the last row of a cell counts."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        rows = [dict(row) for row in csv.DictReader(file)]
    return {cell_of(row): row for row in rows}


def cell_of(row: dict[str, str]) -> Cell:
    kinds = (str, str, int, int, float, int, int)
    return Cell(*(kind(row[name]) for kind, name in zip(kinds, Cell._fields, strict=True)))


def write_rows(path: Path, rows: list[dict[str, Any]], append: bool) -> None:
    is_new = not append or not path.exists()
    with path.open("a" if append else "w", newline="") as file:
        writer = csv.DictWriter(file, (*Cell._fields, *MEASURED), restval="")
        if is_new:
            writer.writeheader()
        writer.writerows(rows)


def pending(cells: list[Cell], done: dict[Cell, dict[str, str]]) -> list[Cell]:
    """What is missing; a race is run whole or not at all."""
    missing = [cell for cell in cells if cell not in done]
    again = {cell.series for cell in missing} & {TOGETHER}
    return [cell for cell in cells if cell not in done or cell.series in again]


def is_hopeless(cell: Cell, done: dict[Cell, dict[str, str]]) -> bool:
    """Whether the method has already given up on a smaller size of the same series."""
    return any(
        (other.series, other.method) == (cell.series, cell.method)
        and other.m * other.n < cell.m * cell.n
        and row["status"] != "ok"
        for other, row in done.items()
    )


def run_all(cells: list[Cell], path: Path, time_limit: float) -> dict[Cell, dict[str, str]]:
    """Run what is missing, append each row at once, return all rows."""
    done = read_rows(path)
    todo = pending(cells, done)
    source = source_of_blockl0()
    if todo:
        print(f"{len(todo)} of {len(cells)} cells to run, into {path}")
        # compile once, so that no cell starts with what compiling left in memory
        for density in (1.0, 0.5):
            run_cell(Cell("warm-up", "blockl0 balanced", 50, 30, density, 3, 0))
    for i, cell in enumerate(todo, 1):
        started = time.perf_counter()
        if is_hopeless(cell, done):
            answer: dict[str, Any] = {"status": "skipped: failed at a smaller size"}
        else:
            answer = run_cell(cell, time_limit)
        when = datetime.now().isoformat(timespec="seconds")
        row = {**cell._asdict(), **answer, "source": source, "when": when}
        write_rows(path, [row], append=True)
        done[cell] = {name: "" if value is None else str(value) for name, value in row.items()}
        print(f"[{i}/{len(todo)}] {report.line(cell, done[cell])}", end="")
        print(f"  ({time.perf_counter() - started:.0f} s with set-up)", flush=True)
    return {cell: done[cell] for cell in cells}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, in results/quick")
    parser.add_argument("--rerun", metavar="METHOD", action="append", default=[],
                        choices=[*SPARSE, "passes"],
                        help=f"measure again; one of {', '.join(SPARSE)}, passes")  # fmt: skip
    parser.add_argument("--time-limit", type=float, default=TIME_LIMIT, help="seconds for a cell")
    parser.add_argument("--output", type=Path, help="folder for scale.csv and scale.png")
    options = parser.parse_args()
    folder = options.output or HERE / "results" / ("quick" if options.quick else "")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "scale.csv"
    if options.rerun:
        kept = [row for cell, row in read_rows(path).items() if not _is_chosen(cell, options.rerun)]
        write_rows(path, kept, append=False)
    rows = run_all(all_cells(options.quick), path, options.time_limit)
    text, passed = report.make(rows)
    print(text)
    (folder / "report.txt").write_text(text + "\n")
    try:
        import plot
    except ImportError:
        print("matplotlib is not installed: no plot (pip install matplotlib)")
    else:
        plot.draw(rows, folder / "scale.png")
        print(f"plot: {folder / 'scale.png'}")
    return 0 if passed else 1


def _is_chosen(cell: Cell, methods: list[str]) -> bool:
    return cell.method in methods or ("passes" in methods and cell.series.startswith("passes"))


if __name__ == "__main__":
    sys.exit(main())
