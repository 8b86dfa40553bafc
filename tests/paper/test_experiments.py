"""`blockl0 reproduce` on tiny cells: numbers, resuming, processes, files, page, browser."""

from __future__ import annotations

import csv
import html
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

pytest.importorskip("click", reason="the command line needs blockl0[cli]")
pytest.importorskip("matplotlib", reason="figures need blockl0[plot]")
pytest.importorskip("pandas", reason="the command line needs blockl0[cli]")

import pandas as pd
from click.testing import CliRunner

import blockl0
from blockl0.app import cli
from blockl0.app.cli.commands import EXPERIMENTS
from blockl0.datasets import E2006_VARIABLE
from blockl0.dec.decomposition import AS_PRINTED
from blockl0.paper import cells as cells_module
from blockl0.paper import drawing, figures, page, quantiles, reproduce, table1, tables
from blockl0.paper import printed as paper
from blockl0.paper import store as store_module
from blockl0.paper.cells import Cell, compute, draw_of, load, start_objective
from blockl0.paper.claims import ENOUGH_DRAWS, promises
from blockl0.paper.markup import sci, short
from blockl0.paper.profile import (
    FIGURE1_METHODS,
    FIGURE2_METHODS,
    FULL,
    QUICK,
    Profile,
    column_cells,
    curve_cells,
    draw_cells,
    end_cells,
    figure2_cells,
    judged_cells,
    table_cells,
    table_methods,
    unstopped_cells,
)
from blockl0.paper.runner import Forecast, in_order, run_cells
from blockl0.paper.store import Store
from blockl0.paper.tables import column_of, places
from blockl0.paper.variants import GREEDY, OPTIONS, VARIANTS, dec, published
from blockl0.progress import duration
from blockl0.result import Result, Status
from blockl0.solve import METHODS

TINY = Profile(
    name="tiny",
    sets=("random-20-30", "random-20-30-C"),
    curve_sets=("random-20-30",),
    prices=(10.0, 1000.0),
    budgets=(2, 4),
    curve_budgets=(3,),
    seeds=2,
    draws=1,
    start_draws=2,
    curve_draws=1,
    figure_draws=1,
    figure_seeds=1,
    refit="refit-fast",
)
SOME = [
    Cell("random-20-30", method, "price", 100.0, seed)
    for method in ("PGM-l0", "DEC-R10G2", "refit-fast")
    for seed in (0, 1)
]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")


def silent(_: str) -> None:
    pass


def run(cells, folder: Path, jobs: int = 1) -> Store:
    store = Store(folder)
    run_cells(cells, store, jobs, "test", silent)
    return store


def numbers(store: Store, cells) -> list[tuple]:
    """All but the seconds."""
    return [
        tuple(store[cell][key] for key in ("objective", "n_nonzero", "n_iter", "status"))
        for cell in cells
    ]


def read_csv(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file))


def printed_store(folder: Path, **changes: float) -> Store:
    """The paper's own numbers as if they were ours, refit half of DEC; `changes` by method."""
    store = Store(folder)
    for (dataset, price, method), printed in paper.OBJECTIVES.items():
        draw = draw_of(paper.PRICES, price, 0)
        factor = changes.get(method, 1.0)
        seconds = paper.SECONDS.get((dataset, method), paper.Seconds(20.0, 1.0)).mean / 10.0
        record = {"seconds": seconds, "n_nonzero": 7, "jobs": 1}
        label = published("price", dataset) if method == dec() else method
        store.add(
            Cell(dataset, label, "price", price, draw=draw),
            record | {"objective": factor * printed.objective},
        )
        if method == "DEC-R10G2":
            value = changes.get("refit", 0.5) * printed.objective
            cell = Cell(dataset, "refit", "price", price, draw=draw)
            store.add(cell, record | {"objective": value})
    return store


ONE = replace(FULL, seeds=1)


