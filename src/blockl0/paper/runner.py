"""Compute the cells that are missing, in one process or several, saving each as it is done."""

from __future__ import annotations

import signal
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import isnan
from typing import Any

from blockl0.paper.cells import Cell, compute, is_e2006
from blockl0.paper.store import Store
from blockl0.progress import bar_or_lines, duration

STARTED = 0.2
"""Share of the elapsed time that cells must account for before their pace is used."""
ENOUGH, TYPICAL = 200, 0.15
"""Unknown methods take the mean of all cells after so many of them, and so many seconds before."""

Kind = tuple[str, str, str]


def run_cells(
    cells: Iterable[Cell], store: Store, jobs: int, title: str, echo: Callable[[str], Any]
) -> None:
    """Compute the cells that the store lacks, and show progress.

    The objectives do not depend on `jobs`; the seconds do.
    """
    missing = in_order(cell for cell in dict.fromkeys(cells) if cell not in store)
    forecast, began = Forecast(missing), time.perf_counter()
    progress = bar_or_lines(title, echo, "cells")
    try:
        for done, (cell, record) in enumerate(_compute_all(missing, jobs), start=1):
            store.add(cell, record | {"jobs": jobs})
            forecast.add(cell, record.get("seconds", 0.0))
            left = forecast.seconds(time.perf_counter() - began)
            words = "?" if isnan(left) else f"about {duration(left)}"
            progress(done, len(missing), left=f"{words} left")
    finally:
        progress.close()


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


class Forecast:
    """Forecast the time left from finished cells of the same set, form and method."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self.left: Counter[Kind] = Counter(map(_kind, cells))
        self.spent: defaultdict[Kind, list[float]] = defaultdict(list)

    def add(self, cell: Cell, seconds: float) -> None:
        """Take note of a finished cell."""
        self.left[_kind(cell)] -= 1
        self.spent[_kind(cell)].append(seconds)

    def seconds(self, elapsed: float) -> float:
        """Estimate the seconds left at the pace so far, which includes processes and overhead."""
        known = [seconds for times in self.spent.values() for seconds in times if seconds > 0.0]
        total = sum(known)
        # at first most of the time goes into starting processes
        if not known or total < STARTED * elapsed:
            return float("nan")
        # the longest cells come first and do not predict the others
        average = total / len(known) if len(known) >= ENOUGH else TYPICAL
        of_method: defaultdict[str, list[float]] = defaultdict(list)
        for (*_, method), times in self.spent.items():
            of_method[method] += times

        def expected(kind: Kind) -> float:
            times = self.spent.get(kind) or of_method.get(kind[-1])
            return sum(times) / len(times) if times else average

        work = sum(count * expected(kind) for kind, count in self.left.items())
        return elapsed * work / total


def _kind(cell: Cell) -> Kind:
    return cell.dataset, cell.form, cell.method
