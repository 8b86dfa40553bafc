"""Table 3 of the paper: seconds of the runs of Table 2, by set and method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from blockl0.paper import markup, table2
from blockl0.paper import printed as paper
from blockl0.paper.cells import Cell
from blockl0.paper.profile import Profile
from blockl0.paper.samples import gather, short, write_csv
from blockl0.paper.store import Store
from blockl0.paper.variants import dec

NAME = "table3"
TITLE = "Table 3: seconds of the runs of Table 2"

HEAD = (
    "set",
    "method",
    "runs",
    "seconds",
    "std",
    "longest",
    "paper",
    "paper_std",
    "paper_over_ours",
)


@dataclass(frozen=True)
class Table3Entry:
    """Hold the seconds of one method on one set, over all prices and starts."""

    dataset: str
    method: str
    seconds: tuple[float, ...]
    printed: paper.Seconds | None

    @property
    def mean(self) -> float:
        """Return the mean."""
        return float(np.mean(self.seconds))

    @property
    def std(self) -> float:
        """Return the standard deviation."""
        return float(np.std(self.seconds))

    @property
    def ratio(self) -> float | None:
        """Return the paper's mean over ours."""
        return None if self.printed is None else self.printed.mean / self.mean


def cells(profile: Profile) -> list[Cell]:
    """List the cells of Table 2."""
    return table2.cells(profile)


def collect(store: Store, profile: Profile) -> list[Table3Entry]:
    """Collect all finished times."""
    entries = []
    for dataset in profile.all_sets:
        for method in table2.methods(profile):
            wanted = [
                cell
                for price in profile.prices
                for cell in table2.problem_cells(profile, dataset, price, method)
            ]
            sample = gather(store, wanted)
            if sample is not None:
                printed = paper.SECONDS.get((dataset, method))
                entries.append(Table3Entry(dataset, method, sample.seconds, printed))
    return entries


def write(store: Store, profile: Profile, out: Path) -> str:
    """Write the CSV file and return the section of the page."""
    entries = collect(store, profile)
    if not entries:
        return ""
    write_csv(out / "table3.csv", HEAD, (_csv_row(entry) for entry in entries))
    found = {(entry.dataset, entry.method): entry for entry in entries}
    labels = table2.methods(profile)
    rows = [
        [dataset, *(_html_cell(found.get((dataset, method))) for method in labels)]
        for dataset in profile.all_sets
        if any((dataset, method) in found for method in labels)
    ]
    caption = (
        "Seconds by the clock, mean ± standard deviation over all prices and starts; below: the "
        "paper's (MATLAB, 3.2 GHz). The paper prints no times for the sets with outliers."
    )
    head = ["", *map(markup.title_of, labels)]
    return markup.section(
        NAME, TITLE, markup.table(head, rows, caption=caption), _in_words(entries)
    )


def _in_words(entries: Sequence[Table3Entry]) -> str:
    """Restate the paper's sentences about its times with our numbers, without a verdict."""
    ours = {entry.dataset: entry for entry in entries if entry.method == dec()}
    ratios = [
        ours[entry.dataset].mean / entry.mean
        for entry in entries
        if entry.method in paper.METHODS[:-1] and entry.dataset in ours
    ]
    if not ratios:
        return ""
    longest = max(max(entry.seconds) for entry in ours.values())
    return (
        "<p>The paper observes that DEC takes several times longer than the other four, and less "
        "than 70 seconds. Here it takes "
        f"{short(min(ratios))} to {short(max(ratios))} times as long (median "
        f"{short(float(np.median(ratios)))}), and {short(longest)} s at most. These are other "
        "programs on another machine: they neither confirm nor refute the paper's times.</p>"
    )


def _html_cell(entry: Table3Entry | None) -> str:
    if entry is None:
        return markup.number("–")
    below = []
    if entry.printed is not None and entry.ratio is not None:
        below = [
            f"paper {entry.printed.mean:g} ± {entry.printed.std:g}",
            f"{short(entry.ratio)} × ours",
        ]
    return markup.number(f"{short(entry.mean)} ± {short(entry.std)}", *below)


def _csv_row(entry: Table3Entry) -> list[object]:
    printed = entry.printed
    return [
        entry.dataset, entry.method, len(entry.seconds), entry.mean, entry.std, max(entry.seconds),
        None if printed is None else printed.mean, None if printed is None else printed.std,
        entry.ratio,
    ]  # fmt: skip
