"""How a limit of memory is shared out."""

from __future__ import annotations

from typing import NamedTuple

from blockl0.validate import check_nonnegative

DEFAULT_LIMIT = 1 << 30
"""Bytes that the search of an X in blocks may take, beside a few numbers for every column."""
WHOLE_LIMIT = 4_000_000_000
"""Bytes of float64 up to which an X that cannot be read in blocks is read into memory."""
LEAST_BLOCK, MOST_BLOCK = 1 << 16, 256 << 20
"""Bytes of a block."""


class Limits(NamedTuple):
    """Bytes of a block, of which two are in memory; of float64 that is held; of a slab of rows.

    What is held is X, if it is so small, or else columns that were read. `whole` is the size of an
    X that is read into memory where it cannot be read in blocks.
    """

    block: int
    held: int
    slab: int
    whole: int


def limits_of(memory_limit: float | None = None) -> Limits:
    """The shares of a limit, 1 GiB by default; the other half is for pools and their products."""
    limit = DEFAULT_LIMIT
    if memory_limit is not None:
        limit = int(check_nonnegative("memory_limit", memory_limit))
    whole = WHOLE_LIMIT if memory_limit is None else limit
    block = min(max(limit // 16, LEAST_BLOCK), MOST_BLOCK)
    return Limits(block, limit // 8, limit // 4, whole)
