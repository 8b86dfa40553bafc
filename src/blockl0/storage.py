"""Storages of an X beyond one array in memory, in blocks of columns.

    Block    some columns over all rows, in memory or on a device: products, entry changes, summary
    Source   X as a sequence of blocks, each loaded on demand, and single columns
    Engine   maps a function over the blocks of a source, in any order

A storage is a `Source`, with an `Engine` of its own if its blocks live elsewhere, and a line in
`blockl0.data.source.OPENERS`. `blockl0.data.blocks.Blocks` turns it into a `Design`, the interface
for everything else. Nothing here depends on the objective, except for the entry changes of least
squares, which are computed where the columns are stored.
"""

from __future__ import annotations

from blockl0.data.array_files import by_columns
from blockl0.data.bed_files import open_bed
from blockl0.data.block import ArrayBlock, Block, ColumnSummary, View
from blockl0.data.source import ArraySource, Engine, InOrder, ReadAhead, Source, opened

__all__ = [
    "ArrayBlock",
    "ArraySource",
    "Block",
    "ColumnSummary",
    "Engine",
    "InOrder",
    "ReadAhead",
    "Source",
    "View",
    "by_columns",
    "open_bed",
    "opened",
]
