"""Rows of the table, and what is wrong with an answer."""

from __future__ import annotations

import math
from typing import Any

from .call import PEERS

SOLVERS = ("blockl0", *PEERS)
ROUNDING = 1e-6
"""Relative difference of objectives that is not held against anybody."""
WIDEST = 60
"""Characters of a message."""

Row = dict[str, Any]


def heading() -> str:
    names = ["instance #seed", "blockl0", *PEERS.values(), "target"]
    return "| " + " | ".join(names) + " |\n" + "|---" * len(names) + "|"


def line(row: Row) -> str:
    cells = [cell(row.get(name), row) for name in SOLVERS]
    return "| " + " | ".join([f"{row['instance']} #{row['seed']}", *cells, verdict(row)]) + " |"


def cell(answer: Row | None, row: Row) -> str:
    """An answer in a few words: F is our objective of its support, of so many columns."""
    if answer is None:
        return "–"
    reason = answer.get("refused") or answer.get("error")
    if reason is not None:
        return reason if len(reason) <= WIDEST else reason[: WIDEST - 3] + "..."
    if "refitted" not in answer:
        return f"{answer['cpu']:.3g} s, {answer['status']}"
    words = [
        f"{answer['cpu']:.3g} s",
        standing(answer),
        f"{answer['nodes']} nodes",
        f"F {answer['refitted']:.7g} ({len(answer['support'])})",
        *faults(answer, row),
    ]
    form = f" [{answer['form']}]" if "form" in answer else ""
    return ", ".join(words) + form


def standing(answer: Row) -> str:
    """The status with the gap, where there is one."""
    gap = answer["gap"]
    if answer["proven"]:
        return f"optimal (gap {gap:.1g})" if gap else "optimal"
    return f"{answer['status']}, gap {'unknown' if gap is None else f'{gap:.2%}'}"


def faults(answer: Row, row: Row) -> list[str]:
    """What the other answers of the row tell about this one, in the form that it solved."""
    best = min(
        (
            other["refitted"] + answer["extra"] * len(other["support"])
            for name in SOLVERS
            if "refitted" in (other := row.get(name) or {})
            and len(other["support"]) <= answer["most"]
        ),
        default=math.inf,
    )
    own = answer["refitted"] + answer["extra"] * len(answer["support"])
    slack = ROUNDING * abs(best)
    found = []
    if answer["lower"] is not None and answer["lower"] > best + slack:
        found.append("FALSE BOUND")
    if own > best + slack:
        found.append("not the best")
    if answer.get("misstated", 0.0) > 1e-3:
        found.append(f"states {answer['objective']:.5g}")
    return found


def verdict(row: Row) -> str:
    """PASS or FAIL where there is a target, which is also noted in the row."""
    target, ours = row["target"], row.get("blockl0")
    okridge = row.get("okridge") or {}
    if row["okridge_ratio"] and okridge.get("proven"):
        target = okridge["cpu"] / row["okridge_ratio"]
    if target is None or ours is None:
        return ""
    row["met"] = bool(ours.get("proven")) and ours["cpu"] <= target
    return f"{target:.3g} s: {'PASS' if row['met'] else 'FAIL'}"
