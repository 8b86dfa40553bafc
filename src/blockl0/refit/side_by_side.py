"""Searches that run side by side and ask for prices together: one pass over X answers all of them.

Each search runs on a thread of its own until it asks; then the next one does. Only one runs at any
time, in an order that never changes, so that nothing they share needs a lock, and every answer is
what the search would have found alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any


class SideBySide:
    """Runs tasks that ask, and answers whenever all of them have asked or ended.

    Parameters
    ----------
    serve : callable
        Takes a list of questions and returns a list of answers.
    """

    def __init__(self, serve: Callable[[list[Any]], Sequence[Any]]) -> None:
        self._serve = serve
        self._here = threading.local()

    def ask(self, question: Any) -> Any:
        """The answer, which a task waits for with the others; outside of tasks it comes at once."""
        lane: _Lane | None = getattr(self._here, "lane", None)
        return self._serve([question])[0] if lane is None else lane.ask(question)

    def run(
        self, tasks: Sequence[Callable[[], Any]], interrupt: Callable[[], None] | None = None
    ) -> list[Any]:
        """What the tasks return, in their order; `interrupt` is called on Ctrl-C."""
        lanes = [_Lane(task, self._here) for task in tasks]
        live = lanes
        while live:
            for lane in live:
                lane.step(interrupt)
            live = [lane for lane in live if not lane.is_done]
            self._answer(live, interrupt)
        for lane in lanes:
            if lane.error is not None:
                raise lane.error
        return [lane.result for lane in lanes]

    def _answer(self, live: list[_Lane], interrupt: Callable[[], None] | None) -> None:
        """Answer all; where that fails, everyone is told, and ends."""
        if not live:
            return
        try:
            for lane, answer in zip(live, self._serve([x.question for x in live]), strict=True):
                lane.answer = answer
        except BaseException as error:
            if interrupt is not None and isinstance(error, KeyboardInterrupt):
                interrupt()
            for lane in live:
                lane.failure = error


class _Lane:
    """A task on a thread, which runs only between a step and the next question."""

    def __init__(self, task: Callable[[], Any], here: threading.local) -> None:
        self.question = self.answer = self.result = None
        self.error: BaseException | None = None
        self.failure: BaseException | None = None
        self.is_done = False
        self._task, self._here = task, here
        self._go, self._back = threading.Semaphore(0), threading.Semaphore(0)
        thread = threading.Thread(target=copy_context().run, args=(self._run,), daemon=True)
        thread.start()

    def step(self, interrupt: Callable[[], None] | None) -> None:
        """Let the task run until it asks or ends."""
        self._go.release()
        while True:
            try:
                self._back.acquire()
                return
            except KeyboardInterrupt:
                if interrupt is None:
                    raise
                interrupt()

    def ask(self, question: Any) -> Any:
        """Wait for an answer."""
        self.question, self.answer = question, None
        self._back.release()
        self._go.acquire()
        if self.failure is not None:
            raise self.failure
        return self.answer

    def _run(self) -> None:
        self._here.lane = self
        self._go.acquire()
        try:
            self.result = self._task()
        except BaseException as error:
            self.error = error
        self.is_done = True
        self._back.release()
