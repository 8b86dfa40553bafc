"""Dask arrays in blocks of columns: kernels run where the blocks are, only results travel.

Tasks go to the workers of a `distributed.Client` if there is one, otherwise to threads of this
process. Arguments shared by all tasks of a pass are a task themselves rather than data scattered to
a worker, so that they, like blocks, are recomputed after a worker is lost. A task works on whole
blocks, one by one, so that results do not depend on which worker computed them.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.data.block import ArrayBlock, Block
from blockl0.data.source import Call, Source, limits_of
from blockl0.text import listing

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_BLOCK_BYTES = 1 << 30
"""Largest chunk: a worker keeps several in memory at once."""
IN_FLIGHT = 2
"""Tasks submitted at a time, per thread."""
PATIENCE = 60.0
"""Seconds without any worker before a pass fails."""
POLL = 1.0
"""Seconds between checks for live workers."""

logger: logging.Logger = logging.getLogger("blockl0")


def open_dask(X: Any, memory_limit: float | None = None) -> Source | None:
    """Open a dask array; return None for scalars and other collections."""
    if not (hasattr(X, "numblocks") and getattr(X, "ndim", 0) == 2):
        return None
    return DaskArray(X, memory_limit)


class DaskArray(Source):
    """Source of a dask array whose chunks are columns over all rows.

    Small adjacent chunks form one block. Chunks that are cut along the rows, too large, or of
    unknown size are refused, with the call that rechunks them.

    Parameters
    ----------
    X : dask.array.Array (m, n)
    memory_limit : float, optional
        Bytes; a chunk may take a quarter of it.
    """

    # a chunk is computed as a whole, however few of its columns are needed
    is_dear = True
    shape: tuple[int, int]
    nbytes: int

    def __init__(self, X: Any, memory_limit: float | None = None) -> None:
        limits = limits_of(memory_limit)
        most = MOST_BLOCK_BYTES if memory_limit is None else int(memory_limit) // 4
        check_chunks(X, min(limits.block, most), most)
        self.held_bytes: int = limits.held
        self.X, self.shape, self.nbytes = X, X.shape, int(X.nbytes)
        widths, m = X.chunks[1], X.shape[0]
        self._chunks = list(_grouped(widths, max(1, m * X.dtype.itemsize), min(limits.block, most)))
        ends = np.cumsum([0, *widths])
        self.parts: tuple[slice, ...] = tuple(
            slice(int(ends[c.start]), int(ends[c.stop])) for c in self._chunks
        )
        # graphs of the chunks, built once
        self._pieces = X.to_delayed()[0].tolist()
        self.engine: DaskEngine = DaskEngine()

    def pieces(self, i: int) -> list[Any]:
        """Return the delayed chunks of block i."""
        return self._pieces[self._chunks[i]]

    def block(self, i: int) -> Block:
        """Compute block i and bring it here."""
        return _as_block(list(get_dask().compute(*self.pieces(i))))

    def columns(self, idx: Ints) -> Floats:
        """Return X[:, idx] as a new Fortran-ordered array (m, k); only these columns travel."""
        idx = np.asarray(idx, dtype=np.int64)
        X, where = np.empty((self.shape[0], idx.size), order="F"), self.blocks_of(idx)
        mine = {int(i): np.flatnonzero(where == i) for i in np.unique(where)}
        calls = [(i, (idx[at] - self.parts[i].start,)) for i, at in mine.items()]
        for i, found in self.engine.map(_columns, self, calls):
            X[:, mine[i]] = found
        return X


def check_chunks(X: Any, size: int, most: int) -> None:
    """Refuse chunks that do not span all rows or take more than `most` bytes.

    The error names the call that makes chunks of `size` bytes.
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
    """Group adjacent chunks into blocks of at most `size` bytes, or a single chunk."""
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
    """Counts of bytes exchanged between this process and the workers."""

    n_maps: int = 0
    sent: int = 0
    received: int = 0


