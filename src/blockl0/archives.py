"""Arrays in a file: NumPy archives without pickles, atomic and with a checksum."""

from __future__ import annotations

import hashlib
import io
from typing import Any

import numpy as np

from blockl0.files import check_exists, write_whole
from blockl0.verify.arrays import read_arrays


def write_archive(path: Any, form: str, content: dict[str, Any], force: bool = False) -> None:
    """Write named arrays as an archive (.npz) with the name of their form and a checksum."""
    arrays: dict[str, Any] = {name: np.asarray(value) for name, value in content.items()} | {
        "form": np.array(form)
    }
    buffer = io.BytesIO()
    np.savez(buffer, **arrays, checksum=np.array(digest(arrays)))
    write_whole(path, buffer.getbuffer(), force)  # type: ignore[arg-type]


def read_archive(path: Any, form: str, what: str) -> dict[str, Any]:
    """Read the arrays of an archive of a form, refusing any other file as not being `what`."""
    path = check_exists(path)
    try:
        content = read_arrays(path)
    except ValueError as error:
        raise ValueError(f"{str(path)!r} is not {what}, or damaged: {error}.") from error
    checksum = str(content.pop("checksum", ""))
    if str(content.get("form", "")) != form or checksum != digest(content):
        raise ValueError(
            f"{str(path)!r} is not {what} of this version, or was changed: its form or its "
            "checksum differs."
        )
    del content["form"]
    return content


def digest(content: dict[str, Any]) -> str:
    """Compute a checksum of named arrays, in any order."""
    total = hashlib.sha256()
    for name in sorted(content):
        array = np.asarray(content[name])
        total.update(f"{name}|{array.dtype.str}|{array.shape}|".encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()
