"""A loss as text and as JSON, and back: its name, its parameters, and where its class is found."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterable
from functools import reduce
from importlib import import_module
from typing import Any

from blockl0.losses.base import Adapted, Loss

IMPORT_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
"""module:Class, both with dots."""
LONGEST = 80
"""Characters of parameters that a message shows."""


class LossNotFoundError(ValueError):
    """Raised when a loss that is not built in cannot be restored from a file."""


def parameters_of(loss: Loss) -> dict[str, Any]:
    """Return the constructor arguments of a loss, read from attributes of the same name."""
    own = original(loss)
    return {name: getattr(own, name) for name in _defaults(own) if hasattr(own, name)}


def changed_parameters(loss: Loss) -> dict[str, Any]:
    """Return the parameters that differ from their defaults."""
    defaults = _defaults(original(loss))
    return {name: v for name, v in parameters_of(loss).items() if _differs(v, defaults[name])}


def label_of(loss: Loss) -> str:
    """Return the name, with the parameter if it differs from its default: huber:0.5."""
    values = list(changed_parameters(loss).values())
    if len(values) != 1 or not _is_number(values[0]):
        return loss.name
    # in full: the text makes the same loss again
    return f"{loss.name}:{repr(float(values[0])).removesuffix('.0')}"


def with_parameter(loss: Loss, text: str) -> Loss:
    """Return the loss of a class whose only parameter is the number in a text ("huber:0.5")."""
    names = list(parameters_of(loss))
    if len(names) != 1:
        raise ValueError(f"loss={loss.name!r} has no parameter, got {loss.name + ':' + text!r}.")
    try:
        # a number of classes is a whole one
        value = int(text) if text.strip().isdigit() else float(text)
    except ValueError:
        raise ValueError(
            f"The parameter `{names[0]}` of loss={loss.name!r} must be a number, got {text!r}."
        ) from None
    return type(loss)(**{names[0]: value})


def original(loss: Any) -> Any:
    """Return the object that the user gave."""
    return loss.given if isinstance(loss, Adapted) else loss


def to_json(loss: Loss, built_in: dict[str, Loss]) -> dict[str, Any]:
    """Return what a file stores of a loss: name, parameters, and the path of a user's class."""
    kind = type(original(loss))
    entry: dict[str, Any] = {"loss": loss.name}
    if kind is type(built_in.get(loss.name)):
        given = changed_parameters(loss)
    else:
        given = parameters_of(loss)
        lost = [name for name in _defaults(original(loss)) if name not in given]
        if lost:
            raise ValueError(
                f"the class {kind.__name__} of its loss takes `{lost[0]}`, but has no attribute of "
                "that name to be stored"
            )
        entry["loss_class"] = _import_path(kind)
    if given:
        try:
            is_plain = json.loads(json.dumps(given, allow_nan=False)) == given
        except (TypeError, ValueError):
            is_plain = False
        if not is_plain:
            raise ValueError(
                f"the parameters of loss={loss.name!r} must be what JSON can hold, got {given!r}"
            )
        entry["loss_parameters"] = given
    return entry


def from_json(
    entry: dict[str, Any],
    built_in: dict[str, Loss],
    losses: Iterable[Any] = (),
    trust: bool = False,
) -> Loss:
    """Restore the loss of a checked entry of `to_json`.

    A class that is not built in is one of `losses`, by its import path, or by its name if it has
    moved. Its module is imported only where the file is trusted: importing runs what it holds.
    """
    path, given = entry.get("loss_class"), entry.get("loss_parameters", {})
    if path is None:
        kind: Any = type(built_in[entry["loss"]])
    else:
        kinds = [kind if isinstance(kind, type) else type(kind) for kind in losses]
        by_name = {getattr(kind, "name", None): kind for kind in kinds}
        known = {_path_of(kind): kind for kind in kinds}
        kind = known.get(path) or by_name.get(entry["loss"]) or _import(path, trust)
    try:
        loss = kind(**given)
    except Exception as error:  # whatever the class of a user raises
        shown = repr(given) if len(repr(given)) < LONGEST else f"{repr(given)[:LONGEST]}..."
        raise LossNotFoundError(
            f"its loss {entry['loss']!r} cannot be made with the parameters {shown}: {error}"
        ) from error
    return loss if isinstance(loss, Loss) else Adapted(loss)


def _import(path: str, trust: bool) -> Any:
    module, name = path.split(":")
    last = name.rpartition(".")[2]
    if not trust:
        raise LossNotFoundError(
            f"its loss is the class {path}, which is not part of blockl0; import it and give "
            f"`losses=({last},)`, or `trust=True` to import what the file names"
        )
    try:
        kind = reduce(getattr, name.split("."), import_module(module))
    except (ImportError, AttributeError) as error:
        raise LossNotFoundError(
            f"its loss is the class {path}, which cannot be imported: {error}"
        ) from error
    if not (isinstance(kind, type) and callable(getattr(kind, "gradient", None))):
        raise LossNotFoundError(f"its loss is the class {path}, but that is {kind!r}, no loss")
    return kind


def _import_path(kind: type) -> str:
    """Return module:Class, where another program would find it."""
    path = _path_of(kind)
    module, name = path.split(":")
    if module == "__main__" or "<locals>" in name:
        where = "the main program" if module == "__main__" else "a function"
        raise ValueError(
            f"its loss is of the class {kind.__name__}, defined in {where}, where no other program "
            "finds it; put the class in a module of its own, and import it from there"
        )
    try:
        found = reduce(getattr, name.split("."), sys.modules[module])
    except (KeyError, AttributeError):
        found = None
    if found is not kind:
        raise ValueError(f"its loss is of a class that cannot be imported as {path}")
    return path


def _path_of(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _defaults(own: Any) -> dict[str, Any]:
    """Return the named arguments of an object's class, with their defaults."""
    try:
        found = inspect.signature(type(own)).parameters.values()
    except ValueError:  # some classes of C have none
        return {}
    return {p.name: p.default for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}


def _differs(value: Any, default: Any) -> bool:
    try:
        return value is not default and bool(value != default)
    except ValueError:  # an array, of which some entries may be equal
        return True


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
