"""Check a proof of method "exact": plain NumPy, nothing of the search, nothing of this package.

A node holds the supports with all `included` columns and some `free` ones, at most `budget` in all;
at the root the kept columns are included, and all others free. Records come in the order in which
they are replayed here: one closes a node; fixes columns of it, out or in; or splits it by a column.

Let f be the smooth part and d > 0 a curvature such that f(v) − ½Σ d_j v_j² is convex: the ridge, or
more where a Cholesky factorization shows it. Its tangent at any point w is a lower bound,

    f(v) + price·|v|₀ ≥ constant + Σ_j (½ d_j v_j² − b_j v_j + price·[v_j ≠ 0]),

so that a column takes away its score b_j²/2d_j − price at most. Points and curvatures come from the
file; what they prove is worked out here, from the data, with allowances for rounding: a sum of m
products is right to m·ε/2 times the sum of their sizes, and some more for their factors.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple

import numpy as np

FORMAT, VERSION, CLOSE, FIX, SPLIT = "blockl0-proof", 1, 0, 1, 2
"""The kind of file, and what a record does with the next node."""
EPSILON, RIGHT = float(np.finfo(np.float64).eps), 1e-9
"""Rounding; and the share of the objective, here and at zero, to which the file's must be right."""
FARTHEST = 2.0**20
"""Intercepts are sought up to this; none beyond could matter in a bound."""
LABELS, LOG_LINKS = ("logistic", "squared_hinge"), ("poisson", "gamma", "tweedie")
PARAMETERS: Any = dict(squared=np.inf, logistic=0.0, squared_hinge=0.0, poisson=1.0, gamma=2.0)
"""Of losses without a choice of one: squares are Huber's loss, counts and amounts Tweedie's."""


class ProofError(ValueError):
    """A proof is refused; the message says why."""


class Verified(NamedTuple):
    """No admissible support has an objective below `lower_bound`; the gap is a share."""

    lower_bound: float
    objective: float
    gap: float


def _require(holds: Any, reason: str) -> None:
    if not holds:
        raise ProofError(reason)


def _are_columns(columns: Any, X: Any) -> bool:
    within = columns[:1].size == 0 or (0 <= columns[0] and columns[-1] < X.shape[1])
    return columns.ndim == 1 and bool(within) and bool((np.diff(columns) > 0).all())


def digest(arrays: dict[str, Any]) -> str:
    """SHA-256 of the arrays of a file, with their names and types."""
    names = [f"{name} {arrays[name].dtype.str} {arrays[name].shape}" for name in sorted(arrays)]
    content = b"".join(arrays[name].tobytes() for name in sorted(arrays))
    return hashlib.sha256("\n".join(names).encode() + content).hexdigest()


