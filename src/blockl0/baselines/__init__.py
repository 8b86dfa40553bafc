"""The methods of the paper's comparison, those that share an algorithm in one file.

Importing them registers them, see `blockl0.methods`: each is called as every method of
`blockl0.solve` is, method(problem, run, init=, rng=, **options).
"""

from blockl0.baselines import cvx_l1, greedy, proximal_gradient, pursuits, qpm
from blockl0.methods import METHODS

__all__ = [
    "BUDGET_BASELINES", "PRICE_BASELINES", "cvx_l1", "greedy", "proximal_gradient", "pursuits",
    "qpm",
]  # fmt: skip

BUDGET_BASELINES = {
    name: known.solve for name, known in METHODS.items() if known.forms == ("budget",)
}
"""For ‖w‖₀ <= n_nonzero_coefs."""

PRICE_BASELINES = {
    name: known.solve for name, known in METHODS.items() if known.forms == ("price",)
}
"""For alpha·‖w‖₀."""
