"""Judge the paper's two observations about Table 2."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from blockl0.paper import printed as paper
from blockl0.paper.claims import ROUNDING, Count, Observation, count
from blockl0.paper.profile import Profile
from blockl0.paper.quantiles import (
    DEC_CHANGES,
    ITERATIONS,
    OTHERS,
    Reading,
    draw_cells,
    kind,
)
from blockl0.paper.readings import (
    CLEAN_NOISE,
    NOISE_TITLES,
    NOISE_TOO,
    SHOWN_CHOICE,
    ReadingChoice,
    choices,
    role_of,
    under_noise,
)
from blockl0.paper.store import Store
from blockl0.paper.variants import dec

TEXT_ITERATIONS = 1000
"""Iterations of the other methods; the text gives none, so DEC's own T is taken."""
SHOWN_ITERATIONS = {
    "random": 1000, "random-C": 300, "random-CN": 300, "e2006": 1000, "e2006-C": 1000,
}  # fmt: skip
"""The entry of `ITERATIONS` that fits the printed ℓ1 and ℓp columns best, by kind of set; see the
quantiles. The e2006 columns do not decide."""
COMPARED = "single runs, each from one start on its own draw"

Iterations = int | Mapping[str, int]
"""The same on all sets, or by kind of set."""
Values = Mapping[tuple[str, float, int], Mapping[Reading, float]]
"""Objectives by set, price and number of the draw."""


def observe(store: Store, profile: Profile) -> list[Observation]:
    """Judge both observations where the runs are finished."""
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
            tuple(_dec_counts(values, profile)),
            chance=1 / 5,
            printed=_in_print(lambda row: row[dec()] <= min(row.values())),
            note="The printed APGM-ℓ0 column is the objective at the start, so that is what the "
            "printed numbers show; ours descends.",
            lines=tuple(_one_by_one(values, profile)),
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


def _lengths() -> list[tuple[str, Iterations]]:
    """Return how long the other methods run, each with a name."""
    return [
        ("as long as the printed columns show", SHOWN_ITERATIONS),
        *((f"{i} iterations", i) for i in ITERATIONS),
    ]


def _after(label: str, iterations: Iterations, dataset: str) -> Reading:
    is_one = isinstance(iterations, int)
    return Reading(label, iterations if is_one else iterations[kind(dataset)])


def _in_print(holds: Callable[[dict[str, float]], bool]) -> tuple[int, int]:
    """Count how often a predicate holds in the printed table."""
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
    others: Callable[[str], list[Reading]],
) -> tuple[list[bool], int]:
    """Tell case by case if `lower` is at most every other one; return the number of draws too."""
    sets = under_noise(profile.sets, noise)
    cases, draws = [], 0
    for (dataset, _, number), case in values.items():
        readings = [lower(dataset), *others(dataset)]
        if dataset in sets and all(reading in case for reading in readings):
            ours, *theirs = (case[reading] for reading in readings)
            cases.append(ours <= min(theirs) * (1.0 + ROUNDING))
            draws = max(draws, number + 1)
    return cases, draws


def _pair_counts(values: Values, profile: Profile) -> list[Count]:
    counts = []
    for noise, noise_title in NOISE_TITLES.items():
        for title, length in _lengths():
            cases, draws = _cases(
                values,
                profile,
                noise,
                lambda d, i=length: _after("PGM-lp", i, d),
                lambda d, i=length: [_after("PGM-l1", i, d)],
            )
            role = role_of(
                None,
                noise,
                is_text=length == TEXT_ITERATIONS,
                is_shown=length is SHOWN_ITERATIONS,
            )
            counts += count(f"{title}; {noise_title}", role, cases, draws=draws, starts=1)
    return counts


def _dec_counts(values: Values, profile: Profile) -> list[Count]:
    """Count over changes of DEC, iterations of the others, APGM-ℓ0 run or not, and noise."""
    counts = []
    for noise, noise_title in NOISE_TITLES.items():
        for title, length in _lengths():
            for is_start in (False, True):

                def others(dataset: str, i: Iterations = length, s: bool = is_start):
                    run = [label for label in OTHERS if not (s and label == "APGM-l0")]
                    readings = [_after(label, i, dataset) for label in run]
                    return readings + ([Reading("start")] if s else [])

                for choice in choices(DEC_CHANGES, is_budget=False):
                    cases, draws = _cases(values, profile, noise, _reader(choice), others)
                    role = role_of(
                        choice,
                        noise,
                        is_text=length == TEXT_ITERATIONS and not is_start,
                        is_shown=length is SHOWN_ITERATIONS and is_start,
                    )
                    apgm = ", APGM-ℓ0 at its start" if is_start else ""
                    name = f"{choice.title}; others {title}{apgm}; {noise_title}"
                    counts += count(name, role, cases, draws=draws, starts=1)
    return counts


def _reader(choice: ReadingChoice) -> Callable[[str], Reading]:
    return lambda dataset: Reading(choice.label(dataset))


def _one_by_one(values: Values, profile: Profile) -> list[str]:
    """Compare DEC with each of three methods, as in the text and as the printed numbers show."""
    roles: list[tuple[str, ReadingChoice, str, Iterations]] = [
        ("text", ReadingChoice("", "printed"), CLEAN_NOISE, TEXT_ITERATIONS),
        ("shown", SHOWN_CHOICE, NOISE_TOO, SHOWN_ITERATIONS),
        *((f"shown, {i} iterations", SHOWN_CHOICE, NOISE_TOO, i) for i in ITERATIONS),
    ]
    texts = []
    for label in OTHERS:
        found = []
        for name, choice, noise, length in roles:
            cases, _ = _cases(
                values,
                profile,
                noise,
                _reader(choice),
                lambda d, m=label, i=length: [_after(m, i, d)],
            )
            found.append(f"{sum(cases)} of {len(cases)} ({name})")
        texts.append(f"DEC is at most {Reading(label).title} in {', '.join(found)}")
    return texts
