"""How far a command is and how long it will take, on standard error; and what Ctrl-C does."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from blockl0.cli.output import Interrupted

FIRST, BETWEEN = 3.0, 10.0
"""Seconds before the first plain line, and between two."""


class Lines:
    """Plain lines now and then; called with (done, total, text)."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.began = time.perf_counter()
        self.next = self.began + FIRST

    def __call__(self, done: int, total: int, text: str = "") -> None:
        """Say how far it is."""
        now = time.perf_counter()
        if now >= self.next:
            self.next = now + BETWEEN
            self.show(done, total, text, self.left(done, total))

    def left(self, done: int, total: int) -> str:
        """The time left, if the rest goes at the same pace."""
        from blockl0.experiments.progress import duration

        if done <= 0:
            return ""
        passed = time.perf_counter() - self.began
        return f"about {duration(passed * max(total - done, 0) / done)} left"

    def show(self, done: int, total: int, text: str, left: str) -> None:
        """Print a line."""
        parts = (f"{done} of {total}", text, left)
        click.echo(f"{self.title}: " + ", ".join(part for part in parts if part), err=True)

    def close(self) -> None:
        """End, finished or not."""


class Bar(Lines):
    """A bar that moves, for terminals."""

    def __init__(self, title: str) -> None:
        from rich import progress as rich
        from rich.console import Console

        super().__init__(title)
        self.bar = rich.Progress(
            rich.TextColumn("{task.description}"), rich.BarColumn(), rich.MofNCompleteColumn(),
            rich.TextColumn("{task.fields[text]}", markup=False), console=Console(stderr=True),
            transient=True,
        )  # fmt: skip
        self.task = self.bar.add_task(title, total=None, text="")
        self.bar.start()

    def __call__(self, done: int, total: int, text: str = "") -> None:
        """Move the bar."""
        said = ", ".join(part for part in (text, self.left(done, total)) if part)
        self.bar.update(self.task, completed=done, total=total, text=said)

    def close(self) -> None:
        """Leave the terminal as it was."""
        self.bar.stop()


class Silence(Lines):
    """Nothing at all."""

    def __call__(self, done: int, total: int, text: str = "") -> None:
        """Say nothing."""


@contextmanager
def progress(title: str, quiet: bool = False) -> Iterator[Lines]:
    """A bar on a terminal with rich, plain lines elsewhere."""
    shown = Silence(title) if quiet else _bar_or_lines(title)
    try:
        yield shown
    finally:
        shown.close()


def _bar_or_lines(title: str) -> Lines:
    if sys.stderr.isatty():
        try:
            return Bar(title)
        except ImportError:
            pass
    return Lines(title)


class SearchWatch:
    """Turns the rounds of a search into progress: it ends after so many without improvement."""

    def __init__(self, shown: Lines, rounds: int) -> None:
        self.shown, self.rounds = shown, rounds
        self.done, self.fruitless, self.best = 0, -1, float("inf")

    def __call__(self, point: Any, is_first: bool) -> None:
        """One more round."""
        self.done += 1
        self.fruitless = 0 if point.objective < self.best else self.fruitless + 1
        self.best = min(self.best, point.objective)
        left = max(self.rounds + 1 - self.fruitless, 0)
        self.shown(self.done, self.done + left, f"objective {self.best:.6g}")


class PathWatch:
    """Turns the points of paths into progress."""

    def __init__(self, shown: Lines, n_points: int) -> None:
        self.shown, self.n_points, self.done = shown, n_points, 0

    def __call__(self, point: Any, is_first: bool) -> None:
        """Count the points: each is a run of its own."""
        if is_first and self.done < self.n_points:
            self.done += 1
        self.shown(self.done, self.n_points, f"{point.n_nonzero} columns")


class ProofWatch:
    """Turns an exact search into progress: the time to its limit, and the gap."""

    def __init__(self, shown: Lines, seconds: float) -> None:
        self.shown, self.seconds = shown, seconds

    def __call__(self, point: Any, is_first: bool) -> None:
        """Some more nodes are done."""
        gap = ""
        if point.lower_bound is not None and point.objective > 0.0:
            gap = f"gap at most {1.0 - point.lower_bound / point.objective:.1%}"
        self.shown(min(round(point.seconds), int(self.seconds)), int(self.seconds), gap)


@contextmanager
def aborting() -> Iterator[None]:
    """Inside, Ctrl-C ends everything, also a search that would return its best point."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: Any) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
