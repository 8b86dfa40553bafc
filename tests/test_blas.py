"""Threads of the BLAS: one in every run, all for large products, as before afterwards."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

import blockl0
from blockl0.blas import MANY, all_blas_threads, cubic, one_blas_thread
from blockl0.losses import Logistic

BLAS = ThreadpoolController().select(user_api="blas")


def numbers() -> list[int]:
    return [library.get_num_threads() for library in BLAS.lib_controllers]


@pytest.fixture(autouse=True)
def three_threads() -> Iterator[list[int]]:
    with BLAS.limit(limits=3):
        given = numbers()
        if max(given, default=1) == 1:
            pytest.skip("this BLAS has one thread: its limits were NOT tested")
        yield given


@pytest.mark.parametrize(
    "door",
    [
        lambda X, y, look: blockl0.solve(X, y, n_nonzero_coefs=2, callback=look),
        lambda X, y, look: blockl0.solve(X, y, n_nonzero_coefs=2, method="dec", callback=look),
        lambda X, y, look: blockl0.solve(X, y, alpha=1.0, method="exact", callback=look),
        lambda X, y, look: blockl0.l0_path(X, y, n_nonzero_coefs=3, callback=look),
        lambda X, y, look: blockl0.L0RegressorCV(cv=2, scoring=look).fit(X, y),
        lambda X, y, look: blockl0.L0Classifier(2, loss=Watched(look)).fit(X, y > 0),
    ],
)
def test_every_run_has_one_thread(rng, three_threads, door):
    X = rng.standard_normal((40, 8))
    found = []
    door(X, X[:, 0] + rng.standard_normal(40), lambda *args: found.append(numbers()) or 0.0)
    assert found
    assert all(number == 1 for here in found for number in here)
    assert numbers() == three_threads


class Watched(Logistic):
    takes_many_classes = False

    def __init__(self, look):
        self.look = look

    def gradient(self, eta, y):
        self.look()
        return super().gradient(eta, y)


def test_an_error_gives_the_threads_back(three_threads):
    with pytest.raises(ValueError, match="n_nonzero_coefs"):
        blockl0.solve(np.eye(3), np.ones(3), n_nonzero_coefs=-1)
    assert numbers() == three_threads


def test_large_products_have_all_threads(three_threads):
    with one_blas_thread():
        with all_blas_threads(MANY - 1):
            assert max(numbers()) == 1
        with one_blas_thread(), all_blas_threads(MANY):
            assert numbers() == three_threads
        assert max(numbers()) == 1
        lifted = cubic(1.0)(lambda A: numbers())
        size = round(MANY ** (1 / 3)) + 1
        assert lifted(np.broadcast_to(0.0, (size, size))) == three_threads
        assert max(lifted(np.zeros((2, 2)))) == 1
    assert numbers() == three_threads


def test_runs_at_the_same_time_share_the_limit(three_threads):
    begun, end = threading.Event(), threading.Event()

    def run() -> None:
        with one_blas_thread():
            begun.set()
            end.wait(10)

    other = threading.Thread(target=run)
    with one_blas_thread():
        other.start()
        assert begun.wait(10)
        with all_blas_threads(MANY):
            assert max(numbers()) == 1
    assert max(numbers()) == 1
    end.set()
    other.join()
    assert numbers() == three_threads


def test_threads_of_one_core_are_left_alone():
    with BLAS.limit(limits=1):
        with one_blas_thread(), all_blas_threads(MANY):
            assert max(numbers()) == 1
        assert max(numbers()) == 1
