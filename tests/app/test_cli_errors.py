"""The command line where things go wrong: refusals, files, exit codes, Ctrl-C; and its help."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("click", reason="the command line needs blockl0[cli]")
pytest.importorskip("pandas", reason="the command line reads tables with pandas")

import pandas as pd
from click.testing import CliRunner

from blockl0 import progress as shared_progress
from blockl0.app import cli
from blockl0.app.cli import progress as cli_progress
from blockl0.app.cli.commands import METHODS
from blockl0.app.cli.options import RULES
from blockl0.app.model_file import load_model
from cli_runner import QUICK, answer, fit_json, folder, run

__all__ = ["folder"]


# -- errors, files, exit codes ---------------------------------------------------------------------


def test_files_are_not_overwritten(folder):
    (folder / "m.json").write_text("mine", encoding="utf-8")
    started = time.perf_counter()
    done = run("fit", "data.csv", "-t", "y", "-k", 3, "-o", "m.json", code=6)
    assert time.perf_counter() - started < 5.0 and "--force" in done.stderr
    assert (folder / "m.json").read_text(encoding="utf-8") == "mine"
    run("fit", "data.csv", "-t", "y", "-k", 3, *QUICK, "-o", "m.json", "--force")
    assert load_model("m.json").feature_names == ("c1", "c4", "c9")


ERRORS = {
    "no file": (("fit", "date.csv", "-t", "y"), 3, "Did you mean 'data.csv'?"),
    "no target": (("fit", "data.csv", "-t", "z"), 3, "There is no column 'z'"),
    "too many": (("fit", "data.csv", "-t", "y", "-k", 99), 3, "-k must be at most 17"),
    "labels": (("fit", "data.csv", "-t", "kind", "--loss", "huber"), 3, "labels (high, low); use"),
    "usage": (("fit", "data.csv", "-k", "many"), 2, "not a valid integer"),
    "effort": (("fit", "data.csv", "-t", "y", "--effort", "lots"), 2, "neither fast, balanced"),
    "no folder": (("fit", "data.csv", "-t", "y", "-o", "no/m.json"), 3, "There is no folder 'no'"),
    "no model": (("predict", "none.json", "data.csv"), 3, "none.json"),
    "bad model": (("predict", "data.csv", "data.csv"), 4, "damaged, or no model"),
    "bad k": (("compare", "data.csv", "-t", "y", "-k", 50), 3, "-k must be at most 17"),
    "folds": (("fit", "data.csv", "-t", "y", "--folds", 99), 3, "--folds must be at most 80"),
    "ids": (("fit", "data.csv", "-t", "id", "-k", 2), 3, "80 different values in 80 rows"),
    "constant": (("fit", "data.csv", "-t", "one", "-k", 2), 3, "'one' is 7 in all 80 rows"),
    "the data": (("fit", "data.csv", "-o", "data.csv", "--force"), 6, "would replace the data"),
    "lone label": (("fit", "data.csv", "-t", "rare", "--test", 0.2), 3, "one row is of class"),
    "no rows": (("fit", "data.csv", "-t", "y", "--test", 0.999), 3, "leaves 0 and holds out 80."),
    "value": (("fit", "data.csv", "-t", "y", "--keep", "c1=2"), 3, "--as-category c1 makes"),
    "a folder": (("report", ".", "-t", "y"), 3, "needs the rows in memory, but it is a folder"),
    "sampled poisson": (
        ("certify", "data.csv", "-t", "n", "-k", 1, "--loss", "poisson", "--samples", 9,
         "--levels", "separate"), 3,
        "`n_samples` needs a quadratic above the loss, and loss='poisson' has none"),
    "sampled classes": (
        ("certify", "data.csv", "-t", "size", "-k", 1, "--samples", 9, "--levels", "separate"), 3,
        "loss='softmax' has"),
    "command": (("fti",), 2, "No such command 'fti'"),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors_are_explained(folder, case):
    arguments, code, pattern = ERRORS[case]
    frame = pd.read_csv("data.csv")
    frame = frame.assign(one=7.0, id=[f"n{i}" for i in range(80)], rare=["u", "u", *"vw" * 39])
    frame.loc[0, "rare"] = "alone"
    frame["n"] = np.arange(80) % 5
    frame.to_csv("data.csv", index=False)
    done = run(*arguments, code=code)
    assert pattern in done.stderr and not done.stdout and "Traceback" not in done.output


REFUSED = [
    (["-t", "one"], "There is nothing to explain: 'one' is 7 in all 40 rows."),
    (["-t", "word"], "There is nothing to explain: 'word' is 'red' in all 40 rows."),
    (["-t", "US", "--loss", "huber"], "'US' holds labels (No, Yes); use --loss logistic."),
    (["-t", "y", "--keep", "US", "--levels", "separate"],
     "--keep US: 'US' is a category; give its values, as --keep US=Yes."),
    (["-t", "y", "--keep", "place", "--levels", "separate"],
     "as --keep place=Bad --keep place=Good --keep place=Medium."),
    (["-t", "id"], "'id' holds 40 different values in 40 rows ('n0"),
    (["-t", "y", "--keep", "US=Yess"],
     "--keep US=Yess: there is no such column for the fit. Did you mean 'US=Yes'?"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "said"), REFUSED)
def test_targets_and_categories_that_cannot_be_are_refused(tmp_path, rng, arguments, said):
    path = tmp_path / "table.csv"
    rows = [
        f"{rng.normal():.3f},{rng.normal():.3f},{rng.choice(['Yes', 'No'])},7,red,"
        f"{rng.choice(['Bad', 'Good', 'Medium'])},n{i}a"
        for i in range(40)
    ]
    path.write_text("\n".join(["y,x,US,one,word,place,id", *rows]) + "\n", encoding="utf-8")
    assert said in run("fit", path, *arguments, code=3).stderr


@pytest.mark.parametrize(
    ("arguments", "said", "unneeded"),
    [
        (["predict", "data.csv", "data.csv"], "no model: it is not JSON", "scipy.sparse"),
        (["report", ".", "-t", "y"], "needs the rows in memory", "blockl0.estimators"),
    ],
)
def test_what_needs_no_fit_imports_none(folder, arguments, said, unneeded):
    code = (
        "import sys; from blockl0.app.cli import main\n"
        f"try: main({arguments!r})\n"
        f"finally: print({unneeded!r} in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert said in done.stderr and done.stdout.split() == ["False"]


def check_in(package, message):
    """A function that refuses, as if it were defined in a package."""
    space = {"__name__": package, "message": message}
    exec("def check(*_):\n    raise ValueError(message)\n", space)
    return space["check"]


def broadcast(*_):
    """An operation that fails, wherever it stands."""
    return np.ones(2) + np.ones(3)


@pytest.mark.parametrize("package", ["blockl0.app.cli.data", "sklearn.utils", "numpy"])
@pytest.mark.parametrize("message", ["is refused.", "is refused"])
def test_a_fault_of_ours_is_not_hidden(folder, monkeypatch, package, message):
    """What counts is who speaks, not how the message ends."""
    monkeypatch.setattr("blockl0.app.cli.data.load", check_in(package, message))
    done = CliRunner().invoke(cli.main, ["fit", "data.csv", "-t", "y"])
    if package == "numpy":
        assert done.exit_code == 1 and isinstance(done.exception, ValueError)
    else:
        assert done.exit_code == 3 and message in done.stderr
    monkeypatch.setitem(broadcast.__globals__, "__name__", "blockl0.app.cli.data")
    monkeypatch.setattr("blockl0.app.cli.data.load", broadcast)
    done = CliRunner().invoke(cli.main, ["fit", "data.csv", "-t", "y"])
    assert done.exit_code == 1 and isinstance(done.exception, ValueError)


def test_checks_of_scikit_learn_speak_to_the_user(folder):
    options = ("fit", "data.csv", "-t", "kind", "--drop", "y", "--folds", 60, *QUICK)
    done = run(*options, code=3)
    assert "n_splits=60 cannot be greater than the number of members" in done.stderr


def test_warnings_become_notices(folder):
    frame = pd.read_csv("data.csv")
    frame["kind"] = np.where(frame["c0"] > 0, "low", "high")
    frame.to_csv("split.csv", index=False)
    options = ("-t", "kind", "-k", 1, "--ridge", 0, "--effort", "fast", *QUICK)
    assert "separate the data" in run("fit", "split.csv", *options).stderr


def test_a_model_brings_its_own_problem(folder):
    """Options that --model cannot obey are refused, not ignored."""
    run("fit", "data.csv", "-t", "y", "-k", 2, *QUICK, "-o", "m.json")
    for options in (["-k", 3], ["--ridge", 1], ["--keep", "c1"], ["-t", "c0"], ["--loss", "huber"]):
        done = run("certify", "data.csv", "--model", "m.json", *options, code=2)
        assert "The model was fitted with" in done.stderr
    run("certify", "data.csv", "--model", "m.json", "-t", "y", "-k", 2, "--seed", 5)


def test_what_is_read_is_not_replaced(folder):
    """Not even with --force, nor under another name."""
    run("fit", "data.csv", "-t", "y", "-k", 2, *QUICK, "-o", "m.json")
    before = (folder / "m.json").read_bytes()
    (folder / "link").symlink_to("m.json")
    for name in ("m.json", "./m.json", "link"):
        done = run("predict", "m.json", "data.csv", "-o", name, "--force", code=6)
        assert "would replace the model; give another name" in done.stderr
    done = run("predict", "link", "data.csv", "-o", "m.json", "--force", code=6)
    assert "would replace the model" in done.stderr
    done = run("predict", "m.json", "data.csv", "-o", "data.csv", "--force", code=6)
    assert "would replace the data" in done.stderr
    assert (folder / "m.json").read_bytes() == before
    options = ("-t", "y", "-k", 2, "--csv", "p", "--html", folder / "p", "--force")
    assert "--csv and --html are both" in run("path", "data.csv", *options, code=6).stderr
    run("predict", "m.json", "data.csv", "-o", "p.csv")


def test_a_link_to_itself_is_refused_before_any_work(folder):
    (folder / "loop").symlink_to("loop")
    for command in (("fit", "-o"), ("report", "-o"), ("path", "--html"), ("path", "--csv")):
        given = (command[0], "data.csv", "-t", "y", command[1], "loop", "--json")
        done = run(*(given[:-1] if command[0] == "report" else given), "--force", code=3)
        assert "'loop' is a link that leads nowhere; remove it first." in done.stderr
        assert not done.stdout and "Traceback" not in done.stderr


def test_a_model_that_cannot_be_saved_is_not_announced(folder, monkeypatch):
    def fail(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr("blockl0.app.model_file.write_whole", fail)
    done = run("fit", "data.csv", "-t", "y", "-k", 2, *QUICK, "-o", "m.json", "--json", code=1)
    assert "disk full" in done.stderr and not done.stdout


def test_consoles_that_lack_letters(monkeypatch):
    """Windows writes files in its own encoding: no answer may fail on a name."""
    from blockl0.app.cli import job

    bytes_ = io.BytesIO()
    stdout = io.TextIOWrapper(bytes_, encoding="cp1252", write_through=True)
    monkeypatch.setattr(sys, "stdout", stdout)
    job.Job("fit", {"json": True}).answer(job.Answer({"name": "日本"}, []))
    job.Job("fit", {}).answer(job.Answer({}, ["日本 R²"]))
    document, _, text = bytes_.getvalue().decode("cp1252").rpartition("}")
    assert json.loads(document + "}")["result"] == {"name": "日本"} and text.strip() == "?? R²"


# -- Ctrl-C ----------------------------------------------------------------------------------------


def interrupt_at(monkeypatch, watch, count):
    """As if the user pressed Ctrl-C at the so-and-so-many-th point that a search records."""
    seen = []
    original = watch.__call__

    def call(self, point, is_first):
        original(self, point, is_first)
        seen.append(point)
        if len(seen) == count:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(watch, "__call__", call)


def test_ctrl_c_saves_the_best_model_so_far(folder, monkeypatch):
    interrupt_at(monkeypatch, cli_progress.SearchWatch, 1)
    done = run("fit", "data.csv", "-t", "y", "-k", 3, "-o", "m.json", code=130)
    assert "Interrupted: this is the best model so far" in done.stderr
    assert "3 of 15 columns" in done.stdout and "chosen again" not in done.stdout
    assert len(load_model("m.json").features) == 3


@pytest.mark.parametrize("count", [6, 40])
def test_ctrl_c_while_choosing_leaves_a_model(folder, monkeypatch, count):
    """Early in the path on all rows, and late among the folds."""
    interrupt_at(monkeypatch, cli_progress.PathWatch, count)
    options = ("-t", "y", "--max-k", 6, "-o", "m.json")
    document = fit_json(*options, code=130)
    assert document["status"] == "interrupted"
    assert load_model("m.json").feature_names
    by_bic = any("chosen by BIC" in notice for notice in document["notices"])
    assert by_bic == (count == 40)


def test_ctrl_c_in_the_search_of_certify(folder, monkeypatch):
    interrupt_at(monkeypatch, cli_progress.SearchWatch, 1)
    document = answer("certify", "data.csv", "-t", "y", "-k", 3, code=130)
    assert document["status"] == "interrupted" and document["result"]["claims"]


def test_ctrl_c_while_the_page_is_made_leaves_the_path(folder, monkeypatch):
    def stop(*_, **__):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("blockl0.app.report.make_report", stop)
    options = ("-t", "y", "-k", 2, "--rule", "bic", "--html", "p.html", "--csv", "p.csv")
    document = answer("path", "data.csv", *options, code=130)
    assert document["status"] == "interrupted" and len(document["result"]["points"]) == 3
    assert (folder / "p.csv").exists() and not (folder / "p.html").exists()


def test_ctrl_c_before_there_is_anything(folder, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("blockl0.app.cli.data.load", stop)
    done = run("fit", "data.csv", "-t", "y", "-k", 3, "-o", "m.json", code=130)
    assert "nothing is saved" in done.stderr and not (folder / "m.json").exists()


# -- help, progress --------------------------------------------------------------------------------


def test_help_is_quick_and_imports_nothing_heavy():
    code = (
        "import sys; from blockl0.app.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print(sorted({'numba', 'numpy', 'scipy', 'sklearn', 'pandas', 'rich'} & set(sys.modules)))"
    )
    for arguments in (["--help"], ["fit", "--help"], ["compare", "--help"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
        )
        assert done.stdout.splitlines()[-1] == "[]", arguments
    for name in cli.main.commands:
        assert name in run("--help").stdout and run(name, "--help").stdout.startswith("Usage")


def test_lists_that_help_needs_early_are_up_to_date():
    from blockl0.selection import CRITERIA
    from blockl0.selection import RULES as BY_SCORE
    from blockl0.solve import METHODS as KNOWN

    assert set(RULES) == {*CRITERIA, *BY_SCORE}
    assert set(METHODS) == {m for m in KNOWN if not m.endswith(("-l0", "-lp")) and m != "pgm-l1"}


def test_progress_tells_the_time_left(capsys, monkeypatch):
    clock = iter([0.0, 1.0, 4.0, 4.0, 5.0, 20.0, 20.0])
    monkeypatch.setattr(shared_progress.time, "perf_counter", lambda: next(clock))
    with cli_progress.progress("Working") as shown:
        shown(1, 10, "early")
        shown(2, 10, "later")
        shown(3, 10, "too soon")
        shown(5, 10, "half")
    out, err = capsys.readouterr()
    assert not out
    assert err.splitlines() == [
        "Working: 2 of 10, later, about 16 s left", "Working: 5 of 10, half, about 20 s left",
    ]  # fmt: skip


def test_progress_that_slows_down_says_what_is_quicker(capsys, monkeypatch):
    # each line reads the clock twice: is it time for one, and how long has it been
    clock = iter([0.0, 4.0, 4.0, 15.0, 15.0, 60.0, 60.0, 90.0, 90.0])
    monkeypatch.setattr(shared_progress.time, "perf_counter", lambda: next(clock))
    with cli_progress.progress("Path", shorter="--max-k 5 is quicker") as shown:
        for done in (2, 6, 8, 15):
            shown(done, 16)
    said = [line.partition("about ")[2] for line in capsys.readouterr().err.splitlines()]
    assert said == ["28 s left", "25 s left", "1 min left (--max-k 5 is quicker)", "6 s left"]


def test_tables_on_a_terminal_show_names_as_they_are(monkeypatch):
    pytest.importorskip("rich")
    from blockl0.app.cli import job

    rows = [["a [bold]b[/bold]", "1"], ["two\nlines\x1b[31m", "22"]]
    plain = job.table(["column", "x"], rows)
    monkeypatch.setattr(job.sys.stdout, "isatty", lambda: True, raising=False)
    fancy = job.table(["column", "x"], rows)
    assert "a [bold]b[/bold]" in plain and "a [bold]b[/bold]" in fancy and plain != fancy
    assert "two lines" in plain and "two lines" in fancy and "\x1b[31m" not in plain + fancy
