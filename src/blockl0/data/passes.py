"""Passes over a source: a kernel mapped over its blocks, and columns kept for later.

Tasks that run through the `batcher` of a source, such as the folds of a cross-validation, wait for
each other when they request a pass, and each block is then read once for all of them. The clock of
the run is checked between blocks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context
from threading import RLock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.data.block import ArrayBlock, Block, View
from blockl0.data.source import Call, Source
from blockl0.errors import OutOfTime
from blockl0.run import Clock, current_clock


class PassBatcher:
    """Runs tasks and answers their requests together, once all have made one or finished.

    Parameters
    ----------
    serve : callable
        Takes a list of requests and returns a list of answers.
    """

    def __init__(self, serve: Callable[[list[Any]], Sequence[Any]]) -> None:
        self._serve = serve
        self._here = threading.local()

    @property
    def is_unbatched(self) -> bool:
        """Whether the caller is not a batched task, so that requests are answered at once."""
        return getattr(self._here, "task", None) is None

    def request(self, question: Any) -> Any:
        """Return the answer to a request; a batched task waits for the others first."""
        return self._up([question])[0]

    def _up(self, requests: list[Any]) -> Sequence[Any]:
        """Pass requests up to the task that runs this batch, or to the server."""
        return self._serve(requests) if self.is_unbatched else self._here.task.request(requests)

    def run(
        self, tasks: Sequence[Callable[[], Any]], interrupt: Callable[[], Any] | None = None
    ) -> list[Any]:
        """Run tasks and return their results in order; the first error ends all of them.

        On Ctrl-C `interrupt` is called if given, and the pending requests of the tasks raise.
        """
        # threads only hold the stacks of the tasks: one of them runs at a time, so that no result
        # depends on which is quicker
        batch = [_Task(task, self._here) for task in tasks]
        live = batch
        try:
            while live:
                for task in live:
                    task.step(interrupt)
                    if task.error is not None:
                        raise task.error
                live = [task for task in live if not task.is_done]
                self._answer(live, interrupt)
        finally:
            for task in batch:
                task.end()
        return [task.result for task in batch]

    def _answer(self, live: list[_Task], interrupt: Callable[[], Any] | None) -> None:
        """Answer all pending requests; on Ctrl-C or out of time, fail them."""
        requests = [question for task in live for question in task.requests]
        if not requests:
            return
        try:
            answers = iter(self._up(requests))
            for task in live:
                task.answers = [next(answers) for _ in task.requests]
        except KeyboardInterrupt as stop:
            if not isinstance(stop, OutOfTime):
                if interrupt is None:
                    raise
                interrupt()
            for task in live:
                # one exception per task: each collects the traceback of its own thread
                task.failure = type(stop)(*stop.args)


class _Ended(BaseException):
    """Ends a task whose result is no longer needed."""


class _Task:
    """A task on a thread, running only between `step` and its next request."""

    def __init__(self, task: Callable[[], Any], here: threading.local) -> None:
        self.requests: list[Any] = []
        self.answers: list[Any] = []
        self.result: Any = None
        self.error: BaseException | None = None
        self.failure: BaseException | None = None
        self.is_done = False
        self._task, self._here = task, here
        self._go, self._back = threading.Semaphore(0), threading.Semaphore(0)
        # clocks and limits of the caller hold inside
        thread = threading.Thread(target=copy_context().run, args=(self._run,), daemon=True)
        thread.start()

    def step(self, interrupt: Callable[[], Any] | None) -> None:
        """Let the task run until its next request or its end."""
        self._go.release()
        while True:
            try:
                self._back.acquire()
                return
            except KeyboardInterrupt:
                if interrupt is None:
                    raise
                interrupt()

    def end(self) -> None:
        """End the task at its pending or next request."""
        if not self.is_done:
            self.failure = _Ended()
            self._go.release()

    def request(self, requests: list[Any]) -> list[Any]:
        """Wait for answers."""
        self.requests, self.answers = requests, []
        self._back.release()
        self._go.acquire()
        if self.failure is not None:
            failure = self.failure
            # raised once: a task that goes on after it gets answers again
            self.failure = failure if isinstance(failure, _Ended) else None
            raise failure
        return self.answers

    def _run(self) -> None:
        self._here.task = self
        self._go.acquire()
        try:
            if self.failure is None:
                self.result = self._task()
        except BaseException as error:
            self.error = error
        # whatever happened: the caller waits for this
        self.is_done = True
        self._back.release()


class Pass(NamedTuple):
    """Request for one pass: its calls, and the clock of the requesting run."""

    calls: Sequence[Call]
    clock: Clock | None

    @property
    def seconds_left(self) -> float:
        """Seconds until the limit; infinite without a clock."""
        return np.inf if self.clock is None else self.clock.seconds_left


class Scans:
    """The passes over a source.

    Parameters
    ----------
    source : Source
    count : callable
        Called with the share of the source that was read, after every block.

    Attributes
    ----------
    batcher : PassBatcher
        Runs tasks whose passes are merged.
    """

    source: Source

    def __init__(self, source: Source, count: Callable[[float], None]) -> None:
        self.source, self._count = source, count
        self.batcher: PassBatcher = PassBatcher(self._serve)

    def map(self, calls: Sequence[Call]) -> Iterator[tuple[int, Any]]:
        """Yield (i, run_kernel(block i, *arguments)) for every call (i, arguments)."""
        asked = Pass(calls, current_clock())
        if self.batcher.is_unbatched:
            return self._read(run_kernel, calls, [asked])
        return iter(self.batcher.request(asked))

    def _read(
        self, task: Callable[..., Any], calls: Sequence[Call], asked: Sequence[Pass]
    ) -> Iterator[tuple[int, Any]]:
        """Yield the results block by block until every requester is out of time."""
        source = self.source
        for at, (i, answer) in enumerate(source.engine.map(task, source, calls), start=1):
            self._count(source.block_nbytes(i) / source.nbytes)
            yield i, answer
            # a pass goes on as long as one of those who wait for it has time
            if at < len(calls) and max(one.seconds_left for one in asked) <= 0.0:
                raise OutOfTime

    def _serve(self, asked: list[Pass]) -> list[list[tuple[int, Any]]]:
        """Answer several passes with a single read of every block."""
        own: list[dict[int, Any]] = [dict(one.calls) for one in asked]
        blocks = sorted(set().union(*own))
        # argument by argument, so that arguments shared by all blocks are recognized as such
        calls = [(i, tuple(a for each in own for a in each.get(i, NOTHING))) for i in blocks]
        found: list[list[tuple[int, Any]]] = [[] for _ in asked]
        for i, answers in self._read(run_each, calls, asked):
            for mine, each, answer in zip(found, own, answers, strict=True):
                if i in each:
                    mine.append((i, answer))
        return found


def run_kernel(
    block: Block,
    view: View,
    own: Any,
    kernel: Callable[..., Any],
    shared: tuple[Any, ...],
    split: tuple[Any, ...],
) -> Any:
    """Run a kernel on a block or some of its columns, through a view; engines call this."""
    if own is not None:
        block = ArrayBlock(block.columns(own))
    if not view.is_plain:
        block = block.through(view)
    return kernel(block, *shared, *split)


NOTHING = (None,) * 5
"""Arguments that stand for a pass without a kernel on this block."""


def run_each(block: Block, *given: Any) -> list[Any]:
    """Run the kernels of several passes on one block."""
    several = (given[at : at + len(NOTHING)] for at in range(0, len(given), len(NOTHING)))
    return [None if one[2] is None else run_kernel(block, *one) for one in several]


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class ColumnCache:
    """Least-recently-used cache of columns, by index, as stored but in float64.

    Attributes
    ----------
    n_read : float
        Passes over the source so far: bytes read divided by the size of the source. A full scan
        counts as one.
    most : int
        Number of columns to keep.
    """

    n_read: float

    def __init__(self, source: Source) -> None:
        self.source = source
        self.n_read = 0.0
        self.most: int = max(1, source.held_bytes // (8 * source.shape[0]))
        self._kept: dict[int, Floats] = {}
        # two searches of one run may read at the same time
        self._lock = RLock()

    def columns(self, idx: Ints) -> Floats:
        """Return X[:, idx] as a new Fortran-ordered array (m, k), reading what is not cached."""
        with self._lock:
            return self._columns(idx)

    def _columns(self, idx: Ints) -> Floats:
        missing = np.array([j for j in np.unique(idx) if int(j) not in self._kept], dtype=np.int64)
        if idx.size > self.most:
            self._count_columns(idx)
            return self.source.columns(idx)
        if missing.size:
            self._count_columns(missing)
            for j, x in zip(missing, self.source.columns(missing).T, strict=True):
                self._kept[int(j)] = x.copy()
        X = np.empty((self.source.shape[0], idx.size), order="F")
        for at, j in enumerate(idx.tolist()):
            # a column used again moves to the end; the first ones are dropped
            X[:, at] = self._kept[j] = self._kept.pop(j)
        self._forget()
        return X

    def keep(self, idx: Ints, columns: list[Floats]) -> None:
        """Cache columns that a pass has read anyway."""
        with self._lock:
            for j, x in zip(idx.tolist(), columns, strict=True):
                self._kept.pop(j, None)
                self._kept[j] = x
            self._forget()

    def _forget(self) -> None:
        """Drop the least recently used columns."""
        for j in list(self._kept)[: max(0, len(self._kept) - self.most)]:
            del self._kept[j]

    def count(self, share: float) -> None:
        """Add what was read, as a share of the source."""
        self.n_read += share

    def _count_columns(self, idx: Ints) -> None:
        self.count(self.source.columns_nbytes(idx) / max(self.source.nbytes, 1))


Ranking = Callable[[Any], Floats]
"""Module-level function that ranks columns from a kernel's result: (r, c), smallest first."""

