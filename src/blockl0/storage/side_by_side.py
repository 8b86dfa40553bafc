"""Searches that run side by side and ask together: one pass over X answers all of them.

Each search runs on a thread of its own until it asks; then the next one does. Only one runs at any
time, in an order that never changes, so that nothing they share needs a lock, and every answer is
what the search would have found alone. A task may itself run tasks: they ask with all others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any

from blockl0.errors import OutOfTime


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

    @property
    def is_alone(self) -> bool:
        """Whether who asks here is no task, and answered at once."""
        return getattr(self._here, "lane", None) is None

    def ask(self, question: Any) -> Any:
        """The answer, which a task waits for with the others; outside of tasks it comes at once."""
        return self._up([question])[0]

    def _up(self, questions: list[Any]) -> Sequence[Any]:
        """Answers from whoever is above: the tasks that this one is run with, or the server."""
        return self._serve(questions) if self.is_alone else self._here.lane.ask(questions)

    def run(
        self, tasks: Sequence[Callable[[], Any]], interrupt: Callable[[], Any] | None = None
    ) -> list[Any]:
        """What the tasks return, in their order; the first error of one ends all of them.

        On Ctrl-C `interrupt` is called, if it is there, and tasks are told so by what they asked.
        """
        lanes = [_Lane(task, self._here) for task in tasks]
        live = lanes
        try:
            while live:
                for lane in live:
                    lane.step(interrupt)
                    if lane.error is not None:
                        raise lane.error
                live = [lane for lane in live if not lane.is_done]
                self._answer(live, interrupt)
        finally:
            for lane in lanes:
                lane.end()
        return [lane.result for lane in lanes]

    def _answer(self, live: list[_Lane], interrupt: Callable[[], Any] | None) -> None:
        """Answer all; where time is up, or Ctrl-C was pressed, everyone is told."""
        questions = [question for lane in live for question in lane.questions]
        if not questions:
            return
        try:
            answers = iter(self._up(questions))
            for lane in live:
                lane.answers = [next(answers) for _ in lane.questions]
        except KeyboardInterrupt as stop:
            if not isinstance(stop, OutOfTime):
                if interrupt is None:
                    raise
                interrupt()
            for lane in live:
                # one for each, as what is raised keeps the frames that it went through
                lane.failure = type(stop)(*stop.args)


class _Ended(BaseException):
    """Ends a task that nobody waits for any more."""


class _Lane:
    """A task on a thread, which runs only between a step and the next question."""

    def __init__(self, task: Callable[[], Any], here: threading.local) -> None:
        self.questions: list[Any] = []
        self.answers: list[Any] = []
        self.result: Any = None
        self.error: BaseException | None = None
        self.failure: BaseException | None = None
        self.is_done = False
        self._task, self._here = task, here
        self._go, self._back = threading.Semaphore(0), threading.Semaphore(0)
        thread = threading.Thread(target=copy_context().run, args=(self._run,), daemon=True)
        thread.start()

    def step(self, interrupt: Callable[[], Any] | None) -> None:
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

    def end(self) -> None:
        """Let the task end at its question, or at the next one."""
        if not self.is_done:
            self.failure = _Ended()
            self._go.release()

    def ask(self, questions: list[Any]) -> list[Any]:
        """Wait for answers."""
        self.questions, self.answers = questions, []
        self._back.release()
        self._go.acquire()
        if self.failure is not None:
            failure = self.failure
            # told once: who goes on after it has an answer to what is asked next
            self.failure = failure if isinstance(failure, _Ended) else None
            raise failure
        return self.answers

    def _run(self) -> None:
        self._here.lane = self
        self._go.acquire()
        try:
            if self.failure is None:
                self.result = self._task()
        except BaseException as error:
            self.error = error
        self.is_done = True
        self._back.release()
