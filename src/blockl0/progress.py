"""Progress of a job and time left: a bar on a terminal with rich, otherwise plain lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

FIRST, BETWEEN = 3.0, 10.0
"""Seconds before the first plain line, and between lines."""

GROWN = 1.25
"""Ratio of the time left to its least estimate above which the job is slower than it looked."""

Echo = Callable[[str], Any]


def duration(seconds: float) -> str:
    """Format seconds: '45 s', '3 min 20 s', '2 h 5 min'."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


class Lines:
    """Occasional plain lines; called with (done, total, text).

    Parameters
    ----------
    title : str
    echo : callable
        Takes a line.
    unit : str
        What is counted, in the plural.
    shorter : str
        What makes the job shorter; said once the estimate of the time left has grown.
    """

    title: str
    echo: Echo
    unit: str
    shorter: str

    def __init__(self, title: str, echo: Echo, unit: str = "", shorter: str = "") -> None:
        self.title, self.echo, self.unit, self.shorter = title, echo, unit, shorter
        self.began: float = time.perf_counter()
        self.next = self.began + FIRST
        self.least = float("inf")

    def __call__(self, done: int, total: int, text: str = "", left: str | None = None) -> None:
        """Report progress; the time left is extrapolated unless given."""
        now = time.perf_counter()
        if now >= self.next:
            self.next: float = now + BETWEEN
            counted = f"{done} of {total} {self.unit}".rstrip()
            parts = (counted, text, self.left(done, total) if left is None else left)
            self.echo(f"{self.title}: " + ", ".join(part for part in parts if part))

    def left(self, done: int, total: int) -> str:
        """Extrapolate the time left."""
        if done <= 0:
            return ""
        passed = time.perf_counter() - self.began
        seconds = passed * max(total - done, 0) / done
        if passed >= FIRST:
            self.least: float = min(self.least, seconds)
        has_grown = seconds > GROWN * self.least and bool(self.shorter)
        return f"about {duration(seconds)} left" + f" ({self.shorter})" * has_grown

    def close(self) -> None:
        """End, finished or not."""


class Bar(Lines):
    """A progress bar for terminals; raises ImportError without rich."""

    def __init__(
        self, title: str, echo: Echo, unit: str = "", shorter: str = "", *, is_error: bool = False
    ) -> None:
        from rich import progress as rich
        from rich.console import Console

        super().__init__(title, echo, unit, shorter)
        self.bar: Any = rich.Progress(
            rich.TextColumn("{task.description}"), rich.BarColumn(), rich.MofNCompleteColumn(),
            rich.TextColumn("{task.fields[text]}", markup=False),
            console=Console(stderr=is_error), transient=is_error,
        )  # fmt: skip
        self.task: Any = self.bar.add_task(title, total=None, text="")
        self.bar.start()

    def __call__(self, done: int, total: int, text: str = "", left: str | None = None) -> None:
        """Move the bar."""
        left = self.left(done, total) if left is None else left
        said = ", ".join(part for part in (text, left) if part)
        self.bar.update(self.task, completed=done, total=total, text=said)

    def close(self) -> None:
        """Restore the terminal."""
        self.bar.stop()


class Silence(Lines):
    """No output at all."""

    def __call__(self, done: int, total: int, text: str = "", left: str | None = None) -> None:
        """Print nothing."""


def bar_or_lines(
    title: str, echo: Echo, unit: str = "", shorter: str = "", *, is_error: bool = False
) -> Lines:
    """Choose a bar if the stream is a terminal and rich is installed; otherwise lines."""
    if (sys.stderr if is_error else sys.stdout).isatty():
        try:
            return Bar(title, echo, unit, shorter, is_error=is_error)
        except ImportError:
            pass
    return Lines(title, echo, unit, shorter)
