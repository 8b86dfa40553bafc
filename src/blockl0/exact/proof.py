"""A proof that others can check: the search tree, and the points that prove its bounds.

`blockl0.verify` documents the file format, and checks it without any code from here.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.data.design import MODERATE
from blockl0.errors import OutOfReachError
from blockl0.exact.bounds import Bounds, Node, Relaxed
from blockl0.files import write_whole
from blockl0.losses import LOSSES
from blockl0.losses.stored import parameters_of
from blockl0.problem.fits import make_fits
from blockl0.problem.problem import Problem
from blockl0.result import relative_gap
from blockl0.verify import verify_content
from blockl0.verify.base import CLOSE, FIX, SPLIT
from blockl0.verify.files import FORMAT, VERSION, digest
from blockl0.verify.losses import OTHERS, SQUARED

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

SLACK, SLACK_OF_ROUNDING = 1e-9, 0.5
"""Margins of the claim below the verified bound, as it may round differently elsewhere.

Relative to the objective, and to the verifier's loss by rounding.
"""
NO_COLUMNS = np.empty(0, dtype=np.int64)


class Recorder:
    """Receives the events of a search; this one ignores them."""

    is_on = False

    def relaxed(self, node: Node, bounds: Bounds, found: Relaxed) -> None:
        """Record that a node was relaxed: its point proves a bound."""

    def fixed(self, node: Node, is_out: Bools, is_in: Bools) -> None:
        """Record free columns that the last point fixes."""

    def split(self, parent: Node, column: int, with_it: Node, without_it: Node) -> None:
        """Record a node's two children."""

    def leaf(self, node: Node, support: Ints, bounds_of: Callable[[Node], Bounds]) -> None:
        """Record a node of one support, or of one as good as all others."""

    def closed(self, node: Node) -> None:
        """Record a node that holds nothing better."""


class ProofPoint(NamedTuple):
    """A point in the units of the problem's columns, and its curvature; −1 for the ridge."""

    columns: Ints
    values: Floats
    curve: int


class Curve(NamedTuple):
    """A curvature d of some columns, ascending, in the units of the problem's columns."""

    columns: Ints
    d: Floats


@dataclass
class ProofNode:
    """A node of the proof: its kind, its last point, and the point that proves most."""

    last: int = -1
    best: int = -1
    bound: float = -np.inf
    kind: int = CLOSE
    column: int = -1
    out: Ints = field(default_factory=lambda: NO_COLUMNS)
    point: int | None = None
    children: tuple[int, ...] = ()


