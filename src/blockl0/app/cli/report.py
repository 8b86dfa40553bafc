"""`blockl0 report`: one page that answers which columns, and whether that can be trusted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from blockl0.app.cli import options as shared
from blockl0.app.cli.output import Job, check_outputs


@click.command("report", short_help="Write a page for people who write no code.")
@shared.data_options
@click.option(
    "-k",
    "--max-k",
    type=click.IntRange(min=1),
    help="The largest number of columns.  [default: 20]",
)
@shared.search_options
@shared.costs_option
@shared.class_weight_option
@click.option("--folds", type=click.IntRange(min=2), default=5, show_default=True)
@click.option(
    "--jobs", type=click.IntRange(min=1), help="Number of folds to run in parallel.  [default: 1]"
)
@shared.halves_option
@shared.seed_option
@shared.out_option("The page.", default=Path("report.html"), show_default=True)
@shared.force_option
@shared.output_options
def command(**options: Any) -> None:
    """Write a page about DATA for people who write no code.

    One HTML file that needs no network: a slider over the number of columns, the chosen columns and
    their coefficients, cross-validation, and in plain words what is proven.
    """
    with Job("report", options) as job:
        check_outputs(options, "out")
        from blockl0.app.cli.data import check_folds, check_names, load
        from blockl0.app.cli.page import refuse_several, write_report

        data = load(job, options)
        refuse_several(data)
        check_names(data, options)
        check_folds(data, options["folds"])
        report = write_report(job, data, options, options["out"], options["max_k"])
        result = {"page": str(options["out"]), **report.to_dict()} if job.as_json else {}
        job.answer(result, [f"The page is {options['out']}"])
