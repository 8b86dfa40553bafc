"""Text helpers, once for all: numbers, names, tables; and the readers of matrix files."""

from __future__ import annotations

import bz2
import csv
import gzip
import io

import numpy as np
import pytest
from scipy.io import savemat

from blockl0 import text
from blockl0.app.tables.formats import read_raw
from blockl0.datasets import read_e2006, read_libsvm, read_mat


def test_numbers():
    assert text.short(1234567.0) == "1.235e+06" and text.short(12) == "12"
    assert text.percent(0.25) == "25\N{NO-BREAK SPACE}%"
    assert text.percent(1e-5).startswith("less than 0.1")
    assert text.count(1, "row") == "1 row" and text.count(12345, "row") == "12 345 rows"


def test_names():
    names = [f"c{j}" for j in range(12)]
    assert text.listing(names[:2]) == "c0, c1" and text.listing([]) == ""
    assert text.listing(names) == "c0, c1, c2, c3, c4, c5, c6, c7 and 4 more"
    assert text.listing([3, 4, 5], 1) == "3 and 2 more"
    assert text.counted(["a"], "column") == "1 column (a)"
    assert text.counted(["a", "b"], "column") == "2 columns (a, b)"
    assert text.one_line("two\nlines\x1b[0m") == "two lines [0m"
    assert text.cut("x" * 40) == "x" * 40 and len(text.cut("x" * 41)) == 40


def test_what_may_have_been_meant():
    assert text.did_you_mean("squard", ["squared", "huber"]) == " Did you mean 'squared'?"
    assert text.did_you_mean("AGE", ["age", "page"]) == " Did you mean 'age'?"
    assert text.did_you_mean("zzz", ["age"]) == "" == text.did_you_mean("a", [])
    assert text.did_you_mean("ag", ["age"], "data/") == " Did you mean 'data/age'?"


def test_a_table_as_csv_is_read_back():
    rows = [[1.5, 'a "b", c'], [None, "two\nlines"]]
    written = text.as_csv(["x", "y"], rows)
    assert written.endswith("\n") and "\r" not in written
    read = list(csv.reader(io.StringIO(written)))
    assert read == [["x", "y"], ["1.5", 'a "b", c'], ["", "two\nlines"]]


# -- matrix files ----------------------------------------------------------------------------------

LINES = b"1.5 1:2 3:4\n-1 2:1\n"


@pytest.mark.parametrize("pack, end", [(bytes, ""), (gzip.compress, ".gz"), (bz2.compress, ".bz2")])
def test_libsvm_is_read_alike_by_all(tmp_path, pack, end):
    path = tmp_path / f"data.svm{end}"
    path.write_bytes(pack(LINES))
    kept, y = read_libsvm(path)
    np.testing.assert_array_equal(kept.toarray(), [[0, 2, 0, 4], [0, 0, 1, 0]])
    np.testing.assert_array_equal(y, [1.5, -1.0])
    np.testing.assert_array_equal(read_raw(path).data.toarray(), kept.toarray())
    # a data set of the collection: columns begin with 1
    X, y = read_e2006(path)
    np.testing.assert_array_equal(X.toarray(), kept.toarray()[:, 1:])
    np.testing.assert_array_equal(y, [1.5, -1.0])


@pytest.mark.parametrize("name, content", [("d.svm", b"1 a:b\n"), ("d.svm.gz", b"1 1:2\n")])
def test_what_is_no_libsvm_file(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=r"^This is not a LIBSVM file: .*[^.]\.$"):
        read_raw(tmp_path / name)
    with pytest.raises(ValueError, match=r"cannot be read as LIBSVM text \(This is not a LIBSVM"):
        read_e2006(tmp_path / name)


def test_mat_files_are_read_alike_by_all(tmp_path, monkeypatch):
    path = tmp_path / "data.mat"
    x, y = np.arange(6.0).reshape(3, 2), np.arange(3.0)
    savemat(path, {"x": x, "y": y[:, None]})
    assert sorted(read_mat(path)) == ["x", "y"]
    np.testing.assert_array_equal(read_raw(path).data, x)
    np.testing.assert_array_equal(read_e2006(path)[0].toarray(), x)
    savemat(path, {"z": x})
    with pytest.raises(ValueError, match=r"it holds \['z'\]"):
        read_e2006(path)
    path.write_bytes(b"nothing")
    for read in (read_raw, read_e2006):
        with pytest.raises(ValueError, match="This is not a MAT file"):
            read(path)

    def refuse(source):
        raise NotImplementedError

    monkeypatch.setattr("scipy.io.loadmat", refuse)
    with pytest.raises(ValueError, match=r"MAT files of version 7.3 are not read; save with '-v7'"):
        read_raw(path)
