"""What a solver returns: a status with its message, the history, and the solution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from blockl0.text import listing
from blockl0.units import COLUMNS, Units

if TYPE_CHECKING:
    from blockl0.certify import Certificate

LISTED_COLUMNS = 12
"""Columns listed in a summary before it says how many more there are."""


class Status(Enum):
    """Why a solver stopped; ``status.message`` says it in a sentence."""

    OPTIMAL = "optimal", "Proven globally optimal."
    GAP = "gap_reached", "Proven to be within the gap that was asked for."
    CONVERGED = "converged", "Converged: the search found no further improvement."
    MAX_ITER = "max_iter", "Stopped at the iteration limit; raise `max_iter` to go on."
    TIME_LIMIT = "time_limit", "Stopped at the time limit; this is the best point found."
    NODE_LIMIT = "node_limit", "Stopped at the node limit; optimality is not proven."
    WORK_LIMIT = "work_limit", "Stopped at the limit of work; optimality is not proven."
    NO_BOUND = "no_bound", "No bound exists for this problem: nothing is proven of this point."
    INTERRUPTED = "interrupted", "Interrupted from the keyboard; this is the best point found."
    STOPPED = "stopped", "Stopped by the callback; this is the best point found."

    message: str

    def __new__(cls, value: str, message: str) -> Status:
        """Make a member whose value is its name in lower case and which carries its message."""
        member = object.__new__(cls)
        member._value_ = value
        member.message = message
        return member

    def __str__(self) -> str:
        return self.value


def relative_gap(objective: float, lower_bound: float | None) -> float | None:
    """Compute (objective − lower_bound) / |objective|, at least 0; None without a bound."""
    if lower_bound is None:
        return None
    excess = max(objective - lower_bound, 0.0)
    if excess == 0.0:
        return 0.0
    return excess / abs(objective) if objective else np.inf


def left_out_note(columns: Sequence[Any] | None) -> str:
    """Say which supports an optimum is not about; None is for columns that are not known."""
    if columns is None:
        return "There was no time to look for supports of nearly dependent columns below it."
    return (
        "Optimal among supports whose columns are told apart: one of the columns "
        f"{listing(columns, LISTED_COLUMNS)} is within 1e-8 of the span of the others, and "
        "supports with all of them are left out; one of these may be lower."
    )


@dataclass(frozen=True, eq=False)
class History:
    """History of a run, one entry per recorded point: objective, seconds, nonzeros."""

    objective: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    seconds: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    n_nonzero: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def __post_init__(self) -> None:
        # solvers record into plain lists, converted to arrays once
        kinds = {"objective": np.float64, "seconds": np.float64, "n_nonzero": np.int64}
        for name, kind in kinds.items():
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=kind))
        if not len(self.objective) == len(self.seconds) == len(self.n_nonzero):
            raise ValueError("objective, seconds and n_nonzero must have equal length.")

    def __len__(self) -> int:
        return len(self.objective)

    def __repr__(self) -> str:
        return f"History({len(self)} points)"


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """Result of a solver.

    Attributes
    ----------
    coef : ndarray (n,)
        The coefficients w; (n, C) for the softmax loss of C classes, (n, q) for q responses.
    objective : float
        The objective at `coef`, recomputed from the data; a kept column or group costs its price
        whatever its coefficient.
    status : Status
        Why the solver stopped.
    n_iter : int
        Iterations (blocks, or nodes for ``method="exact"``).
    seconds : float
        Wall-clock time, without compilation.
    history : History
    certificate : Certificate or None
        How strong a stationary point `coef` is, if established.
    options : dict
        The method and the options it ran with, defaults included.
    lower_bound : float or None
        Lower bound on the objective of admissible supports, if known: those without dependent
        columns, see `blockl0.problem.orthogonal`.
    n_passes : int or None
        Full passes over X, if counted; for tall data with the squared loss, over the triangular
        factor used in place of X; for an X read in blocks, all reads.
    drift : float or None
        Largest rounding error seen in a pivot of the search, relative to its column's squared norm.
        It affects only the ranking of moves: `coef` and `objective` come from X.
    proof : Proof or None
        A proof that `blockl0.verify` can check, if requested from method "exact" with `proof`; it
        has `save(path)`, `n_records` and `nbytes`.
    note : str or None
        Addition to the status: why there is no bound, and what would help.
    work : float or None
        Multiplications of the search for a proof, in units of 1e9, as `work_limit` counts them.
    units : Units
        What the budget counts: columns, or groups of them.
    ridge : float
        Of the problem; what is proven is proven of the objective with this penalty.
    near_dependent : tuple of int, or None
        Columns that nearly depend on each other, where the status is OPTIMAL: supports with all of
        them are left out, and may be lower. Empty where none can be, None where there was no time
        to look for them.
    """

    coef: NDArray[np.float64]
    objective: float
    status: Status
    n_iter: int = 0
    seconds: float = 0.0
    history: History = field(default_factory=History)
    certificate: Certificate | None = None
    options: dict[str, Any] = field(default_factory=dict)
    lower_bound: float | None = None
    n_passes: int | None = None
    drift: float | None = None
    proof: Any = None
    note: str | None = None
    units: Units = COLUMNS
    ridge: float = 0.0
    near_dependent: tuple[int, ...] | None = ()
    work: float | None = None

    @property
    def support(self) -> NDArray[np.int64]:
        """The columns with a nonzero coefficient, ascending."""
        return COLUMNS.support(self.coef)

    @property
    def n_nonzero(self) -> int:
        """Number of columns with a nonzero coefficient, or of groups if the budget counts them."""
        return self.units.count(self.coef)

    @property
    def groups(self) -> tuple[Any, ...] | None:
        """The labels of the selected groups, in order of first appearance; None without groups."""
        labels = getattr(self.units, "labels", None)
        if labels is None:
            return None
        return tuple(labels[unit] for unit in self.units.support(self.coef))

    @property
    def n_units(self) -> int:
        """Number of units to choose from: columns of X, or groups."""
        return self.units.number(self.coef.shape[0])

    @property
    def message(self) -> str:
        """The status in a sentence, and what it is about."""
        text = self.status.message
        if self.status not in (Status.OPTIMAL, Status.GAP):
            return text
        text = text.rstrip(".")
        text += " among supports whose columns are told apart" if self.near_dependent else ""
        return f"{text}{' for this ridge penalty' if self.ridge else ''}."

    @property
    def gap(self) -> float | None:
        """(objective − lower_bound) / |objective|, at least 0; None without a bound."""
        return relative_gap(self.objective, self.lower_bound)

    def __repr__(self) -> str:
        gap = "" if self.gap is None else f", gap={self.gap:.2g}"
        return (
            f"Result(objective={self.objective:.8g}, n_nonzero={self.n_nonzero} of "
            f"{self.n_units}, status={self.status}{gap}, n_iter={self.n_iter}, "
            f"seconds={self.seconds:.3g}{f', note={self.note!r}' if self.note else ''})"
        )

    def summary(self) -> str:
        """Summarize the result in a few plain lines."""
        groups = self.groups
        chosen = self.support.tolist() if groups is None else list(groups)
        columns = listing(chosen, LISTED_COLUMNS) or "none"
        what = "columns" if groups is None else "groups"
        method = f" by method {self.options['method']!r}" if "method" in self.options else ""
        passes = "" if self.n_passes is None else f", {self.n_passes} passes over X"
        lines = [
            f"{self.n_nonzero} of {self.n_units} {what} selected{method}: {columns}",
            f"objective   {self.objective:.10g}",
            f"status      {self.message}",
            f"effort      {self.n_iter} iterations in {self.seconds:.3g} s{passes}",
        ]
        if self.gap is not None:
            lines.insert(2, f"lower bound {self.lower_bound:.10g} (gap {self.gap:.2%})")
        if self.note is not None:
            lines.append(f"note        {self.note}")
        if self.certificate is not None:
            lines.append(f"certificate {self.certificate}")
        return "\n".join(lines)
