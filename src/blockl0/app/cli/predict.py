"""`blockl0 predict`: apply a saved model to new rows, at once or part by part into a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import click
import numpy as np

from blockl0.app.cli.data import decimal_of, rows_of_fit, stored
from blockl0.app.cli.job import DATA, Answer, Job, Refused, save
from blockl0.app.cli.progress import progress
from blockl0.app.cli.stream import tell_share, why_in_parts
from blockl0.app.model_checks import check_reading
from blockl0.app.model_file import load_model
from blockl0.app.tables import apply_recipe
from blockl0.app.tables.chunks import Chunk, Chunks, find_files
from blockl0.app.tables.csv_text import DIALECT, make_dialect
from blockl0.app.tables.formats import Raw, read_raw
from blockl0.app.tables.learn import ColumnStats
from blockl0.app.tables.recipe import Choices, unseen
from blockl0.app.tables.rows import clean_target, is_missing, split_target
from blockl0.app.tables.table import rows_fingerprint
from blockl0.files import open_whole
from blockl0.problem.moments import Moments
from blockl0.text import as_csv, count


def run(job: Job, options: dict[str, Any]) -> Answer:
    """Predict the rows of a file, at once or in parts."""
    model = load_model(options["model"])
    if (why := why_in_parts(options)) is not None:
        return _predict_in_parts(job, model, options, why)
    raw, X = _read(job, model, options)
    _tell_rows(job, model, raw, X)
    with job.timed("predict"):
        eta = model.decide(X)
        prediction = model.answer(eta)
        shares = model.probabilities(eta) if options["proba"] else None
    result = {
        "target": model.target,
        "targets": list(model.targets),
        "n_samples": raw.n_rows,
        "predictions": prediction,
        "classes": model.classes,
        "probabilities": shares,
        "score": _score(job, model, raw, eta),
    }
    text = _as_lines(model, prediction, shares)
    save(options["out"], text, options["force"])
    where = f"{raw.n_rows} predictions are in {options['out']}"
    return Answer(result, [where if options["out"] else text.rstrip("\n")])


def _read(job: Job, model: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """Read the new rows, and the columns of the model in them."""
    with job.timed("read"):
        how = _reading_of(model, options)
        raw = read_raw(
            options["data"], format=options["format"], sheet=options["sheet"],
            likely_decimal=decimal_of(model), **how,
        )  # fmt: skip
        job.data = {"source": raw.source, "n_samples": raw.n_rows}
        X = apply_recipe(raw, model.features)
    # without columns of text every value is a number, and nothing can be new
    for note in (*raw.notes, *(unseen(raw.data, model.features) if how["as_text"] else ())):
        job.notice(note)
    return raw, X


def _tell_rows(job: Job, model: Any, raw: Any, X: Any) -> None:
    """Warn if the rows are those of the fit, for which a score means little."""
    known = model.metadata.get("data")
    mark = known.get("rows") if isinstance(known, dict) else None
    if mark is None:
        return
    which, n_fit = "These are", raw.n_rows
    if rows_fingerprint(X) != mark:
        rows = rows_of_fit(raw, {**model.metadata.get("reading", {}), "loss": model.loss})
        if rows is None or rows_fingerprint(X[rows]) != mark:
            return
        n_fit = len(rows)
        which = f"{n_fit} of the {raw.n_rows} rows are"
    job.data["n_of_fit"] = n_fit
    job.notice(
        f"{which} the rows of the fit: a score on them says how well the model fits, not how well "
        "it predicts new rows."
    )


def _reading_of(model: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Return how to read the data: as requested, else as in the fit."""
    known = stored(options["model"], check_reading, model.metadata)
    given = {
        name: options[name] if options[name] != "auto" else known.get(name, "auto")
        for name in ("header", "decimal")
    }
    for name in DIALECT:
        given[name] = options[name] if options[name] is not None else known.get(name)
    # text in the fit stays text: 01 is not 1
    texts = tuple(feature.column for feature in model.features if feature.kind == "level")
    return {**given, "na": (*known.get("na", ()), *options["na"]), "as_text": texts}


def _score(job: Job, model: Any, raw: Any, eta: Any) -> dict[str, Any] | None:
    """Score the predictions on the rows that have a target."""
    if len(model.targets) == 1:
        return _score_of(job, model, model.target, raw, eta)
    each = {
        name: _score_of(job, model, name, raw, eta[:, j]) for j, name in enumerate(model.targets)
    }
    return each if any(found is not None for found in each.values()) else None


