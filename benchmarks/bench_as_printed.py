"""What each deviation of method "dec" from the printed algorithm changes: objectives, iterations.

One option at a time is set to the paper's letter, on the paper's random sets and, with the path of
E2006_5000_10000.mat as BLOCKL0_E2006, on e2006-5000-1024. Printed are the objective over that of
the defaults (geometric mean, range) and the mean iterations. No times: a busy machine will do.
About two minutes on one core; run with OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import os

import numpy as np

import blockl0
from blockl0.datasets import load_e2006, make_random
from blockl0.dec.decomposition import AS_PRINTED
from blockl0.dec.working_set import RandomGreedy, draw_distinct

DRAWS, STARTS = 3, 2
BUDGETS, PRICES = (8, 20, 40), (1.0, 10.0, 100.0, 1000.0)


class Doubled:
    """R10G2 with greedy="paper", but d_j of the printed step α = x_j, which doubles x_j."""

    def select(self, state, rng):
        """Two by the scores, ten others."""
        w, support = state.w, np.flatnonzero(state.w)
        price, budget = state.problem.sparsity
        score = np.minimum(price - state.descent, 0.0) * (support.size < budget)
        v = w[support]
        score[support] = v * (0.5 * state.curvature[support] * v + state.gradient[support])
        greedy = np.argsort(score, kind="stable")[:2]
        rest = np.setdiff1d(np.arange(w.size), greedy)
        return np.concatenate([greedy, rest[draw_distinct(rng, rest.size, 10)]])


class Overlapping:
    """R10G2 with the ten random coordinates drawn from all, so that blocks may be smaller."""

    def select(self, state, rng):
        """Two by the scores, ten of all."""
        greedy = RandomGreedy(0, 2).select(state, rng)
        return np.union1d(greedy, draw_distinct(rng, state.w.size, 10))


VARIANTS = {
    "theta_scale=False": {"theta_scale": False},
    'greedy="ranked"': {"greedy": "ranked"},
    'greedy="paper"': {"greedy": "paper"},
    'greedy="paper", d doubles': {"working_set": Doubled()},
    'stopping="paper"': {"stopping": "paper"},
    "random ones from all": {"working_set": Overlapping()},
    "AS_PRINTED": AS_PRINTED,
}


def datasets():
    """Name and the draws of each set."""
    yield "random", [make_random(256, 1024, random_state=draw) for draw in range(DRAWS)]
    corrupted = {"corrupted": True, "corrupted_noise": True}
    yield "random-C", [make_random(256, 1024, random_state=d, **corrupted) for d in range(DRAWS)]
    if os.environ.get("BLOCKL0_E2006"):
        yield "e2006", [load_e2006(5000, 1024, random_state=draw) for draw in range(DRAWS)]


def main():
    print(
        f"{'set':<9} {'form':<7} {'variant':<26} {'mean':>6} {'least':>6} {'most':>7} {'iter.':>6}"
    )
    for name, draws in datasets():
        for form, values in (("n_nonzero_coefs", BUDGETS), ("alpha", PRICES)):
            cells = [
                (X, y, {form: value, "random_state": start})
                for X, y in draws
                for value in values
                for start in range(STARTS)
            ]
            results = {
                variant: [blockl0.solve(X, y, method="dec", **o, **options) for X, y, o in cells]
                for variant, options in {"default": {}, **VARIANTS}.items()
            }
            ours = np.array([result.objective for result in results["default"]])
            for variant, found in results.items():
                ratio = np.array([result.objective for result in found]) / ours
                iterations = np.mean([result.n_iter for result in found])
                print(
                    f"{name:<9} {'budget' if form != 'alpha' else 'price':<7} {variant:<26} "
                    f"{np.exp(np.log(ratio).mean()):6.2f} {ratio.min():6.2f} {ratio.max():7.2f} "
                    f"{iterations:6.0f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
