"""Arrays of a file from elsewhere: its directory is looked at before anything is inflated.

A NumPy archive says how large its parts are. Parts that are larger than what a file of this size
may hold, that have names which no array has, or are in a form which NumPy does not write, are
refused; then each part is read to the size that it says, and no further.
"""

from __future__ import annotations

import io
import math
import re
import zipfile
from typing import Any

import numpy as np

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\.npy")
RATIO, FREE = 100, 2**20
"""Bytes that all arrays may have for each byte of the file, and beside them: proofs have 2 to 4."""
READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
"""Of the form of an array, by version."""


def read_arrays(path: Any) -> dict[str, Any]:
    """Read the arrays of a NumPy archive.

    Raises
    ------
    ValueError
        The file is none, is damaged, or would be far larger than it is.
    """
    with open(path, "rb") as file:
        try:
            size = file.seek(0, 2)
            with zipfile.ZipFile(file) as archive:
                entries = archive.infolist()
                _check_directory(entries, size)
                return {x.filename[:-4]: _array(_content(archive, x)) for x in entries}
        except Exception as error:  # whatever zip, zlib and NumPy make of other bytes
            raise ValueError(words_of(error)) from error


def words_of(error: Exception) -> str:
    """Say what is wrong with a file, in one line."""
    kind = "" if type(error) is ValueError else f"{type(error).__name__}: "
    return f"{kind}{error}".split("\n")[0].rstrip(". :")


def names_of(path: Any) -> set[str]:
    """Return the names in an archive; none of any other file."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {name.removesuffix(".npy") for name in archive.namelist()}
    except Exception:  # as in `read_arrays`
        return set()


def _require(holds: Any, reason: str) -> None:
    if not holds:
        raise ValueError(reason)


def _check_directory(entries: list[zipfile.ZipInfo], size: int) -> None:
    """Refuse names, sizes and forms that cannot be."""
    names = [entry.filename for entry in entries]
    odd = [name for name in names if not NAME.fullmatch(name)]
    _require(not odd, f"{odd[:1]} is no name of an array")
    _require(len(set(names)) == len(names), "a name is given twice")
    for entry in entries:
        is_stored = entry.compress_type == zipfile.ZIP_STORED
        is_known = is_stored or entry.compress_type == zipfile.ZIP_DEFLATED
        _require(is_known and not entry.flag_bits & 1, "compressed or encrypted in another way")
        is_whole = entry.file_size == entry.compress_size or not is_stored
        _require(is_whole, "sizes contradict each other")
    packed, full = sum(x.compress_size for x in entries), sum(x.file_size for x in entries)
    _require(packed <= size, "parts are longer than the file")
    _require(full <= RATIO * size + FREE, f"{size} bytes would become {full}")


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Inflate a part, to the size that the directory says."""
    with archive.open(entry) as stream:
        content = stream.read(entry.file_size)
    _require(len(content) == entry.file_size, "a part is shorter than it says")
    return content


def _array(content: bytes) -> Any:
    """Convert a part to an array, of numbers or text, that fills it."""
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    _require(version in READERS, f"arrays of version {version}")
    shape, is_fortran, dtype = READERS[version](stream)
    start, is_plain = stream.tell(), dtype.kind in "biufcSU" and dtype.itemsize > 0
    _require(is_plain, f"an array of {dtype}")
    n_bytes = math.prod(shape) * dtype.itemsize
    _require(min(shape, default=0) >= 0 and start + n_bytes == len(content), f"shape {shape}")
    order = "F" if is_fortran else "C"
    return np.ndarray(shape, dtype, content, start, order=order).copy(order)
