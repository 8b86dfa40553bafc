"""Greedy methods that add one column at a time: "omp" and "forward" selection."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockl0.baselines.common import (
    ROUNDING,
    column_lengths,
    iterate,
)
from blockl0.methods import method
from blockl0.problem.fits import make_fits
from blockl0.problem.problem import Problem
from blockl0.result import Result
from blockl0.run import Run
from blockl0.validate import check_flag

Floats = NDArray[np.float64]


class MatchingPursuit:
    """Columns enter one by one, kept ones first; what enters next is for `choose` to say."""

    def __init__(self, problem: Problem, normalize: bool = True) -> None:
        self.problem = problem
        self.fit = make_fits(problem).growing(problem.sparsity.budget)
        self.lengths = column_lengths(problem)
        self.normalize = normalize
        self.smallest = ROUNDING * np.sqrt(2.0 * self.fit.smooth)
        self.is_closed = np.zeros(problem.n_features, dtype=np.bool_)
        self.w, self.n_nonzero, self.iteration = self.fit.coef, 0, 0
        for column in problem.keep:
            self.add(int(column))

    @property
    def objective(self) -> float:
        """Return ½‖residual‖², ridge included."""
        return self.fit.smooth

    @property
    def merit(self) -> float:
        """Return the objective."""
        return self.fit.smooth

    def add(self, column: int) -> bool:
        """Add a column, never to be tried again; return False if it depends on the support."""
        self.is_closed[column] = True
        entered = self.fit.add(column)
        self.w, self.n_nonzero = self.fit.coef, int(np.count_nonzero(self.fit.coef))
        return entered

    def choose(self) -> int | None:
        """Return the column with the largest |x_j'r|/‖x_j‖, or |x_j'r|; None if all are zero."""
        correlation = self.problem.design.rmatvec(self.fit.residual)
        np.abs(correlation, out=correlation)
        correlation[self.is_closed] = 0.0
        best = int((correlation / self.lengths if self.normalize else correlation).argmax())
        return best if correlation[best] > self.smallest * self.lengths[best] else None

    def advance(self) -> bool:
        """Add the best column; return False if the budget is used up or nothing correlates."""
        while self.fit.size < self.problem.sparsity.budget:
            column = self.choose()
            if column is None:
                return False
            if self.add(column):
                return self.fit.size < self.problem.sparsity.budget
        return False


@method("omp", losses="quadratic", forms=("budget",), start=False)
def solve_omp(
    problem: Problem,
    run: Run,
    *,
    init: Floats | None = None,
    rng: np.random.Generator,
    normalize: bool = True,
) -> Result:
    """Repeat: add the column most correlated with the residual, and re-fit all.

    Y. C. Pati, R. Rezaiifar and P. S. Krishnaprasad, "Orthogonal matching pursuit", Asilomar
    Conference (1993); J. A. Tropp and A. C. Gilbert, "Signal recovery from random measurements via
    orthogonal matching pursuit", IEEE Transactions on Information Theory 53 (2007). One pass over X
    and O(mk) per column, by a growing orthonormal basis.

    Parameters
    ----------
    problem : Problem
        A budget; squared loss. Kept columns enter first.
    run : Run
    init : None
        The method starts at zero.
    rng : Generator
        Not used: the method is deterministic.
    normalize : bool
        Compare |x_j'r|/‖x_j‖, as for columns of length one, which the definition assumes; False
        compares |x_j'r| as scikit-learn does.
    """
    return iterate(MatchingPursuit(problem, check_flag("normalize", normalize)), run)


# -- forward selection, also known as orthogonal least squares -------------------------------------


NEARLY_DEPENDENT = 1e-10
"""Smallest share of a column's squared length outside the span at which it may enter: less could
not be told from rounding."""


class ForwardSelection(MatchingPursuit):
    """Matching pursuit with every column measured by its part outside the span of the support."""

    def __init__(self, problem: Problem) -> None:
        # squared lengths outside the span, as shares of the columns' own
        self.outside = np.ones(problem.n_features)
        super().__init__(problem)

    def add(self, column: int) -> bool:
        """Add a column and remove its direction from all others."""
        if not super().add(column):
            return False
        along = self.problem.design.rmatvec(self.fit.latest) / self.lengths
        self.outside -= along**2
        self.is_closed |= self.outside <= NEARLY_DEPENDENT
        return True

    def choose(self) -> int | None:
        """Return the column with the largest gain (x_j'r)²/2‖x_j outside the span‖²."""
        correlation = self.problem.design.rmatvec(self.fit.residual) / self.lengths
        outside = np.where(self.is_closed, np.inf, self.outside)
        score = np.abs(correlation) / np.sqrt(outside)
        best = int(np.argmax(score))
        return best if score[best] > self.smallest else None


@method("forward", losses="quadratic", forms=("budget",), start=False)
def solve_forward(
    problem: Problem,
    run: Run,
    *,
    init: Floats | None = None,
    rng: np.random.Generator,
) -> Result:
    """Repeat: let the column enter that lowers the objective most after re-fitting all.

    S. Chen, S. A. Billings and W. Luo, "Orthogonal least squares methods and their application to
    non-linear system identification", International Journal of Control 50 (1989). The gain of every
    column is known exactly from its correlation with the residual and from its length outside the
    span of the support, which is updated as the span grows: two passes over X and O(mk) per column.

    Parameters
    ----------
    problem : Problem
        A budget; squared loss. Kept columns enter first.
    run : Run
    init : None
        The method starts at zero.
    rng : Generator
        Not used: the method is deterministic.
    """
    return iterate(ForwardSelection(problem), run)
