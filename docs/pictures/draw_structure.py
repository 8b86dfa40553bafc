"""The pictures of the page on structure, from the data of the page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.preprocessing import OneHotEncoder

from blockl0 import L0Regressor, L0RegressorCV, groups_of
from style import ACCENT, GREEN, GREY, INK, axes, bare

WORTH = {
    "Altona": 60, "Barmbek": 10, "Eppendorf": 95, "Hamm": -20, "Ottensen": 80, "Wandsbek": 0,
}  # fmt: skip


def flats(m: int = 500) -> tuple[pd.DataFrame, Any]:
    """Make the table of flats, and their rents."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "district": rng.choice(list(WORTH), m),
            "heating": rng.choice(["gas", "oil", "district heat", "pump"], m),
            "era": rng.choice(["before 1920", "1920-1949", "1950-1989", "since 1990"], m),
            "lift": rng.choice(["yes", "no"], m),
            "area": rng.uniform(30, 140, m),
            "floor": rng.integers(0, 6, m),
            "balconies": rng.integers(0, 3, m),
        }
    )
    rent = 9 * table["area"] + table["district"].map(WORTH) + 15 * table["balconies"]
    return table, rent + 60 * rng.standard_normal(m)


def categories() -> Any:
    """Levels chosen together and one by one, beside what the rents were made with."""
    table, rent = flats()
    words = ["district", "heating", "era", "lift"]
    whole = make_column_transformer((OneHotEncoder(), words), remainder="passthrough")
    apart = make_column_transformer((OneHotEncoder(drop="first"), words), remainder="passthrough")
    X = whole.fit_transform(table)
    together = L0RegressorCV(feature_groups=groups_of(whole), random_state=0).fit(X, rent)
    single = L0RegressorCV(random_state=0).fit(apart.fit_transform(table), rent)
    figure, (left, right) = axes(8.4, 3.4, ncols=2)
    loss, error = -together.mean_scores_, together.se_scores_
    sizes, chosen = together.path_.n_nonzero, together.best_index_
    left.errorbar(sizes[1:], loss[1:], error[1:], fmt="o-", ms=4, color=INK, capsize=3)
    left.plot(sizes[chosen], loss[chosen], "s", ms=11, mfc="none", color=ACCENT)
    left.set(
        xlabel="groups: categories and numbers", ylabel="mean loss on the folds", ylim=(0, None)
    )
    at = np.arange(len(WORTH))
    _districts(right, at - 0.15, whole, together, INK, "the category as one choice")
    _districts(right, at + 0.15, apart, single, ACCENT, "levels one by one")
    right.plot(at, np.array(list(WORTH.values())) - np.mean(list(WORTH.values())), "_", ms=22,
               color=GREY, label="what made the rents")  # fmt: skip
    right.set_xticks(at, list(WORTH), rotation=25)
    right.set(ylabel="rent above the mean", ylim=(-150, 70))
    right.legend(frameon=False, fontsize=8, loc="lower left")
    return figure


def _districts(ax: Any, at: np.ndarray, encoder: Any, model: Any, colour: str, label: str) -> None:
    """Return the effects of the districts in a model, less their mean."""
    names = encoder.get_feature_names_out().tolist()
    columns = [f"onehotencoder__district_{name}" for name in WORTH]
    effect = np.array([model.coef_[names.index(c)] if c in names else 0.0 for c in columns])
    ax.plot(at, effect - effect.mean(), "o", color=colour, label=label)


def marketing() -> tuple[pd.DataFrame, Any]:
    """Make the weeks of spend, and their sales."""
    rng, weeks = np.random.default_rng(1), np.arange(104)
    season = np.sin(2 * np.pi * weeks / 52)
    tv = 50 + 20 * season + 10 * rng.standard_normal(104)
    table = pd.DataFrame(
        {
            "tv": tv,
            "radio": 0.6 * tv + 4 * rng.standard_normal(104),
            "print": 30 + 0.5 * tv + 5 * rng.standard_normal(104),
            "search": 40 + 12 * rng.standard_normal(104),
            "social": 20 + 8 * rng.standard_normal(104),
            "posters": 25 + 6 * rng.standard_normal(104),
            "price": 10 + rng.standard_normal(104),
            "season": season,
        }
    )
    sales = 200 + table[["tv", "radio", "search"]] @ [0.9, 0.6, 0.5] + 25 * season
    return table, sales - 8 * table["price"] + 20 * rng.standard_normal(104)


def signs() -> Any:
    """Effects of spend per standard deviation, free and not negative."""
    table, sales = marketing()
    media = list(table)[:6]
    truth = np.array([0.9, 0.6, 0.0, 0.5, 0.0, 0.0])
    figure, ax = axes(8.0, 3.2)
    at, spread = np.arange(6), table[media].std().to_numpy()
    for shift, colour, label, positive in (
        (-0.2, ACCENT, "any sign", None), (0.05, INK, "spend must not lower sales", media),
    ):  # fmt: skip
        model = L0Regressor(6, positive=positive, random_state=0).fit(table, sales)
        ax.bar(at + shift, model.coef_[:6] * spread, 0.25, color=colour, label=label)
    ax.bar(at + 0.3, truth * spread, 0.25, color=GREY, label="what made the sales")
    ax.axhline(0.0, color="black", lw=0.8)
    ax.set_xticks(at, media)
    ax.set(ylabel="sales per standard deviation of spend")
    ax.legend(frameon=False)
    return figure


def sensors() -> Any:
    """Digits, and what ten pixels say of all 64."""
    images, digits = load_digits(return_X_y=True)
    train, test = images[::2], images[1::2]
    model = L0Regressor(10, random_state=0).fit(train, train)
    shown = test[[int(np.argmax(digits[1::2] == digit)) for digit in range(10)]]
    figure, grid = axes(8.4, 2.0, nrows=2, ncols=shown.shape[0])
    rows, places = model.support_ // 8, model.support_ % 8
    for column, (seen, guess) in enumerate(zip(shown, model.predict(shown), strict=True)):
        for row, image in enumerate((seen, guess)):
            ax = grid[row, column]
            ax.imshow(image.reshape(8, 8), cmap="Greys", vmin=0, vmax=16)
            bare(ax)
        grid[0, column].plot(places, rows, "s", ms=4, mfc="none", color=GREEN)
    return figure


PICTURES = {"categories": categories, "signs": signs, "sensors": sensors}
