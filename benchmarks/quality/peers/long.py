"""Long runs of blockl0 from another seed, for the best known objectives."""

from __future__ import annotations

import blockl0

EFFORT = 400

METHODS = {
    "blockl0-long": lambda X, y, s: (
        blockl0.solve(X, y, n_nonzero_coefs=s, random_state=12345, effort=EFFORT).support
    )
}
