"""The instances: what data, which sizes of support, and the cache they are read from.

Every data set is made once and kept as two .npy files, X in Fortran order and float64, so that all
methods of all environments see the same bits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Data = tuple[Floats, Floats]

HERE = Path(__file__).resolve().parent
CACHE = HERE / ".cache"
E2006_VARIABLE = "BLOCKL0_E2006"
E2006_SHARED = HERE.parents[1].parent / "shared" / "data" / "E2006_5000_10000.mat"

PAPER_SIZES = (20, 48)
ALL_PAPER_SIZES = tuple(range(3, 51, 5))
PAPER_PRICES = (1.0, 10.0, 100.0, 1000.0)
SEEDS, JUDGED_BUDGETS = (0, 1, 2), (61, 62, 63)
"""Draws for budgets: those that constants were chosen on, and those that only judge."""
TUNED_SEEDS, JUDGED_SEEDS = (200, 210, 301, 302, 303, 304), (202, 203)
"""The same for the price form."""

HT_SETTINGS = ((100, 10, 5), (500, 100, 5), (50, 1000, 5), (100, 1000, 10))
HT_RHO = 0.35
HT_SNR = (0.1, 1.0, 6.0)


@dataclass(frozen=True)
class Family:
    """Data sets that are judged together: one maker (seed -> X, y) per variant."""

    name: str
    group: str
    sizes: tuple[int, ...]
    variants: dict[str, Callable[[int], Data]]
    needs_e2006: bool = False

    @property
    def is_paper(self) -> bool:
        """Whether this is one of the paper's eight sets."""
        return self.name.startswith(("random-", "e2006-"))


@dataclass(frozen=True)
class Instance:
    """One data set with a budget `s`, or with a price per nonzero."""

    family: Family
    variant: str
    seed: int
    s: int | None = None
    price: float | None = None

    @property
    def data_name(self) -> str:
        """Name of the data set, which is also its name in the cache."""
        variant = f"-{self.variant}" if self.variant else ""
        return f"{self.family.name}{variant}-seed{self.seed}"

    @property
    def name(self) -> str:
        """Name of the instance, the key of every result."""
        size = f"s{self.s}" if self.s is not None else f"price{self.price:g}"
        return f"{self.data_name}-{size}"

    def paths(self) -> tuple[Path, Path]:
        """The files of X and y; made now if they are not there yet."""
        files = CACHE / f"{self.data_name}-X.npy", CACHE / f"{self.data_name}-y.npy"
        if not all(file.exists() for file in files):
            CACHE.mkdir(parents=True, exist_ok=True)
            arrays = self.family.variants[self.variant](self.seed)
            for file, array in zip(files, arrays, strict=True):
                unfinished = file.with_suffix(".part.npy")
                np.save(unfinished, np.asfortranarray(array, dtype=np.float64))
                unfinished.replace(file)
        return files


def e2006_file() -> Path | None:
    """The file of e2006, from the environment or from the shared folder, if there is one."""
    given = os.environ.get(E2006_VARIABLE)
    file = Path(given).expanduser() if given else E2006_SHARED
    return file if file.is_file() else None


def _paper(kind: str, m: int, n: int, corrupted: bool) -> Callable[[int], Data]:
    """The paper's 'random-m-n' and 'e2006-m-n', and the corrupted versions."""

    def make(seed: int) -> Data:
        from blockl0 import datasets

        if kind == "random":
            return datasets.make_random(m, n, corrupted=corrupted, random_state=seed)
        X, y = datasets.load_e2006(
            m, n, corrupted=corrupted, random_state=seed, path=str(e2006_file())
        )
        return X.toarray(order="F"), y

    return make


def toeplitz_columns(m: int, n: int, rho: float, rng: np.random.Generator) -> Floats:
    """Normal columns of unit variance with correlation rho^|i-j|."""
    X = rng.standard_normal((n, m)).T
    for j in range(1, n):
        X[:, j] *= np.sqrt(1.0 - rho**2)
        X[:, j] += rho * X[:, j - 1]
    return X


def constant_columns(m: int, n: int, rho: float, rng: np.random.Generator) -> Floats:
    """Normal columns of unit variance in which any two have correlation rho."""
    common = rng.standard_normal(m)
    return np.sqrt(1.0 - rho) * rng.standard_normal((n, m)).T + np.sqrt(rho) * common[:, None]


