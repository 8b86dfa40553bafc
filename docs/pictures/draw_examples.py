"""A picture for every example that prints only numbers; `example_` and the name of its file."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from style import ACCENT, GREEN, GREY, INK, axes, bare

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> Any:
    """Load an example as a module, without running it."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def best_subset_against_lasso() -> Any:
    """R² on the test rows against the number of columns, along both paths."""
    from sklearn.datasets import load_diabetes
    from sklearn.linear_model import lasso_path
    from sklearn.metrics import r2_score
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    from blockl0 import l0_path

    X, y = load_diabetes(return_X_y=True)
    Z = StandardScaler().fit_transform(PolynomialFeatures(2, include_bias=False).fit_transform(X))
    A, B, a, b = train_test_split(Z, y, test_size=0.3, random_state=0)
    middle, level = A.mean(axis=0), a.mean()
    path = l0_path(A - middle, a - level, n_nonzero_coefs=20, effort="fast", random_state=0)
    prices = np.geomspace(50.0, 0.3, 60)
    _, lasso, _ = lasso_path(A - middle, a - level, alphas=prices)

    def scores(coefs: Any) -> list[float]:
        return [r2_score(b, (B - middle) @ coef + level) for coef in coefs]

    figure, ax = axes(7.0, 3.6)
    sizes = np.count_nonzero(lasso, axis=0)
    ax.plot(sizes, scores(lasso.T), "o-", ms=3, color=ACCENT, label="Lasso")
    ax.plot(
        path.n_nonzero, scores(path.coefs.toarray()), "o-", ms=4, color=INK, label="best subset"
    )
    ax.set(xlabel="columns", ylabel="R² on test rows", xlim=(0, 20.5), ylim=(0.0, 0.45))
    ax.set_xticks(range(0, 21, 2))
    ax.legend(frameon=False, loc="lower right")
    return figure


def compressed_sensing() -> Any:
    """One signal of ten waves, coded from 50 measurements."""
    from scipy.fft import idct
    from sklearn.linear_model import orthogonal_mp

    from blockl0 import sparse_encode

    rng = np.random.default_rng(4)
    cosines = idct(np.eye(256), norm="ortho", axis=0)
    dictionary = (rng.standard_normal((50, 256)) / np.sqrt(50) @ cosines).T
    waves = np.zeros(256)
    waves[rng.choice(256, 10, replace=False)] = rng.uniform(1.0, 2.0, 10)
    measured = (waves @ dictionary)[None]
    ours = sparse_encode(measured, dictionary, n_nonzero_coefs=10, random_state=0)[0]
    omp = orthogonal_mp(dictionary.T, measured[0], n_nonzero_coefs=10)
    figure, panels = axes(7.0, 3.8, nrows=2, sharex=True, sharey=True)
    for ax, code, name, colour in (
        (panels[0], ours, "best subset", INK), (panels[1], omp, "matching pursuit", ACCENT),
    ):  # fmt: skip
        true, found = np.flatnonzero(waves), np.flatnonzero(code)
        ax.plot(true, waves[true], "o", ms=9, mfc="none", color=GREY, label="true waves")
        ax.vlines(found, 0.0, code[found], color=colour)
        ax.plot(found, code[found], "o", ms=3.5, color=colour, label=name)
        ax.axhline(0.0, color="black", lw=0.6)
        ax.legend(frameon=False, fontsize=8.5, loc="upper right", bbox_to_anchor=(1.0, 1.15))
    panels[1].set_xlabel("wave; 50 measurements")
    return figure


def gene_expression() -> Any:
    """Coefficients of ℓ1 and of the best five, over all genes."""
    from sklearn.linear_model import LogisticRegression

    from blockl0 import L0Classifier

    data = example("gene_expression")
    X, y = data.make()
    X, y = X[:160], y[:160]
    ours = L0Classifier(5, ridge=0.5, effort="fast", random_state=0).fit(X, y)
    lasso = LogisticRegression(l1_ratio=1.0, C=0.4, solver="liblinear").fit(X, y)
    figure, panels = axes(7.0, 3.8, nrows=2, sharex=True)
    for ax, model, name, colour in (
        (panels[0], ours, "best subset", INK), (panels[1], lasso, "ℓ1 logistic", ACCENT),
    ):  # fmt: skip
        coef = model.coef_[0]
        used = np.flatnonzero(coef)
        for gene in data.TRUE_GENES:
            ax.axvline(gene, color=GREY, lw=0.7, ls=":")
        ax.vlines(used, 0.0, coef[used], color=colour, lw=1.4)
        ax.plot(used, coef[used], "o", ms=3, color=colour)
        ax.axhline(0.0, color="black", lw=0.6)
        ax.set_title(f"{name}: {used.size} genes", fontsize=10, loc="left")
    panels[1].set_xlabel("gene; dotted: the five that carry the signal")
    return figure


def lorenz_pysindy() -> Any:
    """Draw the trajectory from which the equations are identified."""
    from scipy.integrate import solve_ivp

    lorenz = example("lorenz_pysindy").lorenz
    times = np.arange(0.0, 25.0, 0.005)
    u = solve_ivp(lorenz, (0.0, 25.0), [-8.0, 8.0, 27.0], t_eval=times, rtol=1e-8).y
    figure, ax = axes(7.0, 3.8)
    bare(ax)
    ax.plot(u[0], u[2], color=INK, lw=0.6)
    equations = "x' = 10 (y − x)\ny' = x (28 − z) − y\nz' = x y − 8/3 z"
    ax.text(1.02, 0.5, equations, transform=ax.transAxes, va="center", fontsize=12, color=GREEN)
    return figure


def text_features() -> Any:
    """Draw the twelve words and what they say for and against each class."""
    from sklearn.feature_extraction.text import CountVectorizer

    from blockl0 import L0Classifier

    texts, labels = [], []
    for label, load in example("text_features").SOURCES.items():
        lines = [line for line in load().DESCR.splitlines() if len(line.split()) >= 3]
        texts += lines
        labels += [label] * len(lines)
    words = CountVectorizer(binary=True, token_pattern=r"[A-Za-z]{3,}").fit(texts)
    model = L0Classifier(12, ridge=0.1, effort="fast", random_state=0)
    model.fit(words.transform(texts), np.array(labels))
    coef = model.coef_[:, model.support_]
    top = np.abs(coef).max()
    figure, ax = axes(7.0, 3.0)
    image = ax.imshow(coef, cmap="RdBu", vmin=-top, vmax=top, aspect="auto")
    names = words.get_feature_names_out()[model.support_]
    ax.set_xticks(range(names.size), names, rotation=45, ha="right")
    ax.set_yticks(range(3), model.classes_)
    figure.colorbar(image, ax=ax, label="coefficient", shrink=0.9)
    return figure


def demo() -> Any:
    """Draw the best subsets of the diabetes data, every size, all proven."""
    from sklearn.datasets import load_diabetes

    from blockl0 import L0RegressorCV
    from blockl0.plot import SelectionMapDisplay

    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    model = L0RegressorCV(10, rule="bic", random_state=0).fit(X, y)
    figure, ax = axes(7.0, 3.6)
    SelectionMapDisplay.from_path(model, ax=ax)
    ax.set_title("diabetes: which columns are in the best subset of each size")
    return figure


DRAWN = (
    best_subset_against_lasso,
    compressed_sensing,
    gene_expression,
    lorenz_pysindy,
    text_features,
    demo,
)
PICTURES = {f"example_{draw.__name__}": draw for draw in DRAWN}
