"""Ctrl-C, sent to real processes at several moments: each returns what it has, and soon.

A process makes the same call again and again; the signal goes to its whole group, as a terminal
sends it. Calls are long enough that a lost interrupt is one that never ends.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.slow

MOST_SECONDS = 120.0
"""After which an interrupt counts as lost, on a machine that is busy with other work."""
BEGINNING, MOMENTS = 0.005, (0.005, 0.02, 0.1, 0.3, 0.7, 1.5)
"""Seconds after the beginning of a call: while it prepares, in the middle, near its end."""

BEFORE = """
import json, sys
import numpy as np
import blockl0
from blockl0.problem.problem import as_problem
from blockl0.solve import solve_problem

rng = np.random.default_rng(0)
X = rng.standard_normal(({m}, {n})) + 0.5 * rng.standard_normal(({m}, 1))
y = X[:, :20] @ np.linspace(1.0, 0.1, 20) + 3.0 * rng.standard_normal({m})
small = as_problem(X[:60, :12], y[:60], n_nonzero_coefs=2)
solve_problem(small, random_state=0)
print("made", flush=True)
"""
SOLVE = """
problem = as_problem(X, {y}, **{given})
for _ in range({times}):
    found = None
    try:
        print("ready", flush=True)
        found = solve_problem(problem, {method!r}, random_state=0, **{options})
        objective = problem.objective(problem.from_given(found.coef))
        said = [str(found.status), found.objective, float(objective)]
    except KeyboardInterrupt:
        said = ["KeyboardInterrupt", found is not None, 0.0]
    print(json.dumps(said), flush=True)
"""
CASES: dict[str, tuple[Any, ...]] = {
    "refit": (1000, 2000, "y", "refit", {"n_nonzero_coefs": 60}, {"effort": "thorough"}),
    "refit, price": (1000, 2000, "y", "refit", {"alpha": 3.0}, {"effort": "thorough"}),
    "refit, logistic": (
        2000, 600, "y > 0.0", "refit", {"n_nonzero_coefs": 20, "loss": "logistic"}, {}),
    "refit, softmax": (
        1000, 400, "np.digitize(y, [-1.0, 1.0])", "refit",
        {"n_nonzero_coefs": 15, "loss": "softmax"}, {}),
    "refit, groups": (
        2000, 900, "y", "refit",
        {"n_nonzero_coefs": 40, "feature_groups": [i // 3 for i in range(900)]}, {}),
    "dec": (2000, 4000, "y", "dec", {"n_nonzero_coefs": 30}, {"max_iter": 10**6}),
    "exact": (400, 200, "y", "exact", {"n_nonzero_coefs": 15}, {}),
    "exact, logistic": (
        400, 100, "y > 0.0", "exact",
        {"n_nonzero_coefs": 12, "loss": "logistic", "ridge": 0.1}, {}),
    "exact, groups": (
        3000, 600, "y", "exact",
        {"n_nonzero_coefs": 12, "feature_groups": [i // 3 for i in range(600)]}, {}),
    "exact, positive": (1500, 400, "y", "exact", {"n_nonzero_coefs": 15, "positive": True}, {}),
    "cvx-l1": (2000, 3000, "y", "cvx-l1", {"n_nonzero_coefs": 30}, {}),
    "pgm-lp": (2000, 3000, "y", "pgm-lp", {"alpha": 3.0}, {}),
    "omp": (4000, 3000, "y", "omp", {"n_nonzero_coefs": 300}, {}),
}  # fmt: skip


class Child:
    """A process with a group of its own."""

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )  # fmt: skip

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def interrupt(self) -> None:
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self) -> tuple[str, str]:
        """Return what is left of the output and the errors."""
        try:
            return self.process.communicate(timeout=MOST_SECONDS)
        finally:
            self.process.kill()


def interrupted(
    program: str, times: int, has_workers: bool = False
) -> list[tuple[float, float, Any]]:
    """Return what a program said after each of its interrupts, and after how many seconds.

    Worker processes that are just beginning answer a terminal's Ctrl-C with tracebacks of Python's
    start, which nothing of ours can keep them from.
    """
    child, said = Child(sys.executable, "-c", program), []
    line = child.line()
    assert line == "made", child.end()
    for moment in MOMENTS[:times]:
        assert child.line() == "ready", child.end()
        time.sleep(moment)
        child.interrupt()
        started = time.monotonic()
        line = child.line()
        assert line, child.end()
        said.append((moment, time.monotonic() - started, json.loads(line)))
    out, err = child.end()
    print(*said, sep="\n")
    assert out == "" and (err == "" or has_workers), err
    assert "cannot join" not in err and "RuntimeError" not in err, err
    assert max(seconds for _, seconds, _ in said) < MOST_SECONDS
    return said


@pytest.mark.parametrize("case", CASES)
def test_each_method_returns_its_best_point(case):
    m, n, y, method, given, options = CASES[case]
    program = BEFORE.format(m=m, n=n) + SOLVE.format(
        y=y, method=method, given=given, options=options, times=len(MOMENTS)
    )
    said = interrupted(program, len(MOMENTS))
    for moment, _, (status, objective, there) in said:
        if status == "KeyboardInterrupt":
            # it came before the call, or after it
            assert moment == BEGINNING or objective, said
        else:
            assert objective == pytest.approx(there, rel=1e-9)
    assert any(status == "interrupted" for _, _, (status, *_) in said), said


FIT = """
for _ in range({times}):
    model = {model}
    try:
        print("ready", flush=True)
        model.fit(X, {y})
        said = "fitted"
    except KeyboardInterrupt:
        said = "KeyboardInterrupt"
    print(json.dumps(said), flush=True)
