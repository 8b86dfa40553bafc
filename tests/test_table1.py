from fractions import Fraction

import numpy as np
import pytest

import oracles
from blockl0.experiments import table1

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


def test_main_prints_both_rows(capsys):
    table1.main()
    out = capsys.readouterr().out
    numbers = {line.split("  ")[0]: line.split()[-8:] for line in out.splitlines() if "," in line}
    assert numbers["constrained, ours"] == ["57", "14", "-", "2", "1", "1", "1", "1"]
    assert numbers["regularized, paper"] == ["64", "56", "9", "3", "1", "1", "1", "1"]
    assert "same: yes" in out
