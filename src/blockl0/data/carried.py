"""Columns collected during a pass, so that reading them later costs no other pass.

In chunked storage a single column costs a whole chunk, and the best thousand of a million columns
lie in nearly all chunks. A kernel that ranks columns therefore returns the best of every block
together with its result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.data.block import Block

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ranking = Callable[[Any], Floats]
"""Module-level function that ranks columns from a kernel's result: (r, c), smallest first."""

SHARE, MORE = 2.0, 8
"""A block returns SHARE times its proportion of the wanted columns, plus MORE."""


def kernel_carry(
    block: Block, kernel: Callable[..., Any], ranking: Ranking, share: float,
    *given: Any,
) -> tuple[Any, list[tuple[Floats, Ints, Floats]]]:  # fmt: skip
    """Run a kernel and collect the best columns of the block for each ranking.

    Returns the kernel's result and, for each ranking, (ranks, positions, stored columns). `share`
    is the proportion of all columns that is wanted.
    """
    answer, best = kernel(block, *given), []
    rankings = ranking(answer)
    for ranks in rankings:
        count = int(np.ceil(SHARE * share / len(rankings) * ranks.size)) + MORE
        own = np.argpartition(ranks, min(count, ranks.size) - 1)[:count]
        best.append((ranks[own], own, block.stored(own)))
    return answer, best


class Bag:
    """Bounded collection of the `most` columns with the smallest ranks."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._ranks, self._idx, self._columns = np.empty(0), np.empty(0, dtype=np.int64), []

    def add(self, ranks: Floats, idx: Ints, X: Floats) -> None:
        """Add columns X (m, k), dropping those no longer among the best."""
        self._ranks, self._idx = np.append(self._ranks, ranks), np.append(self._idx, idx)
        self._columns += [x.copy() for x in X.T]
        if self._ranks.size > self.most + self.most // 4:
            self._sort()

    def contents(self) -> tuple[Ints, list[Floats]]:
        """Return the columns, best last."""
        self._sort()
        return self._idx[::-1], self._columns[::-1]

    def _sort(self) -> None:
        order = np.argsort(self._ranks, kind="stable")[: self.most]
        self._ranks, self._idx = self._ranks[order], self._idx[order]
        self._columns = [self._columns[i] for i in order]
