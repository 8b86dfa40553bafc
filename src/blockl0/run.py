"""The environment of a running method: clocks, callback, best point, history and result."""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from blockl0.errors import OutOfTime
from blockl0.result import History, Result, Status, relative_gap
from blockl0.units import COLUMNS
from blockl0.validate import check_callback, check_time_limit, check_verbose

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
logger: logging.Logger = logging.getLogger("blockl0")


class Progress(NamedTuple):
    """Argument of a callback; a true return value stops the run.

    `coef` is the solver's own array: copy it to keep it. `lower_bound` is given if known, as in
    method "exact".
    """

    iteration: int
    objective: float
    n_nonzero: int
    seconds: float
    coef: Floats
    lower_bound: float | None = None

    @property
    def gap(self) -> float | None:
        """(objective − lower_bound) / |objective|, at least 0; None without a bound."""
        return relative_gap(self.objective, self.lower_bound)


Callback = Callable[[Progress], Any]

Watcher = Callable[[Progress, bool], Any]


class Clock(Protocol):
    """Interface of a clock with a limit, such as a `Run`."""

    @property
    def seconds_left(self) -> float:
        """Seconds to the limit."""
        ...

    @property
    def grace(self) -> float:
        """Time beyond the limit in which what was found may still be fitted."""
        ...


class Surroundings(NamedTuple):
    """Context available to everything called inside a block."""

    clock: Clock | None = None
    limit: Clock | None = None
    watcher: Watcher | None = None


NOTHING = Surroundings()
_surroundings: ContextVar[Surroundings] = ContextVar("surroundings", default=NOTHING)


class _Inside:
    """A block with other surroundings, in this thread and in those started from it."""

    def __init__(self, **changes: Any) -> None:
        self._changes = changes

    def __enter__(self) -> None:
        self._token = _surroundings.set(_surroundings.get()._replace(**self._changes))

    def __exit__(self, *_: object) -> None:
        _surroundings.reset(self._token)


def timed_by(clock: Clock | None) -> _Inside:
    """Let loops and factorizations inside the block look at this clock; None is for no limit.

    Runs begun inside end with it at the latest.
    """
    return _Inside(clock=clock)


def limited_by(clock: Clock | None) -> _Inside:
    """End all runs begun inside the block with this clock, and nothing else that is done there."""
    return _Inside(limit=clock)


def share_of_time(n_shares: float) -> _Inside:
    """Give the runs of a block one of so many equal shares of the time that is left."""
    left = seconds_left()
    return limited_by(None if left == np.inf else Timer(left / n_shares))


def watching(watcher: Watcher) -> _Inside:
    """Show every recorded point of every run inside the block to `watcher`, in this thread.

    It is called with a `Progress` and whether that is the run's first one. For programs that show
    how far a fit is whose runs they do not start themselves; it cannot stop a run, only raise.
    """
    return _Inside(watcher=watcher)


def current_clock() -> Clock | None:
    """Return the clock of the surrounding block; None without a limit."""
    return _surroundings.get().clock


def seconds_left() -> float:
    """Return the time to the limit of the surrounding blocks; infinity without one."""
    clocks = _surroundings.get()[:2]
    return min((clock.seconds_left for clock in clocks if clock is not None), default=np.inf)


def look(multiplications: float = 0.0) -> None:
    """Raise OutOfTime if the time of the surrounding block, and its grace, are up.

    Called between the steps of whatever may take longer than some hundredths of a second; before a
    step that cannot be divided, with its multiplications: it is not begun if it would end too late.
    """
    clock = _surroundings.get().clock
    if clock is not None and clock.seconds_left + clock.grace <= multiplications / PACE:
        raise OutOfTime


def is_late() -> bool:
    """Check if the time of the surrounding block is up, for what can end with what it has."""
    clock = current_clock()
    return clock is not None and clock.seconds_left <= 0.0


MUCH = 0.2
"""Share of a time limit from which on the time of the compiler is mentioned."""
PACE = 1e10
"""Multiplications per second of a core, about."""
GRACE, GRACE_SHARE = 0.04, 0.04
"""Seconds, and share of the limit, for fits of what was found when the time was up."""


def grace_of(time_limit: float) -> float:
    """Return how long a run may take beyond its limit to fit what it has found."""
    return GRACE + GRACE_SHARE * time_limit if time_limit > 0.0 else 0.0


