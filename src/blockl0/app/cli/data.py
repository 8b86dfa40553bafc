"""Data of a command: reading, holding rows out, the loss, and checks of options against them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from shlex import quote
from typing import Any

import numpy as np

from blockl0.app.cli.job import DATA, Job, Refused
from blockl0.app.cli.options import FOLD_RULES
from blockl0.app.cli.structure import LABELS, bounds_of, class_weights, kept_columns
from blockl0.app.tables import Table, apply_recipe, prepare, whole_rows, with_target
from blockl0.app.tables.column_kinds import FEW_CODES, MANY_ROWS
from blockl0.app.tables.csv_text import DIALECT
from blockl0.app.tables.formats import Raw, read_raw
from blockl0.app.tables.recipe import unseen
from blockl0.app.tables.rows import clean_targets, split_targets
from blockl0.losses import get_loss
from blockl0.text import clause, listing

NUMBERS = "squared"
"""Default loss for numbers."""
MOST_LABELS = 20
"""Labels always accepted as classes; more may be up to half the number of rows."""
COLUMNS = (
    "target", "text", "impute", "dates", "drop", "max_levels", "date_order", "as_category",
    "as_number", "levels",
)  # fmt: skip
"""Options that say how to treat columns."""
READING = (*COLUMNS, "na", "header", "decimal", "format", "sheet", *DIALECT, "test", "seed")
"""Options that determine the rows and columns of a fit, stored in a model file."""
STORED = ("positive", "bounds", "class_weight")
"""Options of the problem, several values each, stored in a model file."""
MUCH_WIDER = 3.0
"""Ratio of standard deviations of targets above which the widest dominates."""


@dataclass(frozen=True, eq=False)
class CommandData:
    """The rows of the fit, held-out rows, and the loss for the target."""

    table: Table
    loss: str
    X_test: Any = None
    y_test: Any = None

    @property
    def is_streamed(self) -> bool:
        """Whether the columns are moments, which include the target."""
        return self.table.y is None

    @property
    def X(self) -> Any:
        """Training columns."""
        return self.table.X

    @property
    def y(self) -> Any:
        """Training target, encoded for the loss; None for moments."""
        return None if self.is_streamed else self.coded(self.table.y)

    @property
    def labels(self) -> Any:
        """Training target if it holds labels, else None."""
        return self.y if self.is_classification else None

    @property
    def n_units(self) -> int:
        """Number of candidate columns of the table; a category counts once."""
        return len(self.table.units)

    @property
    def unit_names(self) -> list[str]:
        """Names of the candidate columns."""
        return [unit.name for unit in self.table.units]

    def names_of(self, columns: Any) -> list[str]:
        """Name some columns of X, with categories in place of their levels."""
        chosen = np.unique(self.table.unit_of[np.asarray(columns, dtype=np.int64)])
        return [self.table.units[int(unit)].name for unit in chosen]

    @property
    def is_classification(self) -> bool:
        """Whether y holds labels."""
        return is_for_labels(self.loss)

    @property
    def is_quadratic(self) -> bool:
        """Whether the loss is half the squared error."""
        return get_loss(self.loss).is_quadratic

    @property
    def metric(self) -> str:
        """Name of the score."""
        return get_loss(self.loss).words.score

    def coded(self, y: Any) -> Any:
        """Encode a target for the loss: integers for numbers of classes."""
        whole = self.is_classification and y.dtype.kind == "f" and np.all(y == np.round(y))
        return y.astype(np.int64) if whole else y


def stored(path: Any, check: Callable[..., Any], *given: Any) -> Any:
    """Read and check what the command line has stored in a model file."""
    from blockl0.app.model_file import ModelFileError

    try:
        return check(*given)
    except ValueError as error:
        raise ModelFileError(f"{path} is damaged: {clause(error)}.") from error


def decimal_of(model: Any) -> str | None:
    """Return the decimal mark of a model's data, if stored."""
    data = model.metadata.get("data")
    return data.get("decimal") if isinstance(data, dict) else None


