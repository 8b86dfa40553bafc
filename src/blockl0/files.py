"""Files that are written whole or not at all; and JSON, read strictly."""

from __future__ import annotations

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
"""How much of a file's name, its end apart, another one must share to be suggested."""
ABANDONED = 3600.0
"""Seconds after which a part belongs to a process that was killed: what it holds was in memory."""


def check_free(path: Any, force: bool = False) -> Path:
    """Refuse a place where a file cannot be written, or where there is one already."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; give the name of a file.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {str(path.parent)!r}; make it first.")
    # a link to a file that is not there is taken, too: writing would make that file
    if os.path.lexists(path) and not force and not _is_stream(path):
        raise _taken(path)
    _check_leads_somewhere(path)
    return path


def _check_leads_somewhere(path: Path) -> None:
    """Refuse a link behind which no file can be, as one to itself or into a missing folder."""
    place = Path(os.path.realpath(path))
    if place.is_symlink() or not place.parent.is_dir():
        raise FileNotFoundError(f"{str(path)!r} is a link that leads nowhere; remove it first.")


def check_exists(path: Any, what: str = "file") -> Path:
    """Refuse a file that is not there, with the one of a similar name that may have been meant."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; give the name of a file.")
    if not path.is_file():
        raise FileNotFoundError(f"There is no {what} {str(path)!r}.{_similar(path)}")
    return path


def _similar(path: Path) -> str:
    """The file that may have been meant: of a similar name before its end."""
    folder = path.parent
    names = [p.name for p in folder.iterdir() if p.is_file()] if folder.is_dir() else []
    # of files that differ in their end alone, the one with the end that was given
    order = sorted(names, key=lambda name: (Path(name).suffix == path.suffix, name))
    before = {Path(name).stem.casefold(): name for name in order}
    prefix = "" if folder == Path() else f"{folder}{os.sep}"
    near = get_close_matches(path.stem.casefold(), before, n=1, cutoff=SIMILAR)
    return f" Did you mean {prefix + before[near[0]]!r}?" if near else ""


def write_whole(path: Any, text: str | bytes, force: bool = False) -> Path:
    """Write text or bytes to a file that gets its name when complete: nobody ever sees half of it.

    Of several writers without `force` one succeeds. With it, a file that is there is replaced, but
    keeps its permissions, and a link keeps pointing to it. A device or a pipe is written to.
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
    """A file to write piece by piece, which gets its name at the end, if there is no error."""
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
    """(a name to write to, the file it becomes in the end)."""
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
    """A terminal, /dev/null, a pipe: nothing that could be replaced, nor written whole."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


# -- parts -----------------------------------------------------------------------------------------


def _part_of(place: Path) -> Path:
    # cut, for file systems limit the length
    return place.with_name(f".{place.name[:50]}.{secrets.token_hex(4)}.part")


def _remove_abandoned(place: Path) -> None:
    """Parts of this file that are too old to be of a process that still writes."""
    name = re.compile(re.escape(f".{place.name[:50]}.") + r"[0-9a-f]{8}\.part")
    with suppress(OSError), os.scandir(place.parent) as entries:
        for entry in entries:
            if name.fullmatch(entry.name) is None:
                continue
            if time.time() - entry.stat(follow_symlinks=False).st_mtime > ABANDONED:
                os.unlink(entry.path)


def _write_part(part: Path, content: bytes, before: os.stat_result | None) -> None:
    """Make a complete file, with the permissions of what was before.

    On Linux it has no name until it is complete: the system removes it with the process, however
    that ends. Elsewhere a process that is killed leaves a part, which a later writer removes.
    """
    mode = 0o666 if before is None else stat.S_IMODE(before.st_mode) & 0o777
    if os.path.isdir("/proc/self/fd"):
        with suppress(AttributeError, OSError):  # as on file systems without such files
            descriptor = os.open(part.parent, os.O_WRONLY | os.O_TMPFILE, mode)
            with _filled(descriptor, content, before):
                # an absolute path, for which the folder is not used but makes Python follow it
                os.link(f"/proc/self/fd/{descriptor}", part, src_dir_fd=descriptor)
            return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with _filled(os.open(part, flags, mode), content, before):
        pass


@contextmanager
def _filled(descriptor: int, content: bytes, before: os.stat_result | None) -> Iterator[None]:
    """Write a file and be sure that it is on disk; closed in the end."""
    with open(descriptor, "wb") as file:
        if before is not None and hasattr(os, "fchmod"):
            with suppress(OSError):
                os.fchown(descriptor, before.st_uid, before.st_gid)
            os.fchmod(descriptor, stat.S_IMODE(before.st_mode))  # whatever the process masks
        file.write(content)
        file.flush()
        os.fsync(descriptor)
        yield


def _move_to_free(part: Path, path: Path) -> None:
    """To a name that nothing has: the system lets one of several writers have it."""
    try:
        if os.name == "nt":
            os.rename(part, path)  # which never replaces there
            return
        try:
            os.link(part, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links: take the name, then fill it
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
            os.replace(part, path)
    except FileExistsError:
        raise _taken(path) from None


def read_document(path: Any) -> Any:
    """What a model file holds as JSON; what it means is checked when it is loaded."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"There is no model file {str(path)!r}.")
    try:
        return _parse(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ModelFileError(
            f"{path} is damaged, or no model: it is not JSON ({error})."
        ) from error


def _parse(text: str) -> Any:
    """Strict JSON: Python would also take NaN, 1e999, and the last of two equal names."""

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
