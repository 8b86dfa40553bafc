"""Does a proof of the optimum hold? From the data and NumPy, and nothing else of this package.

`check` is the verifier; `exact` that in exact arithmetic, with `integers`; `losses` has the other
losses, `files` what is in a file, `base` the rest.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from blockl0.verify import check
from blockl0.verify.base import (
    ProofError,
    Verified,
    dense,
    require,
    require_moderate,
    require_stated,
)
from blockl0.verify.exact import verify_exactly
from blockl0.verify.files import Content, read_proof, task_of
from blockl0.verify.losses import SQUARED, GeneralLoss

__all__ = ["ProofError", "Verified", "verify", "verify_content"]


def verify(
    path: Any, X: Any, y: Any, sample_weight: Any = None, *, exact: bool = False
) -> Verified:
    """Check a proof that `solve(..., method="exact", proof=path)` has written.

    Parameters
    ----------
    path : str or Path
    X : array-like or scipy.sparse (m, n)
        As it was given for the proof; it is made dense.
    y : array-like (m,)
        Labels are -1 and 1, or 0 and 1.
    sample_weight : array-like (m,), optional
    exact : bool, default=False
        Compute in integers and fractions instead of floating-point numbers, without a single
        rounding: slower, for the squared loss, and with answers that are fractions.

    Returns
    -------
    Verified
        The lower bound that is proven, the objective at the coefficients of the file, the gap, the
        loss at zero, and how far allowances for rounding reach.

    Raises
    ------
    ProofError
        The file is damaged, belongs to other data, or does not prove what it claims.
    """
    claim, arrays = read_proof(path)
    found = verify_content(claim, arrays, X, y, sample_weight, exact=exact)
    claimed = claim.get("lower_bound")
    holds = isinstance(claimed, float) and found.lower_bound >= claimed
    seen = f"{float(found.lower_bound):.12g}"
    require(holds, f"The bound is {seen}, below the claim {claimed}.")
    return found


def verify_content(
    claim: Any, arrays: Any, X: Any, y: Any, sample_weight: Any = None, *, exact: bool = False
) -> Verified:
    """Return what the content of a file proves, whatever lower bound it claims."""
    try:
        with np.errstate(all="ignore"):
            return _verified(claim, arrays, exact, *dense(X, y, sample_weight))
    except ProofError:
        raise
    except np.linalg.LinAlgError:
        raise ProofError("A curvature is too large: H − D is not definite.") from None
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ProofError(f"The proof is malformed: {type(error).__name__} {error}.") from error


def _verified(claim: Any, arrays: Any, is_exact: bool, X: Any, y: Any, weights: Any) -> Verified:
    shape = claim["n_samples"], claim["n_features"]
    require(X.shape == shape, f"The proof is about data of shape {shape}, got {X.shape}.")
    is_squared, intercept = claim["loss"] == SQUARED, claim["intercept"]
    require(isinstance(intercept, bool), f"The proof is malformed: intercept is {intercept!r}.")
    task, coef = task_of(claim)
    require(task.price >= 0.0 and task.ridge >= 0.0, "Price or ridge is negative, or no number.")
    if is_exact:
        found = f"that of the proof is {claim['loss']!r}: leave exact out"
        require(is_squared, f"Exact arithmetic is for the squared loss; {found}.")
        return verify_exactly(task, claim, arrays, coef, X, y, weights)
    given = X, y, weights, intercept
    loss = (
        check.Squares(*given)
        if is_squared
        else GeneralLoss(claim["loss"], claim["parameter"], *given)
    )
    at_zero = loss.tangent(np.zeros(coef.size))[0]
    require_moderate(loss.A, loss.norms, task.ridge, at_zero)
    best = check.objective(task, loss, coef)
    require_stated(claim, best, at_zero)
    content = Content(arrays, task, loss.norms**2 + task.ridge > 0.0)
    if isinstance(loss, GeneralLoss):
        require(not content.curves, "A curvature is not one: this loss has the ridge alone.")
        loss.bound_intercepts(best, task.ridge)
    check.prove_definite(loss, task.ridge, content.curves)
    bound = partial(check.bound, task, loss)
    lower, allowance = check.lower_bound(task, coef.size, content.records(), bound)
    last = 16.0 * check.EPSILON * abs(lower)  # for the last few roundings
    lower = min(best, lower - last)
    gap = (best - lower) / abs(best) if best > lower else 0.0
    return Verified(*map(float, (lower, best, gap, at_zero, allowance + last)))
