"""Best-subset selection and ℓ0-sparse optimization by block decomposition.

min_w f(Xw; y) + ½·ridge·‖w‖² + alpha·‖w‖₀  subject to  ‖w‖₀ <= n_nonzero_coefs
"""

from blockl0._version import __version__
from blockl0.block_search import block_search
from blockl0.certificate import Certificate, certify
from blockl0.result import History, Result, Status
from blockl0.solve import solve

__all__ = [
    "Certificate",
    "History",
    "Result",
    "Status",
    "__version__",
    "block_search",
    "certify",
    "solve",
]
