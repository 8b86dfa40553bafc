"""Time spent compiling, so that no search is charged for it."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from typing import Any


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