class ProofRecorder(Recorder):
    """Records everything that a verifier needs; `Node.record` is a node's index.

    A node still open at the end counts as closed by its best point, so that an unfinished search
    also proves its lower bound.

    Parameters
    ----------
    problem : Problem
        What the proof is about: all rows.
    memory_limit : float
        Bytes for X, which a verifier makes dense.
    searched : Problem, optional
        What is searched, if that is a factor of tall data.
    """

    is_on = True

    def __init__(
        self, problem: Problem, memory_limit: float = np.inf, searched: Problem | None = None
    ) -> None:
        self.problem, self.fits = problem, make_fits(problem if searched is None else searched)
        self.points: list[ProofPoint] = []
        self.curves: list[Curve] = []
        self.places = [ProofNode()]
        loss = problem.loss
        is_known = loss.name in (SQUARED, *OTHERS)
        if not is_known or type(loss) is not type(LOSSES[loss.name]):
            raise OutOfReachError(
                f"`proof` knows the losses that are built in, got loss={loss.name!r}; leave "
                "`proof` out."
            )
        size = 8.0 * problem.n_samples * problem.n_features
        if size > memory_limit:
            raise OutOfReachError(
                f"`proof` takes X as a dense array, {size:.2g} bytes, but `memory_limit` is "
                f"{memory_limit:.2g}; raise it, or leave `proof` out."
            )
        lengths = problem.design.lengths()
        is_extreme = (lengths > MODERATE) | ((lengths > 0.0) & (lengths < 1.0 / MODERATE))
        if problem.scale is not None and problem.ridge:
            raise OutOfReachError(
                "`proof` takes columns as they are given, and a `ridge` that is a number."
            )
        if problem.scale is not None or is_extreme.any():
            raise OutOfReachError(
                "`proof` takes columns between 1e-30 and 1e30 in length, got others; scale them, "
                "or leave `proof` out."
            )

    # what the tree tells ---------------------------------------------------------------------

    def relaxed(self, node: Node, bounds: Bounds, found: Relaxed) -> None:
        """Record the relaxed point."""
        place, (columns, w) = self._place(node), bounds.coefficients(node)
        place.last = self._add_point(columns, w[:, 0], self._curve(node, bounds, place.last))
        if found.bound > place.bound:
            place.bound, place.best = found.bound, place.last

    def fixed(self, node: Node, is_out: Bools, is_in: Bools) -> None:
        """Record fixed columns, with a new entry for the remaining node.

        Fixing a column in is a split on it, whose other child is closed by the same point.
        """
        place = self._place(node)
        point = place.last
        for column in node.free[is_in & ~is_out]:
            place.kind, place.column = SPLIT, int(column)
            node.record, without_it = self._follow(place), self._follow(place)
            self.places[without_it].point = point
            place = self._place(node)
        if is_out.any():
            place.kind, place.point, place.out = FIX, point, node.free[is_out]
            node.record = self._follow(place)

    def split(self, parent: Node, column: int, with_it: Node, without_it: Node) -> None:
        """Record both children of a split."""
        place = self._place(parent)
        place.kind, place.column = SPLIT, column
        with_it.record, without_it.record = self._follow(place), self._follow(place)

    def leaf(self, node: Node, support: Ints, bounds_of: Callable[[Node], Bounds]) -> None:
        """Record the best point of the support as a proof of its value."""
        place = self._place(node)
        if place.last >= 0:
            curve = self.points[place.last].curve
        else:
            curve = -1 if node.d is None else self._curve(node, bounds_of(node), -1)
        support = np.sort(support)
        w = self.fits.minimum(support).w[support]
        place.point = self._add_point(support, w, curve)

    def closed(self, node: Node) -> None:
        """Record a node closed by its best point."""
        place = self._place(node)
        place.point = place.best

    # what is kept ----------------------------------------------------------------------------

    def _place(self, node: Node) -> ProofNode:
        return self.places[max(node.record, 0)]

    def _follow(self, place: ProofNode) -> int:
        """Add an entry that continues another one, and return its index."""
        self.places.append(ProofNode(place.last, place.best, place.bound))
        place.children += (len(self.places) - 1,)
        return place.children[-1]

    def _add_point(self, columns: Ints, w: Floats, curve: int) -> int:
        used = np.flatnonzero(w)
        order = used[np.argsort(columns[used])]
        self.points.append(ProofPoint(columns[order], w[order], curve))
        return len(self.points) - 1

    def _curve(self, node: Node, bounds: Bounds, last: int) -> int:
        """Return the curvature of a node: the ridge, that of its last point, or a new one."""
        frame = getattr(bounds, "frame", None)
        if frame is None or node.d is None:
            return -1
        columns = np.concatenate([node.included, node.free])
        at, order = frame.positions(columns), np.argsort(columns)
        if np.array_equal(node.d, frame.ridge[at]):
            return -1
        columns, d = columns[order], (node.d * frame.lengths[at] ** 2)[order]
        curve = self.points[last].curve if last >= 0 else -1
        if curve >= 0:
            before = self.curves[curve]
            if np.array_equal(before.d[np.searchsorted(before.columns, columns)], d):
                return curve
        self.curves.append(Curve(columns, d))
        return len(self.curves) - 1

    # the proof -------------------------------------------------------------------------------

    def proof(self, w: Floats, bound: float) -> Proof:
        """Build the proof for coefficients w and a bound found by the search.

        Its claim is what the verifier computes, less a margin.

        Raises
        ------
        ProofError
            If it does not pass the verifier.
        """
        problem, arrays = self.problem, self._arrays()
        objective, support = problem.objective(w), np.flatnonzero(w)
        claim = {
            "format": FORMAT,
            "version": VERSION,
            "n_samples": int(np.count_nonzero(problem.weights)),
            "n_features": problem.n_features,
            "loss": problem.loss.name,
            "parameter": next(map(float, parameters_of(problem.loss).values()), None),
            "budget": int(problem.sparsity.budget),
            "price": float(problem.sparsity.price),
            "ridge": float(problem.ridge),
            "keep": problem.keep.tolist(),
            "intercept": problem.design.is_flat is not None,
            "objective": objective,
            "support": support.tolist(),
            "coef": w[support].tolist(),
        }
        X = problem.design.columns(np.arange(problem.n_features))
        found = verify_content(claim, arrays, X, problem.y, problem.sample_weight).lower_bound
        rounding = SLACK_OF_ROUNDING * max(bound - found, 0.0)
        # and never below the price of kept columns, which needs no point
        paid = min(problem.sparsity.cost(problem.keep.size), found)
        claim["lower_bound"] = float(max(found - SLACK * abs(objective) - rounding, paid))
        return Proof(claim, arrays)

    def _arrays(self) -> dict[str, Any]:
        """Return the records in replay order, and the points and curvatures they refer to."""
        records, fixed, waiting = [], [NO_COLUMNS], [0]
        while waiting:
            place = self.places[waiting.pop()]
            point = place.best if place.point is None else place.point
            point = -1 if place.kind == SPLIT else point
            records.append((place.kind, point, place.column, place.out.size))
            fixed.append(place.out)
            # of two children the one with the column comes first
            waiting += reversed(place.children)
        table = np.array(records, dtype=np.int64).reshape(-1, 4)
        used, table[:, 1] = _renumbered(table[:, 1])
        points = [self.points[i] for i in used]
        used, point_curve = _renumbered(np.array([p.curve for p in points], dtype=np.int64))
        curves = [self.curves[i] for i in used]
        return {
            "records": table,
            "fixed": np.concatenate(fixed),
            "point_curve": point_curve,
            **_flat("point", points),
            **_flat("curve", curves),
        }


