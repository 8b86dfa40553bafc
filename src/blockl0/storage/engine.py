"""Who maps a function over the blocks of a source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from blockl0.storage.source import Source

Call = tuple[int, tuple[Any, ...]]
"""The number of a block, and what a task is given beside it."""


class Engine(Protocol):
    """Maps tasks over blocks.

    A task is a function of a module and its arguments are arrays, numbers and tuples of them, so
    that all can be sent elsewhere. Answers come in any order: who asks puts them in their places.
    """

    def map(
        self, task: Callable[..., Any], source: Source, calls: Sequence[Call]
    ) -> Iterator[tuple[int, Any]]:
        """(i, task(block i, *arguments)) for every call (i, arguments)."""
        ...


class InOrder:
    """One block after the other, here."""

    def map(
        self, task: Callable[..., Any], source: Source, calls: Sequence[Call]
    ) -> Iterator[tuple[int, Any]]:
        """(i, task(block i, *arguments)) for every call (i, arguments)."""
        for i, arguments in calls:
            yield i, task(source.block(i), *arguments)


class Room:
    """Memory for a block, used again for a later one: new memory costs as much as a read."""

    def __init__(self) -> None:
        self._bytes = np.empty(0, dtype=np.uint8)

    def take(self, size: int) -> NDArray[np.uint8]:
        """So many bytes, which the last block lay in, too."""
        if self._bytes.size < size:
            self._bytes = np.empty(size, dtype=np.uint8)
        return self._bytes[:size]


class ReadAhead:
    """One block after the other, while the next one is read: at most two are in memory.

    A task must not keep anything of its block.
    """

    def map(
        self, task: Callable[..., Any], source: Source, calls: Sequence[Call]
    ) -> Iterator[tuple[int, Any]]:
        """(i, task(block i, *arguments)) for every call (i, arguments)."""
        with ThreadPoolExecutor(max_workers=1) as reader:
            rooms = Room(), Room()
            ahead = reader.submit(source.block_in, calls[0][0], rooms[0]) if calls else None
            for at, (i, arguments) in enumerate(calls):
                block = ahead.result()  # type: ignore[union-attr]
                if at + 1 < len(calls):
                    # the block before the last one lay there, and is done with
                    ahead = reader.submit(source.block_in, calls[at + 1][0], rooms[(at + 1) % 2])
                yield i, task(block, *arguments)
