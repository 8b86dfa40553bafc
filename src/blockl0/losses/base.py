"""What the library knows of a loss: its values, slopes and curvatures, and the facts about it.

A loss is a sum of per-sample terms ℓ(eta_i, y_i) in the linear predictor eta = Xw. Its functions
are elementwise and cost O(m), so sample weights are applied outside, once, for all of them.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MAX_INTERCEPT_STEPS, PATIENT_STEPS, INTERCEPT_TOLERANCE = 300, 30, 1e-14
"""Steps towards the best intercept, those before every third one halves the bracket, and the share
of the absolute slopes that counts as zero."""
ENTROPY_STEPS = 12
"""Bisections towards the least excess of an entropy; each leaves a valid one."""
EPSILON, SMALLEST = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)
FAR_INTERCEPT = 30.0
"""Beyond this, and twice the largest predictor, a flat loss is flat for good."""


EXTREME = 30.0
"""A predictor of a loss that needs a ridge beyond which it diverges."""


UNCHANGED = ", the others unchanged,"
"""Phrase for coefficients, omitted for products and powers, which never change alone."""


class Words(NamedTuple):
    """The words for a loss on the report page and on the command line.

    Attributes
    ----------
    lost : str
        What is lost, as in "60 % of the deviance".
    explained : str
        The share of it that is explained.
    score : str
        What `score` is.
    total : str, optional
        What is summed over the rows; "the" and `lost` by default.
    constant : str
        The best prediction of numbers without any column.
    effect : str
        How to read a coefficient for numbers; {} stands for the target.
    odds : str
        How to read it for labels, beyond its sign.
    """

    lost: str = "loss"
    explained: str = "share of the loss explained"
    score: str = "R²"
    total: str | None = None
    constant: str = "one constant"
    effect: str = f"One unit more{UNCHANGED} adds the coefficient to the prediction of {{}}."
    odds: str = ""

    @property
    def objective(self) -> str:
        """Name the sum that is minimized."""
        return self.total or f"the {self.lost}"


class Loss:
    """ℓ(eta, y), convex and differentiable in eta, and its facts; the base of all losses.

    A loss of one's own defines `name`, `value`, `gradient`, `curvature`, and, where there is one,
    `curvature_bound`; the rest has defaults. It may also define `majorizer(eta, y)`, see
    `majorizer_curvature`, and for proofs by duality `conjugate(u, y)`, sup_eta u·eta − ℓ(eta, y),
    infinite where there is none, and `dual_curvature(eta, y, reach)`, numbers D with
    ℓ*(u + Dz) ≤ ℓ*(u) + eta·Dz + ½Dz² for the slope u at eta and all |z| ≤ reach. Without these
    two, single changes of a support are all re-fitted.

    Attributes
    ----------
    name : str
        The name users give.
    curvature_bound : float
        sup of ∂²ℓ/∂eta² over eta and y; infinity if there is none.
    is_quadratic : bool
        Whether ℓ is ½(y − eta)².
    takes_labels : bool
        Whether y holds two classes, coded −1 and 1; else numbers.
    takes_many_classes : bool
        Whether it becomes the softmax loss where there are more.
    n_outputs : int
        Predictors of a sample: 1, or the number of classes that have one each.
    takes_responses : bool
        Whether y may be (m, q), several responses, each with a predictor of its own.
    takes_bounds : bool
        Whether coefficients may be bounded one by one.
    is_softmax_of_two : bool
        Whether it is the softmax loss of two classes with the predictors ±eta/2, the first for
        y = 1: then compiled steps of that loss serve it.
    needs_ridge : bool
        Whether coefficients may go to infinity without one, as of separable classes.
    shifts_with_target : bool
        Whether ℓ(eta + c, y + c) = ℓ(eta, y): taking c from y takes it from the intercept.
    has_scale : bool
        Whether the likelihood is maximized over a scale as well, by information criteria.
    has_probabilities : bool
        Whether the predictors give probabilities of the classes.
    has_positive_target : bool
        Whether it is for positive numbers.
    is_nonnegative : bool
        Whether ℓ ≥ 0 everywhere: a first bound, which proofs with an intercept need.
    words : Words
        What people read.
    """

    name: str
    curvature_bound: float = np.inf
    is_quadratic: bool = False
    takes_labels: bool = False
    takes_many_classes: bool = False
    n_outputs: int = 1
    takes_responses: bool = False
    takes_bounds: bool = True
    is_softmax_of_two: bool = False
    needs_ridge: bool = False
    shifts_with_target: bool = False
    has_scale: bool = False
    has_probabilities: bool = False
    has_positive_target: bool = False
    is_nonnegative: bool = False
    words: Words = Words()

    @property
    def n_directions(self) -> int:
        """Count the free coefficients of a column: one for each predictor."""
        return self.n_outputs

    def value(self, eta: Floats, y: Floats) -> Floats:
        """Return ℓ(eta_i, y_i) per sample, (m,)."""
        raise NotImplementedError

    def gradient(self, eta: Floats, y: Floats) -> Floats:
        """Return ∂ℓ/∂eta per sample, (m,), or (m, n_outputs)."""
        raise NotImplementedError

    def curvature(self, eta: Floats, y: Floats) -> Floats:
        """Return ∂²ℓ/∂eta² per sample, (m,); at a kink, one of the one-sided values."""
        raise NotImplementedError

    def first_intercept(
        self, eta: Floats, y: Floats, weights: Floats | None = None, start: float = 0.0
    ) -> float:
        """Return a start for the search of the best intercept: the given one, or a better one."""
        return start

    def terms(self, eta: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        """Return value, gradient and curvature per sample, (m,) each."""
        return self.value(eta, y), self.gradient(eta, y), self.curvature(eta, y)

    def check_target(self, y: Floats) -> Floats:
        """Return y in the coding that the loss works with, or say what is wrong with it.

        What it returns is given to it again, and must come back as it is.
        """
        return y

    def for_target(self, y: Floats) -> Loss:
        """Return the loss for a checked target: itself, unless it depends on the target."""
        return self

    def for_classes(self, n_classes: int) -> Loss:
        """Return the loss for a number of classes (0 for numbers)."""
        return self

    def can_train(self, y: Floats) -> bool:
        """Return whether a part of a checked target, such as a fold, is enough to fit to."""
        return True

    def mean(self, eta: Floats) -> Floats:
        """Return the predicted mean, the inverse link of eta, (m,).

        For labels with probabilities, that of the second class.
        """
        return eta

    def probabilities(self, eta: Floats) -> Floats:
        """Return the probabilities of the classes, (m, 2) or (m, n_outputs)."""
        second = self.mean(eta)
        return np.column_stack([1.0 - second, second])

    def score(self, eta: Floats, y: Any, sample_weight: Any = None) -> float:
        """Return R² of predictions of numbers."""
        from sklearn.metrics import r2_score

        return float(r2_score(y, self.mean(eta), sample_weight=sample_weight))

    def diverges(self, eta: Floats, y: Floats) -> bool:
        """Return whether a fit without ridge has no finite minimizer; y as it was given."""
        return self.needs_ridge and bool(np.any(np.abs(eta) > EXTREME))

    def as_sklearn(self) -> Any:
        """Return an unfitted scikit-learn estimator that predicts alike with equal coefficients."""
        from sklearn.linear_model import LinearRegression
        from sklearn.svm import LinearSVC

        if self.takes_labels and not self.has_probabilities:
            return LinearSVC()
        # the link of an object that was adapted is its own attribute
        if self.takes_labels or getattr(self.mean, "__func__", None) is not Loss.mean:
            raise ValueError(
                f"loss={self.name!r} has no counterpart in scikit-learn that predicts alike; the "
                "loss may define `as_sklearn`."
            )
        return LinearRegression()


class Adapted(Loss):
    """Wrap an object with the functions of a loss; facts it lacks have their defaults."""

    def __init__(self, given: Any) -> None:
        self.given = given
        for name in dir(given):
            if not name.startswith("_"):
                setattr(self, name, getattr(given, name))


@cache
def entropy_excess(reach: float) -> float:
    """Return c with KL(q | p) ≤ ½ Σ p z²/c for q = p (1 + z/c) and all |z| ≤ reach.

    (1 + s) log(1 + s) − s ≤ (1 − r) log(1 − r) + r =: ½ r² e(r) for |s| ≤ r ≤ 1, since the second
    derivative 1/(1 + s) is at most 1/(1 − |s|); so every c ≥ e(reach/c), reach will do.
    """
    low, c = 1.0, max(2.0, reach)
    for _ in range(ENTROPY_STEPS):
        middle = 0.5 * (low + c)
        r = reach / middle
        is_valid = r < 1.0 and (1.0 - r) * np.log1p(-r) + r <= 0.5 * r**2 * middle
        low, c = (low, middle) if is_valid else (middle, c)
    return c


def fused_terms(
    kernel: Any, eta: Floats, y: Floats, *known: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return value, gradient and curvature, (m,) each, from one compiled pass over the samples.

    Of the exponentials and logarithms it is given, which NumPy has quicker than a loop.
    """
    out = np.empty((3, eta.size))
    kernel(plain_array(eta), plain_array(y), *map(plain_array, known), out)
    return out[0], out[1], out[2]


