"""What is certainly wrong with a command, said before anything slow is imported.

And the errors that the reader of the data, which sees the rest, ends with as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from blockl0.cli.output import DATA, Refused
from blockl0.cli.structure import ALL, a_category
from blockl0.files import check_exists
from blockl0.losses import get_loss
from blockl0.tables.column_kinds import is_named_for_rows
from blockl0.tables.csv_files import plain_names, refuse_layout
from blockl0.tables.first_look import are_words, plain_columns, refusal, target_of
from blockl0.tables.formats import USUAL_TARGETS, format_of
from blockl0.tables.recipe import do_repeat, levels_used
from blockl0.tables.targets import no_such_column, no_target
from blockl0.text import did_you_mean, listing

LABELS = "logistic"
"""The loss that is taken for labels where none is given."""
MOST_LABELS = 20
"""Labels that are always taken for classes; more may be half as many as rows."""


def refuse_unknown(options: dict[str, Any]) -> None:
    """What is certainly wrong, as names that do not exist, before pandas is imported."""
    source = options["data"]
    if source == "-" or Path(source).is_dir():
        return
    if (options["format"] or format_of(check_exists(source))) != "csv":
        return
    refuse_layout(Path(source))
    names = plain_names(Path(source), options["header"])
    if names is None:
        return
    known, target = {name.strip() for name in names}, options["target"]
    if target is None and not known & set(USUAL_TARGETS):
        raise no_target(names)
    targets = target if isinstance(target, list) else [] if target is None else [target]
    targets = [one for one in targets if re.fullmatch(r"[-+]?\d+", str(one).strip()) is None]
    for name in [*targets, *options["drop"], *options["as_category"], *options["as_number"]]:
        if name.strip() not in known:
            raise no_such_column(name, names)
    for option, name in _named(options):
        if name.strip() not in known and "=" not in name:
            hint = did_you_mean(name, names)
            raise Refused(f"{option} {name}: there is no such column for the fit.{hint}", DATA)
    if (error := refusal(source, options)) is not None:
        raise error
    # what is read in parts has limits of its own
    if columns := {} if options.get("stream") else plain_columns(source, options):
        _refuse_target(columns, options)
        _refuse_size(columns, options)
        _refuse_categories(columns, options)
        _refuse_values(columns, options)
        is_by_folds = options.get("rule", "one_se") in ("min", "one_se")
        if options.get("columns") is None and is_by_folds:
            y = columns[target_of(list(columns), options["target"])]
            refuse_folds(len(y or ()), options.get("folds"))


def _used(columns: dict[str, list[str] | None], options: dict[str, Any]) -> dict[str, list[str]]:
    """The columns of the fit, each with the values of a category; none where one is in doubt.

    One that is left out, as constant or as free text, or that does not exist, is the reader's.
    """
    target, dropped = target_of(list(columns), options["target"]), {*options["drop"]}
    if not dropped <= {*columns}:
        return {}
    found: dict[str, list[str]] = {}
    for name, texts in columns.items():
        if name == target or name in dropped:
            continue
        if texts is None or is_named_for_rows(name):
            return {}
        is_text = are_words(texts)
        if not (_is_category(texts, options) if is_text else len({*map(float, texts)}) > 1):
            return {}
        found[name] = sorted({*texts}) if is_text else []
    return found


def _refuse_size(columns: dict[str, list[str] | None], options: dict[str, Any]) -> None:
    """More columns than there are."""
    k, used = options.get("columns"), _used(columns, options)
    if used and k is not None and k > len(used) and options.get("levels") == "together":
        raise too_many(k, len(used))


def too_many(k: int, n_columns: int, name: str = "-k") -> Refused:
    """The error for more columns than there are."""
    return Refused(f"{name} must be at most {n_columns}, the number of columns, got {k}.", DATA)


def _refuse_target(columns: dict[str, list[str] | None], options: dict[str, Any]) -> None:
    """A target that is the same in all rows, or of labels for a loss of numbers."""
    name = target_of(list(columns), options["target"])
    y, loss = columns[name], options.get("loss")
    if y is None:
        return
    if len({*y} if are_words(y) else {*map(float, y)}) == 1:
        only = repr(y[0]) if are_words(y) else f"{float(y[0]):g}"
        raise nothing_to_explain(name, only, len(y))
    if are_words(y):
        refuse_many_labels(name, sorted({*y}), len(y))
    if loss is not None and not is_for_labels(loss) and are_words(y):
        raise labels_refused(loss, name, sorted({*y}))


def _refuse_categories(columns: dict[str, list[str] | None], options: dict[str, Any]) -> None:
    """A category that is named where its values are columns by themselves."""
    if options.get("levels") != "separate":
        return
    for option, name in _named(options):
        texts = columns.get(name)
        if texts is None or name == target_of(list(columns), options["target"]):
            continue
        if are_words(texts) and _is_category(texts, options):
            made = [f"{name}={level}" for level in levels_used(sorted({*texts}), is_whole=False)]
            raise Refused(a_category(option, name, made), DATA)


def _is_category(texts: list[str], options: dict[str, Any]) -> bool:
    """Whether words are few enough, and repeat."""
    levels = sorted({*texts})
    return 1 < len(levels) <= options["max_levels"] and do_repeat(levels, len(texts))


def _refuse_values(columns: dict[str, list[str] | None], options: dict[str, Any]) -> None:
    """A value that is named but that a category lacks."""
    used, is_whole = _used(columns, options), options.get("levels") == "together"
    made = {name: levels_used(levels, is_whole) for name, levels in used.items() if levels}
    known = [name for name in used if name not in made]
    known += [f"{name}={level}" for name, levels in made.items() for level in levels]
    known += [name for name, levels in made.items() if is_whole and len(levels) > 1]
    for option, name in _named(options):
        column, _, level = name.partition("=")
        if column in made and level not in used[column] and name not in known and "=" in name:
            hint = did_you_mean(name, known)
            raise Refused(f"{option} {name}: there is no such column for the fit.{hint}", DATA)


def _named(options: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Columns that options of the fit name, each with its option."""
    yield from (("--keep", name) for name in options.get("keep", ()))
    yield from (("--bounds", name.rpartition("=")[0]) for name in options.get("bounds", ()))
    signed = (name for name in options.get("positive", ()) if name != ALL and "," not in name)
    yield from (("--positive", name) for name in signed)


