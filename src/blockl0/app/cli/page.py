"""The report page, for the commands that write one."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

from blockl0.app.cli.output import DATA, Job, Refused, save
from blockl0.text import listing


def write_report(job: Job, data: Any, options: dict[str, Any], file: Path, k: int | None) -> Any:
    """Make the report page of the data, and write it."""
    from blockl0.app.cli.data import bounds_of, class_weights, costs_of, kept_columns, largest_size
    from blockl0.app.cli.progress import aborting, progress
    from blockl0.app.report import make_report

    table_, given = data.table, {"effort": options["effort"] or "fast", "cv": options["folds"]}
    if options["ridge"] is not None:
        given["ridge"] = options["ridge"]
    with job.timed("report"), progress("Report", job.quiet) as shown, aborting():
        report = make_report(
            data.X, data.y, feature_names=table_.feature_names, target=table_.target,
            loss=data.loss, n_nonzero_coefs=largest_size(job, data, k),
            keep=kept_columns(table_, options["keep"]), random_state=options["seed"],
            feature_groups=table_.groups, costs=costs_of(data, options),
            bounds=bounds_of(table_, options), class_weight=class_weights(data, options),
            references={u.name: u.reference for u in table_.units if u.reference is not None},
            time_limit=options["time_limit"], n_jobs=options["jobs"],
            half_samples=options["half_samples"], source=table_.source,
            fingerprint=table_.fingerprint, notes=table_.notes, command=command_line(),
            progress=shown, **given,
        )  # fmt: skip
        html = report.to_html()
    save(file, html, options["force"])
    return report


def refuse_several(data: Any) -> None:
    """Refuse several targets before any work is done: the page covers one."""
    names = data.table.targets
    if len(names) > 1:
        given = [f"--target {shlex.quote(name)}" for name in names]
        raise Refused(
            "A page is about one target: its scores, pictures and sentences are those of one. Make "
            f"one for each ({listing(given)}); fit and path show the columns that suit them "
            "together.",
            DATA,
        )


def command_line() -> str:
    """Return the command as it was typed."""
    return shlex.join(["blockl0", *sys.argv[1:]])
