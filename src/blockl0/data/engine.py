"""Engines: how a function is mapped over the blocks of a source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from blockl0.data.source import Source

Call = tuple[int, tuple[Any, ...]]
"""Index of a block, and further arguments of the task."""


class Engine(Protocol):
    """Interface of objects that map tasks over blocks.

    A task is a module-level function and its arguments are arrays, numbers and tuples of them, so
    that all can be pickled. Results come in any order; the caller sorts them.
    """

    def map(
        self, task: Callable[..., Any], source: Source, calls: Sequence[Call]
    ) -> Iterator[tuple[int, Any]]:
        """Yield (i, task(block i, *arguments)) for every call (i, arguments)."""
        ...


class InOrder:
    """Engine that runs blocks one by one in this process."""

    def map(
        self, task: Callable[..., Any], source: Source, calls: Sequence[Call]
    ) -> Iterator[tuple[int, Any]]:
        """Yield (i, task(block i, *arguments)) for every call (i, arguments)."""
        for i, arguments in calls:
            yield i, task(source.block(i), *arguments)


class Room:
    """Reusable memory for blocks: allocating it anew costs as much as a read."""

    def __init__(self) -> None:
        self._bytes = np.empty(0, dtype=np.uint8)

    def take(self, size: int) -> NDArray[np.uint8]:
        """Return a buffer of this size, overwriting the last block."""
        if self._bytes.size < size:
            self._bytes = np.empty(size, dtype=np.uint8)
        return self._bytes[:size]


class ReadAhead:
    """Engine that reads the next block while a task runs; at most two are in memory.

    A task must not keep a reference to its block.
    """

    def map(
        self, task: Callable[..., Any], source: Source, calls: Sequence[Call]
    ) -> Iterator[tuple[int, Any]]:
        """Yield (i, task(block i, *arguments)) for every call (i, arguments)."""
        with ThreadPoolExecutor(max_workers=1) as reader:
            rooms = Room(), Room()
            ahead = reader.submit(source.block_in, calls[0][0], rooms[0]) if calls else None
            for at, (i, arguments) in enumerate(calls):
                block = ahead.result()  # type: ignore[union-attr]
                if at + 1 < len(calls):
                    # overwrites the block before this one, whose task has finished
                    ahead = reader.submit(source.block_in, calls[at + 1][0], rooms[(at + 1) % 2])
                yield i, task(block, *arguments)
