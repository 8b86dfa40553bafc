"""How late calls end after their time limit: methods, losses, structures and shapes.

    python benchmarks/bench_time_limits.py [--limits 0.1 0.3 1] [--only TEXT] [--worst 15] [--where]
        [--save FILE] [--every 2] [--first 0]

The clock of blockl0 is set to the CPU time of the process, on one thread of the BLAS, so that the
table is that of an idle machine however busy this one is. A call is late by its CPU seconds
(checks of the input and the compiler excluded) beyond the limit; "stretch" is the longest CPU time
between two looks at the clock. The goal is a lateness of at most 0.1 s and 10 % of the limit.
The whole grid takes an hour or so of CPU time; with --save it goes on where it was broken off.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from blockl0.certify.certify import certify_problem
from blockl0.problem.problem import problem_of
from blockl0.run import _spent, compile_seconds
from blockl0.solve import solve_problem

SHAPES = ((6000, 1500), (20000, 500), (500, 20000), (3000, 3000))
BUDGETS = (
    "pgm",
    "apgm",
    "qpm",
    "ssp",
    "romp",
    "omp",
    "gp",
    "cosamp",
    "grahtp",
    "sparse-simplex",
    "cvx-l1",
    "forward",
)
PRICES = ("pgm-l0", "apgm-l0", "pgm-l1", "pgm-lp")
LOSSES = ("huber", "logistic", "squared_hinge", "poisson", "gamma", "tweedie", "softmax")

DEPTH = 7


def is_compiling() -> bool:
    """Return whether the compiler reads the clock."""
    return _spent.is_running


class Looks:
    """CPU time in place of the wall clock, and the longest stretch between two readings."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Forget all stretches."""
        self.longest, self.where, self._last = 0.0, "", ""
        self._before = time.process_time() - compile_seconds()

    def __call__(self) -> float:
        """Read the clock."""
        now, here = time.process_time() - compile_seconds(), place()
        if now - self._before > self.longest and not is_compiling():
            self.longest, self.where = now - self._before, f"from {self._last} to {here}"
        self._before, self._last = time.process_time() - compile_seconds(), here
        return now


def place() -> str:
    """Return the innermost callers of the clock."""
    frame, names = sys._getframe(2), []
    while frame is not None and len(names) < DEPTH:
        file = frame.f_code.co_filename.rpartition("/")[2]
        if file != "run.py":
            names.append(f"{file}:{frame.f_lineno}")
        frame = frame.f_back
    return " < ".join(names)


looks = Looks()


class Cell(NamedTuple):
    """One call: its name, the problem, and the arguments of the method."""

    name: str
    method: str
    given: dict[str, Any]
    loss: str = "squared"
    is_sparse: bool = False


