"""Table 1 of the paper: how many points satisfy each optimality condition.

The running example is ``f(x) = 1/2 x'Qx + p'x`` with ``n = 6``, ``Q = cc' + I``, ``c = 1..6``,
``p = 1``, budget ``s = 4`` or price ``lambda = 0.01``. Everything is rational, so all of it is
computed in exact fractions: a tie here is a tie, never an accident of rounding. (``L``, the
largest eigenvalue of Q, is ``c'c + 1 = 92``.)

Run it with ``python -m blockl0.paper.table1``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise

Point = tuple[Fraction, ...]
Support = tuple[int, ...]

N = 6
BUDGET = 4
PRICE = Fraction(1, 100)
LIPSCHITZ = Fraction(92)
ZERO = Fraction(0)
C = tuple(Fraction(i + 1) for i in range(N))
HEADER = ("Basic", "L", *(f"Block-{k}" for k in range(1, N + 1)))
PAPER_CONSTRAINED = (57, 14, None, 2, 1, 1, 1, 1)
PAPER_REGULARIZED = (64, 56, 9, 3, 1, 1, 1, 1)
SUPPORTS: tuple[Support, ...] = tuple(
    support for size in range(N + 1) for support in combinations(range(N), size)
)

Row = tuple[int | None, ...]


@dataclass(frozen=True)
class Table1:
    """Hold the counts, in the order of ``HEADER``; None where the paper prints a dash.

    ``constrained`` and ``regularized`` count supports, as the paper does; the rows ``..._points``
    count distinct points, as Definition 1 does (two supports may share one). ``strict`` rows demand
    a unique minimizer instead of a minimizer: equal rows mean that no tie decides a count.
    """

    constrained: Row
    constrained_points: Row
    regularized: Row
    regularized_points: Row
    constrained_strict: Row
    regularized_strict: Row
    shared_points: tuple[tuple[Support, ...], ...]

    def __str__(self) -> str:
        """Return the table as text, ours beside the paper's."""
        rows = [
            ("constrained, ours (supports)", self.constrained),
            ("constrained, ours (points)", self.constrained_points),
            ("constrained, paper", PAPER_CONSTRAINED),
            ("regularized, ours (supports)", self.regularized),
            ("regularized, ours (points)", self.regularized_points),
            ("regularized, paper", PAPER_REGULARIZED),
        ]
        lines = [" " * 29 + "".join(f"{name:>9}" for name in HEADER)]
        for label, row in rows:
            cells = ("-" if count is None else str(count) for count in row)
            lines.append(f"{label:<29}" + "".join(f"{cell:>9}" for cell in cells))
        return "\n".join(lines)


@cache
def _inverse(support: Support, theta: Fraction = ZERO) -> list[list[Fraction]]:
    """Return the inverse of (Q + theta I)[support, support] = cc' + (1 + theta) I."""
    shift = 1 + theta
    scale = shift + sum(C[i] ** 2 for i in support)
    return [[((i == j) - C[i] * C[j] / scale) / shift for j in support] for i in support]


def gradient(x: Point) -> Point:
    """Return ``Qx + p = c (c'x) + x + 1``."""
    inner = sum((a * b for a, b in zip(C, x, strict=True) if b), Fraction(0))
    return tuple(a * inner + b + 1 for a, b in zip(C, x, strict=True))


def smooth(x: Point) -> Fraction:
    """Return ``1/2 x'Qx + p'x = 1/2 x'(Qx + p) + 1/2 p'x``."""
    return (
        sum(
            (value * (slope + 1) for value, slope in zip(x, gradient(x), strict=True) if value),
            Fraction(0),
        )
        / 2
    )


def refit(x: Point, free: Support) -> Point:
    """Return x with the entries ``free`` re-optimized and all others kept.

    ``z_T = x_T - Q_TT^-1 (Qx + p)_T``, one exact Newton step.
    """
    return _newton(x, gradient(x), free)[0]


