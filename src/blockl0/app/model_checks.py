"""Validation of model files, entry by entry, before anything is predicted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from blockl0.app.tables.csv_text import DIALECT, make_dialect
from blockl0.losses import Loss, names_of
from blockl0.losses.stored import IMPORT_PATH
from blockl0.problem.preprocess import read_ridge
from blockl0.text import clause, cut

Check = Callable[[str, Any], Any]
"""Raises a ValueError if the value of an entry, given with its name, is wrong."""
KNOWN = (*names_of(takes_labels=False), *names_of(takes_labels=True))
"""Losses that a file may name without an import path."""
KINDS = ("number", "level", "date")
ORDERS = ("day-first", "month-first")
LARGEST_INDEX = 2**62
"""Far beyond any table, and far from overflow."""


def check_loss(document: dict[str, Any]) -> None:
    """Check the entries from which `losses.stored.from_json` makes the loss."""
    _check_text("loss", _get(document, "loss"))
    if "loss_class" in document:
        path = _check_text("loss_class", document["loss_class"])
        if not IMPORT_PATH.fullmatch(path):
            raise _wrong("loss_class", path, "an import path, as package.module:Class")
    elif document["loss"] not in KNOWN:
        raise _wrong("loss", document["loss"], f"one of {', '.join(KNOWN)}")
    if not isinstance(document.get("loss_parameters", {}), dict):
        raise _wrong("loss_parameters", document["loss_parameters"], "an object")


def check_document(document: dict[str, Any], loss: Loss) -> None:
    """Raise a ValueError that names the first entry unlike those written by `save_model`."""
    for key in ("target", "blockl0_version"):
        _check_text(key, _get(document, key))
    if document["loss"] != loss.name:
        raise _wrong("loss", document["loss"], f"{loss.name!r}, the name of its class")
    n_rows = _check_classes(loss, _get(document, "classes"))
    if "targets" in document:
        n_rows = _check_targets(loss, document)
    _check_numbers("intercept", _get(document, "intercept"), n_rows)
    n = _check_whole("n_features_in", _get(document, "n_features_in"), 0, LARGEST_INDEX)
    features = _check_list("features", _get(document, "features"))
    for i, entry in enumerate(features):
        _check_feature(f"features[{i}]", entry, n_rows, n)
    twice = _repeated(entry["index"] for entry in features)
    if twice is not None:
        raise ValueError(f"the index {twice} occurs twice in features")
    if not isinstance(_get(document, "metadata"), dict):
        raise _wrong("metadata", document["metadata"], "an object")


def _check_classes(loss: Loss, classes: Any) -> int:
    """Check the classes; return the rows of coefficients, one unless there are more than two."""
    if not loss.takes_labels:
        if classes is not None:
            raise _wrong("classes", classes, f"null for the loss {loss.name}")
        return 1
    _check_list("classes", classes)
    if len(classes) < 2:
        raise _wrong("classes", classes, "a list of at least two labels")
    kinds = {type(label) for label in classes}
    if len(kinds) > 1 or not kinds <= {str, bool, int, float}:
        raise _wrong("classes", classes, "texts, truth values or numbers, and all of one kind")
    for label in classes:
        if isinstance(label, str):
            _check_text("classes", label)
        elif isinstance(label, int):
            _check_whole("classes", int(label), -LARGEST_INDEX, LARGEST_INDEX)
    if len(classes) > 2 and not loss.takes_many_classes:
        raise _wrong("classes", classes, f"a list of two labels for the loss {loss.name}")
    twice = _repeated(classes)
    if twice is not None:
        raise ValueError(f"the label {brief(twice)} occurs twice in classes")
    return 1 if len(classes) == 2 else len(classes)


def _check_targets(loss: Loss, document: dict[str, Any]) -> int:
    """Check several targets; return the rows of coefficients, one per target."""
    targets = _check_list("targets", document["targets"])
    if not loss.takes_responses or len(targets) < 2:
        raise _wrong("targets", targets, f"left out, or two or more for loss {loss.name!r}")
    _check_texts("targets", targets)
    twice = _repeated(targets)
    if twice is not None:
        raise ValueError(f"the name {brief(twice)} occurs twice in targets")
    return len(targets)


def _check_feature(where: str, entry: Any, n_rows: int, n: int) -> None:
    if not isinstance(entry, dict):
        raise _wrong(where, entry, "an object")
    for key in ("name", "column"):
        _check_text(f"{where}.{key}", _get(entry, key, where))
    _check_whole(f"{where}.index", _get(entry, "index", where), 0, n - 1)
    _check_numbers(f"{where}.coef", _get(entry, "coef", where), n_rows)
    if entry.get("fill") is not None:
        _check_number(f"{where}.fill", entry["fill"])
    kind, level, levels = (entry.get(key) for key in ("kind", "level", "levels"))
    if _get(entry, "kind", where) not in KINDS:
        raise _wrong(f"{where}.kind", kind, f"one of {', '.join(KINDS)}")
    if entry.get("order") is not None and (kind != "date" or entry["order"] not in ORDERS):
        raise _wrong(f"{where}.order", entry["order"], f"one of {', '.join(ORDERS)}, for a date")
    if kind != "level":
        if level is not None or levels is not None or entry.get("reference") is not None:
            value = level or levels or entry["reference"]
            raise _wrong(f"{where}.level", value, f"left out for the kind {kind}")
        return
    texts = _check_texts(f"{where}.levels", levels)
    if level not in texts:
        raise _wrong(f"{where}.level", level, "one of its levels")
    twice = _repeated(texts)
    if twice is not None:
        raise ValueError(f"the level {brief(twice)} occurs twice in {where}.levels")
    reference = entry.get("reference")
    if reference is not None and (reference not in texts or reference == level):
        raise _wrong(f"{where}.reference", reference, "another one of its levels")


# -- what the command line stores ------------------------------------------------------------------


def check_reading(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return how the data of the fit were read, {} if not stored; raise ValueError if invalid."""
    where, reading = "metadata.reading", metadata.get("reading", {})
    if not isinstance(reading, dict):
        raise _wrong(where, reading, "an object")
    for key, check in _READING.items():
        if key in reading:
            check(f"{where}.{key}", reading[key])
    try:
        make_dialect({name: reading.get(name) for name in DIALECT})
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {clause(error)}") from error
    return reading


