"""Best subsets of columns that lie on a card, beside the processor of the same machine.

    python -m benchmarks.gpu.run --shape 10000x2800000 --library torch
    python -m benchmarks.gpu.run --shape 1000x1000000 --library cupy --cpu
    python -m benchmarks.gpu.run --table

X is made on the card: columns in families of 64 that share a part, so that any two of a family are
correlated `--correlation`. The target is made of `--nonzeros` columns of different families, with
`--snr` the variance of the signal over that of the noise. Times are of the wall clock, the card's
work included; the kernels have been compiled before, on a small problem. `--table` makes all rows
of the table in README.md, each size and library in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from time import perf_counter
from typing import Any

import numpy as np

from blockl0 import solve
from blockl0.data.blocks import Blocks
from blockl0.data.source import opened
from blockl0.moves.pricing import price_supports
from blockl0.problem.problem import as_problem

FAMILY = 64
CHUNK = 1 << 14
BIG, SMALL = ("--shape", "10000x2800000"), ("--shape", "1000x1000000")
TABLE = (
    (*BIG, "--library", "torch", "--effort", "fast,balanced"),
    (*BIG, "--library", "cupy", "--effort", "fast,balanced"),
    (*BIG, "--library", "torch", "--dtype", "float16"),
    (*BIG, "--library", "torch", "--correlation", "0.9", "--snr", "0.05"),
    (*SMALL, "--library", "torch", "--effort", "fast,balanced", "--cpu"),
    (*SMALL, "--library", "cupy", "--effort", "fast,balanced", "--cpu"),
    (*SMALL, "--library", "torch", "--correlation", "0.9", "--snr", "0.5", "--cpu"),
)  # fmt: skip


class Torch:
    """Arrays of torch."""

    def __init__(self, device: str, seed: int, dtype: str) -> None:
        import torch

        self.xp, self.device, self.dtype = torch, device, getattr(torch, dtype)
        self.rng = torch.Generator(device=device).manual_seed(seed)

    def empty(self, m: int, n: int) -> Any:
        """Room for X (m, n), columns in one run each."""
        return self.xp.empty((n, m), dtype=self.dtype, device=self.device).T

    def normal(self, m: int, n: int) -> Any:
        """Standard normal numbers (m, n)."""
        how = {"dtype": self.xp.float32, "device": self.device, "generator": self.rng}
        return self.xp.randn((n, m), **how).T

    def repeat(self, A: Any) -> Any:
        """Every column `FAMILY` times."""
        return A.repeat_interleave(FAMILY, dim=1)

    def host(self, A: Any) -> Any:
        """A as an array of NumPy."""
        return A.cpu().numpy()

    def wait(self) -> None:
        """Until the card is done."""
        if self.device != "cpu":
            self.xp.cuda.synchronize()


class Cupy:
    """Arrays of CuPy."""

    def __init__(self, device: str, seed: int, dtype: str) -> None:
        import cupy

        self.xp, self.rng, self.dtype = cupy, cupy.random.default_rng(seed), dtype

    def empty(self, m: int, n: int) -> Any:
        """Room for X (m, n), columns in one run each."""
        return self.xp.empty((n, m), dtype=self.dtype).T

    def normal(self, m: int, n: int) -> Any:
        """Standard normal numbers (m, n)."""
        return self.rng.standard_normal((n, m), dtype=self.xp.float32).T

    def repeat(self, A: Any) -> Any:
        """Every column `FAMILY` times."""
        return self.xp.repeat(A, FAMILY, axis=1)

    def host(self, A: Any) -> Any:
        """A as an array of NumPy."""
        return A.get()

    def wait(self) -> None:
        """Until the card is done."""
        self.xp.cuda.Device().synchronize()


def make(library: Any, m: int, n: int, k: int, correlation: float, snr: float) -> tuple[Any, ...]:
    """X on the card, y here, and the columns that y is made of."""
    X, own, common = library.empty(m, n), np.sqrt(1.0 - correlation), np.sqrt(correlation)
    for start in range(0, n, CHUNK):
        size = min(CHUNK, n - start)
        shared = library.repeat(library.normal(m, -(-size // FAMILY)))[:, :size]
        X[:, start : start + size] = own * library.normal(m, size) + common * shared
    truth = np.linspace(0, n - 1, k).astype(np.int64)
    signal = sum(library.host(X[:, int(j)]).astype(np.float64) for j in truth)
    noise = np.random.default_rng(0).standard_normal(m) * np.sqrt(np.var(signal) / snr)
    return X, signal + noise, truth


def timed(call: Any, library: Any) -> tuple[Any, float]:
    """The answer and the seconds until the card is done with it, too."""
    library.wait()
    start = perf_counter()
    answer = call()
    library.wait()
    return answer, perf_counter() - start


def line(where: str, X: Any, y: Any, truth: Any, options: dict[str, Any], library: Any) -> dict:
    """One solve, and one pricing of all columns at its answer."""
    design = Blocks(opened(X)) if where != "processor" else X
    result, seconds = timed(lambda: solve(design, y, random_state=0, **options), library)
    problem = as_problem(design, y, n_nonzero_coefs=options["n_nonzero_coefs"])
    sq_norms = problem.design.sq_norms()
    point = result.coef, result.support
    price = lambda: price_supports(problem, sq_norms, [point])  # noqa: E731
    price()
    return {
        "where": where,
        "shape": "×".join(map(str, X.shape)),
        "entries": str(X.dtype).removeprefix("torch."),
        "effort": options["effort"],
        "seconds": round(seconds, 3),
        "one pricing": round(timed(price, library)[1], 3),
        "passes": result.n_passes,
        "certified": None if result.certificate is None else result.certificate.level,
        "found of the truth": f"{np.isin(truth, result.support).sum()} of {truth.size}",
        "objective": result.objective,
        "status": str(result.status),
    }


def make_table() -> None:
    """Every row of `TABLE`, in Markdown; what fails is said, and the others go on."""
    has_head = False
    for cell in TABLE:
        command = [sys.executable, "-m", "benchmarks.gpu.run", *cell]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(f"FAILED {' '.join(cell)}\n{done.stderr[-2000:]}", flush=True)
        for text in done.stdout.splitlines():
            found = json.loads(text)
            if "where" not in found:
                continue
            if not has_head:
                has_head = True
                print(f"| {' | '.join(found)} |\n|{'---|' * len(found)}")
            print(f"| {' | '.join(map(str, found.values()))} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--table", action="store_true", help="all rows of the table")
    parser.add_argument("--shape", default="1000x100000")
    parser.add_argument("--library", choices=["torch", "cupy"], default="torch")
    parser.add_argument("--dtype", choices=["float64", "float32", "float16"], default="float32")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--nonzeros", type=int, default=30)
    parser.add_argument("--correlation", type=float, default=0.5)
    parser.add_argument("--snr", type=float, default=2.0)
    parser.add_argument("--effort", default="fast", help="several, separated by commas")
    parser.add_argument("--cpu", action="store_true", help="once more on the processor, in float64")
    given = parser.parse_args()
    make_table() if given.table else run(given)


def run(given: argparse.Namespace) -> None:
    """One X, with every effort."""
    m, n = (int(part) for part in given.shape.split("x"))
    library = {"torch": Torch, "cupy": Cupy}[given.library](given.device, 1, given.dtype)
    small = make(library, 200, 4096, 3, given.correlation, given.snr)
    here = np.asarray(library.host(small[0]), dtype=np.float64)
    for X in (Blocks(opened(small[0])), here):
        solve(X, small[1], n_nonzero_coefs=3, effort="fast", pool=100, random_state=0)
    (X, y, truth), seconds = timed(
        lambda: make(library, m, n, given.nonzeros, given.correlation, given.snr), library
    )
    print(json.dumps({"made in": round(seconds, 1), "bytes": X.dtype.itemsize * m * n}), flush=True)
    own = {"correlation": given.correlation, "snr": given.snr}
    for effort in given.effort.split(","):
        options = {"n_nonzero_coefs": given.nonzeros, "effort": effort}
        found = line(given.library, X, y, truth, options, library)
        print(json.dumps(found | own), flush=True)
        if given.cpu:
            here = np.asfortranarray(library.host(X), dtype=np.float64)
            found = line("processor", here, y, truth, options, library)
            print(json.dumps(found | own), flush=True)


if __name__ == "__main__":
    main()
