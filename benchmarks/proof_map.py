"""How long a proof takes, by size and ridge: the numbers behind the picture of docs/proofs.md.

Ten of n correlated columns (correlation 0.5 through one common factor) with coefficient one, signal
to noise 5, 1000 rows, budget 10. The ridge is given as a share of the mean squared length of the
columns. Run with OMP_NUM_THREADS=1; writes a CSV to standard output.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

import blockl0

ROWS, CHOSEN, SIGNAL_TO_NOISE = 1000, 10, 5.0
COLUMNS = (100, 300, 700, 1000, 3000, 10000, 30000)
RIDGES = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3)


def instance(n, seed):
    rng = np.random.default_rng(seed)
    X = np.asfortranarray(rng.standard_normal((ROWS, n)) + rng.standard_normal((ROWS, 1)))
    X -= X.mean(axis=0)
    X /= np.sqrt((X**2).sum(axis=0))
    signal = X[:, :: n // CHOSEN][:, :CHOSEN].sum(axis=1)
    noise = rng.standard_normal(ROWS)
    noise *= np.sqrt(signal @ signal / SIGNAL_TO_NOISE / (noise @ noise))
    return X, signal + noise


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=20.0, help="seconds for each cell")
    parser.add_argument("--seed", type=int, default=21)
    options = parser.parse_args()
    for n in (100, 300):  # compile both searches
        blockl0.solve(
            *instance(n, 0), n_nonzero_coefs=CHOSEN, ridge=0.3, method="exact", random_state=0
        )
    print("rows,columns,ridge,status,seconds,gap,nodes")
    for n in COLUMNS:
        X, y = instance(n, options.seed)
        for ridge in RIDGES:
            start = time.process_time()
            result = blockl0.solve(
                X, y, n_nonzero_coefs=CHOSEN, ridge=ridge, method="exact",
                time_limit=options.limit, random_state=0,
            )  # fmt: skip
            seconds = time.process_time() - start
            print(
                f"{ROWS},{n},{ridge:g},{result.status},{seconds:.3f},{result.gap:.3g},"
                f"{result.n_iter}"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
