"""`blockl0 report`: one page that answers which columns, and whether that can be trusted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from blockl0.app import report as pages
from blockl0.app.cli.data import CommandData
from blockl0.app.cli.job import Answer, Job, command_line, save
from blockl0.app.cli.models import costs_of, largest_size
from blockl0.app.cli.progress import aborting, progress
from blockl0.app.cli.structure import bounds_of, class_weights, kept_columns


def run(job: Job, data: CommandData, options: dict[str, Any]) -> Answer:
    """Write the page."""
    report = write_report(job, data, options, options["out"], options["max_k"])
    result = {"page": str(options["out"]), **report.to_dict()} if job.as_json else {}
    return Answer(result, [f"The page is {options['out']}"])


def write_report(job: Job, data: Any, options: dict[str, Any], file: Path, k: int | None) -> Any:
    """Make the report page of the data, and write it."""
    table, given = data.table, {"effort": options["effort"] or "fast", "cv": options["folds"]}
    if options["ridge"] is not None:
        given["ridge"] = options["ridge"]
    with job.timed("report"), progress("Report", job.quiet) as shown, aborting():
        report = pages.make_report(
            data.X, data.y, feature_names=table.feature_names, target=table.target,
            loss=data.loss, n_nonzero_coefs=largest_size(job, data, k),
            keep=kept_columns(table, options["keep"]), random_state=options["seed"],
            feature_groups=table.groups, costs=costs_of(data, options),
            bounds=bounds_of(table, options),
            class_weight=class_weights(table.target, data.labels, options),
            references={u.name: u.reference for u in table.units if u.reference is not None},
            time_limit=options["time_limit"], n_jobs=options["jobs"],
            half_samples=options["half_samples"], source=table.source,
            fingerprint=table.fingerprint, notes=table.notes, command=command_line(),
            progress=shown, **given,
        )  # fmt: skip
        html = report.to_html()
    save(file, html, options["force"])
    return report
