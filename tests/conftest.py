"""Fixtures shared by all tests: every random number comes from a fixed seed."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest

# the same examples in every run, and no deadline: a first call may wait for the compiler
hypothesis.settings.register_profile("blockl0", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("blockl0")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20200823)
