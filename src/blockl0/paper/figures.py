"""Figures 1 and 2 of the paper, and what scaling the columns is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from blockl0.paper import drawing, markup
from blockl0.paper.markup import sci, short
from blockl0.paper.profile import (
    FIGURE1_METHODS,
    FIGURE2_METHODS,
    Profile,
    curve_cells,
    figure2_cells,
    judged_cells,
)
from blockl0.paper.quantiles import kind
from blockl0.paper.readings import SHOWN_SPLIT
from blockl0.paper.store import Frame, Store
from blockl0.paper.tables import over_starts
from blockl0.paper.variants import GREEDY, GREEDY_UNIT, VARIANTS, dec

EXAMPLE = ("e2006-5000-1024", 8)
"""The set and budget at which scaling is shown draw by draw."""
EXAMPLE_METHODS = (dec(change="theta5"), dec(change="theta5 long"), "OMP", "OMP unit")
SCALING_HEAD = ("sets", "method", "points", "unit_over_raw", "dec_over_raw", "refit_over_raw")


# -- Figure 1: convergence -------------------------------------------------------------------------


def write_figure1(store: Store, profile: Profile, out: Path) -> str:
    """Write CSV and drawings of the curves and return the section of the page."""
    found = store.frame(curve_cells(profile))
    if found.empty:
        return ""
    head = ("set", "s", "method", "iteration", "seconds", "objective")
    markup.write_csv(out / "figure1.csv", head, _curve_rows(found))
    by_time, by_iteration = _curve_panels(found, "seconds"), _curve_panels(found, "iteration")
    drawing.save(by_time, out / "figure1-time")
    drawing.save(by_iteration, out / "figure1-iteration")
    pairs = [
        drawing.svg(panel) for both in zip(by_time, by_iteration, strict=True) for panel in both
    ]
    labels = [*FIGURE1_METHODS, profile.refit]
    longest = found.loc[found["method"].str.startswith("DEC"), "seconds"].max()
    text = (
        "<p>Objective ½‖Xw − y‖² against time and against iterations, from one random start, "
        "projected to s nonzeros. An iteration of refit is a whole round of walks and searches; "
        "its first point is the end of its first search. "
        f"DEC takes {short(longest)} s at most; the paper says less than 30, on another machine."
        "</p>"
    )
    ends = markup.grid(
        found.assign(column=found["method"]), labels, _end_cell, "s = {:g}", joined=", ",
        caption="Final objective, seconds, iterations.",
    )  # fmt: skip
    return markup.section(
        "figure1", "Figure 1: convergence under a budget of nonzeros", text,
        drawing.legend(labels), markup.panels(pairs),
        markup.details("Where the curves end", ends),
    )  # fmt: skip


def _end_cell(row: Any) -> str:
    return markup.number(sci(row.objective), f"{short(row.seconds)} s", f"{row.n_iter} it.")


def _curve_panels(found: Frame, axis: str) -> list[drawing.Panel]:
    """Make one panel for each set and budget; `axis` is "seconds" or "iteration"."""
    panels = []
    is_time = axis == "seconds"
    for (dataset, budget), rows in found.groupby(["dataset", "value"], sort=False):
        curves = {
            # the axis is logarithmic
            row.method: ([x + (not is_time) for x in row.curve[axis]], row.curve["objective"])
            for row in rows.itertuples()
        }
        label = "seconds" if is_time else "iteration + 1"
        panels.append(drawing.Panel(f"s = {budget:g} on {dataset}", label, curves, True))
    return panels


def _curve_rows(found: Frame) -> list[list[object]]:
    names = ("iteration", "seconds", "objective")
    return [
        [row.dataset, int(row.value), row.method, *point]
        for row in found.itertuples()
        for point in zip(*(row.curve[name] for name in names), strict=True)
    ]


# -- Figure 2: objective against the budget --------------------------------------------------------


def figure2(store: Store, profile: Profile) -> Frame:
    """Gather the finished numbers of the curves."""
    rows = store.frame(figure2_cells(profile))
    return rows if rows.empty else over_starts(rows)


def drawn_methods(profile: Profile) -> tuple[str, ...]:
    """Return the methods to draw; of those with unit columns only OMP, to keep curves apart."""
    return (*FIGURE2_METHODS, "OMP unit", profile.refit)


def write_figure2(store: Store, profile: Profile, out: Path) -> str:
    """Write CSV and drawings and return the section of the page."""
    found = figure2(store, profile)
    if found.empty:
        return ""
    columns = ["set", "s", "method", "starts", "objective", "std", "place", "seconds"]
    named = found.rename(columns={"dataset": "set", "value": "s"})
    markup.write_frame(out / "figure2.csv", named[columns])
    panels = _budget_panels(found, profile)
    drawing.save(panels, out / "figure2")
    is_seeded = found["method"].map(lambda name: VARIANTS[name].is_seeded)
    runs = found.loc[is_seeded & (found["method"] != profile.refit), "starts"].tolist()
    text = (
        "<p>Objective ½‖Xw − y‖² with at most s nonzeros, mean over "
        f"{markup.counts(runs or [profile.seeds], 'random start')}. SSP, ROMP, OMP "
        "and CoSaMP start at zero and CVX-ℓ1 is convex: their start makes no difference. They "
        "rank raw columns, as the toolbox does that the paper names; with unit columns they are "
        "other methods, of which OMP is drawn. "
        "The paper shows curves and prints no numbers.</p>"
    )
    numbers = markup.grid(
        found.assign(column=found["method"]), [*FIGURE2_METHODS, *GREEDY_UNIT, profile.refit],
        lambda row: markup.number(sci(row.objective), place=row.place), "s = {:g}",
        caption="Mean objective; the three best of each row are marked as in Table 2.",
    )  # fmt: skip
    return markup.section(
        "figure2", "Figure 2: objective against the number of nonzeros", text,
        drawing.legend(drawn_methods(profile)), markup.panels(map(drawing.svg, panels)),
        markup.details("The numbers", numbers),
    )  # fmt: skip


def _budget_panels(found: Frame, profile: Profile) -> list[drawing.Panel]:
    """Make one panel for each set."""
    panels = []
    for dataset, rows in found.groupby("dataset", sort=False):
        by_method = dict(tuple(rows.groupby("method", sort=False)))
        curves = {
            name: (by_method[name]["value"].tolist(), by_method[name]["objective"].tolist())
            for name in drawn_methods(profile)
            if name in by_method
        }
        panels.append(drawing.Panel(str(dataset), "s, nonzeros allowed", curves))
    return panels


# -- raw or unit columns ---------------------------------------------------------------------------


def write_scaling(store: Store, profile: Profile, out: Path) -> str:
    """Return the section on scaling; its first table is written as scaling.csv."""
    rows = store.frame(judged_cells(profile))
    if rows.empty:
        return ""
    found = rows.groupby(["dataset", "value", "number", "method"])["objective"].mean().unstack()
    ratios = _scaling_ratios(found, profile)
    if not ratios:
        return ""
    markup.write_csv(out / "scaling.csv", SCALING_HEAD, ratios)
    lines = [
        [f"{name}, {VARIANTS[method].title}", f"{points}", *(f"× {ratio:.2f}" for ratio in more)]
        for name, method, points, *more in ratios
    ]
    caption = (
        "What each greedy method would gain from unit columns, and how DEC (θ = 1e-5 on e2006, "
        "greedy coordinates half from the support) and refit compare with it: the objective over "
        "that with raw columns, geometric mean over sets, s and draws."
    )
    head = ["", "points", "unit columns", "DEC", "refit"]
    table = markup.table(head, lines, caption=caption)
    example = _scaling_example(found, profile)
    return markup.section("scaling", "What scaling the columns is worth", table, example)


def _scaling_ratios(found: Frame, profile: Profile) -> list[tuple[Any, ...]]:
    """Return kind of set, method, points, and the means of unit columns, DEC and ours over raw."""
    kinds = found.index.get_level_values("dataset").map(kind)
    rows = []
    for name in sorted(set(kinds)):
        of_kind = found[kinds == name]
        for method in sorted(GREEDY):
            labels = [method, f"{method} unit", SHOWN_SPLIT.of_kind(name), profile.refit]
            values = of_kind.reindex(columns=labels).dropna()
            if len(values):
                logs = np.log(values).sub(np.log(values[method]), axis=0)
                means = np.exp(logs.mean())
                rows.append((name, method, len(values), *map(float, means.iloc[1:])))
    return rows


def _scaling_example(found: Frame, profile: Profile) -> str:
    name, s = EXAMPLE
    methods = [*EXAMPLE_METHODS, profile.refit]
    try:
        values = found.loc[(name, s)].reindex(columns=methods).dropna()
    except KeyError:
        return ""
    rows = [
        [f"draw {row[0]}", *(sci(value, 4) for value in row[1:])] for row in values.itertuples()
    ]
    caption = f"{name}, s = {s}; DEC: means over {markup.count(profile.figure_seeds, 'start')}."
    head = ["", *(VARIANTS[method].title for method in methods)]
    return markup.table(head, rows, caption=caption) if rows else ""
