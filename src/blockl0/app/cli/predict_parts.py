"""`blockl0 predict` of data larger than memory: part by part, into a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import click
import numpy as np

from blockl0.app.cli.output import DATA, Job, Refused
from blockl0.app.cli.predict import as_lines, reading_of
from blockl0.app.cli.progress import progress
from blockl0.app.cli.stream import tell_share
from blockl0.app.tables import apply_recipe
from blockl0.app.tables.chunks import Chunk, Chunks, find_files
from blockl0.app.tables.column_stats import ColumnStats
from blockl0.app.tables.csv_text import DIALECT, make_dialect
from blockl0.app.tables.recipe import Choices, unseen
from blockl0.app.tables.targets import clean_target, is_missing, split_target
from blockl0.files import open_whole
from blockl0.problem.moments import Moments
from blockl0.text import count


def predict_in_parts(job: Job, model: Any, options: dict[str, Any], why: str) -> None:
    """Write the predictions of all rows to a file."""
    if options["out"] is None:
        raise click.UsageError(
            f"Give --out FILE for the predictions: data are read in parts, since {why}."
        )
    files, format = find_files(options["data"], options["format"])
    how = reading_of(model, options)
    dialect = make_dialect({name: how.pop(name) for name in DIALECT})
    chunks = Chunks(files, format, **how, dialect=dialect)
    job.notice(f"{options['data']} is read in parts, since {why}.")
    columns = {f.column: ColumnStats(f.column) for f in model.features if f.kind == "number"}
    compared, n_rows = _Compared(model.target), 0
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
            _look(columns, chunk)
            if model.loss_object.is_quadratic:
                compared.add(chunk, eta)
            n_rows += len(eta)
            tell_share(shown, chunk.share, count(n_rows, "row"))
        for column in columns.values():  # before the file is renamed
            column.refuse_spellings()
    for note in chunks.notes:
        job.notice(note)
    job.data = {"source": str(options["data"]), "n_samples": n_rows}
    result = {
        "target": model.target, "n_samples": n_rows, "classes": model.classes,
        "score": compared.score(job, model.loss_object.words.score),
    }  # fmt: skip
    job.answer(result, [f"{n_rows} predictions are in {options['out']}"])


def _predictor(job: Job, chunks: Chunks, chunk: Chunk, model: Any) -> Any:
    """Compute the linear predictor of the rows of a part, refusing ambiguous numbers."""
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


def _look(columns: dict[str, ColumnStats], chunk: Chunk) -> None:
    """Track how the numbers of a part are spelled, even if they look like dates.

    A single part is consistent even if 12% in one part is 0.12 in another.
    """
    choices = Choices(as_number=tuple(columns))
    for name, column in columns.items():
        column.add(chunk.raw.data[name], choices, chunk.found)


@dataclass
class _Compared:
    """Predictions beside the target, part by part, or the first reason for having no score."""

    target: str
    moments: Moments = field(default_factory=Moments)
    y: ColumnStats = field(default_factory=lambda: ColumnStats(""))
    why: str | None = None

    def add(self, chunk: Chunk, eta: Any) -> None:
        """Add a part, if it also holds the target."""
        if self.why is not None or self.target not in chunk.raw.names:
            return
        try:
            self._add(chunk, eta)
        except ValueError as error:
            self.why = str(error)

    def _add(self, chunk: Chunk, eta: Any) -> None:
        found, y = chunk.found, split_target(chunk.raw, self.target)[2]
        if found is not None and self.target in found.lone:
            raise ValueError(found.lone[self.target])
        known = ~is_missing(y)
        if not known.any():
            return
        values = clean_target(y[known], self.target)
        if values.dtype.kind not in "biuf":
            raise ValueError(f"{self.target!r} holds labels, as {str(values[0])!r}.")
        self.y.name = self.target
        self.y.add(y[known], Choices(), found)
        self.y.refuse_spellings()
        self.moments.update(eta[known, None], values)

    def score(self, job: Job, metric: str) -> dict[str, Any] | None:
        """Compute the explained share, with a notice."""
        if self.why is not None:
            job.notice(f"The target is in the data, but there is no score: {self.why}")
        if self.why is not None or self.moments.n_features == 0:
            return None
        value = self.moments.explained(np.ones(1), 0.0)
        job.notice(f"{metric} {value:.4g}: the data hold {self.target!r} as well.")
        return {"metric": metric, "value": value, "n_samples": self.moments.n_samples}