def cells(n: int) -> Iterator[Cell]:
    """Yield the calls for problems of n columns."""
    groups = {"feature_groups": np.arange(n) // 3, "n_nonzero_coefs": 5}
    structures: dict[str, dict[str, Any]] = {
        "budget 10": {"n_nonzero_coefs": 10},
        "budget 100": {"n_nonzero_coefs": 100},
        "price 0.5": {"alpha": 0.5},
        "price 20": {"alpha": 20.0},
        "groups": groups,
        "groups, price": {"feature_groups": groups["feature_groups"], "alpha": 20.0},
        "positive": {"n_nonzero_coefs": 10, "positive": True},
        "positive, price": {"alpha": 20.0, "positive": True},
        "keep": {"n_nonzero_coefs": 20, "keep": np.arange(5)},
        "costs": {"alpha": 20.0, "costs": {0: 2.0, 1: 3.0}},
    }
    for method in ("refit", "exact"):
        for name, given in structures.items():
            yield Cell(name, method, given)
            yield Cell(f"{name}, ridge", method, {**given, "ridge": 1.0})
        yield Cell("sparse", method, {"n_nonzero_coefs": 10, "ridge": 1.0}, is_sparse=True)
        yield Cell("responses", method, {"n_nonzero_coefs": 5}, "responses")
        for loss in LOSSES:
            for name in ("budget 10", "price 20", "groups", "positive"):
                if loss != "softmax" or name != "positive":
                    yield Cell(name, method, {**structures[name], "ridge": 1.0}, loss)
    for loss in ("squared", "huber", "logistic"):
        for method in ("dec", "pgm", "apgm", "qpm") if loss != "squared" else ("dec", *BUDGETS):
            yield Cell("budget 10", method, {"n_nonzero_coefs": 10}, loss)
        yield Cell("price 20", "dec", {"alpha": 20.0}, loss)
        for method in PRICES:
            yield Cell("price 20", method, {"alpha": 20.0}, loss)
    yield Cell("budget 100", "dec", {"n_nonzero_coefs": 100}, "squared")
    yield Cell("budget 100", "omp", {"n_nonzero_coefs": 100}, "squared")
    for level in ("basic", "L", 1, 2, 3):
        yield Cell(f"level {level}", "certify", {"n_nonzero_coefs": 10})
        yield Cell(f"level {level}, price", "certify", {"alpha": 20.0})
    for level in (1, 2):
        yield Cell(f"level {level}, groups", "certify", groups)
        yield Cell(f"level {level}", "certify", {"n_nonzero_coefs": 10, "ridge": 1.0}, "logistic")


def data(m: int, n: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Make correlated columns, and a target for every loss."""
    rng = np.random.default_rng(m)
    X = np.asfortranarray(rng.standard_normal((m, n)) + 0.5 * rng.standard_normal((m, 1)))
    eta = X[:, :20] @ np.linspace(1.0, 0.1, 20)
    noisy = eta + rng.standard_normal(m)
    mean = np.exp(0.3 * eta)
    return X, {
        "squared": noisy,
        "huber": noisy + 10.0 * (rng.random(m) < 0.05),
        "logistic": noisy > 0.0,
        "squared_hinge": noisy > 0.0,
        "poisson": rng.poisson(mean),
        "gamma": rng.gamma(2.0, mean) + 1e-6,
        "tweedie": rng.poisson(mean) * 1.5,
        "softmax": np.digitize(noisy, [-1.0, 1.0]),
        "responses": np.column_stack([noisy, np.roll(eta, 1) + rng.standard_normal(m), -noisy]),
    }


def measure(cell: Cell, problem: Any, limit: float) -> tuple[float, float, str, str]:
    """Return (lateness, longest stretch, status, where) of a call."""
    spent, started = compile_seconds(), time.process_time()
    looks.restart()
    try:
        status = str(call(cell, problem, limit))
    except (ValueError, MemoryError) as error:
        status = type(error).__name__
    looks()
    passed = time.process_time() - started - (compile_seconds() - spent)
    return passed - limit, looks.longest, status, looks.where


def call(cell: Cell, problem: Any, limit: float) -> Any:
    """Make the call; return its status."""
    if cell.method != "certify":
        return solve_problem(problem, cell.method, random_state=0, time_limit=limit).status
    level = cell.name.split(",")[0].removeprefix("level ")
    coef = np.zeros(problem.n_features)
    coef[:5] = 1.0
    found = certify_problem(problem, coef, level=int(level) if level.isdigit() else level,
                            random_state=0, time_limit=limit)  # fmt: skip
    return f"complete={found.complete}"


def bound(cell: Cell, X: Any, targets: dict[str, np.ndarray]) -> Any:
    """Bind the data of a cell."""
    loss = "squared" if cell.loss == "responses" else cell.loss
    if cell.is_sparse:
        X = sp.csc_array(np.where(np.abs(X) > 1.5, X, 0.0))
    return problem_of(X, targets[cell.loss], loss=loss, **cell.given)


class Row(NamedTuple):
    """How late one call was, in CPU seconds, and its longest stretch."""

    name: str
    limit: float
    late: float
    stretch: float
    status: str
    where: str

    @property
    def beyond(self) -> float:
        """Lateness beyond the goal."""
        return self.late - 0.1 - 0.1 * self.limit

    def show(self, says_where: bool) -> None:
        """Print the row."""
        print(f"{self.late:8.2f} {self.stretch:8.2f} {self.limit:5.1f}  {self.name}  {self.status}")
        if says_where:
            print(f"         {self.where}", flush=True)


def read(file: Path | None) -> list[Row]:
    """Read the rows of earlier runs."""
    if file is None or not file.exists():
        return []
    return [Row(*json.loads(line)) for line in file.read_text().splitlines()]


def measured(options: argparse.Namespace, known: set[tuple[str, float]]) -> Iterator[Row]:
    """Yield a row for each call that is asked for and not known."""
    for shape in (SHAPES[i] for i in options.shapes):
        some = islice(cells(shape[1]), options.first, None, options.every)
        named = [(f"{c.method} {c.loss} {c.name} {shape[0]}x{shape[1]}", c) for c in some]
        todo = [(name, cell, limit) for name, cell in named for limit in options.limits
                if options.only in name and (name, limit) not in known]  # fmt: skip
        X, targets = data(*shape) if todo else (None, {})
        for name, cell, limit in todo:
            try:
                problem = bound(cell, X, targets)
            except ValueError as error:
                print(name, error)
                continue
            yield Row(name, limit, *measure(cell, problem, limit))


def main() -> None:
    """Measure, print the table of all late cells, and what is latest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limits", nargs="+", type=float, default=[0.1, 0.3, 1.0])
    parser.add_argument("--shapes", nargs="+", type=int, default=range(len(SHAPES)))
    parser.add_argument("--only", default="", help="text in 'method loss structure'")
    parser.add_argument("--every", type=int, default=1, help="every so many cells, from --first on")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--worst", type=int, default=15)
    parser.add_argument("--where", action="store_true", help="where the longest stretch ended")
    parser.add_argument("--save", type=Path, help="file of rows: calls in it are not made again")
    options = parser.parse_args()
    threadpool_limits(1)
    time.perf_counter = looks
    rows = read(options.save)
    for row in measured(options, {row[:2] for row in rows}):
        rows.append(row)
        row.show(options.where and row.beyond > 0.0)
        if options.save:
            with options.save.open("a") as file:
                file.write(json.dumps(row) + "\n")
    rows.sort(key=lambda row: -row.beyond)
    n_late = sum(row.beyond > 0.0 for row in rows)
    print(f"\n{n_late} of {len(rows)} calls later than 0.1 s + 10 %; CPU seconds")
    print("   late  stretch limit")
    for row in rows[: options.worst]:
        row.show(options.where)
    print(f"{time.process_time():.0f} CPU s", file=sys.stderr)


if __name__ == "__main__":
    main()
