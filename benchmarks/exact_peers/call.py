"""Other exact solvers on the same instance: what they are given, and what their answer is worth."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import blockl0

from .instances import Floats, Instance

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = HERE.parents[1] / ".peers"
PEERS = {"okridge": "OKRidge", "l0bnb": "l0bnb", "el0ps": "El0ps"}
BIG_M = 1.5
"""The bound on coefficients that l0bnb and El0ps get, relative to the largest of the start."""
MORE_SIZES = 5
"""Sizes beyond the budget that are looked at for its price."""
ONE_THREAD = {
    name: "1"
    for name in (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "NUMBA_NUM_THREADS",
    )
}


@dataclass(frozen=True)
class Task:
    """An instance in both forms, so that every package has one that it can solve.

    A budget comes with a price at which its support is the best among the sizes 0, ...,
    k + 5 of a heuristic path, the geometric mean of the prices for which that holds; a price comes
    with the size of the heuristic answer. ``price`` is None where no price leads to that size.
    The heuristic point is also the start that l0bnb takes and gives the bound on coefficients.
    """

    k: int
    price: float | None
    start: Floats


def make_task(instance: Instance, X: Floats, y: Floats) -> Task:
    options: dict[str, Any] = {"ridge": instance.ridge, "loss": instance.loss, "random_state": 0}
    if instance.k is None:
        start = blockl0.solve(X, y, alpha=instance.price, **options).coef
        return Task(max(int(np.count_nonzero(start)), 1), instance.price, start)
    path = blockl0.l0_path(X, y, n_nonzero_coefs=instance.k + MORE_SIZES, **options)
    nothing = objective(instance, X, y, [])
    best = np.concatenate([[nothing], path.objective])
    return Task(instance.k, price_of_size(best, instance.k), path.at(instance.k).coef)


def price_of_size(best: Floats, k: int) -> float | None:
    """A price at which size k is the best, from the best objective of every size."""
    sizes = np.arange(best.size)
    smaller, larger = sizes[:k], sizes[k + 1 :]
    high = np.min((best[smaller] - best[k]) / (k - smaller))
    low = np.max((best[k] - best[larger]) / (larger - k))
    return float(np.sqrt(low * high)) if 0.0 < low < high else None


def objective(instance: Instance, X: Floats, y: Floats, support: list[int]) -> float:
    """The objective re-fitted on a support, the price included."""
    columns = X[:, support]
    value = _logistic if instance.loss == "logistic" else _squared
    return value(columns, y, instance.ridge) + (instance.price or 0.0) * len(support)


def _squared(columns: Floats, y: Floats, ridge: float) -> float:
    n = columns.shape[1]
    stacked = np.vstack([columns, np.sqrt(ridge) * np.eye(n)])
    target = np.concatenate([y, np.zeros(n)])
    w = np.linalg.lstsq(stacked, target, rcond=None)[0]
    return 0.5 * float(np.sum((target - stacked @ w) ** 2))


def _logistic(columns: Floats, y: Floats, ridge: float) -> float:
    def value(w):
        return float(np.sum(np.logaddexp(0.0, -y * (columns @ w))) + 0.5 * ridge * w @ w)

    w = np.zeros(columns.shape[1])
    for _ in range(100):
        p = 1.0 / (1.0 + np.exp(np.clip(y * (columns @ w), -500, 500)))
        gradient = ridge * w - columns.T @ (y * p)
        curvature = (columns.T * (p * (1 - p))) @ columns + ridge * np.eye(w.size)
        step, size = np.linalg.solve(curvature, gradient), 1.0
        while value(w - size * step) > value(w) and size > 1e-10:
            size /= 2
        w = w - size * step
        if np.linalg.norm(size * step) <= 1e-12 * (1.0 + np.linalg.norm(w)):
            break
    return value(w)


def why_not(name: str, instance: Instance, task: Task) -> str | None:
    """Why a package has no answer to expect, None if it is to be called."""
    if not python_of(name).exists():
        return "not installed"
    if instance.intercept:
        return "no intercept"
    if instance.loss != "squared" and name != "el0ps":
        return "squared loss only"
    if name != "okridge" and task.price is None:
        return f"price form only; no price leads to {task.k} columns"
    return None


def python_of(name: str) -> Path:
    """The interpreter of a package's environment, made by `make bench-exact-peers`."""
    return ENVIRONMENTS / name / "bin" / "python"


def call_peer(
    name: str, instance: Instance, X: Floats, y: Floats, task: Task, limit: float, gap: float
) -> dict[str, Any]:
    """The answer of a package, judged: its CPU seconds, gap, and the objective of its support."""
    reason = why_not(name, instance, task)
    if reason is not None:
        return {"refused": reason}
    problem = {
        "k": task.k,
        "price": task.price or 0.0,
        "ridge": instance.ridge,
        "loss": instance.loss,
        "start": task.start,
        "big_m": BIG_M * float(np.max(np.abs(task.start), initial=1e-3)),
        "limit": limit,
        "hard_limit": 2 * limit + 30,
        "gap": gap,
    }
    answer = _run(name, problem | {"X": X, "y": y}, limit)
    if "support" in answer and answer.get("objective") is not None:
        _judge(answer, name, instance, X, y, task)
    return answer


def _run(name: str, arrays: dict[str, Any], limit: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        problem, found = Path(folder, "problem.npz"), Path(folder, "answer.json")
        np.savez(problem, **arrays)
        try:
            done = subprocess.run(
                [python_of(name), "-I", HERE / "runner.py", name, problem, found],
                env=os.environ | ONE_THREAD,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                timeout=20 * limit + 600,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"error": "no answer, on a machine that is too busy"}
        if found.exists():
            return json.loads(found.read_text(encoding="utf-8"))
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return {"error": f"no answer within {2 * limit + 30:.0f} s"}
    return {"error": f"exit status {done.returncode}: {done.stderr[-200:]}"}


def _judge(
    answer: dict[str, Any], name: str, instance: Instance, X: Floats, y: Floats, task: Task
) -> None:
    """Add our objective of its support, its gap, and how the form that it solved differs.

    In that form a support of at most ``most`` columns costs ``extra`` more for each of them.
    """
    stated, lower = answer["objective"], answer["lower"]
    answer["status"] = "optimal" if answer["proven"] else "time limit"
    answer["gap"] = max(stated - lower, 0.0) / abs(stated) if stated else float("inf")
    answer["refitted"] = objective(instance, X, y, answer["support"])
    answer["extra"], answer["most"] = 0.0, X.shape[1]
    if name == "okridge":
        answer["most"] = task.k
        if instance.k is None:
            answer["extra"], answer["form"] = -(instance.price or 0.0), f"budget {task.k}"
    elif instance.k is not None:
        price = task.price or 0.0
        answer["extra"], answer["form"] = price, f"price {price:.4g}"
    own = answer["refitted"] + answer["extra"] * len(answer["support"])
    answer["misstated"] = abs(own - stated) / max(abs(own), 1e-300)
