from __future__ import annotations

import pickle

import numpy as np
import pytest

from blockl0.result import History, Result, Status


def make_result(**changes):
    fields = {
        "coef": np.array([0.0, 2.0, 0.0, -1.0]),
        "objective": 4.0,
        "status": Status.CONVERGED,
        "n_iter": 12,
        "seconds": 0.25,
        "history": History([5.0, 4.0], [0.1, 0.2], [1, 2]),
        "options": {"method": "dec"},
    }
    return Result(**(fields | changes))


def test_every_status_has_its_own_message():
    names = {
        "OPTIMAL", "GAP", "CONVERGED", "MAX_ITER", "TIME_LIMIT", "NODE_LIMIT", "WORK_LIMIT",
        "NO_BOUND", "INTERRUPTED", "STOPPED",
    }  # fmt: skip
    assert {status.name for status in Status} == names
    assert len({status.message for status in Status}) == len(names)
    assert all(status.message.endswith(".") for status in Status)
    assert str(Status("max_iter")) == "max_iter"


def test_derived_fields_follow_the_coefficients():
    result = make_result()
    assert result.support.tolist() == [1, 3]
    assert result.support.dtype == np.int64
    assert result.n_nonzero == 2
    assert result.message == Status.CONVERGED.message


@pytest.mark.parametrize(
    ("objective", "lower_bound", "gap"),
    [(4.0, None, None), (4.0, 3.0, 0.25), (4.0, 4.0, 0.0), (4.0, 4.1, 0.0), (0.0, 0.0, 0.0),
     (0.0, -1.0, np.inf), (-2.0, -3.0, 0.5)],
)  # fmt: skip
def test_gap_is_relative_to_the_objective(objective, lower_bound, gap):
    assert make_result(objective=objective, lower_bound=lower_bound).gap == gap


def test_repr_is_one_short_line():
    text = repr(make_result(lower_bound=3.0))
    assert text == (
        "Result(objective=4, n_nonzero=2 of 4, status=converged, gap=0.25, n_iter=12, seconds=0.25)"
    )
    assert "gap" not in repr(make_result())


def test_summary_in_plain_words():
    text = make_result(lower_bound=3.0, certificate="block-2 stationary").summary()
    assert text.splitlines() == [
        "2 of 4 columns selected by method 'dec': 1, 3",
        "objective   4",
        "lower bound 3 (gap 25.00%)",
        "status      Converged: the search found no further improvement.",
        "effort      12 iterations in 0.25 s",
        "certificate block-2 stationary",
    ]
    assert "selected: none" in make_result(coef=np.zeros(4), options={}).summary()
    assert (
        "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 8 more" in make_result(coef=np.ones(20)).summary()
    )


def test_history_becomes_arrays_of_equal_length():
    history = History([3, 2], [0, 1], [1.0, 2.0])
    assert len(history) == 2
    assert history.objective.dtype == np.float64
    assert history.n_nonzero.dtype == np.int64
    assert len(History()) == 0
    assert repr(history) == "History(2 points)"
    with pytest.raises(ValueError, match="equal length"):
        History([1.0], [], [1])


def test_frozen_and_picklable():
    result = make_result()
    with pytest.raises(AttributeError):
        result.objective = 0.0
    again = pickle.loads(pickle.dumps(result))
    assert again.status is Status.CONVERGED
    np.testing.assert_array_equal(again.coef, result.coef)
    np.testing.assert_array_equal(again.history.objective, result.history.objective)