class Timer:
    """A clock for searches outside any run."""

    grace: float

    def __init__(self, seconds: float) -> None:
        seconds = min(seconds, seconds_left())
        self._end, self.grace = time.perf_counter() + seconds, grace_of(seconds)

    @property
    def seconds_left(self) -> float:
        """Seconds to the limit."""
        return self._end - time.perf_counter()


class Point(Protocol):
    """Interface of a point to record."""

    w: Floats
    iteration: int
    n_nonzero: int

    @property
    def objective(self) -> float:
        """The objective of the point."""
        ...


class Run:
    """Clock, callback and history of one solve.

    Parameters
    ----------
    problem : Problem
    time_limit : float
        Seconds; infinity for none.
    callback : callable, optional
    options : dict
        Recorded in the result.
    verbose : int
        Log progress every `verbose` seconds at level INFO; 0 for never.
    """

    def __init__(
        self,
        problem: Any,
        time_limit: float = np.inf,
        callback: Callback | None = None,
        options: dict[str, Any] | None = None,
        verbose: int = 0,
    ) -> None:
        self.problem = problem
        # a run inside another one ends with it at the latest
        self.time_limit = min(time_limit, max(seconds_left(), 0.0))
        self._given = self.time_limit
        self.callback = callback
        self.options: dict[str, Any] = options or {}
        self.verbose = verbose
        self._start, self._compiled = time.perf_counter(), compile_seconds()
        self._over = Status.TIME_LIMIT
        self._next_log = float(verbose) if verbose else np.inf
        self._warned: set[str] = set()
        self._objective: list[float] = []
        self._seconds: list[float] = []
        self._n_nonzero: list[int] = []

    def part(self, problem: Any = None, *, is_shown: bool = False) -> Run:
        """Return a run inside this one, with the time left; the callback sees it if requested."""
        inside = Run(
            self.problem if problem is None else problem,
            max(self.seconds_left, 0.0),
            self.callback if is_shown else None,
            self.options,
            self.verbose if is_shown else 0,
        )
        # an inner run ends for the reason for which the outer one does
        inside._over = self._over
        return inside

    def interrupt(self, stop: KeyboardInterrupt | None = None) -> None:
        """End the time after Ctrl-C: whatever follows returns its first point."""
        self._over = self.status_of(stop or KeyboardInterrupt())
        self.time_limit: float = 0.0

    def status_of(self, stop: KeyboardInterrupt) -> Status:
        """Return what ended the run: Ctrl-C, now or before, or its limit."""
        return self._over if isinstance(stop, OutOfTime) else Status.INTERRUPTED

    @property
    def elapsed(self) -> float:
        """Seconds since the start, as limits count them."""
        return time.perf_counter() - self._start

    @property
    def seconds(self) -> float:
        """Seconds since the start without compilation, as shown and recorded."""
        return max(self.elapsed - (compile_seconds() - self._compiled), 0.0)

    def warn_once(self, message: str) -> None:
        """Log a warning, only once per run."""
        if message not in self._warned:
            self._warned.add(message)
            logger.warning(message)

    @property
    def seconds_left(self) -> float:
        """Seconds to the limit."""
        return self.time_limit - self.elapsed

    @property
    def grace(self) -> float:
        """Time beyond the limit in which what was found may still be fitted."""
        return grace_of(self.time_limit)

    def record(self, point: Point, lower_bound: float | None = None) -> Status | None:
        """Add a point to the history; return a status if the clock or callback says stop."""
        seconds, objective = self.seconds, point.objective
        self._objective.append(objective)
        self._seconds.append(seconds)
        self._n_nonzero.append(point.n_nonzero)
        if seconds >= self._next_log:
            self._next_log = seconds + self.verbose
            bound = ""
            if lower_bound is not None:
                gap = relative_gap(objective, lower_bound)
                bound = f", lower bound {lower_bound:.8g} (gap {gap:.2%})"
            logger.info(
                "%7.1f s  iteration %d  objective %.8g%s  nonzeros %d",
                seconds, point.iteration, objective, bound, point.n_nonzero,
            )  # fmt: skip
        watcher = _surroundings.get().watcher
        if watcher is not None or self.callback is not None:
            progress = Progress(
                point.iteration, objective, point.n_nonzero, seconds,
                self.problem.to_given(point.w), lower_bound,
            )  # fmt: skip
            if watcher is not None:
                watcher(progress, len(self._objective) == 1)
            if self.callback is not None and self.callback(progress):
                return Status.STOPPED
        return self._over if self.elapsed >= self.time_limit else None

    def result(
        self,
        w: Floats,
        status: Status,
        n_iter: int,
        lower_bound: float | None = None,
        objective: float | None = None,
        **kw: Any,
    ) -> Result:
        """Build the result at w, recomputing its objective from the data unless given.

        `w` belongs to the columns of the problem's design, the result to those given by the user. A
        lower bound above the objective, such as infinity, becomes the objective: the point is
        optimal.
        """
        # the answer is complete even where the time is up
        if objective is None:
            with timed_by(None):
                objective = float(self.problem.objective(w))
        if lower_bound is not None:
            lower_bound = min(lower_bound, objective)
        compiled = self.elapsed - self.seconds
        if status is Status.TIME_LIMIT and compiled > MUCH * self._given and not kw.get("note"):
            kw["note"] = (
                "Compiling functions, which happens once on a machine, took "
                f"{compiled:.1f} s of the time limit."
            )
        return Result(
            coef=self.problem.to_given(w),
            objective=objective,
            status=status,
            n_iter=n_iter,
            seconds=self.seconds,
            history=History(self._objective, self._seconds, self._n_nonzero),  # type: ignore[arg-type]
            options=self.options,
            lower_bound=lower_bound,
            units=getattr(self.problem, "units", COLUMNS),
            ridge=getattr(self.problem, "ridge", 0.0),
            **kw,
        )


