"""Exceptions besides ``ValueError`` and ``TypeError``, and warnings attributed to the caller."""

from __future__ import annotations

import sys
import warnings

_BETWEEN = ("blockl0", "sklearn", "contextlib")
"""Packages whose frames may lie between a warning and the user's line."""


class OutOfReachError(ValueError):
    """The problem is valid, but a complete answer would take too much time or memory.

    The message suggests what to ask for instead: a sampled certificate, a lower level, fewer
    columns, or another method.
    """


class ModelFileError(ValueError):
    """A file is not a model, is damaged, or was written by a newer version."""


class OutOfTime(KeyboardInterrupt):
    """The time limit was reached during a pass over X; searches end as on Ctrl-C."""


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first line outside this package, scikit-learn and decorators of `contextlib`."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in _BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
