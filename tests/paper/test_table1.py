from fractions import Fraction

import numpy as np
import pytest

import oracles
from blockl0.paper import table1

C = np.arange(1.0, 7.0)
Q = np.outer(C, C) + np.eye(6)
P = np.ones(6)


@pytest.fixture(scope="module")
def table():
    return table1.run()


def test_constrained_row_is_the_papers(table):
    assert table.constrained == (57, 14, None, 2, 1, 1, 1, 1) == table1.PAPER_CONSTRAINED


def test_regularized_row(table):
    assert table.regularized == (64, 58, 11, 2, 1, 1, 1, 1)
    # {1, 3, 5} and {1, 3, 4, 5} share an L-stationary point, {1} and {1, 2} another point
    assert table.regularized_points == (62, 57, 11, 2, 1, 1, 1, 1)
    assert table.shared_points == (((0,), (0, 1)), ((0, 2, 4), (0, 2, 3, 4)))


def test_by_definition_1_a_point_counts_once(table):
    # its Z is the zero set of the point itself, so supports that share a point are one
    assert table.constrained_points == (55, 14, None, 2, 1, 1, 1, 1)
    assert table.regularized_points[0] == 62
    for budget, count in ((4, 55), (6, 62)):
        points = set(table1.basic_points(budget).values())
        assert len(points) == count
        for x in points:
            assert not any(g for g, value in zip(table1.gradient(x), x, strict=True) if value)


def test_no_tie_decides_a_count(table):
    assert table.constrained_strict == table.constrained
    assert table.regularized_strict == table.regularized


def test_no_price_gives_the_papers_block_counts():
    rows = table1.block_rows_over_prices()
    assert (11, 2, 1) in rows
    assert {row for row in rows if row[0] == 9} == {(9, 1, 1)}
    assert all(row[0] >= 14 for row in rows if row[1] == 3)


def test_price_interval_agrees_with_the_direct_test():
    for x in table1.basic_points().values():
        for price in (Fraction(1, 200), Fraction(1, 100), Fraction(1, 8)):
            low, high = table1.price_interval(x, 2)
            inside = low <= price and (high is None or price <= high)
            assert inside == table1.is_block_stationary(x, 2, price, 6, strict=False)


def test_exact_points_equal_floating_point_oracle():
    assert np.linalg.eigvalsh(Q)[-1] == pytest.approx(float(table1.LIPSCHITZ))
    for support, x in table1.basic_points().items():
        values = np.array([float(v) for v in x])
        np.testing.assert_allclose(values, oracles.fit_on(Q, P, support), atol=1e-12)
        assert float(table1.smooth(x)) == pytest.approx(oracles.smooth(Q, P, values), abs=1e-12)
        np.testing.assert_allclose(
            [float(g) for g in table1.gradient(x)], Q @ values + P, atol=1e-12
        )


@pytest.mark.parametrize("price, budget, block", [(0.01, None, 11), (0.0, 4, 2)])
def test_counts_equal_floating_point_oracle(price, budget, block, table):
    k = 1 if budget is None else 2
    row = table.regularized if budget is None else table.constrained
    points = [np.array([float(v) for v in x]) for x in table1.basic_points(budget or 6).values()]
    assert sum(oracles.is_l_stationary(Q, P, x, price, budget) for x in points) == row[1]
    assert sum(oracles.is_block_stationary(Q, P, x, k, price, budget) for x in points) == block


def test_a_looser_test_only_adds_points_and_a_proximal_term_is_one():
    points = [np.array([float(v) for v in x]) for x in table1.basic_points().values()]
    counts = [
        [
            sum(oracles.is_block_stationary(Q, P, x, k, price=0.01, theta=theta) for x in points)
            for k in (1, 2)
        ]
        for theta in (1e-3, 1.0)
    ]
    assert counts == [[11, 2], [11, 3]]  # three block-2 points need theta of the order of 1


FLOATS = [np.array([float(v) for v in x]) for x in table1.basic_points().values()]


def block_counts(**options):
    """How many basic points are block-1, block-2 and block-3 stationary."""
    return tuple(
        sum(oracles.is_block_stationary(Q, P, x, k, **options) for x in FLOATS) for k in (1, 2, 3)
    )


@pytest.mark.parametrize(
    ("price", "theta", "counts"),
    [(0.01, 1.0, (11, 3, 2)), (0.0057, 1.0, (9, 3, 3)), (0.0059, 0.6, (9, 3, 2))],
)
def test_a_large_theta_with_another_price_gives_nine_and_three_but_no_one(price, theta, counts):
    assert block_counts(price=price, theta=theta) == counts


def test_moves_with_a_proximal_term_equal_floating_point_oracle():
    theta = Fraction(3, 5)
    for x in list(table1.basic_points().values())[20:40:5]:
        here = np.array([float(v) for v in x])
        for value, count, z in table1.block_moves(x, 2, theta=theta):
            there = np.array([float(v) for v in z])
            expected = oracles.smooth(Q, P, there) + 0.3 * np.sum((there - here) ** 2)
            assert float(value) == pytest.approx(expected, abs=1e-12)
            assert count == np.count_nonzero(there)
        best = min(value for value, _, _ in table1.block_moves(x, 6, theta=theta))
        _, expected = oracles.brute_force(Q + 0.6 * np.eye(6), P - 0.6 * here)
        assert float(best) == pytest.approx(expected + 0.3 * here @ here, abs=1e-12)


