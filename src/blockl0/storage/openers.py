"""Which kinds of X are sources, by the package that their type comes from.

Nothing optional is imported before an object of it is seen: its package is then loaded anyway.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from blockl0.storage.source import Source

OPENERS: dict[str, str] = {
    "cupy": "blockl0.storage.device",
    "torch": "blockl0.storage.device",
    "array_api_strict": "blockl0.storage.device",
}
"""The module with `open_source(X, memory_limit) -> Source | None`, by the package of X's type.

None says that X is none of those after all, as most arrays of NumPy."""


def opened(X: Any, memory_limit: float | None = None) -> Source | None:
    """The source that X is, or None where it is an array, a table or a sparse matrix in memory."""
    if isinstance(X, Source):
        return X
    for kind in type(X).__mro__:
        module = OPENERS.get(kind.__module__.split(".")[0])
        if module is not None:
            return import_module(module).open_source(X, memory_limit)
    return None
