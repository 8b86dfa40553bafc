"""Raw or unit columns: the effect of scaling on the greedy methods, beside DEC and refit."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from blockl0.paper import figure2, markup
from blockl0.paper.profile import Profile
from blockl0.paper.quantiles import kind
from blockl0.paper.readings import SHOWN_SPLIT, mean
from blockl0.paper.samples import sci, write_csv
from blockl0.paper.store import Store
from blockl0.paper.variants import GREEDY, VARIANTS, dec

NAME = "scaling"
TITLE = "What scaling the columns is worth"
EXAMPLE = ("e2006-5000-1024", 8)
"""The set and budget shown draw by draw."""
EXAMPLE_METHODS = (dec(change="theta5"), dec(change="theta5 long"), "OMP", "OMP unit")
HEAD = ("sets", "method", "points", "unit_over_raw", "dec_over_raw", "refit_over_raw")


def section(store: Store, profile: Profile, out: Path) -> str:
    """Return the section of the page; its first table is written as scaling.csv."""
    rows = _ratios(store, profile)
    if not rows:
        return ""
    write_csv(out / "scaling.csv", HEAD, rows)
    lines = [
        [f"{name}, {VARIANTS[method].title}", f"{points}", *(f"× {ratio:.2f}" for ratio in ratios)]
        for name, method, points, *ratios in rows
    ]
    caption = (
        "What each greedy method would gain from unit columns, and how DEC (θ = 1e-5 on e2006, "
        "greedy coordinates half from the support) and refit compare with it: the objective over "
        "that with raw columns, geometric mean over sets, s and draws."
    )
    head = ["", "points", "unit columns", "DEC", "refit"]
    table = markup.table(head, lines, caption=caption)
    return markup.section(NAME, TITLE, table, _example(store, profile))


def _ratios(store: Store, profile: Profile) -> list[tuple]:
    logs: dict[tuple[str, str], list[list[float]]] = {}
    for dataset in profile.all_sets:
        for s in profile.budgets:
            for draw in range(profile.figure_draws):
                for method in GREEDY:
                    labels = (
                        method, f"{method} unit", SHOWN_SPLIT.label(dataset),
                        profile.refit,
                    )  # fmt: skip
                    raw, *others = (
                        mean(store, figure2.draw_cells(profile, dataset, s, label, draw))
                        for label in labels
                    )
                    if raw and all(others):
                        found = logs.setdefault((kind(dataset), method), [])
                        found.append([np.log(value / raw) for value in others if value])
    return [
        (*key, len(found), *map(float, np.exp(np.mean(found, axis=0))))
        for key, found in sorted(logs.items())
    ]


def _example(store: Store, profile: Profile) -> str:
    name, s = EXAMPLE
    if name not in profile.sets or s not in profile.budgets:
        return ""
    rows, methods = [], (*EXAMPLE_METHODS, profile.refit)
    for draw in range(profile.figure_draws):
        values = [
            mean(store, figure2.draw_cells(profile, name, s, method, draw)) for method in methods
        ]
        if all(values):
            rows.append([f"draw {draw}", *(sci(value, 4) for value in values if value)])
    if not rows:
        return ""
    caption = f"{name}, s = {s}; DEC: means over {markup.count(profile.figure_seeds, 'start')}."
    head = ["", *(VARIANTS[method].title for method in methods)]
    return markup.table(head, rows, caption=caption)
