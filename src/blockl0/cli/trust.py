"""What is known about an answer, in plain words: proofs, stability, honesty."""

from __future__ import annotations

from typing import Any

LARGEST_PROOF = 500
"""Columns up to which a proof is tried without being asked for."""
LARGEST_BOOTSTRAP = 20_000_000
"""Entries of X up to which the choice is repeated on bootstrap samples without being asked for."""
TELLING_GAP = 0.5
"""A lower bound that is further away than this share says nothing."""


def prove(problem: Any, seed: int, seconds: float) -> Any:
    """Search for the global optimum, and a lower bound if time runs out."""
    from blockl0.cli.data import run_method

    return run_method(problem, "exact", seed=seed, time_limit=seconds)


def is_lower(objective: float, than: float, problem: Any) -> bool:
    """Whether an objective is lower by more than rounding, also where both are about zero."""
    return objective < than * (1.0 - 1e-9) - rounding(problem)


def rounding(problem: Any) -> float:
    """An objective below this is as good as zero."""
    import numpy as np

    return 1e-12 * float(problem.objective(np.zeros(problem.n_features)))


def is_promising(data: Any, most: int = LARGEST_PROOF) -> bool:
    """Whether to try a proof without being asked: with few rows all bounds are zero."""
    m, n = data.X.shape
    return data.is_quadratic and n <= most and n < m


def claim(model: Any, proof: Any, n: int) -> dict[str, Any]:
    """What is proven about a fit: a record with its words."""
    certificate, k = model.certificate_, int(model.n_nonzero_)
    record: dict[str, Any] = {
        "optimal": bool(
            (proof is not None and proof.gap == 0.0) or str(model.status_) == "optimal" or k == n
        ),
        "lower_bound": None if proof is None else proof.lower_bound,
        "gap": None if proof is None else proof.gap,
        "level": None if certificate is None else certificate.level,
        "outside": None if certificate is None else certificate.outside,
        "complete": None if certificate is None else certificate.complete,
    }
    n_kept = 0 if model.keep is None else len(model.keep)
    return record | {"words": _words(record, k, n, given(n_kept))}


def given(n_kept: int) -> str:
    """What a claim supposes: columns that were kept as asked are not up for choice."""
    return "" if n_kept == 0 else f"with the {'columns' if n_kept > 1 else 'column'} kept, "


def _words(record: dict[str, Any], k: int, n: int, given: str) -> str:
    if k == 0:
        return "No column is chosen: the prediction is the same for all rows."
    if k == n:
        return f"All {n} columns are in: there was nothing to choose."
    if record["optimal"]:
        return (
            f"Proven: {given}no other choice of at most {k} of the {n} columns fits these rows "
            "better."
        )
    if record["level"] is None:
        said = "Searched, not proven: better choices may exist."
    elif record["level"] >= 2:
        said = (
            f"Proven: {given}exchanging any chosen column for any of the other {n - k}, all others "
            "re-fitted, does not help. Better choices that differ in more columns may exist."
        )
    else:
        said = f"Proven: {given}adding or dropping any one column, all others re-fitted, does not "
        said += "help."
    if record["gap"] is not None and record["gap"] <= TELLING_GAP:
        said += f" No choice can lower the objective by more than {record['gap']:.1%}."
    return said


def stability(rows: list[dict[str, Any]], n_samples: int) -> str:
    """How often the columns are chosen again, in a sentence."""
    shares = sorted((row["inclusion"], row["name"]) for row in rows)
    n_firm = sum(share >= 0.8 for share, _ in shares)
    weakest = f"; least often {shares[0][1]} ({shares[0][0]:.0%})" if shares[0][0] < 0.8 else ""
    return (
        f"Repeated on {n_samples} bootstrap samples: {n_firm} of {len(shares)} columns are chosen "
        f"again in at least 80 % of them{weakest}."
    )


INFERENCE = (
    "The columns were chosen by looking at the target: p-values and confidence intervals computed "
    "from these rows would be too optimistic."
)