def check_problem(metadata: dict[str, Any], n_features: int) -> dict[str, Any] | None:
    """Return the problem that the model solves, None if not stored; raise ValueError if invalid."""
    where, problem = "metadata.problem", metadata.get("problem")
    if problem is None:
        return None
    if not isinstance(problem, dict):
        raise _wrong(where, problem, "an object")
    _check_whole(f"{where}.n_nonzero_coefs", _get(problem, "n_nonzero_coefs", where), 0, n_features)
    if _get(problem, "ridge", where) is not None:
        _check_ridge(f"{where}.ridge", problem["ridge"])
    price = problem.get("coefficient_price")
    if price is not None and _check_number(f"{where}.coefficient_price", price) < 0.0:
        raise _wrong(f"{where}.coefficient_price", price, "at least 0")
    _get(problem, "keep", where)
    for key in ("keep", "positive", "bounds", "class_weight"):
        _check_texts(f"{where}.{key}", problem.get(key, []))
    return problem


def _check_ridge(where: str, value: Any) -> None:
    """Check a number that is at least 0, possibly in units of the columns' spreads."""
    ridge = value if isinstance(value, str) else _check_number(where, value)
    try:
        read_ridge(ridge)
    except ValueError as error:
        raise _wrong(where, value, "at least 0, or such a number after 'standardized:'") from error


def _check_targets_read(where: str, value: Any) -> None:
    """Check the name or number of a target, or a list of several."""
    for target in value if isinstance(value, list) and len(value) > 1 else [value]:
        _check_name(where, target)


def _check_name(where: str, value: Any) -> None:
    if not isinstance(value, str | int | None):
        raise _wrong(where, value, "a name or a number")


def _check_share(where: str, value: Any) -> None:
    if not 0.0 <= _check_number(where, value) < 1.0:
        raise _wrong(where, value, "at least 0 and below 1")


def _one_of(*known: Any) -> Check:
    def check(where: str, value: Any) -> None:
        if value not in known:
            expected = ", ".join("null" if one is None else one for one in known)
            raise _wrong(where, value, f"one of {expected}")

    return check


def _whole(least: int, most: int) -> Check:
    return lambda where, value: _check_whole(where, value, least, most)


# -- single values ---------------------------------------------------------------------------------


def _get(entry: dict[str, Any], key: str, where: str = "it") -> Any:
    if key not in entry:
        raise ValueError(f"{where} has no {key!r}")
    return entry[key]


def _check_list(where: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise _wrong(where, value, "a list")
    return value


def _check_texts(where: str, value: Any) -> list[Any]:
    for text in _check_list(where, value):
        _check_text(where, text)
    return value


def _check_text(where: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong(where, value, "a text")
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise _wrong(where, value, "a text of whole characters")
    return value


def _check_numbers(where: str, value: Any, length: int) -> None:
    if len(_check_list(where, value)) != length:
        raise _wrong(where, value, f"a list of {length} number{'' if length == 1 else 's'}")
    for number in value:
        _check_number(where, number)


def _check_number(where: str, value: Any) -> float:
    """Check for a finite number; JSON numbers include integers of any length."""
    try:
        number = float(value) if type(value) in (int, float) else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise _wrong(where, value, "a finite number")
    return number


def _check_whole(where: str, value: Any, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise _wrong(where, value, f"a whole number between {least} and {most}")
    return value


def _repeated(values: Iterable[Any]) -> Any:
    seen: set[Any] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None


def _wrong(where: str, value: Any, expected: str) -> ValueError:
    return ValueError(f"{where} is {brief(value)}, and should be {expected}")


def brief(value: Any) -> str:
    """Format a value of a JSON document for a message."""
    if isinstance(value, dict | list) and value:
        return f"a list of {len(value)}" if isinstance(value, list) else "an object"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > LARGEST_INDEX:
        return "an integer of too many digits"
    text = ascii(value) if isinstance(value, str) else repr(value)
    text = {"None": "null", "True": "true", "False": "false"}.get(text, text)
    return cut(text)


_READING: dict[str, Check] = {
    **dict.fromkeys(("na", "drop", "as_category", "as_number"), _check_texts),
    "text": _one_of("auto", "one-hot", "drop", "refuse"),
    "levels": _one_of("together", "separate"),
    "impute": _one_of(None, "median", "mean", "drop-rows"),
    "dates": _one_of("drop", "days", "refuse"),
    "date_order": _one_of("auto", *ORDERS),
    "header": _one_of("auto", "yes", "no"),
    "decimal": _one_of("auto", "point", "comma"),
    "format": _one_of(None, "csv", "excel", "parquet", "libsvm", "npz", "mat"),
    "target": _check_targets_read,
    "sheet": _check_name,
    "max_levels": _whole(2, LARGEST_INDEX),
    "test": _check_share,
    "seed": _whole(0, 2**32 - 1),
}
"""Checks of the entries on how the data of a fit were read; all entries are optional."""
