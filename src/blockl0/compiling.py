"""How numba compiles: fast, and with a disk cache that never does worse than compiling again."""

from __future__ import annotations

import hashlib
import logging
import pickle
import warnings
from collections.abc import Callable
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

from blockl0.run import counted

logger: logging.Logger = logging.getLogger("blockl0")

DIGEST = hashlib.sha256().digest_size

_warned: list[str] = []


def cached(**options: Any) -> Callable[[Any], Any]:
    """Compile with `numba.njit`, cached on disk if a folder is writable."""
    compiled = njit(**options)

    def decorate(function: Any) -> Any:
        dispatcher: Any = compiled(function)
        if not hasattr(dispatcher, "_cache"):
            return dispatcher  # NUMBA_DISABLE_JIT: the function itself
        dispatcher.compile = counted(dispatcher.compile)
        try:
            dispatcher._cache = CheckedCache(function, needs_runtime=options.get("_nrt", True))
        except (RuntimeError, OSError) as error:  # numba found no writable folder
            _warn_once(error)
        return dispatcher

    return decorate


def _warn_once(error: Exception) -> None:
    """Warn once per process that compiled functions are not cached."""
    if _warned:
        return
    _warned.append(str(error))
    warnings.warn(
        "Compiled functions cannot be kept on disk, so that every process compiles them again, "
        f"which takes seconds; set NUMBA_CACHE_DIR to a folder that can be written ({error}).",
        RuntimeWarning,
        stacklevel=2,
    )


class CheckedFile(IndexDataCacheFile):
    """Cache files with a checksum at their end: machine code is never run unchecked.

    `pickle` ignores what follows its end, so that numba can still read the index itself.
    """

    def _dump(self, obj: Any) -> bytes:
        data = super()._dump(obj)
        return data + hashlib.sha256(data).digest()

    def _load_index(self) -> dict[Any, str]:
        try:
            with open(self._index_path, "rb") as file:
                if pickle.load(file) == self._version:
                    _check(file.read())
            return super()._load_index()
        except FileNotFoundError:
            return {}
        except Exception as error:
            # unpickling damaged data raises almost anything
            _tell(self._index_path, error)
            return {}

    def _load_data(self, name: str) -> Any:
        with open(self._data_path(name), "rb") as file:
            data = _check(file.read())
        return pickle.loads(data)


class CheckedCache(FunctionCache):
    """A cache whose entries are recompiled if they are damaged or cannot be written.

    Machine code that needs nothing of numba's runtime, which counts references to arrays, is loaded
    without the parts that only compiling needs: numba would otherwise import and register
    everything it can compile, which takes longer than the rest of a process that compiles nothing.
    """

    def __init__(self, function: Any, needs_runtime: bool = True) -> None:
        super().__init__(function)
        self._needs_runtime = needs_runtime
        self._cache_file = CheckedFile(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=self._impl.locator.get_source_stamp(),
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load the compiled function of a signature; None if there is none."""
        if self._needs_runtime:
            return super().load_overload(sig, target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super()._load_overload(sig, target_context)
        except Exception as error:
            _tell(self._name, error)
            return None

    def _save_overload(self, sig: Any, data: Any) -> None:
        try:
            super()._save_overload(sig, data)
        except OSError as error:  # a full disk, or a folder removed in the meantime
            _warn_once(error)


def _check(data: bytes) -> bytes:
    body, digest = data[:-DIGEST], data[-DIGEST:]
    if hashlib.sha256(body).digest() != digest:
        raise ValueError("its checksum does not fit")
    return body


def _tell(what: str, error: Exception) -> None:
    logger.info("The cache of %s is damaged (%s) and compiled again.", what, error)
