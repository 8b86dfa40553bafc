"""Progress and remaining time of a run: a bar on a terminal with rich, else plain lines."""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from math import isnan
from typing import Any

from blockl0.paper.cells import Cell
from blockl0.progress import Bar, Lines, duration

STARTED = 0.2
"""Share of the elapsed time that cells must account for before their pace is used."""
ENOUGH, TYPICAL = 200, 0.15
"""Unknown methods take the mean of all cells after so many of them, and so many seconds before."""

Kind = tuple[str, str, str]


class Forecast:
    """Forecast the time left from finished cells of the same set, form and method."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self.left: Counter[Kind] = Counter(map(_kind, cells))
        self.spent: defaultdict[Kind, list[float]] = defaultdict(list)

    def done(self, cell: Cell, seconds: float) -> None:
        """Take note of a finished cell."""
        self.left[_kind(cell)] -= 1
        self.spent[_kind(cell)].append(seconds)

    def seconds(self, elapsed: float) -> float:
        """Estimate the seconds left at the pace so far, which includes processes and overhead."""
        known = [seconds for times in self.spent.values() for seconds in times if seconds > 0.0]
        if not known:
            return float("nan")
        total = sum(known)
        if total < STARTED * elapsed:
            return float("nan")  # at first most of the time goes into starting processes
        # the longest cells come first and do not predict the others
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


class ExperimentProgress:
    """Report progress in plain lines now and then.

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
        """Start with so many cells to do."""
        self.total, self.done = len(cells), 0
        self.forecast = Forecast(cells)
        self.began = time.perf_counter()
        self.shown = type(self).display(self.title, self.echo, "cells")

    def advance(self, cell: Cell, seconds: float) -> None:
        """Count one more finished cell."""
        self.done += 1
        self.forecast.done(cell, seconds)
        self.shown(self.done, self.total, left=f"{self.left()} left")

    def stop(self) -> None:
        """Stop, finished or not."""
        self.shown.close()

    def left(self) -> str:
        """Return the forecast in words."""
        seconds = self.forecast.seconds(time.perf_counter() - self.began)
        return "?" if isnan(seconds) else f"about {duration(seconds)}"


class RichProgress(ExperimentProgress):
    """Report progress as a bar with the time left."""

    display = Bar


def make_progress(title: str, echo: Callable[[str], Any]) -> ExperimentProgress:
    """Return a bar where there is a terminal and rich, plain lines elsewhere."""
    if sys.stdout.isatty():
        try:
            import rich  # noqa: F401
        except ImportError:
            pass
        else:
            return RichProgress(title, echo)
    return ExperimentProgress(title, echo)
