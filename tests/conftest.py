"""Fixtures shared by all tests: every random number comes from a fixed seed."""

from __future__ import annotations

import signal

import hypothesis
import numpy as np
import pytest

# a run in the background of a shell ignores Ctrl-C, and so would the programs that the tests start
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# the same examples in every run, and no deadline: a first call may wait for the compiler
hypothesis.settings.register_profile("blockl0", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("blockl0")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20200823)


EXPENSIVE = {"reproduced", "installed", "report"}
"""Fixtures of a module that take seconds."""


@pytest.hookimpl(tryfirst=True)  # before xdist reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With several workers (--dist loadgroup), make an expensive fixture on one of them only."""
    for item in items:
        for name in EXPENSIVE.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.xdist_group(f"{item.path.stem}-{name}"))
