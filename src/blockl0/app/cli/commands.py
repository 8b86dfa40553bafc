"""The commands: their options and help texts, and how each is run.

Importing this module is quick; what does the work is imported when a command runs, the searches
only after the options and the table have been checked.
"""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from blockl0.app.cli import options as o
from blockl0.app.cli.job import INTERRUPTED, Job, check_outputs, command_line
from blockl0.errors import ModelFileError
from blockl0.files import check_exists, read_document

METHODS = (
    "refit", "exact", "dec", "forward", "omp", "cosamp", "ssp", "romp", "gp", "grahtp",
    "sparse-simplex", "pgm", "apgm", "qpm", "cvx-l1",
)  # fmt: skip
"""The methods with a budget, as in `blockl0.solve.METHODS`, which is slow to import."""
EXPERIMENTS = ("table1", "table2", "table3", "figure1", "figure2", "differences")
"""As in `blockl0.paper.reproduce`, which is too slow to import for a help text."""


class Commands(click.Group):
    """Group of commands, which are listed in the order of their definition."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List all names."""
        return list(self.commands)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: blockl0 fit data.csv --target y -k 8 --test 0.2 --out model.json",
)
@click.version_option(package_name="blockl0")
def main() -> None:
    """Which few columns of a table explain another one, and can that be trusted?

    Best-subset selection and l0-sparse optimization by block decomposition.

    Results go to standard output, as text or with --json as one JSON document; notices and progress
    go to standard error. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 data or options refused, 4
    model file refused, 5 not proven (certify), 6 file exists, 130 interrupted.
    """


def run(name: str, options: dict[str, Any], *outputs: str, reads_table: bool = True) -> None:
    """Run a command: check its files, read its table, and print its answer."""
    with Job(name, options) as job:
        check_outputs(options, *outputs)
        for argument, what in (("file", "file"), ("model", "model file")):
            if options.get(argument) is not None:
                check_exists(options[argument], what)
        if name == "predict":
            _refuse_swapped(options)
        given: list[Any] = []
        if reads_table:
            # refuses what is wrong with table and options before the command imports a search
            from blockl0.app.cli.data import load_checked

            given = [load_checked(job, options)]
        job.answer(import_module(f"blockl0.app.cli.{name}").run(job, *given, options))


def _refuse_swapped(options: dict[str, Any]) -> None:
    """Refuse a file that is not a model, noting if the data are one."""
    model, data = options["model"], options["data"]
    try:
        read_document(model)
    except ModelFileError:
        with suppress(ModelFileError, OSError):
            read_document(data)
            raise click.UsageError(
                f"{data} is the model and {model} is not: the model comes first, as in "
                f"`blockl0 predict {data} {model}`."
            ) from None
        raise


@main.command(short_help="Choose the columns that explain the target, and fit them.")
@o.TABLE
@o.STREAM
@o.COLUMNS
@o.whole("--max-k", "Without -k: the largest number of columns to consider.  [default: 20]")
@o.SEARCH
@o.RULE
@o.FOLDS
@o.TEST
@o.option(
    "--prove",
    "Work for a proof, if one is possible, that no other choice is better: in units of 1e9 "
    "multiplications (about a second), counted so that any machine gives the same answer.",
    type=click.FloatRange(min=0.0),
    default=5.0,
    metavar="WORK",
)
@o.GAP
@o.HALVES
@o.file(
    "--proof",
    "Write a proof that `verify` checks, within --time-limit.  [default: 60 seconds]",
)
@o.SEED
@o.file("-o --out", "Save the model, as JSON for `predict`, `certify` and Python.")
@o.FORCE
@o.ANSWER
def fit(**options: Any) -> None:
    """Choose the columns of DATA that explain the target best, and fit them.

    DATA is a CSV, Excel, Parquet, LIBSVM, NPZ or MAT file, a folder of CSV or Parquet files, or -
    for standard input. Without -k the number of columns is chosen by cross-validation, or by
    --rule. Ctrl-C prints and saves the best model so far.
    """
    run("fit", options, "out", "proof")


@main.command(short_help="Find the best columns for every k.")
@o.TABLE
@o.STREAM
@o.LARGEST
@o.SEARCH
@o.RULE
@o.FOLDS
@o.HALVES
@o.SEED
@o.file("--csv", "Write the table as CSV.")
@o.file("--html", "Write the report page.")
@o.FORCE
@o.ANSWER
def path(**options: Any) -> None:
    """Find the best columns of DATA for every k, with the quality of each k.

    The table shows the fit, BIC and, for rules with folds, the accuracy or explained share on
    held-out rows; a star marks the k that --rule chooses. Ctrl-C prints the path so far.
    """
    run("path", options, "csv", "html")


@main.command(short_help="Say what is proven about a choice.")
@o.TABLE
@o.STREAM
@o.option("--model", "A saved model.", type=click.Path(path_type=Path), metavar="FILE")
@o.COLUMNS
@o.SEARCH
@o.whole("--level", "Change this many columns at once.", default=2)
@o.choice(
    "--outside",
    "refit fixed",
    "Whether the other chosen columns are re-fitted, or stay as they are.",
    "refit",
)
@o.whole("--samples", "Try this many random blocks instead of all.")
@o.both("--exact/--no-exact", "Require a proof of the optimum, or skip it.")
@o.GAP
@o.TEST
@o.SEED
@o.ANSWER
def certify(**options: Any) -> None:
    """Say what is proven about the columns of a model, on the DATA of its fit.

    With --model the answer is one saved by `fit --out`, and DATA are read as they were then;
    otherwise columns are chosen first (-k). A proof of the global optimum is tried as well if one
    may exist: with no more columns than rows, or with a ridge, which losses other than the squared
    one need. It gets as much work as in fit, twelve times that with --exact, or all of
    --time-limit. The exit code is 5 when a claim fails: there is a better choice, or --exact was
    given and the proof did not finish.
    """
    run("certify", options, reads_table=False)


