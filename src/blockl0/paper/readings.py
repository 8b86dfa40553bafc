"""Conditions of a claim: a noise, a change of DEC for each kind of set, and its role."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from blockl0.paper.cells import Cell, is_e2006
from blockl0.paper.quantiles import kind
from blockl0.paper.store import Store
from blockl0.paper.variants import CHANGE_TITLES, dec_on

TEXT, SHOWN, TRIED = "text", "shown", "tried"
"""Roles: the paper's text, what its printed numbers show, and everything else."""
CLEAN_NOISE, NOISE_TOO = "-C", "-CN"
NOISE_TITLES = {CLEAN_NOISE: "outliers in X", NOISE_TOO: "outliers in X and noise"}
SHOWN_CHANGES = {
    "random": "ranked", "random-C": "", "random-CN": "ranked", "e2006": "theta5 ranked",
    "e2006-C": "theta5 ranked",
}  # fmt: skip
"""The change of DEC that fits the printed Table 2 best, by kind of set; see the quantiles. On
e2006 they decide θ but not the greedy choice, which is taken as on the random sets."""


@dataclass(frozen=True)
class ReadingChoice:
    """Choose a change of DEC: one on all sets, or one for each kind of set."""

    title: str
    changes: Mapping[str, str] | str

    def label(self, dataset: str, working_set: str = "R10G2") -> str:
        """Return the label on a set."""
        changes = self.changes
        change = changes if isinstance(changes, str) else changes[kind(dataset)]
        return dec_on(dataset, change, working_set)


SHOWN_CHOICE = ReadingChoice("DEC as the printed Table 2 shows it", SHOWN_CHANGES)
SHOWN_SPLIT = ReadingChoice(
    "DEC as the printed Table 2 shows it, but greedy coordinates half from the support",
    {name: change.removesuffix("ranked").strip() for name, change in SHOWN_CHANGES.items()},
)
"""The choice for budgets, about which no printed number says anything: Table 2 has prices."""


def choices(changes: Iterable[str], *, is_budget: bool) -> list[ReadingChoice]:
    """Return one choice for each change, and the one that the printed numbers show."""
    return [
        SHOWN_CHOICE,
        *([SHOWN_SPLIT] if is_budget else []),
        *(ReadingChoice(f"DEC {CHANGE_TITLES[name]}", name) for name in changes),
    ]


def role_of(
    choice: ReadingChoice | None, noise: str | None, *, is_text: bool, is_shown: bool
) -> str:
    """Return the role of a combination; `is_text`, `is_shown` describe what else is varied.

    `noise` is None where the sets have no outliers.
    """
    if is_text and noise != NOISE_TOO and (choice is None or choice.changes == "printed"):
        return TEXT
    if is_shown and noise != CLEAN_NOISE and (choice in (None, SHOWN_CHOICE, SHOWN_SPLIT)):
        return SHOWN
    return TRIED


def under_noise(sets: Sequence[str], noise: str) -> tuple[str, ...]:
    """Return the paper's sets, random ones with outliers in one reading of their noise."""
    return tuple(
        name.removesuffix("-C") + noise if name.endswith("-C") and not is_e2006(name) else name
        for name in sets
    )


def mean(store: Store, cells: Iterable[Cell]) -> float | None:
    """Return the mean objective of the finished cells; None when there are none."""
    values = [store[cell]["objective"] for cell in cells if cell in store]
    return float(np.mean(values)) if values else None
