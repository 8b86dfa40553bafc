"""Tables per family and the claims, with PASS or FAIL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .peers import REFERENCE
from .store import BestKnown, Cell, Results

FAST, BALANCED, THOROUGH = "blockl0-fast", "blockl0-balanced", "blockl0-thorough"
BEAM = "okridge-beam50"
TOLERANCE = 1e-9
ZERO_GAP = 1e-7  # per cent
BALANCED_FAMILY, BALANCED_OVERALL, THOROUGH_MEAN = 1.0, 0.5, 0.1  # per cent
PASS, FAIL, SKIP = "PASS", "FAIL", "NOT CHECKED"


@dataclass(frozen=True)
class Claim:
    """A claim, whether it holds, and the numbers."""

    verdict: str
    text: str
    details: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([f"{self.verdict:11s} {self.text}", *(f"    {d}" for d in self.details)])


class Comparison:
    """All cells of a run with their gaps and times.

    Parameters
    ----------
    results, best : Results, BestKnown
    instances : iterable of str
        Names of the instances to judge.
    clock : str
        "seconds" (wall) or "cpu".
    """

    def __init__(
        self, results: Results, best: BestKnown, instances: Iterable[str], clock: str = "seconds"
    ) -> None:
        chosen = set(instances)
        self.clock = clock
        self.cells = {key: cell for key, cell in results.cells.items() if key[0] in chosen}
        self.best: dict[str, float] = {name: best.objective(name) for name in chosen}
        for cell in self.cells.values():
            if cell.is_ok:
                self.best[cell.instance] = min(self.best[cell.instance], cell.objective)
        self.families: dict[str, list[str]] = defaultdict(list)
        self.groups: dict[str, list[str]] = defaultdict(list)
        for name, cell in {cell.instance: cell for cell in self.cells.values()}.items():
            self.families[cell.family].append(name)
            self.groups[cell.group].append(name)
        self.methods = list(dict.fromkeys(cell.method for cell in self.cells.values()))

    def ok(self, method: str, instances: Sequence[str]) -> list[Cell]:
        """The cells of a method that have an objective."""
        found = (self.cells.get((name, method)) for name in instances)
        return [cell for cell in found if cell is not None and cell.is_ok]

    def tried(self, method: str, instances: Sequence[str]) -> list[Cell]:
        """The cells of a method, failed ones too."""
        return [self.cells[name, method] for name in instances if (name, method) in self.cells]

    def gap(self, cell: Cell) -> float:
        """Per cent above the best known."""
        best = self.best[cell.instance]
        return 100.0 * (cell.objective - best) / best if best > 0.0 else 100.0 * cell.objective

    def gaps(self, method: str, instances: Sequence[str]) -> np.ndarray:
        """Gaps on the instances that the method solved."""
        return np.array([self.gap(cell) for cell in self.ok(method, instances)])

    def time(self, cell: Cell) -> float:
        """Seconds by the chosen clock."""
        return max(getattr(cell, self.clock), 1e-9)

    def pairs(self, a: str, b: str, instances: Sequence[str]) -> list[tuple[Cell, Cell]]:
        """Cells of both methods on the instances that both solved."""
        both = ((self.cells.get((n, a)), self.cells.get((n, b))) for n in instances)
        return [(p, q) for p, q in both if p and q and p.is_ok and q.is_ok]

    def ratio(self, a: str, b: str, instances: Sequence[str]) -> float:
        """Geometric mean of the time of a over that of b, NaN without a common instance."""
        logs = [np.log(self.time(p) / self.time(q)) for p, q in self.pairs(a, b, instances)]
        return float(np.exp(np.mean(logs))) if logs else float("nan")


def table(comparison: Comparison, title: str, instances: Sequence[str]) -> str:
    """One table: a row per method, the smallest mean gap first; incomplete ones come last."""
    rows = []
    for method in comparison.methods:
        tried, solved = comparison.tried(method, instances), comparison.ok(method, instances)
        if tried:
            gaps = comparison.gaps(method, instances)
            mean = float(np.mean(gaps)) if gaps.size else float("inf")
            rows.append(((len(solved) < len(instances), mean), _row(comparison, method, instances)))
    head = (
        f"{title}: {len(instances)} instances\n  {'':26s} {'mean gap':>9s} {'worst gap':>9s} "
        f"{'x abess':>9s} {'median':>11s} {'nnz':>6s}  solved"
    )
    return "\n".join([head, *(row for _, row in sorted(rows))])


def _row(comparison: Comparison, method: str, instances: Sequence[str]) -> str:
    tried, solved = comparison.tried(method, instances), comparison.ok(method, instances)
    failures = sorted({cell.status for cell in tried if not cell.is_ok})
    tail = f"{len(solved)}/{len(instances)} {' '.join(failures)}".rstrip()
    if not solved:
        return f"  {method:26s} {'-':>9s} {'-':>9s} {'-':>9s} {'-':>11s} {'-':>6s}  {tail}"
    gaps = comparison.gaps(method, instances)
    ratio = comparison.ratio(method, REFERENCE, instances)
    median = 1e3 * np.median([comparison.time(cell) for cell in solved])
    nnz = np.mean([cell.nnz for cell in solved])
    return (
        f"  {method:26s} {gaps.mean():8.3f}% {gaps.max():8.3f}% {ratio:9.3g} "
        f"{median:8.2f} ms {nnz:6.1f}  {tail}"
    )


def never_above(comparison: Comparison) -> Claim:
    """(1) fast is never above abess."""
    text = "(1) blockl0-fast is never above abess at its defaults"
    everything = list(comparison.best)
    pairs = comparison.pairs(FAST, REFERENCE, everything)
    failed = [cell for cell in comparison.tried(FAST, everything) if not cell.is_ok]
    if not pairs:
        return Claim(SKIP, text)
    excess = sorted(
        ((p.objective / q.objective - 1.0, p.instance) for p, q in pairs if q.objective > 0.0),
        reverse=True,
    )
    above = [(value, name) for value, name in excess if value > TOLERANCE]
    details = [f"{name}: {100 * value:+.4f} %" for value, name in above[:20]]
    details += [f"{cell.instance}: {cell.status} {cell.note}" for cell in failed]
    summary = f"{text}: above on {len(above)} of {len(pairs)}, worst {100 * excess[0][0]:+.4f} %"
    return Claim(FAIL if above or failed else PASS, summary, tuple(details))


def as_quick(comparison: Comparison) -> Claim:
    """(2) fast takes no longer than abess in the geometric mean."""
    text = "(2) blockl0-fast takes at most the time of abess (geometric mean)"
    ratio = comparison.ratio(FAST, REFERENCE, list(comparison.best))
    if np.isnan(ratio):
        return Claim(SKIP, text)
    details = [
        f"{family:24s} {comparison.ratio(FAST, REFERENCE, names):8.3f}"
        for family, names in comparison.families.items()
    ]
    return Claim(PASS if ratio <= 1.0 else FAIL, f"{text}: {ratio:.3f}", tuple(details))


def _small_gaps(
    comparison: Comparison, method: str, text: str, family_limit: float, limit: float
) -> Claim:
    """The mean gap of a method is below a limit per family, and below another overall."""
    everything = list(comparison.best)
    gaps = comparison.gaps(method, everything)
    if not gaps.size:
        return Claim(SKIP, text)
    means = {f: comparison.gaps(method, names) for f, names in comparison.families.items()}
    details = [f"{f:24s} {g.mean():8.4f} %" for f, g in means.items() if g.size]
    holds = gaps.mean() <= limit and all(g.mean() <= family_limit for g in means.values() if g.size)
    unsolved = len(comparison.tried(method, everything)) - gaps.size
    if unsolved:
        details.append(f"{unsolved} instances not solved")
    verdict = PASS if holds and not unsolved else FAIL
    return Claim(verdict, f"{text}: overall {gaps.mean():.4f} %", tuple(details))


def balanced_gaps(comparison: Comparison) -> Claim:
    """(3) balanced is close to the best known."""
    text = (
        f"(3) blockl0-balanced: mean gap at most {BALANCED_FAMILY:g} % on every family, "
        f"{BALANCED_OVERALL:g} % overall"
    )
    return _small_gaps(comparison, BALANCED, text, BALANCED_FAMILY, BALANCED_OVERALL)


def thorough_gaps(comparison: Comparison) -> Claim:
    """(4) thorough is very close to the best known."""
    text = f"(4) blockl0-thorough: mean gap at most {THOROUGH_MEAN:g} %"
    return _small_gaps(comparison, THOROUGH, text, float("inf"), THOROUGH_MEAN)


def beats_beam(comparison: Comparison) -> Claim:
    """(5) thorough is at least as good as OKRidge's beam search and not slower, family by family.

    Equal gaps count only when both are zero. Only instances that both solved are compared.
    """
    text = "(5) blockl0-thorough beats OKRidge's beam of 50 in gap and time on every family"
    details, holds = [], True
    for family, names in comparison.families.items():
        pairs = comparison.pairs(THOROUGH, BEAM, names)
        if not pairs:
            details.append(f"{family:24s} no instance that both solved")
            continue
        ours, theirs = (float(np.mean([comparison.gap(p[i]) for p in pairs])) for i in (0, 1))
        ratio = comparison.ratio(THOROUGH, BEAM, names)
        better = ours < theirs or (ours <= ZERO_GAP and theirs <= ZERO_GAP)
        good = better and ratio <= 1.0
        holds &= good
        details.append(
            f"{family:24s} {PASS if good else FAIL}  gap {ours:.4f} % against {theirs:.4f} %, "
            f"time ratio {ratio:.3f}, {len(pairs)} of {len(names)} instances"
        )
    if not comparison.pairs(THOROUGH, BEAM, list(comparison.best)):
        return Claim(SKIP, text)
    return Claim(PASS if holds else FAIL, text, tuple(details))


CLAIMS: tuple[Callable[[Comparison], Claim], ...] = (
    never_above,
    as_quick,
    balanced_gaps,
    thorough_gaps,
    beats_beam,
)


def mixed_runs(comparison: Comparison) -> str | None:
    """A warning if compared times are of different runs."""
    pairs = [
        pair
        for a, b in ((FAST, REFERENCE), (THOROUGH, BEAM))
        for pair in comparison.pairs(a, b, list(comparison.best))
    ]
    apart = sum(p.run != q.run for p, q in pairs)
    if not apart:
        return None
    return (
        f"!!! {apart} of {len(pairs)} compared times are of different runs; for a fair comparison "
        "use --rerun 'blockl0*,abess*,okridge*'"
    )


def missing_cells(comparison: Comparison) -> str | None:
    """A warning if a judged method was not run everywhere."""
    judged = (REFERENCE, FAST, BALANCED, THOROUGH)
    names = list(comparison.best)
    lost = {method: len(names) - len(comparison.tried(method, names)) for method in judged}
    if not any(lost.values()):
        return None
    counts = ", ".join(f"{method} {count}" for method, count in lost.items() if count)
    return f"!!! the run is incomplete, missing of {len(names)} instances: {counts}"


def report(comparison: Comparison) -> tuple[str, bool]:
    """The whole text, and whether no claim failed."""
    parts = [
        table(comparison, family, names) for family, names in sorted(comparison.families.items())
    ]
    parts.append(table(comparison, "ALL", [n for f in comparison.families.values() for n in f]))
    claims = [claim(comparison) for claim in CLAIMS]
    parts += [str(claim) for claim in claims]
    parts += filter(None, (missing_cells(comparison), mixed_runs(comparison)))
    return "\n\n".join(parts), all(claim.verdict != FAIL for claim in claims)