SHARE, MORE = 2.0, 8
"""A block returns SHARE times its proportion of the wanted columns, plus MORE."""


def kernel_carry(
    block: Block, kernel: Callable[..., Any], ranking: Ranking, share: float,
    *given: Any,
) -> tuple[Any, list[tuple[Floats, Ints, Floats]]]:  # fmt: skip
    """Run a kernel and collect the best columns of the block for each ranking.

    Returns the kernel's result and, for each ranking, (ranks, positions, stored columns). `share`
    is the proportion of all columns that is wanted.
    """
    answer, best = kernel(block, *given), []
    rankings = ranking(answer)
    for ranks in rankings:
        count = int(np.ceil(SHARE * share / len(rankings) * ranks.size)) + MORE
        own = np.argpartition(ranks, min(count, ranks.size) - 1)[:count]
        best.append((ranks[own], own, block.stored(own)))
    return answer, best


class Bag:
    """Bounded collection of the `most` columns with the smallest ranks."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._ranks, self._idx, self._columns = np.empty(0), np.empty(0, dtype=np.int64), []

    def add(self, ranks: Floats, idx: Ints, X: Floats) -> None:
        """Add columns X (m, k), dropping those no longer among the best."""
        self._ranks, self._idx = np.append(self._ranks, ranks), np.append(self._idx, idx)
        self._columns += [x.copy() for x in X.T]
        if self._ranks.size > self.most + self.most // 4:
            self._sort()

    def contents(self) -> tuple[Ints, list[Floats]]:
        """Return the columns, best last."""
        self._sort()
        return self._idx[::-1], self._columns[::-1]

    def _sort(self) -> None:
        order = np.argsort(self._ranks, kind="stable")[: self.most]
        self._ranks, self._idx = self._ranks[order], self._idx[order]
        self._columns = [self._columns[i] for i in order]
