"""Certificates: basic, L- or block-k stationary, outside fixed or re-fitted, complete or sampled.

`certify` is the entry point, `proof` records what is known of a point, and `words` puts both into
sentences. `stationarity` runs the tests; `move_search` finds the best change of a few columns by
branch and bound over `moves`, on the swept `move_tableau`.
"""

from blockl0.certify.certify import Certificate, certify, certify_problem
from blockl0.certify.levels import TOL

__all__ = ["TOL", "Certificate", "certify", "certify_problem"]
