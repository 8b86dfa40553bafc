"""The command line for tests: a folder with data, and ways to run commands in it."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("click", reason="the command line needs blockl0[cli]")
pytest.importorskip("pandas", reason="the command line reads tables with pandas")

import pandas as pd
from click.testing import CliRunner

from blockl0.app import cli

QUICK = ["--half-samples", "0", "--prove", "0"]


@pytest.fixture
def folder(tmp_path, rng, monkeypatch):
    """A folder with a table of 12 columns, three of which explain y."""
    X = rng.standard_normal((80, 12))
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(12)])
    frame["city"] = np.array(["Paris", "Rome"])[np.arange(80) % 2]
    eta = X[:, 1] - 2.0 * X[:, 4] + 1.5 * X[:, 9]
    frame["y"] = eta + 0.2 * rng.standard_normal(80) + 3.0
    frame["kind"] = np.array(["low", "high"])[(eta + 0.5 * rng.standard_normal(80) > 0).astype(int)]
    frame["size"] = np.array(["s", "m", "l"])[np.digitize(eta + rng.standard_normal(80), [-1, 1])]
    frame.to_csv(tmp_path / "data.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments, code=0, text=None):
    done = CliRunner().invoke(cli.main, [str(a) for a in arguments], input=text)
    assert done.exit_code == code, (done.output, done.exception)
    return done


def answer(*arguments, code=0):
    """The JSON document, which is all that may be on standard output."""
    return json.loads(run(*arguments, "--json", code=code).stdout)


def fit_json(*arguments, code=0):
    return answer("fit", "data.csv", "--drop", "kind", "--drop", "size", *arguments, code=code)