def _newton(
    x: Point, slope: Point, free: Support, theta: Fraction = ZERO
) -> tuple[Point, Fraction]:
    """Return x after the step on ``free``, and by how much f falls: half of slope times step."""
    z, fall = list(x), Fraction(0)
    for row, i in zip(_inverse(free, theta), free, strict=True):
        step = sum((a * slope[j] for a, j in zip(row, free, strict=True)), Fraction(0))
        z[i] -= step
        fall += slope[i] * step
    return tuple(z), fall / 2


def nnz(x: Point) -> int:
    """Return the number of nonzeros."""
    return sum(value != 0 for value in x)


def basic_points(budget: int = N) -> dict[Support, Point]:
    """Return the basic stationary point of every support of at most ``budget`` indices."""
    zero = (Fraction(0),) * N
    return {support: refit(zero, support) for support in SUPPORTS if len(support) <= budget}


def block_moves(
    x: Point, k: int, budget: int = N, theta: Fraction = ZERO
) -> Iterator[tuple[Fraction, int, Point]]:
    """Yield ``(value, nnz(z), z)`` for the best z of every support in every block of k.

    The value is ``f(z) + theta/2 ||z - x||^2``. Coordinates outside the block keep theirs
    (Definition 3, which has no theta). C(6, k) 2^k candidates.
    """
    for block in combinations(range(N), k):
        outside = tuple(Fraction(0) if i in block else value for i, value in enumerate(x))
        value, slope = smooth(outside), gradient(outside)
        if theta:
            value += theta / 2 * sum(x[i] ** 2 for i in block)
            slope = tuple(g - theta * x[i] * (i in block) for i, g in enumerate(slope))
        room = min(k, budget - nnz(outside))
        for size in range(room + 1):
            for free in combinations(block, size):
                z, fall = _newton(outside, slope, free, theta)
                yield value - fall, nnz(z), z


@cache
def _rivals(x: Point, k: int, price: Fraction, budget: int) -> tuple[bool, bool]:
    """Tell whether a block of k coordinates improves x, and else whether one ties with it."""
    value, is_tied = smooth(x) + price * nnz(x), False
    for other, count, z in block_moves(x, k, budget):
        move = other + price * count
        if move < value:
            return True, False
        is_tied |= move == value and z != x
    return False, is_tied


def is_block_stationary(x: Point, k: int, price: Fraction, budget: int, strict: bool) -> bool:
    """Tell whether no block of k coordinates improves x (strict: nor ties with it)."""
    is_improved, is_tied = _rivals(x, k, price, budget)
    return not (is_improved or (strict and is_tied))


def is_l_stationary_price(x: Point, price: Fraction, lipschitz: Fraction, strict: bool) -> bool:
    """Tell whether x is a fixed point of the proximal gradient step with price."""
    for value, slope in zip(x, gradient(x), strict=True):
        # keep a nonzero: x^2 >= 2 price/L; keep a zero: g^2 <= 2 price L
        margin = value**2 - 2 * price / lipschitz if value else 2 * price * lipschitz - slope**2
        if (value and slope) or margin < 0 or (strict and margin == 0):
            return False
    return True


def is_l_stationary_budget(x: Point, budget: int, lipschitz: Fraction, strict: bool) -> bool:
    """Tell whether x is a fixed point of the gradient step followed by hard thresholding."""
    slope = gradient(x)
    if nnz(x) < budget:
        return not any(slope)
    if any(g for g, value in zip(slope, x, strict=True) if value):
        return False
    kept = min(abs(value) for value in x if value) * lipschitz
    rival = max((abs(g) for g, value in zip(slope, x, strict=True) if not value), default=-kept)
    return rival < kept or (rival == kept and not strict)


def _row(points: list[Point], l_test: Callable[[Point], bool], budget: int, strict: bool) -> Row:
    """Count the points that pass each test; a budget of N means the price form."""
    price = PRICE if budget == N else Fraction(0)
    first = 1 if budget == N else 2
    blocks = [
        sum(is_block_stationary(x, k, price, budget, strict) for x in points)
        for k in range(first, N + 1)
    ]
    dashes = [None] * (first - 1)
    return (len(points), sum(map(l_test, points)), *dashes, *blocks)


