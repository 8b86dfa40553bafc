"""Data of a linear model, as most tests need it: each file states its own once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from targets import as_target


@dataclass(frozen=True)
class Linear:
    """X with normal entries, and y = constant + Xw + noise, drawn anew by each call.

    Attributes
    ----------
    m, n : int
        The usual shape.
    coef : dict
        The columns of w that are not zero; those beyond n are left out.
    noise : float
    common : float
        Size of the part that all columns share: they are correlated.
    density : float, optional
        Share of the entries of X that are not zero.
    constant : float
    """

    m: int
    n: int
    coef: dict[int, float]
    noise: float = 1.0
    common: float = 0.0
    density: float | None = None
    constant: float = 0.0

    def __call__(self, m=None, n=None, seed=0, *, loss="squared", noise=None, density=None):
        """X (m, n), and y as the loss takes it."""
        m, n = self.m if m is None else m, self.n if n is None else n
        noise, density = (self.noise if noise is None else noise), density or self.density
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((m, n))
        if self.common:
            X += self.common * rng.standard_normal((m, 1))
        if density is not None:
            X *= rng.random((m, n)) < density
        coef = {j: value for j, value in self.coef.items() if j < n}
        eta = self.constant + X[:, list(coef)] @ list(coef.values())
        return X, as_target(loss, eta + noise * rng.standard_normal(m))
