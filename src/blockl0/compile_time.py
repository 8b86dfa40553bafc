"""The seconds that compiling has taken, so that no search is charged with them."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from typing import Any


class _Spent(threading.local):
    """Of this thread: a compiler runs in the thread that calls the function."""

    seconds = 0.0
    is_running = False


_spent = _Spent()


def compile_seconds() -> float:
    """Seconds that this thread has waited for compiled functions, made or read from disk."""
    return _spent.seconds


def counted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function; its time is added up, once where calls nest."""

    def call(*args: Any, **keywords: Any) -> Any:
        if _spent.is_running:
            return function(*args, **keywords)
        _spent.is_running, started = True, time.perf_counter()
        # a compiler makes millions of objects that live till its end: looking among them for
        # cycles, again and again, takes a tenth of its time
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
