"""Independent pieces of a search, at the same time where there are threads for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from blockl0.run import Run

Answer = TypeVar("Answer")


def in_threads(
    work: Sequence[Callable[[], Answer]], n_threads: int, run: Run | None
) -> list[Answer]:
    """Make the calls, and return their results in order; after Ctrl-C none has any time left."""
    if n_threads == 1 or len(work) < 2:
        return [call() for call in work]
    with ThreadPoolExecutor(min(n_threads, len(work))) as pool:
        try:
            # each in a context of its own, where passes over X find the clock of the run
            futures = [pool.submit(copy_context().run, call) for call in work]
            return [future.result() for future in futures]
        except KeyboardInterrupt as stop:
            if run is not None:
                run.interrupt(stop)
            raise
