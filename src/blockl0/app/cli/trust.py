"""Trust in a result: the proof that is tried, and the stability of the selection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

LARGEST_PROOF = 3000
"""Columns up to which a proof is tried by default."""
MOST_ENTRIES = 20_000_000
"""Entries of X up to which a proof is tried by default."""


WORK, INSISTENT_WORK = 5.0, 60.0
"""Units of 1e9 multiplications for a proof, about a second each, by default and if it is asked for.
They are counted, so that the same data give the same claim on any machine, however busy.
"""


def prove(problem: Any, seed: int, work: float, gap: float = 0.0) -> Any:
    """Search for the global optimum, or a lower bound at a limit or if the gap is reached."""
    from blockl0.app.cli.data import run_method

    return run_method(problem, "exact", seed=seed, work_limit=work, gap=gap)


def is_promising(problem: Any) -> bool:
    """Decide if a proof is tried by default: one may exist, and the data are not large."""
    from blockl0.exact import obstacle
    from blockl0.exact.few_columns import may_enumerate
    from blockl0.methods import METHODS

    m, n = problem.n_samples, problem.n_features
    is_small = n <= LARGEST_PROOF and m * n <= MOST_ENTRIES
    is_taken = METHODS["exact"].refusal(problem) is None
    return is_small and is_taken and (may_enumerate(problem) or obstacle(problem) is None)


def certified(problem: Any, coef: Any) -> Any:
    """Certify a point by all exchanges of one column for another; None if that is out of reach."""
    from blockl0.certify import certify_problem
    from blockl0.errors import OutOfReachError

    m, n = problem.n_samples, problem.n_features
    if n > LARGEST_PROOF or m * n > MOST_ENTRIES:
        return None
    try:
        found = certify_problem(problem, coef, level=2)
    except OutOfReachError:
        return None
    return found if found.complete else None


def claim(
    model: Any, search: Any, choice: Any, find_left_out: Callable[[], Sequence[int] | None],
    names: Sequence[str], *, has_bound: bool, n_close: int | None, charge: float, certificate: Any,
) -> dict[str, Any]:  # fmt: skip
    """Record what is proven about a fit, by itself or by an exact search, with its words.

    The lower bound excludes the charge of the chosen categories, as the objective does. Columns
    that nearly depend on each other are looked for beside an optimum alone.
    """
    from dataclasses import replace

    from blockl0.certify import levels as proof
    from blockl0.certify import words

    certificate = certificate or model.certificate_
    known = proof.proof_of(model.status_, certificate, choice)
    known = replace(known, has_bound=has_bound, n_close=n_close or 0)
    if search is not None:
        known = known.bounded(search.gap)
    left_out = find_left_out() if known.is_optimal else ()
    return {
        "optimal": known.is_optimal,
        "lower_bound": None if search is None else search.lower_bound - charge,
        "gap": None if search is None else search.gap,
        "level": None if certificate is None else certificate.level,
        "outside": None if certificate is None else certificate.outside,
        "complete": None if certificate is None else certificate.complete,
        "n_close": n_close,
        "near_dependent": [names[j] for j in left_out or ()],
        "words": words.sentence(known, choice) + words.apart_only(names, left_out),
    }


def stability(rows: list[dict[str, Any]], n_samples: int) -> str:
    """Say in a sentence how often the columns are selected again."""
    from blockl0.estimators.half_samples import FIRM
    from blockl0.text import percent

    shares = sorted((row["again"], row["name"]) for row in rows)
    n_firm = sum(share >= FIRM for share, _ in shares)
    which = "the column is" if len(shares) == 1 else f"{n_firm} of {len(shares)} columns are"
    if n_firm < len(shares) == 1:
        which = "the column is not"
    weakest = f"; least often {shares[0][1]} ({shares[0][0]:.0%})" if shares[0][0] < FIRM else ""
    return (
        f"Repeated on {n_samples} half-samples of the rows: {which} chosen again in at least "
        f"{percent(FIRM)} of them{weakest}."
    )