class DaskEngine:
    """Engine that maps tasks over the blocks of a dask array through its scheduler.

    Attributes
    ----------
    traffic : Traffic
        Totals so far. Arguments shared by all tasks count once per worker. Each pass is also
        logged at level INFO.
    """

    def __init__(self) -> None:
        self.traffic: Traffic = Traffic()

    def map(
        self, task: Callable[..., Any], source: Any, calls: Sequence[Call]
    ) -> Iterator[tuple[int, Any]]:
        """Yield (i, task(block i, *arguments)) for every call (i, arguments), as they finish."""
        runner, (common, own) = make_runner(), _divided(calls)
        shared, run = runner.shared((task, common)), get_dask().delayed(_on_block, pure=False)
        jobs = ((i, run(source.pieces(i), shared, Opaque(rest))) for i, rest in own)
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
    """Split calls into shared arguments, by position, and calls without them."""
    first = calls[0][1] if calls else ()
    same = [j for j, a in enumerate(first) if all(given[j] is a for _, given in calls)]
    others = [j for j in range(len(first)) if j not in same]
    return {j: first[j] for j in same}, [(i, tuple(g[j] for j in others)) for i, g in calls]


def _on_block(pieces: list[Any], shared: Opaque, own: Opaque) -> Any:
    """Run a task on a block, on a worker."""
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
    """Count the bytes of arrays inside tuples and dictionaries."""
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
    """Runner on threads of this process, or on the scheduler set in `dask.config`."""

    n_threads: int
    n_workers: int = 0

    def shared(self, value: Any) -> Any:
        """Wrap the arguments shared by all tasks."""
        return get_dask().delayed(Opaque(value), traverse=False)

    def each(
        self, jobs: Iterable[tuple[int, Any]], words: Callable[[int], str]
    ) -> Iterator[tuple[int, Any]]:
        """Yield (key, value) of delayed jobs, computed in batches."""
        jobs = iter(jobs)
        while wave := list(islice(jobs, self.n_threads)):
            values = get_dask().compute(*(job for _, job in wave))
            yield from ((key, value) for (key, _), value in zip(wave, values, strict=True))


class Cluster:
    """Runner on the workers of a `distributed.Client`."""

    n_workers: int
    n_threads: int

    def __init__(self, client: Any) -> None:
        self.client = client
        counts = client.nthreads()
        self.n_workers, self.n_threads = len(counts), max(1, sum(counts.values()))

    def shared(self, value: Any) -> Any:
        """Submit the shared arguments as a task, which can be rerun if a worker is lost."""
        return self.client.submit(_same, Opaque(value), pure=False)

    def each(
        self, jobs: Iterable[tuple[int, Any]], words: Callable[[int], str]
    ) -> Iterator[tuple[int, Any]]:
        """Yield (key, value) of delayed jobs as they finish, with a bounded number submitted."""
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
        """Wait for at least one future and return those that are done."""
        from distributed import wait

        ended = self._patiently(lambda: wait(futures, timeout=POLL, return_when="FIRST_COMPLETED"))
        return list(ended.done)

    def _patiently(self, ask: Callable[[], Any]) -> Any:
        """Retry a call that times out; fail once there have been no workers for too long."""
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
        """Return the result of a future; name the block that killed its workers."""
        from distributed import CancelledError, KilledWorker

        try:
            if future.status == "error":
                return future.result()
            # a result is lost with its worker and recomputed by another
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


