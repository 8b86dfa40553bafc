"""Split a memory limit into shares."""

from __future__ import annotations

from typing import NamedTuple

from blockl0.validate import check_nonnegative

DEFAULT_LIMIT = 1 << 30
"""Default memory for the search of an X in blocks, in bytes, beside O(n) vectors."""
WHOLE_LIMIT = 4_000_000_000
"""Largest float64 size, in bytes, of an X read whole because it cannot be read in blocks."""
LEAST_BLOCK, MOST_BLOCK = 1 << 16, 256 << 20
"""Smallest and largest size of a block, in bytes."""


class Limits(NamedTuple):
    """Shares of a memory limit, in bytes.

    Attributes
    ----------
    block : int
        One block of columns; two are in memory at a time.
    held : int
        Float64 entries to keep: all of X if it fits, otherwise columns read lately.
    slab : int
        One slab of rows.
    whole : int
        Largest X to read into memory if it cannot be read in blocks.
    """

    block: int
    held: int
    slab: int
    whole: int


def limits_of(memory_limit: float | None = None) -> Limits:
    """Split a memory limit, 1 GiB by default.

    Half of it is left for the pools of a search and their products.
    """
    limit = DEFAULT_LIMIT
    if memory_limit is not None:
        limit = int(check_nonnegative("memory_limit", memory_limit))
    whole = WHOLE_LIMIT if memory_limit is None else limit
    block = min(max(limit // 16, LEAST_BLOCK), MOST_BLOCK)
    return Limits(block, limit // 8, limit // 4, whole)
