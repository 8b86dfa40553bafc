"""What is measured: every cell of the benchmark, in the order in which it runs."""

from __future__ import annotations

from typing import Any, NamedTuple

OURS: dict[str, dict[str, Any]] = {
    "blockl0 fast": {"effort": "fast"},
    "blockl0 balanced": {"effort": "balanced"},
}
"""Options of `blockl0.solve` by method name."""
COMPARED = (*OURS, "abess", "OMP")
"""The methods of the named case and of the series with dense X, ours first."""
SPARSE = (*COMPARED, "abess dense")
"""With sparse X also abess on a dense copy: its own sparse path is slower while the copy fits."""


class Cell(NamedTuple):
    """One method on one instance; all fields together are its name in the CSV."""

    series: str
    method: str
    m: int
    n: int
    density: float
    s: int
    seed: int


def growth(n_dense: list[int], n_sparse: list[int], m_dense: list[int]) -> list[Cell]:
    """Sizes grow one at a time; the last sparse one is the named case 2000×1000000."""
    sizes = [("n dense", 200, n, 1.0) for n in n_dense]
    sizes += [("n sparse", 2000, n, 0.01) for n in n_sparse]
    sizes += [("m dense", m, 1000, 1.0) for m in m_dense]
    return [
        Cell(series, method, m, n, density, 20, 0)
        for series, m, n, density in sizes
        for method in (COMPARED if density == 1.0 else SPARSE)
    ]


def race(m: int, n: int, s: int) -> list[Cell]:
    """The named case that must be faster than abess: always measured together."""
    return [Cell("race", method, m, n, 1.0, s, 0) for method in COMPARED]


def passes(easy: tuple[int, int], hard: tuple[int, int], supports: list[int], seeds: int):
    """Passes over X against s.

    s true columns in m rows: "easy" has rows enough to recover all of them, "hard" has not when s
    is large, and then more columns price out before a point is stationary.
    """
    return [
        Cell(series, method, m, n, 1.0, s, seed)
        for series, (m, n) in (("passes easy", easy), ("passes hard", hard))
        for s in supports
        for method in COMPARED[:2]
        for seed in range(seeds)
    ]


def all_cells(quick: bool) -> list[Cell]:
    """The whole benchmark, or a version of about a minute with the same parts."""
    if quick:
        return [
            *race(200, 10_000, 20),
            *growth([1000, 10_000], [1000, 3000], [1000, 10_000]),
            *passes((1000, 2000), (200, 2000), [5, 20], 1),
        ]
    tens = [10**3, 10**4, 10**5, 10**6]
    return [
        *race(1000, 100_000, 30),
        *growth(tens, tens, tens[:3]),
        *passes((2000, 20_000), (500, 20_000), [5, 10, 20, 40, 80], 3),
    ]