def _renumbered(numbers: Ints) -> tuple[Ints, Ints]:
    """Renumber the numbers that occur, ascending; return them and the new entries; −1 stays."""
    used = np.unique(numbers[numbers >= 0])
    return used, np.where(numbers >= 0, np.searchsorted(used, numbers), -1)


def _flat(name: str, parts: list[Any]) -> dict[str, Any]:
    """Concatenate columns and values of several parts, with the start of each."""
    sizes = [part[0].size for part in parts]
    return {
        f"{name}_start": np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        f"{name}_columns": np.concatenate([NO_COLUMNS, *(part[0] for part in parts)]),
        f"{name}_values": np.concatenate([np.empty(0), *(part[1] for part in parts)]),
    }


class Proof:
    """A proof of a lower bound, which `blockl0.verify` can check; `Result.proof`.

    Attributes
    ----------
    claim : dict
        What is proven, and of which problem.
    gap : float
        Relative distance of the lower bound from the objective.
    n_records : int
        Nodes closed, columns fixed, and splits.
    nbytes : int
        Size before compression.
    """

    def __init__(self, claim: dict[str, Any], arrays: dict[str, Any]) -> None:
        self.claim, self._arrays = claim, arrays

    @property
    def gap(self) -> float:
        """(objective − lower bound)/|objective| of the claim, at least 0."""
        return relative_gap(self.claim["objective"], self.claim["lower_bound"]) or 0.0

    @property
    def n_records(self) -> int:
        """Nodes closed, columns fixed, and splits."""
        return len(self._arrays["records"])

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(array.nbytes for array in self._arrays.values())

    def save(self, path: Any, *, force: bool = False) -> Path:
        """Write a file for `blockl0.verify`, replacing an existing one only with `force`."""
        header = np.frombuffer(json.dumps(self.claim).encode(), dtype=np.uint8)
        arrays = {"header": header, **self._arrays}
        checksum = np.frombuffer(digest(arrays).encode(), dtype=np.uint8)
        file = io.BytesIO()
        np.savez_compressed(file, **arrays, checksum=checksum)
        return write_whole(path, file.getvalue(), force)

    def __repr__(self) -> str:
        known = self.claim
        n_points, n_curves = (self._arrays[f"{x}_start"].size - 1 for x in ("point", "curve"))
        return (
            f"Proof(lower_bound={known['lower_bound']:.8g}, objective={known['objective']:.8g}: "
            f"{self.n_records} records, {n_points} points, {n_curves} curvatures, "
            f"{self.nbytes / 1e6:.2g} MB)"
        )
