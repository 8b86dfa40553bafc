"""Reproduce the paper: compute missing cells, then write CSV, drawings and the page."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from blockl0.datasets import E2006_SOURCE, E2006_VARIABLE
from blockl0.paper import drawing, figures, page, quantiles, tables
from blockl0.paper.cells import Cell, is_e2006
from blockl0.paper.claims import Observation, Promise, promises, write_claims
from blockl0.paper.observations import observations
from blockl0.paper.profile import (
    Profile,
    column_cells,
    curve_cells,
    draw_cells,
    end_cells,
    figure2_cells,
    judged_cells,
    table_cells,
    unstopped_cells,
)
from blockl0.paper.readings import ROLE_TITLES
from blockl0.paper.runner import run_cells
from blockl0.paper.store import Store


class Experiment(NamedTuple):
    """What one table or figure needs, and what writes its files and section of the page."""

    cells: tuple[Callable[[Profile], list[Cell]], ...]
    write: Callable[[Store, Profile, Path], str]


EXPERIMENTS = {
    "table1": Experiment((), tables.write_table1),
    "table2": Experiment((table_cells,), tables.write_table2),
    "table3": Experiment((table_cells,), tables.write_table3),
    "figure1": Experiment((curve_cells, unstopped_cells, end_cells), figures.write_figure1),
    "figure2": Experiment((figure2_cells, judged_cells), figures.write_figure2),
    "differences": Experiment((draw_cells, column_cells), quantiles.write_differences),
}
"""In the order of the page."""
LISTED = 8
"""Number of exceptions printed for each promise; the page has all of them."""


def reproduce(
    names: Sequence[str], profile: Profile, out: Path, *, jobs: int, echo: Callable[[str], Any]
) -> Path:
    """Compute the experiments, write everything, and return the path of the page.

    The page shows all results in the folder for this profile, also of earlier runs.
    """
    drawing.need_matplotlib()
    profile, skipped = without_missing_data(profile)
    if skipped:
        echo(f"Skipped: {', '.join(skipped)}. Set {E2006_VARIABLE} to the path of {E2006_SOURCE}.")
    store = Store(out)
    if store.n_stale:
        echo(f"{store.n_stale} cells in {store.path} are of other code or data: not used.")
    wanted: dict[Cell, None] = {}
    for name in names:
        cells = dict.fromkeys(cell for of in EXPERIMENTS[name].cells for cell in of(profile))
        if cells:
            echo(f"{name}: {len(cells)} cells" + _known(cells, wanted, store))
        wanted |= cells
    # all in one go, so that the forecast is that of the whole command
    title = names[0] if len(names) == 1 else "all"
    run_cells(wanted, store, jobs, title, echo)
    return write_all(names, profile, out, store, skipped=skipped, echo=echo)


def _known(cells: Iterable[Cell], wanted: Container[Cell], store: Store) -> str:
    done = sum(cell in store for cell in cells)
    shared = sum(cell in wanted and cell not in store for cell in cells)
    return (f", {done} of them on file" if done else "") + (
        f", {shared} of them as above" if shared else ""
    )


def write_all(
    names: Sequence[str],
    profile: Profile,
    out: Path,
    store: Store,
    *,
    skipped: Sequence[str],
    echo: Callable[[str], Any],
) -> Path:
    """Write CSV, drawings and the page from the stored cells."""
    has_table1 = "table1" in names or (out / "table1.csv").exists()
    sections = {
        name: experiment.write(store, profile, out)
        for name, experiment in EXPERIMENTS.items()
        if name != "table1" or has_table1
    }
    sections["scaling"] = figures.write_scaling(store, profile, out)
    sections["variants"] = page.variants_section(profile) if len(store) else ""
    promised = promises(store, profile)
    observed = observations(store, profile, has_table1)
    write_claims(out, promised, observed)
    _tell(promised, observed, echo)
    return page.write_page(
        out, profile, sections, promised, observed, skipped=skipped, jobs=store.jobs()
    )


def _tell(
    promised: Sequence[Promise], observed: Sequence[Observation], echo: Callable[[str], Any]
) -> None:
    if promised:
        echo("\nWhat it shows")
    for promise in promised:
        echo(f"  {promise.verdict:<18}  {promise.text}. {promise.detail}")
        for case in promise.exceptions[:LISTED]:
            echo(f"  {'':<18}    {case}")
        if len(promise.exceptions) > LISTED:
            echo(f"  {'':<18}    and {len(promise.exceptions) - LISTED} more, see claims.csv")
    if observed:
        echo("\nThe paper's observations")
    for claim in observed:
        echo(f"  {claim.verdict:<18}  {claim.text} ({claim.reason})")
        found = {title: claim.of(role) for role, title in ROLE_TITLES.items()}
        texts = [f"{title}: {count}" for title, count in found.items() if count]
        echo(f"  {'':<18}    {'; '.join(texts)}")
    echo("")


def without_missing_data(profile: Profile) -> tuple[Profile, list[str]]:
    """Drop the e2006 sets from a profile if their file is missing; return their names too."""
    if os.path.isfile(os.path.expanduser(os.environ.get(E2006_VARIABLE, ""))):
        return profile, []
    everything = dict.fromkeys([*profile.sets, *profile.curve_sets])
    smaller = replace(
        profile,
        sets=tuple(name for name in profile.sets if not is_e2006(name)),
        curve_sets=tuple(name for name in profile.curve_sets if not is_e2006(name)),
    )
    return smaller, [name for name in everything if is_e2006(name)]
