"""Presentation of a proof on the page: its mark, a verdict, what is proven and what is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blockl0.certify import words
from blockl0.certify.levels import Choice, ProofStatus

MARKS = {
    "all": "proven", "optimal": "proven", "pairs": "partly", "swaps": "partly", "single": "partly",
    "tried": "partly", "refuted": "refuted", "none": "searched",
}  # fmt: skip
"""Mark of each kind of proof."""
LEVELS = {"all": "n", "optimal": "n", "pairs": 4, "swaps": 2, "tried": 2, "single": 1}


def certificate(
    proof: ProofStatus, point: dict[str, Any], data: dict[str, Any], names: Sequence[str],
    has_ridge: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Make the record of a point."""
    n_chosen, n_kept = len(point["support"]), len(data["kept"])
    price = point.get("price") or 0.0
    choice = Choice(n_chosen, point["k"], data["columns"], n_kept, has_ridge, price)
    return {
        "kind": proof.kind,
        "mark": MARKS[proof.kind],
        "holds": proof.kind != "refuted",
        "level": LEVELS.get(proof.kind),
        "complete": proof.is_complete,
        "gap": None if proof.gap is None else round(proof.gap, 4),
        "n_close": proof.n_close,
        "question": words.question(choice),
        "answer": words.answer(proof),
        "verdict": words.verdict(proof),
        "short": _given(proof, choice, words.short(proof, choice)),
        "proven": _given(proof, choice, words.proven(proof, choice, names)),
        "open": words.left_open(proof, choice) + words.apart_only(names, proof.left_out),
        "near_dependent": [names[j] for j in proof.left_out or ()],
    }


def _given(proof: ProofStatus, choice: Choice, text: str) -> str:
    """Add the conditions of a claim."""
    if not (choice.n_kept or choice.price) or proof.kind in ("all", "refuted", "none"):
        return text
    supposed = words.supposing(choice.n_kept, choice.price > 0.0).rstrip(", ")
    return f"{supposed[0].upper()}{supposed[1:]}: {text[0].lower()}{text[1:]}"
