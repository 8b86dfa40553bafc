"""Table 2 of the paper: objective of the price form, by set, price and method."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from blockl0.paper import markup
from blockl0.paper import printed as paper
from blockl0.paper.cells import Cell, draw_of
from blockl0.paper.profile import Profile
from blockl0.paper.samples import Sample, gather, multiple, places, sci, starts, write_csv
from blockl0.paper.store import Store

NAME = "table2"
TITLE = "Table 2: objective with a price per nonzero"

HEAD = (
    "set", "lambda", "method", "starts", "objective", "std", "nonzeros", "place",
    "paper", "paper_place", "ours_over_paper",
)  # fmt: skip


@dataclass(frozen=True)
class Table2Entry:
    """Hold one number of the table, and the printed one where there is one."""

    dataset: str
    price: float
    method: str
    ours: Sample
    place: int
    printed: paper.Printed | None

    @property
    def ratio(self) -> float | None:
        """Return our number over the printed one."""
        return None if self.printed is None else self.ours.objective / self.printed.objective


def methods(profile: Profile) -> tuple[str, ...]:
    """Return the paper's five methods and ours."""
    return (*paper.METHODS, profile.refit)


def cells(profile: Profile) -> list[Cell]:
    """List the cells of the table."""
    return [
        cell
        for dataset in profile.all_sets
        for price in profile.prices
        for method in methods(profile)
        for cell in problem_cells(profile, dataset, price, method)
    ]


def problem_cells(profile: Profile, dataset: str, price: float, method: str) -> list[Cell]:
    """List the starts of one number of the table, on the first draw of its price."""
    seeds = profile.refit_seeds if method == profile.refit else profile.seeds
    draw = draw_of(profile.prices, price, 0)
    return starts(dataset, method, "price", price, seeds, draw)


def collect(store: Store, profile: Profile) -> list[Table2Entry]:
    """Collect all finished numbers."""
    entries = []
    for dataset in profile.all_sets:
        for price in profile.prices:
            found = {
                method: sample
                for method in methods(profile)
                if (sample := gather(store, problem_cells(profile, dataset, price, method)))
            }
            ranks = places({method: sample.objective for method, sample in found.items()})
            entries += [
                Table2Entry(
                    dataset, price, method, sample, ranks[method],
                    paper.OBJECTIVES.get((dataset.removesuffix("N"), price, method)),
                )
                for method, sample in found.items()
            ]  # fmt: skip
    return entries


def write(store: Store, profile: Profile, out: Path) -> str:
    """Write the CSV file and return the section of the page."""
    entries = collect(store, profile)
    if not entries:
        return ""
    write_csv(out / "table2.csv", HEAD, (_csv_row(entry) for entry in entries))
    labels = methods(profile)
    rows: list[list[str]] = []
    for dataset in profile.all_sets:
        of_set = [entry for entry in entries if entry.dataset == dataset]
        rows += [[dataset]] if of_set else []
        for price in profile.prices:
            found = {entry.method: entry for entry in of_set if entry.price == price}
            if found:
                rows.append([f"λ = {price:g}", *(_html_cell(found.get(name)) for name in labels)])
    runs = [len(entry.ours.objectives) for entry in entries if entry.method != profile.refit]
    starts = markup.counts(runs or [profile.seeds], "random start")
    caption = (
        f"½‖Xw − y‖² + λ‖w‖₀, mean over {starts} "
        f"(refit: {markup.count(profile.refit_seeds, 'seed')}), on one draw of the data for each "
        "price. -C has outliers in X, -CN in X and in the noise; both stand beside what the paper "
        "prints for -C. The best, "
        "second and third of a row are ① red, ② blue and ③ green, as in the paper; below: what the "
        "paper prints, with its own places, and ours as a multiple of it."
    )
    head = ["", *map(markup.title_of, labels)]
    return markup.section(NAME, TITLE, markup.table(head, rows, caption=caption))


def _html_cell(entry: Table2Entry | None) -> str:
    if entry is None:
        return markup.number("–")
    if entry.printed is None or entry.ratio is None:
        below = ["not in the paper"]
    else:
        printed = f"paper {markup.badge(entry.printed.place)}{sci(entry.printed.objective, 2)}"
        below = [printed, f"× {multiple(entry.ratio)}"]
    return markup.number(sci(entry.ours.objective), *below, place=entry.place)


def _csv_row(entry: Table2Entry) -> list[object]:
    ours, printed = entry.ours, entry.printed
    return [
        entry.dataset, entry.price, entry.method, len(ours.objectives), ours.objective,
        ours.spread, sum(ours.n_nonzero) / len(ours.n_nonzero), entry.place or None,
        None if printed is None else printed.objective,
        (printed.place or None) if printed else None, entry.ratio,
    ]  # fmt: skip