def _normal_signal(columns: Callable, m: int, n: int, rho: float, k: int) -> Callable[[int], Data]:
    """k standard normal coefficients at random places, noise of standard deviation 1."""

    def make(seed: int) -> Data:
        rng = np.random.default_rng(seed)
        X, w = columns(m, n, rho, rng), np.zeros(n)
        w[rng.choice(n, k, replace=False)] = rng.standard_normal(k)
        return X, X @ w + rng.standard_normal(m)

    return make


def _ones_signal(
    m: int, n: int, rho: float, snr: float, where: NDArray[np.int64]
) -> Callable[[int], Data]:
    """Toeplitz columns, ones at the given places, noise variance w'Σw / snr."""

    def make(seed: int) -> Data:
        rng = np.random.default_rng(seed)
        X = toeplitz_columns(m, n, rho, rng)
        signal = X[:, where].sum(axis=1)
        variance = np.sum(rho ** np.abs(np.subtract.outer(where, where)))
        return X, signal + np.sqrt(variance / snr) * rng.standard_normal(m)

    return make


def _spread(n: int, k: int) -> NDArray[np.int64]:
    """k places at equal distances, ends included."""
    return np.linspace(0, n - 1, k).round().astype(int)


def _paper_families(sizes: tuple[int, ...]) -> Iterator[Family]:
    for corrupted in (False, True):
        for kind, m, widths in (("random", 256, (1024, 2048)), ("e2006", 5000, (1024, 2048))):
            for n in widths:
                suffix = "-C" if corrupted else ""
                yield Family(
                    f"{kind}-{m}-{n}{suffix}",
                    f"{kind}{suffix}",
                    sizes,
                    {"": _paper(kind, m, n, corrupted)},
                    needs_e2006=kind == "e2006",
                )


def _hastie_tibshirani() -> Iterator[Family]:
    """The grid of Hastie, Tibshirani & Tibshirani (2020): "beta type 2", the first s are ones."""
    for m, n, s in HT_SETTINGS:
        variants = {f"snr{snr:g}": _ones_signal(m, n, HT_RHO, snr, np.arange(s)) for snr in HT_SNR}
        yield Family(f"ht-{m}-{n}", "Hastie-Tibshirani", (s,), variants)


def families(sizes: tuple[int, ...] = PAPER_SIZES) -> list[Family]:
    """All families, the paper's first; `sizes` are the budgets of the paper's sets."""
    ar = _normal_signal(toeplitz_columns, 100, 1000, 0.9, 20)
    constant = _normal_signal(constant_columns, 200, 2000, 0.5, 20)
    toeplitz = _ones_signal(500, 1000, 0.9, 5.0, _spread(1000, 10))
    large = _ones_signal(1000, 20_000, 0.5, 1.0, _spread(20_000, 30))
    return [
        *_paper_families(sizes),
        Family("ar0.9-100-1000", "correlated", (20,), {"": ar}),
        Family("constant0.5-200-2000", "correlated", (20,), {"": constant}),
        Family("toeplitz0.9-500-1000", "correlated", (10,), {"": toeplitz}),
        Family("large-1000-20000", "correlated", (30,), {"": large}),
        *_hastie_tibshirani(),
    ]


def available(chosen: list[Family]) -> list[Family]:
    """The families whose data can be had; what is missing is said loudly."""
    if e2006_file() is None:
        lost = [family.name for family in chosen if family.needs_e2006]
        if lost:
            print(
                f"!!! e2006 is NOT in this run ({', '.join(lost)}): set {E2006_VARIABLE} to "
                "E2006_5000_10000.mat or E2006.train"
            )
        return [family for family in chosen if not family.needs_e2006]
    return chosen


def budget_instances(sizes: tuple[int, ...], seeds: tuple[int, ...]) -> list[Instance]:
    """Every available family, variant, seed and budget."""
    return [
        Instance(family, variant, seed, s=s)
        for family in available(families(sizes))
        for variant in family.variants
        for seed in seeds
        for s in family.sizes
    ]


def price_instances(seeds: tuple[int, ...]) -> list[Instance]:
    """The paper's sets at its prices."""
    chosen = available([family for family in families() if family.is_paper])
    return [
        Instance(family, "", seed, price=price)
        for family in chosen
        for seed in seeds
        for price in PAPER_PRICES
    ]


def paper_instances(seeds: tuple[int, ...]) -> list[Instance]:
    """The paper's sets at all its budgets and all its prices."""
    chosen = available([family for family in families() if family.is_paper])
    return [
        instance
        for family in chosen
        for seed in seeds
        for instance in (
            *(Instance(family, "", seed, s=s) for s in ALL_PAPER_SIZES),
            *(Instance(family, "", seed, price=price) for price in PAPER_PRICES),
        )
    ]
