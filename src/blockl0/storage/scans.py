"""Passes over a source: a kernel mapped over its blocks, those that are asked for together at once.

Whoever runs tasks by the `desk` of a source, as the folds of a cross-validation, has them wait for
each other where they ask for a pass: each block is then read once for all of them. Between two
blocks the clock of the run is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from blockl0.errors import OutOfTime
from blockl0.storage.block import ArrayBlock, Block, View
from blockl0.storage.engine import Call
from blockl0.storage.side_by_side import SideBySide
from blockl0.storage.source import Source

if TYPE_CHECKING:
    from blockl0.run import Clock


_clock: ContextVar[Clock | None] = ContextVar("clock", default=None)


class timed_by:
    """Passes inside the block end between two blocks of X, by `OutOfTime`, when time is up."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def __enter__(self) -> None:
        self._token = _clock.set(self._clock)

    def __exit__(self, *_: object) -> None:
        _clock.reset(self._token)


class Pass(NamedTuple):
    """One pass that is asked for: what is called on which blocks, and the clock of who asks."""

    calls: Sequence[Call]
    clock: Clock | None

    @property
    def seconds_left(self) -> float:
        """Time to the limit; infinity for none."""
        return np.inf if self.clock is None else self.clock.seconds_left


class Scans:
    """The passes over a source.

    Parameters
    ----------
    source : Source
    count : callable
        Told the share of the source that was read, block by block.

    Attributes
    ----------
    desk : SideBySide
        Runs tasks whose passes are made together.
    """

    def __init__(self, source: Source, count: Callable[[float], None]) -> None:
        self.source, self._count = source, count
        self.desk = SideBySide(self._serve)

    def map(self, calls: Sequence[Call]) -> Iterator[tuple[int, Any]]:
        """(i, run_kernel(block i, *arguments)) for every call (i, arguments)."""
        asked = Pass(calls, _clock.get())
        if self.desk.is_alone:
            return self._read(run_kernel, calls, [asked])
        return iter(self.desk.ask(asked))

    def _read(
        self, task: Callable[..., Any], calls: Sequence[Call], asked: Sequence[Pass]
    ) -> Iterator[tuple[int, Any]]:
        """The answers block by block, until nobody who has asked has any time left."""
        source = self.source
        for at, (i, answer) in enumerate(source.engine.map(task, source, calls), start=1):
            self._count(source.block_nbytes(i) / source.nbytes)
            yield i, answer
            if at < len(calls) and max(one.seconds_left for one in asked) <= 0.0:
                raise OutOfTime

    def _serve(self, asked: list[Pass]) -> list[list[tuple[int, Any]]]:
        """The answers of several passes, from one read of every block."""
        own: list[dict[int, Any]] = [dict(one.calls) for one in asked]
        blocks = sorted(set().union(*own))
        # argument by argument, so that what all blocks are given is seen to be the same
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
    """What an engine runs on a block: a kernel on its columns, or some of them, through a view."""
    if own is not None:
        block = ArrayBlock(block.columns(own))
    if not view.is_plain:
        block = block.through(view)
    return kernel(block, *shared, *split)


NOTHING = (None,) * 5
"""The arguments of a kernel that is not asked for."""


def run_each(block: Block, *given: Any) -> list[Any]:
    """The kernels of several passes on one block, one after the other."""
    several = (given[at : at + len(NOTHING)] for at in range(0, len(given), len(NOTHING)))
    return [None if one[2] is None else run_kernel(block, *one) for one in several]
