"""Constants of the convergence theory of the paper, as plain functions.

Notation: ``f`` is convex with an ``L``-Lipschitz gradient (``lipschitz``), ``sigma``-strongly
convex where stated; Algorithm 1 draws blocks of ``k`` of the ``n`` coordinates uniformly and adds
the proximal term ``theta/2 ||z - x||^2``; ``gap = F(x^0) - F(x_bar)``; ``price`` is lambda.

The functions named after a symbol of the paper evaluate the paper's formula as printed. Four of
the proofs do not carry those formulas; each docstring says so, and where a short correct argument
exists the function next to it (``safe_...``) gives the bound that does hold. The main slip: the
proofs take the expectation over the block ``B`` as if ``x^{t+1}`` did not depend on ``B``, which
is true only for ``k = n``. ``docs/theory.md`` tells the whole story.

A value out of range raises ``ValueError``, a wrong type ``TypeError``; every function is O(1), or
O(n) where it reads a vector.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from blockl0.validate import check_integer, check_nonnegative, check_number, check_positive

__all__ = [
    "decrease_per_change",
    "distance_bound",
    "gap_bound",
    "has_sufficient_decrease",
    "iterations_convex",
    "iterations_strongly_convex",
    "linear_rate",
    "max_support_changes",
    "nonzero_bound",
    "nu",
    "safe_iterations_convex",
    "safe_linear_rate",
    "total_iterations_convex",
    "total_iterations_strongly_convex",
]


def _positive(**values: float) -> None:
    """Raise unless every value is a finite number > 0."""
    for name, value in values.items():
        check_positive(name, value)


def _nonnegative(**values: float) -> None:
    """Raise unless every value is a finite number >= 0."""
    for name, value in values.items():
        check_nonnegative(name, value)


def _block_size(n: int, k: int) -> None:
    """Raise unless n and k are integers with 1 <= k <= n."""
    check_integer("k", k, 1, check_integer("n", n, 1), "n")


def _rate(alpha: float) -> None:
    """Raise unless 0 < alpha < 1."""
    if not 0 < check_number("alpha", alpha) < 1:
        raise ValueError(f"`alpha` must lie strictly between 0 and 1, got {alpha:g}.")


def has_sufficient_decrease(
    before: float, after: float, step: ArrayLike, *, theta: float, rtol: float = 1e-10
) -> bool:
    """Check ``F(x+) <= F(x) - theta/2 ||x+ - x||^2`` (global convergence, part a) up to rounding.

    ``step`` is ``x+ - x``. The slack is ``rtol * max(1, |before|)``. It holds at every step of
    Algorithm 1, for any block, because ``z = x`` is feasible for the subproblem. ``theta = 0`` is
    allowed: then it is plain monotonicity.
    """
    _nonnegative(theta=theta, rtol=rtol)
    d = np.asarray(step, dtype=np.float64)
    return bool(after <= before - 0.5 * theta * float(d @ d) + rtol * max(1.0, abs(before)))


def linear_rate(n: int, k: int, *, sigma: float, theta: float) -> float:
    """Return ``alpha = w / (1 + w)`` with ``w = n theta / (k sigma)`` (Theorems 1 and 2c).

    Proven for ``k = n`` on a fixed support. For ``k < n`` the proof's step
    ``||grad f(x^{t+1})||^2 = n/k E||grad_B f(x^{t+1})||^2`` fails, because ``x^{t+1}`` depends on
    ``B``: the formula tends to 0 with ``theta``, that is, one random block would solve everything.
    Use `safe_linear_rate` for ``k < n``. (The proof also writes ``s`` where ``sigma`` is meant.)
    """
    _block_size(n, k)
    _positive(sigma=sigma, theta=theta)
    return 1.0 / (1.0 + k * sigma / (n * theta))


def safe_linear_rate(n: int, k: int, *, sigma: float, theta: float, lipschitz: float) -> float:
    """Return ``1 - k sigma / (n (theta + L))``, a linear rate valid for every ``k``.

    On a fixed support S the subproblem is at most its quadratic majorizer, so
    ``F(x+) <= F(x) - ||grad_B f(x)||^2 / (2 (theta + L))``; here ``x`` does not depend on ``B``, so
    ``E||grad_B f(x)||^2 = k/n ||grad_S f(x)||^2 >= (k/n) 2 sigma (F(x) - F_S)``, with ``F_S`` the
    minimum on S. Never below `linear_rate`; equal to it for ``k = n`` and ``sigma = L``.
    """
    _block_size(n, k)
    _positive(sigma=sigma, theta=theta, lipschitz=lipschitz)
    if sigma > lipschitz:
        raise ValueError(f"`sigma` must not exceed lipschitz={lipschitz:g}, got {sigma:g}.")
    return 1.0 - k * sigma / (n * (theta + lipschitz))


def gap_bound(t: int, *, gap: float, alpha: float, tau: float, theta: float) -> float:
    """Return ``gap alpha^t + tau alpha / (2 theta (1 - alpha))`` >= E[F(x^t) - F(x_bar)].

    Theorem 1 (budget form), with ``||grad f(x^t)||^2 <= tau`` for all t. With the paper's alpha
    the second term is ``n tau / (2 k sigma)``, whatever theta is; strong convexity alone gives
    ``F(x) - F(x_bar) <= tau / (2 sigma)`` for every point, so the bound is true, also for k < n
    where its proof is not, but it never says more than that one line.
    """
    check_integer("t", t)
    _nonnegative(gap=gap, tau=tau)
    _positive(theta=theta)
    _rate(alpha)
    return gap * alpha**t + tau / (2 * theta) * alpha / (1 - alpha)


def distance_bound(
    t: int, n: int, k: int, *, gap: float, alpha: float, tau: float, theta: float, sigma: float
) -> float:
    """Return a bound on ``E||x^{t+1} - x_bar||^2`` (Theorem 1, second part, corrected).

    ``(4 / sigma^2) (2 n theta/k gap alpha^t + (n/k) tau / (1 - alpha))``. The paper has
    ``4 / sigma``: from ``sigma/2 ||d|| <= ||grad f||`` follows ``sigma^2/4 ||d||^2 <=
    ||grad f||^2``, so its ``sigma/4`` needs ``sigma >= 1``. Assumes ``F(x_bar) <= F(x^{t+1})``.
    With that, the one line already gives ``||d||^2 <= 4 tau / sigma^2``; the bound is never below
    it, as ``n/k >= 1`` and ``1 - alpha < 1``. So it is true for every k, and says nothing more.
    """
    _block_size(n, k)
    check_integer("t", t)
    _nonnegative(gap=gap, tau=tau)
    _positive(theta=theta, sigma=sigma)
    _rate(alpha)
    right = 2 * n * theta / k * gap * alpha**t + n / k * tau / (1 - alpha)
    return 4 / sigma**2 * right


def nonzero_bound(
    *, price: float, theta: float, lipschitz: float, init: ArrayLike | None = None
) -> float:
    """Return ``delta = min(sqrt(2 price / (theta + L)), min |x^0_i|)`` (Theorem 2a).

    Every nonzero of every iterate of the price form is at least delta in magnitude. The minimum
    runs over the *nonzero* entries of ``init`` (the paper omits this; a zero would make delta 0);
    without ``init``, or when it is 0, only the first term counts, and that term alone bounds every
    entry some block update has touched.
    """
    _positive(price=price, lipschitz=lipschitz)
    _nonnegative(theta=theta)
    delta = math.sqrt(2 * price / (theta + lipschitz))
    magnitudes = np.abs(np.asarray([] if init is None else init, dtype=np.float64))
    if not np.all(np.isfinite(magnitudes)):
        raise ValueError("`init` must hold finite numbers only.")
    nonzero = magnitudes[magnitudes > 0]
    return min(delta, float(nonzero.min())) if nonzero.size else delta


def decrease_per_change(n: int, k: int, *, theta: float, delta: float) -> float:
    """Return ``D = k theta delta^2 / (2 n)`` (Theorem 2a).

    F falls by at least D whenever the *support* changes, not whenever x does as the theorem says:
    on a fixed support steps shrink to 0. The factor ``k/n`` is not needed: one entry moves between
    0 and at least delta, so every change gains ``theta delta^2 / 2`` with certainty, which is what
    ``k = n`` returns here.
    """
    _block_size(n, k)
    _positive(theta=theta, delta=delta)
    return k * theta * delta**2 / (2 * n)


def max_support_changes(*, gap: float, decrease: float) -> float:
    """Return ``J_bar = gap / D``, a bound on the number of support changes (Theorem 2a).

    Holds on every run, not only in expectation, when ``gap`` is taken to the run's own limit or to
    any lower bound of F. The paper says "the solution changes"; see `decrease_per_change`.
    """
    _nonnegative(gap=gap)
    _positive(decrease=decrease)
    return gap / decrease


def nu(n: int, k: int, *, rho: float, theta: float) -> float:
    """Return ``nu = 2 n rho sqrt(k) theta / k``, with ``||x^t||_inf <= rho`` (Theorem 2b)."""
    _block_size(n, k)
    _positive(rho=rho, theta=theta)
    return 2 * n * rho * theta / math.sqrt(k)


def _convex_numerator(gap: float, nu: float, theta: float) -> float:
    """Return ``max(4 nu^2/theta, sqrt(2 nu^2 gap/theta))``: Lemma 1 with C = 2 nu^2/theta."""
    return max(4 * nu**2 / theta, math.sqrt(2 * nu**2 * gap / theta))


def iterations_convex(*, gap: float, nu: float, theta: float, epsilon: float) -> float:
    """Return ``V_1``, iterations to ``F - F_bar <= epsilon`` on a fixed support (Theorem 2b).

    0 when ``gap <= epsilon`` already. Proven for ``k = n`` only, for the reason in `linear_rate`
    (V_1 tends to 0 with theta); see `safe_iterations_convex`. The theorem's ``V_1 J_bar`` for a
    support that changes leaves out the wait described in `total_iterations_convex`.
    """
    _nonnegative(gap=gap)
    _positive(nu=nu, theta=theta, epsilon=epsilon)
    return 0.0 if gap <= epsilon else _convex_numerator(gap, nu, theta) / epsilon


def safe_iterations_convex(
    n: int, k: int, *, rho: float, theta: float, lipschitz: float, epsilon: float
) -> float:
    """Return ``8 n^2 rho^2 (theta + L) / (k epsilon)``, valid on a fixed support for every k.

    With u = E[F(x^t) - F_bar]: convexity gives ``u <= ||grad|| R`` with ``R^2 <= 4 n rho^2``, and
    the decrease of `safe_linear_rate` gives ``u_t^2 <= C (u_t - u_{t+1})`` with
    ``C = 2 (theta + L) (n/k) R^2``, hence ``u_t <= C / t``.
    """
    _block_size(n, k)
    _positive(rho=rho, theta=theta, lipschitz=lipschitz, epsilon=epsilon)
    return 8 * n**2 * rho**2 * (theta + lipschitz) / (k * epsilon)


def iterations_strongly_convex(*, gap: float, alpha: float, epsilon: float) -> float:
    """Return ``V_2 = log_alpha(epsilon / gap)`` (Theorem 2c), 0 when ``gap <= epsilon``.

    Both the argument and the base are below 1, so the value is positive. ``alpha`` is
    `linear_rate` for ``k = n``, `safe_linear_rate` otherwise. After V_2 iterations the expected
    gap is below epsilon; the paper's "it holds that t <= log_alpha(...)" is to be read that way.
    ``V_2 J_bar`` for a support that changes leaves out the wait, as ``V_1 J_bar`` does.
    """
    _nonnegative(gap=gap)
    _positive(epsilon=epsilon)
    _rate(alpha)
    return 0.0 if gap <= epsilon else math.log(epsilon / gap) / math.log(alpha)


def total_iterations_convex(
    *, gap: float, nu: float, theta: float, decrease: float, epsilon: float
) -> float:
    """Return ``N_1 = (J_bar/D + 1/eps) max(4 nu^2/theta, sqrt(2 nu^2 (gap - D)/theta))``.

    Theorem 3a. When ``gap < D`` the support cannot change and V_1 is returned. The proof bounds
    the time between two support changes by the time to get within D of the optimum on the current
    support; it leaves out the wait until a block that improves is drawn, which can be C(n, k)
    iterations in expectation, with safe constants too. N_1 and N_2, and for the same reason
    ``V_1 J_bar`` and ``V_2 J_bar`` of Theorem 2, are therefore guides for ``k < n``, not theorems:
    all else fixed they grow like n^4, n^2 log n, n^3 and n^2, the wait like n^k.
    """
    _positive(nu=nu, theta=theta, decrease=decrease, epsilon=epsilon)
    changes = max_support_changes(gap=gap, decrease=decrease)
    if changes < 1 or gap <= epsilon:
        return iterations_convex(gap=gap, nu=nu, theta=theta, epsilon=epsilon)
    return (changes / decrease + 1 / epsilon) * _convex_numerator(gap - decrease, nu, theta)


def total_iterations_strongly_convex(
    *, gap: float, alpha: float, decrease: float, epsilon: float
) -> float:
    """Return ``N_2 = J_bar log_alpha(D / gap) + log_alpha(epsilon / (gap - D))`` (Theorem 3b).

    When ``gap < D`` the support cannot change and V_2 is returned; a negative second term (final
    gap already below epsilon) counts as 0. The remark of `total_iterations_convex` on the missing
    wait applies.
    """
    _positive(decrease=decrease, epsilon=epsilon)
    changes = max_support_changes(gap=gap, decrease=decrease)
    if changes < 1 or gap <= epsilon:
        return iterations_strongly_convex(gap=gap, alpha=alpha, epsilon=epsilon)
    before = changes * iterations_strongly_convex(gap=gap, alpha=alpha, epsilon=decrease)
    after = iterations_strongly_convex(gap=gap - decrease, alpha=alpha, epsilon=epsilon)
    return before + after