"""
MODELS = {
    "regressor": "blockl0.L0RegressorCV(n_nonzero_coefs=range(60), cv=10, n_jobs={n_jobs})",
    "classifier": "blockl0.L0ClassifierCV(n_nonzero_coefs=range(40), cv=10, n_jobs={n_jobs})",
}


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("kind", MODELS)
def test_a_cross_validation_ends_with_ctrl_c_itself(kind, n_jobs):
    """No other error, whatever its threads are doing: there is no answer to return."""
    y = "y" if kind == "regressor" else "y > 0.0"
    model = MODELS[kind].format(n_jobs=n_jobs)
    program = BEFORE.format(m=1500, n=1200) + FIT.format(model=model, y=y, times=len(MOMENTS))
    said = [answer for *_, answer in interrupted(program, len(MOMENTS), n_jobs > 1)]
    assert set(said) <= {"KeyboardInterrupt", "fitted"} and said.count("fitted") < len(said)


@pytest.mark.parametrize(
    "options", [["--effort", "thorough"], ["--prove", "20"], ["--rule", "bic"]]
)
def test_a_command_says_what_it_has(tmp_path, options):
    """The best model so far, or that nothing is saved: never a traceback, never silence."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 120)) + 0.5 * rng.standard_normal((1500, 1))
    y = X[:, :20] @ np.linspace(1.0, 0.1, 20) + 3.0 * rng.standard_normal(1500)
    names = [*(f"x{j}" for j in range(120)), "y"]
    table = tmp_path / "table.csv"
    np.savetxt(table, np.column_stack([X, y]), delimiter=",", header=",".join(names), comments="")
    codes = []
    for moment in (0.3, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0):
        command = [sys.executable, "-m", "blockl0", "fit", str(table), "--target", "y", *options]
        child = Child(*command)
        time.sleep(moment)
        child.interrupt()
        out, err = child.end()
        codes.append((moment, child.process.returncode, len(out), err[-200:]))
        # before the first line of ours it is Python's own start that answers
        assert "Traceback" not in err or "blockl0" not in err, err
        assert "cannot join" not in err, err
        assert out or "nterrupt" in err or child.process.returncode != 0
    print(*codes, sep="\n")