def draw_nothing(monkeypatch) -> None:
    """For tests of the text: drawing takes seconds."""
    monkeypatch.setattr(drawing, "save", lambda *_: None)
    monkeypatch.setattr(drawing, "svg", lambda _: "<svg></svg>")
    monkeypatch.setattr(drawing, "legend", lambda _: "")


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory) -> tuple[Path, list[str]]:
    """Everything at the tiny size, and what was said."""
    folder = tmp_path_factory.mktemp("tiny")
    said: list[str] = []
    reproduce.reproduce(tuple(reproduce.EXPERIMENTS), TINY, folder, jobs=1, echo=said.append)
    return folder, said


# -- the paper's numbers ---------------------------------------------------------------------------


def test_printed_tables_are_complete():
    assert len(paper.OBJECTIVES) == 8 * 4 * 5 and len(paper.SECONDS) == 4 * 5
    assert paper.OBJECTIVES["random-256-1024", 10.0, "DEC-R10G2"] == (2200.0, 2)
    assert paper.OBJECTIVES["e2006-5000-2048-C", 1000.0, "APGM-l0"] == (2.1e6, 2)
    assert paper.SECONDS["e2006-5000-2048", "PGM-lp"] == (5.0, 3.0)


def test_the_full_run_is_the_papers():
    assert FULL.budgets == (3, 8, 13, 18, 23, 28, 33, 38, 43, 48) and FULL.seeds == 5
    assert len(FULL.sets) == 8 and len(FULL.curve_sets) == 6 and FULL.curve_budgets == (20, 40)
    assert set(QUICK.sets) <= set(FULL.sets) and set(QUICK.budgets) <= set(FULL.budgets)
    assert FULL.draws >= 20 and FULL.start_draws == 150
    assert len(FIGURE2_METHODS) == 9 and len(FIGURE1_METHODS) == 8
    for name in FULL.all_sets:
        assert tuple(map(column_of, table_methods(FULL, name)[:5])) == paper.METHODS
    assert len(FULL.all_sets) == 10 and len(table_cells(FULL)) == 10 * 4 * (5 * 5 + 2)
    for experiment in reproduce.EXPERIMENTS.values():
        for cells in experiment.cells:
            assert all(c.method in {**VARIANTS, **cells_module.FACTS} for c in cells(FULL))


def test_data_are_redrawn_for_every_price():
    draws = {}
    for cell in [*table_cells(FULL), *draw_cells(FULL)]:
        draws.setdefault((cell.dataset, cell.value), set()).add(cell.draw)
    assert len(draws) == 10 * 4
    for name in FULL.all_sets:
        of_set = [draws[name, price] for price in FULL.prices]
        assert len(set.union(*of_set)) == sum(map(len, of_set)) == 4 * FULL.start_draws


def test_long_cells_come_first_and_data_are_loaded_once():
    cells = in_order(
        [
            *draw_cells(FULL), *column_cells(FULL), *curve_cells(FULL), *unstopped_cells(FULL),
            *end_cells(FULL),
        ]
    )  # fmt: skip
    long = [c.method.endswith("unstopped") or c.method.startswith("refit") for c in cells[:50]]
    assert all(long) and cells[0].value == 1.0
    rest = [(c.dataset, c.draw) for c in cells if c.form == "price" and "refit" not in c.method]
    changes = sum(a != b for a, b in pairwise(rest))
    assert changes == len(set(rest)) - 1


# -- a variant is what is run ----------------------------------------------------------------------


def spy(monkeypatch) -> dict:
    """What `solve` is given."""
    seen: dict = {}

    def solve(X, y, **options):
        seen.clear()
        seen.update(options)
        return Result(np.zeros(2), 1.0, Status.CONVERGED)

    monkeypatch.setattr(cells_module.blockl0, "solve", solve)
    return seen


@pytest.mark.parametrize("label", VARIANTS)
def test_the_record_of_a_variant_is_what_solve_is_given(label, monkeypatch):
    seen, variant = spy(monkeypatch), VARIANTS[label]
    cells_module._solve(Cell("", label, "price", 5.0), np.ones((3, 2)), np.ones(3))
    assert seen.pop("method") == variant.solver and seen.pop("alpha") == 5.0
    assert isinstance(seen.pop("random_state"), np.random.Generator)
    init = seen.pop("init")
    assert (init is not None) == (variant.start == "0" and variant.solver == "dec")
    assert init is None or not init.any()
    assert seen == {name: v for name in OPTIONS if (v := getattr(variant, name)) is not None}
    # nothing that could be varied is left to a default that is not on record
    assert set(METHODS[variant.solver].defaults) & set(OPTIONS) == set(seen)