@main.command(short_help="Check a proof of the optimum.")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@o.flag(
    "--exact",
    "Compute in integers and fractions, without any rounding: slower, for the squared loss.",
)
@o.TABLE
@o.TEST
@o.SEED
@o.ANSWER
def verify(**options: Any) -> None:
    """Check a proof FILE of `fit --proof`, or of Python's `proof=`, on its DATA.

    Nothing from the search that found it is used: all bounds are recomputed from the data, which
    must be read with the options of the fit, such as --test. The exit code is 1 if the proof is
    refused: it is damaged, is about other data, or proves less than it claims. The output reports
    the allowance for rounding; with --exact there is none.
    """
    run("verify", options, reads_table=False)


@main.command(short_help="Compare several methods on the same data.")
@o.TABLE
@o.whole("-k --columns", "At most this many columns.", required=True)
@o.several(
    "-m --method methods",
    "A method; give several.  [default: refit, exact if small, dec, forward, omp, cosamp, pgm, "
    "cvx-l1]",
    None,
    type=click.Choice(METHODS),
)
@o.option("--ridge", "Ridge penalty.", type=click.FloatRange(min=0.0))
@o.KEEP
@o.BOUNDS
@o.option("--effort", "Effort of refit: fast, balanced, thorough, or rounds.", type=o.EFFORT)
@o.option("--time-limit", "Limit for each method.", type=o.SECONDS, default=30.0, metavar="SECONDS")
@o.TEST
@o.SEED
@o.ANSWER
def compare(**options: Any) -> None:
    """Run several methods on DATA for the same k (squared loss, with an intercept).

    The objective is half the sum of squared errors, plus half the ridge times the squared norm of
    the coefficients. "same" is how many columns a choice shares with the best one. Ctrl-C prints
    the methods that are done.
    """
    run("compare", options)


@main.command(short_help="Apply a saved model to new rows.")
@click.argument("model", type=click.Path(path_type=Path), metavar="MODEL")
@click.argument("data", metavar="DATA")
@o.FORMAT
@o.STREAM
@o.flag("--proba", "Also predict the probabilities of the classes.")
@o.file("-o --out", "Write the predictions to this file, as CSV.")
@o.FORCE
@o.ANSWER
def predict(**options: Any) -> None:
    """Predict the rows of DATA by a MODEL that `fit --out` has saved.

    The columns of the model are found by name and prepared as they were for the fit; others are
    ignored. If DATA contains the target, the score is reported. Standard output is CSV, one
    line for each row.
    """
    run("predict", options, "out", reads_table=False)


@main.command(short_help="Write a page for people who write no code.")
@o.TABLE
@o.LARGEST
@o.SEARCH
@o.FOLDS
@o.HALVES
@o.SEED
@o.file("-o --out", "The page.", default=Path("report.html"))
@o.FORCE
@o.ANSWER
def report(**options: Any) -> None:
    """Write a page about DATA for people who write no code.

    One HTML file that needs no network: a slider over the number of columns, the chosen columns and
    their coefficients, cross-validation, and in plain words what is proven.
    """
    run("report", options, "out")


@main.command(short_help="Show the main steps on data that need no download.")
@o.option(
    "-o --out",
    "Folder for the page and the data.",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("blockl0-demo"),
)
@o.FORCE
def demo(out: Path, force: bool) -> None:
    """Solve, certify, compare and report, on data that need no download.

    It takes less than a minute, the compiler's first run included.
    """
    with Job("demo", {"out": out, "force": force}):
        from blockl0.app.demo import run

        run(out, force=force, echo=click.echo)


@main.command(short_help="Recompute the paper's tables and figures.")
@click.argument("what", type=click.Choice([*EXPERIMENTS, "all"]))
@o.flag("--quick", "About two minutes: one start, fewer problems.")
@o.whole("--seeds", "Random starts (5; with --quick 1).")
@o.whole("--jobs", "Processes (one for each core).")
@o.option(
    "--out",
    "Folder for the page, CSV, PNG, SVG and the finished cells.",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("reproduction"),
)
def reproduce(what: str, quick: bool, seeds: int | None, jobs: int | None, out: Path) -> None:
    """Recompute the paper's tables and figures beside the printed numbers.

    Every finished cell is saved at once: the same command resumes after an interruption. The sets
    of e2006 need their file, given by the environment variable BLOCKL0_E2006; without it they are
    skipped.
    """
    # one thread per process, before any linear algebra library is loaded
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from dataclasses import replace

    from joblib import cpu_count

    from blockl0.paper import profile as profiles
    from blockl0.paper.reproduce import reproduce as recompute

    profile = profiles.QUICK if quick else profiles.FULL
    if seeds is not None:
        profile = replace(profile, seeds=seeds)
    names = EXPERIMENTS if what == "all" else (what,)
    with Job("reproduce", {}):
        try:
            page = recompute(names, profile, out, jobs=jobs or cpu_count(), echo=click.echo)
        except KeyboardInterrupt:
            click.echo(f"\nStopped. Finished cells are in {out}; to resume:\n  {command_line()}")
            raise SystemExit(INTERRUPTED) from None
    click.echo(f"The page is {page}")
