"""Judge the paper's observations about Figure 2."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from blockl0.paper import figure2
from blockl0.paper import printed as paper
from blockl0.paper.claims import Count, Observation, count
from blockl0.paper.profile import Profile
from blockl0.paper.readings import (
    CLEAN_NOISE,
    NOISE_TITLES,
    NOISE_TOO,
    ReadingChoice,
    choices,
    mean,
    role_of,
    under_noise,
)
from blockl0.paper.store import Store
from blockl0.paper.variants import GREEDY, GREEDY_UNIT, VARIANTS

THRESHOLDING = ("PGM", "APGM", "QPM")
COLUMNS = {"raw columns": GREEDY, "unit columns": GREEDY_UNIT}
"""The greedy methods rank raw columns in the toolbox that the paper names."""
BAD = 1.5
"""A greedy method is bad where it exceeds the best of the four by this factor."""
SOMETIMES = 0.05
"""Smallest share of the budgets at which a method is "sometimes" bad."""
COMPARABLE = 1.1
"""DEC is comparable up to this factor of the median of the greedy methods."""
CLEAN = paper.SETS[:2]
COMPARED = "means over the starts, for each set, s and draw"

Points = Mapping[tuple[str, int, int], Mapping[str, float]]
"""Mean objectives over the starts, by set, budget and draw."""
Test = Callable[[Mapping[str, float], str, Sequence[str]], bool]
"""Predicate: does a claim hold, given the objectives, the label of DEC and the greedy methods?"""


def observe(store: Store, profile: Profile) -> list[Observation]:
    """Judge all observations whose runs are finished."""
    points = _collect(store, profile)
    clean = [name for name in profile.sets if name in CLEAN]
    others = [name for name in profile.sets if name not in CLEAN]
    found = [
        Observation(
            "Figure 2: hard thresholding (PGM, APGM, QPM) is worse than the greedy methods",
            f"medians of the three and of the four; {COMPARED}",
            tuple(_plain_counts(points, profile, _thresholding_is_worse)),
            chance=1 / 2,
        ),
        *(_sometimes_bad(points, profile, number) for number in (2, 1)),
        Observation(
            "Figure 2: on the clean random sets DEC is comparable to the greedy methods (at most "
            f"{COMPARABLE - 1:.0%} above their median)",
            COMPARED,
            tuple(_dec_counts(points, profile, clean, _is_comparable)),
        ),
        Observation(
            "Figure 2: on the other sets DEC is below every greedy method",
            COMPARED,
            tuple(_dec_counts(points, profile, others, _is_below_all)),
            chance=1 / 5,
        ),
        *(
            Observation(
                f"Figure 2: on the other sets DEC is below {GREEDY[number]}",
                COMPARED,
                tuple(_dec_counts(points, profile, others, _is_below(number))),
                chance=1 / 2,
            )
            for number in range(len(GREEDY))
        ),
    ]
    return [observation for observation in found if observation.counts]


def _collect(store: Store, profile: Profile) -> Points:
    points: dict[tuple[str, int, int], dict[str, float]] = {}
    for dataset in profile.all_sets:
        for s in profile.budgets:
            for draw in range(profile.figure_draws):
                for method in figure2.JUDGED_METHODS:
                    value = mean(store, figure2.draw_cells(profile, dataset, s, method, draw))
                    if value is not None:
                        points.setdefault((dataset, s, draw), {})[method] = value
    return points


# -- what is claimed -------------------------------------------------------------------------------


def _median(point: Mapping[str, float], methods: Iterable[str]) -> float:
    return float(np.median([point[method] for method in methods]))


def _thresholding_is_worse(point: Mapping[str, float], _: str, greedy: Sequence[str]) -> bool:
    return _median(point, THRESHOLDING) > _median(point, greedy)


def _is_comparable(point: Mapping[str, float], dec: str, greedy: Sequence[str]) -> bool:
    return point[dec] <= COMPARABLE * _median(point, greedy)


def _is_below_all(point: Mapping[str, float], dec: str, greedy: Sequence[str]) -> bool:
    return point[dec] < min(point[method] for method in greedy)


def _is_below(number: int) -> Test:
    return lambda point, dec, greedy: point[dec] < point[greedy[number]]


def _is_bad(number: int) -> Test:
    return lambda point, _, greedy: point[greedy[number]] > BAD * min(point[g] for g in greedy)


# -- counting --------------------------------------------------------------------------------------


def _count(
    points: Points,
    profile: Profile,
    sets: Sequence[str],
    choice: ReadingChoice | None,
    greedy: Sequence[str],
    holds: Test,
) -> tuple[list[bool], int]:
    """Return the cases of some sets under one choice, and the number of draws."""
    cases, draws = [], 0
    for (dataset, _, draw), point in points.items():
        label = "" if choice is None else choice.label(dataset)
        needed = {*THRESHOLDING, *greedy} if choice is None else {*greedy, label}
        if dataset in sets and needed <= set(point):
            cases.append(holds(point, label, greedy))
            draws = max(draws, draw + 1)
    return cases, draws


def _plain_counts(points: Points, profile: Profile, holds: Test) -> list[Count]:
    """Count claims without DEC, over raw or unit columns and the noise."""
    counts = []
    for noise, noise_title in NOISE_TITLES.items():
        for title, greedy in COLUMNS.items():
            sets = under_noise(profile.sets, noise)
            cases, draws = _count(points, profile, sets, None, greedy, holds)
            is_raw = greedy is GREEDY
            role = role_of(None, noise, is_text=is_raw, is_shown=is_raw)
            counts += count(
                f"{title}; {noise_title}", role, cases, draws=draws, starts=profile.figure_seeds
            )
    return counts


def _dec_counts(points: Points, profile: Profile, names: Sequence[str], holds: Test) -> list[Count]:
    """Count claims about DEC, over its changes, raw or unit columns, and the noise."""
    counts = []
    has_noise = under_noise(names, NOISE_TOO) != tuple(names)
    for noise in NOISE_TITLES if has_noise else (None,):
        for title, greedy in COLUMNS.items():
            for choice in choices(figure2.DEC_CHANGES, is_budget=True):
                sets = under_noise(names, noise or CLEAN_NOISE)
                cases, draws = _count(points, profile, sets, choice, greedy, holds)
                is_raw = greedy is GREEDY
                role = role_of(choice, noise, is_text=is_raw, is_shown=is_raw)
                name = f"{choice.title}; greedy methods with {title}"
                name += f"; {NOISE_TITLES[noise]}" if noise else ""
                counts += count(name, role, cases, draws=draws, starts=profile.figure_seeds)
    return counts


def _sometimes_bad(points: Points, profile: Profile, number: int) -> Observation:
    """Judge OMP or ROMP beside the two methods that the paper does not call bad."""
    others = []
    for other in (0, 3):
        cases, _ = _count(
            points, profile, under_noise(profile.sets, "-C"), None, GREEDY, _is_bad(other)
        )
        others.append(f"{VARIANTS[GREEDY[other]].title} in {sum(cases)} of {len(cases)}")
    return Observation(
        f"Figure 2: {GREEDY[number]} is sometimes bad (above {BAD:g} times the best of the four "
        f"greedy methods at {SOMETIMES:.0%} of the points or more)",
        COMPARED,
        tuple(_plain_counts(points, profile, _is_bad(number))),
        needed=SOMETIMES,
        note=f"By the same measure (raw columns, outliers in X): {', '.join(others)}.",
    )