def _known_target(raw: Raw, target: str) -> tuple[Any, Any] | None:
    """Return (which rows have the target, its values there as they are), None if none has."""
    if target not in raw.names and raw.y is None:
        return None
    y = split_target(raw, target)[2]
    is_known = ~is_missing(y)
    return (is_known, y[is_known]) if is_known.any() else None


def _score_of(job: Job, model: Any, target: str, raw: Any, eta: Any) -> dict[str, Any] | None:
    """Score the predictions of one target."""
    from sklearn.metrics import accuracy_score

    try:
        known = _known_target(raw, target)
        if known is None:
            return None
        y, eta = clean_target(known[1], target), eta[known[0]]
        if model.classes is not None:
            value = accuracy_score(*_comparable(y, model.answer(eta)))
        else:
            value = model.loss_object.score(eta, y)
    except ValueError as error:
        job.notice(f"The target is in the data, but there is no score: {error}")
        return None
    metric = model.loss_object.words.score
    where = "" if len(y) == raw.n_rows else f" ({len(y)} of {raw.n_rows})"
    job.notice(f"{metric} {value:.4g} on the rows that have {target!r}{where}.")
    found = {"metric": metric, "value": float(value), "n_samples": len(y)}
    return found | _scores_of_classes(job, model, y, eta)


def _scores_of_classes(job: Job, model: Any, y: Any, eta: Any) -> dict[str, Any]:
    """Compute AUC, log loss and recalls if all rows are of the classes of the model."""
    from blockl0.app.cli.fit_text import class_line
    from blockl0.estimators.reading import class_scores

    if model.classes is None:
        return {}
    seen, labels = _comparable(y, model.classes)
    if not np.isin(seen, labels).all():
        return {}
    order = np.argsort(labels)
    codes = order[np.searchsorted(labels, seen, sorter=order)]
    shares = model.probabilities(eta) if model.loss_object.has_probabilities else None
    found = class_scores(eta, codes, model.classes, shares)
    job.notice(f"{class_line(found)}.")
    return found


def _comparable(y: Any, prediction: Any) -> tuple[Any, Any]:
    """Make labels of two sources comparable: numbers as numbers, others as text."""
    if y.dtype.kind in "bf" and prediction.dtype.kind in "biuf":
        return y.astype(float), prediction.astype(float)
    return y.astype(str), prediction.astype(str)


def _as_lines(model: Any, prediction: Any, shares: Any) -> str:
    """Format the predictions as CSV."""
    if shares is None:
        return as_csv(model.targets, prediction.reshape(len(prediction), -1).tolist())
    names = [f"P({label})" for label in model.classes]
    rows = zip(prediction.tolist(), shares.tolist(), strict=True)
    return as_csv([model.target, *names], ([value, *row] for value, row in rows))


# -- part by part ----------------------------------------------------------------------------------


def _predict_in_parts(job: Job, model: Any, options: dict[str, Any], why: str) -> Answer:
    """Write the predictions of all rows to a file."""
    if options["out"] is None:
        raise click.UsageError(
            f"Give --out FILE for the predictions: data are read in parts, since {why}."
        )
    files, format = find_files(options["data"], options["format"])
    how = _reading_of(model, options)
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
            head, _, lines = _as_lines(model, model.answer(eta), shares).partition("\n")
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
    return Answer(result, [f"{n_rows} predictions are in {options['out']}"])


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
        found = chunk.found
        if found is not None and self.target in found.lone:
            raise ValueError(found.lone[self.target])
        known = _known_target(chunk.raw, self.target)
        if known is None:
            return
        values = clean_target(known[1], self.target)
        if values.dtype.kind not in "biuf":
            raise ValueError(f"{self.target!r} holds labels, as {str(values[0])!r}.")
        self.y.name = self.target
        self.y.add(known[1], Choices(), found)
        self.y.refuse_spellings()
        self.moments.update(eta[known[0], None], values)

    def score(self, job: Job, metric: str) -> dict[str, Any] | None:
        """Compute the explained share, with a notice."""
        if self.why is not None:
            job.notice(f"The target is in the data, but there is no score: {self.why}")
        if self.why is not None or self.moments.n_features == 0:
            return None
        value = self.moments.explained(np.ones(1), 0.0)
        job.notice(f"{metric} {value:.4g} on the rows that have {self.target!r}.")
        return {"metric": metric, "value": value, "n_samples": self.moments.n_samples}
