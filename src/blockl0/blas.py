"""Threads of the BLAS: one inside a run, as many as it was given for large products.

A run makes many small products, and threads of the BLAS that wait for each other make these 3 to
30 times slower, more so beside other work. So every public door holds `one_blas_thread`, and the
few operations that take long lift it with `all_blas_threads`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from functools import cache, wraps
from threading import Lock, get_ident
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

# multiplications from which on threads pay: about a tenth of a second of one core, so that a
# thread that has to wait for a busy core costs little beside what it saves
MANY = 2e9


class _Blas:
    """The libraries loaded in this process, and how many runs hold them to one thread.

    A number of threads belongs to the process, not to a Python thread: the first of several
    runs at the same time sets it, and the last one restores it.
    """

    def __init__(self) -> None:
        from threadpoolctl import ThreadpoolController

        controllers = ThreadpoolController().select(user_api="blas").lib_controllers
        self._libraries: list[Any] = [lib for lib in controllers if lib.num_threads]
        self._given: list[int] = []
        self._lock = Lock()
        self._depths: dict[int, int] = {}

    def hold(self) -> None:
        """Hold the libraries to one thread, once more from this Python thread."""
        here = get_ident()
        with self._lock:
            if not self._depths:
                self._given = [library.get_num_threads() for library in self._libraries]
                self._set([1] * len(self._given))
            self._depths[here] = self._depths.get(here, 0) + 1

    def release(self) -> None:
        """Let go; the last one restores the numbers of threads that the first one found."""
        here = get_ident()
        with self._lock:
            self._depths[here] -= 1
            if self._depths[here] == 0:
                del self._depths[here]
            if not self._depths:
                self._set(self._given)

    def lift(self) -> bool:
        """Give the only run all its threads; several runs at a time keep one each."""
        with self._lock:
            is_only_run = list(self._depths) == [get_ident()] and max(self._given, default=1) > 1
            if is_only_run:
                self._set(self._given)
            return is_only_run

    def lower(self) -> None:
        """Return to one thread after `lift`."""
        with self._lock:
            self._set([1] * len(self._given))

    def _set(self, numbers: list[int]) -> None:
        for library, given, number in zip(self._libraries, self._given, numbers, strict=True):
            # left alone where there is one thread anyway
            if given > 1:
                # threadpoolctl from 3.7 on lets one Python thread alone set them, until it says so
                clear = getattr(library, "clear_controlling_thread", None)
                if clear is not None:
                    clear(force=True)
                library.set_num_threads(number)
                if clear is not None:
                    clear(force=True)


@cache
def _blas() -> _Blas:
    return _Blas()


class one_blas_thread(ContextDecorator):
    """Hold the BLAS to one thread, as a ``with`` block or a decorator; nests, costs microseconds.

    Examples
    --------
    >>> from blockl0.blas import one_blas_thread
    >>> with one_blas_thread():
    ...     pass
    """

    def __enter__(self) -> None:
        _blas().hold()

    def __exit__(self, *error: Any) -> None:
        _blas().release()


class all_blas_threads:
    """Lift `one_blas_thread` for an operation of at least `MANY` multiplications."""

    def __init__(self, multiplications: float) -> None:
        self._is_lifted = False
        self._is_large = multiplications >= MANY

    def __enter__(self) -> None:
        if self._is_large:
            self._is_lifted = _blas().lift()

    def __exit__(self, *error: Any) -> None:
        if self._is_lifted:
            _blas().lower()


def cubic(share: float) -> Callable[[Function], Function]:
    """Lift the limit in a function whose first argument is a (q, q) matrix, at share·q³ work."""

    def decorate(function: Function) -> Function:
        @wraps(function)
        def lifted(A: Any, *args: Any, **kw: Any) -> Any:
            with all_blas_threads(share * float(A.shape[0]) ** 3):
                return function(A, *args, **kw)

        return lifted  # type: ignore[return-value]

    return decorate
