"""Batching of passes: tasks run side by side, and one pass over X answers all of them.

Each task runs on its own thread until it makes a request; then the next task runs. Only one runs at
a time, in a fixed order, so that shared state needs no locks and every answer equals that of a task
run alone. Tasks may run tasks themselves: their requests join the same batch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any

from blockl0.errors import OutOfTime


class PassBatcher:
    """Runs tasks and answers their requests together, once all have made one or finished.

    Parameters
    ----------
    serve : callable
        Takes a list of requests and returns a list of answers.
    """

    def __init__(self, serve: Callable[[list[Any]], Sequence[Any]]) -> None:
        self._serve = serve
        self._here = threading.local()

    @property
    def is_unbatched(self) -> bool:
        """Whether the caller is not a batched task, so that requests are answered at once."""
        return getattr(self._here, "task", None) is None

    def request(self, question: Any) -> Any:
        """Return the answer to a request; a batched task waits for the others first."""
        return self._up([question])[0]

    def _up(self, requests: list[Any]) -> Sequence[Any]:
        """Pass requests up to the task that runs this batch, or to the server."""
        return self._serve(requests) if self.is_unbatched else self._here.task.request(requests)

    def run(
        self, tasks: Sequence[Callable[[], Any]], interrupt: Callable[[], Any] | None = None
    ) -> list[Any]:
        """Run tasks and return their results in order; the first error ends all of them.

        On Ctrl-C `interrupt` is called if given, and the pending requests of the tasks raise.
        """
        batch = [_Task(task, self._here) for task in tasks]
        live = batch
        try:
            while live:
                for task in live:
                    task.step(interrupt)
                    if task.error is not None:
                        raise task.error
                live = [task for task in live if not task.is_done]
                self._answer(live, interrupt)
        finally:
            for task in batch:
                task.end()
        return [task.result for task in batch]

    def _answer(self, live: list[_Task], interrupt: Callable[[], Any] | None) -> None:
        """Answer all pending requests; on Ctrl-C or out of time, fail them."""
        requests = [question for task in live for question in task.requests]
        if not requests:
            return
        try:
            answers = iter(self._up(requests))
            for task in live:
                task.answers = [next(answers) for _ in task.requests]
        except KeyboardInterrupt as stop:
            if not isinstance(stop, OutOfTime):
                if interrupt is None:
                    raise
                interrupt()
            for task in live:
                # one exception per task: each collects the traceback of its own thread
                task.failure = type(stop)(*stop.args)


class _Ended(BaseException):
    """Ends a task whose result is no longer needed."""


class _Task:
    """A task on a thread, running only between `step` and its next request."""

    def __init__(self, task: Callable[[], Any], here: threading.local) -> None:
        self.requests: list[Any] = []
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
        """Let the task run until its next request or its end."""
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
        """End the task at its pending or next request."""
        if not self.is_done:
            self.failure = _Ended()
            self._go.release()

    def request(self, requests: list[Any]) -> list[Any]:
        """Wait for answers."""
        self.requests, self.answers = requests, []
        self._back.release()
        self._go.acquire()
        if self.failure is not None:
            failure = self.failure
            # raised once: a task that goes on after it gets answers again
            self.failure = failure if isinstance(failure, _Ended) else None
            raise failure
        return self.answers

    def _run(self) -> None:
        self._here.task = self
        self._go.acquire()
        try:
            if self.failure is None:
                self.result = self._task()
        except BaseException as error:
            self.error = error
        self.is_done = True
        self._back.release()
