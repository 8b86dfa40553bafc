"""Certificates in plain words: what was proven, and what was only searched for."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import Any

from blockl0.report.plain import count, percent
from blockl0.report.proof import Proof

MARKS = {
    "all": "proven", "optimal": "proven", "pairs": "partly", "swaps": "partly", "single": "partly",
    "tried": "partly", "refuted": "refuted", "none": "searched",
}  # fmt: skip
"""How the page marks each kind of `Proof`."""
VERDICTS = {
    "all": "Nothing to choose",
    "optimal": "Proven",
    "pairs": "Proven up to two exchanges",
    "swaps": "Proven up to one exchange",
    "single": "Proven for single changes",
    "tried": "Tried, not proven",
    "refuted": "No: better is known",
    "none": "Searched, not proven",
}
LEVELS = {"all": "n", "optimal": "n", "pairs": 4, "swaps": 2, "tried": 2, "single": 1}
SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
LISTED = 4
"""Columns named in an exchange."""


def certificate(
    proof: Proof, point: dict[str, Any], data: dict[str, Any], names: Sequence[str]
) -> dict[str, Any]:
    """The record of a point: its mark, a verdict, what is proven and what is not."""
    k, n = len(point["support"]), data["columns"]
    is_complete = proof.kind not in ("none", "refuted", "tried") or (
        proof.kind == "tried" and proof.n_tried == proof.n_possible
    )
    verdict = VERDICTS[proof.kind]
    if proof.kind == "tried" and is_complete:
        verdict = "No single exchange helps"
    return {
        "kind": proof.kind,
        "mark": MARKS[proof.kind],
        "holds": proof.kind != "refuted",
        "level": LEVELS.get(proof.kind),
        "complete": is_complete,
        "gap": None if proof.gap is None else round(proof.gap, 4),
        "verdict": verdict,
        "short": _given(proof, data, _short(proof, point["k"], k, is_complete)),
        "proven": _given(proof, data, _proven(proof, point["k"], k, data, names)),
        "open": _open(proof, k, n, data),
    }


def _given(proof: Proof, data: dict[str, Any], text: str) -> str:
    """A claim with what it supposes: columns that were kept as asked are not up for choice."""
    if not data["kept"] or proof.kind in ("all", "refuted", "none"):
        return text
    kept = "column" if len(data["kept"]) == 1 else "columns"
    return f"With the {kept} kept: {text[0].lower()}{text[1:]}"


def _short(proof: Proof, budget: int, k: int, is_complete: bool) -> str:
    """One sentence for the summary."""
    if proof.kind == "all":
        return "There is only one choice of this size."
    if proof.kind == "optimal":
        if k < budget:
            return f"No choice of up to {count(budget, 'column')} fits these rows better."
        return f"No other {f'{k} columns fit' if k > 1 else 'column fits'} these rows better."
    if proof.kind in ("pairs", "swaps"):
        exchange = "one or two" if proof.kind == "pairs" else "one"
        text = f"Exchanging {exchange} of the {k} columns for others cannot improve the fit."
        if proof.gap is not None:
            text += f" Nothing can improve it by more than {percent(proof.gap)}."
        return text
    if proof.kind == "single":
        return "Adding or removing one column cannot improve the fit."
    if proof.kind == "tried":
        which = "Every" if is_complete else f"{percent(proof.n_tried / proof.n_possible)} of each"
        return f"{which} exchange of one column for another was tried; none improves the fit."
    if proof.kind == "refuted":
        return f"Another choice of columns lowers the objective by {percent(proof.gain)}."
    return "A search found nothing better; there is no proof."


def _proven(proof: Proof, budget: int, k: int, data: dict[str, Any], names: Sequence[str]) -> str:
    n, n_kept = data["columns"], len(data["kept"])
    if proof.kind == "all":
        return (
            "At this size there is nothing to choose, only to fit; the fit is the best one on its "
            "columns."
        )
    if proof.kind == "optimal":
        return (
            f"There are {n_subsets(n - n_kept, budget - n_kept)} ways to take {budget} of {n} "
            "columns. Every one was examined, or excluded by a bound: none has a lower "
            "objective on these rows."
        )
    if proof.kind in ("pairs", "swaps"):
        many = "one or two" if proof.kind == "pairs" else "one"
        text = (
            f"If {many} of the {k} columns are exchanged for any of the other {n - k}, and all "
            "coefficients are fitted anew, the objective does not go down. All such exchanges were "
            "examined or excluded by a bound."
        )
        if proof.gap is not None:
            text += (
                f" Moreover, no choice of {budget} columns whatever lowers the objective by more "
                f"than {percent(proof.gap)}."
            )
        return text
    if proof.kind == "single":
        return (
            "Adding or removing any one column, all coefficients fitted anew, does not lower the "
            "objective."
        )
    if proof.kind == "tried":
        whole = "All" if proof.n_tried == proof.n_possible else f"{proof.n_tried} of the"
        return (
            f"{whole} {proof.n_possible} exchanges of a chosen column for another were "
            "fitted, one by one, all coefficients anew: none lowers the objective."
        )
    if proof.kind == "refuted":
        return (
            f"That this is not the best choice: {_exchange(proof, names)} lowers the objective by "
            f"{percent(proof.gain)}. Repeat the report with a higher effort to have it found."
        )
    return "Nothing beyond the fit itself: the coefficients are the best ones for these columns."


def _open(proof: Proof, k: int, n: int, data: dict[str, Any]) -> str:
    """What was searched for without a proof, or what no proof can say."""
    about_rows = (
        "A proof is about these rows and this objective. Whether the same columns are best for "
        "other rows is a question for the folds."
    )
    if proof.kind in ("all", "optimal"):
        return about_rows
    more = {"pairs": "three or more", "swaps": "two or more"}.get(proof.kind, "more")
    if proof.kind == "refuted":
        return "The search that made this page stopped before it found the better choice."
    if proof.kind in ("pairs", "swaps"):
        text = f"Whether an exchange of {more} columns at once would help was searched, not proven."
    elif proof.kind == "tried":
        rest = proof.n_possible - proof.n_tried
        text = "Exchanges of two or more columns at once were searched, not tried one by one."
        if rest:
            text = f"The other {rest} single exchanges, and larger ones, were searched only."
    else:
        text = f"That no other {k} of the {n} columns fit better was searched, not proven."
    return f"{text} {about_rows}"


def _exchange(proof: Proof, names: Sequence[str]) -> str:
    def listed(columns: tuple[int, ...]) -> str:
        shown = [f"“{names[j]}”" for j in columns[:LISTED]]
        more = len(columns) - len(shown)
        return ", ".join(shown) + (f" and {more} more" if more > 0 else "")

    if not proof.leave:
        return f"adding {listed(proof.enter)}"
    if not proof.enter:
        return f"leaving out {listed(proof.leave)}"
    return f"{listed(proof.enter)} in place of {listed(proof.leave)}"


def n_subsets(n: int, k: int) -> str:
    """How many subsets there are, in a form that can be read."""
    number = comb(n, k)
    if number < 10**6:
        return f"{number:,}".replace(",", " ")
    digits = str(number)
    return f"about {digits[0]}.{digits[1]} × 10{str(len(digits) - 1).translate(SUPERSCRIPT)}"
