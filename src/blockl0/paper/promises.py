"""Judge what our own methods promise, from the numbers of the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from blockl0.paper import figure2, table2
from blockl0.paper import printed as paper
from blockl0.paper.cells import is_e2006
from blockl0.paper.claims import ROUNDING, Promise
from blockl0.paper.markup import counts
from blockl0.paper.profile import Profile
from blockl0.paper.quantiles import METHODS, draw_cells, is_run, rounding
from blockl0.paper.samples import Sample, sci
from blockl0.paper.store import Store
from blockl0.paper.variants import VARIANTS, dec

FAST = "refit-fast"

Objectives = Mapping[tuple[str, str, str], Sequence[float]]
"""By set, parameter and method."""


def promises(store: Store, profile: Profile) -> list[Promise]:
    """Judge every promise for which the run has numbers."""
    found = [
        _dec_from_zero(store, profile),
        _lowest("Table 2", _of_samples(_table2(store, profile)), profile.refit),
        _lowest("Figure 2", _of_samples(_figure2(store, profile)), profile.refit),
        _lowest_on_draws("the draws of Table 2", _price_draws(store, profile), FAST),
        _lowest_on_draws("the draws of Figure 2", _budget_draws(store, profile), profile.refit),
    ]
    return [promise for promise in found if promise is not None]


def _dec_from_zero(store: Store, profile: Profile) -> Promise | None:
    """Check that DEC from zero is at most the printed number, to its digits, on random sets."""
    label = dec(change="zero")
    failures, draws = [], []
    for dataset in profile.all_sets:
        for price in profile.prices:
            key = (dataset.removesuffix("N"), price, dec())
            wanted = draw_cells(profile, dataset, price, label)
            values = [store[cell]["objective"] for cell in wanted if cell in store]
            if is_e2006(dataset) or not values or key not in paper.OBJECTIVES:
                continue
            draws.append(len(values))
            ours, printed = float(np.mean(values)), paper.OBJECTIVES[key].objective
            if ours > printed + rounding(printed):
                failures.append(f"{dataset} λ = {price:g}: {sci(ours)}, printed {sci(printed, 2)}")
    if not draws:
        return None
    text = (
        "DEC-R10G2 from 0 is at most the printed DEC on the random sets, with outliers in X or in "
        f"X and noise (mean over {counts(draws, 'draw')})"
    )
    return Promise(text, len(draws), tuple(failures))


# -- refit is at most every other method -----------------------------------------------------------


def _table2(store: Store, profile: Profile) -> dict[tuple[str, str, str], Sample]:
    return {
        (e.dataset, f"λ = {e.price:g}", e.method): e.ours for e in table2.collect(store, profile)
    }


def _figure2(store: Store, profile: Profile) -> dict[tuple[str, str, str], Sample]:
    samples = figure2.collect(store, profile)
    return {(name, f"s = {s}", method): found for (name, s, method), found in samples.items()}


def _of_samples(samples: Mapping[tuple[str, str, str], Sample]) -> Objectives:
    return {key: sample.objectives for key, sample in samples.items()}


def _lowest(where: str, found: Objectives, ours: str) -> Promise | None:
    """Check that ours is lowest, by means over the starts and start by start."""
    failures, total, single, comparisons = [], 0, 0, 0
    for (dataset, parameter, method), other in found.items():
        best = found.get((dataset, parameter, ours))
        if method == ours or best is None:
            continue
        total += 1
        pairs = [(a, b) for a in best for b in other]
        comparisons += len(pairs)
        single += sum(_is_above(a, b) for a, b in pairs)
        if _is_above(float(np.mean(best)), float(np.mean(other))):
            ratio = float(np.mean(best) / np.mean(other))
            failures.append(f"{dataset} {parameter}: {method} is lower (ours × {ratio:.6g})")
    if not total:
        return None
    text = f"refit is at most every other method in every cell of {where} (means over the starts)"
    more = f" Run against run, refit is above in {single} of {comparisons} comparisons."
    return Promise(text, total, tuple(failures), more)


def _is_above(a: float, b: float) -> bool:
    return a > b * (1.0 + ROUNDING)


def _price_draws(store: Store, profile: Profile) -> Objectives:
    return {
        (dataset, f"λ = {price:g}, draw {cell.draw}", method): [store[cell]["objective"]]
        for dataset in profile.all_sets
        for price in profile.prices
        for method in METHODS
        if is_run(dataset, method)
        for cell in draw_cells(profile, dataset, price, method)
        if cell in store
    }


def _budget_draws(store: Store, profile: Profile) -> Objectives:
    return {
        (dataset, f"s = {s}, draw {draw}", method): values
        for dataset in profile.all_sets
        for s in profile.budgets
        for draw in range(profile.figure_draws)
        for method in figure2.judged_methods(profile)
        if (values := _values(store, figure2.draw_cells(profile, dataset, s, method, draw)))
    }


def _values(store: Store, cells: Iterable[figure2.Cell]) -> list[float]:
    return [store[cell]["objective"] for cell in cells if cell in store]


def _lowest_on_draws(where: str, found: Objectives, ours: str) -> Promise | None:
    """Compare one run of ours with the best run of every other method."""
    failures, total = [], 0
    for (dataset, parameter, method), other in found.items():
        best = found.get((dataset, parameter, ours))
        if method == ours or best is None:
            continue
        total += 1
        if _is_above(best[0], min(other)):
            failures.append(
                f"{dataset} {parameter}: {method} is lower (ours × {best[0] / min(other):.6g})"
            )
    if not total:
        return None
    title = VARIANTS[ours].title
    text = f"One run of {title} is at most the best run of every other method on {where}"
    return Promise(text, total, tuple(failures))
