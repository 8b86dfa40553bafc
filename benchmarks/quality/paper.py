"""The paper's sets at all its budgets and prices: blockl0 against every method of the paper."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from .instances import Instance
from .peers import BASELINES, PAPER_METHODS, PAPER_OURS, PAPER_PRICE_METHODS
from .report import FAIL, PASS, SKIP, TOLERANCE
from .runner import Session
from .store import ERROR, BestKnown, Results


def takes_part(method: str, instance: Instance) -> bool:
    """Whether the paper's method is one for this form of the problem."""
    rivals = PAPER_METHODS if instance.price is None else PAPER_PRICE_METHODS
    return method == PAPER_OURS or method in rivals


def run_paper(
    instances: Sequence[Instance], out: Path, timeout: float, again: Collection[str]
) -> Results:
    """Run what is missing; forgets the methods `again`, and errors: a method may exist by now."""
    results = Results(out / "paper.csv")
    names = {instance.name for instance in instances}
    results.forget(
        [
            key
            for key, cell in results.cells.items()
            if cell.status == ERROR or (cell.method in again and cell.instance in names)
        ]
    )
    best = BestKnown(out / "paper_best.json")
    Session(results, best, out / "logs", timeout, takes_part).run_all(instances, [BASELINES])
    return results


def judge(results: Results, instances: Sequence[Instance]) -> tuple[str, bool]:
    """A line per method and per set: on how many cells blockl0 is at most as high; no FAIL?"""
    lines, fine = [], True
    rivals = dict.fromkeys((*PAPER_METHODS, *PAPER_PRICE_METHODS))
    for method in rivals:
        counted, lost, missing = _against(results, instances, method)
        verdict = FAIL if lost else PASS if counted else SKIP
        fine &= not lost
        lines.append(f"{verdict:11s} blockl0 <= {method:8s} on {counted - len(lost)} of {counted}")
        lines += [f"    {text}" for text in lost[:10]]
        if missing:
            lines.append(f"    !!! {method} has no result on {missing} cells (see paper.csv)")
    return "\n".join(lines), fine


def _against(
    results: Results, instances: Sequence[Instance], method: str
) -> tuple[int, list[str], int]:
    """Cells compared, texts of those lost, and cells without a result of the method."""
    counted, lost, missing = 0, [], 0
    for instance in instances:
        if not takes_part(method, instance):
            continue
        ours = results.cells.get((instance.name, PAPER_OURS))
        theirs = results.cells.get((instance.name, method))
        if ours is None or theirs is None or not theirs.is_ok:
            missing += 1
            continue
        counted += 1
        if not ours.is_ok:
            lost.append(f"{instance.name}: {ours.status} {ours.note}")
        elif ours.objective > theirs.objective * (1.0 + TOLERANCE):
            excess = 100.0 * (ours.objective / theirs.objective - 1.0)
            lost.append(f"{instance.name}: {excess:+.4f} %")
    return counted, lost, missing