THETAS = "1/100 1/10 1/5 3/10 2/5 1/2 3/5 7/10 4/5 1 3/2 2 3 5 10 20".split()


@pytest.mark.slow
@pytest.mark.parametrize("theta", THETAS)
def test_no_price_with_these_thetas_gives_the_papers_block_counts(theta):
    rows = table1.block_rows_over_prices(theta=Fraction(theta))
    assert (9, 3, 1) not in rows
    assert (theta == "2/5") == ((10, 3, 1) in rows)
    nine_and_three = {row for row in rows if row[:2] == (9, 3)}
    assert nine_and_three <= {(9, 3, 2), (9, 3, 3)}
    if Fraction(theta) <= Fraction(1, 2):
        assert not nine_and_three


def best_decreases(k):
    """For each basic point the most that a block of k takes off F, exactly; 0 when nothing."""
    points = table1.basic_points().values()
    value = [table1.smooth(x) + table1.PRICE * table1.nnz(x) for x in points]
    return [
        here - min(other + table1.PRICE * count for other, count, _ in table1.block_moves(x, k))
        for x, here in zip(points, value, strict=True)
    ]


def test_no_tolerance_on_the_decrease_gives_nine_and_three():
    one, two, three = (np.array(best_decreases(k)) for k in (1, 2, 3))
    # passing means: no block takes off more than the tolerance; the counts change only here
    tolerances = sorted({Fraction(0), *one, *two, *three})
    rows = {tuple(int((d <= t).sum()) for d in (one, two, three)) for t in tolerances}
    assert (11, 2, 1) in rows and min(rows)[0] == 11
    assert min(row[2] for row in rows if row[1] >= 3) == 2  # at 3 block-2 points: two block-3
    assert float(sorted(two)[2]) == pytest.approx(4.6e-3, rel=0.01)
    assert float(sorted(three)[1]) == pytest.approx(8.8e-5, rel=0.01)
    # below zero a point must be better than all others by that much, itself left out: fewer pass
    assert sum(two <= 0) == 2


@pytest.mark.parametrize(
    ("cut", "counts"), [("0.001", (11, 2, 1)), ("0.003", (9, 2, 1)), ("0.004", (8, 1, 1))]
)
def test_a_cut_on_what_counts_as_zero(cut, counts):
    # every basic point has nonzeros of at least 1/79: the cut drops entries of the rivals only,
    # which makes the test stricter
    points = list(table1.basic_points().values())
    assert min(abs(v) for x in points for v in x if v) == Fraction(1, 79) > Fraction(cut)

    def passes(x, k):
        here = table1.smooth(x) + table1.PRICE * table1.nnz(x)
        rivals = table1.block_moves(x, k)
        count = ((f, sum(abs(v) > Fraction(cut) for v in z)) for f, _, z in rivals)
        return all(f + table1.PRICE * nnz >= here for f, nnz in count)

    assert tuple(sum(passes(x, k) for x in points) for k in (1, 2, 3)) == counts


@pytest.mark.slow
def test_no_cut_on_what_counts_as_zero_gives_nine_and_three():
    # up to 0.1, on rivals alone or on points and rivals alike
    moves = [
        [list(table1.block_moves(x, k)) for k in (1, 2, 3)] for x in table1.basic_points().values()
    ]
    values = [[np.array([float(f) for f, _, _ in m]) for m in rows] for rows in moves]
    sizes = [[np.abs([[float(v) for v in z] for _, _, z in m]) for m in rows] for rows in moves]
    f = [float(table1.smooth(x)) for x in table1.basic_points().values()]

    def counts(cut, cut_points):
        rows = []
        for x, here, value, size in zip(FLOATS, f, values, sizes, strict=True):
            here += 0.01 * (np.abs(x) > cut_points).sum()
            rivals = (v + 0.01 * (z > cut).sum(axis=1) for v, z in zip(value, size, strict=True))
            rows.append([(rival >= here - 1e-12).all() for rival in rivals])
        return tuple(np.sum(rows, axis=0).tolist())

    cuts = np.linspace(1e-4, 0.1, 400)
    for both in (False, True):
        rows = {cut: counts(cut, cut if both else 0.0) for cut in cuts}
        assert not [row for row in rows.values() if row[:2] == (9, 3)]
        nine = [cut for cut, row in rows.items() if row == (9, 2, 1)]
        assert 0.0028 < min(nine) < 0.0029 and 0.0033 < max(nine) < 0.0034


def test_main_prints_both_rows(capsys):
    table1.main()
    out = capsys.readouterr().out
    numbers = {line.split("  ")[0]: line.split()[-8:] for line in out.splitlines() if "," in line}
    assert numbers["constrained, ours (supports)"] == ["57", "14", "-", "2", "1", "1", "1", "1"]
    assert numbers["regularized, paper"] == ["64", "56", "9", "3", "1", "1", "1", "1"]
    assert "same: yes" in out
