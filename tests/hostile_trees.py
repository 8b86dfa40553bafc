"""Problems made to mislead the proofs of method "exact", and all that their trees claim.

Every relaxation of every node is compared with the enumerated minimum over the node's supports, as
are the bounds with a column in and with a column out. The values of the enumeration are reached by
points, so that a bound above one of them is wrong whatever the enumeration misses.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

import hostile
import structures
from blockl0.exact import products, prover, units
from blockl0.exact import search as tableaus
from blockl0.exact.tree import MOST_UNRESOLVED, TIE_TOLERANCE, ProofTree
from blockl0.problem import preprocess
from blockl0.problem.fits import make_fits
from blockl0.problem.orthogonal import rounding_of
from blockl0.problem.problem import Problem, as_problem
from blockl0.run import Incumbent
from hostile_minima import LOSSES, minima_of
from targets import is_positive, takes_labels

EXACT = 1e-13
"""Share of an objective that the enumeration itself may be wrong by."""
MOST_NODES = 3000


# making ------------------------------------------------------------------------------------------


@dataclass
class Posed:
    """A bound problem, the minimum on every support, and how it was made."""

    problem: Problem
    values: np.ndarray
    slack: np.ndarray
    allowed: np.ndarray
    recipe: list[str]

    @property
    def optimum(self) -> float:
        return float(np.where(self.allowed, self.values, np.inf).min())


def wide_scales(rng, X):
    X *= 10.0 ** rng.uniform(-30, 30, X.shape[1])


def constant_column(rng, X):
    X[:, rng.integers(X.shape[1])] = rng.choice([1.0, -3.7, 1e6])


TWISTS = [*hostile.TWISTS, constant_column]


def make_columns(rng, m, n, recipe, is_mild):
    X = rng.standard_normal((m, n))
    if rng.random() < 0.4:
        base = hostile.BASES[rng.integers(len(hostile.BASES))]
        base(rng, X)
        recipe.append(base.__name__)
    for _ in range(rng.integers(0, 4)):
        twist = TWISTS[rng.integers(len(TWISTS))]
        twist(rng, X)
        recipe.append(twist.__name__)
    if rng.random() < 0.08:
        wide_scales(rng, X)
        recipe.append("wide_scales")
    elif is_mild and rng.random() < 0.7:
        X /= np.maximum(np.abs(X).max(axis=0), 1e-300)
        recipe.append("mild")
    return X


def make_values(rng, X, loss, recipe):
    """A target that the loss takes: mixed, of one class or value, separable, huge."""
    if loss == "squared":
        if rng.random() < 0.05:
            recipe.append("y zero")
            return np.zeros(len(X))
        return hostile.make_target(rng, X, recipe)
    lengths = np.linalg.norm(X, axis=0)
    trend = X @ (rng.standard_normal(X.shape[1]) / np.where(lengths > 0, lengths, 1.0))
    kind = rng.choice(["random", "trend", "one", "huge"], p=[0.4, 0.4, 0.1, 0.1])
    recipe.append(f"y {kind}")
    if kind == "random":
        trend = rng.standard_normal(len(X))
    if takes_labels(loss):
        return np.full(len(X), rng.choice([-1.0, 1.0])) if kind == "one" else np.sign(trend - 1e-9)
    if is_positive(loss):
        size = 10.0 ** rng.uniform(3, 12) if kind == "huge" else 10.0 ** rng.uniform(-2, 2)
        y = size * np.exp(np.clip(2.0 * trend, -20, 20))
        y = np.full(len(X), size) if kind == "one" else y
        y = y if loss == "gamma" else np.floor(y)
        return y if y.any() else y + 1.0
    y = np.zeros(len(X)) if kind == "one" else trend
    return y * (10.0 ** rng.uniform(-6, 6) if kind == "huge" else rng.choice([0.3, 3.0]))


def make_options(rng, X, y, loss, recipe):
    m, n = X.shape
    form = rng.choice(["budget", "price", "both"])
    options: dict[str, Any] = {"loss": loss}
    if form != "price":
        options["n_nonzero_coefs"] = int(rng.integers(0, n + 1))
    if form != "budget":
        scale = 0.5 * float(y @ y) if loss == "squared" else float(m)
        options["alpha"] = scale * 10.0 ** rng.uniform(-10, 0.3) or 1.0
    squares = (X**2).sum(axis=0)
    size = float(rng.choice([squares.max(), np.median(squares), 1.0])) or 1.0
    if loss != "squared":
        options["ridge"] = size * 10.0 ** rng.uniform(-8, 2)
    elif rng.random() < 0.65:
        options["ridge"] = size * 10.0 ** rng.uniform(-16 if rng.random() < 0.4 else -4, 2)
    if rng.random() < 0.2:
        options["sample_weight"] = rng.integers(0, 4, m) * rng.choice([1.0, 0.37]) + 0.0
        if not options["sample_weight"].any():
            options["sample_weight"][0] = 1.0
    budget = options.get("n_nonzero_coefs", n)
    if rng.random() < 0.2 and budget:
        kept = budget if rng.random() < 0.2 else rng.integers(1, 4)
        options["keep"] = np.unique(rng.integers(n, size=min(budget, kept)))
    words = sorted(set(options) - {"n_nonzero_coefs", "alpha", "loss"})
    recipe.append(f"{loss} {m}x{n} {form} {words}")
    return options


def make_posed(seed: int, largest: int = 8) -> Posed:
    """The problem of a seed, with its truth."""
    rng = np.random.default_rng([20261117, seed])
    recipe: list[str] = []
    loss = "squared" if rng.random() < 0.6 else LOSSES[rng.integers(len(LOSSES))]
    n = int(rng.integers(1, largest + 1 - 2 * (loss != "squared")))
    m = int(rng.integers(1, 2 * largest + 1))
    X = make_columns(rng, m, n, recipe, loss != "squared")
    y = make_values(rng, X, loss, recipe)
    options = make_options(rng, X, y, loss, recipe)
    problem = as_problem(sp.csc_array(X) if rng.random() < 0.25 else X, y, **options)
    if rng.random() < 0.4:
        recipe.append("intercept")
        problem = preprocess.apply(problem).problem
    return pose(problem, recipe)


def make_structured(seed: int) -> Posed:
    """A problem of groups, bounds, costs or responses: its values are those of a general solver.

    With a weak or no ridge, columns that repeat others, of the squared loss; else any loss.
    """
    rng = np.random.default_rng([20261119, seed])
    kind = structures.KINDS[rng.integers(len(structures.KINDS))]
    X, y, given = structures.draw(kind, seed)
    recipe = [f"{kind} {X.shape}"]
    if rng.random() < 0.4:
        given["ridge"] = 10.0 ** rng.uniform(-6, 2)
    if rng.random() < 0.2:
        X = X * 10.0 ** rng.uniform(-3, 3, X.shape[1])
        given.pop("bounds", None)
        recipe.append("scales")
    problem = as_problem(X, y, **given)
    units, fits = problem.n_units, make_fits(problem)
    masks = np.arange(1 << units)
    values = np.full(masks.size, np.inf)
    for mask in masks:
        chosen = np.flatnonzero((mask >> np.arange(units)) & 1)
        columns = problem.units.columns(chosen)
        # whatever is reached with these columns is no less than the truth
        values[mask] = fits.minimum(columns).value + problem.cost(chosen)
    size, kept = hostile.popcount(masks), hostile.mask_of(problem.keep)
    allowed = (size <= problem.sparsity.budget) & ((masks & kept) == kept)
    slack = rounding_of(problem, problem.zero()) + EXACT * np.abs(values)
    return Posed(problem, values, slack, allowed, recipe)


def pose(problem: Problem, recipe: list[str]) -> Posed:
    """Enumerate the supports of a problem."""
    n = problem.n_features
    masks = np.arange(1 << n)
    if problem.is_quadratic:
        values, slack, allowed = _least_squares(problem)
    else:
        values, slack = minima_of(problem)
        allowed = np.ones(masks.size, dtype=bool)
    size = hostile.popcount(masks)
    values = values + problem.sparsity.price * size
    allowed &= size <= problem.sparsity.budget
    kept = hostile.mask_of(problem.keep)
    allowed &= (masks & kept) == kept
    return Posed(
        problem, values, slack + EXACT * np.abs(values), allowed & np.isfinite(values), recipe
    )


# truth -------------------------------------------------------------------------------------------


def _least_squares(problem):
    """Values, what they may be wrong by, and which supports are independent."""
    options: dict[str, Any] = {"ridge": problem.ridge}
    if problem.sample_weight is not None:
        options["sample_weight"] = problem.sample_weight
    X = problem.design.columns(np.arange(problem.n_features))
    truth = hostile.enumerate_supports(hostile.Hostile(X, problem.y, options))
    return truth.objective, 2.0 * truth.shaky, truth.allowed


# claims ------------------------------------------------------------------------------------------


class Watched:
    """Bounds whose every claim is compared with the truth."""

    def __init__(self, bounds, posed: Posed, ceiling: float, wrong: list[str], seen: Counter):
        self.bounds, self.posed, self.ceiling = bounds, posed, ceiling
        self.wrong, self.seen = wrong, seen

    def relax(self, node, cutoff, share):
        relaxed = self.bounds.relax(node, cutoff, share)
        posed, name = self.posed, type(self.bounds).__name__
        self.seen[name] += 1
        masks, values = np.arange(posed.values.size), self._values(node)
        with_in, with_out = relaxed.with_it_in(), relaxed.with_it_out()
        self._compare(f"{name}: bound", relaxed.bound, values.min())
        for place, j in enumerate(node.free):
            has = (masks >> int(j)) & 1 == 1
            self._compare(f"{name}: with {j} in", with_in[place], values[has].min())
            self._compare(f"{name}: with {j} out", with_out[place], values[~has].min())
        if np.isnan(relaxed.bound):
            self.seen["nan"] += 1
        return relaxed

    def bound_of(self, support, w, cutoff):
        bound = self.bounds.bound_of(support, w, cutoff)
        mask = hostile.mask_of(support)
        if np.isfinite(bound) and self.posed.allowed[mask]:
            self.seen["leaves"] += 1
            least = self.posed.values[mask] + self.posed.slack[mask]
            self._compare(f"{type(self.bounds).__name__}: leaf", bound, least)
        return bound

    def finish(self, node, cutoff):
        found = self.bounds.finish(node, cutoff)
        if found is None:
            return None
        self.seen["closed at once"] += 1
        values = self._values(node)
        for doubt in found.doubts:
            values[hostile.mask_of(np.concatenate([node.included, node.free[doubt]]))] = np.inf
        self._compare("all at once", found.bound, values.min())
        return found

    def _values(self, node):
        """Of every bit mask, infinite for those that are not among the node's supports."""
        posed, masks = self.posed, np.arange(self.posed.values.size)
        included = hostile.mask_of(node.included)
        every = included | hostile.mask_of(node.free)
        is_here = posed.allowed & ((masks & included) == included) & ((masks & ~every) == 0)
        return np.where(is_here, posed.values + posed.slack, np.inf)

    def _compare(self, what, bound, least):
        # a bound on the intercept holds for what is below the first incumbent only
        if self.posed.problem.has_intercept:
            bound = min(bound, self.ceiling)
        if bound > least:
            off = (bound - least) / max(abs(least), 1e-300)
            self.wrong.append(f"{what} {bound!r} > {least!r}, by {off:.2g}")

    def sharpen(self, node, relaxed, cutoff):
        self.seen["sharpened"] += 1
        return self.bounds.sharpen(node, relaxed, cutoff)