def _constrained(points: list[Point], strict: bool) -> Row:
    """Return the row of the budget form for the given points."""
    return _row(
        points, lambda x: is_l_stationary_budget(x, BUDGET, LIPSCHITZ, strict), BUDGET, strict
    )


def _regularized(points: list[Point], strict: bool) -> Row:
    """Return the row of the price form for the given points."""
    return _row(points, lambda x: is_l_stationary_price(x, PRICE, LIPSCHITZ, strict), N, strict)


@cache
def run() -> Table1:
    """Count by exhaustive enumeration, in exact arithmetic (a few seconds)."""
    points = basic_points()
    within = list(basic_points(BUDGET).values())
    supports_of: dict[Point, list[Support]] = {}
    for support, x in points.items():
        supports_of.setdefault(x, []).append(support)
    return Table1(
        constrained=_constrained(within, strict=False),
        constrained_points=_constrained(list(dict.fromkeys(within)), strict=False),
        regularized=_regularized(list(points.values()), strict=False),
        regularized_points=_regularized(list(supports_of), strict=False),
        constrained_strict=_constrained(within, strict=True),
        regularized_strict=_regularized(list(points.values()), strict=True),
        shared_points=tuple(tuple(s) for s in supports_of.values() if len(s) > 1),
    )


def price_interval(x: Point, k: int, theta: Fraction = ZERO) -> tuple[Fraction, Fraction | None]:
    """Return the exact closed interval of prices for which x is block-k stationary.

    Each candidate move asks ``price (nnz(z) - nnz(x)) >= f(x) - f(z)``: linear in the price. The
    upper end None means no limit; an interval with low > high is empty.
    """
    low, high = Fraction(0), None
    value, count = smooth(x), nnz(x)
    for other, other_count, _ in block_moves(x, k, theta=theta):
        if other_count > count:
            low = max(low, (value - other) / (other_count - count))
        elif other_count < count:
            bound = (other - value) / (count - other_count)
            high = bound if high is None else min(high, bound)
        elif other < value:
            return Fraction(1), Fraction(0)
    return low, high


def block_rows_over_prices(
    sizes: tuple[int, ...] = (1, 2, 3), theta: Fraction = ZERO
) -> set[tuple[int, ...]]:
    """Return every row of block counts that some price > 0 produces, proven by enumeration.

    The counts are constant between the ends of the intervals of all points, so the ends and the
    midpoints between neighbours cover every price.
    """
    points = list(basic_points().values())
    intervals = {k: [price_interval(x, k, theta) for x in points] for k in sizes}
    ends = sorted({end for pairs in intervals.values() for pair in pairs for end in pair if end})
    probes = [ends[0] / 2, *ends, ends[-1] + 1]
    probes += [(a + b) / 2 for a, b in pairwise(ends)]

    def count(k: int, price: Fraction) -> int:
        return sum(lo <= price and (hi is None or price <= hi) for lo, hi in intervals[k])

    return {tuple(count(k, price) for k in sizes) for price in probes}


def main() -> None:
    """Print the table and what explains the difference from the paper's."""
    table = run()
    print("Number of points satisfying each optimality condition (exact arithmetic)\n")
    print(table)
    shared = "; ".join(
        " = ".join("{" + ",".join(str(i + 1) for i in s) + "}" for s in group)
        for group in table.shared_points
    )
    ties = table.regularized == table.regularized_strict
    rows = block_rows_over_prices()
    print(f"\nSupports that share a point: {shared}.")
    print(f"Counts with strict inequalities are the same: {'yes' if ties else 'no'}.")
    print(
        f"Some price gives the paper's block-1 to block-3 counts 9, 3, 1: "
        f"{'yes' if (9, 3, 1) in rows else 'no'} ({len(rows)} different rows over all prices)."
    )


if __name__ == "__main__":
    main()
