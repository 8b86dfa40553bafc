"""Dask arrays and data frames that are read by rows, partition by partition.

Each partition is processed where it is stored, and only the result travels. Dask is not imported
before one of its objects is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from blockl0.text import listing

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
