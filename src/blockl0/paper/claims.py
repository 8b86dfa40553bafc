"""Claims of the paper and promises of our own: cases counted, and the verdict that follows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from blockl0.paper import printed as paper
from blockl0.paper.cells import is_e2006
from blockl0.paper.markup import counts as range_of
from blockl0.paper.markup import sci, write_csv
from blockl0.paper.profile import Profile, draw_cells, figure2_cells, judged_cells, table_cells
from blockl0.paper.quantiles import rounding
from blockl0.paper.readings import READINGS, ROLE_TITLES, TRIED
from blockl0.paper.store import Frame, Store
from blockl0.paper.variants import VARIANTS, dec

ROUNDING = 1e-9
"""Relative tolerance when two objectives are compared."""
MOSTLY, HALF = 0.9, 0.5
"""Shares of cases from which an observation reproduces, or reproduces in part."""
ENOUGH_DRAWS = 5
"""Draws from which a mean is compared with a printed number: a single draw decides nothing."""
FAST = "refit-fast"
HEAD = (
    "claim", "verdict", "role", "variant", "held", "of", "draws", "starts", "chance", "in_print",
    "needed", "compared", "empty", "note",
)  # fmt: skip


# -- what the paper observes -----------------------------------------------------------------------


@dataclass(frozen=True)
class Count:
    """Count the cases in which a claim holds under one variant.

    `empty` says why the variant decides nothing; it is then left out of the verdict.
    Where nothing is drawn, `draws` and `starts` are 0.
    """

    variant: str
    roles: tuple[str, ...]
    held: int
    total: int
    draws: int
    starts: int
    empty: str = ""

    @property
    def share(self) -> float:
        """Return the share of the cases."""
        return self.held / self.total

    def __str__(self) -> str:
        return f"{self.held} of {self.total}"


@dataclass(frozen=True)
class Observation:
    """Judge a sentence of the paper under all its variants.

    Attributes
    ----------
    text : str
    compared : str
        What a case is: single runs, or means over starts.
    counts : tuple of Count
    chance : float, optional
        The share of cases in which it would hold if the methods were in random order.
    printed : (int, int), optional
        How often it holds in the paper's own table.
    needed : float
        The share from which it reproduces.
    note : str
    lines : tuple of str
        More to unfold, one line each.
    """

    text: str
    compared: str
    counts: tuple[Count, ...]
    chance: float | None = None
    printed: tuple[int, int] | None = None
    needed: float = MOSTLY
    note: str = ""
    lines: tuple[str, ...] = ()

    def of(self, role: str) -> Count | None:
        """Return the best count of a role that is not empty."""
        return _best(count for count in self.counts if role in count.roles)

    @property
    def best(self) -> Count | None:
        """Return the most favourable count."""
        return _best(self.counts)

    @property
    def holds_under(self) -> list[str]:
        """Return the roles under which the claim reproduces."""
        found = {role: self.of(role) for role in ROLE_TITLES}
        return [role for role, count in found.items() if count and count.share >= self.needed]

    @property
    def verdict(self) -> str:
        """Return the verdict; a claim fails only if it fails under everything that was tried."""
        best = self.best
        if best is None:
            return "not decided"
        if set(READINGS) & set(self.holds_under):
            return "reproduces"
        return "in part" if best.share >= min(HALF, self.needed) else "does not reproduce"

    @property
    def reason(self) -> str:
        """Say under which variants the verdict was reached."""
        roles = [ROLE_TITLES[role] for role in self.holds_under if role != TRIED]
        if roles:
            *first, last = roles
            return "under " + (f"{', '.join(first)} and {last}" if first else last)
        if self.verdict == "not decided":
            return "every variant is empty"
        if self.verdict == "does not reproduce":
            return f"under none of {len(self.counts)} variants"
        if self.holds_under:
            return "under a variant that was tried, not under the text, the code or the print"
        return f"in {self.best} at best"


def _best(counts: Iterable[Count]) -> Count | None:
    return max((c for c in counts if not c.empty), key=lambda count: count.share, default=None)


# -- what our own methods promise ------------------------------------------------------------------


@dataclass(frozen=True)
class Promise:
    """Promise a result of our own methods: the cases, and those that break it."""

    text: str
    total: int
    exceptions: tuple[str, ...] = field(default=())
    more: str = ""

    @property
    def verdict(self) -> str:
        """Return "PASS" only if no case breaks the promise."""
        return "FAIL" if self.exceptions else "PASS"

    @property
    def detail(self) -> str:
        """Say how many cases keep it."""
        where = (
            f"Not in {len(self.exceptions)} of {self.total} cases."
            if self.exceptions
            else f"In all {self.total} cases."
        )
        return where + self.more


def promises(store: Store, profile: Profile) -> list[Promise]:
    """Judge every promise for which the run has numbers."""
    table, figure = store.frame(table_cells(profile)), store.frame(figure2_cells(profile))
    draws, judged = store.frame(draw_cells(profile)), store.frame(judged_cells(profile))
    found = [
        _dec_from_zero(draws),
        _lowest_means("Table 2", table, profile.refit),
        _lowest_means("Figure 2", figure, profile.refit),
        _lowest_runs("the draws of Table 2", draws, FAST),
        _lowest_runs("the draws of Figure 2", judged, profile.refit),
    ]
    return [promise for promise in found if promise is not None]


def _dec_from_zero(draws: Frame) -> Promise | None:
    """Check that DEC from zero is at most the printed number, to its digits, on random sets."""
    label, failures, n_draws = dec(change="zero"), [], []
    rows = draws[draws["method"] == label] if len(draws) else draws
    for (dataset, price), found in _groups(rows, ["dataset", "value"]):
        key = (dataset.removesuffix("N"), price, dec())
        if is_e2006(dataset) or len(found) < ENOUGH_DRAWS or key not in paper.OBJECTIVES:
            continue
        n_draws.append(len(found))
        ours, printed = found["objective"].mean(), paper.OBJECTIVES[key].objective
        if ours > printed + rounding(printed):
            failures.append(f"{dataset} λ = {price:g}: {sci(ours)}, printed {sci(printed, 2)}")
    if not n_draws:
        return None
    text = (
        "DEC-R10G2 from 0 is at most the printed DEC on the random sets, with outliers in X or in "
        f"X and noise (mean over {range_of(n_draws, 'draw')})"
    )
    return Promise(text, len(n_draws), tuple(failures))


def _is_above(a: float, b: float) -> bool:
    return a > b * (1.0 + ROUNDING)


def _groups(rows: Frame, keys: list[str]) -> Iterable[tuple[tuple, Frame]]:
    return rows.groupby(keys, sort=False) if len(rows) else ()  # type: ignore[return-value]


def _lowest(
    rows: Frame, ours: str, keys: list[str], compare: Callable[[list, list, str], str]
) -> tuple[int, list[str]]:
    """Compare ours with every other method on each problem; return cases and failures."""
    total, failures = 0, []
    for key, found in _groups(rows, keys):
        # facts about the data are no methods
        values = {
            str(name): list(runs)
            for name, runs in found.groupby("method")["objective"]
            if name in VARIANTS
        }
        best = values.pop(ours, [])
        for method, other in values.items() if best else ():
            total += 1
            if failed := compare(best, other, method):
                failures.append(f"{key[0]} {_parameter(rows, key)}: {failed}")
    return total, failures


def _parameter(rows: Frame, key: tuple) -> str:
    name = "λ" if rows["form"].iloc[0] == "price" else "s"
    return f"{name} = {key[1]:g}" + (f", draw {key[2]}" if len(key) > 2 else "")


def _lowest_means(where: str, rows: Frame, ours: str) -> Promise | None:
    """Check that ours is lowest, by means over the starts and start by start."""
    single, comparisons = 0, 0

    def compare(best: list, other: list, method: str) -> str:
        nonlocal single, comparisons
        comparisons += len(best) * len(other)
        single += sum(_is_above(a, b) for a in best for b in other)
        ratio = float(np.mean(best) / np.mean(other))
        return f"{method} is lower (ours × {ratio:.6g})" if _is_above(ratio, 1.0) else ""

    total, failures = _lowest(rows, ours, ["dataset", "value"], compare)
    if not total:
        return None
    title = VARIANTS[ours].title
    text = f"{title} is at most every other method in every cell of {where} (means over the starts)"
    more = f" Run against run, {title} is above in {single} of {comparisons} comparisons."
    return Promise(text, total, tuple(failures), more)


def _lowest_runs(where: str, rows: Frame, ours: str) -> Promise | None:
    """Compare one run of ours with the best run of every other method, draw by draw."""

    def compare(best: list, other: list, method: str) -> str:
        ratio = best[0] / min(other)
        return f"{method} is lower (ours × {ratio:.6g})" if _is_above(ratio, 1.0) else ""

    total, failures = _lowest(rows, ours, ["dataset", "value", "draw"], compare)
    if not total:
        return None
    title = VARIANTS[ours].title
    text = f"One run of {title} is at most the best run of every other method on {where}"
    return Promise(text, total, tuple(failures))


def write_claims(out: Path, promised: Sequence[Promise], observed: Sequence[Observation]) -> None:
    """Write one row for each claim and variant."""
    rows: list[Sequence[object]] = [
        (p.text, p.verdict, "ours", "", p.total - len(p.exceptions), p.total, None, None, None,
         None, 1.0, None, None, "; ".join([*p.exceptions, p.more.strip()]).strip("; "))
        for p in promised
    ]  # fmt: skip
    for claim in observed:
        printed = None if claim.printed is None else "{} of {}".format(*claim.printed)
        rows += [
            (claim.text, claim.verdict, " ".join(c.roles), c.variant, c.held, c.total, c.draws,
             c.starts, claim.chance, printed, claim.needed, claim.compared, c.empty, claim.note)
            for c in claim.counts
        ]  # fmt: skip
    write_csv(out / "claims.csv", HEAD, rows)
