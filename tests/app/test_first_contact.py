"""What is wrong is said at once: nothing slow is imported before arguments and files are right."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SLOW = ("numba", "sklearn", "scipy.special", "scipy.linalg", "scipy.optimize", "matplotlib")
SOLVERS = ("numba", "sklearn")
NUMBERS = ("numpy", "pandas", "scipy", *SLOW)
PROBE = """
import sys
from blockl0.app.cli import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    code = end.code
print(code, *(name for name in NAMES if name in sys.modules))
"""
WRONG = {
    "no file": ("fit nofile.csv -t y", 3, NUMBERS),
    "no file for a page": ("report nofile.csv -t y", 3, NUMBERS),
    "no file for a path": ("path nofile.csv -t y", 3, NUMBERS),
    "no proof": ("verify no.npz data.csv -t y", 3, NUMBERS),
    "a file in the way": ("fit data.csv -t y -k 1 --out data.csv", 6, NUMBERS),
    "no such option": ("fit data.csv --nonsense", 2, NUMBERS),
    "help": ("report --help", 0, NUMBERS),
    "no such loss": ("fit data.csv -t y --loss nonsense", 2, ("pandas", *SLOW)),
    "no model": ("predict no.json data.csv", 3, NUMBERS),
    "no such target": ("fit data.csv -t nonsense", 3, SLOW),
    "no target": ("report short.csv", 3, SLOW),
    "nothing to drop": ("path data.csv -t y --drop c", 3, SLOW),
    "too many columns": ("fit data.csv -t y -k 9", 3, SOLVERS),
    "no such column": ("fit data.csv -t y -k 1 --keep nonsense", 3, SOLVERS),
    "too many folds": ("path data.csv -t y --folds 9", 3, SOLVERS),
    "too many folds of a page": ("report data.csv -t y --folds 9", 3, SOLVERS),
    "too many to compare": ("compare data.csv -t y -k 9", 3, SOLVERS),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_before_anything_slow_is_imported(case, tmp_path):
    pytest.importorskip("click")
    command, code, names = WRONG[case]
    (tmp_path / "data.csv").write_text("a,b,y\n1,2,3\n4,6,6\n7,8,1\n", encoding="utf-8")
    (tmp_path / "short.csv").write_text("a,b\n1,2\n4,6\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", PROBE.replace("NAMES", repr(names)), *command.split()],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == str(code), done.stdout + done.stderr


def test_a_file_of_a_similar_name_is_suggested(tmp_path):
    from blockl0.files import check_exists

    for name in ("prices.csv", "x.csv"):
        (tmp_path / name).touch()
    with pytest.raises(FileNotFoundError, match=r"Did you mean .*prices\.csv"):
        check_exists(tmp_path / "price.csv")
    with pytest.raises(FileNotFoundError) as error:
        check_exists(tmp_path / "houses.csv")
    assert "Did you mean" not in str(error.value)
    with pytest.raises(IsADirectoryError, match="is a folder"):
        check_exists(tmp_path)
    assert check_exists(tmp_path / "x.csv") == Path(tmp_path / "x.csv")


def test_the_time_of_the_compiler_is_not_that_of_a_search():
    code = (
        "import time, numpy as np, blockl0\n"
        "from blockl0.run import compile_seconds\n"
        "X = np.random.default_rng(0).standard_normal((60, 12))\n"
        "start = time.perf_counter()\n"
        "r = blockl0.solve(X, X[:, 0] - X[:, 1], n_nonzero_coefs=2, random_state=0)\n"
        "print(r.seconds, compile_seconds(), time.perf_counter() - start, r.history.seconds[-1])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, compiled, whole, last = map(float, done.stdout.split())
    assert compiled > 0.0 and last <= seconds
    assert seconds + compiled <= whole
