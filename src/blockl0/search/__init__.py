"""Method "refit": searches whose support is re-fitted at every step; the default."""

from blockl0.search.search import solve_refit

__all__ = ["solve_refit"]
