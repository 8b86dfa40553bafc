"""The benchopt benchmark: every file does its part, also where benchopt is not installed."""

from __future__ import annotations

import importlib.util
import sys
import types
from itertools import product
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks" / "benchopt"
SOLVERS = sorted(file.stem for file in (FOLDER / "solvers").glob("*.py"))
DATASETS = sorted(file.stem for file in (FOLDER / "datasets").glob("*.py"))
PEERS = {"abess", "fastsparsegams", "okridge", "skglm"}


@pytest.fixture
def load(monkeypatch):
    """The class in a file, on bare base classes that stand for benchopt's."""
    bare = types.ModuleType("benchopt")
    for name in ("BaseObjective", "BaseDataset", "BaseSolver"):
        setattr(bare, name, type(name, (), {}))
    monkeypatch.setitem(sys.modules, "benchopt", bare)
    monkeypatch.syspath_prepend(str(FOLDER))

    def load_class(path: str, name: str):
        spec = importlib.util.spec_from_file_location(f"benchopt_{path}", FOLDER / f"{path}.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return getattr(module, name)

    return load_class


def tiny():
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.standard_normal((40, 12)))
    return X, X[:, 3] - 2.0 * X[:, 7] + 0.01 * rng.standard_normal(40)


def variants(kind):
    """An object for every combination of its parameters."""
    parameters = getattr(kind, "parameters", {})
    for values in product(*parameters.values()):
        made = kind()
        for name, value in zip(parameters, values, strict=True):
            setattr(made, name, value)
        yield made


@pytest.mark.parametrize("name", SOLVERS)
def test_a_solver_finds_two_strong_columns(name, load):
    if name in PEERS and importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed: its file was not run")
    X, y = tiny()
    objective = load("objective", "Objective")()
    objective.set_data(X, y, 2)
    for solver in variants(load(f"solvers/{name}", "Solver")):
        solver.set_objective(**objective.get_objective())
        solver.warm_up()
        assert solver.get_result()["support"].tolist() == [3, 7]
        judged = objective.evaluate_result(**solver.get_result())
        rest = y - X[:, [3, 7]] @ np.linalg.lstsq(X[:, [3, 7]], y, rcond=None)[0]
        assert judged["value"] == pytest.approx(0.5 * rest @ rest)


def test_too_many_columns_are_worth_nothing(load):
    objective = load("objective", "Objective")()
    objective.set_data(*tiny(), 2)
    assert objective.evaluate_result(np.arange(3))["value"] == np.inf
    assert np.isfinite(objective.evaluate_result(**objective.get_one_result())["value"])


@pytest.mark.parametrize("name", DATASETS)
def test_a_data_set_is_what_the_objective_takes(name, load):
    data = next(iter(variants(load(f"datasets/{name}", "Dataset")))).get_data()
    assert data["X"].shape[0] == data["y"].size and data["X"].flags.f_contiguous
    load("objective", "Objective")().set_data(**data)
