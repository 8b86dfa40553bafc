"""`blockl0 predict` of data larger than memory: a part after the other, into a file."""

from __future__ import annotations

from typing import Any

import click

from blockl0.cli.output import DATA, Job, Refused
from blockl0.cli.predict import as_lines, reading_of
from blockl0.cli.progress import progress
from blockl0.cli.stream import tell_share
from blockl0.files import open_whole
from blockl0.problem.moments import Moments
from blockl0.tables import apply_recipe
from blockl0.tables.chunks import Chunk, Chunks, find_files
from blockl0.tables.recipe import unseen
from blockl0.tables.targets import clean_target, is_missing, split_target
from blockl0.text import count


def predict_in_parts(job: Job, model: Any, options: dict[str, Any], why: str) -> None:
    """Write the predictions of all rows to a file."""
    if options["out"] is None:
        raise click.UsageError(
            f"Give --out FILE for the predictions: data are read in parts, since {why}."
        )
    files, format = find_files(options["data"], options["format"])
    chunks = Chunks(files, format, **reading_of(model, options))
    job.notice(f"{options['data']} is read in parts, since {why}.")
    seen, n_rows = Moments(), 0
    with (
        job.timed("predict"),
        progress("Predicting", job.quiet) as shown,
        open_whole(options["out"], options["force"]) as file,
    ):
        for chunk in chunks:
            eta = _predictor(job, chunks, chunk, model)
            shares = model.probabilities(eta) if options["proba"] else None
            head, _, lines = as_lines(model, model.answer(eta), shares).partition("\n")
            file.write((lines if n_rows else f"{head}\n{lines}").encode())
            _compare(seen, chunk, model, eta)
            n_rows += len(eta)
            tell_share(shown, chunk.share, count(n_rows, "row"))
    job.data = {"source": str(options["data"]), "n_samples": n_rows}
    result = {
        "target": model.target, "n_samples": n_rows, "classes": model.classes,
        "score": _score(job, seen, model),
    }  # fmt: skip
    job.answer(result, [f"{n_rows} predictions are in {options['out']}"])


def _predictor(job: Job, chunks: Chunks, chunk: Chunk, model: Any) -> Any:
    """The linear predictor of the rows of a part; what may mean something else is refused."""
    found, columns = chunk.found, [feature.column for feature in model.features]
    if found is not None:
        for name in columns:
            if name in found.lone:
                raise Refused(found.lone[name], DATA)
        if chunks.decimal == "auto":
            chunks.shown = chunks.shown or found.shown
    X = apply_recipe(chunk.raw, model.features)
    for note in unseen(chunk.raw.data, model.features) if chunks.as_text else ():
        job.notice(note)
    return model.decide(X)


def _compare(seen: Moments, chunk: Chunk, model: Any, eta: Any) -> None:
    """Keep what the score of numbers needs, where a part holds the target as well."""
    if not model.loss_object.is_quadratic or model.target not in chunk.raw.names:
        return
    y = split_target(chunk.raw, model.target)[2]
    known = ~is_missing(y)
    if known.any():
        seen.update(eta[known, None], clean_target(y[known], model.target))


def _score(job: Job, seen: Moments, model: Any) -> dict[str, Any] | None:
    if seen.n_features == 0:
        return None
    import numpy as np

    metric, value = model.loss_object.words.score, seen.explained(np.ones(1), 0.0)
    job.notice(f"{metric} {value:.4g}: the data hold {model.target!r} as well.")
    return {"metric": metric, "value": value, "n_samples": seen.n_samples}
