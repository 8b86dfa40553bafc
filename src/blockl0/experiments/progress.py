"""How far a run is and how long it will take: a bar on a terminal with rich, else plain lines."""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from math import isnan
from typing import Any

from blockl0.experiments.cells import Cell
from blockl0.progress import Bar, Lines, duration

STARTED = 0.2
"""Share of the time that must have gone into cells before their pace says anything."""
ENOUGH, TYPICAL = 200, 0.15
"""Cells after which their mean is taken for those of an unknown method, and seconds before that."""

Kind = tuple[str, str, str]


class Forecast:
    """The time left, from what cells of the same set, form and method have taken so far."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self.left: Counter[Kind] = Counter(map(_kind, cells))
        self.spent: defaultdict[Kind, list[float]] = defaultdict(list)

    def done(self, cell: Cell, seconds: float) -> None:
        """Take note of a finished cell."""
        self.left[_kind(cell)] -= 1
        self.spent[_kind(cell)].append(seconds)

    def seconds(self, elapsed: float) -> float:
        """Work left, in units of the pace so far: processes and overhead are in that pace."""
        known = [seconds for times in self.spent.values() for seconds in times if seconds > 0.0]
        if not known:
            return float("nan")
        total = sum(known)
        if total < STARTED * elapsed:
            return float("nan")  # so far processes have started rather than worked
        # the longest cells come first, and say nothing about the others
        average = sum(known) / len(known) if len(known) >= ENOUGH else TYPICAL
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


class Progress:
    """Plain lines now and then.

    Parameters
    ----------
    title : str
    echo : callable
        Takes a line.
    """

    display: Callable[..., Lines] = Lines

    def __init__(self, title: str, echo: Callable[[str], Any]) -> None:
        self.title = title
        self.echo = echo

    def start(self, cells: Sequence[Cell]) -> None:
        """Begin with so many cells ahead."""
        self.total, self.done = len(cells), 0
        self.forecast = Forecast(cells)
        self.began = time.perf_counter()
        self.shown = type(self).display(self.title, self.echo, "cells")

    def advance(self, cell: Cell, seconds: float) -> None:
        """One more is done."""
        self.done += 1
        self.forecast.done(cell, seconds)
        self.shown(self.done, self.total, left=f"{self.left()} left")

    def stop(self) -> None:
        """End, finished or not."""
        self.shown.close()

    def left(self) -> str:
        """The forecast in words."""
        seconds = self.forecast.seconds(time.perf_counter() - self.began)
        return "?" if isnan(seconds) else f"about {duration(seconds)}"


class RichProgress(Progress):
    """A bar with the time left."""

    display = Bar


def make_progress(title: str, echo: Callable[[str], Any]) -> Progress:
    """A bar where there is a terminal and rich, plain lines elsewhere."""
    if sys.stdout.isatty():
        try:
            import rich  # noqa: F401
        except ImportError:
            pass
        else:
            return RichProgress(title, echo)
    return Progress(title, echo)
