"""Figure 1 of the paper: convergence curves under a budget, against time and iterations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from blockl0.paper import drawing, markup
from blockl0.paper.cells import Cell
from blockl0.paper.profile import Profile
from blockl0.paper.quantiles import is_run
from blockl0.paper.samples import sci, short, starts, write_csv
from blockl0.paper.store import Store
from blockl0.paper.variants import WORKING_SETS, dec

NAME = "figure1"
TITLE = "Figure 1: convergence under a budget of nonzeros"

PAPER_METHODS = (
    "PGM", "APGM", "QPM", "DEC-R2G0", "DEC-R0G2", "DEC-R2G2", "DEC-R5G5", "DEC-R10G2",
)  # fmt: skip
END_CHANGES = ("", "printed", "ranked", "list", "theta5", "theta5 ranked")
"""Changes of DEC under which the claims are judged."""
END_METHODS = (
    "PGM", "APGM", *(dec(name, change) for change in END_CHANGES for name in WORKING_SETS),
)  # fmt: skip
HEAD = ("set", "s", "method", "iteration", "seconds", "objective")

Curves = dict[tuple[str, int, str], dict[str, Any]]


def methods(profile: Profile) -> tuple[str, ...]:
    """Return the methods of the paper and ours."""
    return (*PAPER_METHODS, profile.refit)


def cells(profile: Profile) -> list[Cell]:
    """List the cells: curves, end points, and runs with blocks of two that are never stopped."""
    ends = [
        cell
        for panel in panels(profile)
        for method in END_METHODS
        if is_run(panel[0], method)
        for draw in range(profile.curve_draws)
        for cell in end_cells(profile, panel, method, draw)
    ]
    unstopped = [cell for pair in unstopped_pairs(profile) for cell in pair]
    return [*curve_cells(profile), *unstopped, *ends]


def panels(profile: Profile) -> list[tuple[str, int]]:
    """Return set and budget of each panel, with the other reading of the noise."""
    return [(name, s) for name in profile.all_curve_sets for s in profile.curve_budgets]


def curve_cells(profile: Profile) -> list[Cell]:
    """List the cells of the curves, one start each."""
    return [
        Cell(dataset, method, "budget", budget, has_curve=True)
        for dataset in profile.curve_sets
        for budget in profile.curve_budgets
        for method in methods(profile)
    ]


def end_cells(profile: Profile, panel: tuple[str, int], method: str, draw: int) -> list[Cell]:
    """List the starts of a method on one draw of a panel."""
    return starts(panel[0], method, "budget", panel[1], profile.figure_seeds, draw)


def unstopped_pairs(profile: Profile) -> list[tuple[Cell, Cell]]:
    """Pair two random and two greedy coordinates, a million iterations, per panel and draw."""
    if not profile.is_unstopped:
        return []
    labels = dec("R2G0", "unstopped"), dec("R0G2", "unstopped")
    return [
        (
            Cell(dataset, labels[0], "budget", s, draw=draw),
            Cell(dataset, labels[1], "budget", s, draw=draw),
        )
        for dataset in profile.curve_sets
        for s in profile.curve_budgets
        for draw in range(profile.curve_draws)
    ]


def collect(store: Store, profile: Profile) -> Curves:
    """Collect the finished records, by set, budget and method."""
    return {
        (cell.dataset, int(cell.value), cell.method): store[cell]
        for cell in curve_cells(profile)
        if cell in store
    }


def write(store: Store, profile: Profile, out: Path) -> str:
    """Write CSV and drawings and return the section of the page."""
    records = collect(store, profile)
    if not records:
        return ""
    write_csv(out / "figure1.csv", HEAD, _csv_rows(records))
    by_time = make_panels(records, profile, "seconds")
    by_iteration = make_panels(records, profile, "iteration")
    drawing.save(by_time, out / "figure1-time")
    drawing.save(by_iteration, out / "figure1-iteration")
    pairs = [
        drawing.svg(panel) for both in zip(by_time, by_iteration, strict=True) for panel in both
    ]
    text = (
        "<p>Objective ½‖Xw − y‖² against time and against iterations, from one random start, "
        "projected to s nonzeros. An iteration of refit is a whole round of walks and searches; "
        f"its first point is the end of its first search. {_longest(records)}</p>"
    )
    return markup.section(
        NAME, TITLE, text, drawing.legend(methods(profile)), markup.panels(pairs),
        markup.details("Where the curves end", _final_table(records, profile)),
    )  # fmt: skip


def _longest(records: Curves) -> str:
    seconds = [r["seconds"] for (*_, method), r in records.items() if method.startswith("DEC")]
    if not seconds:
        return ""
    return (
        f"DEC takes {short(max(seconds))} s at most; the paper says less than 30, on another "
        "machine."
    )


def make_panels(records: Curves, profile: Profile, axis: str) -> list[drawing.Panel]:
    """Make one panel for each set and budget; `axis` is "seconds" or "iteration"."""
    panels = []
    for dataset in profile.curve_sets:
        for budget in profile.curve_budgets:
            curves = {
                method: _curve(records[dataset, budget, method]["curve"], axis)
                for method in methods(profile)
                if (dataset, budget, method) in records
            }
            if curves:
                label = "seconds" if axis == "seconds" else "iteration + 1"
                panels.append(drawing.Panel(f"s = {budget} on {dataset}", label, curves, True))
    return panels


def _curve(curve: dict[str, list[float]], axis: str) -> tuple[list[float], list[float]]:
    shift = 0.0 if axis == "seconds" else 1.0  # the axis is logarithmic
    return [value + shift for value in curve[axis]], curve["objective"]


def _final_table(records: Curves, profile: Profile) -> str:
    labels = methods(profile)
    rows = [
        [
            f"{dataset}, s = {budget}",
            *(_final_cell(records.get((dataset, budget, method))) for method in labels),
        ]
        for dataset in profile.curve_sets
        for budget in profile.curve_budgets
        if any((dataset, budget, method) in records for method in labels)
    ]
    caption = "Final objective, seconds, iterations."
    return markup.table(["", *map(markup.title_of, labels)], rows, caption=caption)


def _final_cell(record: dict[str, Any] | None) -> str:
    if record is None:
        return markup.number("–")
    return markup.number(
        sci(record["objective"]), f"{short(record['seconds'])} s", f"{record['n_iter']} it."
    )


def _csv_rows(records: Curves) -> list[list[object]]:
    return [
        [dataset, budget, method, *point]
        for (dataset, budget, method), record in records.items()
        for point in zip(
            record["curve"]["iteration"],
            record["curve"]["seconds"],
            record["curve"]["objective"],
            strict=True,
        )
    ]