def begin(
    problem: Any,
    options: dict[str, Any] | None = None,
    *,
    time_limit: float | None = None,
    callback: Callback | None = None,
    verbose: int | bool = 0,
) -> Run:
    """Start the clock of a solve, checking its time limit, callback and verbosity."""
    return Run(
        problem,
        check_time_limit(time_limit),
        check_callback(callback),
        options,
        check_verbose(verbose),
    )


# -- the best point --------------------------------------------------------------------------------


@dataclass(eq=False)
class Incumbent:
    """The best point so far, in the form that `Run.record` expects.

    A search stores what it learns about a point here, so that it need not recognize points later.

    Attributes
    ----------
    w : ndarray (n,), or (n, C) for C predictors per sample
    objective : float
    n_nonzero : int
    iteration : int
    prices : ndarray (n,) or None
        For every column the change of the objective by the best addition or swap that brings it in,
        if computed.
    doubtful : ndarray of int64 or None
        The columns whose entry changes are only rounding.
    is_settled : bool
        Whether it is known that no addition, removal or swap improves.
    is_proven : bool
        Whether it is known that nothing improves.
    """

    w: Floats
    objective: float
    n_nonzero: int
    iteration: int = 0
    prices: Floats | None = None
    doubtful: Ints | None = None
    is_settled: bool = False
    is_proven: bool = False

    @classmethod
    def at(cls, problem: Any, w: Floats, iteration: int = 0) -> Incumbent:
        """Make an incumbent, with its objective computed from the data."""
        return cls(w, problem.objective(w), problem.units.count(w), iteration)

    @property
    def support(self) -> Ints:
        """The columns with a nonzero coefficient."""
        return COLUMNS.support(self.w)


@dataclass
class Tally:
    """Full passes over X so far (a pool of all columns is one), and the largest drift."""

    n_passes: int = 0
    drift: float = 0.0

    def take(self, other: Tally) -> None:
        """Add the counts of another tally, and reset it."""
        self.n_passes, other.n_passes = self.n_passes + other.n_passes, 0
        self.drift = max(self.drift, other.drift)


# -- time of the compiler, which no search is charged for ------------------------------------------


class _Spent(threading.local):
    """Time of this thread: a compiler runs in the thread that calls the function."""

    seconds = 0.0
    is_running = False


_spent = _Spent()


def compile_seconds() -> float:
    """Return the seconds that this thread spent compiling functions or loading them from disk."""
    return _spent.seconds


def counted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function to add up its time, once for nested calls."""

    def call(*args: Any, **keywords: Any) -> Any:
        if _spent.is_running:
            return function(*args, **keywords)
        _spent.is_running, started = True, time.perf_counter()
        # a compiler makes millions of objects that live until it ends: searching them for cycles
        # over and over takes a tenth of its time
        collects = gc.isenabled()
        gc.disable()
        try:
            return function(*args, **keywords)
        finally:
            if collects:
                gc.enable()
            _spent.is_running = False
            _spent.seconds += time.perf_counter() - started

    return call
