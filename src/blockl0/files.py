"""Files: atomic writes, strict JSON, and archives of arrays with a checksum."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, BinaryIO

from blockl0.errors import ModelFileError

SIMILAR = 0.7
"""Similarity of file names, without suffix, from which one is suggested."""
ABANDONED = 3600.0
"""Seconds after which a partial file is considered abandoned by a killed process."""


def check_free(path: Any, force: bool = False) -> Path:
    """Refuse a path where a file cannot be written or already exists."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; give the name of a file.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {str(path.parent)!r}; make it first.")
    # a dangling link counts as taken: writing would create its target
    if os.path.lexists(path) and not force and not _is_stream(path):
        raise _taken(path)
    _check_leads_somewhere(path)
    return path


def _check_leads_somewhere(path: Path) -> None:
    """Refuse a link without a possible target, such as one to itself or a missing folder."""
    place = Path(os.path.realpath(path))
    if place.is_symlink() or not place.parent.is_dir():
        raise FileNotFoundError(f"{str(path)!r} is a link that leads nowhere; remove it first.")


def check_exists(path: Any, what: str = "file") -> Path:
    """Refuse a missing file, suggesting one of a similar name."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; give the name of a file.")
    if not path.is_file():
        raise FileNotFoundError(f"There is no {what} {str(path)!r}.{_similar(path)}")
    return path


def _similar(path: Path) -> str:
    """Suggest a file with a similar name."""
    folder = path.parent
    names = [p.name for p in folder.iterdir() if p.is_file()] if folder.is_dir() else []
    # among files that differ only in suffix, prefer the given suffix
    order = sorted(names, key=lambda name: (Path(name).suffix == path.suffix, name))
    before = {Path(name).stem.casefold(): name for name in order}
    prefix = "" if folder == Path() else f"{folder}{os.sep}"
    near = get_close_matches(path.stem.casefold(), before, n=1, cutoff=SIMILAR)
    return f" Did you mean {prefix + before[near[0]]!r}?" if near else ""


def write_whole(path: Any, text: str | bytes, force: bool = False) -> Path:
    """Write text or bytes to a file atomically: it never exists half written.

    Of several writers without `force` one succeeds. With it, an existing file is replaced but keeps
    its permissions, and a link keeps its target. Devices and pipes are written directly.
    """
    path = check_free(path, force)
    content = text.encode() if isinstance(text, str) else text
    if _is_stream(path):
        path.write_bytes(content)
        return path
    with part_for(path, force) as (part, place):
        _write_part(part, content, place.stat() if place.exists() else None)
    return path


@contextmanager
def open_whole(path: Any, force: bool = False) -> Iterator[BinaryIO]:
    """Open a file to write piece by piece; it is renamed at the end, if there is no error."""
    path = check_free(path, force)
    if _is_stream(path):
        with path.open("wb") as file:
            yield file
        return
    with part_for(path, force) as (part, place):
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if place.exists():
            part.chmod(stat.S_IMODE(place.stat().st_mode))


@contextmanager
def part_for(path: Path, force: bool = False) -> Iterator[tuple[Path, Path]]:
    """Yield (a temporary name to write to, the final path), and rename at the end."""
    place = Path(os.path.realpath(path)) if force else path
    _remove_abandoned(place)
    part = _part_of(place)
    try:
        yield part, place
        if force:
            os.replace(part, place)
        else:
            _move_to_free(part, path)
    finally:
        part.unlink(missing_ok=True)


def _taken(path: Path) -> FileExistsError:
    return FileExistsError(f"{str(path)!r} exists; choose another name, or --force replaces it.")


def _is_stream(path: Path) -> bool:
    """Check for a terminal, device or pipe, which cannot be replaced atomically."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


# -- parts -----------------------------------------------------------------------------------------


def _part_of(place: Path) -> Path:
    # shortened, as file systems limit the length
    return place.with_name(f".{place.name[:50]}.{secrets.token_hex(4)}.part")


