"""One call of one package in its own environment.

``python runner.py NAME PROBLEM.npz ANSWER.json`` needs NumPy and the package only. The problem is

    Σ ℓ(x_i'w, y_i) + ½·ridge·‖w‖² + price·‖w‖₀    (El0ps, l0bnb)    or    ‖w‖₀ <= k    (OKRidge)

with ℓ = ½(y − η)², or log(1 + exp(−yη)). The answer holds ``objective`` and ``lower`` as the
package states them, in these units, whatever its own are. A small problem is solved first, so that
nothing is compiled while the time is taken; the time, and the clock by which the package keeps its
limit, is that of the process.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any, Literal
from unittest import mock

import numpy as np

TINY_RIDGE = 1e-8
"""Of the mean squared column norm: OKRidge divides by its ridge."""
MEMORY_GB = 8
"""What OKRidge may use; all there is unless told."""


def okridge(X: np.ndarray, y: np.ndarray, problem: dict[str, Any]) -> dict[str, Any]:
    """OKRidge has ‖y − Xw‖² + lambda2·‖w‖² − y'y: lambda2 = ridge, and twice our objective."""
    from okridge.node import Node
    from okridge.tree import BNBTree

    if not hasattr(Node, "lower_solve"):
        # It calls this when the two smallest eigenvalues of X'X agree, as they do with fewer rows
        # than columns, and never defines it.
        Node.lower_solve = Node.lower_solve_fast
    begun = time.process_time()
    ridge = problem["ridge"] or TINY_RIDGE * float(np.mean(np.einsum("ij,ij->j", X, X)))
    tree = BNBTree(X=X, y=y, lambda2=ridge, max_memory_GB=MEMORY_GB)
    left = problem["limit"] - (time.process_time() - begun)
    if left <= 0:
        return {"status": "time limit before the search", "support": []}
    cost, w, _, lower, _ = tree.solve(k=problem["k"], gap_tol=problem["gap"], time_limit=left)
    objective = 0.5 * (cost + y @ y)
    # before the first level is closed its bound is −sys.maxsize; the objective is never negative
    lower = max(0.5 * (lower + y @ y), 0.0)
    return {
        "support": np.flatnonzero(w).tolist(),
        "objective": objective,
        "lower": lower,
        "nodes": tree.number_of_nodes,
        # its tolerance is relative to the objective without y'y
        "proven": objective - lower <= problem["gap"] * abs(0.5 * cost) * (1 + 1e-9),
    }


def l0bnb(X: np.ndarray, y: np.ndarray, problem: dict[str, Any]) -> dict[str, Any]:
    """L0bnb has l2·‖w‖² with l2 = ridge/2, |w| <= M, and takes a point to start from."""
    from l0bnb import BNBTree

    tree = BNBTree(X, y)
    found = tree.solve(
        problem["price"],
        0.5 * problem["ridge"],
        problem["big_m"],
        gap_tol=problem["gap"],
        warm_start=problem["start"],
        time_limit=problem["limit"],
    )
    # the gap it returns is that of the last closed level, also after the tree is exhausted
    exhausted = tree.bfs_queue.qsize() + tree.dfs_queue.qsize() == 0
    gap = 0.0 if exhausted else min(found.gap, 1.0)
    return {
        "support": np.flatnonzero(found.beta).tolist(),
        "objective": float(found.cost),
        "lower": float(found.cost) * (1.0 - gap),
        "nodes": tree.number_of_nodes,
        "proven": gap <= problem["gap"],
    }


