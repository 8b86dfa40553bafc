"""The former place of the working sets of method "dec"."""

from blockl0.dec.working_set import (
    Checked,
    Cyclic,
    RandomGreedy,
    WorkingSet,
    as_working_set,
    draw_distinct,
)

__all__ = ["Checked", "Cyclic", "RandomGreedy", "WorkingSet", "as_working_set", "draw_distinct"]
