"""Reading LIBSVM and MAT files, for tables and for data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import scipy.sparse as sp

from blockl0.text import clause


def read_libsvm(source: Any, *, first_column: int | None = 0) -> tuple[Any, Any]:
    """(X as a csc_array, y) of LIBSVM text: a path, also compressed (.gz, .bz2), or a stream.

    `first_column` is the number that the file gives to its first column: 0, so that columns keep
    their numbers, or None to guess between 0 and 1, which may differ between two files.
    """
    from sklearn.datasets import load_svmlight_file

    read: Any = load_svmlight_file
    is_zero_based = "auto" if first_column is None else first_column == 0
    try:
        X, y = read(str(source) if isinstance(source, Path) else source, zero_based=is_zero_based)[
            :2
        ]
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(f"This is not a LIBSVM file: {clause(error)}.") from error
    return sp.csc_array(X), y


def read_mat(source: Any) -> dict[str, Any]:
    """The variables of a MAT file, by name."""
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        arrays = loadmat(source)
    except NotImplementedError as error:
        raise ValueError("MAT files of version 7.3 are not read; save with '-v7'.") from error
    except (MatReadError, OSError, ValueError, TypeError) as error:
        raise ValueError(f"This is not a MAT file: {clause(error)}.") from error
    return {name: value for name, value in arrays.items() if not name.startswith("__")}