def some_incumbent(rng, posed: Posed) -> Incumbent | None:
    """A feasible point: a good one, that of a random support, or a bad one."""
    problem, allowed = posed.problem, np.flatnonzero(posed.allowed)
    if allowed.size == 0:
        return None
    kind = rng.choice(["best", "random", "bad"])
    mask = int(rng.choice(allowed))
    if kind == "best":
        mask = int(allowed[np.argmin(posed.values[allowed])])
    support = np.flatnonzero([(mask >> j) & 1 for j in range(problem.n_units)])
    w = make_fits(problem).minimum(problem.units.columns(support)).w
    if kind == "bad":
        w = w * rng.choice([0.0, 0.5, 2.0])
        if not problem.is_plain:
            return Incumbent.at(problem, problem.zero())
        w[problem.keep] += (w[problem.keep] == 0.0) * 1e-3
    found = Incumbent.at(problem, w)
    return found if np.isfinite(found.objective) else None


@contextmanager
def forced(rng, n: int):
    """Limits under which small problems take the ways of large ones; yields `memory_limit`."""
    before = prover.WHOLE, prover.FEW, prover.TALL, products.WIDE
    others = tableaus.FEW_COLUMNS, products.ROOM
    tableaus.FEW_COLUMNS, products.ROOM = int(rng.choice([0, 0, 0, 2, 4])), int(rng.integers(3))
    way = rng.choice(["products", "data", "handed over", "small memory", "ascending"])
    memory = float(rng.choice([np.inf, 1e9, 1e3, 1.0]))
    if way in ("data", "handed over"):
        prover.WHOLE, prover.TALL = 0, 0.0
        prover.FEW = 0 if way == "data" else int(rng.integers(0, n + 1))
    if way == "small memory":
        memory, prover.FEW = 1.0, int(rng.integers(0, n + 1))
    if way == "ascending":
        prover.TALL = products.WIDE = np.inf
    try:
        yield way, memory
    finally:
        prover.WHOLE, prover.FEW, prover.TALL, products.WIDE = before
        tableaus.FEW_COLUMNS, products.ROOM = others


