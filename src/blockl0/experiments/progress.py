"""How far a run is and how long it will take: a bar on a terminal with rich, else plain lines."""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from math import isnan
from typing import Any

from blockl0.experiments.cells import Cell

PLAIN_INTERVAL = 10.0
"""Seconds between two plain lines."""
STARTED = 0.2
"""Share of the time that must have gone into cells before their pace says anything."""
ENOUGH, TYPICAL = 200, 0.15
"""Cells after which their mean is taken for those of an unknown method, and seconds before that."""

Kind = tuple[str, str, str]


def duration(seconds: float) -> str:
    """Seconds in words: '45 s', '3 min 20 s', '2 h 5 min'."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


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
    """Plain lines, one every ten seconds at most.

    Parameters
    ----------
    title : str
    echo : callable
        Takes a line.
    """

    def __init__(self, title: str, echo: Callable[[str], Any]) -> None:
        self.title = title
        self.echo = echo

    def start(self, cells: Sequence[Cell]) -> None:
        """Begin with so many cells ahead."""
        self.total, self.done = len(cells), 0
        self.forecast = Forecast(cells)
        self.began = self.spoke = time.perf_counter()

    def advance(self, cell: Cell, seconds: float) -> None:
        """One more is done."""
        self.done += 1
        self.forecast.done(cell, seconds)
        self.show(cell)

    def show(self, cell: Cell) -> None:
        """Say so, now and then."""
        now = time.perf_counter()
        if now - self.spoke >= PLAIN_INTERVAL:
            self.spoke = now
            self.echo(f"{self.title}: {self.done} of {self.total} cells, {self.left()} left")

    def stop(self) -> None:
        """End, finished or not."""

    def left(self) -> str:
        """The forecast in words."""
        seconds = self.forecast.seconds(time.perf_counter() - self.began)
        return "?" if isnan(seconds) else f"about {duration(seconds)}"


class RichProgress(Progress):
    """A bar with the cell just finished and the time left."""

    def start(self, cells: Sequence[Cell]) -> None:
        """Draw the bar."""
        from rich import progress as rich

        super().start(cells)
        self.bar = rich.Progress(
            rich.TextColumn("{task.description}"),
            rich.BarColumn(),
            rich.MofNCompleteColumn(),
            rich.TextColumn("{task.fields[left]}"),
        )
        self.task = self.bar.add_task(self.title, total=self.total, left="")
        self.bar.start()

    def show(self, cell: Cell) -> None:
        """Move the bar."""
        self.bar.update(self.task, completed=self.done, left=f"{self.left()} left")

    def stop(self) -> None:
        """Leave the terminal as it was."""
        self.bar.stop()


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
