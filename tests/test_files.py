"""Files: whole or not at all, by one writer, where and as they were."""

from __future__ import annotations

import multiprocessing
import os
import signal
import stat
import subprocess
import sys
import threading
import time

import pytest

from blockl0 import files
from blockl0.files import ABANDONED, check_exists, check_free, write_whole

posix = pytest.mark.skipif(os.name == "nt", reason="of POSIX systems")


@pytest.fixture(params=["nameless", "named"])
def kind(request, monkeypatch):
    """How a part is written: as Linux can, and as all others do."""
    if request.param == "named":
        monkeypatch.delattr("os.O_TMPFILE", raising=False)
    return request.param


def mode_of(path):
    return oct(stat.S_IMODE(path.stat().st_mode))


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o400])
def test_the_mode_is_kept(tmp_path, kind, mode):
    path = write_whole(tmp_path / "a.txt", "first")
    path.chmod(mode)
    write_whole(path, "second", force=True)
    assert path.read_text(encoding="utf-8") == "second" and mode_of(path) == oct(mode)


@posix
def test_a_new_file_has_the_mode_that_the_user_wants(tmp_path, kind):
    before = os.umask(0o027)
    try:
        assert mode_of(write_whole(tmp_path / "a.txt", "")) == oct(0o640)
    finally:
        os.umask(before)


@posix
def test_links_are_written_through(tmp_path, kind):
    (tmp_path / "there").mkdir()
    file, link = tmp_path / "there" / "a.txt", tmp_path / "link"
    file.write_text("first", encoding="utf-8")
    file.chmod(0o600)
    link.symlink_to(tmp_path / "between")
    (tmp_path / "between").symlink_to(file)
    with pytest.raises(FileExistsError, match="exists"):
        write_whole(link, "second")
    write_whole(link, "second", force=True)
    assert link.is_symlink() and (tmp_path / "between").is_symlink()
    assert file.read_text(encoding="utf-8") == "second" and mode_of(file) == oct(0o600)
    assert [p.name for p in file.parent.iterdir()] == ["a.txt"]


@posix
def test_links_to_nowhere(tmp_path, kind):
    """They are taken; with force the file comes where they point, if there can be one."""
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "a.txt")
    with pytest.raises(FileExistsError, match="exists"):
        write_whole(link, "x")
    write_whole(link, "x", force=True)
    assert link.is_symlink() and (tmp_path / "a.txt").read_text(encoding="utf-8") == "x"
    for target in (tmp_path / "none" / "a.txt", tmp_path / "circle"):
        (tmp_path / "circle").unlink(missing_ok=True)
        (tmp_path / "circle").symlink_to(target)
        with pytest.raises(FileNotFoundError, match="leads nowhere"):
            write_whole(tmp_path / "circle", "x", force=True)


@posix
def test_a_link_to_itself(tmp_path, kind):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(FileExistsError, match="exists"):
        check_free(tmp_path / "loop")
    for write in (lambda path: check_free(path, True), lambda path: write_whole(path, "x", True)):
        with pytest.raises(FileNotFoundError, match="leads nowhere; remove it first"):
            write(tmp_path / "loop")
    assert [p.name for p in tmp_path.iterdir()] == ["loop"]


@posix
@pytest.mark.parametrize("force", [False, True])
def test_pipes_and_devices_are_written_to(tmp_path, force):
    """Replacing /dev/null by a file would be a bad surprise for all others."""
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    write_whole(pipe, "through", force=force)
    reader.join(10.0)
    assert read == ["through"] and stat.S_ISFIFO(pipe.stat().st_mode)
    write_whole(os.devnull, "away", force=force)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_long_names(tmp_path, kind):
    path = tmp_path / ("ä" * 120 + ".json")
    write_whole(path, "x")
    write_whole(path, "y", force=True)
    assert path.read_text(encoding="utf-8") == "y"


def test_a_file_system_without_hard_links(tmp_path, kind, monkeypatch):
    def fail(*_, **__):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", fail)
    path = write_whole(tmp_path / "a.txt", "x")
    with pytest.raises(FileExistsError, match="--force"):
        files._move_to_free(write_whole(tmp_path / "b.txt", "y"), path)
    write_whole(path, "z", force=True)
    assert path.read_text(encoding="utf-8") == "z"


# -- several writers -------------------------------------------------------------------------------


def _write(path, text, barrier, answers):
    # all have seen that the name is free before one of them writes
    original = files.check_free
    files.check_free = lambda *given: (original(*given), barrier.wait())[0]
    try:
        write_whole(path, text)
        answers.put(text)
    except FileExistsError:
        answers.put(None)


@posix
def test_one_of_several_writers_succeeds(tmp_path, kind):
    context = multiprocessing.get_context("fork")
    for i in range(5):
        path, barrier, answers = tmp_path / f"{i}.txt", context.Barrier(4), context.Queue()
        writers = [
            context.Process(target=_write, args=(path, f"writer {j}", barrier, answers))
            for j in range(4)
        ]
        for writer in writers:
            writer.start()
        told = [answers.get(timeout=30) for _ in writers]
        for writer in writers:
            writer.join()
        assert told.count(None) == 3
        assert path.read_text(encoding="utf-8") == next(text for text in told if text)
    assert len(list(tmp_path.iterdir())) == 5


KILLED = """
import os, sys, time
from blockl0 import files
if sys.argv[2] == "named":
    del os.O_TMPFILE
os.fsync = lambda _: (print("written", flush=True), time.sleep(60))
files.write_whole(sys.argv[1], "half a file", force=True)
"""


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="of Linux")
def test_a_killed_writer_leaves_nothing(tmp_path, kind):
    """Nothing at all where the system has files without a name; else a part for an hour."""
    path = tmp_path / "a.txt"
    path.write_text("before", encoding="utf-8")
    command = [sys.executable, "-c", KILLED, str(path), kind]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == "written\n"
        writer.send_signal(signal.SIGKILL)
    assert path.read_text(encoding="utf-8") == "before"
    parts = [other for other in tmp_path.iterdir() if other != path]
    assert len(parts) == (kind == "named")
    if parts:
        write_whole(path, "again", force=True)
        assert parts[0].exists()  # it could be of another writer, at work
        old = time.time() - ABANDONED - 1.0
        os.utime(parts[0], (old, old))
    other = tmp_path / ".a.txt.mine.part"
    other.touch()
    os.utime(other, (0, 0))
    write_whole(path, "at last", force=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == [".a.txt.mine.part", "a.txt"]


def test_names_are_checked_before_any_work(tmp_path):
    (tmp_path / "a.txt").touch()
    for name, error in (("a.txt", FileExistsError), ("no/a", FileNotFoundError)):
        with pytest.raises(error):
            check_free(tmp_path / name)
    with pytest.raises(IsADirectoryError):
        check_free(tmp_path, force=True)


def test_of_files_that_differ_in_their_end_the_same_end_is_suggested(tmp_path):
    for name in ("seats.csv", "seats.xlsx", "seats.json"):
        (tmp_path / name).write_text("")
    with pytest.raises(FileNotFoundError, match=r"Did you mean '.*seats\.csv'\?"):
        check_exists(tmp_path / "seat.csv")
