"""Files with proofs: what is in them, and that it is whole."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from blockl0.verify.arrays import names_of, read_arrays, words_of
from blockl0.verify.base import (
    CLOSE,
    FIX,
    LEAST_CURVATURE,
    SPLIT,
    ProofError,
    Task,
    columns_of,
    require,
)
from blockl0.verify.losses import OTHERS, SQUARED

FORMAT, VERSION = "blockl0-proof", 2
"""The kind of file."""
ARRAYS = (
    "records", "fixed", "point_curve", "point_start", "point_columns", "point_values",
    "curve_start", "curve_columns", "curve_values",
)  # fmt: skip
"""Whole numbers, and values that are not."""
HEADER = (
    "format", "version", "n_samples", "n_features", "loss", "parameter", "budget", "price",
    "ridge", "keep", "intercept", "objective", "support", "coef", "lower_bound",
)  # fmt: skip
"""Nothing else may be stated: it would be about another problem."""
PARTS, NONE = ("columns", "values"), np.empty(0, np.int64)


class Record(NamedTuple):
    """What is done with a node: a column to split by, columns to be fixed out, a point, its d."""

    kind: int
    column: int
    out: Any
    w: Any
    d: Any


def digest(arrays: dict[str, Any]) -> str:
    """Compute the SHA-256 of the arrays of a file, with their names and types."""
    names = [f"{name} {arrays[name].dtype.str} {arrays[name].shape}" for name in sorted(arrays)]
    content = b"".join(arrays[name].tobytes() for name in sorted(arrays))
    return hashlib.sha256("\n".join(names).encode() + content).hexdigest()


def is_proof(path: Any) -> bool:
    """Check if a file is an archive with the parts of a proof, whole or not."""
    return {"header", "checksum"} <= names_of(path)


def read_proof(path: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a file claims, and its arrays; refuse a damaged one."""
    try:
        arrays = read_arrays(path)
        claim, stored = json.loads(arrays["header"].tobytes()), arrays.pop("checksum").tobytes()
        seen, loss = (claim["format"], claim["version"]), claim.get("loss")
    except OSError:  # there is no such file, or it may not be read
        raise
    except Exception as error:  # whatever JSON makes of another file
        raise ProofError(f"{path} is no proof, or damaged: {words_of(error)}.") from error
    require(seen == (FORMAT, VERSION), f"{path} is {seen}, not {FORMAT} of version {VERSION}.")
    require(digest(arrays).encode() == stored, f"{path} is damaged: its checksum is another.")
    require(loss in (SQUARED, *OTHERS), f"Loss {loss!r} is unknown.")
    unknown = sorted({*claim, *arrays} - {*HEADER, *ARRAYS, "header"})
    require(not unknown, f"The verifier knows nothing of {', '.join(map(repr, unknown))}.")
    return claim, arrays


def task_of(claim: Any) -> tuple[Task, Any]:
    """Return the problem that a file states, and its coefficients."""
    n, budget = claim["n_features"], claim["budget"]
    numbers = [claim["price"], claim["ridge"], claim["objective"], *claim["coef"]]
    are_numbers = all(isinstance(x, float | int) and not isinstance(x, bool) for x in numbers)
    require(are_numbers and type(budget) is int, "The proof is malformed: a text for a number.")
    coef, support = np.zeros(n), columns_of(claim["support"], n)
    require(support.size == len(claim["coef"]), "The proof is malformed: coefficients are missing.")
    coef[support] = claim["coef"]
    price, ridge = float(claim["price"]), float(claim["ridge"])
    return Task(price, ridge, min(budget, n), columns_of(claim["keep"], n)), coef


class Content:
    """The curvatures and records of a file, as the verifier takes them.

    Columns without effect, zeros where there is no ridge, have no curvature and no entry in a
    point: F depends on how many of them are held, not on their coefficients.
    """

    arrays: Any
    task: Task
    has_effect: Any

    def __init__(self, arrays: Any, task: Task, has_effect: Any) -> None:
        self.arrays, self.task, self.has_effect = arrays, task, has_effect
        for name in ARRAYS:
            seen = arrays[name].dtype.kind, arrays[name].dtype.itemsize, arrays[name].ndim
            right = "f" if name.endswith("values") else "i", 8, 2 if name == "records" else 1
            require(seen == right, f"The proof is malformed: {name} is {seen}, not {right}.")
        for of in ("point", "curve"):
            start, sizes = arrays[f"{of}_start"], {arrays[f"{of}_{x}"].size for x in PARTS}
            is_whole = start[0] == 0 and (start[:-1] <= start[1:]).all() and sizes == {start[-1]}
            require(is_whole, f"The proof is malformed: {of}_start does not divide its columns.")
        self.curves: Any = [self._curve(i) for i in range(arrays["curve_start"].size - 1)]

    def records(self) -> Iterator[Record]:
        """Yield the records; a point and its curvature have an entry for every column."""
        done = 0
        for kind, point, column, n_out in self.arrays["records"]:
            out = self.arrays["fixed"][done : done + n_out] if kind == FIX else NONE
            done += out.size
            require(kind in (CLOSE, FIX, SPLIT), f"The proof is malformed: kind {kind} is none.")
            require(out.size == n_out, "The proof is malformed: columns to be fixed are missing.")
            w, d = self._point(point) if point >= 0 else (None, None)
            yield Record(kind, column, out, w, d)

    def _part(self, of: str, i: int) -> tuple[Any, Any]:
        """Return the columns with effect, and their values."""
        start, stop = self.arrays[f"{of}_start"][i : i + 2]
        columns = columns_of(self.arrays[f"{of}_columns"][start:stop], self.has_effect.size)
        counts = self.has_effect[columns]
        return columns[counts], self.arrays[f"{of}_values"][start:stop][counts]

    def _curve(self, i: int) -> tuple[Any, Any]:
        columns, d = self._part("curve", i)
        require((d > LEAST_CURVATURE).all() and np.isfinite(d).all(), "A curvature is not one.")
        return columns, d

    def _point(self, i: int) -> tuple[Any, Any]:
        """Return a point, zero where it has no entry, and d, NaN where that has none."""
        w, curve = np.zeros(self.has_effect.size), int(self.arrays["point_curve"][i])
        columns, values = self._part("point", i)
        w[columns] = values
        if curve < 0:
            require(self.task.ridge > 0.0, "A bound without ridge has no curvature.")
            return w, np.full(w.size, self.task.ridge)
        d = np.where(self.has_effect, np.nan, 1.0)
        d[self.curves[curve][0]] = self.curves[curve][1]
        return w, d
