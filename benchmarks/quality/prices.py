"""The price form: the paper's sets at its prices, blockl0 beside every peer that has a price."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from .instances import Instance
from .peers import LONG_PRICED, PRICE_PEERS
from .report import BALANCED, FAIL, FAST, PASS, SKIP, THOROUGH, TOLERANCE
from .runner import Session
from .store import BestKnown, Cell, Results

MOST = {FAST: 5.0, BALANCED: 1.0, THOROUGH: 0.3}  # per cent


def run_prices(
    instances: Sequence[Instance],
    out: Path,
    timeout: float,
    wanted: Callable[[str, Instance], bool],
    long: bool,
) -> tuple[Results, BestKnown]:
    """Run what is wanted and missing, and with `long` a path of prices for the best known."""
    results, best = Results(out / "prices.csv"), BestKnown(out / "prices_best.json")
    session = Session(results, best, out / "logs", timeout, wanted)
    peers = [p for p in PRICE_PEERS if any(wanted(method, instances[0]) for method in p.methods)]
    session.run_all(instances, peers)
    if long:
        session.run_long(instances, LONG_PRICED, again=False)
    return results, best


class Prices:
    """The cells of some instances, with their gaps."""

    def __init__(self, results: Results, best: BestKnown, instances: Sequence[Instance]) -> None:
        self.instances = instances
        names = {instance.name for instance in instances}
        self.cells = {key: cell for key, cell in results.cells.items() if key[0] in names}
        self.methods = list(dict.fromkeys(method for _, method in self.cells))
        self.best = {name: best.objective(name) for name in names}
        for cell in self.cells.values():
            if cell.is_ok:
                self.best[cell.instance] = min(self.best[cell.instance], cell.objective)

    def of(self, method: str, family: str | None = None, price: float | None = None) -> list[Cell]:
        """The solved cells of a method, of all families and prices unless one is named."""
        found = [
            self.cells.get((i.name, method))
            for i in self.instances
            if family in (None, i.family.name) and price in (None, i.price)
        ]
        return [cell for cell in found if cell is not None and cell.is_ok]

    def mean_gap(self, cells: Sequence[Cell]) -> float:
        """Per cent above the best known, NaN without a cell."""
        gaps = [100.0 * (c.objective / self.best[c.instance] - 1.0) for c in cells]
        return float(np.mean(gaps)) if gaps else float("nan")

    def table(self) -> str:
        """A line per family and method: gap and CPU seconds at every price."""
        prices = sorted({i.price for i in self.instances})
        head = " ".join(f"{f'price {price:g}':>18s}" for price in prices)
        lines = [f"{'gap %, CPU s':50s}{head}"]
        for family in dict.fromkeys(i.family.name for i in self.instances):
            for method in self.methods:
                columns = [self.of(method, family, price) for price in prices]
                entries = " ".join(f"{self._entry(cells):>18s}" for cells in columns)
                lines.append(f"{family:22s} {method:26s} {entries}")
        return "\n".join(lines)

    def _entry(self, cells: Sequence[Cell]) -> str:
        if not cells:
            return "-"
        return f"{self.mean_gap(cells):.3f} {np.median([c.cpu for c in cells]):8.3f} s"

    def worst_family(self, method: str) -> tuple[float, str] | None:
        """The largest mean gap of a family, and the family."""
        families = dict.fromkeys(i.family.name for i in self.instances)
        gaps = [(self.mean_gap(cells), f) for f in families if (cells := self.of(method, f))]
        return max(gaps) if gaps else None

    def above(self, method: str, peer: str) -> list[str]:
        """The instances on which a method ends above a peer."""
        theirs = {cell.instance: cell.objective for cell in self.of(peer)}
        return [
            cell.instance
            for cell in self.of(method)
            if cell.objective > theirs.get(cell.instance, np.inf) * (1.0 + TOLERANCE)
        ]


def judge(prices: Prices) -> tuple[str, bool]:
    """The table and the claims; no FAIL?"""
    lines, fine = [prices.table(), ""], True
    for method, most in MOST.items():
        worst = prices.worst_family(method)
        verdict = SKIP if worst is None else PASS if worst[0] <= most else FAIL
        fine &= verdict != FAIL
        seen = "" if worst is None else f": {worst[0]:.3f} % on {worst[1]}"
        lines.append(f"{verdict:11s} {method} at most {most:g} % on every family{seen}")
    for peer in prices.methods:
        if peer in MOST:
            continue
        lost = prices.above(BALANCED, peer)
        fine &= not lost
        lines.append(f"{FAIL if lost else PASS:11s} {BALANCED} never above {peer}")
        lines += [f"    {name}" for name in lost]
    return "\n".join(lines), fine
