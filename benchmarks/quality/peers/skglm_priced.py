"""skglm for a price: MCP and L0.5 paths, and of all their supports, re-fitted, the cheapest."""

from __future__ import annotations

from functools import partial

from skglm.penalties import L0_5

from ._support import cheapest_support
from .skglm import _mcp, path


def _fit(X, y, price, *, penalty):
    return cheapest_support(X, y, path(X, y, min(X.shape) - 1, penalty=penalty), price)


METHODS = {
    "skglm-mcp-prices": partial(_fit, penalty=_mcp),
    "skglm-l05-prices": partial(_fit, penalty=L0_5),
}
