"""Many right-hand sides with one dictionary: sparse coding, and an optimizer for pysindy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from blockl0.blas import one_blas_thread
from blockl0.estimators.documentation import Documented
from blockl0.path import l0_path
from blockl0.problem.problem import Problem, as_problem
from blockl0.result import Status
from blockl0.solve import solve_targets
from blockl0.validate import (
    as_numeric,
    check_n_jobs,
    check_random_state,
    check_sample_weight,
    check_terms,
    check_y,
)

Floats = NDArray[np.float64]


@one_blas_thread()
def sparse_encode(
    X: ArrayLike,
    dictionary: ArrayLike,
    *,
    n_nonzero_coefs: int | None = None,
    alpha: float | None = None,
    ridge: float = 0.0,
    effort: str | int = "fast",
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Floats:
    """Code every row x of X by few atoms: min_c ½‖x − c·dictionary‖² with few nonzeros in c.

    The shape of `sklearn.decomposition.sparse_encode`, the problem of `blockl0.solve`. The inner
    products of atoms are computed once for all rows; atoms need not be normalized.

    Parameters
    ----------
    X : array-like (n_samples, n_features)
    dictionary : array-like (n_components, n_features)
        One atom per row.
    n_nonzero_coefs : int, optional
        Largest number of atoms per sample. Give it, `alpha`, or both.
    alpha : float, optional
        Price of an atom, in units of the squared error ½‖·‖².
    ridge : float
    effort : "fast", "balanced", "thorough" or int
    random_state : int, Generator or None
        One seed for every row: the code of a row does not depend on the others.
    n_jobs : int, optional
        Number of parts of X to code in parallel.

    Returns
    -------
    ndarray (n_samples, n_components)

    Examples
    --------
    >>> import numpy as np
    >>> from blockl0 import sparse_encode
    >>> dictionary = np.random.default_rng(0).standard_normal((30, 20))
    >>> code = sparse_encode(dictionary[[4]] - 2 * dictionary[[7]], dictionary, n_nonzero_coefs=2)
    >>> np.flatnonzero(code[0]), code[0, [4, 7]].round(6)
    (array([4, 7]), array([ 1., -2.]))
    """
    n_jobs = check_n_jobs(n_jobs)
    signals = np.atleast_2d(as_numeric(X, "X"))
    if signals.ndim != 2 or 0 in signals.shape:
        raise ValueError(
            "`X` must hold at least one row to code, (n_samples, n_features), got shape "
            f"{np.shape(X)}."
        )
    atoms = as_numeric(dictionary, "dictionary")
    if atoms.ndim != 2 or atoms.shape[1] != signals.shape[-1]:
        raise ValueError(
            f"`dictionary` must have one atom of {signals.shape[-1]} features per row, as X has, "
            f"got shape {atoms.shape}."
        )
    problem = as_problem(
        atoms.T, signals[0], n_nonzero_coefs=n_nonzero_coefs, alpha=alpha, ridge=ridge
    )
    targets = [check_y(signal, problem.n_samples) for signal in signals]
    seed = int(check_random_state(random_state).integers(2**63))
    # whole parts, not rows: work on the dictionary is shared inside a part
    n_parts = 1 if n_jobs is None or n_jobs == 1 else min(len(targets), 4 * abs(n_jobs))
    parts = np.array_split(np.arange(len(targets)), n_parts)
    jobs = (delayed(_encode)(problem, [targets[i] for i in part], effort, seed) for part in parts)
    codes: Any = Parallel(n_jobs=n_jobs)(jobs)
    return np.vstack(codes)


def _encode(problem: Problem, targets: list[Floats], effort: str | int, seed: int) -> Floats:
    """Code some targets, (t, n), sharing the Gram matrix of the columns."""
    codes = np.empty((len(targets), problem.n_features))
    for i, result in enumerate(solve_targets(problem, targets, seed=seed, effort=effort)):
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt  # the remaining targets have no code yet
        codes[i] = result.coef
    return codes


class SINDyL0(Documented, MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Best-subset optimizer for pysindy: ``pysindy.SINDy(optimizer=SINDyL0(n_nonzero_coefs=3))``.

    Every equation gets its best few library terms; with `criterion` their number minimizes an
    information criterion. Without ridge the scale of the terms does not matter.

    Parameters
    ----------
    n_nonzero_coefs : int, optional
        Largest number of terms per equation; if only `criterion` is given 10, or all if fewer.
    alpha : float, optional
        Price of a term. Not with `criterion`.
    criterion : "aic", "bic", "ebic" or "gic", optional
        Choose the number of terms of each equation along the path; "bic" if neither this nor
        `n_nonzero_coefs` nor `alpha` is given.
    ridge : float
        Weight of half the squared norm of the coefficients.
    effort : "fast", "balanced" (default), "thorough" or int
        Effort of the search.
    random_state : int, Generator or None
        Same seed, same answer.

    Attributes
    ----------
    coef_ : ndarray (n_targets, n_features)
    ind_ : ndarray of bool (n_targets, n_features)
        The terms in use.
    intercept_ : float
        Zero: the constant is a library term.
    complexity : int
        The number of terms in use.
    """

    def __init__(
        self,
        n_nonzero_coefs: int | None = None,
        *,
        alpha: float | None = None,
        criterion: str | None = None,
        ridge: float = 0.0,
        effort: str | int = "balanced",
        random_state: Any = 0,
    ) -> None:
        self.n_nonzero_coefs = n_nonzero_coefs
        self.alpha = alpha
        self.criterion = criterion
        self.ridge = ridge
        self.effort = effort
        self.random_state = random_state

    @one_blas_thread()
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SINDyL0:
        """Fit to the library terms X (m, n) and the derivatives y (m,) or (m, n_targets)."""
        X, Y = check_terms(X, y)
        self._is_single = np.ndim(y) == 1
        # pysindy marks samples without a derivative by NaN
        rows = np.isfinite(X).all(axis=1) & np.isfinite(Y).all(axis=1)
        if not rows.any():
            raise ValueError(
                f"Each of the {rows.size} rows holds NaN or infinity, in X or in y: no row is left."
            )
        X, Y = X[rows], Y[rows]
        weights = check_sample_weight(sample_weight, rows.size)
        if weights is not None:
            root = np.sqrt(weights[rows])
            X, Y = X * root[:, None], Y * root[:, None]
        criterion = self.criterion
        if self.n_nonzero_coefs is None and self.alpha is None and criterion is None:
            criterion = "bic"
        if criterion is None:
            self.coef_ = sparse_encode(
                Y.T, X.T, n_nonzero_coefs=self.n_nonzero_coefs, alpha=self.alpha, ridge=self.ridge,
                effort=self.effort, random_state=self.random_state,
            )  # fmt: skip
        else:
            if self.alpha is not None:
                raise ValueError("`alpha` does not go with `criterion`; give one of them.")
            most = min(10, X.shape[1]) if self.n_nonzero_coefs is None else self.n_nonzero_coefs
            self.coef_: Floats = np.array(
                [self._choose(X, target, most, criterion) for target in Y.T]
            )
        self.ind_: Any = self.coef_ != 0.0
        self.intercept_: float = 0.0
        self.n_features_in_: Any = X.shape[1]
        self.history_: list[Floats] = [self.coef_]
        return self

    def _choose(self, X: Floats, y: Floats, most: int, criterion: str) -> Floats:
        path = l0_path(
            X, y, n_nonzero_coefs=most, ridge=self.ridge, effort=self.effort,
            random_state=self.random_state,
        )  # fmt: skip
        return path.best(criterion).coef

    def predict(self, X: Any) -> Floats:
        """Compute X·coef_', (m, n_targets), or (m,) if `fit` got a vector."""
        check_is_fitted(self)
        terms = as_numeric(X, "X")
        if terms.ndim != 2 or terms.shape[1] != self.n_features_in_:
            raise ValueError(
                f"`X` must have {self.n_features_in_} columns, as in the fit, got shape "
                f"{terms.shape}."
            )
        predicted = terms @ self.coef_.T
        return predicted[:, 0] if self._is_single else predicted

    @property
    def complexity(self) -> int:
        """The number of terms in use."""
        check_is_fitted(self)
        return int(np.count_nonzero(self.coef_))