def plain_array(values: Any, dtype: Any = np.float64) -> Any:
    """Return a contiguous array that may be written: a kernel is compiled for each kind of array.

    `np.require` does the same, at several times the cost of a kernel on few samples.
    """
    values = np.ascontiguousarray(values, dtype=dtype)
    return values if values.flags.writeable else values.copy()


def majorizer_curvature(loss: Loss, eta: Floats, y: Floats) -> Floats:
    """Return curvatures of quadratics that touch ℓ at eta with its slope and majorize it.

    Those of the loss's own `majorizer(eta, y)` where it has one, else the bound.
    """
    tight = getattr(loss, "majorizer", None)
    return np.full_like(eta, loss.curvature_bound) if tight is None else tight(eta, y)


def best_intercept(
    loss: Loss, eta: Floats, y: Floats, weights: Floats | None = None, start: float = 0.0
) -> float:
    """Return argmin_b Σ_i weights_i ℓ(eta_i + b, y_i) by Newton's method in a bracket, O(m) a step.

    It begins at the given start, or where the loss knows better. Where the minimum is at infinity,
    as for one class only, the answer is where it is nearly flat.
    """

    def total(values: Floats) -> float:
        return float(values.sum() if weights is None else weights @ values)

    # the mean of the residuals, in closed form
    if loss.is_quadratic:
        return float(np.average(y - eta, weights=weights))
    b, low, high, reach = loss.first_intercept(eta, y, weights, start), -np.inf, np.inf, 1.0
    # beyond, all samples are on one side of their kinks or saturated
    far = FAR_INTERCEPT + 2.0 * float(np.abs(eta).max())
    for n_steps in range(MAX_INTERCEPT_STEPS):
        _, slopes, bends = loss.terms(eta + b, y)
        slope, is_lost = total(slopes), False
        if abs(b) > far:
            first = total(np.abs(loss.gradient(eta, y)))
            is_lost = abs(slope) <= INTERCEPT_TOLERANCE * first
        if is_lost or abs(slope) <= INTERCEPT_TOLERANCE * total(np.abs(slopes)):
            break
        low, high = (low, b) if slope > 0.0 else (b, high)
        bend = total(bends)
        step = -slope / bend if bend * reach > abs(slope) else -np.copysign(reach, slope)
        if abs(step) <= EPSILON * (1.0 + abs(b)):
            # slopes of large counts do not cancel to a share of their sizes: the rest is rounding
            break
        # steps without curvature grow until they bracket the minimum
        reach *= 2.0
        there = b + step
        # along an exponential Newton's steps have length one, however far the minimum is
        is_slow = n_steps >= PATIENT_STEPS and n_steps % 3 == 0 and np.isfinite(high - low)
        if is_slow or not low < there < high:
            there = 0.5 * (low + high)
        if there in (b, low, high):
            break
        b = there
    return b


def expit(x: Any) -> Any:
    """Return 1 / (1 + exp(−x))."""
    from scipy import special

    return special.expit(x)


def xlogy(x: Any, y: Any) -> Any:
    """Return x log y, 0 where x is."""
    from scipy import special

    return special.xlogy(x, y)


def xlog1py(x: Any, y: Any) -> Any:
    """Return x log(1 + y), 0 where x is."""
    from scipy import special

    return special.xlog1py(x, y)