def test_the_letter_is_the_papers():
    letter, default = VARIANTS[dec(change="printed")], VARIANTS[dec()]
    assert (letter.theta, letter.tol, letter.window, letter.max_iter) == (1e-3, 1e-5, 50, 1000)
    assert {name: getattr(letter, name) for name in AS_PRINTED} == AS_PRINTED
    assert default.options == {
        name: value for name, value in METHODS["dec"].defaults.items() if name in OPTIONS
    }
    assert all(VARIANTS[name].normalize is False for name in GREEDY)


@pytest.mark.parametrize("form", ["budget", "price"])
def test_a_greedy_run_that_has_settled_would_never_move_again(form):
    """So that its end is that of a run without a stopping rule."""
    X, y = load("random-30-60", 0)
    settled = VARIANTS[dec("R0G2", "unstopped")].options | {"max_iter": 3000}
    never = settled | {"window": 3000}
    parameter = {"n_nonzero_coefs": 6} if form == "budget" else {"alpha": 30.0}
    ends = [
        blockl0.solve(X, y, method="dec", random_state=0, **parameter, **options)
        for options in (settled, never)
    ]
    assert ends[0].n_iter < ends[1].n_iter == 3000
    assert np.array_equal(ends[0].coef, ends[1].coef)


@pytest.mark.parametrize("method", ["PGM-l0", "APGM-l0", "PGM-l1", "PGM-lp"])
def test_a_checkpoint_is_what_a_shorter_run_would_have_given(method, monkeypatch):
    cell = Cell("random-30-60", method, "price", 1.0)
    record = compute(cell)
    shorter = replace(VARIANTS[method], max_iter=100)
    monkeypatch.setitem(VARIANTS, method, shorter)
    rows = pd.DataFrame([record])
    [value] = quantiles.Reading(method, 100).values(rows)
    assert value == pytest.approx(compute(cell)["objective"], rel=1e-9)
    assert quantiles.Reading(method).values(rows).tolist() == [record["objective"]]


# -- a cell is a function of its key ---------------------------------------------------------------


def test_a_cell_is_a_function_of_its_key():
    cell = Cell("random-20-30-C", "DEC-R10G2", "budget", 4, seed=3)
    first, second = compute(cell), compute(cell)
    assert first["seconds"] > 0.0 and first["n_nonzero"] <= 4
    del first["seconds"], second["seconds"]
    # every bit: cells of one thread by one seed, and numbers that JSON writes in full
    assert first == second == json.loads(json.dumps(first))
    assert compute(replace(cell, draw=1))["objective"] != first["objective"]