def el0ps(X: np.ndarray, y: np.ndarray, problem: dict[str, Any]) -> dict[str, Any]:
    """El0ps has beta·w² with beta = ridge/2, and |w| <= M; it keeps the bound to itself."""
    import pybnb
    from el0ps.datafit import Leastsquares, Logistic
    from el0ps.penalty import Bigm, BigmL2norm
    from el0ps.solver import BnbSolver

    class Solver(BnbSolver):
        def package_results(self, problem: Any, results: Any) -> Any:
            self.bound = float(results.bound)
            return super().package_results(problem, results)

    # pybnb takes the gap relative to the objective or to 1, whichever is larger
    gap = problem["gap"] * min(1.0, value_of_start(X, y, problem))
    # With screening and simultaneous pruning, the default, one of nine runs of the same call called
    # a worse point optimal; with either of them off none of eight did.
    solver = Solver(relative_gap=gap, time_limit=problem["limit"], screening=False)
    solver.solver = pybnb.Solver(comm=None)  # with MPI it would read the clock on the wall
    ridge, big_m = problem["ridge"], problem["big_m"]
    penalty = BigmL2norm(big_m, 0.5 * ridge) if ridge else Bigm(big_m)
    datafit = Logistic(y) if problem["loss"] == "logistic" else Leastsquares(y)
    found = solver.solve(datafit, penalty, X, problem["price"])
    return {
        "support": np.flatnonzero(found.x).tolist(),
        "objective": float(found.objective_value),
        "lower": max(solver.bound, 0.0),
        "nodes": int(found.iter_count),
        "proven": str(found.status) == "optimal",
    }


def value_of_start(X: np.ndarray, y: np.ndarray, problem: dict[str, Any]) -> float:
    """The objective of the point to start from, in the form with a price."""
    w = problem["start"]
    eta = X @ w
    logistic = problem["loss"] == "logistic"
    loss = np.sum(np.logaddexp(0.0, -y * eta)) if logistic else 0.5 * np.sum((y - eta) ** 2)
    return float(loss + 0.5 * problem["ridge"] * w @ w + problem["price"] * np.count_nonzero(w))


PACKAGES: dict[str, Callable[..., dict[str, Any]]] = {
    "okridge": okridge,
    "l0bnb": l0bnb,
    "el0ps": el0ps,
}
ORDERS: dict[str, Literal["C", "F"]] = {"okridge": "C", "l0bnb": "F", "el0ps": "F"}
"""The memory order of X that each is quickest with."""


def small_problem(
    problem: dict[str, Any], order: Literal["C", "F"]
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """A problem of the same kind whose tree has a few nodes, for the compilers."""
    rng = np.random.default_rng(0)
    X = np.array(rng.standard_normal((60, 30)), order=order)
    y = X[:, :4] @ np.array([1.0, 0.8, -0.6, 0.4]) + rng.standard_normal(60)
    if problem["loss"] == "logistic":
        y = np.where(y > 0, 1.0, -1.0)
    start = np.zeros(30)
    start[0] = 1.0
    given = {"k": 3, "price": 2.0, "big_m": 3.0, "start": start, "limit": 60.0}
    return X, y, problem | given


def read_problem(
    file: str, order: Literal["C", "F"]
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    with np.load(file) as data:
        problem = {name: data[name] for name in data.files}
    X, y = np.array(problem.pop("X"), order=order), problem.pop("y")
    start = problem.pop("start")
    return X, y, {name: value.item() for name, value in problem.items()} | {"start": start}


def answer(name: str, file: str) -> dict[str, Any]:
    """What the package says, and its seconds; an error of the package is an answer too."""
    X, y, problem = read_problem(file, ORDERS[name])
    try:
        with mock.patch.object(time, "time", time.process_time):
            PACKAGES[name](*small_problem(problem, ORDERS[name]))
            begun = time.process_time()
            # an overdue call ends by the signal SIGXCPU
            seconds = int(begun + problem["hard_limit"]) + 1
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
            found = PACKAGES[name](X, y, problem)
            found["cpu"] = time.process_time() - begun
    except Exception as error:  # a package may raise anything
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    return found


def main() -> None:
    name, source, target = sys.argv[1:]
    # what packages print is not wanted among the answers of the benchmark
    os.dup2(2, 1)
    found = answer(name, source)
    text = json.dumps(found, default=lambda scalar: scalar.item())
    with open(target, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
