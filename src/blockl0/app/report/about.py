"""Origin of the page: data, settings, versions, time."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import date
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from blockl0 import __version__
from blockl0.app.report.plain import clean
from blockl0.result import Status
from blockl0.text import count

if TYPE_CHECKING:
    from blockl0.app.report.collect import Facts

PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")


def about(
    facts: Facts,
    source: str | None,
    fingerprint: str | None,
    command: str | None,
    notes: Sequence[str],
    seconds: float,
    time_limit: float | None,
) -> dict[str, Any]:
    """List the contents of the foot of the page."""
    task = facts.task
    return {
        "source": None if source is None else clean(source),
        "fingerprint": None if fingerprint is None else clean(fingerprint),
        "command": None if command is None else clean(command),
        "notes": [*map(clean, notes), *_own_notes(facts)],
        "date": date.today().isoformat(),
        "seconds": round(seconds, 1),
        "versions": {
            "blockl0": __version__,
            "Python": platform.python_version(),
            **{name: version(name) for name in PACKAGES},
        },
        "settings": {
            "loss": task.loss_name,
            "ridge": facts.model.ridge_,
            "effort": task.effort,
            "random_state": task.random_state,
            "folds": facts.folds.n_scored,
            "half_samples": facts.again.n_samples,
            "time_limit": time_limit,
        },
    }


def _own_notes(facts: Facts) -> list[str]:
    """List notes on this run."""
    path, folds, found = facts.model.path_, facts.folds, []
    if any(result.status is Status.TIME_LIMIT for result in path):
        last = count(int(path.n_nonzero_coefs[-1]), "column")
        found.append(f"The time limit cut the search short; the path ends at {last}.")
    n_lost = len(folds.nulls) - folds.n_scored
    if n_lost:
        found.append(f"{count(n_lost, 'fold')} could not be scored: a class was missing there.")
    if np.isnan(folds.losses[np.isfinite(folds.nulls)]).any():
        found.append("The time limit cut some folds short; larger sizes have no score there.")
    if not len(folds.nulls):
        found.append("There was no cross-validation.")
    return found
