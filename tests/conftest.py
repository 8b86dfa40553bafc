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


@pytest.fixture
def no_enumeration(monkeypatch):
    """Few columns are searched as many are: all subsets are never looked at one by one."""
    for name in ("MOST_COLUMNS", "MOST_SUPPORTS"):
        monkeypatch.setattr(f"blockl0.exact.few_columns.{name}", -1)
