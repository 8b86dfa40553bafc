"""Time and work limits of an exact search."""

from __future__ import annotations

import numpy as np

from blockl0.errors import OutOfTime
from blockl0.run import Clock

UNIT = 1e9
"""Multiplications that count as one unit: about what a core does in a second."""

DENSE = 0.2
"""Work of a multiplication in dense matrix operations, where a core does more."""


class Watch:
    """Says when a search must end: its time or its work is used up.

    Work is counted, not timed: approximate multiplications of passes, factorizations and nodes. A
    search limited by work alone ends at the same node on any machine, however busy.

    Parameters
    ----------
    clock : Clock, optional
        Without one, time is unlimited.
    work_limit : float
        In units of 1e9 multiplications.

    Attributes
    ----------
    work : float
        Multiplications so far.
    """

    def __init__(self, clock: Clock | None = None, work_limit: float = np.inf) -> None:
        self._clock, self._most, self.work = clock, UNIT * work_limit, 0.0

    grace = 0.0
    """None: what is not done in time is not needed."""

    @property
    def seconds_left(self) -> float:
        """Seconds to the limit, none where the work is done."""
        if self.is_spent:
            return -np.inf
        return np.inf if self._clock is None else self._clock.seconds_left

    @property
    def work_left(self) -> float:
        """Multiplications to the limit."""
        return self._most - self.work

    @property
    def is_spent(self) -> bool:
        """Whether the work is used up."""
        return self.work >= self._most

    def spend(self, multiplications: float) -> None:
        """Count work, before or after it is done."""
        self.work += multiplications

    def __call__(self) -> bool:
        """Check if the search must end."""
        return self.seconds_left <= 0.0

    def check(self) -> None:
        """Raise OutOfTime where the search must end."""
        if self():
            raise OutOfTime


NEVER = Watch()
"""For what is not to be cut short."""
