"""Run the cells: one warm worker per environment, all methods of an instance in a row."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .environments import Unavailable, python_of
from .instances import HERE, Instance
from .peers import Peer
from .store import CRASH, ERROR, INFEASIBLE, OK, TIMEOUT, BestKnown, Cell, Results

WARM_SECONDS = 300.0
LONG_FACTOR = 20
ONE_THREAD = {
    name: "1"
    for name in (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "NUMBA_NUM_THREADS",
    )
}


class Died(RuntimeError):
    """The worker's process ended by itself."""


class Worker:
    """A process in a peer's environment; started when asked, killed when it takes too long."""

    def __init__(self, peer: Peer, log: Path) -> None:
        self.peer, self.log = peer, log
        self.python = python_of(peer)
        self.process: subprocess.Popen[str] | None = None
        self.warmed: set[tuple[str, bool]] = set()

    def _start(self) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [self.python, "-m", f"{HERE.name}.worker", self.peer.name, self.peer.order],
                cwd=HERE.parent,
                env={**os.environ, **ONE_THREAD},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.lines: queue.Queue[str] = queue.Queue()
        stream, lines = self.process.stdout, self.lines
        threading.Thread(target=_forward, args=(stream, lines), daemon=True).start()
        reply = self._receive(WARM_SECONDS)
        if "error" in reply:
            self.stop()
            raise Unavailable(f"does not import: {reply['error']}")

    def _receive(self, timeout: float) -> dict[str, Any]:
        """The next answer.

        Raises
        ------
        TimeoutError, Died
            The process is gone in both cases.
        """
        try:
            line = self.lines.get(timeout=timeout)
        except queue.Empty:
            self.stop()
            raise TimeoutError from None
        if not line:
            code = self.process.wait() if self.process else None
            self.stop()
            raise Died(f"the process ended with status {code}")
        return json.loads(line)

    def _ask(self, request: dict, timeout: float) -> dict[str, Any]:
        assert self.process is not None and self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the end of its output, read next, says so
        return self._receive(timeout)

    def run(self, method: str, instance: Instance, timeout: float) -> dict[str, Any]:
        """Measure one cell; starts the process and warms the method up if need be."""
        if self.process is None:
            self._start()
        priced = instance.price is not None
        if (method, priced) not in self.warmed:
            request = {"task": "warm", "method": method, "priced": priced}
            reply = self._ask(request, WARM_SECONDS)
            if "error" in reply:
                return reply
            self.warmed.add((method, priced))
        problem = {"price": instance.price} if priced else {"s": instance.s}
        files = [str(file) for file in instance.paths()]
        request = {"task": "run", "method": method, "files": files, "problem": problem}
        return self._ask(request, timeout)

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.process, self.warmed = None, set()


def _forward(stream: Iterable[str], lines: queue.Queue[str]) -> None:
    """Copy lines from a process to a queue; an empty one at the end."""
    for line in stream:
        lines.put(line)
    lines.put("")


class Pool:
    """The workers of all peers; a peer that cannot be had is named once and left out."""

    def __init__(self, peers: Sequence[Peer], logs: Path) -> None:
        self.logs = logs
        self.workers: dict[str, Worker] = {}
        self.lost: dict[str, str] = {}
        for peer in peers:
            try:
                self.workers[peer.name] = Worker(peer, logs / f"{peer.name}.log")
            except Unavailable as error:
                self.lose(peer.name, error)

    def lose(self, name: str, reason: Exception) -> None:
        """Leave a peer out from now on, loudly."""
        self.lost[name] = str(reason)
        self.workers.pop(name, None)
        print(f"!!! {name} is NOT in this run: {reason}")

    def stop(self) -> None:
        """End all processes."""
        for worker in self.workers.values():
            worker.stop()


def refitted(instance: Instance, support: list[int]) -> float:
    """½‖y − Xw‖² by least squares on the support, plus the price of its columns."""
    x_file, y_file = instance.paths()
    columns, y = np.load(x_file, mmap_mode="r")[:, support], np.load(y_file)
    residual = y - columns @ np.linalg.lstsq(columns, y, rcond=None)[0]
    return 0.5 * float(residual @ residual) + (instance.price or 0.0) * len(support)


