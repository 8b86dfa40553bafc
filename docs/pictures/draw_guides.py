"""The picture of the page on choosing k."""

from __future__ import annotations

from typing import Any

import numpy as np

from blockl0 import L0RegressorCV
from style import ACCENT, GREEN, INK, axes


def selection() -> Any:
    """Cross-validated loss, BIC and EBIC along one path, on the data of the page."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 200)) + rng.standard_normal((120, 1))
    y = X[:, :4] @ np.array([2.0, -2.0, 1.5, -1.5]) + 2.0 * rng.standard_normal(120)
    model = L0RegressorCV(10, cv=5, rule="one_se", fit_intercept=False, random_state=0).fit(X, y)
    sizes, loss, error = model.path_.n_nonzero, -model.mean_scores_, model.se_scores_
    figure, (left, right) = axes(8.0, 3.4, ncols=2)
    left.errorbar(sizes, loss, error, fmt="o-", ms=4, color=INK, capsize=3)
    best = int(np.argmin(loss))
    left.axhline(loss[best] + error[best], color=INK, lw=0.8, ls=":")
    left.plot(sizes[best], loss[best], "o", ms=11, mfc="none", color=GREEN, label='rule "min"')
    chosen = model.best_index_
    left.plot(sizes[chosen], loss[chosen], "s", ms=11, mfc="none", color=ACCENT,
              label='rule "one_se"')  # fmt: skip
    left.set(xlabel="columns", ylabel="mean loss on five folds", ylim=(0, None))
    for name, colour in (("aic", INK), ("bic", GREEN), ("ebic", ACCENT)):
        values = model.path_.criterion(name)
        right.plot(sizes, values, "o-", ms=3, color=colour, label=name.upper())
        right.plot(sizes[values.argmin()], values.min(), "o", ms=10, mfc="none", color=colour)
    right.set(xlabel="columns", ylabel="criterion")
    for ax in (left, right):
        ax.legend(frameon=False)
    return figure


PICTURES = {"selection": selection}
