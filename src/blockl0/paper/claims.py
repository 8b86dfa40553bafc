"""Claims of the paper: cases counted under several variants, and the verdict that follows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from blockl0.paper.readings import SHOWN, TEXT, TRIED

ROUNDING = 1e-9
"""Relative tolerance when two objectives are compared."""
MOSTLY, HALF = 0.9, 0.5
"""Shares of cases from which an observation reproduces, or reproduces in part."""
ROLE_TITLES = {
    TEXT: "the paper's text",
    SHOWN: "what the printed numbers show",
    TRIED: "tried as well",
}


@dataclass(frozen=True)
class Count:
    """Count the cases in which a claim holds under one variant.

    `empty` says why the variant decides nothing; it is then left out of the verdict.
    Where nothing is drawn, `draws` and `starts` are 0.
    """

    variant: str
    role: str
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
        return _best(count for count in self.counts if count.role == role)

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
        if TEXT in self.holds_under or SHOWN in self.holds_under:
            return "reproduces"
        return "in part" if best.share >= min(HALF, self.needed) else "does not reproduce"

    @property
    def reason(self) -> str:
        """Say under which variants the verdict was reached."""
        roles = [ROLE_TITLES[role] for role in self.holds_under if role != TRIED]
        if roles:
            return "under " + " and ".join(roles)
        if self.verdict == "not decided":
            return "every variant is empty"
        if self.verdict == "does not reproduce":
            return f"under none of {len(self.counts)} variants"
        if self.holds_under:
            return "under a variant that was tried, not under the text or the printed numbers"
        return f"in {self.best} at best"


def _best(counts: Iterable[Count]) -> Count | None:
    return max((c for c in counts if not c.empty), key=lambda count: count.share, default=None)


def count(
    variant: str, role: str, cases: Sequence[bool], *, draws: int, starts: int, empty: str = ""
) -> list[Count]:
    """Return one count, or none where there are no cases."""
    if not cases:
        return []
    return [Count(variant, role, sum(cases), len(cases), draws, starts, empty)]


@dataclass(frozen=True)
class Promise:
    """Promise a result of our own methods: the cases, and those that break it."""

    text: str
    total: int
    exceptions: tuple[str, ...] = field(default=())
    more: str = ""

    @property
    def verdict(self) -> str:
        """Return "kept" only if no case breaks the promise."""
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
