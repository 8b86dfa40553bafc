"""`blockl0 demo`: the main job on data that need no download."""

from __future__ import annotations

from pathlib import Path

import click

from blockl0.app.cli import options as shared
from blockl0.app.cli.output import Job


@click.command("demo", short_help="The main job on data that need no download.")
@click.option(
    "-o",
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("blockl0-demo"),
    show_default=True,
    help="Folder for the page and the data.",
)
@shared.force_option
def command(out: Path, force: bool) -> None:
    """Solve, certify, compare and report, on data that need no download.

    It takes less than a minute, the compiler's first run included.
    """
    with Job("demo", {"out": out, "force": force}):
        from blockl0.app.demo import run

        run(out, force=force, echo=click.echo)
