"""How few random measurements determine a signal made of ten waves?

A signal of 256 samples is a sum of ten cosines. It is measured by random projections, and recovered
from them by sparse coding in the cosine dictionary: best subset against matching pursuit.

Run it with ``python examples/compressed_sensing.py``.
"""

from __future__ import annotations

import numpy as np
from scipy.fft import idct
from sklearn.linear_model import orthogonal_mp

from blockl0 import sparse_encode

LENGTH, WAVES, TRIALS = 256, 10, 8


def main() -> None:
    """Recover from more and more measurements; count the successes."""
    rng = np.random.default_rng(0)
    cosines = idct(np.eye(LENGTH), norm="ortho", axis=0)  # one wave per column

    print(f"exact recoveries of {TRIALS} signals of {WAVES} waves among {LENGTH}\n")
    print("measurements   best subset   matching pursuit")
    for n_measurements in (30, 40, 50, 64):
        sensing = rng.standard_normal((n_measurements, LENGTH)) / np.sqrt(n_measurements)
        dictionary = (sensing @ cosines).T  # what each wave looks like to the sensors
        waves = np.zeros((TRIALS, LENGTH))
        for row in waves:
            row[rng.choice(LENGTH, WAVES, replace=False)] = rng.uniform(1.0, 2.0, WAVES)
        measured = waves @ dictionary
        # all signals share one dictionary: its inner products are computed once
        ours = sparse_encode(
            measured, dictionary, n_nonzero_coefs=WAVES, effort="fast", random_state=0
        )
        omp = orthogonal_mp(dictionary.T, measured.T, n_nonzero_coefs=WAVES).T
        hits = [np.sum(np.abs(code - waves).max(axis=1) < 1e-6) for code in (ours, omp)]
        print(f"{n_measurements:12d} {hits[0]:13d} {hits[1]:18d}")


if __name__ == "__main__":
    main()
