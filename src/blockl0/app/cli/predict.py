"""`blockl0 predict`: apply a saved model to new rows."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from blockl0.app.cli import options as shared
from blockl0.app.cli.output import Job, check_outputs, save
from blockl0.errors import ModelFileError
from blockl0.files import check_exists, read_document
from blockl0.text import as_csv


@click.command("predict", short_help="Apply a saved model to new rows.")
@click.argument("model", type=click.Path(path_type=Path), metavar="MODEL")
@click.argument("data", metavar="DATA")
@shared.format_options
@shared.stream_option
@click.option("--proba", is_flag=True, help="Probabilities of the classes, too.")
@shared.out_option("Write the predictions there, as CSV.")
@shared.force_option
@shared.output_options
def command(**options: Any) -> None:
    """Predict the rows of DATA by a MODEL that `fit --out` has saved.

    The columns of the model are found by name and prepared as they were for the fit; others are
    ignored. If DATA contains the target, the score is reported. Standard output is CSV, one
    line for each row.
    """
    with Job("predict", options) as job:
        check_outputs(options, "out")
        check_exists(options["model"], "model file")
        _refuse_swapped(options)  # before anything slow is imported
        from blockl0.app.model_file import load_model

        model = load_model(options["model"])
        from blockl0.app.cli.stream import why_in_parts

        if (why := why_in_parts(options)) is not None:
            from blockl0.app.cli.predict_parts import predict_in_parts

            predict_in_parts(job, model, options, why)
            return
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
        text = as_lines(model, prediction, shares)
        save(options["out"], text, options["force"])
        where = f"{raw.n_rows} predictions are in {options['out']}"
        job.answer(result, [where if options["out"] else text.rstrip("\n")])


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


def _read(job: Job, model: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """Read the new rows, and the columns of the model in them."""
    from blockl0.app.cli.data import decimal_of
    from blockl0.app.tables import apply_recipe
    from blockl0.app.tables.formats import read_raw
    from blockl0.app.tables.recipe import unseen

    with job.timed("read"):
        how = reading_of(model, options)
        raw = read_raw(
            options["data"], format=options["format"], sheet=options["sheet"],
            likely_decimal=decimal_of(model), **how,
        )  # fmt: skip
        job.data = {"source": raw.source, "n_samples": raw.n_rows}
        X = apply_recipe(raw, model.features)
    for note in (*raw.notes, *(unseen(raw.data, model.features) if how["as_text"] else ())):
        job.notice(note)
    return raw, X


def _tell_rows(job: Job, model: Any, raw: Any, X: Any) -> None:
    """Warn if the rows are those of the fit, for which a score means little."""
    from blockl0.app.cli.data import rows_of_fit
    from blockl0.app.tables.table import rows_fingerprint

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


def reading_of(model: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Return how to read the data: as requested, else as in the fit."""
    from blockl0.app.cli.data import stored
    from blockl0.app.model_checks import check_reading
    from blockl0.app.tables.csv_text import DIALECT

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


def _score_of(job: Job, model: Any, target: str, raw: Any, eta: Any) -> dict[str, Any] | None:
    """Score the predictions of one target."""
    from sklearn.metrics import accuracy_score

    from blockl0.app.tables.targets import clean_target, is_missing, split_target

    if target not in raw.names and raw.y is None:
        return None
    try:
        y = split_target(raw, target)[2]
        is_known = ~is_missing(y)
        if not is_known.any():
            return None
        y, eta = clean_target(y[is_known], target), eta[is_known]
        if model.classes is not None:
            value = accuracy_score(*_comparable(y, model.answer(eta)))
        else:
            value = model.loss_object.score(eta, y)
    except ValueError as error:
        job.notice(f"The target is in the data, but there is no score: {error}")
        return None
    metric = model.loss_object.words.score
    where = "" if len(y) == raw.n_rows else f" in {len(y)} of {raw.n_rows} rows"
    job.notice(f"{metric} {value:.4g}: the data hold {target!r} as well{where}.")
    found = {"metric": metric, "value": float(value), "n_samples": len(y)}
    return found | _scores_of_classes(job, model, y, eta)


def _scores_of_classes(job: Job, model: Any, y: Any, eta: Any) -> dict[str, Any]:
    """Compute AUC, log loss and recalls if all rows are of the classes of the model."""
    import numpy as np

    from blockl0.app.cli.fit_text import class_line
    from blockl0.estimators.class_scores import class_scores

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


def as_lines(model: Any, prediction: Any, shares: Any) -> str:
    """Format the predictions as CSV."""
    if shares is None:
        return as_csv(model.targets, prediction.reshape(len(prediction), -1).tolist())
    names = [f"P({label})" for label in model.classes]
    rows = zip(prediction.tolist(), shares.tolist(), strict=True)
    return as_csv([model.target, *names], ([value, *row] for value, row in rows))
