"""Archives of others: bombs, cut files, flipped bits and wrong types get one refusal each."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blockl0
from blockl0 import Moments, ProofError
from blockl0.files import read_archive, write_archive
from blockl0.problem.moments import FORMAT
from blockl0.verify.arrays import FREE, RATIO, read_arrays
from blockl0.verify.files import is_proof, read_proof

Reader = tuple[bytes, Callable[[Path], Any], type[Exception], str]


@pytest.fixture
def readers(tmp_path: Path) -> dict[str, Reader]:
    """Small files, and what reads them: content, reader, its refusal."""
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((12, 2)), rng.standard_normal(12)
    proof, moments = tmp_path / "proof.npz", tmp_path / "moments.npz"
    blockl0.solve(X, y, n_nonzero_coefs=1, method="exact", proof=proof)
    Moments.from_data(X, y).save(moments)
    return {
        "proof": (proof.read_bytes(), read_proof, ProofError, "no proof, or damaged|is \\("),
        "moments": (moments.read_bytes(), Moments.load, ValueError, "is not a file of moments"),
    }


def refused(path: Path, reader: Reader) -> bool:
    """Whether a file is refused in the words of its reader; all else is an error of the test."""
    _, read, refusal, words = reader
    try:
        read(path)
    except Exception as error:
        assert type(error) is refusal, repr(error)
        with pytest.raises(refusal, match=words):
            raise error
        return True
    return False


SLOW = pytest.param(1, marks=pytest.mark.slow)


@pytest.mark.parametrize("share", [40, SLOW])
@pytest.mark.parametrize("kind", ["proof", "moments"])
def test_a_file_that_is_cut_anywhere_is_refused(readers, tmp_path, kind, share):
    reader, path = readers[kind], tmp_path / "cut.npz"
    for size in range(0, len(reader[0]), share):
        path.write_bytes(reader[0][:size])
        assert refused(path, reader), size
        assert is_proof(path) is False


@pytest.mark.parametrize("share", [40, SLOW])
@pytest.mark.parametrize("kind", ["proof", "moments"])
def test_flipped_bits_are_refused(readers, tmp_path, kind, share):
    """All but those of dates and attributes in the archive, on which nothing depends."""
    reader, path, rng = readers[kind], tmp_path / "flipped.npz", np.random.default_rng(3)
    whole, n_refused = reader[0], 0
    expected = read_arrays(_written(tmp_path, whole))
    for _ in range(4000 // share):
        content = np.frombuffer(whole, np.uint8).copy()
        for at in rng.integers(content.size, size=rng.choice([1, 1, 2, 8])):
            content[at] ^= np.uint8(1 << rng.integers(8))
        path.write_bytes(content.tobytes())
        if refused(path, reader):
            n_refused += 1
            continue
        found = read_arrays(path)
        assert found.keys() == expected.keys()
        assert all(np.array_equal(found[name], expected[name]) for name in found)
    assert n_refused > 2000 // share


def _written(folder: Path, content: bytes) -> Path:
    path = folder / "as_it_was.npz"
    path.write_bytes(content)
    return path


def npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def bomb(path: Path, names: list[str], n_bytes: int) -> None:
    """Write an archive of zeros: a thousandth of what it becomes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            with archive.open(f"{name}.npy", "w") as part:
                header = io.BytesIO()
                shape = {"descr": "|u1", "fortran_order": False, "shape": (n_bytes,)}
                np.lib.format.write_array_header_1_0(header, shape)
                part.write(header.getvalue())
                for _ in range(n_bytes // 2**16):
                    part.write(bytes(2**16))


@pytest.mark.parametrize("kind", ["proof", "moments"])
def test_bombs_are_refused_before_they_are_inflated(readers, tmp_path, kind):
    reader, path = readers[kind], tmp_path / "bomb.npz"
    bomb(path, ["header", "checksum", "form"], 2**26)
    assert path.stat().st_size < 2**20
    _is_refused_in_little_memory(path, reader)
    # one that says that it is small: what is said is inflated, and no more
    content = path.read_bytes().replace(struct.pack("<I", 2**26 + 128), struct.pack("<I", 10**4))
    assert content != path.read_bytes()
    path.write_bytes(content)
    _is_refused_in_little_memory(path, reader)


def _is_refused_in_little_memory(path: Path, reader: Reader) -> None:
    tracemalloc.start()
    assert refused(path, reader)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * (RATIO * path.stat().st_size + FREE)
    assert peak < 2**23


def test_parts_that_lie_upon_each_other_are_refused(tmp_path):
    """One part of data, which a directory names a thousand times."""
    path = tmp_path / "upon.npz"
    content, data = npy(np.zeros(10**5)), io.BytesIO()
    packed = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = packed.compress(content) + packed.flush()
    sizes = struct.pack("<III", zlib.crc32(content), len(body), len(content))
    data.write(
        b"PK\3\4" + struct.pack("<HHHHH", 20, 0, 8, 0, 33) + sizes + struct.pack("<HH", 5, 0)
    )
    data.write(b"a.npy" + body)
    start, n = data.tell(), 1000
    for i in range(n):
        name = f"a{i}.npy".encode()
        data.write(b"PK\1\2" + struct.pack("<HHHHHH", 20, 20, 0, 8, 0, 33) + sizes)
        data.write(struct.pack("<HHHHHII", len(name), 0, 0, 0, 0, 0, 0) + name)
    length = data.tell() - start
    data.write(b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, n, n, length, start, 0))
    path.write_bytes(data.getvalue())
    with pytest.raises(ValueError, match=r"longer than the file|would become"):
        read_arrays(path)


