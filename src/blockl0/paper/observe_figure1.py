"""Judge the paper's observations about Figure 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from blockl0.paper import figure1
from blockl0.paper.cells import CHECKPOINTS, Cell, draw_of
from blockl0.paper.claims import ROUNDING, Count, Observation, count
from blockl0.paper.profile import Profile
from blockl0.paper.quantiles import Reading
from blockl0.paper.readings import (
    CLEAN_NOISE,
    NOISE_TITLES,
    TRIED,
    ReadingChoice,
    choices,
    mean,
    role_of,
    under_noise,
)
from blockl0.paper.store import Store
from blockl0.paper.variants import dec

ALIKE, NEARLY_ALIKE = 0.05, 0.1
"""Largest relative difference at which PGM and APGM count as alike; the second is tried too."""
MOVED = 0.99
"""A run counts as moved if it ends below this share of its start."""
UNSTOPPED = tuple(i for i in CHECKPOINTS if i >= 1000)
ORDER = ("R10G2", "R5G5", "R2G2")

Ends = Mapping[tuple[str, int, int], Mapping[str, float]]
"""Mean objectives over the starts, by set, budget and draw."""
Test = Callable[[Mapping[str, float], Callable[[str], str]], bool]
"""Predicate: does a claim hold, given the ends and the label of each working set?"""


def observe(store: Store, profile: Profile) -> list[Observation]:
    """Judge all four observations whose runs are finished."""
    ends = _collect(store, profile)
    compared = "means over the starts, on each panel and draw"
    found = [
        Observation(
            f"Figure 1: PGM and APGM end alike (within {ALIKE:.0%})",
            compared,
            tuple(_alike_counts(ends, profile)),
        ),
        Observation(
            "Figure 1: DEC-R10G2 ends below PGM and APGM",
            compared,
            tuple(_all_counts(ends, profile, ("PGM", "APGM"), ("R10G2",), _below)),
            chance=1 / 3,
        ),
        Observation(
            "Figure 1: the larger the block, the lower the end (R10G2 ≤ R5G5 ≤ R2G2)",
            compared,
            tuple(_all_counts(ends, profile, (), ORDER, _in_order)),
            chance=1 / 6,
        ),
        Observation(
            "Figure 1: large blocks end lower than small ones (R10G2 ≤ R2G2)",
            compared,
            tuple(_all_counts(ends, profile, (), ("R10G2", "R2G2"), _ends_in_order)),
            chance=1 / 2,
        ),
        _greedy_or_random(store, profile, ends),
    ]
    return [observation for observation in found if observation.counts]


def _collect(store: Store, profile: Profile) -> Ends:
    ends: dict[tuple[str, int, int], dict[str, float]] = {}
    for panel in figure1.panels(profile):
        for draw in range(profile.curve_draws):
            for method in figure1.END_METHODS:
                value = mean(store, figure1.end_cells(profile, panel, method, draw))
                if value is not None:
                    ends.setdefault((*panel, draw), {})[method] = value
    return ends


def _alike_counts(ends: Ends, profile: Profile) -> list[Count]:
    """Count agreement within five per cent, as claimed, and within ten."""
    pair = ("PGM", "APGM")
    wide = [
        replace(found, variant=f"within {NEARLY_ALIKE:.0%}; {found.variant}", role=TRIED)
        for found in _counts(ends, profile, None, pair, (), _within(NEARLY_ALIKE))
    ]
    return [*_counts(ends, profile, None, pair, (), _within(ALIKE)), *wide]


def _within(share: float) -> Test:
    return lambda end, _: abs(end["PGM"] - end["APGM"]) <= share * min(end["PGM"], end["APGM"])


def _below(end: Mapping[str, float], label: Callable[[str], str]) -> bool:
    return end[label("R10G2")] < min(end["PGM"], end["APGM"])


def _in_order(end: Mapping[str, float], label: Callable[[str], str]) -> bool:
    large, middle, small = (end[label(name)] for name in ORDER)
    return large <= middle * (1.0 + ROUNDING) and middle <= small * (1.0 + ROUNDING)


def _ends_in_order(end: Mapping[str, float], label: Callable[[str], str]) -> bool:
    return end[label("R10G2")] <= end[label("R2G2")] * (1.0 + ROUNDING)


def _all_counts(
    ends: Ends, profile: Profile, methods: Sequence[str], sets: Sequence[str], holds: Test
) -> list[Count]:
    return [
        found
        for choice in choices(figure1.END_CHANGES, is_budget=True)
        for found in _counts(ends, profile, choice, methods, sets, holds)
    ]


def _counts(
    ends: Ends,
    profile: Profile,
    choice: ReadingChoice | None,
    methods: Sequence[str],
    working_sets: Sequence[str],
    holds: Test,
) -> list[Count]:
    """Count under one choice of DEC and both readings of the noise."""
    counts = []
    for noise, title in NOISE_TITLES.items():
        names = under_noise(profile.curve_sets, noise)
        cases, draws = [], 0
        for (dataset, _, draw), end in ends.items():

            def label(working_set: str, dataset: str = dataset) -> str:
                return dec(working_set) if choice is None else choice.label(dataset, working_set)

            needed = [*methods, *map(label, working_sets)]
            if dataset in names and all(method in end for method in needed):
                cases.append(holds(end, label))
                draws = max(draws, draw + 1)
        role = role_of(choice, noise, is_text=True, is_shown=True)
        name = title if choice is None else f"{choice.title}; {title}"
        counts += count(name, role, cases, draws=draws, starts=profile.figure_seeds)
    return counts


# -- two greedy coordinates, or two random ones ----------------------------------------------------


def _greedy_or_random(store: Store, profile: Profile, ends: Ends) -> Observation:
    counts = [
        *_stopped_counts(store, profile, ends),
        *_unstopped_counts(store, profile),
    ]
    return Observation(
        "Figure 1: DEC-R0G2 ends above DEC-R2G0",
        "means over the starts where runs are stopped, single runs where they are not",
        tuple(counts),
        chance=1 / 2,
        note="With the stopping rule the comparison is empty: one of the two has hardly left its "
        "start. So both are run on without one, greedy coordinates half from the support.",
    )


def _stopped_counts(store: Store, profile: Profile, ends: Ends) -> list[Count]:
    """Count with a stopping rule; empty where one of the two mostly stayed at its start."""
    counts = []
    for choice in choices(figure1.END_CHANGES, is_budget=True):
        for noise, title in NOISE_TITLES.items():
            cases, still, draws = [], {"R0G2": 0, "R2G0": 0}, 0
            for (dataset, _, draw), end in ends.items():
                labels = {name: choice.label(dataset, name) for name in still}
                start = _start_loss(store, profile, dataset, draw)
                if dataset not in under_noise(profile.curve_sets, noise) or start is None:
                    continue
                if any(label not in end for label in labels.values()):
                    continue
                cases.append(end[labels["R0G2"]] > end[labels["R2G0"]])
                draws = max(draws, draw + 1)
                for name, label in labels.items():
                    still[name] += end[label] > MOVED * start
            role = role_of(choice, noise, is_text=True, is_shown=True)
            worst = max(still, key=lambda name: still[name])
            empty = (
                f"DEC-{worst} has not left its start in {still[worst]} of {len(cases)}"
                if still[worst] > 0.5 * len(cases)
                else ""
            )
            counts += count(
                f"{choice.title}; {title}", role, cases,
                draws=draws, starts=profile.figure_seeds, empty=empty,
            )  # fmt: skip
    return counts


def _start_loss(store: Store, profile: Profile, dataset: str, draw: int) -> float | None:
    """Return ½‖y‖² from the objective at the start of Table 2, which has the same draws."""
    price = profile.prices[0]
    cell = Cell(dataset, "start", "price", price, draw=draw_of(profile.prices, price, draw))
    if cell not in store:
        return None
    return store[cell]["objective"] - price * int(dataset.split("-")[2])


def _unstopped_counts(store: Store, profile: Profile) -> list[Count]:
    pairs = [
        pair for pair in figure1.unstopped_pairs(profile) if all(cell in store for cell in pair)
    ]
    draws = len({pair[0].draw for pair in pairs})
    counts = []
    for iterations in UNSTOPPED:
        cases = []
        for pair in pairs:
            random, greedy = (Reading(cell.method, iterations).value(store[cell]) for cell in pair)
            cases.append(greedy > random)
        name = f"without stopping, {iterations:,} iterations; {NOISE_TITLES[CLEAN_NOISE]}"
        counts += count(name, TRIED, cases, draws=draws, starts=1)
    return counts
