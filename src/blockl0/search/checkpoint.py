"""What a killed run leaves behind: the passes over X that it has made.

A search is the same every time it is run with the same seed. So its state need not be kept: the
prices of every support that was priced are. A run that is begun again reads X once, to see that no
column of it has changed; then it goes the same way and asks for the same passes, which it does not
make, and comes to the same answer. Nothing but arrays is in the file, which is written whole or not
at all.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.files import check_free, digest, read_archive, write_archive
from blockl0.problem.kinds import LEAST_SQUARES
from blockl0.problem.problem import Problem
from blockl0.search.price_memory import PriceMemory, Short

Floats = NDArray[np.float64]

FORM = "blockl0 checkpoint 2"
SAME = 1e-10
"""Of lengths: what sums over the rows of a column may differ by where blocks are others."""
PATIENCE = 20.0
"""Times the time of writing that pass between two writings, unless a pass takes longer."""


class Checkpoint:
    """The passes of one run, in a file.

    Parameters
    ----------
    path : str or Path
        Read, where it exists.
    method : str
        Of the run, which must be "refit".
    random_state : int or None
        A seed; None for one that is drawn once and kept.
    """

    def __init__(self, path: Any, method: str = "refit", random_state: Any = None) -> None:
        if method != "refit":
            raise ValueError(f"`checkpoint` is for method='refit', got method={method!r}.")
        if isinstance(random_state, np.random.Generator):
            raise TypeError(
                "`checkpoint` needs a `random_state` that a later run can repeat: an integer, or "
                "None for one that is kept in the file; got a Generator."
            )
        self.path = Path(path)
        self._content: dict[str, Any] = {}
        if self.path.exists():
            self._content = read_archive(self.path, FORM, "a checkpoint")
        else:
            check_free(self.path)
        fresh = np.random.default_rng().integers(2**62)
        drawn = int(self._content.get("seed", fresh))
        self._seed = drawn if random_state is None else random_state
        self._memory: PriceMemory | None = None
        self._told: dict[str, Any] = {}
        self._next = 0.0

    @property
    def seed(self) -> int:
        """Of the run, the same when it is begun again."""
        return self._seed

    def bind(self, problem: Problem, init: Any, options: dict[str, Any]) -> None:
        """Take the run of a problem, or refuse one of other data or options."""
        if problem.kind is not LEAST_SQUARES:
            raise ValueError(
                "`checkpoint` keeps passes for the squared loss of one response, without groups, "
                f"bounds and costs, got loss={problem.loss.name!r}; leave it out."
            )
        words = {name: str(value) for name, value in options.items()}
        words |= {"n_nonzero_coefs": str(problem.sparsity.budget), "ridge": str(problem.ridge),
                  "alpha": str(problem.sparsity.price), "keep": str(problem.keep.tolist()),
                  "init": "none" if init is None else digest({"init": init})}  # fmt: skip
        marks, sums = _marks(problem), _sums(problem)
        if self._content:
            self._check(json.loads(str(self._content["options"])), words, "options")
            self._check(json.loads(str(self._content["data"])), marks, "data")
            self._check({}, _changed(self._content["sums"], sums, problem), "data")
        self._told = {"options": json.dumps(words), "data": json.dumps(marks), "sums": sums,
                      "seed": self._seed}  # fmt: skip
        problem.shared["checkpoint"] = self

    def fill(self, memory: PriceMemory) -> None:
        """Give a search the prices that are known, and write what it asks for from now on."""
        for name in self._content:
            if name.startswith("support_"):
                own = name.removeprefix("support_")
                short = Short(*(self._content[f"{part}_{own}"] for part in Short._fields))
                memory.recall(self._content[name], short)
        memory.most, memory.notify, self._memory = np.inf, self.write, memory
        self.write()

    def write(self, is_last: bool = False) -> None:
        """Write all that is known, unless that was done a moment ago."""
        begun = time.perf_counter()
        if not self._told or (begun < self._next and not is_last):
            return
        content = dict(self._told)
        for i, (key, short) in enumerate(self._memory.contents() if self._memory else ()):
            content[f"support_{i}"] = key
            content |= {f"{part}_{i}": value for part, value in short._asdict().items()}
        write_archive(self.path, FORM, content, force=True)
        end = time.perf_counter()
        self._next = end + PATIENCE * (end - begun)

    def _check(self, then: dict[str, Any], now: dict[str, Any], what: str) -> None:
        """Refuse a run of other data or options by the first difference."""
        for name in dict.fromkeys([*now, *then]):
            before, here = then.get(name, "not given"), now.get(name, "not given")
            if before != here:
                seen = f"{name} was {before} and is {here}"
                seen = f"{name} differs" if len(seen) > 120 else seen
                raise ValueError(
                    f"`checkpoint` {str(self.path)!r} is of a run with other {what}: {seen}; "
                    "remove the file, or give another name."
                )


def _marks(problem: Problem) -> dict[str, str]:
    """Return what identifies data besides the sums of columns: shapes, y and weights."""
    weights = problem.sample_weight
    return {
        "the shape of X": str(tuple(problem.design.shape)),
        "y": digest({"y": problem.y}),
        "sample_weight": "none" if weights is None else digest({"weights": weights}),
    }


def _sums(problem: Problem) -> Floats:
    """Squared lengths of all columns and their products with y, (2, n); from the first pass."""
    return np.stack([problem.design.sq_norms(problem.sample_weight), problem.gradient_at_zero])


def _changed(then: Floats, now: Floats, problem: Problem) -> dict[str, str]:
    """Return the first column whose sums differ; {} for none."""
    length = np.sqrt(2.0 * problem.loss_at_zero)
    size = np.stack([now[0], np.sqrt(now[0]) * length])
    others = np.flatnonzero(~(np.abs(now - then) <= SAME * size).all(axis=0))
    return {f"column {others[0]} of X": "changed"} if others.size else {}
