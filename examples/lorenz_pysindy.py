"""Which terms are in the Lorenz equations, read off a noisy trajectory?

pysindy builds a library of the 20 monomials up to degree three and estimates derivatives; blockl0
chooses the terms of each equation, as many as EBIC asks for.

Needs pysindy. Run it with ``python examples/lorenz_pysindy.py``.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.integrate import solve_ivp

from blockl0 import SINDyL0

STEP = 0.002


def lorenz(t: float, u: np.ndarray) -> list[float]:
    """Compute the right-hand side with its usual constants."""
    x, y, z = u
    return [10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z]


def main() -> None:
    """Simulate, add noise, and compare with pysindy's default optimizer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pysindy as ps

    times = np.arange(0.0, 10.0, STEP)
    clean = solve_ivp(lorenz, (0.0, 10.0), [-8.0, 8.0, 27.0], t_eval=times, rtol=1e-9).y.T
    noisy = clean + 0.2 * np.random.default_rng(0).standard_normal(clean.shape)

    optimizers = {
        "STLSQ, pysindy's default": ps.STLSQ(),
        "best subset by EBIC": SINDyL0(6, criterion="ebic", effort="fast"),
    }
    for name, optimizer in optimizers.items():
        model = ps.SINDy(
            optimizer=optimizer,
            feature_library=ps.PolynomialLibrary(degree=3),
            differentiation_method=ps.SmoothedFiniteDifference(
                smoother_kws={"window_length": 31, "polyorder": 3}
            ),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(noisy, t=STEP, feature_names=["x", "y", "z"])
        print(f"{name}: {model.complexity} terms (7 are true)")
        for variable, equation in zip("xyz", model.equations(precision=2), strict=True):
            print(f"  {variable}' = {equation}")


if __name__ == "__main__":
    main()
