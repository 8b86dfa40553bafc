"""The numbers printed in the paper: Table 2 (objectives and colours) and Table 3 (seconds).

Table 1 is in `table1`; the figures have no numbers.
"""

from __future__ import annotations

from typing import NamedTuple

METHODS = ("PGM-l0", "APGM-l0", "PGM-l1", "PGM-lp", "DEC-R10G2")
"""The columns of Tables 2 and 3."""
PRICES = (1.0, 10.0, 100.0, 1000.0)
"""The rows of Table 2, for each set."""
SETS = (
    "random-256-1024", "random-256-2048", "e2006-5000-1024", "e2006-5000-2048",
    "random-256-1024-C", "random-256-2048-C", "e2006-5000-1024-C", "e2006-5000-2048-C",
)  # fmt: skip
"""The data sets in the paper's order."""


class Printed(NamedTuple):
    """Hold an objective and the place that its colour means: 1 red, 2 blue, 3 green, 0 none."""

    objective: float
    place: int


class Seconds(NamedTuple):
    """Hold a mean and a standard deviation."""

    mean: float
    std: float


# one line per price; a colour is written as :1, :2, :3
_TABLE2 = """
6.9e2:3 2.4e4   7.8e2   4.0e2:1 4.8e2:2
2.3e3:3 3.8e4   3.3e3   1.9e3:1 2.2e3:2
2.0e4   1.3e5   1.8e4:3 1.1e4:2 9.4e3:1
2.5e4   1.0e6   2.4e4:2 2.4e4:3 2.4e4:1

1.3e3:3 2.7e4   1.4e3   6.0e2:2 5.4e2:1
2.9e3:3 4.5e4   4.9e3   2.2e3:1 2.2e3:2
2.2e4   2.3e5   2.1e4:3 1.1e4:2 9.5e3:1
2.7e4:3 2.1e6   2.6e4:2 2.7e4:3 2.6e4:1

8.5e3:2 3.3e4   1.1e4:3 1.8e4   7.3e3:1
9.4e3:2 4.2e4   3.2e4:3 3.2e4:3 8.6e3:1
3.2e4:2 1.3e5:3 3.2e4:2 3.2e4:2 1.3e4:1
1.8e4:2 1.1e6   3.2e4:3 3.2e4:3 1.1e4:1

3.1e3:2 3.4e4   4.4e3:3 1.4e4   2.6e3:1
5.2e3:2 5.3e4   1.2e4:3 1.2e4   4.5e3:1
3.2e4:2 2.4e5:3 3.2e4:2 3.2e4:2 7.0e3:1
1.8e4:2 2.1e6   3.2e4:3 3.2e4:3 1.3e4:1

9.6e2:2 5.7e6   1.0e3   1.0e3:3 8.9e2:1
8.1e3:2 3.5e6   1.0e4   8.2e3:3 7.3e3:1
5.8e4:3 6.2e6   8.9e4   5.4e4:2 5.1e4:1
2.5e5:3 5.3e6   3.7e5   2.2e5:2 2.0e5:1

1.9e3:2 5.7e6   2.0e3   1.9e3:3 1.2e3:1
1.7e4:3 7.7e6   2.0e4   1.6e4:2 9.2e3:1
8.4e4:3 4.2e6   1.6e5   6.4e4:2 5.3e4:1
2.5e5:3 9.6e6   6.3e5   2.5e5:2 2.4e5:1

3.0e4   3.3e4   2.8e4:2 2.9e4:3 2.2e4:1
3.2e4:2 4.2e4:3 3.2e4:2 3.2e4:2 2.3e4:1
3.2e4:3 1.3e5   3.2e4:2 3.2e4   2.9e4:1
3.2e4:1 1.1e6:2 3.2e4:1 3.2e4:1 3.2e4:1

2.9e4   3.4e4   2.6e4:2 2.7e4:3 1.7e4:1
3.2e4:2 5.3e4   3.2e4:3 3.2e4:2 2.1e4:1
3.2e4:2 2.4e5:3 3.2e4:2 3.2e4:2 2.7e4:1
3.2e4:1 2.1e6:2 3.2e4:1 3.2e4:1 3.2e4:1
"""

# the corrupted sets have no row
_TABLE3 = """
12±3 13±3  5±3 15±3 36±3
11±3 11±3  9±3 16±3 66±7
12±3 11±3  8±3 14±3 45±3
12±3 10±3 12±3  5±3 65±8
"""


def _objective(text: str) -> Printed:
    value, _, place = text.partition(":")
    return Printed(float(value), int(place or 0))


def _read_table2() -> dict[tuple[str, float, str], Printed]:
    blocks = _TABLE2.strip().split("\n\n")
    return {
        (name, price, method): _objective(text)
        for name, block in zip(SETS, blocks, strict=True)
        for price, line in zip(PRICES, block.splitlines(), strict=True)
        for method, text in zip(METHODS, line.split(), strict=True)
    }


def _read_table3() -> dict[tuple[str, str], Seconds]:
    return {
        (name, method): Seconds(*map(float, text.split("±")))
        for name, line in zip(SETS, _TABLE3.strip().splitlines(), strict=False)
        for method, text in zip(METHODS, line.split(), strict=True)
    }


OBJECTIVES = _read_table2()
"""Table 2 by (set, price, method)."""
SECONDS = _read_table3()
"""Table 3 by (set, method)."""
