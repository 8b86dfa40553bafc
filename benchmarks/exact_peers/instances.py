"""The instances: generators, and the catalogue with the seconds aimed at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Data = tuple[Floats, Floats]


@dataclass(frozen=True)
class Instance:
    """One problem, for any seed.

    Attributes
    ----------
    name : str
    make : callable
        Makes X and y from a seed.
    seeds : tuple of int
        The seeds that are run unless others are asked for.
    drawn : bool
        Whether other seeds give other data.
    k : int or None
        The budget.
    price : float or None
        The price of a nonzero; the other form.
    ridge : float
    loss : str
    intercept : bool
        Fit one, through the estimator.
    target : float or None
        CPU seconds in which the optimum should be proven for those seeds.
    okridge_ratio : float or None
        How many times quicker than OKRidge, where that has a proof.
    """

    name: str
    make: Callable[[int], Data]
    seeds: tuple[int, ...] = (1,)
    drawn: bool = True
    k: int | None = None
    price: float | None = None
    ridge: float = 0.0
    loss: str = "squared"
    intercept: bool = False
    target: float | None = None
    okridge_ratio: float | None = None

    @property
    def form(self) -> dict[str, Any]:
        """The budget or the price, as `blockl0.solve` takes it."""
        return {"alpha": self.price} if self.k is None else {"n_nonzero_coefs": self.k}


def equicorrelated(seed: int, m: int, n: int, rho=0.5, snr=5.0, unit=False, k=10) -> Data:
    """Return the data G1 of Hazimeh, Mazumder and Saab: k coefficients of 1, equally spaced.

    ``unit``: X and y centred and scaled to unit norm.
    """
    rng = np.random.RandomState(seed)  # the published data come from this generator
    w = np.zeros(n)
    w[[int(i * n / k) for i in range(k)]] = 1.0
    X = rng.normal(size=(m, n)) + np.sqrt(rho / (1 - rho)) * rng.normal(size=(m, 1))
    signal = X @ w
    y = signal + np.std(signal, ddof=1) / np.sqrt(snr) * rng.normal(size=m)
    if unit:
        X -= X.mean(axis=0)
        X /= np.linalg.norm(X, axis=0)
        y -= y.mean()
        y /= np.linalg.norm(y)
    return X, y


def toeplitz_columns(rng: np.random.Generator, m: int, n: int, rho: float) -> Floats:
    """Columns with correlation rho^|i−j|."""
    X = np.asfortranarray(rng.standard_normal((m, n)))
    for j in range(1, n):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    return X


def toeplitz(seed: int, m: int, n: int, rho: float, snr=10.0, k=10) -> Data:
    """Unit columns with correlation rho^|i−j|, k coefficients of ±1 equally spaced."""
    rng = np.random.default_rng(seed)
    X = toeplitz_columns(rng, m, n, rho)
    X /= np.linalg.norm(X, axis=0)
    w = np.zeros(n)
    w[[int(i * n / k) for i in range(k)]] = np.sign(rng.standard_normal(k))
    signal, noise = X @ w, rng.standard_normal(m)
    return X, signal + noise * np.sqrt(signal @ signal / snr / (noise @ noise))


def labels(seed: int, m: int, n: int, rho: float, k: int) -> Data:
    """Labels ±1 by a logistic model with k coefficients of 1.5."""
    rng = np.random.default_rng(seed)
    X = toeplitz_columns(rng, m, n, rho)
    w = np.zeros(n)
    w[[int(i * n / k) for i in range(k)]] = 1.5
    return X, np.where(rng.random(m) < 1 / (1 + np.exp(-X @ w)), 1.0, -1.0)


def autoregressive(seed: int, m: int, n: int, rho: float, sigma: float, n_true=10) -> Data:
    """Columns with correlation rho^|i−j|, `n_true` features with standard normal coefficients."""
    rng = np.random.default_rng(seed)
    X = toeplitz_columns(rng, m, n, rho)
    w = np.zeros(n)
    w[rng.choice(n, n_true, replace=False)] = rng.standard_normal(n_true)
    return X, X @ w + sigma * rng.standard_normal(m)


def breast_cancer(_seed: int) -> Data:
    """569 x 30, standardized; labels ±1."""
    from sklearn.datasets import load_breast_cancer

    data: Any = load_breast_cancer()
    X, y = data.data, data.target
    return (X - X.mean(axis=0)) / X.std(axis=0), np.where(y == 1, 1.0, -1.0)


def _large() -> list[Instance]:
    def g1(name, m, n, ridge=0.1, target=None, ratio=None, **data):
        make = partial(equicorrelated, m=m, n=n, **data)
        name = f"g1-{m}x{n}{name}"
        return Instance(name, make, k=10, ridge=ridge, target=target, okridge_ratio=ratio)

    def unit(ridge, target):
        return g1(f"-ridge{ridge}", 1000, 10000, ridge, target, rho=0.0, snr=10.0, unit=True)

    def prices(price, target):
        make = partial(toeplitz, m=500, n=1000, rho=0.9)
        name = f"toeplitz-500x1000-price{price}"
        return Instance(name, make, price=price, ridge=0.05, target=target)

    return [
        g1("", 2000, 1000, ratio=10.0),
        g1("", 6000, 3000, target=8.0),
        g1("-snr2", 2000, 1000, target=5.0, snr=2.0),
        unit(0.0316, 3.0),
        unit(0.02, 10.0),
        prices(0.1, 2.0),
        prices(0.05, None),
        g1("-ridge200", 500, 1000, 200.0),
        g1("-ridge100", 500, 1000, 100.0, 10.0),
        g1("-ridge50", 500, 1000, 50.0),
        g1("-ridge10", 500, 1000, 10.0),
        g1("", 1400, 1000, target=20.0),
        g1("", 1100, 1000),
    ]


def _classification() -> list[Instance]:
    def wide(ridge, target):
        make = partial(labels, m=500, n=2000, rho=0.5, k=5)
        name = f"logistic-500x2000-ridge{ridge:g}"
        return Instance(name, make, (0,), k=5, ridge=ridge, loss="logistic", target=target)

    cancer = partial(
        Instance, make=breast_cancer, seeds=(0,), drawn=False, ridge=1.0, loss="logistic"
    )
    return [
        wide(10.0, 1.0),
        wide(5.0, 5.0),
        cancer("breast-cancer", k=5, target=5.0),
        cancer("breast-cancer-intercept", k=5, intercept=True, target=5.0),
        # no price leads to five columns; this one to six
        cancer("breast-cancer-price3", price=3.0),
    ]


def _small() -> list[Instance]:
    # several prices: near the level of the noise many supports are almost optimal
    rows = []
    for m, n, rho, sigma, prices in (
        (200, 60, 0.6, 2.0, (10.0,)),
        (200, 100, 0.6, 2.0, (10.0, 15.0)),
        (2000, 500, 0.5, 3.0, (40.0, 60.0, 80.0)),
    ):
        make = partial(autoregressive, m=m, n=n, rho=rho, sigma=sigma)
        family = partial(Instance, make=make, seeds=tuple(range(5)), target=10.0)
        rows.append(family(f"ar-{m}x{n}-k10", k=10))
        rows += [family(f"ar-{m}x{n}-price{price:g}", price=price) for price in prices]
    return rows


INSTANCES = (*_large(), *_classification(), *_small())
