"""Which kinds of X are sources, by the package that their type comes from.

Nothing optional is imported before an object of it is seen: its package is then loaded anyway.
"""

from __future__ import annotations

from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from blockl0.storage.source import Source

OPENERS: dict[str, str] = {
    "array_api_strict": "blockl0.storage.device",
    "bed_reader": "blockl0.storage.bed_files",
    "cupy": "blockl0.storage.device",
    "dask": "blockl0.storage.dask_arrays",
    "h5py": "blockl0.storage.chunked",
    "numpy": "blockl0.storage.memmap",
    "torch": "blockl0.storage.device",
    "zarr": "blockl0.storage.chunked",
}
"""The module with `open_source(X, memory_limit) -> Source | None`, by the package of X's type.

None says that X is none of those after all, as most arrays of NumPy."""

FILES: dict[str, str] = {
    ".bed": "blockl0.storage.bed_files",
    ".npy": "blockl0.storage.memmap",
    ".zarr": "blockl0.storage.chunked",
}
"""The same by the end of a path."""


def opened(X: Any, memory_limit: float | None = None) -> Source | None:
    """The source that X is, or None where it is an array, a table or a sparse matrix in memory."""
    if type(X) is np.ndarray:
        return None
    if isinstance(X, Source):
        return X
    if isinstance(X, str | PathLike):
        module = FILES.get(Path(X).suffix.lower())
        return None if module is None else import_module(module).open_source(X, memory_limit)
    for kind in type(X).__mro__:
        module = OPENERS.get(kind.__module__.split(".")[0])
        if module is not None:
            return import_module(module).open_source(X, memory_limit)
    return None