def run_cell(
    worker: Worker, method: str, instance: Instance, timeout: float, run: str
) -> tuple[Cell, list[int]]:
    """One cell, whatever happens, and the support it found.

    Raises
    ------
    Unavailable
        If the environment does not even import.
    """
    names = (instance.name, instance.family.name, instance.family.group, method)
    try:
        reply = _patiently(worker, method, instance, timeout)
    except TimeoutError:
        return Cell(*names, TIMEOUT, run=run, note=f"killed after {timeout:g} s"), []
    except Died as error:
        return Cell(*names, CRASH, run=run, note=f"twice: {error}"), []
    if "error" in reply:
        return Cell(*names, ERROR, run=run, note=reply["error"]), []
    support = reply.pop("support")
    too_many = instance.s is not None and len(support) > instance.s
    return Cell(
        *names,
        INFEASIBLE if too_many else OK,
        objective=refitted(instance, support),
        nnz=len(support),
        run=run,
        note=f"{len(support)} columns for a budget of {instance.s}" if too_many else "",
        **reply,
    ), support


def _patiently(worker: Worker, method: str, instance: Instance, timeout: float) -> dict[str, Any]:
    """Run a cell, once more if the process died: some packages crash now and then."""
    try:
        return worker.run(method, instance, timeout)
    except Died:
        return worker.run(method, instance, timeout)


def shape(instance: Instance) -> tuple[int, int]:
    """The shape of X, without reading it."""
    return np.load(instance.paths()[0], mmap_mode="r").shape


@dataclass(frozen=True)
class Session:
    """One call of the benchmark: where results go, which cells are wanted, and the limit of one."""

    results: Results
    best: BestKnown
    logs: Path
    timeout: float
    wanted: Callable[[str, Instance], bool]
    run: str = field(default_factory=lambda: time.strftime("%Y-%m-%dT%H:%M:%S"))

    def run_all(self, instances: Sequence[Instance], peers: Sequence[Peer]) -> dict[str, str]:
        """Run every cell that is wanted and missing; returns the peers that were lost and why."""
        pool = Pool(peers, self.logs)
        try:
            for number, instance in enumerate(instances, 1):
                for peer in peers:
                    self._run_peer(pool, peer, instance)
                print(f"[{number}/{len(instances)}] {instance.name}", flush=True)
        finally:
            pool.stop()
        return pool.lost

    def _run_peer(self, pool: Pool, peer: Peer, instance: Instance) -> None:
        """Run the missing cells of one peer on one instance."""
        for method in peer.methods:
            is_known = (instance.name, method) in self.results
            if is_known or not self.wanted(method, instance):
                continue
            if peer.name in pool.lost or not peer.admits(*shape(instance), instance.s):
                return
            worker = pool.workers[peer.name]
            try:
                cell, support = run_cell(worker, method, instance, self.timeout, self.run)
            except Unavailable as error:
                pool.lose(peer.name, error)
                return
            self.results.append(cell)
            if cell.is_ok:
                self.best.offer(instance.name, cell.objective, support, method)
            print(_line(cell), flush=True)

    def run_long(self, instances: Sequence[Instance], peer: Peer, again: bool) -> None:
        """Improve the best known objectives by long runs, each made once unless `again`."""
        label = peer.methods[0]
        worker = Worker(peer, self.logs / f"{peer.name}.log")
        try:
            for instance in instances:
                if self.best.had_long_run(instance.name, label) and not again:
                    continue
                before = self.best.objective(instance.name)
                limit = LONG_FACTOR * self.timeout
                cell, support = run_cell(worker, label, instance, limit, self.run)
                if cell.is_ok:
                    self.best.offer(instance.name, cell.objective, support, label, long=True)
                improved = self.best.objective(instance.name) < before
                news = "improved" if improved else "not improved"
                print(f"{_line(cell)} {instance.name}: {news}", flush=True)
        finally:
            worker.stop()


def _line(cell: Cell) -> str:
    if cell.objective is None:
        return f"  {cell.method:26s} {cell.status}: {cell.note}"
    return (
        f"  {cell.method:26s} {cell.objective:14.6g} {cell.nnz:4d} nonzeros "
        f"{1e3 * cell.seconds:10.2f} ms  {cell.note}"
    )
