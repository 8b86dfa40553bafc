"""Arrays of dask in blocks of columns: kernels run where the blocks are, and only answers travel.

With a `distributed.Client` the tasks go to its workers, else to threads of this process. What all
tasks of a pass share is a task itself, not data laid on a worker: it is made again where a worker
is lost, and so are blocks. A task works on whole blocks, one after the other, so that an answer
does not depend on who gave it.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.storage.block import ArrayBlock, Block
from blockl0.storage.engine import Call
from blockl0.storage.limits import limits_of
from blockl0.storage.source import Source

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_BLOCK_BYTES = 1 << 30
"""A chunk that is larger is refused: several are in a worker's memory at once."""
IN_FLIGHT = 2
"""Tasks for each thread that are handed out at a time."""
PATIENCE = 60.0
"""Seconds without any worker after which a pass is given up."""
POLL = 1.0
"""Seconds between two looks at whether there are workers."""

logger = logging.getLogger("blockl0")


def open_source(X: Any, memory_limit: float | None = None) -> Source | None:
    """The source that an array of dask is; None for scalars and other collections."""
    if not (hasattr(X, "numblocks") and getattr(X, "ndim", 0) == 2):
        return None
    return DaskArray(X, memory_limit)


class DaskArray(Source):
    """A dask array whose chunks are columns over all rows.

    Small chunks next to each other are one block. Chunks that are cut along the rows, are too large
    or of unknown size are refused, with the call that makes others.

    Parameters
    ----------
    X : dask.array.Array (m, n)
    memory_limit : float, optional
        Bytes; a chunk may take a quarter of it.
    """

    # a chunk is computed as a whole, however few of its columns are wanted
    is_dear = True

    def __init__(self, X: Any, memory_limit: float | None = None) -> None:
        limits = limits_of(memory_limit)
        most = MOST_BLOCK_BYTES if memory_limit is None else int(memory_limit) // 4
        check_chunks(X, min(limits.block, most), most)
        self.held_bytes = limits.held
        self.X, self.shape, self.nbytes = X, X.shape, int(X.nbytes)
        widths, m = X.chunks[1], X.shape[0]
        self._chunks = list(_grouped(widths, max(1, m * X.dtype.itemsize), min(limits.block, most)))
        ends = np.cumsum([0, *widths])
        self.parts = tuple(slice(int(ends[c.start]), int(ends[c.stop])) for c in self._chunks)
        # the graphs of the chunks, made once
        self._pieces = X.to_delayed()[0].tolist()
        self.engine = DaskEngine()

    def pieces(self, i: int) -> list[Any]:
        """The chunks of block i, not yet computed."""
        return self._pieces[self._chunks[i]]

    def block(self, i: int) -> Block:
        """Block i, computed and brought here."""
        return _as_block(list(get_dask().compute(*self.pieces(i))))

    def columns(self, idx: Ints) -> Floats:
        """X[:, idx] as a new Fortran-ordered array (m, k); only these columns travel."""
        idx = np.asarray(idx, dtype=np.int64)
        X, where = np.empty((self.shape[0], idx.size), order="F"), self.blocks_of(idx)
        mine = {int(i): np.flatnonzero(where == i) for i in np.unique(where)}
        calls = [(i, (idx[at] - self.parts[i].start,)) for i, at in mine.items()]
        for i, found in self.engine.map(_columns, self, calls):
            X[:, mine[i]] = found
        return X


