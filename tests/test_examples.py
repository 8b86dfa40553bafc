"""Every example is short, runs without a warning and prints an answer."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = [
    p for p in sorted((Path(__file__).parents[1] / "examples").glob("*.py")) if p.stem != "demo"
]


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(example):
    if "pysindy" in example.stem and importlib.util.find_spec("pysindy") is None:
        pytest.skip("pysindy is not installed: the Lorenz example is NOT RUN")
    assert len(example.read_text(encoding="utf-8").splitlines()) < 90
    done = subprocess.run(
        [sys.executable, "-W", "error", str(example)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= 5