def load_checked(job: Job, options: dict[str, Any]) -> CommandData:
    """Read the data of a command, and check the options against them.

    Nothing slow is imported before: a misspelled name is reported at once.
    """
    data = load(job, options)
    if job.command == "report" or options.get("html") is not None:
        _refuse_several(data)
    if job.command == "compare" and not data.is_quadratic:
        raise Refused(
            f"compare needs a target of numbers, but {data.table.target!r} holds labels; the "
            "other methods are for the squared loss.",
            DATA,
        )
    k, n = options.get("columns"), data.n_units
    if k is not None and k > n:
        raise Refused(f"-k must be at most {n}, the number of columns, got {k}.", DATA)
    _check_names(data, options)
    has_folds = k is None and options.get("rule", FOLD_RULES[0]) in FOLD_RULES
    if has_folds and options.get("folds", 0) > data.table.X.shape[0]:
        n_rows = data.table.X.shape[0]
        raise Refused(f"--folds must be at most {n_rows}, the number of rows.", DATA)
    return data


def _refuse_several(data: CommandData) -> None:
    """Refuse several targets before any work is done: a page covers one."""
    names = data.table.targets
    if len(names) > 1:
        given = [f"--target {quote(name)}" for name in names]
        raise Refused(
            "A page is about one target: its scores, pictures and sentences are those of one. Make "
            f"one for each ({listing(given)}); fit and path show the columns that suit them "
            "together.",
            DATA,
        )


def load(job: Job, options: dict[str, Any]) -> CommandData:
    """Read the data of a command, and print notes on them."""
    from blockl0.app.cli.stream import load_in_parts, why_in_parts

    why = why_in_parts(options)
    data = _load_at_once(job, options) if why is None else load_in_parts(job, options, why)
    table = data.table
    for note in table.notes:
        job.notice(note)
    job.data = {
        "source": table.source,
        "fingerprint": table.fingerprint,
        "n_samples": table.X.shape[0],
        "n_features": table.X.shape[1],
        "n_columns": len(table.units),
        "n_held_out": 0 if data.y_test is None else len(data.y_test),
        "target": table.target,
        "loss": data.loss,
        "decimal": table.decimal,
        "notes": list(table.notes),
    }
    job.begin_clock()
    return data


def _load_at_once(job: Job, options: dict[str, Any]) -> CommandData:
    with job.timed("read"):
        names = ("format", "na", "header", "decimal", "sheet", *DIALECT)
        how = {name: options[name] for name in names}
        raw = read_raw(
            options["data"], **how, as_text=options["as_category"],
            likely_decimal=options.get("likely_decimal"),
        )  # fmt: skip
        raw = with_target(raw, options["target"])
        reading = {name: options[name] for name in COLUMNS}
        X_test = y_test = None
        if options.get("test"):
            rows, held_out = _split(raw, options)
            table = prepare(raw.take(rows), **reading)
            X_test, y_test = _held_out(job, raw.take(held_out), table, options)
        else:
            table = prepare(raw, **reading)
    for note in table.notes:
        job.notice(note)
    loss = choose_loss(job, table, options.get("loss"), is_open="loss" in options)
    return CommandData(table, loss, X_test, y_test)


def _split(raw: Raw, options: dict[str, Any]) -> Any:
    """Return (training rows, held-out rows), in order and stratified for labels."""
    from sklearn.model_selection import train_test_split

    _, names, values = split_targets(raw, options["target"])
    y = clean_targets(values, names)
    is_labels = is_for_labels(options.get("loss")) or y.dtype.kind not in "iuf"
    try:
        rows, held_out = train_test_split(
            np.arange(raw.n_rows), test_size=options["test"], random_state=options["seed"],
            stratify=y if is_labels else None,
        )  # fmt: skip
    except ValueError as error:
        why = _no_split(y, options["test"], is_labels)
        raise Refused(f"--test {options['test']:g} is not possible: {why}.", DATA) from error
    return np.sort(rows), np.sort(held_out)


