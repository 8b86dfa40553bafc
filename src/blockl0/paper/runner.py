"""Compute the cells that are missing, in one process or several, saving each as it is done."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from blockl0.paper.cells import Cell, compute, is_e2006
from blockl0.paper.progress import ExperimentProgress
from blockl0.paper.store import Store


def run_cells(cells: Sequence[Cell], store: Store, jobs: int, progress: ExperimentProgress) -> None:
    """Compute the cells that the store lacks.

    The objectives do not depend on `jobs`; the seconds do.
    """
    missing = in_order(cell for cell in dict.fromkeys(cells) if cell not in store)
    progress.start(missing)
    try:
        for cell, record in _compute_all(missing, jobs):
            store.add(cell, record | {"jobs": jobs})
            progress.advance(cell, record.get("seconds", 0.0))
    finally:
        progress.stop()


def in_order(cells: Iterable[Cell]) -> list[Cell]:
    """Sort cells: the longest first, to balance the processes; then by data set.

    Cells on the same data follow each other, because data are loaded or made once.
    """
    return sorted(cells, key=lambda cell: (-_weight(cell), cell.dataset, cell.draw))


def _weight(cell: Cell) -> float:
    """Return 0 for most cells, more for those that may take half a minute or longer."""
    if cell.method.endswith("unstopped"):
        return 1.0
    is_long = cell.method.startswith("refit") and cell.form == "price" and is_e2006(cell.dataset)
    return 2.0 / cell.value if is_long and cell.dataset.endswith("-C") else 0.0


def _compute_all(cells: Sequence[Cell], jobs: int) -> Iterator[tuple[Cell, dict[str, Any]]]:
    if jobs == 1 or len(cells) < 2:
        for cell in cells:
            yield cell, compute(cell)
        return
    from joblib import Parallel, delayed

    # unordered and one at a time, so that every finished cell is saved at once
    parallel: Any = Parallel(
        n_jobs=jobs,
        backend="loky",
        batch_size=1,  # type: ignore[arg-type]
        return_as="generator_unordered",
    )
    yield from parallel(delayed(_compute_in_worker)(cell) for cell in cells)


def _compute_in_worker(cell: Cell) -> tuple[Cell, dict[str, Any]]:
    # Ctrl-C reaches every process of the terminal; the parent handles it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return cell, compute(cell)
