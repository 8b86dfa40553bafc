"""The main job of blockl0, end to end, on data that need no download.

The story is in ``blockl0.app.demo``, where it can be read: solve, certify, compare, report. Run it
with ``make demo``, ``blockl0 demo`` or ``python examples/demo.py``; the page goes to
``demo_output``.
"""

from __future__ import annotations

from blockl0.app.demo import run

if __name__ == "__main__":
    run("demo_output", force=True)