def rows_of_fit(raw: Raw, reading: dict[str, Any]) -> Any:
    """Return the training rows of a fit with held-out rows; None if they cannot be reproduced."""
    if not reading.get("test"):
        return None
    try:
        return _split(raw, reading)[0]
    except (ValueError, Refused):  # no target, or one with other values
        return None


def _no_split(y: Any, share: float, is_labels: bool) -> str:
    """Say why no rows can be held out: a class with a single row, or too few rows."""
    labels, counts = np.unique(y, return_counts=True)
    if is_labels and counts.min() < 2:
        return f"only one row is of class {str(labels[np.argmin(counts)])!r}"
    n_held_out = int(np.ceil(share * len(y)))
    each = f", too few for {len(labels)} classes" if is_labels else ""
    return f"of {len(y)} rows it leaves {len(y) - n_held_out} and holds out {n_held_out}{each}"


def _held_out(job: Job, raw: Raw, table: Table, options: dict[str, Any]) -> tuple[Any, Any]:
    """Prepare X and y of held-out rows like the training rows, including drop-rows."""
    raw, names, values = split_targets(raw, options["target"])
    features = table.recipe(range(len(table.feature_names)))
    if options["impute"] == "drop-rows":
        whole = whole_rows(raw, {f.column for f in features})
        raw, values = raw.take(np.flatnonzero(whole)), [y[whole] for y in values]
        if not whole.all():
            job.notice(f"{int((~whole).sum())} of the rows held out have missing values: left out.")
    y = clean_targets(values, names)
    for note in unseen(raw.data, features) if raw.is_frame else ():
        job.notice(f"Rows held out: {note[0].lower()}{note[1:]}")
    if raw.is_frame or table.features is not None:
        return apply_recipe(raw, features), y
    place = {column: j for j, column in enumerate(raw.names)}
    return raw.data[:, [place[f.column] for f in features]], y


def choose_loss(job: Job, table: Table, loss: str | None, is_open: bool = True) -> str:
    """Return the requested loss if it suits the target, else a suitable one.

    `is_open` if the command has an option for it, which is then mentioned.
    """
    if len(table.targets) > 1:
        return _several_loss(job, table, loss)
    n_values = len(np.unique(table.y))
    if n_values == 1:
        only = f"{table.y[0]:g}" if table.y.dtype.kind == "f" else repr(str(table.y[0]))
        raise nothing_to_explain(table.target, only, len(table.y))
    if table.has_labels or is_for_labels(loss):
        _refuse_many_labels(table.target, np.unique(table.y).tolist(), len(table.y))
        _note_lone_classes(job, table)
    if loss is None and table.has_labels:
        job.notice(f"{table.target!r} holds {n_values} labels: loss {LABELS}.")
        return LABELS
    if is_open and loss is None and n_values <= FEW_CODES:
        few_numbers_note(job, table.target, np.unique(table.y), len(table.y))
    if loss is not None and not is_for_labels(loss) and table.has_labels:
        labels = listing(np.unique(table.y).tolist(), 3)
        raise Refused(
            f"loss {loss} needs numbers, but {table.target!r} holds labels ({labels}); use --loss "
            f"{LABELS}.",
            DATA,
        )
    return loss or NUMBERS


def _note_lone_classes(job: Job, table: Table) -> None:
    """Name the classes with a single row."""
    labels, counts = np.unique(table.y, return_counts=True)
    alone = [str(label) for label in labels[counts == 1]]
    if alone:
        one = len(alone) == 1
        job.notice(
            f"{'Class' if one else 'Classes'} {listing(alone)} of {table.target!r} "
            f"{'has' if one else 'have'} 1 row{'' if one else ' each'}: always used for fitting, "
            "in all folds and half-samples, and never scored. Merge with another class, or drop."
        )