def check_tree(seed: int, largest: int = 8) -> tuple[Counter, list[str]]:
    """Grow the tree of a seed's problem: what was done, and what is wrong."""
    posed = make_posed(seed, largest)
    rng = np.random.default_rng([seed, 14])
    return check_posed(rng, posed, f"seed {seed}")


def check_structured(seed: int) -> tuple[Counter, list[str]]:
    """Grow the tree of a seed's problem in units: what was done, and what is wrong."""
    rng = np.random.default_rng([seed, 15])
    return check_posed(rng, make_structured(seed), f"structured seed {seed}")


def check_posed(rng, posed: Posed, name: str) -> tuple[Counter, list[str]]:
    """Grow a tree on a problem and judge it."""
    problem, seen, wrong = posed.problem, Counter(), []
    start = some_incumbent(rng, posed)
    if start is None:
        return Counter({"no start": 1}), []
    gap = float(rng.choice([0.0, 0.0, 0.0, 0.01, 0.3]))
    limit = int(rng.choice([0, 1, 3, 10])) if rng.random() < 0.2 else MOST_NODES
    with forced(rng, problem.n_features) as (way, memory):
        try:
            tree = prover.Prover(problem, start, gap=gap, memory_limit=memory).tree
        except units.NoBoundError as error:
            is_certain = problem.is_plain and "intercept" not in str(error)
            if problem.ridge > 0.0 and is_certain:
                wrong.append(f"no bound with a ridge: {error}")
            return Counter({"no bound": 1}), [
                f"{name} ({', '.join(posed.recipe)}): {w}" for w in wrong
            ]
        inner = tree.bounds_of
        tree.bounds_of = lambda node: Watched(inner(node), posed, start.objective, wrong, seen)
        n_steps, bound = 0, tree.bound
        while not tree.is_finished and n_steps < limit:
            tree.advance()
            n_steps += 1
            seen["falls"] += tree.bound < bound - 1e-12 * abs(bound)
            bound = tree.bound
    seen.update([way, "finished" if tree.is_finished else "stopped", problem.loss.name])
    seen["nodes"] += tree.n_nodes
    seen["tableaus"] += tree.n_handed
    wrong += wrong_end(tree, posed, gap, limit)
    recipe = ", ".join([*posed.recipe, way, f"gap {gap:g}", f"memory {memory:g}"])
    return seen, [f"{name} ({recipe}): {what}" for what in wrong]


