"""What may be raised besides ``ValueError`` and ``TypeError`` of bad input."""

from __future__ import annotations


class OutOfReachError(ValueError):
    """The problem is sound, but a complete answer would take too much time or memory.

    Its message says what can be asked for instead: a sampled certificate, a lower level, fewer
    columns, or another method.
    """


class ModelFileError(ValueError):
    """A file is not a model, is damaged, or was written by a newer version."""


class OutOfTime(KeyboardInterrupt):
    """The time limit came in the middle of a pass over X; searches end by it as by Ctrl-C."""