def _refuse_many_labels(target: str, labels: list[Any], n_rows: int) -> None:
    """Refuse texts that hardly repeat: names or dates rather than classes."""
    if len(labels) > max(MOST_LABELS, n_rows // 2):
        shown = ", ".join(repr(str(value)) for value in labels[:3])
        raise Refused(
            f"{target!r} holds {len(labels)} different values in {n_rows} rows ({shown}, "
            "…): too many for classes; give a target of numbers, or of labels that repeat.",
            DATA,
        )


def nothing_to_explain(target: str, only: str, n_rows: int) -> Refused:
    """Return the error for a target that is the same in all rows."""
    return Refused(f"There is nothing to explain: {target!r} is {only} in all {n_rows} rows.", DATA)


def is_for_labels(loss: str | None) -> bool:
    """Check if a loss was requested that takes labels."""
    return loss is not None and get_loss(loss).takes_labels


def few_numbers_note(job: Job, target: str, values: Any, n_rows: int) -> None:
    """Note that a target's numbers may be classes: two, or few integers in many rows."""
    has_few = len(values) <= FEW_CODES and n_rows >= MANY_ROWS
    if len(values) == 2 or (has_few and bool(np.all(values == np.rint(values)))):
        shown = ", ".join(f"{value:g}" for value in values)
        job.notice(
            f"{target!r} holds only {len(values)} different numbers ({shown}), taken as "
            f"numbers; --loss {LABELS} takes them as classes, --loss {NUMBERS} says that they are "
            "numbers."
        )


def _several_loss(job: Job, table: Table, loss: str | None) -> str:
    """Choose the loss of several targets, none of which may be constant."""
    if loss is not None and not get_loss(loss).takes_responses:
        raise Refused(
            f"loss {loss} takes one --target, got {len(table.targets)} ({listing(table.targets)}); "
            f"several are for the loss {NUMBERS}, or explain each by itself.",
            DATA,
        )
    for j, name in enumerate(table.targets):
        if np.ptp(table.y[:, j]) == 0.0:
            raise nothing_to_explain(name, f"{table.y[0, j]:g}", len(table.y))
    spread = table.y.std(axis=0)
    most, least = int(np.argmax(spread)), int(np.argmin(spread))
    if spread[most] > MUCH_WIDER * spread[least]:
        job.notice(
            "The squared errors of the targets are added up: "
            f"{table.targets[most]!r} varies {spread[most] / spread[least]:.2g} times as much as "
            f"{table.targets[least]!r}, and decides most. Write them in units of like size if they "
            "are to count alike."
        )
    return loss or NUMBERS


def _check_names(data: CommandData, options: dict[str, Any]) -> None:
    """Check names of columns to keep or bound."""
    kept_columns(data.table, options["keep"])
    class_weights(data.table.target, data.labels, options)
    bounds = bounds_of(data.table, options)
    if bounds is not None and data.is_classification and len(np.unique(data.y)) > 2:
        raise Refused(
            "--positive and --bounds are for numbers and for two classes: the coefficients of "
            "more classes mean something only beside each other.",
            DATA,
        )
    if options.get("proof") is not None:
        _check_provable(data, bounds, options)


def _check_provable(data: CommandData, bounds: Any, options: dict[str, Any]) -> None:
    """Refuse a proof file before the fit if none can be written."""
    ridge = options["ridge"]
    is_open = ridge is None and data.is_classification
    ways = {
        "without --positive and --bounds": bounds is not None,
        "without --class-weight": bool(options.get("class_weight")),
        "for one --target": len(data.table.targets) > 1,
        "with --levels separate": data.table.groups is not None,
        "a --ridge that is a number": isinstance(ridge, str) or is_open,
    }
    need = [way for way, is_needed in ways.items() if is_needed]
    if need:
        raise Refused(
            "--proof writes proofs about columns that are chosen one by one, as they are given, so "
            f"far; give it {', '.join(need)}. What fit says of the optimum holds without a file as "
            "well.",
            DATA,
        )
