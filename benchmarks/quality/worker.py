"""The process of one environment: reads requests and writes answers, one JSON object a line.

Started as ``python -m quality.worker PEER ORDER`` in the folder above. Whatever a package prints
goes to the log, not among the answers.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

REPEAT_SECONDS, REPEATS = 0.3, 7


def private_stdout() -> Any:
    """A stream on the real standard output; everybody else's is sent to standard error."""
    stream = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return stream


def tiny_problem(order: str) -> tuple[np.ndarray, np.ndarray]:
    """A problem small enough to only load and compile."""
    rng = np.random.default_rng(0)
    X = np.array(rng.standard_normal((60, 40)), order=order)
    return X, X[:, :3] @ np.array([3.0, -2.0, 1.0]) + 0.5 * rng.standard_normal(60)


def measure(method: Callable, X: np.ndarray, y: np.ndarray, problem: dict) -> dict[str, Any]:
    """Call until 0.3 s are spent, at most seven times; medians of wall and CPU seconds."""
    wall, cpu = [], []
    gc.collect()
    while not wall or (len(wall) < REPEATS and sum(wall) < REPEAT_SECONDS):
        target = y.copy()
        started, started_cpu = time.perf_counter(), time.process_time()
        found = method(X, target, **problem)
        wall.append(time.perf_counter() - started)
        cpu.append(time.process_time() - started_cpu)
    return {
        "support": np.unique(np.asarray(found, dtype=int)).tolist(),
        "seconds": float(np.median(wall)),
        "cpu": float(np.median(cpu)),
        "repeats": len(wall),
    }


class Answers:
    """The methods of one adapter, and the last data that were read."""

    def __init__(self, peer: str, order: str) -> None:
        self.methods = importlib.import_module(f".peers.{peer}", __package__).METHODS
        self.order = order
        self.files: tuple[str, str] | None = None
        self.data: tuple[np.ndarray, np.ndarray] | None = None

    def warm(self, request: dict) -> dict[str, Any]:
        """Call the method once on the tiny problem, for imports and compilers."""
        problem = {"price": 1.0} if request["priced"] else {"s": 3}
        self.methods[request["method"]](*tiny_problem(self.order), **problem)
        return {}

    def run(self, request: dict) -> dict[str, Any]:
        """Measure one cell."""
        files = tuple(request["files"])
        if files != self.files:
            self.data = None
            X, y = (np.load(file) for file in files)
            self.files, self.data = files, (np.asarray(X, order=self.order), y)
        return measure(self.methods[request["method"]], *self.data, request["problem"])


def answer(answers: Answers, request: dict) -> dict[str, Any]:
    """The answer to one request; an error of the package is an answer too."""
    try:
        return answers.warm(request) if request["task"] == "warm" else answers.run(request)
    except Exception as error:  # a peer may raise anything
        return {"error": f"{type(error).__name__}: {error}"[:300]}


def main() -> None:
    """Answer until the requests end."""
    out = private_stdout()
    warnings.simplefilter("ignore")
    try:
        answers = Answers(*sys.argv[1:3])
        reply = {"ready": True}
    except Exception as error:  # an environment that does not import is reported, not a crash
        reply = {"error": f"{type(error).__name__}: {error}"[:300]}
    print(json.dumps(reply), file=out, flush=True)
    if "error" not in reply:
        for line in sys.stdin:
            print(json.dumps(answer(answers, json.loads(line))), file=out, flush=True)


if __name__ == "__main__":
    main()
