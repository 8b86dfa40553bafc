"""Table 1 on the page: counts of stationary points, ours beside the paper's."""

from __future__ import annotations

from pathlib import Path

from blockl0.paper import markup, table1
from blockl0.paper.cells import Cell
from blockl0.paper.profile import Profile
from blockl0.paper.samples import write_csv
from blockl0.paper.store import Store

NAME = "table1"
TITLE = "Table 1: points that satisfy each optimality condition"


def cells(profile: Profile) -> list[Cell]:
    """Return no cells: the table is counted in exact arithmetic, without a solver."""
    return []


def collect() -> list[tuple[str, table1.Row, table1.Row]]:
    """Collect name, our row and the paper's row."""
    counted = table1.run()
    return [
        ("constrained", counted.constrained, table1.PAPER_CONSTRAINED),
        ("regularized", counted.regularized, table1.PAPER_REGULARIZED),
    ]


def write(store: Store, profile: Profile, out: Path) -> str:
    """Write the CSV file and return the section of the page."""
    rows = [
        (f"{name}, {whose}", *counts)
        for name, ours, printed in collect()
        for whose, counts in (("ours", ours), ("paper", printed))
    ]
    write_csv(out / "table1.csv", ("row", *table1.HEADER), rows)
    lines = [[name, *("–" if n is None else str(n) for n in counts)] for name, *counts in rows]
    caption = (
        "The paper's example with six variables, counted in exact fractions. The constrained row "
        "is the paper's in every column. The regularized row differs in three. No price by itself, "
        "and no tolerance on the decrease by itself, gives the printed 9 and 3 together; "
        "docs/table1.md has the proof, and what else was tried."
    )
    return markup.section(NAME, TITLE, markup.table(["", *table1.HEADER], lines, caption=caption))