def check_chunks(X: Any, size: int, most: int) -> None:
    """Refuse chunks that are no blocks of columns, or take more than `most` bytes.

    The error says how to get some of `size` bytes.
    """
    if any(np.isnan(size) for sizes in X.chunks for size in sizes):
        raise ValueError(
            "`X` of dask has chunks of unknown size; X.compute_chunk_sizes() finds them out."
        )
    m, itemsize = X.shape[0], X.dtype.itemsize
    step = min(max(1, size // max(1, m * itemsize)), X.shape[1])
    advice = f"use X.rechunk(({m}, {step}))"
    if X.numblocks[0] > 1:
        raise ValueError(
            f"`X` of dask must be cut into blocks of columns over all rows, got chunks of "
            f"{X.chunksize[0]} rows and {X.chunksize[1]} columns; {advice}. With the squared loss "
            "tall arrays, of four rows and more per column, are read by rows."
        )
    if m * itemsize * max(X.chunks[1]) > most:
        size = m * itemsize * max(X.chunks[1]) / 2**20
        raise ValueError(
            f"`X` of dask has chunks of {size:.0f} MiB, {most / 2**20:.0f} are the most; {advice}."
        )


def _grouped(widths: Sequence[int], column_bytes: int, size: int) -> Iterator[slice]:
    """Chunks next to each other, together no larger than `size`, unless one is."""
    start, total = 0, 0
    for i, width in enumerate(widths):
        if i > start and (total + width) * column_bytes > size:
            yield slice(start, i)
            start, total = i, 0
        total += width
    yield slice(start, len(widths))


# -- running ---------------------------------------------------------------------------------------


@dataclass
class Traffic:
    """Bytes that went between this process and the workers."""

    n_maps: int = 0
    sent: int = 0
    received: int = 0


class DaskEngine:
    """Maps tasks over the blocks of an array of dask, by its scheduler.

    Attributes
    ----------
    traffic : Traffic
        So far. What is sent counts once for each worker if all tasks share it; each pass is logged,
        too, at level INFO.
    """

    def __init__(self) -> None:
        self.traffic = Traffic()

    def map(
        self, task: Callable[..., Any], source: Any, calls: Sequence[Call]
    ) -> Iterator[tuple[int, Any]]:
        """(i, task(block i, *arguments)) for every call (i, arguments), as they are ready."""
        runner, (common, own) = make_runner(), _divided(calls)
        shared, run = runner.shared((task, common)), get_dask().delayed(_on_block, pure=False)
        jobs = ((i, run(source.pieces(i), shared, Held(rest))) for i, rest in own)
        sent = runner.n_workers * _nbytes(common) + sum(_nbytes(rest) for _, rest in own)
        received = 0
        for i, answer in runner.each(jobs, lambda i: _block_words(source, i)):
            received += _nbytes(answer)
            yield i, answer
        self.traffic.n_maps += 1
        self.traffic.sent += sent
        self.traffic.received += received
        logger.info("dask: %d blocks, %d bytes sent, %d received", len(calls), sent, received)


def _divided(calls: Sequence[Call]) -> tuple[dict[int, Any], list[Call]]:
    """(the arguments that are one object in all calls, by place; the calls without them)."""
    first = calls[0][1] if calls else ()
    same = [j for j, a in enumerate(first) if all(given[j] is a for _, given in calls)]
    others = [j for j in range(len(first)) if j not in same]
    return {j: first[j] for j in same}, [(i, tuple(g[j] for j in others)) for i, g in calls]


def _on_block(pieces: list[Any], shared: Held, own: Held) -> Any:
    """What a worker runs."""
    task, common = shared.value
    rest = iter(own.value)
    n = len(common) + len(own.value)
    return task(_as_block(pieces), *(common[j] if j in common else next(rest) for j in range(n)))


def _as_block(pieces: list[Any]) -> Block:
    arrays = [np.asarray(piece) for piece in pieces]
    return ArrayBlock(arrays[0] if len(arrays) == 1 else np.hstack(arrays))


def _columns(block: Block, idx: Ints) -> Floats:
    return block.columns(idx)


def _nbytes(value: Any) -> int:
    """Bytes of the arrays inside tuples and dictionaries."""
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if isinstance(value, dict):
        value = tuple(value.values())
    return sum(map(_nbytes, value)) if isinstance(value, tuple | list) else 0


def _block_words(source: Any, i: int) -> str:
    part, m = source.parts[i], source.shape[0]
    step = max(1, (part.stop - part.start) // 4)
    return f"columns {part.start} to {part.stop - 1}; X.rechunk(({m}, {step})) makes smaller blocks"


# -- schedulers ------------------------------------------------------------------------------------


class Threads(NamedTuple):
    """Threads of this process, or what `dask.config` says."""

    n_threads: int
    n_workers: int = 0

    def shared(self, value: Any) -> Any:
        """What all tasks are given."""
        return get_dask().delayed(Held(value), traverse=False)

    def each(
        self, jobs: Iterable[tuple[int, Any]], words: Callable[[int], str]
    ) -> Iterator[tuple[int, Any]]:
        """(key, value) of delayed jobs, some at a time."""
        jobs = iter(jobs)
        while wave := list(islice(jobs, self.n_threads)):
            values = get_dask().compute(*(job for _, job in wave))
            yield from ((key, value) for (key, _), value in zip(wave, values, strict=True))


class Cluster:
    """The workers of a `distributed.Client`."""

    def __init__(self, client: Any) -> None:
        self.client = client
        counts = client.nthreads()
        self.n_workers, self.n_threads = len(counts), max(1, sum(counts.values()))

    def shared(self, value: Any) -> Any:
        """What all tasks are given: a task of its own, which can be run again elsewhere."""
        return self.client.submit(_same, Held(value), pure=False)

    def each(
        self, jobs: Iterable[tuple[int, Any]], words: Callable[[int], str]
    ) -> Iterator[tuple[int, Any]]:
        """(key, value) of delayed jobs as they end, a bounded number handed out at a time."""
        jobs, flying = iter(jobs), {}
        try:
            while True:
                room = max(2, IN_FLIGHT * self.n_threads) - len(flying)
                for key, job in islice(jobs, room):
                    flying[self.client.compute(job)] = key
                if not flying:
                    return
                for future in self._ended(list(flying)):
                    key = flying.pop(future)
                    yield key, self._value(future, words(key))
        finally:
            for future in flying:
                future.cancel()

    def _ended(self, futures: list[Any]) -> list[Any]:
        """Those that are done, at least one."""
        from distributed import wait

        ended = self._patiently(lambda: wait(futures, timeout=POLL, return_when="FIRST_COMPLETED"))
        return list(ended.done)

    def _patiently(self, ask: Callable[[], Any]) -> Any:
        """The answer of what times out now and then; refused where there is nobody to give one."""
        alone_since = None
        while True:
            try:
                return ask()
            except TimeoutError:
                has_workers = self.client.status == "running" and bool(self.client.nthreads())
                alone_since = None if has_workers else alone_since or monotonic()
            if alone_since is not None and monotonic() - alone_since > PATIENCE:
                raise RuntimeError(
                    f"The dask cluster has had no worker for {PATIENCE:g} seconds, and the search "
                    "cannot go on; start workers, and run it again."
                ) from None

    def _value(self, future: Any, words: str) -> Any:
        """The answer; a block that ends its workers is named."""
        from distributed import CancelledError, KilledWorker

        try:
            if future.status == "error":
                return future.result()
            # what is done is lost with its worker, and made again by another one
            return self._patiently(lambda: future.result(timeout=POLL))
        except CancelledError as error:
            raise RuntimeError(
                "The dask cluster has given a task up: its scheduler was closed, or lost."
            ) from error
        except KilledWorker as error:
            raise RuntimeError(
                "A block of `X` ended every worker that it was given to, perhaps for lack of "
                f"memory: {words}."
            ) from error


class Held:
    """A value that dask does not look into."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _same(held: Held) -> Held:
    return held


def make_runner() -> Threads | Cluster:
    """The client that is in charge here, or threads."""
    distributed = sys.modules.get("distributed")  # nobody has a client who has not imported it
    if distributed is not None:
        try:
            client = distributed.get_client()
        except ValueError:
            client = None
        if client is not None and client.asynchronous is False:
            return Cluster(client)
    return Threads(get_dask().config.get("num_workers", None) or os.cpu_count() or 1)


def get_dask() -> Any:
    """The package, which is there where there is an object of it."""
    import dask

    return dask
