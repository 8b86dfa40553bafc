"""X that is not one array in memory: blocks of columns, where they lie, and who maps over them.

    Block    some columns over all rows, in memory or on a device: products, prices, a summary
    Source   X as a sequence of blocks, each made when it is asked for; random columns
    Engine   maps a function over the blocks of a source, in any order

A storage is a `Source`, with an `Engine` of its own where its blocks live elsewhere, and a line in
`openers.OPENERS`. `blockl0.problem.blocks.Blocks` makes a `Design` of it, with which everything
else works. Nothing here knows what is minimized, but for the prices of least squares, which are
found where the columns lie.
"""

from __future__ import annotations

from blockl0.storage.bed_files import open_bed
from blockl0.storage.block import ArrayBlock, Block, View
from blockl0.storage.engine import Engine, InOrder, ReadAhead
from blockl0.storage.memmap import by_columns
from blockl0.storage.openers import opened
from blockl0.storage.source import ArraySource, Source
from blockl0.storage.summary import Summary

__all__ = [
    "ArrayBlock",
    "ArraySource",
    "Block",
    "Engine",
    "InOrder",
    "ReadAhead",
    "Source",
    "Summary",
    "View",
    "by_columns",
    "open_bed",
    "opened",
]
