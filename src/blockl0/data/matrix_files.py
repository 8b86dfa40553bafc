"""Reading LIBSVM and MAT files, for tables and for data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from blockl0.text import clause, cut


def read_libsvm(source: Any, *, first_column: int | None = 0) -> tuple[Any, Any]:
    """Read (X as a csc_array, y) from LIBSVM text: a path, possibly compressed, or a stream.

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
        raise ValueError(
            f"This is not a LIBSVM file: {_bad_line(source) or clause(error)}."
        ) from error
    from scipy.sparse import csc_array

    return csc_array(X), y


def _bad_line(source: Any) -> str:
    """Describe the first line that is not a target and column:value pairs, "" if not found."""
    try:
        text = source.getvalue() if hasattr(source, "getvalue") else Path(source).read_bytes()
    except OSError:
        return ""
    for number, line in enumerate(text.decode("utf-8", "replace").splitlines(), 1):
        for i, word in enumerate(line.split("#")[0].split()):
            column, between, value = word.partition(":")
            parts = [column] if i == 0 else [column.removeprefix("qid"), value]
            if (i > 0 and not between) or not all(map(_is_number, filter(None, parts))):
                return f"line {number} holds {cut(word)!r}, where column:value is expected"
    return ""


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_mat(source: Any) -> dict[str, Any]:
    """Read the variables of a MAT file, by name."""
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        arrays = loadmat(source)
    except NotImplementedError as error:
        raise ValueError("MAT files of version 7.3 are not read; save with '-v7'.") from error
    except (MatReadError, OSError, ValueError, TypeError) as error:
        raise ValueError(f"This is not a MAT file: {clause(error)}.") from error
    return {name: value for name, value in arrays.items() if not name.startswith("__")}