def _remove_abandoned(place: Path) -> None:
    """Remove partial files too old to belong to a process that is still writing."""
    name = re.compile(re.escape(f".{place.name[:50]}.") + r"[0-9a-f]{8}\.part")
    with suppress(OSError), os.scandir(place.parent) as entries:
        for entry in entries:
            if name.fullmatch(entry.name) is None:
                continue
            if time.time() - entry.stat(follow_symlinks=False).st_mtime > ABANDONED:
                os.unlink(entry.path)


def _write_part(part: Path, content: bytes, before: os.stat_result | None) -> None:
    """Write a complete file, with the permissions of the previous one.

    On Linux it has no name until it is complete, so the system removes it if the process dies.
    Elsewhere a killed process leaves a partial file, which a later writer removes.
    """
    mode = 0o666 if before is None else stat.S_IMODE(before.st_mode) & 0o777
    if os.path.isdir("/proc/self/fd"):
        with suppress(AttributeError, OSError):  # file systems may lack unnamed files
            descriptor = os.open(part.parent, os.O_WRONLY | os.O_TMPFILE, mode)
            with _filled(descriptor, content, before):
                # an absolute path: the folder is ignored, but makes Python follow the link
                os.link(f"/proc/self/fd/{descriptor}", part, src_dir_fd=descriptor)
            return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with _filled(os.open(part, flags, mode), content, before):
        pass


@contextmanager
def _filled(descriptor: int, content: bytes, before: os.stat_result | None) -> Iterator[None]:
    """Write a file, sync it to disk, and close it afterwards."""
    with open(descriptor, "wb") as file:
        if before is not None and hasattr(os, "fchmod"):
            with suppress(OSError):
                os.fchown(descriptor, before.st_uid, before.st_gid)
            os.fchmod(descriptor, stat.S_IMODE(before.st_mode))  # regardless of the umask
        file.write(content)
        file.flush()
        os.fsync(descriptor)
        yield


def _move_to_free(part: Path, path: Path) -> None:
    """Rename to a free name; of several writers the system lets one succeed."""
    try:
        if os.name == "nt":
            os.rename(part, path)  # never replaces on Windows
            return
        try:
            os.link(part, path)
        except FileExistsError:
            raise
        except OSError:  # no hard links on this file system: reserve the name, then fill it
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
            os.replace(part, path)
    except FileExistsError:
        raise _taken(path) from None


def read_document(path: Any) -> Any:
    """Read a model file as JSON; its meaning is checked when it is loaded."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"There is no model file {str(path)!r}.")
    try:
        return _parse(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ModelFileError(
            f"{path} is damaged, or no model: it is not JSON ({error})."
        ) from error


def _parse(text: str) -> Any:
    """Parse strict JSON: Python would also accept NaN, 1e999 and repeated names."""

    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is no number")

    def finite(word: str) -> float:
        return float(word) if math.isfinite(float(word)) else refuse(word[:40])

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        entries = dict(pairs)
        if len(entries) < len(pairs):
            raise ValueError(f"a name of {', '.join(list(entries)[:3])}, … occurs twice")
        return entries

    return json.loads(text, parse_constant=refuse, parse_float=finite, object_pairs_hook=unique)


def write_archive(path: Any, form: str, content: dict[str, Any], force: bool = False) -> None:
    """Write named arrays as an archive (.npz) with the name of their form and a checksum."""
    import numpy as np  # `blockl0 --help` imports this file and needs no arrays

    arrays: dict[str, Any] = {name: np.asarray(value) for name, value in content.items()} | {
        "form": np.array(form)
    }
    buffer = io.BytesIO()
    np.savez(buffer, **arrays, checksum=np.array(digest(arrays)))
    write_whole(path, buffer.getbuffer(), force)  # type: ignore[arg-type]


def read_archive(path: Any, form: str, what: str) -> dict[str, Any]:
    """Read the arrays of an archive of a form, refusing any other file as not being `what`."""
    from blockl0.verify.arrays import read_arrays

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
    import numpy as np

    total = hashlib.sha256()
    for name in sorted(content):
        array = np.asarray(content[name])
        total.update(f"{name}|{array.dtype.str}|{array.shape}|".encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()
