"""Data larger than memory: read in parts, and kept as moments."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from blockl0.app.cli.data import COLUMNS, NUMBERS, CommandData, few_numbers_note, nothing_to_explain
from blockl0.app.cli.job import DATA, Job, Refused
from blockl0.app.cli.options import FOLD_RULES
from blockl0.app.cli.progress import progress
from blockl0.app.tables.chunks import FORMATS, Chunks, bytes_in_memory, find_files, free_memory
from blockl0.app.tables.csv_text import DIALECT, make_dialect
from blockl0.losses import get_loss

SHARE = 0.25
"""Share of the free memory for the numbers of a file; reading needs about four times that."""
SMALL = 1 << 24
"""Bytes of a file that is always read at once."""
STEPS = 1000
"""Steps of a progress bar."""
NOT_IN_PARTS = {
    "test": "--test holds rows out",
    "half_samples": "--half-samples chooses again on halves of the rows",
    "html": "--html writes a page about single rows",
    "proof": "--proof writes a proof about the rows, for `verify` to read",
}
"""Options that need the rows themselves, and why."""


def why_in_parts(options: dict[str, Any]) -> str | None:
    """Say why data are read in parts: requested, a folder, or too large; None if they are not."""
    source, is_asked = options["data"], bool(options.get("stream"))
    if source == "-":
        if is_asked:
            raise Refused("--stream reads files twice, and standard input can be read once.", DATA)
        return None
    files, format = find_files(source, options["format"])
    if is_asked or Path(source).is_dir():
        if format not in FORMATS:
            raise Refused(f"--stream reads CSV and Parquet files, not {format}.", DATA)
        return "--stream asks for it" if is_asked else "it is a folder"
    free = free_memory() if format in FORMATS else None
    if free is None or max(file.stat().st_size for file in files) < SMALL:
        return None  # small files need no further checks
    needed = bytes_in_memory(files, format)
    if needed <= SHARE * free:
        return None
    return f"its numbers take about {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free"


def load_in_parts(job: Job, options: dict[str, Any], why: str) -> CommandData:
    """Read the data of a command in two passes."""
    _refuse(job, options, why)
    from blockl0.app.tables.streaming import learn_columns, sum_up
    from blockl0.estimators.folds import fold_labels
    from blockl0.estimators.linear import seed_of

    source = options["data"]
    files, format = find_files(source, options["format"])
    chunks = Chunks(
        files, format, options["na"], options["header"], options["decimal"],
        options["as_category"], make_dialect({name: options[name] for name in DIALECT}),
    )  # fmt: skip
    given = {name: options[name] for name in COLUMNS}
    target, drop = given.pop("target"), given.pop("drop")
    with job.timed("read"), progress("Reading, first pass", job.quiet) as shown:
        tell = partial(tell_share, shown)
        learned = learn_columns(chunks, target=target, drop=drop, tell=tell, **given)
    job.notice(f"{source} is read in parts, since {why}.")
    _check_target(job, learned, options)
    folds = options.get("folds", 1) if options.get("rule") in FOLD_RULES else 1
    folds = 1 if options.get("columns") is not None else folds
    labels = partial(fold_labels, folds, seed=seed_of(options["seed"]))
    with job.timed("read"), progress("Reading, second pass", job.quiet) as shown:
        table = sum_up(
            chunks, learned, target=target, drop=drop, source=str(source), n_folds=folds,
            labels=labels, tell=partial(tell_share, shown), impute=given["impute"],
        )  # fmt: skip
    return CommandData(table, NUMBERS)


def tell_share(shown: Any, share: float, text: str) -> None:
    """Show the share of all files read so far."""
    shown(round(STEPS * share), STEPS, text)


def _refuse(job: Job, options: dict[str, Any], why: str) -> None:
    """Refuse options that moments cannot serve, before anything is read."""
    needs = "the rows in memory, but"
    if "stream" not in options:
        raise Refused(
            f"`{job.command}` needs {needs} {why}; `fit`, `path`, `certify` and `predict` read in "
            "parts, or give a sample of the rows.",
            DATA,
        )
    for name, reason in NOT_IN_PARTS.items():
        if options.get(name):
            raise Refused(f"{reason}, which needs {needs} {why}.", DATA)
    if isinstance(options["target"], list):
        raise Refused(
            f"Several --target need {needs} {why}; explain each by itself, or give a sample of the "
            "rows.",
            DATA,
        )
    loss = options.get("loss")
    if loss is not None and not get_loss(loss).is_quadratic:
        raise Refused(
            f"Loss {loss} needs {needs} {why}; read in parts, moments hold what the squared loss "
            "needs. Give a sample of the rows.",
            DATA,
        )


def _check_target(job: Job, learned: Any, options: dict[str, Any]) -> None:
    """Check for numbers that are not all the same."""
    if learned.label is not None:
        raise Refused(
            f"{learned.target!r} holds labels, as {learned.label!r}: the classes of a logistic "
            "loss need the rows in memory. Give a target of numbers, or a sample of the rows.",
            DATA,
        )
    values = learned.y.few_values
    if values is not None and len(values) == 1:
        raise nothing_to_explain(learned.target, f"{values[0]:g}", learned.n_rows)
    if options.get("loss") is None and values is not None:
        few_numbers_note(job, learned.target, values, learned.n_rows)