def wrong_end(tree: ProofTree, posed: Posed, gap: float, limit: int) -> list[str]:
    """What is wrong with the bound and the point of a tree."""
    problem, best, wrong = posed.problem, tree.incumbent, []
    at = int(np.argmin(np.where(posed.allowed, posed.values, np.inf)))
    optimum, slack = posed.values[at], posed.slack[at]
    size = abs(best.objective)
    tie = TIE_TOLERANCE * size
    tie += rounding_of(problem, best.w) if problem.is_quadratic else MOST_UNRESOLVED * size
    if not tree.bound <= optimum + slack + (tie if problem.is_quadratic else 0.0):
        wrong.append(f"lower bound {tree.bound!r}, but {optimum!r} is reached")
    if not tree.is_finished and limit == MOST_NODES:
        wrong.append(f"{tree.n_nodes} nodes are not enough")
    if tree.is_finished and (tree.is_optimal or tree.is_within_gap):
        if not best.objective - max(gap * abs(best.objective), tie) <= optimum + slack:
            wrong.append(f"{best.objective!r} is called optimal, {optimum!r} is reached")
        if best.objective - tree.bound > 1.01 * max(gap * abs(best.objective), tie):
            wrong.append(f"finished at {best.objective!r} with the bound {tree.bound!r}")
    elif tree.is_finished and problem.is_quadratic:
        wrong.append(f"finished at {best.objective!r}, but {tree.bound!r} is all that is proven")
    if problem.units.count(best.w) > problem.sparsity.budget:
        wrong.append(f"{problem.units.count(best.w)} nonzeros")
    if best.objective != problem.objective(best.w):
        wrong.append(f"objective {best.objective!r} of a point with {problem.objective(best.w)!r}")
    # of other losses the enumeration may end early: its values are reached, not the least ones
    is_known = problem.is_quadratic and problem.is_plain
    is_known = is_known and (best.w[problem.keep] != 0.0).all()
    if is_known and best.objective < optimum - slack - 1e-9 * abs(optimum) - tie:
        wrong.append(f"{best.objective!r} is below the optimum {optimum!r}")
    return wrong
