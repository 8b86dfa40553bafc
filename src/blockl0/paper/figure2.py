"""Figure 2 of the paper: objective against the budget s, by set and method."""

from __future__ import annotations

from pathlib import Path

from blockl0.paper import drawing, markup
from blockl0.paper.cells import Cell
from blockl0.paper.profile import Profile
from blockl0.paper.quantiles import is_run
from blockl0.paper.samples import Sample, gather, places, sci, starts, write_csv
from blockl0.paper.store import Store
from blockl0.paper.variants import GREEDY, GREEDY_UNIT, VARIANTS, dec

NAME = "figure2"
TITLE = "Figure 2: objective against the number of nonzeros"

PAPER_METHODS = (
    "PGM", "APGM", "QPM", "SSP", "ROMP", "OMP", "CoSaMP", "CVX-l1", "DEC-R10G2",
)  # fmt: skip
DEC_CHANGES = (
    "", "printed", "ranked", "list", "theta3", "theta5", "theta5 ranked", "long", "theta5 long",
    "zero",
)  # fmt: skip
"""Changes of DEC under which the claims are judged."""
JUDGED_METHODS = (
    "PGM", "APGM", "QPM", *GREEDY, *GREEDY_UNIT, "CVX-l1",
    *(dec(change=change) for change in DEC_CHANGES),
)  # fmt: skip
HEAD = ("set", "s", "method", "starts", "objective", "std", "place", "seconds")

Samples = dict[tuple[str, int, str], Sample]


def methods(profile: Profile) -> tuple[str, ...]:
    """Return the paper's nine methods, the greedy ones with unit columns, and ours."""
    return (*PAPER_METHODS, *GREEDY_UNIT, profile.refit)


def drawn_methods(profile: Profile) -> tuple[str, ...]:
    """Return the methods to draw; of those with unit columns only OMP, to keep curves apart."""
    left_out = set(GREEDY_UNIT) - {"OMP unit"}
    return tuple(method for method in methods(profile) if method not in left_out)


def cells(profile: Profile) -> list[Cell]:
    """List the cells of the drawings, and the draws and variants that judge the claims."""
    shown = [
        cell
        for dataset in profile.all_sets
        for budget in profile.budgets
        for method in methods(profile)
        for cell in problem_cells(profile, dataset, budget, method)
    ]
    judged = [
        cell
        for dataset in profile.all_sets
        for budget in profile.budgets
        for draw in range(profile.figure_draws)
        for method in judged_methods(profile)
        if is_run(dataset, method)
        for cell in draw_cells(profile, dataset, budget, method, draw)
    ]
    return [*shown, *judged]


def judged_methods(profile: Profile) -> tuple[str, ...]:
    """Return the methods that judge the claims, and ours."""
    return (*JUDGED_METHODS, profile.refit)


def problem_cells(profile: Profile, dataset: str, budget: int, method: str) -> list[Cell]:
    """List the starts of one point of a curve."""
    seeds = profile.refit_seeds if method == profile.refit else profile.seeds
    return starts(dataset, method, "budget", budget, seeds)


def draw_cells(profile: Profile, dataset: str, budget: int, method: str, draw: int) -> list[Cell]:
    """List the starts that judge a method on one draw."""
    seeds = 1 if method == profile.refit else profile.figure_seeds
    return starts(dataset, method, "budget", budget, seeds, draw)


def collect(store: Store, profile: Profile) -> Samples:
    """Collect the finished numbers of the drawings, by set, budget and method."""
    return {
        (dataset, budget, method): sample
        for dataset in profile.all_sets
        for budget in profile.budgets
        for method in methods(profile)
        if (sample := gather(store, problem_cells(profile, dataset, budget, method)))
    }


def write(store: Store, profile: Profile, out: Path) -> str:
    """Write CSV and drawings and return the section of the page."""
    samples = collect(store, profile)
    if not samples:
        return ""
    ranks = _ranks(samples)
    write_csv(out / "figure2.csv", HEAD, _csv_rows(samples, ranks))
    panels = make_panels(samples, profile)
    drawing.save(panels, out / "figure2")
    seeded = [
        len(s.objectives)
        for key, s in samples.items()
        if VARIANTS[key[2]].is_seeded and key[2] != profile.refit
    ]
    text = (
        "<p>Objective ½‖Xw − y‖² with at most s nonzeros, mean over "
        f"{markup.counts(seeded or [profile.seeds], 'random start')}. SSP, ROMP, OMP "
        "and CoSaMP start at zero and CVX-ℓ1 is convex: their start makes no difference. They "
        "rank raw columns, as the toolbox does that the paper names; with unit columns they are "
        "other methods, of which OMP is drawn. "
        "The paper shows curves and prints no numbers.</p>"
    )
    return markup.section(
        NAME, TITLE, text, drawing.legend(drawn_methods(profile)),
        markup.panels(map(drawing.svg, panels)),
        markup.details("The numbers", _table(samples, ranks, profile)),
    )  # fmt: skip


def make_panels(samples: Samples, profile: Profile) -> list[drawing.Panel]:
    """Make one panel for each set."""
    panels = []
    for dataset in profile.all_sets:
        curves = {}
        for method in drawn_methods(profile):
            points = [
                (float(budget), samples[dataset, budget, method].objective)
                for budget in profile.budgets
                if (dataset, budget, method) in samples
            ]
            if points:
                curves[method] = tuple(zip(*points, strict=True))
        if curves:
            panels.append(drawing.Panel(dataset, "s, nonzeros allowed", curves))
    return panels


def _ranks(samples: Samples) -> dict[tuple[str, int, str], int]:
    problems = dict.fromkeys((dataset, budget) for dataset, budget, _ in samples)
    ranks = {}
    for problem in problems:
        values = {key[2]: sample.objective for key, sample in samples.items() if key[:2] == problem}
        ranks |= {(*problem, method): place for method, place in places(values).items()}
    return ranks


def _table(samples: Samples, ranks: dict[tuple[str, int, str], int], profile: Profile) -> str:
    labels = methods(profile)
    rows: list[list[str]] = []
    for dataset in profile.all_sets:
        budgets = [
            s for s in profile.budgets if any((dataset, s, name) in samples for name in labels)
        ]
        rows += [[dataset]] if budgets else []
        for s in budgets:
            keys = [(dataset, s, name) for name in labels]
            rows.append([f"s = {s}", *(_html_cell(samples.get(k), ranks.get(k, 0)) for k in keys)])
    head = ["", *map(markup.title_of, labels)]
    caption = "Mean objective; the three best of each row are marked as in Table 2."
    return markup.table(head, rows, caption=caption)


def _html_cell(sample: Sample | None, place: int) -> str:
    return (
        markup.number("–") if sample is None else markup.number(sci(sample.objective), place=place)
    )


def _csv_rows(samples: Samples, ranks: dict[tuple[str, int, str], int]) -> list[list[object]]:
    return [
        [
            *key, len(sample.objectives), sample.objective, sample.spread, ranks[key] or None,
            sum(sample.seconds) / len(sample.seconds),
        ]
        for key, sample in samples.items()
    ]  # fmt: skip
