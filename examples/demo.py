"""The main job of blockl0, end to end, on data that needs no download.

Part 1 hides ten columns among 500 correlated ones, looks for them by block decomposition, asks for
a certificate, and compares with orthogonal matching pursuit (OMP). Part 2 proves the best subsets
of scikit-learn's diabetes data, every size from 1 to 10. A picture goes to
``demo_output/demo.png``.

Run it with ``make demo`` or ``python examples/demo.py``.
"""

from __future__ import annotations

import time
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import orthogonal_mp

import blockl0

matplotlib.use("Agg")
import matplotlib.pyplot as plt

PICTURE = Path("demo_output") / "demo.png"
BLUE, ORANGE, GREY = "#1f5fa8", "#d9730d", "#8a8a8a"
ROUNDS = 5
"""How often part 1 goes on from the better point that a failed certificate returns."""


def half_squares(X, y, w):
    """½‖y − Xw‖², the objective of this library (scikit-learn divides it by the sample count)."""
    return 0.5 * float(np.sum((y - X @ w) ** 2))


def make_correlated(m=200, n=500, n_true=10, rho=0.8, sigma=1.0, seed=1):
    """Columns with correlation rho^|i−j|, and a target made of `n_true` of them plus noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n))
    for j in range(1, n):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    start = int(rng.integers(n - 3 * n_true))
    true = start + 3 * np.arange(n_true)  # close together, which is what misleads a greedy method
    w = np.zeros(n)
    w[true] = rng.choice([-1.0, 1.0], n_true) * rng.uniform(0.5, 1.5, n_true)
    return X, X @ w + sigma * rng.standard_normal(m), true


def solve_until_certified(X, y, budget):
    """Alternate solving and certifying: a failed certificate comes with a better start."""
    result = blockl0.solve(X, y, n_nonzero_coefs=budget, method="dec", random_state=0)
    histories = [result.history]
    for _ in range(ROUNDS):
        certificate = blockl0.certify(X, y, result.coef, n_nonzero_coefs=budget, level=2)
        if certificate.holds:
            break
        result = blockl0.solve(
            X, y, n_nonzero_coefs=budget, method="dec", init=certificate.better_coef, random_state=0
        )
        histories.append(result.history)
    return result, certificate, np.concatenate([history.objective for history in histories])


def hidden_columns():
    """Part 1: find ten hidden columns; return what the picture needs."""
    X, y, true = make_correlated()
    budget = len(true)
    started = time.perf_counter()
    result, certificate, objectives = solve_until_certified(X, y, budget)
    seconds = time.perf_counter() - started
    greedy = orthogonal_mp(X, y, n_nonzero_coefs=budget)
    greedy_objective = half_squares(X, y, greedy)

    print(f"1. {budget} columns hidden among {X.shape[1]} correlated ones, {X.shape[0]} samples")
    for name, w, objective in (
        ("blockl0", result.coef, result.objective),
        ("OMP", greedy, greedy_objective),
    ):
        found = np.isin(true, np.flatnonzero(w)).sum()
        print(f"   {name:8s} objective {objective:9.2f}, {found} of {budget} true columns found")
    print(f"   blockl0 took {seconds:.2f} s, the compiler's first run included. {result.message}")
    verdict = "No" if certificate.holds else "Some"
    print(f"   Certificate: {verdict} change of {certificate.level} coefficients, the others")
    print(f"   {'re-fitted' if certificate.outside == 'refit' else 'fixed'}, improves this answer.")
    return objectives, greedy_objective


def diabetes_subsets():
    """Part 2: the best subset of every size, proven, beside OMP's."""
    data = load_diabetes()
    X, y = data.data, data.target - data.target.mean()
    names = np.array(data.feature_names)
    print("\n2. Diabetes: the best subset of each size, proven optimal among all 1024 subsets")
    rows = []
    for size in range(1, X.shape[1] + 1):
        best = blockl0.solve(X, y, n_nonzero_coefs=size, method="exact")
        greedy = half_squares(X, y, orthogonal_mp(X, y, n_nonzero_coefs=size))
        rows.append((best.objective, greedy, best.support))
        excess = (greedy / best.objective - 1) * 100
        remark = f"OMP is {excess:.2f} % worse" if excess > 1e-6 else "OMP finds it too"
        print(f"   {size:2d}  {best.objective:10.0f}  {best.status}  {remark:22s}", end="")
        print("  " + " ".join(names[best.support]))
    return rows, names


def draw(objectives, greedy_objective, rows, names):
    """Left: the run of part 1 against OMP. Right: which columns each best subset holds."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    left.plot(np.arange(1, len(objectives) + 1), objectives, color=BLUE, lw=2, label="blockl0")
    left.axhline(greedy_objective, color=ORANGE, lw=1.5, ls="--", label="OMP")
    left.legend(frameon=False)
    left.set(
        xscale="log", yscale="log", xlabel="iteration (one block each)",
        ylabel="objective ½‖y − Xw‖²", title="Ten hidden columns among 500",
    )  # fmt: skip
    chosen = np.zeros((len(names), len(rows)))
    for k, (_, _, support) in enumerate(rows):
        chosen[support, k] = 1.0
    columns, sizes = np.nonzero(chosen)
    right.scatter(sizes + 1, columns, s=90, color=BLUE)
    right.set(
        xticks=range(1, len(rows) + 1), yticks=range(len(names)), yticklabels=names,
        xlabel="number of features allowed", title="Diabetes: proven best subsets",
    )  # fmt: skip
    right.invert_yaxis()
    right.set_axisbelow(True)
    right.grid(color=GREY, alpha=0.25)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=150)


def main():
    """Run both parts and draw."""
    objectives, greedy_objective = hidden_columns()
    rows, names = diabetes_subsets()
    draw(objectives, greedy_objective, rows, names)
    print(f"\nThe picture is in {PICTURE}.")


if __name__ == "__main__":
    main()
