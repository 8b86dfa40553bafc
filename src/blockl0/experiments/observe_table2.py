"""The paper's two observations about Table 2, and how they are judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from blockl0.experiments import paper
from blockl0.experiments.claims import ROUNDING, Count, Observation, count
from blockl0.experiments.profile import Profile
from blockl0.experiments.quantiles import DEC_CHANGES, ITERATIONS, OTHERS, Reading, draw_cells
from blockl0.experiments.readings import (
    CLEAN_NOISE,
    NOISE_TITLES,
    NOISE_TOO,
    SHOWN_CHOICE,
    Choice,
    choices,
    role_of,
    under_noise,
)
from blockl0.experiments.store import Store
from blockl0.experiments.variants import dec

SHOWN_ITERATIONS, TEXT_ITERATIONS = 300, 1000
"""Of the other methods: about what the printed ℓ1 and ℓp columns fit, and DEC's own T."""
COMPARED = "single runs, each from one start on its own draw"

Values = Mapping[tuple[str, float, int], Mapping[Reading, float]]
"""Objectives by set, price and number of the draw."""


def observe(store: Store, profile: Profile) -> list[Observation]:
    """Both, where the runs are there."""
    values = _collect(store, profile)
    found = [
        Observation(
            "Table 2: PGM-ℓp is better than the convex PGM-ℓ1",
            COMPARED,
            tuple(_pair_counts(values, profile)),
            chance=1 / 2,
            printed=_in_print(lambda row: row["PGM-lp"] <= row["PGM-l1"]),
        ),
        Observation(
            "Table 2: DEC outperforms the other four",
            COMPARED,
            tuple(_dec_counts(values, profile, OTHERS)),
            chance=1 / 5,
            printed=_in_print(lambda row: row[dec()] <= min(row.values())),
            note="Where APGM-ℓ0 is read as printed it stays at its start, as the printed column "
            "does. By itself: " + "; ".join(_one_by_one(values, profile)) + ".",
        ),
    ]
    return [observation for observation in found if observation.counts]


def _collect(store: Store, profile: Profile) -> Values:
    readings = [
        Reading("start"),
        *(Reading(label, i) for label in OTHERS for i in ITERATIONS),
        *(Reading(dec(change=change)) for change in DEC_CHANGES),
    ]
    values: dict[tuple[str, float, int], dict[Reading, float]] = {}
    for dataset in profile.all_sets:
        for price in profile.prices:
            for reading in readings:
                wanted = draw_cells(profile, dataset, price, reading.label)[: profile.draws]
                for number, cell in enumerate(wanted):
                    if cell in store:
                        case = values.setdefault((dataset, price, number), {})
                        case[reading] = reading.value(store[cell])
    return values


def _in_print(holds: Callable[[dict[str, float]], bool]) -> tuple[int, int]:
    """How often something is true of the printed table."""
    rows = [
        {method: paper.OBJECTIVES[name, price, method].objective for method in paper.METHODS}
        for name in paper.SETS
        for price in paper.PRICES
    ]
    return sum(map(holds, rows)), len(rows)


def _cases(
    values: Values,
    profile: Profile,
    noise: str,
    lower: Callable[[str], Reading],
    others: list[Reading],
) -> tuple[list[bool], int]:
    """Whether `lower` is at most every other one, case by case; and the number of draws."""
    sets = under_noise(profile.sets, noise)
    cases, draws = [], 0
    for (dataset, _, number), case in values.items():
        readings = [lower(dataset), *others]
        if dataset in sets and all(reading in case for reading in readings):
            ours, *theirs = (case[reading] for reading in readings)
            cases.append(ours <= min(theirs) * (1.0 + ROUNDING))
            draws = max(draws, number + 1)
    return cases, draws


def _pair_counts(values: Values, profile: Profile) -> list[Count]:
    counts = []
    for noise, title in NOISE_TITLES.items():
        for i in ITERATIONS:
            ours, other = Reading("PGM-lp", i), Reading("PGM-l1", i)
            cases, draws = _cases(values, profile, noise, lambda _, r=ours: r, [other])
            role = role_of(
                None, noise, is_text=i == TEXT_ITERATIONS, is_shown=i == SHOWN_ITERATIONS
            )
            counts += count(f"{i} iterations; {title}", role, cases, draws=draws, starts=1)
    return counts


def _dec_counts(values: Values, profile: Profile, others: tuple[str, ...]) -> list[Count]:
    counts = []
    for noise, title in NOISE_TITLES.items():
        for i in ITERATIONS:
            for apgm in (Reading("APGM-l0", i), Reading("start")):
                rivals = [Reading(label, i) for label in others if label != "APGM-l0"]
                rivals += [apgm] if "APGM-l0" in others else []
                for choice in choices(DEC_CHANGES):
                    cases, draws = _cases(
                        values, profile, noise, lambda d, c=choice: Reading(c.label(d)), rivals
                    )
                    is_start = apgm.label == "start"
                    role = role_of(
                        choice,
                        noise,
                        is_text=i == TEXT_ITERATIONS and not is_start,
                        is_shown=i == SHOWN_ITERATIONS and is_start,
                    )
                    name = (
                        f"{choice.title}; others {i} iterations"
                        f"{', APGM-ℓ0 at its start' if is_start else ''}; {title}"
                    )
                    counts += count(name, role, cases, draws=draws, starts=1)
    return counts


def _one_by_one(values: Values, profile: Profile) -> list[str]:
    """DEC against each of three, as the text has it and as the printed numbers show it."""
    texts = []
    letter = Choice("", "printed")
    for label in OTHERS:
        if label == "APGM-l0":
            continue
        found = []
        for choice, noise, i in (
            (letter, CLEAN_NOISE, TEXT_ITERATIONS),
            (SHOWN_CHOICE, NOISE_TOO, SHOWN_ITERATIONS),
        ):
            cases, _ = _cases(
                values, profile, noise, lambda d, c=choice: Reading(c.label(d)), [Reading(label, i)]
            )
            found.append(f"{sum(cases)} of {len(cases)}")
        name = Reading(label).title
        texts.append(f"at most {name} in {found[0]} (text) and {found[1]} (shown)")
    return texts
