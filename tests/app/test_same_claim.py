"""The same seed, the same claim: proofs count work, and one clock limits a whole command."""

from __future__ import annotations

import json
from itertools import count

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from cli_runner import answer, cli

STRENGTH = ("Searched, not proven", "Proven for single changes", "Proven up to one exchange",
            "Proven up to two exchanges", "Proven.")  # fmt: skip
TARGETS = {
    "squared": [], "huber": ["--loss", "huber"], "poisson": ["--loss", "poisson"],
    "gamma": ["--loss", "gamma"], "logistic": [], "softmax": [],
    "squared_hinge": ["--loss", "squared_hinge"],
}  # fmt: skip


def write(name: str, loss: str, m: int = 90, n: int = 7) -> list[str]:
    """Write a table with a target for a loss; return the options that name it."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((m, n)) + 0.7 * rng.standard_normal((m, 1))
    eta = X[:, :4] @ [1.0, -0.8, 0.6, 0.4] + rng.standard_normal(m)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(n)])
    frame["y"] = {
        "logistic": np.where(eta > 0.0, "yes", "no"),
        "squared_hinge": np.where(eta > 0.0, "yes", "no"),
        "softmax": np.array(["a", "b", "c"])[np.digitize(eta, [-0.8, 0.8])],
        "poisson": rng.poisson(np.exp(0.4 * eta)).astype(float),
        "gamma": np.exp(0.3 * eta),
    }.get(loss, eta)
    frame.to_csv(name, index=False)
    return ["-t", "y", *TARGETS[loss]]


@pytest.mark.parametrize("loss", TARGETS)
def test_fit_never_says_less_than_certify(tmp_path, monkeypatch, loss):
    """35 subsets of 4 of 7 columns are always enumerated; on more columns both count their work."""
    monkeypatch.chdir(tmp_path)
    for n in (7, 30):
        options = write("data.csv", loss, n=n)
        fitted = answer("fit", "data.csv", *options, "-k", 4, "--half-samples", 0, "-o", "m.json",
                        "--force")["result"]["certificate"]  # fmt: skip
        claims = answer("certify", "data.csv", "--model", "m.json")["result"]["claims"]
        proven = {claim["claim"]: claim["holds"] and claim["complete"] for claim in claims}
        assert fitted["optimal"] or not proven.get("optimal", False)
        assert fitted["optimal"] or fitted["level"] == 2 or not proven["block-2"]
        if n == 7:
            assert fitted["optimal"] and fitted["words"].startswith("Proven")


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_busy_machine_says_the_same(tmp_path, monkeypatch, loss):
    monkeypatch.chdir(tmp_path)
    options = write("data.csv", loss, n=40)
    said = []
    for pace in (0.0, 0.5):
        now = count()
        monkeypatch.setattr("blockl0.run.time.perf_counter", lambda p=pace, t=now: p * next(t))
        found = answer("fit", "data.csv", *options, "-k", 8, "--half-samples", 0, "--prove", 0.1)
        said.append(json.dumps([found["result"]["certificate"], found["result"]["features"]]))
    assert said[0] == said[1]


class Idle:
    """A clock that goes on by a step whenever it is read."""

    def __init__(self, step: float) -> None:
        self.step, self.now = step, 0.0

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@pytest.mark.parametrize("command", [
    ("fit", "-k", 5), ("fit", "-k", 5, "--proof", "p.npz"), ("fit",), ("fit", "--rule", "bic"),
    ("path", "-k", 6), ("certify", "-k", 5), ("certify", "-k", 5, "--exact"),
])  # fmt: skip
def test_one_clock_limits_a_command(tmp_path, monkeypatch, command):
    """All stages together read the clock about as often as its limit allows, not each of them."""
    monkeypatch.chdir(tmp_path)
    options = write("data.csv", "squared", n=40)
    name, *more = command
    given = [name, "data.csv", *options, *map(str, more), "--json", "-q"]
    # what is compiled first reads the clock, too
    CliRunner().invoke(cli.main, [*given, "--force"] if name == "fit" else given)
    limit, step = 10.0, 0.02
    clock = Idle(step)
    monkeypatch.setattr("blockl0.run.time.perf_counter", clock)
    more = ["--time-limit", str(limit), *(["--force"] if name == "fit" else [])]
    done = CliRunner().invoke(cli.main, [*given, *more])
    assert done.exit_code in (0, 5), done.stderr
    assert clock.now <= 1.6 * limit
    assert json.loads(done.stdout)["result"]


def test_without_time_there_is_a_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = write("data.csv", "squared", n=12)
    found = answer("fit", "data.csv", *options, "-k", 3, "--time-limit", 1e-9)["result"]
    assert found["solver_status"] == "time_limit" and not found["certificate"]["optimal"]
    document = answer("fit", "data.csv", *options, "--time-limit", 1e-9)
    found = document["result"]
    assert found["n_nonzero"] == 0 and found["solver_status"] == "time_limit"
    assert any("was cut" in said for said in document["notices"])
    assert not any("chose the most" in said for said in document["notices"])
