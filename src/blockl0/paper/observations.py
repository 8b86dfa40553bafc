"""All observations of the paper, recounted under their variants, and the file that holds them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from blockl0.paper import observe_figure1, observe_figure2, observe_table2, table1_report
from blockl0.paper.claims import Observation, Promise, count
from blockl0.paper.profile import Profile
from blockl0.paper.readings import TEXT
from blockl0.paper.samples import write_csv
from blockl0.paper.store import Store

HEAD = (
    "claim", "verdict", "role", "variant", "held", "of", "draws", "starts", "chance", "in_print",
    "needed", "compared", "empty", "note",
)  # fmt: skip


def observations(store: Store, profile: Profile, has_table1: bool) -> list[Observation]:
    """Judge every observation for which the run has numbers."""
    return [
        *(_same_counts() if has_table1 else []),
        *observe_table2.observe(store, profile),
        *observe_figure1.observe(store, profile),
        *observe_figure2.observe(store, profile),
    ]


def _same_counts() -> list[Observation]:
    found = []
    for name, ours, printed in table1_report.collect():
        cases = [a == b for a, b in zip(ours, printed, strict=True) if b is not None]
        found.append(
            Observation(
                f"Table 1, {name} row",
                "the columns of the row, counted in exact arithmetic",
                tuple(count("the paper's definitions", TEXT, cases, draws=0, starts=0)),
                note="docs/table1.md has the ties, tolerances, cuts, prices, θ and L that were "
                "tried for the columns that differ."
                if ours != printed
                else "",
            )
        )
    return found


def write_claims(out: Path, promises: Sequence[Promise], observed: Sequence[Observation]) -> None:
    """Write one row for each claim and variant."""
    rows: list[Sequence[object]] = [
        (p.text, p.verdict, "ours", "", p.total - len(p.exceptions), p.total, None, None, None,
         None, 1.0, None, None, "; ".join([*p.exceptions, p.more.strip()]).strip("; "))
        for p in promises
    ]  # fmt: skip
    for seen in observed:
        printed = None if seen.printed is None else "{} of {}".format(*seen.printed)
        rows += [
            (seen.text, seen.verdict, c.role, c.variant, c.held, c.total, c.draws, c.starts,
             seen.chance, printed, seen.needed, seen.compared, c.empty, seen.note)
            for c in seen.counts
        ]  # fmt: skip
    write_csv(out / "claims.csv", HEAD, rows)
