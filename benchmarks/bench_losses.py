"""Losses other than the squared one: objective and CPU time of the default search.

    python benchmarks/bench_losses.py --out new.jsonl --seeds 9101 9102
    python benchmarks/bench_losses.py --compare old.jsonl new.jsonl

The first command, run on two versions of the package, writes a line for each problem: five losses,
three shapes, budgets and prices, efforts "fast" and "balanced". The second prints the gaps of both
to the best objective of all rows of a problem, and the ratio of their times.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import blockl0

SHAPES = ((200, 60), (300, 1000), (1500, 150))
LOSSES = ("logistic", "poisson", "gamma", "squared_hinge", "softmax")
BUDGETS, SHARES = (5, 12), (0.1, 0.03)
"""Columns, and prices as shares of the best single gain."""
RIDGE, CORRELATION, N_NONZERO = 0.1, 0.6, 12
LIMIT = 40.0
"""Seconds for one call."""
SAME = 1e-4
"""Relative difference below which objectives count as the same."""


def draw(seed: int, m: int, n: int, loss: str) -> tuple[np.ndarray, np.ndarray]:
    """Draw autoregressive columns, twelve of which matter, and a target for the loss."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n))
    for j in range(1, n):
        X[:, j] = CORRELATION * X[:, j - 1] + np.sqrt(1.0 - CORRELATION**2) * X[:, j]
    chosen = rng.choice(n, N_NONZERO, replace=False)
    signs = rng.choice([-1.0, 1.0], N_NONZERO)
    eta = X[:, chosen] @ (rng.uniform(0.3, 1.0, N_NONZERO) * signs)
    eta *= (1.5 if loss in ("logistic", "squared_hinge") else 0.6) / eta.std()
    if loss in ("logistic", "squared_hinge"):
        return X, np.where(rng.random(m) < 1.0 / (1.0 + np.exp(-eta)), 1.0, -1.0)
    if loss == "poisson":
        return X, rng.poisson(np.exp(eta)).astype(float)
    if loss == "gamma":
        return X, rng.gamma(2.0, np.exp(eta) / 2.0) + 1e-9
    return X, np.digitize(eta + rng.logistic(size=m), [-0.7, 0.7]).astype(float)


def forms(X: np.ndarray, y: np.ndarray, loss: str) -> list[tuple[str, dict[str, Any]]]:
    """Return budgets and prices with a name each."""
    given = {"loss": loss, "ridge": RIDGE, "effort": "fast", "random_state": 0}
    none, one = (blockl0.solve(X, y, n_nonzero_coefs=k, **given).objective for k in (0, 1))
    # low prices of wide data take in more columns than there are rows
    shares = SHARES[:1] if X.shape[1] > len(X) else SHARES
    return [(f"k={k}", {"n_nonzero_coefs": k}) for k in BUDGETS] + [
        (f"price={share}", {"alpha": share * (none - one)}) for share in shares
    ]


def measure(out: Path, seeds: list[int]) -> None:
    """Write one line for each problem and effort, the first call of each kind not timed."""
    warm = set()
    with open(out, "w", encoding="utf-8") as file:
        for seed, (m, n), loss in itertools.product(seeds, SHAPES, LOSSES):
            X, y = draw(seed, m, n, loss)
            for (name, form), effort in itertools.product(forms(X, y, loss), ("fast", "balanced")):
                given = {"loss": loss, "ridge": RIDGE, "effort": effort, "random_state": 1, **form}
                if (loss, effort, next(iter(form))) not in warm:
                    warm.add((loss, effort, next(iter(form))))
                    blockl0.solve(X[:, :60], y, **given)
                began = time.process_time()
                result = blockl0.solve(X, y, time_limit=LIMIT, **given)
                seconds = time.process_time() - began
                key = [seed, m, n, loss, name, effort]
                file.write(json.dumps([key, result.objective, seconds]) + "\n")
                file.flush()


def compare(old: Path, new: Path) -> None:
    """Print gaps to the best known objective, and ratios of times, by effort and form."""
    rows = []
    for path in (old, new):
        lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        rows.append({tuple(key): (objective, seconds) for key, objective, seconds in lines})
    common = [key for key in rows[0] if key in rows[1]]
    best: dict[tuple, float] = {}
    for key in common:
        least = min(row[key][0] for row in rows)
        best[key[:-1]] = min(best.get(key[:-1], np.inf), least)
    for effort, form in itertools.product(("fast", "balanced"), ("k", "price")):
        keys = [key for key in common if key[-1] == effort and key[-2].startswith(form)]
        if not keys:
            continue
        gaps = [np.array([row[key][0] / best[key[:-1]] - 1.0 for key in keys]) for row in rows]
        times = [np.array([row[key][1] for key in keys]) for row in rows]
        mean = " -> ".join(f"{np.mean(gap):.3%}" for gap in gaps)
        worst = " -> ".join(f"{np.max(gap):.2%}" for gap in gaps)
        above = " -> ".join(f"{np.count_nonzero(gap > SAME)}" for gap in gaps)
        ratio = np.exp(np.log(times[1] / times[0]).mean())
        print(
            f"{effort:9} {form:6} {len(keys):4} problems  mean gap {mean}  worst {worst}  "
            f"above best {above}  time x {ratio:.2f}"
        )


def main() -> None:
    """Measure, or compare two measurements."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[9101, 9102])
    parser.add_argument("--compare", type=Path, nargs=2)
    given = parser.parse_args()
    if given.compare:
        compare(*given.compare)
    elif given.out:
        measure(given.out, given.seeds)
    else:
        parser.error("give --out FILE, or --compare OLD NEW")


if __name__ == "__main__":
    main()
