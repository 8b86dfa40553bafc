"""Method "exact" beside OKRidge, l0bnb and El0ps: CPU seconds, status, gap, nodes and objective.

One thread, compiled beforehand, process time throughout, time limits included. The others run in
environments of their own, which `make bench-exact-peers` installs; see `exact_peers/runner.py` for
how each is called, and `exact_peers/call.py` for what it is given.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from threadpoolctl import threadpool_limits

import blockl0
from exact_peers.call import PEERS, call_peer, make_task
from exact_peers.instances import INSTANCES, Instance, autoregressive
from exact_peers.table import heading, line

WARM_SECONDS = 20.0
"""Limit of a run that only compiles; shorter runs are repeated."""
TARGET_LATE = 0.1


def solve_ours(instance: Instance, X, y, limit: float) -> dict[str, Any]:
    """The answer of method "exact", or why it has none."""
    options = {"method": "exact", "time_limit": limit, "random_state": 0}
    common = {"ridge": instance.ridge, **instance.form, **options}
    # the package reads the clock on the wall; here a busy machine must not count
    with mock.patch.object(time, "perf_counter", time.process_time):
        begun = time.process_time()
        try:
            if instance.intercept:
                result = blockl0.L0Classifier(loss=instance.loss, **common).fit(X, y).result_
            else:
                result = blockl0.solve(X, y, loss=instance.loss, **common)
        except Exception as error:  # a refusal is a cell of the table, and so is a bug
            return {"refused": f"{type(error).__name__}: {error}"}
        cpu = time.process_time() - begun
    return {
        "cpu": cpu,
        "status": str(result.status),
        "proven": result.status is blockl0.Status.OPTIMAL,
        "gap": result.gap,
        "lower": result.lower_bound,
        "nodes": result.n_iter,
        "refitted": result.objective,
        "support": result.support.tolist(),
        "extra": 0.0,
        "most": X.shape[1] if instance.k is None else instance.k,
    }


class Ours:
    """Method "exact", compiled: short runs are made twice, and the first of a kind too."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.kinds: set[tuple] = set()

    def __call__(self, instance: Instance, X, y) -> dict[str, Any]:
        """The answer of a compiled run."""
        m, n = X.shape
        kind = (instance.loss, instance.intercept, instance.k is None, n > m, n > 1000)
        if kind not in self.kinds:
            self.kinds.add(kind)
            solve_ours(instance, X, y, min(self.limit, WARM_SECONDS))
        answer = solve_ours(instance, X, y, self.limit)
        # a branch of the search that was not met before may have been compiled just now
        if answer.get("cpu", np.inf) < WARM_SECONDS:
            answer = solve_ours(instance, X, y, self.limit)
        return answer


def rows(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One row per instance and seed, as each is ready."""
    ours = Ours(asked.limit)
    for instance in chosen(asked.only):
        for i, seed in enumerate(seeds_of(instance, asked.seeds)):
            X, y = instance.make(seed)
            row: dict[str, Any] = {"instance": instance.name, "seed": seed, "shape": X.shape}
            row["target"] = instance.target if seed in instance.seeds else None
            row["okridge_ratio"] = instance.okridge_ratio
            if asked.ours:
                row["blockl0"] = ours(instance, np.asfortranarray(X), y)
            if asked.peers and i < asked.peer_seeds:
                task = make_task(instance, X, y)
                row |= {"k": task.k, "price": task.price}
                for name in PEERS:
                    row[name] = call_peer(name, instance, X, y, task, asked.limit, asked.peer_gap)
            yield row


def chosen(only: list[str] | None) -> list[Instance]:
    if not only:
        return list(INSTANCES)
    return [instance for instance in INSTANCES if any(part in instance.name for part in only)]


def seeds_of(instance: Instance, asked: list[str]) -> list[int]:
    """The seeds asked for, once each; "home" stands for those of the instance."""
    if not instance.drawn:
        return list(instance.seeds) if "home" in asked else []
    found: list[int] = []
    for word in asked:
        found += instance.seeds if word == "home" else [int(word)]
    return list(dict.fromkeys(found))


def time_limits() -> bool:
    """Whether limits are kept, in CPU seconds."""
    print("\ntime limits")
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((60, 120)), rng.standard_normal(60)
    wide = autoregressive(0, 2000, 1000, 0.5, 10.0, n_true=50)
    blockl0.solve(*noise, n_nonzero_coefs=8, method="exact", node_limit=1)  # compile
    met = True
    for name, (X, y), k, limit in (
        ("noise 60x120", noise, 8, 0.1),
        ("noise 60x120", noise, 8, 0.5),
        ("noise 60x120", noise, 8, 2.0),
        ("AR(0.5) 2000x1000", wide, 50, 0.5),
    ):
        with mock.patch.object(time, "perf_counter", time.process_time):
            begun = time.process_time()
            result = blockl0.solve(X, y, n_nonzero_coefs=k, method="exact", time_limit=limit)
            late = time.process_time() - begun - limit
        met &= late < TARGET_LATE
        print(
            f"  {name:18} limit {limit:.1f} s: late by {late:+.3f} s, {result.status}"
            f"   below {TARGET_LATE} s: {'PASS' if late < TARGET_LATE else 'FAIL'}"
        )
    return met


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    flag = argparse.BooleanOptionalAction
    parser.add_argument("--only", nargs="+", metavar="NAME", help="parts of instance names")
    parser.add_argument("--limit", type=float, default=60.0, help="CPU seconds per run")
    parser.add_argument("--peers", action=flag, default=True, help="run the other packages")
    parser.add_argument("--ours", action=flag, default=True, help="run blockl0")
    parser.add_argument(
        "--seeds",
        nargs="+",
        default=["home"],
        help='"home" for those with targets, or numbers: 11 12 13 were never tuned on',
    )
    parser.add_argument(
        "--peer-seeds", type=int, default=1, help="seeds of an instance that the others get"
    )
    parser.add_argument(
        "--peer-gap", type=float, default=1e-4, help="relative gap at which the others may stop"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all answers there")
    return parser.parse_args()


def main() -> int:
    asked, done, met = arguments(), [], True
    print(heading(), flush=True)
    for row in rows(asked):
        print(line(row), flush=True)
        met &= row.get("met", True)
        done.append(row)
        if asked.json:
            asked.json.write_text(json.dumps(done, indent=1), encoding="utf-8")
    if asked.ours and not asked.only:
        met &= time_limits()
    return 0 if met else 1


if __name__ == "__main__":
    with threadpool_limits(1):
        sys.exit(main())