class Opaque:
    """Wrapper of a value that dask must not traverse."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _same(value: Opaque) -> Opaque:
    return value


def make_runner() -> Threads | Cluster:
    """Return a runner on the current client, or on threads."""
    distributed = sys.modules.get("distributed")  # without this import there can be no client
    if distributed is not None:
        try:
            client = distributed.get_client()
        except ValueError:
            client = None
        if client is not None and client.asynchronous is False:
            return Cluster(client)
    return Threads(get_dask().config.get("num_workers", None) or os.cpu_count() or 1)


def get_dask() -> Any:
    """Import dask, which is loaded already if there is a dask array."""
    import dask

    return dask


TALL = 4.0
"""Rows per column from which an array chunked by rows is read by rows."""
MOST_COLUMNS = 5000
"""Largest number of columns of such an array."""
UNKNOWN = 1 << 40
"""More rows than a partition of unknown size can have."""


def is_partitioned(X: Any) -> bool:
    """Return whether X is a dask array or data frame."""
    return hasattr(X, "dask") and hasattr(X, "npartitions")


def is_frame(X: Any) -> bool:
    """Return whether X has column names."""
    return hasattr(X, "columns")


def is_cut_by_rows(X: Any) -> bool:
    """Return whether an array is tall, or of unknown length, and split by rows."""
    m, n = X.shape
    is_known = not np.isnan(m)
    return X.numblocks[0] > 1 and n <= MOST_COLUMNS and (not is_known or m >= TALL * n)


def each_part(
    begin: Callable[..., Any], X: Any, y: Any, sample_weight: Any, labels: Any
) -> Iterator[Any]:
    """Yield begin(start, X, y, weights, labels) for every partition, in order, computed by dask.

    `start` is the number of rows before the partition; if that is unknown, an upper bound.
    """
    from blockl0.data.dask_arrays import Opaque, get_dask, make_runner

    _check_parts(X, y, sample_weight)
    # partitions of a frame have no known length: each gets numbers of its own, far from the others
    starts = None if is_frame(X) else _starts(X.chunks[0])
    begins = starts or [i * UNKNOWN for i in range(X.npartitions)]
    columns = [_pieces(part, starts, X.npartitions) for part in (X, y, sample_weight, labels)]
    run, runner = get_dask().delayed(_begun, pure=False), make_runner()
    shared = runner.shared(begin)
    jobs = (
        (i, run(shared, Opaque(begins[i]), *(pieces[i] for pieces in columns)))
        for i in range(X.npartitions)
    )
    waiting: dict[int, Any] = {}
    at = 0
    for i, made in runner.each(jobs, lambda i: f"partition {i} of {X.npartitions}"):
        # sums depend on their order in the last digits
        waiting[i] = made
        while at in waiting:
            yield waiting.pop(at)
            at += 1


def _starts(sizes: Any) -> list[int] | None:
    """Return the boundaries of the chunks; None if a size is unknown."""
    if any(np.isnan(size) for size in sizes):
        return None
    return np.cumsum([0, *sizes]).astype(int).tolist()


def chosen_columns(X: Any, columns: Any, names: Any = None) -> Any:
    """Compute some columns of X, (m, k), as an array in memory.

    Columns of a data frame are selected by name; `names` are the names and order it must have.
    """
    if not is_frame(X):
        return np.asarray(X[:, columns].compute())
    here = list(map(str, X.columns))
    if names is not None and here != list(names):
        raise ValueError(
            f"The columns of the data frame must be those of the fit, {listing(list(names))}, in "
            f"their order; got {listing(here)}."
        )
    return X[[X.columns[j] for j in columns]].compute().to_numpy(np.float64)


def _begun(begin: Any, start: Any, *parts: Any) -> Any:
    return begin.value(start.value, *parts)


def _pieces(part: Any, starts: list[int] | None, n: int) -> list[Any]:
    """Return what belongs to each partition: delayed chunks, slices of an array, or None."""
    if part is None:
        return [None] * n
    if is_partitioned(part):
        return np.ravel(part.to_delayed()).tolist()
    if starts is None:
        raise ValueError(
            "`y` and weights must be of dask where the sizes of the partitions of `X` are not "
            "known; X.compute_chunk_sizes() finds out those of an array."
        )
    part = np.asarray(part)
    if len(part) != starts[-1]:
        raise ValueError(
            f"`y`, weights and folds must have one entry per row of X, {starts[-1]}, "
            f"got {len(part)}."
        )
    return [part[a:b] for a, b in pairwise(starts)]


def _check_parts(X: Any, y: Any, sample_weight: Any) -> None:
    counts = {part.npartitions for part in (X, y, sample_weight) if is_partitioned(part)}
    if len(counts) != 1 or getattr(X, "numblocks", (0, 1))[-1:] != (1,):
        raise ValueError(
            "`X`, `y` and weights of dask must be divided into the same parts of rows, each with "
            "all columns; use X.rechunk({1: -1}) and y.rechunk(X.chunks[0])."
        )
    if not is_partitioned(y) and hasattr(X, "shape") and not is_frame(X) and len(y) != X.shape[0]:
        raise ValueError(f"`y` must have one entry per row of X, {X.shape[0]}, got {len(y)}.")