def pack(path: Path, parts: dict[str, bytes], form: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", form) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


LONG = npy(np.arange(3.0))
ODD = {
    "a path": ({"../a.npy": LONG}, "no name of an array"),
    "another ending": ({"a.txt": LONG}, "no name of an array"),
    "a pickle": ({"a.npy": npy(np.array([{}], object))}, "an array of object"),
    "dates": ({"a.npy": npy(np.array(["2020-01-01"], "datetime64[D]"))}, "an array of datetime64"),
    "fields": ({"a.npy": npy(np.zeros(2, [("x", float)]))}, "an array of"),
    "more than its shape": ({"a.npy": LONG + b"0"}, "shape"),
    "less than its shape": ({"a.npy": LONG[:-1]}, "shape"),
    "a shape beyond memory": (
        {"a.npy": LONG.replace(b"(3,)", b"(3" + b"0" * 9 + b",)")},
        "shape",
    ),
    "no array": ({"a.npy": b"nothing at all"}, "magic string"),
    "nothing": ({"a.npy": b""}, "magic string"),
}


@pytest.mark.parametrize("name", ODD)
def test_parts_that_are_none_are_refused(tmp_path, name):
    parts, words = ODD[name]
    with pytest.raises(ValueError, match=words):
        read_arrays(pack(tmp_path / "odd.npz", parts))


def test_other_compressions_are_refused(tmp_path):
    for form in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with pytest.raises(ValueError, match="in another way"):
            read_arrays(pack(tmp_path / "odd.npz", {"a.npy": LONG}, form))


def test_arrays_of_all_shapes_come_back(tmp_path, rng):
    content = {
        "empty": np.zeros((0, 3)), "none": np.array(5), "text": np.array(["a", "bc"]),
        "by_columns": np.asfortranarray(rng.standard_normal((4, 5))), "is_so": np.array([True]),
        "turned": rng.standard_normal((4, 5)).T, "whole": np.arange(7),
        "swapped": np.arange(3, dtype=">i8"),
    }  # fmt: skip
    np.savez_compressed(tmp_path / "a.npz", **content)
    found = read_arrays(tmp_path / "a.npz")
    for name, array in content.items():
        assert found[name].dtype == array.dtype and np.array_equal(found[name], array)
        assert found[name].flags.writeable
    write_archive(tmp_path / "b.npz", "form", {})
    assert read_archive(tmp_path / "b.npz", "form", "it") == {}


CHANGES: dict[str, Any] = {
    "R": [np.zeros((1, 4, 4), int), np.full((1, 4, 4), "x"), np.zeros(4), np.zeros((1, 2, 2))],
    "shift": [np.zeros(9), np.zeros(3, complex), np.array(0.0), np.zeros((3, 3))],
    "low": [np.zeros((1, 5)), np.zeros(0), np.array([["a", "b"]])],
    "n_rows": [np.zeros(0, int), np.array(["12"]), np.array(12)],
    "seed": [np.array("one"), np.zeros(3, int)],
    "names": [np.arange(2)],
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_moments_of_wrong_types_or_shapes_are_refused(readers, tmp_path, name):
    reader = readers["moments"]
    content = read_archive(_written(tmp_path, reader[0]), FORMAT, "a file of moments")
    for value in CHANGES[name]:
        write_archive(tmp_path / "m.npz", FORMAT, {**content, name: value}, force=True)
        assert refused(tmp_path / "m.npz", reader), value
    del content[name]
    write_archive(tmp_path / "m.npz", FORMAT, content, force=True)
    assert refused(tmp_path / "m.npz", reader)
