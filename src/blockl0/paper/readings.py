"""Readings of the paper: the roles under which a claim is counted, for each combination."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from blockl0.paper.cells import is_e2006
from blockl0.paper.quantiles import SHOWN_CHANGES, kind
from blockl0.paper.variants import CHANGE_TITLES, dec_on

TEXT, CODE, SHOWN, TRIED = "text", "code", "shown", "tried"
"""Roles: the paper's text, the program that its authors published, what its printed numbers show,
and everything else."""
ROLE_TITLES = {
    TEXT: "the paper's text",
    CODE: "its authors' code",
    SHOWN: "what the printed numbers show",
    TRIED: "tried as well",
}
READINGS = (TEXT, CODE, SHOWN)
"""Roles under which a claim reproduces."""
CODE_SOURCE = "github.com/yuangzh/SparseBlockK, commit 91e5968"
"""The published program. It was uploaded in December 2023 and differs from the text in places (its
demonstrations start at 1e-11·randn, use R12G2 and λ = 1, 10, 50): evidence, and not the text."""
CLEAN_NOISE, NOISE_TOO = "-C", "-CN"
NOISE_TITLES = {CLEAN_NOISE: "outliers in X", NOISE_TOO: "outliers in X and noise"}


@dataclass(frozen=True)
class DecChoice:
    """A change of DEC: one for all sets, or one for each kind of set."""

    title: str
    changes: Mapping[str, str] | str
    role: str = TRIED

    def of_kind(self, name: str, working_set: str = "R10G2") -> str:
        """Return the label on a kind of set."""
        changes = self.changes
        change = changes if isinstance(changes, str) else changes[name]
        return dec_on(name, change, working_set)

    def label(self, dataset: str, working_set: str = "R10G2") -> str:
        """Return the label on a set."""
        return self.of_kind(kind(dataset), working_set)


SHOWN_CHOICE = DecChoice("DEC as the printed Table 2 shows it", SHOWN_CHANGES, SHOWN)
SHOWN_SPLIT = DecChoice(
    "DEC as the printed Table 2 shows it, but greedy coordinates half from the support",
    {name: change.removesuffix("ranked").strip() for name, change in SHOWN_CHANGES.items()},
    SHOWN,
)
"""The choice for budgets, on which the printed numbers have no bearing: Table 2 has prices."""


def choices(changes: Iterable[str], *, is_budget: bool) -> list[DecChoice]:
    """Return one choice for each change, and the one that the printed numbers show."""
    roles = {"printed": TEXT, "code" if is_budget else "theta5 ranked": CODE}
    return [
        SHOWN_CHOICE,
        *([SHOWN_SPLIT] if is_budget else []),
        *(
            DecChoice(f"DEC {CHANGE_TITLES[name]}", name, roles.get(name, TRIED))
            for name in changes
        ),
    ]


def roles_of(
    choice: DecChoice | None, noise: str | None, *others: Sequence[str], is_raw: bool = True
) -> tuple[str, ...]:
    """Return the roles of a combination: those that all its parts have.

    Parameters
    ----------
    choice : DecChoice, optional
        None where DEC does not enter.
    noise : str, optional
        None where the sets have no outliers. The text has them in X alone, the published program
        and the printed numbers have them in the noise too.
    *others : sequence of str
        For each other thing that is varied, the roles that its value has.
    is_raw : bool
        Whether greedy methods rank raw columns, as in the toolboxes of the text and the program.
    """
    roles = tuple(
        role
        for role in READINGS * is_raw
        if noise != (NOISE_TOO if role == TEXT else CLEAN_NOISE)
        and (choice is None or choice.role == role)
        and all(role in given for given in others)
    )
    return roles or (TRIED,)


def under_noise(sets: Sequence[str], noise: str) -> tuple[str, ...]:
    """Return the paper's sets, random ones with outliers in one reading of their noise."""
    return tuple(
        name.removesuffix("-C") + noise if name.endswith("-C") and not is_e2006(name) else name
        for name in sets
    )
