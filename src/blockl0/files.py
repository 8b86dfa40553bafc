"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any


def check_free(path: Any, force: bool = False) -> Path:
    """Refuse a place where a file cannot be written, or where there is one already."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; give the name of a file.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {str(path.parent)!r}; make it first.")
    if path.exists() and not force:
        raise FileExistsError(f"{str(path)!r} exists; choose another name, or --force replaces it.")
    return path


def write_whole(path: Any, text: str, force: bool = False) -> Path:
    """Write text to a new file beside `path`, then move it there: nobody ever sees half of it."""
    path = check_free(path, force)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with open(part, "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        check_free(path, force)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    return path
