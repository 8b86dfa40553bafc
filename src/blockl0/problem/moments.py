"""Sufficient statistics of rows for least squares, in n + 2 rows of memory.

The triangular factor of [1 X y] has the same sum of squares as all rows, for every w and every
intercept; see `blockl0.problem.factors`. So rows may arrive in chunks, from files, processes or
machines, and be discarded: searching the factor searches all rows, and proofs hold for them, too.
Factors keep distances between columns, which the products X'X square and lose.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from blockl0.data.dask_arrays import each_part, is_cut_by_rows, is_frame, is_partitioned
from blockl0.data.design import as_design
from blockl0.files import read_archive, write_archive
from blockl0.losses import Loss, get_loss
from blockl0.problem.factors import Factor, many_rows, merged
from blockl0.problem.preprocess import Prepared
from blockl0.validate import (
    check_folds,
    check_gram,
    check_integer,
    check_rows,
    check_sample_weight,
    check_y,
)
from blockl0.verify.arrays import words_of

Floats = NDArray[np.float64]

FORMAT = "blockl0 moments 1"
"""File header; the number changes with the content."""
KINDS = {
    "names": "U", "has_means": "b", "seed": "iu", "n_drawn": "iu", "shift": "f", "R": "f",
    "low": "f", "high": "f", "n_rows": "iu",
}  # fmt: skip
"""Arrays of a file, and the kinds of their numbers."""
DRIFT = 64.0
"""Re-centre when a mean has moved this many spreads from the shift; that far costs two digits."""
SEED = 0
"""Default seed of the fold assignment."""


class Moments:
    """Counts, means and products of the columns and the target, from rows read once.

    Rows enter by `update`, or through other moments by `merge`, in any order; memory is O(n²) per
    fold, whatever the number of rows, and a row costs O(n²).

    Parameters
    ----------
    feature_names : sequence of str, optional
        Names of the columns; taken from a data frame if not given.
    folds : int, optional
        Number of random parts of the rows, for cross-validation; 1 for no division.
    random_state : int, default=0
        Seed of that division. It depends on the order of rows, not on the chunks they come in.

    Attributes
    ----------
    n_samples : int
        Rows of positive weight.
    n_features : int
    total : float
        Sum of the weights.
    n_folds : int
    feature_names : tuple of str or None

    Examples
    --------
    >>> import numpy as np
    >>> from blockl0 import Moments, solve
    >>> rng = np.random.default_rng(0)
    >>> moments = Moments()
    >>> for _ in range(3):
    ...     X = rng.standard_normal((1000, 20))
    ...     moments.update(X, X[:, 3] - 2 * X[:, 7])
    Moments(1000 rows, 20 columns)
    Moments(2000 rows, 20 columns)
    Moments(3000 rows, 20 columns)
    >>> solve(moments, n_nonzero_coefs=2).support
    array([3, 7])
    """

    has_means: bool

    def __init__(
        self, feature_names: Any = None, *, folds: int = 1, random_state: int = SEED
    ) -> None:
        self.feature_names = None if feature_names is None else tuple(map(str, feature_names))
        self.n_folds: int = check_integer("folds", folds, low=1)
        self.random_state = random_state
        self.has_means = True
        self._factors: list[Factor] = []
        # rows whose fold has been drawn; the generator is advanced to there
        self._n_drawn = 0

    @classmethod
    def from_data(
        cls,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        folds: Any = 1,
        feature_names: Any = None,
        random_state: int = SEED,
    ) -> Self:
        """Compute the moments of an array, or of an iterable of chunks.

        Parameters
        ----------
        X : array-like, DataFrame, scipy.sparse, dask array or DataFrame, or an iterable of chunks
            A chunk is a pair (X, y) or a triple (X, y, sample_weight); leave out `y` then. Dask
            objects are read partition by partition, on the workers if there are any.
        y : array-like (m,), optional
        sample_weight : array-like (m,), optional
        folds : int or array-like of int (m,)
            Number of random folds, or for arrays the fold of every row, 0, 1, ….
        feature_names, random_state
            As for `Moments`.
        """
        labels = None if np.ndim(folds) == 0 else np.asarray(folds)
        n_folds = folds if labels is None else int(labels.max(initial=0)) + 1
        found = cls(feature_names, folds=n_folds, random_state=random_state)
        if y is None and labels is not None:
            raise ValueError("`folds` of every row need `X` and `y` as arrays, got chunks.")
        # chunks bring their own targets
        if y is None:
            for chunk in X:
                found.update(*_as_chunk(chunk))
            return found
        if not is_partitioned(X):
            return found.update(X, y, sample_weight, folds=labels)
        begin = partial(_part_moments, feature_names, n_folds, random_state)
        for part in each_part(begin, X, y, sample_weight, labels):
            found.merge(part)
        return found

    @classmethod
    def from_gram(
        cls,
        XtX: Any,
        Xty: Any,
        yty: float,
        n: int,
        *,
        X_colmeans: Any = None,
        y_mean: float | None = None,
        feature_names: Any = None,
    ) -> Self:
        """Convert a table of products; it has only half of the digits of the rows.

        Parameters
        ----------
        XtX, Xty, yty : array-like (p, p), (p,), float
            X'X, X'y and y'y; of centred columns and a centred target if means are given.
        n : int
            Number of rows.
        X_colmeans, y_mean : array-like (p,), float, optional
            The means. Without them no intercept can be fitted.
        """
        G, means, has_means = check_gram(XtX, Xty, yty, X_colmeans, y_mean)
        found = cls(feature_names)
        found.has_means = has_means
        factor = Factor(means)
        factor.n_rows = check_integer("n", n, low=1)
        # the first row and column are those of the ones, whose square is the number of rows
        factor.triangle.R[0, 0] = np.sqrt(factor.n_rows)
        factor.triangle.R[1:, 1:] = _root(G)
        # only the length of a column is known: it is zero, or counts as not constant
        length = np.sqrt(G.diagonal()[:-1])
        factor.low, factor.high = means[:-1] - length, means[:-1] + length
        found._check_width(means.size - 1, None)
        found._factors = [factor]
        return found

    @property
    def n_features(self) -> int:
        """Columns of X; 0 before the first rows."""
        return self._factors[0].shift.size - 1 if self._factors else 0

    @property
    def shape(self) -> tuple[int, int]:
        """(n_samples, n_features)."""
        return self.n_samples, self.n_features

    @property
    def n_samples(self) -> int:
        """Rows of positive weight."""
        return sum(factor.n_rows for factor in self._factors)

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return sum(factor.total for factor in self._factors)

    @property
    def spreads(self) -> Floats:
        """Standard deviation of every column, (n,)."""
        R = self.factor.triangle.R[1:, 1:-1]
        return np.sqrt(np.einsum("ij,ij->j", R, R) / self.total)

    @property
    def factor(self) -> Factor:
        """Factor of all rows."""
        return merged(self._checked())

    @property
    def fold_factors(self) -> list[Factor]:
        """Factor of every fold."""
        return self._checked()

    def update(self, X: Any, y: Any, sample_weight: Any = None, *, folds: Any = None) -> Self:
        """Add rows; if they are rejected, nothing changes.

        Parameters
        ----------
        X : array-like, DataFrame or scipy.sparse (k, n)
        y : array-like (k,)
        sample_weight : array-like (k,), optional
            May be zero for a whole chunk.
        folds : array-like of int (k,), optional
            The fold of every row; drawn at random by default if there are several.
        """
        names = _names(X)
        if np.ndim(X) == 2 and np.shape(X)[0] == 0 and np.size(y) == 0:
            # an empty chunk, such as a filter leaves, must still have the right columns
            if self._factors:
                self._check_width(np.shape(X)[1], names)
            return self
        parts = _row_parts(X)
        (k, n), y = parts.shape, check_y(y, parts.shape[0])
        weights = check_sample_weight(sample_weight, k, is_part=True)
        # all checks come first: rows that are refused change nothing
        self._check_width(n, names)
        label = self._labels(folds, k)
        if self.feature_names is None:
            self.feature_names = names
        if not self._factors:
            shift = np.append(parts.rmatvec(np.ones(k)), y.sum()) / max(k, 1)
            self._factors = [Factor(shift) for _ in range(self.n_folds)]
        start = 0
        for part in parts.row_chunks(many_rows(n + 2, self.n_folds)):
            rows = slice(start, start + len(part))
            self._add(part, y[rows], None if weights is None else weights[rows], label[rows])
            start = rows.stop
        self._follow_drift()
        return self

    def _add(self, X: Floats, y: Floats, weights: Floats | None, label: NDArray[np.int64]) -> None:
        if self.n_folds == 1:
            self._factors[0].add(X, y, weights)
            return
        # sort rows by fold: they are copied once, not once for each fold
        order = np.argsort(label, kind="stable")
        by_rows = X.flags.c_contiguous
        X, y = X.take(order, axis=0) if by_rows else X.T.take(order, axis=1).T, y[order]
        ends = np.cumsum(np.bincount(label, minlength=self.n_folds))
        for factor, start, stop in zip(self._factors, [0, *ends[:-1]], ends, strict=True):
            own = None if weights is None else weights[order[start:stop]]
            factor.add(X[start:stop], y[start:stop], own)

    def copy(self) -> Self:
        """Return an independent copy."""
        other = copy(self)
        other._factors = [factor.shifted(factor.shift) for factor in self._factors]
        return other

    def merge(self, other: Moments) -> Self:
        """Add all rows of other moments, of the same columns and folds."""
        if not isinstance(other, Moments):
            raise TypeError(f"`other` must be Moments, got {type(other).__name__}.")
        if not other._factors:
            return self
        if other.n_folds != self.n_folds:
            raise ValueError(f"Moments of {other.n_folds} folds cannot join {self.n_folds}.")
        self._check_width(other.n_features, other.feature_names)
        if self.feature_names is None:
            self.feature_names = other.feature_names
        self.has_means &= other.has_means
        if not self._factors:
            self._factors = [Factor(factor.shift) for factor in other._factors]
        for mine, theirs in zip(self._factors, other._factors, strict=True):
            mine.merge(theirs.shifted(mine.shift))
        # rows that are added later must not be dealt like earlier ones
        self._n_drawn = max(self._n_drawn, other._n_drawn)
        self._follow_drift()
        return self

    def _follow_drift(self) -> None:
        """Re-centre on the current means once they have drifted more than `DRIFT` spreads."""
        whole = merged(self._factors)
        R = whole.triangle.R
        if R[0, 0] == 0.0:
            return
        offset = R[0, 1:] / R[0, 0]
        spread = np.sqrt(np.einsum("ij,ij->j", R[1:, 1:], R[1:, 1:])) / R[0, 0]
        # the first rows may have been far from the mean of all, as in sorted files
        if np.any(np.abs(offset) > DRIFT * spread):
            shift = whole.shift + offset
            self._factors = [factor.shifted(shift) for factor in self._factors]

    def prepared(self, fit_intercept: bool = True, **given: Any) -> Prepared:
        """Return the problem on all rows; parameters as for `as_problem`."""
        self.check_for(get_loss(given.get("loss", "squared")), fit_intercept)
        return self.factor.prepared(fit_intercept, **given)

    def check_for(self, loss: Loss, fit_intercept: bool) -> None:
        """Refuse losses other than squared, and an intercept without means."""
        if not loss.is_quadratic:
            raise ValueError(
                f"Moments hold what the squared loss needs, got loss={loss.name!r}; fit that to "
                "the rows themselves."
            )
        if fit_intercept and not self.has_means:
            raise ValueError(
                "These moments come from products without means, so that an intercept cannot be "
                "fitted; give `X_colmeans` and `y_mean`, or use fit_intercept=False."
            )

    def check_alone(self, y: Any, sample_weight: Any) -> None:
        """Refuse a target or weights given beside the moments, which contain them."""
        for name, value in (("y", y), ("sample_weight", sample_weight)):
            if value is not None:
                raise ValueError(f"Moments hold `{name}` already; leave it out.")

    def explained(self, coef: Floats, intercept: float) -> float:
        """Return the share of the target's variance that coefficients explain, R².

        For a constant target as in scikit-learn: 1 for a perfect fit, else 0.
        """
        factor = self.factor
        loss, rest = factor.mean_loss(coef, intercept), factor.triangle.R[1:, -1]
        variance = 0.5 * float(rest @ rest) / self.total
        return 1.0 - loss / variance if variance > 0.0 else float(loss == 0.0)

    def save(self, path: Any, force: bool = False) -> None:
        """Write a NumPy archive (.npz) atomically, with a checksum and no pickles."""
        write_archive(path, FORMAT, self._content(), force)

    @classmethod
    def load(cls, path: Any) -> Self:
        """Read a file written by `save`; reject one that was modified or truncated."""
        content = read_archive(path, FORMAT, "a file of moments")
        try:
            return cls._from_content(content)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            why = words_of(error)
            raise ValueError(f"{str(path)!r} is not a file of moments: {why}.") from error

    def _content(self) -> dict[str, Any]:
        factors = self._checked()
        return {
            "names": np.array(self.feature_names or (), dtype=np.str_),
            "has_means": np.array(self.has_means),
            "seed": np.array(self.random_state),
            "n_drawn": np.array(self._n_drawn),
            "shift": factors[0].shift,
            "R": np.array([factor.triangle.R for factor in factors]),
            "low": np.array([factor.low for factor in factors]),
            "high": np.array([factor.high for factor in factors]),
            "n_rows": np.array([factor.n_rows for factor in factors]),
        }

    @classmethod
    def _from_content(cls, content: dict[str, Any]) -> Self:
        for name, kinds in KINDS.items():
            if content[name].dtype.kind not in kinds:
                raise TypeError(f"{name} is of type {content[name].dtype}")
        names = content["names"].tolist() or None
        found = cls(names, folds=len(content["R"]), random_state=int(content["seed"]))
        found.has_means = bool(content["has_means"])
        for i, R in enumerate(content["R"]):
            factor, low, high = Factor(content["shift"]), content["low"][i], content["high"][i]
            shapes = (R.shape, low.shape, high.shape)
            if shapes != (factor.triangle.R.shape, factor.low.shape, factor.high.shape):
                raise ValueError(f"factor and extremes are of shapes {shapes}")
            factor.triangle.R[...], factor.low, factor.high = R, low, high
            factor.n_rows = int(content["n_rows"][i])
            found._factors.append(factor)
        found._n_drawn = int(content["n_drawn"])
        return found

    def _labels(self, folds: Any, k: int) -> NDArray[np.int64]:
        """Return the fold of each of k new rows."""
        if folds is not None:
            return check_folds(folds, k, self.n_folds)
        if self.n_folds == 1:
            return np.zeros(k, dtype=np.int64)
        bits = np.random.PCG64(self.random_state)
        # random() takes one step per number, so the chunks do not matter
        bits.advance(self._n_drawn)
        self._n_drawn += k
        return (np.random.Generator(bits).random(k) * self.n_folds).astype(np.int64)

    def _checked(self) -> list[Factor]:
        if self.n_samples == 0:
            raise ValueError("These moments have seen no rows of positive weight; `update` first.")
        return self._factors

    def _check_width(self, n: int, names: tuple[str, ...] | None) -> None:
        """Reject rows whose columns differ from those of earlier rows."""
        if self._factors and n != self.n_features:
            raise ValueError(f"These moments have {self.n_features} columns, got rows of {n}.")
        known = self.feature_names
        if known is not None and len(known) != n:
            raise ValueError(f"`feature_names` are {len(known)}, but X has {n} columns.")
        if known is not None and names is not None and known != names:
            j = next(j for j in range(n) if known[j] != names[j])
            raise ValueError(
                f"Column {j} of these rows is {names[j]!r}, that of the moments {known[j]!r}; give "
                "the same columns in the same order."
            )

    def __repr__(self) -> str:
        folds = f", {self.n_folds} folds" if self.n_folds > 1 else ""
        return f"Moments({self.n_samples} rows, {self.n_features} columns{folds})"


def moments_of(X: Any, y: Any, sample_weight: Any, loss: Any) -> Moments | None:
    """Return moments that replace the rows: X itself, or those of tall data of dask; else None."""
    if isinstance(X, Moments):
        X.check_alone(y, sample_weight)
        return X
    return tall_moments(X, y, sample_weight, get_loss(loss))


def tall_moments(
    X: Any, y: Any, sample_weight: Any, loss: Loss, folds: int = 1, seed: int = SEED
) -> Moments | None:
    """Compute the moments of a tall dask array or a dask data frame; None for all else.

    A data frame requires the squared loss; arrays with another loss may be rechunked by columns.
    """
    if y is None or not is_partitioned(X) or not (is_frame(X) or is_cut_by_rows(X)):
        return None
    if not loss.is_quadratic and not is_frame(X):
        return None
    Moments().check_for(loss, False)
    return Moments.from_data(X, y, sample_weight, folds=folds, random_state=seed)


class _ByRows:
    """An array (m, n) in row order, read by rows without a copy."""

    def __init__(self, X: Floats) -> None:
        self.X, self.shape = check_rows(X), X.shape

    def rmatvec(self, r: Floats) -> Floats:
        return r @ self.X

    def row_chunks(self, step: int) -> Iterator[Floats]:
        for start in range(0, self.shape[0], step):
            yield self.X[start : start + step]


def _row_parts(X: Any) -> Any:
    """Wrap X for reading by rows."""
    is_by_rows = isinstance(X, np.ndarray) and X.ndim == 2 and X.flags.c_contiguous
    return _ByRows(X) if is_by_rows else as_design(X)


def _names(X: Any) -> tuple[str, ...] | None:
    """Return the column names of a data frame, else None."""
    names = getattr(X, "columns", None)
    return None if names is None else tuple(map(str, names))


def _part_moments(
    names: Any, n_folds: int, seed: int, start: int, X: Any, y: Any, *rest: Any
) -> Moments:
    """Compute the moments of a partition whose rows begin at `start`."""
    weights, labels = rest
    part = Moments(names, folds=n_folds, random_state=seed)
    part._n_drawn = start
    return part.update(X, y, weights, folds=labels)


def _as_chunk(chunk: Any) -> tuple[Any, ...]:
    if isinstance(chunk, tuple | list) and len(chunk) in (2, 3):
        return tuple(chunk)
    raise ValueError(
        "A chunk must be a pair (X, y) or a triple (X, y, sample_weight), got "
        f"{type(chunk).__name__}; with an array give `y`, too."
    )


def _root(G: Floats) -> Floats:
    """Return the triangular R with R'R = G, for a positive semidefinite G of any rank."""
    scale = np.sqrt(np.where(G.diagonal() > 0.0, G.diagonal(), 1.0))
    values, axes = np.linalg.eigh(G / scale / scale[:, None])
    rows = np.sqrt(np.maximum(values, 0.0))[:, None] * axes.T * scale
    R: Any = np.linalg.qr(rows, mode="r")
    return R
