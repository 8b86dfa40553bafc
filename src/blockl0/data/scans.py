"""Passes over a source: a kernel mapped over its blocks, with simultaneous passes merged.

Tasks run through the `batcher` of a source, such as the folds of a cross-validation, wait for each
other when they request a pass, and each block is then read once for all of them. The clock of the
run is checked between blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from blockl0.data.block import ArrayBlock, Block, View
from blockl0.data.engine import Call
from blockl0.data.pass_batcher import PassBatcher
from blockl0.data.source import Source
from blockl0.errors import OutOfTime
from blockl0.run import Clock, current_clock


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

    def __init__(self, source: Source, count: Callable[[float], None]) -> None:
        self.source, self._count = source, count
        self.batcher = PassBatcher(self._serve)

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
