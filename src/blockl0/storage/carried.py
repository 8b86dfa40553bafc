"""Columns that a pass takes along, so that reading them later does not cost another one.

Of chunked storages a single column costs a whole chunk, and the best thousand of a million columns
lie in nearly all chunks. A kernel that ranks columns sends the best of every block with its answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.storage.block import Block

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ranking = Callable[[Any], Floats]
"""A function of a module: of the answer of a kernel, ranks (r, c), the least of which are best."""

SHARE, MORE = 2.0, 8
"""How many times its share of the wanted columns a block sends, and how many more."""


def kernel_carry(
    block: Block, kernel: Callable[..., Any], ranking: Ranking, share: float,
    *given: Any,
) -> tuple[Any, list[tuple[Floats, Ints, Floats]]]:  # fmt: skip
    """The answer of a kernel, and for each ranking (ranks, positions, stored columns) of the best.

    `share` is that of the columns that are wanted of all.
    """
    answer, best = kernel(block, *given), []
    rankings = ranking(answer)
    for ranks in rankings:
        count = int(np.ceil(SHARE * share / len(rankings) * ranks.size)) + MORE
        own = np.argpartition(ranks, min(count, ranks.size) - 1)[:count]
        best.append((ranks[own], own, block.stored(own)))
    return answer, best


class Bag:
    """The `most` columns with the least ranks of those that were put in."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._ranks, self._idx, self._columns = np.empty(0), np.empty(0, dtype=np.int64), []

    def add(self, ranks: Floats, idx: Ints, X: Floats) -> None:
        """Put columns X (m, k) in; what is not among the best any more falls out."""
        self._ranks, self._idx = np.append(self._ranks, ranks), np.append(self._idx, idx)
        self._columns += [x.copy() for x in X.T]
        if self._ranks.size > self.most + self.most // 4:
            self._sort()

    def contents(self) -> tuple[Ints, list[Floats]]:
        """The columns, the best last."""
        self._sort()
        return self._idx[::-1], self._columns[::-1]

    def _sort(self) -> None:
        order = np.argsort(self._ranks, kind="stable")[: self.most]
        self._ranks, self._idx = self._ranks[order], self._idx[order]
        self._columns = [self._columns[i] for i in order]
