"""Progress and time left of a command, on standard error; and the effect of Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from blockl0.app.cli.job import Interrupted, Job
from blockl0.progress import Lines, Silence, bar_or_lines
from blockl0.run import share_of_time, watching
from blockl0.text import count


@contextmanager
def progress(title: str, quiet: bool = False, shorter: str = "") -> Iterator[Lines]:
    """Show progress on standard error: a bar on a terminal with rich, otherwise plain lines.

    `shorter` are the options that make the job shorter, for one that turns out to be long.
    """
    if quiet:
        shown: Lines = Silence(title, _echo)
    else:
        shown = bar_or_lines(title, _echo, shorter=shorter, is_error=True)
    try:
        yield shown
    finally:
        shown.close()


def _echo(line: str) -> None:
    click.echo(line, err=True)


class SearchWatch:
    """Progress of a search, which ends after a number of rounds without improvement."""

    def __init__(self, shown: Lines, rounds: int) -> None:
        self.shown, self.rounds = shown, rounds
        self.done, self.n_stalled, self.best = 0, -1, float("inf")

    def __call__(self, point: Any, is_first: bool) -> None:
        """Count a round."""
        self.done += 1
        self.n_stalled = 0 if point.objective < self.best else self.n_stalled + 1
        self.best = min(self.best, point.objective)
        left = max(self.rounds + 1 - self.n_stalled, 0)
        self.shown(self.done, self.done + left, f"objective {self.best:.6g}")


class PathWatch:
    """Progress of paths by their points."""

    def __init__(self, shown: Lines, n_points: int) -> None:
        self.shown, self.n_points, self.done = shown, n_points, 0

    def __call__(self, point: Any, is_first: bool) -> None:
        """Count the points: each is a run of its own."""
        if is_first and self.done < self.n_points:
            self.done += 1
        self.shown(self.done, self.n_points, count(point.n_nonzero, "column"))


class ProofWatch:
    """Progress of an exact search: time to its limit, and gap."""

    def __init__(self, shown: Lines, seconds: float) -> None:
        self.shown, self.seconds = shown, seconds

    def __call__(self, point: Any, is_first: bool) -> None:
        """Show the time and the gap."""
        gap = "" if point.gap is None else f"gap at most {point.gap:.1%}"
        self.shown(min(round(point.seconds), int(self.seconds)), int(self.seconds), gap)


@contextmanager
def watched(
    job: Job,
    title: str,
    watch: Callable[[Lines, Any], Any],
    size: float,
    *,
    shorter: str = "",
    shares: float = 1.0,
) -> Iterator[None]:
    """Show the progress of the searches inside, which get one of so many shares of the time left.

    `watch` is one of the classes above, made for a job of some size.
    """
    with (
        progress(title, job.quiet, shorter) as shown,
        watching(watch(shown, size)),
        share_of_time(shares),
    ):
        yield


@contextmanager
def aborting() -> Iterator[None]:
    """Let Ctrl-C end everything inside, even a search that would return its best point."""
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
