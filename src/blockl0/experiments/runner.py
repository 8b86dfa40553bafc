"""Compute the cells that are missing, in one process or several, saving each as it is done."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from typing import Any

from blockl0.experiments.cells import Cell, compute
from blockl0.experiments.progress import Progress
from blockl0.experiments.store import Store


def run_cells(cells: Sequence[Cell], store: Store, jobs: int, progress: Progress) -> None:
    """Compute what the store does not hold yet.

    The numbers do not depend on `jobs`; the seconds do, as on any machine that has more to do.
    """
    missing = [cell for cell in dict.fromkeys(cells) if cell not in store]
    progress.start(missing)
    try:
        for cell, record in _compute_all(missing, jobs):
            store.add(cell, record | {"jobs": jobs})
            progress.advance(cell, record.get("seconds", 0.0))
    finally:
        progress.stop()


def _compute_all(cells: Sequence[Cell], jobs: int) -> Iterator[tuple[Cell, dict[str, Any]]]:
    if jobs == 1 or len(cells) < 2:
        for cell in cells:
            yield cell, compute(cell)
        return
    from joblib import Parallel, delayed

    # one cell at a time, in whatever order they end: a finished cell never waits to be saved
    parallel: Any = Parallel(
        n_jobs=jobs,
        backend="loky",
        batch_size=1,  # type: ignore[arg-type]
        return_as="generator_unordered",
    )
    yield from parallel(delayed(_compute_in_worker)(cell) for cell in cells)


def _compute_in_worker(cell: Cell) -> tuple[Cell, dict[str, Any]]:
    # Ctrl-C reaches every process of the terminal; it is for the parent to act on it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return cell, compute(cell)
