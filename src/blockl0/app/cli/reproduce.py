"""`blockl0 reproduce`: the paper's tables and figures."""

from __future__ import annotations

import os
from pathlib import Path

import click

from blockl0.app.cli.output import INTERRUPTED, Job
from blockl0.app.cli.page import command_line

EXPERIMENTS = ("table1", "table2", "table3", "figure1", "figure2", "differences")
"""As in `blockl0.paper.reproduce`, which is too slow to import for a help text."""


@click.command("reproduce", short_help="Recompute the paper's tables and figures.")
@click.argument("what", type=click.Choice([*EXPERIMENTS, "all"]))
@click.option("--quick", is_flag=True, help="About two minutes: one start, fewer problems.")
@click.option("--seeds", type=click.IntRange(min=1), help="Random starts (5; with --quick 1).")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes (one for each core).")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("reproduction"),
    show_default=True,
    help="Folder for the page, CSV, PNG, SVG and the finished cells.",
)
def command(what: str, quick: bool, seeds: int | None, jobs: int | None, out: Path) -> None:
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
    from blockl0.paper.reproduce import reproduce as run

    profile = profiles.QUICK if quick else profiles.FULL
    if seeds is not None:
        profile = replace(profile, seeds=seeds)
    names = EXPERIMENTS if what == "all" else (what,)
    with Job("reproduce", {}):
        try:
            path = run(names, profile, out, jobs=jobs or cpu_count(), echo=click.echo)
        except KeyboardInterrupt:
            click.echo(f"\nStopped. Finished cells are in {out}; to resume:\n  {command_line()}")
            raise SystemExit(INTERRUPTED) from None
    click.echo(f"The page is {path}")