def nothing_to_explain(target: str, only: str, n_rows: int) -> Refused:
    """The error for a target that is the same in all rows."""
    return Refused(f"There is nothing to explain: {target!r} is {only} in all {n_rows} rows.", DATA)


def labels_refused(loss: str, target: str, labels: list[str]) -> Refused:
    """The error for a target of labels and a loss of numbers."""
    return Refused(
        f"loss {loss} needs numbers, but {target!r} holds labels ({listing(labels, 3)}); use "
        f"--loss {LABELS}.",
        DATA,
    )


def refuse_many_labels(target: str, labels: list[Any], n_rows: int) -> None:
    """Texts that hardly repeat are names, dates or something else, but no classes."""
    if len(labels) > max(MOST_LABELS, n_rows // 2):
        shown = ", ".join(repr(str(value)) for value in labels[:3])
        raise Refused(
            f"{target!r} holds {len(labels)} different values in {n_rows} rows ({shown}, "
            "…): too many for classes; give a target of numbers, or of labels that repeat.",
            DATA,
        )


def refuse_folds(n_rows: int, n_folds: int | None) -> None:
    """More folds than there are rows."""
    if n_rows and n_folds is not None and n_folds > n_rows:
        raise Refused(f"--folds must be at most {n_rows}, the number of rows.", DATA)


def is_for_labels(loss: str | None) -> bool:
    """Whether a loss was asked for, and takes labels."""
    return loss is not None and get_loss(loss).takes_labels