def read_proof(path: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a file claims, and its arrays; a damaged one is refused."""
    try:
        with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        claim, stored = json.loads(arrays["header"].tobytes()), arrays.pop("checksum").tobytes()
        seen = claim["format"], claim["version"]
    except FileNotFoundError:
        raise
    except Exception as error:  # whatever NumPy, zip and JSON make of another file
        raise ProofError(f"{path} is no proof, or damaged: {type(error).__name__}.") from error
    _require(seen == (FORMAT, VERSION), f"{path} is {seen}, not {FORMAT} of version {VERSION}.")
    _require(digest(arrays).encode() == stored, f"{path} is damaged: its checksum is another.")
    return claim, arrays


def verify(path: Any, X: Any, y: Any, sample_weight: Any = None) -> Verified:
    """Check a proof that `solve(..., method="exact", proof=path)` has written.

    Parameters
    ----------
    path : str or Path
    X : array-like or scipy.sparse (m, n)
        As it was given for the proof; it is made dense.
    y : array-like (m,)
        Labels are -1 and 1, or 0 and 1.
    sample_weight : array-like (m,), optional

    Returns
    -------
    Verified
        The lower bound that is proven, the objective at the coefficients of the file, and the gap.

    Raises
    ------
    ProofError
        The file is damaged, belongs to other data, or does not prove what it claims.
    """
    claim, arrays = read_proof(path)
    found, claimed = check(claim, arrays, X, y, sample_weight), claim.get("lower_bound")
    holds = isinstance(claimed, float) and found.lower_bound >= claimed
    _require(holds, f"The bound is {found.lower_bound:.12g}, below the claim {claimed}.")
    return found


def check(claim: Any, arrays: Any, X: Any, y: Any, sample_weight: Any = None) -> Verified:
    """What the content of a file proves, whatever lower bound it claims."""
    try:
        with np.errstate(all="ignore"):
            problem = _Problem(claim, X, y, sample_weight)
            best = problem.objective
            lower = float(min(best, _Bounds(problem, claim, arrays).replay(claim)))
    except ProofError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ProofError(f"The proof is malformed: {type(error).__name__} {error}.") from error
    return Verified(lower, best, (best - lower) / abs(best) if best > lower else 0.0)


class _Problem:
    """The data, and the objective of the coefficients that the proof is about."""

    def __init__(self, claim: Any, X: Any, y: Any, sample_weight: Any) -> None:
        self.price, self.ridge = float(claim["price"]), float(claim["ridge"])
        self.name, self.box, self.has_box = claim["loss"], 0.0, False
        _require(self.name in (*PARAMETERS, "huber", "tweedie"), f"Loss {self.name} is unknown.")
        self.parameter = float(PARAMETERS.get(self.name, claim["parameter"]))
        X, y = X.toarray() if hasattr(X, "toarray") else np.asarray(X), np.asarray(y, float)
        weights = np.ones(y.size) if sample_weight is None else np.asarray(sample_weight, float)
        _require((weights >= 0.0).all(), "Weights are negative.")
        X, y, self.weights = X[weights > 0.0], y[weights > 0.0], weights[weights > 0.0]
        self.X, self.y, self.is_squared = np.array(X, float, order="F"), y, self.parameter == np.inf
        shape = claim["n_samples"], claim["n_features"]
        _require(X.shape == shape, f"The proof is about data of shape {shape}, got {X.shape}.")
        self._check_target()
        if claim["intercept"]:
            self._centre()
            self.has_box = not self.is_squared
        self.norms = np.sqrt(np.einsum("i,ij,ij->j", self.weights, self.X, self.X))
        _require(np.isfinite([*self.norms, *self.y]).all(), "The data are not finite.")
        keep, support = np.array(claim["keep"], int), np.array(claim["support"], int)
        coef = np.array(claim["coef"], float)
        _require(_are_columns(keep, X) and _are_columns(support, X), "Columns are not ascending.")
        of_zero = self.weights @ self.loss(self.predictor(support[:0], coef[:0]))[0]
        value = self.weights @ self.loss(self.predictor(support, coef))[0]
        counted = self.price * np.count_nonzero(coef) + 0.5 * self.ridge * (coef @ coef)
        self.objective, stated = float(value + counted), float(claim["objective"])
        is_right = abs(self.objective - stated) <= RIGHT * float(abs(self.objective) + of_zero)
        _require(is_right, f"The objective is {self.objective:.12g}, not {stated:.12g} as claimed.")
        size = np.union1d(support, keep).size
        _require(size <= int(claim["budget"]), f"{size} columns are more than the budget.")
        _require(min(self.price, self.ridge, 0.0) == 0.0, "Price or ridge is negative.")
        self.box = self.intercept_box() if self.has_box else 0.0

    def _check_target(self) -> None:
        """A loss is convex and not negative for its own targets and parameters only."""
        if self.name in LABELS:
            self.y = np.where(self.y == 0.0, -1.0, self.y)
            _require(np.isin(self.y, (-1.0, 1.0)).all(), "Labels are -1 and 1, or 0 and 1.")
        elif self.name in LOG_LINKS:
            least = self.y.min() if self.parameter < 2.0 else self.y.min() - 1e-300
            _require(1.0 <= self.parameter <= 2.0 and least >= 0.0, "Target or power is wrong.")
        else:
            _require(self.parameter > 0.0, "The loss has no such parameter.")

    def _centre(self) -> None:
        """Take means from the columns, and from y where the best intercept is then zero.

        An intercept makes up for whatever is taken from a column, so that only the squared loss,
        which loses it, needs true means. Columns that are one number, but for rounding, are zero.
        """
        largest, total = abs(self.X).max(axis=0), self.weights.sum()
        for _ in range(3):
            self.X -= self.weights @ self.X / total
            self.y = self.y - (self.weights @ self.y / total if self.is_squared else 0.0)
        self.X[:, abs(self.X).max(axis=0) <= 16.0 * EPSILON * largest] = 0.0

    def loss(self, eta: Any) -> Any:
        """Values, slopes, and what slopes are rounded in proportion to."""
        y, r, t, parameter = self.y, eta - self.y, eta * self.y, self.parameter
        if self.name not in (*LABELS, *LOG_LINKS):
            slope = np.clip(r, -parameter, parameter)
            return slope * (r - 0.5 * slope), slope, abs(slope)
        if self.name in LABELS[:1]:
            small = np.exp(-abs(t))
            share = np.where(t > 0.0, small, 1.0) / (1.0 + small)
            return np.logaddexp(0.0, -t), -y * share, share
        if self.name in LABELS:
            short = np.maximum(0.0, 1.0 - t)
            return 0.5 * short**2, -y * short, short
        a, b, log_y = parameter - 1.0, 2.0 - parameter, np.log(np.where(y > 0.0, y, 1.0))
        u, down, up = eta - log_y, y * np.exp(-a * eta), np.exp(b * eta)
        rests = sum((np.expm1(c * u) - c * u) / abs(c) for c in (-a, b) if c != 0.0)
        value = np.where(y > 0.0, np.exp(b * log_y) * rests, up / b if b else 0.0)
        return value, up - down, (up + down) * (1.0 + abs(eta) + abs(log_y))

    def slope(self, eta: Any) -> float:
        """Of the loss in an intercept, less what may be rounding."""
        slopes = np.nan_to_num(self.weights * self.loss(eta)[1], posinf=1e200, neginf=-1e200)
        doubt = EPSILON * (eta.size + 16.0) * abs(slopes).sum()
        return float(slopes.sum() - np.sign(slopes.sum()) * doubt)

    def predictor(self, columns: Any, w: Any) -> Any:
        """Xw, and an intercept that is about the best one, by bisection."""
        eta, intercept = self.X[:, columns] @ w, 0.0
        for step in FARTHEST * 0.5 ** np.arange(1, 90 * self.has_box):
            intercept -= step * np.sign(self.slope(eta + intercept))
        return eta + intercept

    def intercept_box(self) -> float:
        """No point as good as the claimed one has a best intercept beyond this.

        As losses are not negative, its ½·ridge·‖v‖² is at most the objective, which limits |x_i'v|;
        as slopes increase, so does their sum.
        """
        reach = np.sqrt(2.0 * (self.X**2).sum(axis=1) * self.objective / self.ridge)
        for box in 2.0 ** np.arange(100):
            up = self.slope(np.minimum(box - 1.01 * reach, 300.0))
            if up > 0.0 > self.slope(np.maximum(1.01 * reach - box, -300.0)):
                return float(box)
        raise ProofError("There is no bound on the intercept.")


class _Bounds:
    """Bounds of nodes from the points and curvatures of a file."""

    def __init__(self, problem: _Problem, claim: Any, arrays: Any) -> None:
        self.problem, self.arrays, self.budget = problem, arrays, int(claim["budget"])
        self.known, self.H, self.definite = np.empty(0, int), np.empty((0, 0)), set()

    def part(self, of: str, i: int) -> tuple[Any, Any]:
        """The columns and values of a point or a curvature."""
        start, stop = self.arrays[f"{of}_start"][i : i + 2]
        return self.arrays[f"{of}_columns"][start:stop], self.arrays[f"{of}_values"][start:stop]

    def replay(self, claim: Any) -> float:
        """Follow the records from the root: every node must be closed, and every record used."""
        keep, lower, done = np.array(claim["keep"], int), np.inf, 0
        waiting = [(keep, np.setdiff1d(np.arange(self.problem.norms.size), keep))]
        for kind, point, column, n_out, n_in in self.arrays["records"]:
            _require(waiting, "There are more records than nodes.")
            included, free = waiting.pop()
            if kind == SPLIT:
                _require(column in free, f"A node is split by column {column}, which is not free.")
                rest = free[free != column]
                waiting += [(included, rest), (np.append(included, column), rest)]
            elif kind == FIX:
                out, into = np.split(self.arrays["fixed"][done : done + n_out + n_in], [n_out])
                done, is_out, is_in = done + n_out + n_in, np.isin(free, out), np.isin(free, into)
                _require((is_out ^ is_in).sum() == n_out + n_in, "Fixed columns are not free.")
                _, with_it, without_it = self.bound(included, free, point)
                lower = min(lower, *with_it[is_out], *without_it[is_in])
                waiting.append((np.append(included, free[is_in]), free[~is_out & ~is_in]))
            else:
                if self.problem.price == 0.0 and free.size <= self.budget - included.size:
                    included, free = np.append(included, free), free[:0]  # nothing is better
                lower = min(lower, self.bound(included, free, point)[0])
        _require(not waiting, f"{len(waiting)} nodes stay open: supports are left out.")
        return lower

    def bound(self, included: Any, free: Any, point: int) -> tuple[float, Any, Any]:
        """A bound on a node, and on its supports with each free column, and without it."""
        p, n_in, room = self.problem, included.size, self.budget - included.size
        least, columns = p.price * n_in, np.append(included, free)  # losses are not negative
        if room < 0 or point < 0:
            only = np.inf if room < 0 else least
            return only, np.full(free.size, only), np.full(free.size, only)
        at, values = self.part("point", point)
        _require(_are_columns(at, p.X), "The columns of a point are not ascending.")
        curve, w = int(self.arrays["point_curve"][point]), np.zeros(p.norms.size)
        w[at] = values
        constant, slopes, error = self.tangent(at, values, curve)
        d = self.curvature(curve, columns)
        is_few = columns.size < 0.2 * w.size
        g = slopes @ p.X[:, columns] if is_few else (slopes @ p.X)[columns]
        b = abs((d - p.ridge) * w[columns] - g) + error * p.norms[columns]
        gains = 0.5 * b**2 / d
        scores = gains[n_in:] - p.price
        ordered = np.append(np.sort(np.maximum(scores, 0.0))[::-1], np.zeros(room + 1))
        last, following = ordered[room - 1] if room else np.inf, ordered[room]
        taken = float(gains[:n_in].sum() + ordered[:room].sum())
        lower = constant + least - taken - 64.0 * EPSILON * (abs(constant) + least + taken)
        _require(np.isfinite([lower, *gains]).all(), "A point or a curvature is not finite.")
        with_it, without_it = np.maximum(last - scores, 0.0), np.maximum(scores - following, 0.0)
        return max(lower, least), lower + with_it, lower + without_it

    def tangent(self, at: Any, values: Any, curve: int) -> tuple[float, Any, float]:
        """The constant, the slopes, and what b may be wrong by for a unit column.

        For d = ridge the predictor may be any; for a larger one it must be Xw, rounding included.
        """
        p, blur = self.problem, EPSILON * (self.problem.y.size + at.size + 16.0)
        eta, weights = p.predictor(at, values), p.weights
        value, slope, size = p.loss(eta)
        constant = float(weights @ value - (weights * slope) @ eta)
        if p.is_squared:
            reach = np.sqrt(weights @ p.y**2) + p.norms[at] @ abs(values)
            curved = (self.curvature(curve, at) - p.ridge) @ values**2
            return constant + 0.5 * curved - 2.0 * blur * reach**2, weights * slope, blur * reach
        size, far = size + abs(slope), 1.0 + abs(eta) + p.box
        constant -= p.box * abs(weights @ slope) + blur * float(weights @ (abs(value) + size * far))
        return constant, weights * slope, blur * float(np.sqrt(weights @ size**2))

    def curvature(self, curve: int, columns: Any) -> Any:
        """d of some columns: the ridge, or from the file once H − D is known to be definite."""
        if curve < 0:
            _require(self.problem.ridge > 0.0, "A bound without ridge has no curvature.")
            return np.full(columns.size, self.problem.ridge)
        among, d = self.part("curve", curve)
        if curve not in self.definite:
            self.prove_definite(among, d)
            self.definite.add(curve)
        at = np.minimum(np.searchsorted(among, columns), among.size - 1)
        _require((among[at] == columns).all(), "A curvature is not given for all columns.")
        return d[at]

    def prove_definite(self, columns: Any, d: Any) -> None:
        """Factor H − D, of columns of length one, less a margin for rounding.

        Entries of H are wrong by (m + 16)·ε/2 at most, and H by q times that; a factorization that
        ends is that of a matrix within q·(q + 2)·ε/2, as no diagonal is above one. The coefficient
        of a column of zeros has no effect, so that its curvature is free.
        """
        p, q = self.problem, columns.size
        is_one = p.is_squared and _are_columns(columns, p.X) and (d > 0.0).all()
        _require(is_one and np.isfinite(d).all(), "A curvature is not one.")
        squares = p.norms**2 + p.ridge
        squares[squares == 0.0] = 1.0
        if not np.isin(columns, self.known).all():
            A = p.X[:, columns] * (np.sqrt(p.weights)[:, None] / np.sqrt(squares[columns]))
            self.known, self.H = columns, A.T @ A
            np.fill_diagonal(self.H, 1.0)
        at = np.searchsorted(self.known, columns)
        H = self.H[np.ix_(at, at)]
        H.flat[:: q + 1] -= d / squares[columns] + 0.5 * EPSILON * q * (p.y.size + q + 18.0)
        try:
            np.linalg.cholesky(H)
        except np.linalg.LinAlgError:
            raise ProofError("A curvature is too large: H − D is not definite.") from None
