"""A target that columns add up to is named with them, wherever a fit without an error is shown."""

from __future__ import annotations

import numpy as np
import pytest

from blockl0 import L0Regressor
from blockl0.app.report import make_report
from cli_runner import answer, folder, run

pd = pytest.importorskip("pandas")
__all__ = ["folder"]

SAID = "casual + registered, up to a constant and rounding"


def rentals(n_rows: int = 90) -> pd.DataFrame:
    """Draw a table of rentals, whose total is the sum of two columns."""
    rng = np.random.default_rng(0)
    casual, registered = rng.poisson(30.0, n_rows), rng.poisson(90.0, n_rows)
    return pd.DataFrame({
        "temp": rng.normal(20.0, 8.0, n_rows).round(2), "wind": rng.gamma(2.0, 5.0, n_rows),
        "casual": casual, "registered": registered, "season": rng.choice(list("abc"), n_rows),
        "count": casual + registered,
    })  # fmt: skip


@pytest.mark.parametrize("more", [(), ("--stream",)])
def test_a_sum_of_columns_is_named_by_the_command_line(folder, more):
    rentals().to_csv("bike.csv", index=False)
    found = answer("fit", "bike.csv", "--target", "count", "-k", 2, *more)
    assert any(SAID in note for note in found["data"]["notes"])
    assert any(SAID in caution for caution in found["result"]["cautions"])
    done = run("fit", "bike.csv", "--target", "count", "-k", 2, *more)
    assert SAID in " ".join(done.stdout.split()) and "%" in done.stdout
    assert "100000" not in done.stdout
    # where one part is gone, or not chosen, the sum is none of the chosen columns
    assert SAID not in run("fit", "bike.csv", "-t", "count", "--drop", "casual", *more).stdout
    one = answer("fit", "bike.csv", "--target", "count", "-k", 1, *more)
    assert any(SAID in note for note in one["data"]["notes"])
    assert not any(SAID in caution for caution in one["result"]["cautions"])


def test_a_sum_of_columns_is_named_by_summary_and_page():
    frame = rentals()
    X, y = frame.drop(columns=["count", "season"]), frame["count"]
    summary = L0Regressor(2, random_state=0).fit(X, y).summary(X, y)
    assert any(SAID in caution for caution in summary.cautions)
    points = make_report(X, y, cv=None, half_samples=0).to_dict()["points"]
    texts = {
        point["k"]: ["".join(p[0] if isinstance(p, list) else p for p in said) for said in
                     point["cautions"]]
        for point in points
    }  # fmt: skip
    assert not texts[1] and SAID in texts[2][0]


def test_weights_signs_and_written_decimals():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(80, 3)).round(3), columns=["a", "b", "c"])
    y = (2.5 * X["a"] - X["c"] + 7.0).round(6)
    said = L0Regressor(2, random_state=0).fit(X, y).summary(X, y).cautions[0]
    assert "The target is 2.5·a \N{MINUS SIGN} c, up to" in said


def test_nothing_is_said_of_noise_nor_of_as_many_columns_as_rows():
    rng = np.random.default_rng(2)
    X = pd.DataFrame(rng.normal(size=(40, 4)), columns=list("abcd"))
    for y in (X["a"] + 1e-3 * rng.normal(size=40), rng.normal(size=40)):
        assert not L0Regressor(4, random_state=0).fit(X, y).summary(X, y).cautions
    few = X.head(5)
    y = rng.normal(size=5)
    found = L0Regressor(4, random_state=0).fit(few, y).summary(few, y).cautions
    assert not any("The target is" in said for said in found)