def test_data_and_facts_are_computed_in_one_thread(monkeypatch):
    """Whatever the environment says: sums in another order differ in their last digits."""
    cell, threads = Cell("random-20-30", "start", "price", 1.0), []
    made = load(cell.dataset, cell.draw)

    def watched(*_):
        threads.extend(p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas")
        return made

    monkeypatch.setattr(cells_module, "load", watched)
    monkeypatch.setitem(cells_module.FACTS, "start", lambda *_: watched() and 1.0)
    with threadpool_limits(2):
        compute(cell)
    assert len(threads) >= 2 and set(threads) == {1}


def test_data_depend_on_the_draw_alone():
    X, y = load("random-20-30", 5)
    assert X.shape == (20, 30)
    assert np.array_equal(y, load("random-20-30", 5)[1])
    assert not np.array_equal(y, load("random-20-30-C", 5)[1])
    with pytest.raises(ValueError, match=r"'random-m-n'.*got 'random'"):
        load("random", 0)


def test_facts_about_the_data():
    X, y = load("random-20-30", 0)
    cell = Cell("random-20-30", "start", "price", 7.0)
    assert start_objective(cell, X, y) == pytest.approx(0.5 * y @ y + 7.0 * 30, rel=1e-6)
    X = np.column_stack([np.ones(8), np.arange(8.0) - 3.5, np.zeros(8)])
    assert cells_module.strong_columns(cell, X, np.ones(8)) == 1.0


def test_an_interrupted_cell_is_not_a_result(monkeypatch, tmp_path):
    interrupted = Result(np.zeros(30), 1.0, Status.INTERRUPTED)
    monkeypatch.setattr(cells_module.blockl0, "solve", lambda *_, **__: interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(SOME[:1], tmp_path)
    assert len(Store(tmp_path)) == 0


def test_a_curve_is_thin_and_keeps_its_ends():
    record = compute(Cell("random-20-30", "DEC-R2G2", "budget", 3, has_curve=True))
    curve = record["curve"]
    assert len(curve["objective"]) <= cells_module.CURVE_POINTS
    assert curve["iteration"][0] == 0 and curve["iteration"][-1] == record["n_iter"]
    assert curve["objective"][-1] == pytest.approx(record["objective"])


# -- saving, resuming, processes -------------------------------------------------------------------


@pytest.mark.slow
def test_a_killed_run_resumes_and_loses_nothing(tmp_path):
    script = f"""
import os, sys
from pathlib import Path
sys.path[:0] = {[str(p) for p in Path(__file__).parents[:2]]!r}
from test_experiments import SOME, Store, run_cells, silent
class Killed(Store):
    def add(self, cell, record):
        super().add(cell, record)
        if len(self) == 4:
            os.kill(os.getpid(), 9)
run_cells(SOME, Killed(Path({str(tmp_path)!r})), 1, "", silent)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode != 0
    before = Store(tmp_path)
    assert len(before) == 4, done.stderr
    with open(before.path, "ab") as file:
        file.write(b'{"cell": {"dataset": "random-20-')  # as if killed while writing
    again: list[Cell] = []

    class Watched(Store):
        def add(self, cell, record):
            super().add(cell, record)
            again.append(cell)

    run_cells(SOME, Watched(tmp_path), 1, "", silent)
    assert again == SOME[4:]
    assert numbers(Store(tmp_path), SOME) == numbers(run(SOME, tmp_path / "afresh"), SOME)


@pytest.mark.slow
def test_two_processes_give_the_same_numbers_as_one(tmp_path):
    one, two = run(SOME, tmp_path / "one"), run(SOME, tmp_path / "two", jobs=2)
    assert numbers(one, SOME) == numbers(two, SOME)  # every bit: one thread in each
    assert two.jobs() == [2]
    assert numbers(Store(tmp_path / "two"), SOME) == numbers(one, SOME)


def test_cells_of_other_code_are_not_used(tmp_path):
    store = run(SOME[:2], tmp_path)
    first, second = store.path.read_text().splitlines()
    store.path.write_text(first.replace('"origin": "', '"origin": "x') + "\n" + second + "\n")
    again = Store(tmp_path)
    assert again.n_stale == 1 and SOME[0] not in again and SOME[1] in again


def test_cells_from_another_file_of_e2006_are_not_used(tmp_path, monkeypatch):
    cell, file = Cell("e2006-5-6", "start", "price", 1.0), tmp_path / "e2006.mat"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv(E2006_VARIABLE, "~/e2006.mat")
    origins = []
    for content in (b"one", b"two"):  # of one size
        file.write_bytes(content)
        store_module._file_digest.cache_clear()
        origins.append(store_module.origin(cell))
    store_module._file_digest.cache_clear()
    assert origins[0] != origins[1]
    assert store_module.origin(SOME[0]) in origins[0]


def wait_for_a_cell(process: subprocess.Popen, folder: Path) -> None:
    for _ in range(600):
        file = folder / "cells.jsonl"
        if file.exists() and file.read_bytes().count(b"\n") >= 2:
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    pytest.fail("no cell was finished")


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C is another thing there")
@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_keeps_what_is_finished_and_says_how_to_resume(tmp_path, jobs):
    command = [sys.executable, "-m", "blockl0", "reproduce", "table2", "--quick"]
    process = subprocess.Popen(
        [*command, "--jobs", str(jobs), "--out", str(tmp_path)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        # the cells of e2006 come first, and take long
        env={name: value for name, value in os.environ.items() if name != E2006_VARIABLE},
    )  # fmt: skip
    try:
        wait_for_a_cell(process, tmp_path)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        said, _ = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert process.returncode == 130, said
    assert "to resume" in said and "reproduce table2 --quick" in said and "Traceback" not in said
    store = Store(tmp_path)
    assert len(store) >= 2 and store.n_stale == 0


# -- progress --------------------------------------------------------------------------------------


def test_durations_in_words():
    assert [duration(s) for s in (0.2, 59.4, 60, 200, 7500)] == [
        "0 s", "59 s", "1 min", "3 min 20 s", "2 h 5 min",
    ]  # fmt: skip


def test_the_forecast_knows_which_methods_are_slow():
    cells = [Cell("a", method, "price", 1.0, s) for method in ("slow", "fast") for s in range(4)]
    forecast = Forecast([*cells, Cell("a", "start", "price", 1.0)])
    forecast.add(Cell("a", "start", "price", 1.0), 0.0)
    assert np.isnan(forecast.seconds(elapsed=0.1))
    forecast.add(cells[0], 10.0)
    forecast.add(cells[4], 1.0)
    # three of each are left, 33 s of work, at twice the pace of one process
    assert forecast.seconds(elapsed=5.5) == pytest.approx(16.5)


def test_the_forecast_does_not_take_the_long_cells_for_all():
    first, rest = (
        Cell("a", "long", "price", 1.0),
        [Cell("a", "x", "price", float(i)) for i in range(99)],
    )
    forecast = Forecast([first, *rest])
    forecast.add(first, 100.0)
    assert forecast.seconds(elapsed=100.0) < 30.0
    assert np.isnan(forecast.seconds(elapsed=900.0))  # hardly anything but starting up


def test_the_time_left_is_that_of_the_whole_command(tmp_path, monkeypatch):
    runs, said = [], []
    monkeypatch.setattr(reproduce, "run_cells", lambda *given: runs.append(given))
    monkeypatch.setattr(reproduce, "write_all", lambda *_, **__: tmp_path)
    names = ("table1", "table2", "table3", "figure2")
    reproduce.reproduce(names, TINY, tmp_path, jobs=1, echo=said.append)
    [(cells, _, _, title, _)] = runs
    assert title == "all"
    assert set(cells) == {*table_cells(TINY), *figure2_cells(TINY), *judged_cells(TINY)}
    assert said[:2] == ["table2: 66 cells", "table3: 66 cells, 66 of them as above"]


def test_a_bar_is_drawn_with_rich(tmp_path, capsys, monkeypatch):
    pytest.importorskip("rich")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    run_cells(SOME[:2], Store(tmp_path), 1, "table2", silent)
    assert "2/2" in capsys.readouterr().out


# -- how numbers are written -----------------------------------------------------------------------


def test_numbers_are_written_as_in_the_paper():
    assert sci(2200.0, 2) == "2.2e+3" and sci(0.0123) == "1.23e-2"
    assert [short(v) for v in (0.0, 0.00123, 0.432, 12.3, 350.0)] == [
        "0", "0.0012", "0.43", "12", "350",
    ]  # fmt: skip


def test_equal_values_share_a_place():
    values = pd.Series({"a": 1.0, "b": 1.0 + 1e-9, "c": 2.0, "d": 3.0, "e": 4.0})
    assert places(values).to_dict() == {"a": 1, "b": 1, "c": 2, "d": 3, "e": 0}


# -- promises --------------------------------------------------------------------------------------


def test_promises_hold_for_numbers_that_keep_them(tmp_path):
    found = promises(printed_store(tmp_path), ONE)
    assert [promise.verdict for promise in found] == ["PASS"]
    assert found[0].total == 32 * 5 and "above in 0 of 160" in found[0].detail


def test_broken_promises_are_named(tmp_path):
    [lowest] = promises(printed_store(tmp_path, **{"DEC-R10G2": 1.2, "refit": 1.3}), ONE)
    assert lowest.verdict == "FAIL"
    assert any("DEC-R10G2 ranked is lower (ours × 1.08333)" in case for case in lowest.exceptions)


def test_dec_from_zero_is_compared_to_the_printed_digits(tmp_path):
    store, record = Store(tmp_path), {"seconds": 1.0, "n_nonzero": 2, "jobs": 1}
    for number in range(ENOUGH_DRAWS + 1):
        # printed 4.8e2, 2.2e3 and 9.4e3; of the last there are too few draws to tell
        for j, value in enumerate((470.0 + 5.0 * number, 2300.0, 9e9)[: 3 if number < 2 else 2]):
            price, draw = FULL.prices[j], draw_of(FULL.prices, FULL.prices[j], number)
            if number < ENOUGH_DRAWS or j == 0:
                cell = Cell("random-256-1024", dec(change="zero"), "price", price, 0, draw)
                store.add(cell, record | {"objective": value})
    [zero] = promises(store, FULL)
    assert zero.total == 2 and zero.verdict == "FAIL" and "mean over 5–6 draws" in zero.text
    assert zero.exceptions == ("random-256-1024 λ = 10: 2.30e+3, printed 2.2e+3",)


def test_captions_count_what_is_there(tmp_path, monkeypatch):
    """A folder filled by a shorter run, shown by a longer profile."""
    draw_nothing(monkeypatch)
    store, record = Store(tmp_path), {"seconds": 1.0, "n_nonzero": 2, "objective": 3.0, "jobs": 1}
    for seed in (0, 1):
        store.add(Cell("random-256-1024", "PGM", "budget", 3, seed), record)
    assert "mean over 2 random starts" in figures.write_figure2(store, FULL, tmp_path)
    assert "3 random starts" in page._header(replace(QUICK, seeds=3))


# -- files and page --------------------------------------------------------------------------------


@pytest.mark.slow
def test_everything_is_written(reproduced):
    folder, said = reproduced
    names = {path.name for path in folder.iterdir()}
    assert {f"{name}.csv" for name in ("table1", "table2", "table3", "claims")} <= names
    for stem in ("figure1-time", "figure1-iteration", "figure2"):
        assert (folder / f"{stem}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (folder / f"{stem}.svg").read_text(encoding="utf-8")
    assert {"figure1.csv", "figure2.csv", "scaling.csv", "index.html"} <= names
    assert any("PASS" in line or "FAIL" in line for line in said)
    assert len(read_csv(folder / "table2.csv")) == 3 * 2 * 6
    assert len(read_csv(folder / "figure2.csv")) == 3 * 2 * 14


@pytest.mark.slow
def test_the_page_contains_every_number(reproduced):
    folder, _ = reproduced
    page = (folder / "index.html").read_text(encoding="utf-8")
    for name in ("table2", "figure2"):
        for row in read_csv(folder / f"{name}.csv"):
            assert sci(float(row["objective"])) in page, row
    for row in read_csv(folder / "table3.csv"):
        assert f"{short(float(row['seconds']))} ± {short(float(row['std']))}" in page
    ends = {
        (r["set"], r["s"], r["method"]): r["objective"] for r in read_csv(folder / "figure1.csv")
    }
    assert len(ends) == 9
    for value in ends.values():
        assert sci(float(value)) in page
    for row in read_csv(folder / "claims.csv"):
        assert html.escape(row["claim"]) in page and row["verdict"] in page
        if row["role"] != "ours" and "Table 1" not in row["claim"]:
            assert html.escape(f"{row['held']} of {row['of']}: {row['variant']}") in page
    for variant in VARIANTS.values():
        assert variant.solver == "dec" or html.escape(variant.title) in page


def test_the_printed_numbers_stand_beside_ours(tmp_path):
    store = printed_store(tmp_path, **{"PGM-l0": 2.0})
    text = tables.write_table2(store, ONE, tmp_path) + tables.write_table3(store, ONE, tmp_path)
    for printed in paper.OBJECTIVES.values():
        assert f"{sci(printed.objective, 2)}<" in text
    assert "× 2.00" in text and "paper ② 4.8e+2" in text
    for printed in paper.SECONDS.values():
        assert f"paper {printed.mean:g} ± {printed.std:g}" in text
    assert "10 × ours" in text
    rows = read_csv(tmp_path / "table2.csv")
    # 2x/x has no rounding
    assert {row["ours_over_paper"] for row in rows if row["method"] == "PGM-l0"} == {"2.0"}


@pytest.mark.slow
def test_the_page_needs_nothing_else(reproduced):
    page = (reproduced[0] / "index.html").read_text(encoding="utf-8")
    links = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert links and all(link.startswith(("#", "data:")) for link in links)
    assert "<script" not in page and "url(" not in page.replace("url(#", "")
    ids = re.findall(r'<section id="([^"]*)"', page)
    there = set(reproduce.EXPERIMENTS) - {"differences"}  # nothing is printed for these sets
    assert set(ids) == {"promises", "observations", "scaling", "variants", *there}
    assert [link[1:] for link in links if link[1:] in ids] == ids


@pytest.mark.slow
def test_the_same_folder_twice_computes_nothing(reproduced, tmp_path, monkeypatch):
    folder = shutil.copytree(reproduced[0], tmp_path / "again")
    draw_nothing(monkeypatch)
    before = (folder / "cells.jsonl").read_bytes()
    said: list[str] = []
    reproduce.reproduce(["table2"], TINY, folder, jobs=1, echo=said.append)
    assert (folder / "cells.jsonl").read_bytes() == before
    assert said[0] == "table2: 66 cells, 66 of them on file"
    assert 'id="figure2"' in (folder / "index.html").read_text(encoding="utf-8")


def test_without_the_file_e2006_is_skipped_and_said_so(tmp_path, monkeypatch):
    monkeypatch.delenv(E2006_VARIABLE, raising=False)
    draw_nothing(monkeypatch)
    said: list[str] = []
    profile = replace(TINY, sets=("random-20-30", "e2006-5000-1024"), prices=(1.0,), seeds=1)
    path = reproduce.reproduce(["table3"], profile, tmp_path, jobs=1, echo=said.append)
    assert "Skipped: e2006-5000-1024" in said[0] and E2006_VARIABLE in said[0]
    page = path.read_text(encoding="utf-8")
    assert "Skipped: e2006-5000-1024" in page and E2006_VARIABLE in page
    assert {row["set"] for row in read_csv(tmp_path / "table3.csv")} == {"random-20-30"}


def test_curves_can_be_told_apart_without_colour():
    for methods in ((*FIGURE1_METHODS, FULL.refit), figures.drawn_methods(FULL)):
        looks = [drawing.STYLES[method][1:] for method in methods]
        assert len(set(looks)) == len(looks)
        assert len({drawing.STYLES[method] for method in methods}) == len(methods)


# -- the command -----------------------------------------------------------------------------------


def test_table1_by_the_command(tmp_path):
    done = CliRunner().invoke(
        cli.main, ["reproduce", "table1", "--quick", "--jobs", "1", "--out", str(tmp_path)]
    )
    assert done.exit_code == 0, done.output
    rows = read_csv(tmp_path / "table1.csv")
    assert [row["L"] for row in rows] == ["14", "14", "58", "56"]
    assert "57" in (tmp_path / "index.html").read_text(encoding="utf-8")
    assert str(tmp_path / "index.html") in done.output


def test_the_moves_of_table1_have_their_values():
    for x in islice(table1.basic_points().values(), 0, 64, 7):
        for value, count, z in table1.block_moves(x, 3, budget=4):
            assert value == table1.smooth(z) and count == table1.nnz(z)


def test_a_folder_that_cannot_be_made_is_said_without_a_traceback(tmp_path):
    (tmp_path / "file").write_text("")
    out = str(tmp_path / "file" / "folder")
    done = CliRunner().invoke(cli.main, ["reproduce", "table1", "--quick", "--out", out])
    assert done.exit_code == 3 and "Error: " in done.output and "folder" in done.output


def test_the_command_knows_every_experiment():
    assert tuple(reproduce.EXPERIMENTS) == EXPERIMENTS


@pytest.mark.parametrize(
    ("arguments", "pattern"),
    [
        (["reproduce"], "Missing argument"),
        (["reproduce", "table4"], "'table4' is not one of 'table1'"),
        (["reproduce", "all", "--seeds", "0"], "--seeds"),
        (["reproduce", "all", "--jobs", "none"], "--jobs"),
    ],
)
def test_a_wrong_command_is_explained(arguments, pattern):
    done = CliRunner().invoke(cli.main, arguments)
    assert done.exit_code == 2 and pattern in done.output


def test_help_does_not_wait_for_the_compiler():
    code = (
        "import sys; from blockl0.app.cli import main\n"
        "try: main(['reproduce', '--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'numba', 'numpy', 'scipy', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "--quick" in done.stdout and done.stdout.splitlines()[-1] == "[]"


def test_public_names_are_loaded_when_first_used():
    """Also where a submodule has the name of a function."""
    code = (
        "import blockl0.solve, blockl0.block_search, blockl0\n"
        "assert set(blockl0._LAZY) | {'__version__'} == set(blockl0.__all__) <= set(dir(blockl0))\n"
        "assert all(getattr(blockl0, name) is not None for name in blockl0.__all__)\n"
        "assert callable(blockl0.solve) and callable(blockl0.block_search)\n"
        "from blockl0 import solve, datasets; import blockl0.path\n"
        "assert callable(solve) and callable(datasets.make_random)\n"
        "assert not hasattr(blockl0, 'nothing')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# -- a real browser --------------------------------------------------------------------------------

WIDTHS = (390, 1280)
PROBE = """<script>
addEventListener('error', e => parent.postMessage('error ' + e.message, '*'));
addEventListener('load', () => parent.postMessage(JSON.stringify({
  width: innerWidth, needed: document.documentElement.scrollWidth,
  drawings: [...document.querySelectorAll('.panels svg')].map(e => e.getBoundingClientRect().width),
  requests: performance.getEntriesByType('resource').map(e => e.name),
  text: document.body.innerText.length}), '*'));
</script></head>"""
FRAME = """<!doctype html><meta charset="utf-8"><body><pre></pre><script>
addEventListener('message', e => document.querySelector('pre').append(e.data + '\\n'));
</script>""" + "".join(
    f'<iframe src="probe.html" style="width: {width}px; height: 900px; border: 0"></iframe>'
    for width in WIDTHS
)


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed: the page was NOT checked")
def test_the_page_in_a_browser(reproduced, tmp_path):
    page = (reproduced[0] / "index.html").read_text(encoding="utf-8")
    (tmp_path / "probe.html").write_text(page.replace("</head>", PROBE, 1), encoding="utf-8")
    frame = tmp_path / "frame.html"
    frame.write_text(FRAME, encoding="utf-8")
    flags = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
        "--disable-background-networking --disable-component-update --disable-sync "
        "--enable-logging=stderr --virtual-time-budget=5000 --dump-dom "
        f"--user-data-dir={tmp_path / 'browser'}"
    )
    done = subprocess.run(
        [str(CHROMIUM), *flags.split(), frame.as_uri()],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr, done.stderr
    found = re.search(r"<pre>(.*?)</pre>", done.stdout, flags=re.DOTALL)
    assert found, done.stdout[:500]
    messages = html.unescape(found[1]).strip().splitlines()
    assert len(messages) == len(WIDTHS), messages  # one report of each and no error
    reports = sorted(map(json.loads, messages), key=lambda seen: seen["width"])
    for width, seen in zip(WIDTHS, reports, strict=True):
        assert seen["width"] == width and seen["needed"] <= width  # only boxes scroll sideways
        assert seen["requests"] == [] and seen["text"] > 1000
        assert len(seen["drawings"]) == 2 * len(TINY.curve_sets) + len(TINY.all_sets)
        assert all(width / 5 < size <= width for size in islice(seen["drawings"], 4))
