"""A cache on disk that is absent, damaged or full costs compile time, and nothing else.

And compiling takes no time that it need not take.
"""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import warnings
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
from numba import config, njit
from numba.core import event

import blockl0
from blockl0 import compiling
from blockl0.block_search import new_tree, search_block
from blockl0.compiling import cached

pytestmark = pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")

SOURCE = "def add(x, y):\n    return x + 2 * y\n"


@pytest.fixture(autouse=True)
def never_warned(monkeypatch):
    monkeypatch.setattr(compiling, "_warned", [])


@pytest.fixture
def function(tmp_path, monkeypatch):
    """A function in a file of its own, with a cache beside it."""
    monkeypatch.setattr(config, "CACHE_DIR", "")  # wherever NUMBA_CACHE_DIR puts the others
    (tmp_path / "sums.py").write_text(SOURCE, encoding="utf-8")
    spec = spec_from_file_location("sums", tmp_path / "sums.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.add


def files_of(function, end):
    (file,) = (Path(function.__code__.co_filename).parent / "__pycache__").glob(f"*{end}")
    return file


def hits(function):
    """As a new process would: compile or load, call, and count what came from the cache."""
    compiled = cached()(function)
    assert compiled(3, 4) == 11
    return sum(compiled.stats.cache_hits.values())


def flipped(data, place):
    return data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :]


DAMAGE = {
    "empty": lambda data: b"",
    "cut": lambda data: data[: len(data) // 2],
    "text": lambda data: b"not a pickle",
    "another pickle": lambda data: b"\x80\x04K\x01.",
    "flipped start": lambda data: flipped(data, 1),
    "flipped middle": lambda data: flipped(data, len(data) // 2),
    "flipped end": lambda data: flipped(data, len(data) - 1),
}


@pytest.mark.parametrize("end", [".nbi", ".nbc"])
def test_damaged_files_are_compiled_again(function, end):
    assert (hits(function), hits(function)) == (0, 1)
    for case, damage in DAMAGE.items():
        file = files_of(function, end)
        file.write_bytes(damage(file.read_bytes()))
        assert hits(function) == 0, case
        assert hits(function) == 1, case  # and what is damaged has been replaced


def test_a_cache_of_numba_itself_is_replaced(function):
    """It has no checksum, and so is not trusted."""
    assert njit(cache=True)(function)(3, 4) == 11
    assert (hits(function), hits(function)) == (0, 1)


def test_without_a_place_for_a_cache_there_is_one_warning():
    space: dict[str, object] = {}
    exec(SOURCE, space)  # of no file, for which numba finds no folder
    with pytest.warns(RuntimeWarning, match="set NUMBA_CACHE_DIR") as caught:
        compiled = cached()(space["add"])
        cached()(space["add"])
    assert len(caught) == 1 and compiled(3, 4) == 11


def test_a_full_disk(function, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.warns(RuntimeWarning, match="No space left") as caught:
        assert (hits(function), hits(function)) == (0, 0)
    assert len(caught) == 1


def test_without_the_compiler(function, monkeypatch):
    monkeypatch.setattr(config, "DISABLE_JIT", 1)
    assert cached()(function) is function


def test_an_error_in_an_inner_function_comes_out():
    @njit(boundscheck=True, no_cpython_wrapper=True)
    def entry(values, i):
        return values[i]

    @njit
    def total(values, n):
        return entry(values, 0) + entry(values, n)

    values = np.arange(3.0)
    assert total(values, 2) == 2.0
    with pytest.raises(IndexError):
        total(values, 3)


def test_cycles_are_collected_again_after_compiling(function):
    seen = []

    class Watch(event.Listener):
        def on_start(self, event):
            seen.append(gc.isenabled())

        def on_end(self, event):
            pass

    with event.install_listener("numba:compile", Watch()):
        assert cached()(function)(3, 4) == 11
    assert seen == [False]
    assert gc.isenabled()


def test_kernels_without_references_still_free_their_arrays():
    """They neither keep an array alive nor let go of one that is in use."""
    H, c = np.eye(3), np.array([-1.0, -2.0, -0.3])
    tree = new_tree(3, 4)
    before = [sys.getrefcount(array) for array in (H, c, *tree)]
    for _ in range(5):
        assert search_block(H, c, 0.0, 1, tree=tree).value == -2.0
    assert [sys.getrefcount(array) for array in (H, c, *tree)] == before


IMPORT = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import blockl0.kernels
print(blockl0.__file__, [str(w.message)[:40] for w in caught], sep="\\n")
"""


@pytest.mark.skipif(os.name == "nt", reason="the folder of the user is found in another way there")
def test_import_where_nothing_can_be_written(tmp_path):
    """As in a container: neither the package's folder nor a home takes the cache."""
    package = tmp_path / "blockl0"
    shutil.copytree(
        Path(blockl0.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    (package / "__pycache__").touch()  # a file, which keeps even root from making the folder
    variables = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "PYTHONPATH")}
    variables |= {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null/cache"}
    done = subprocess.run(
        [sys.executable, "-B", "-c", IMPORT], env=variables | {"PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    where, caught = done.stdout.splitlines()
    assert where.startswith(str(tmp_path))
    assert caught == "['Compiled functions cannot be kept on dis']"


def test_the_package_itself_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from blockl0 import kernels
    assert kernels.search_tree.stats.cache_path
