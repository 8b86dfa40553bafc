"""Registry of storages, by the package that the type of X comes from.

No optional package is imported before an object of it is given: it is loaded then anyway.
"""

from __future__ import annotations

from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from blockl0.data.source import Source

OPENERS: dict[str, str] = {
    "array_api_strict": "blockl0.data.device",
    "bed_reader": "blockl0.data.bed_files",
    "cupy": "blockl0.data.device",
    "dask": "blockl0.data.dask_arrays",
    "h5py": "blockl0.data.chunked",
    "numpy": "blockl0.data.memmap",
    "torch": "blockl0.data.device",
    "zarr": "blockl0.data.chunked",
}
"""Module with `open_source(X, memory_limit) -> Source | None`, by the package of X's type.

`open_source` returns None if X needs no source after all, such as most NumPy arrays."""

FILES: dict[str, str] = {
    ".bed": "blockl0.data.bed_files",
    ".npy": "blockl0.data.memmap",
    ".zarr": "blockl0.data.chunked",
}
"""Module by the suffix of a path."""


def opened(X: Any, memory_limit: float | None = None) -> Source | None:
    """Open X as a source; return None for arrays, tables and sparse matrices in memory."""
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
