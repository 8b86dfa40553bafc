"""Plots as scikit-learn Displays: ``Display.from_...(...)`` draws; needs matplotlib.

Each display has ``ax_`` and ``figure_``; pass `ax` to draw into existing axes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from blockl0.estimators.binding import loss_of, rows_of
from blockl0.estimators.linear_cv import L0LinearCV
from blockl0.estimators.reading import units_differ
from blockl0.path import Path
from blockl0.result import History
from blockl0.selection import CRITERIA, readable_scores
from blockl0.text import count, install_hint, one_line
from blockl0.validate import check_choice

LABELLED = 10
"""Coefficients named in a path plot."""
LISTED = 40
"""Rows of a selection map."""
INK, ACCENT, PALE = "#1f5fa8", "#d9730d", "#8a8a8a"
COLORS = (
    "#1f5fa8", "#d9730d", "#2a8a3e", "#b8292f", "#7a4fa3", "#7d4b32", "#d256a5", "#8a8f00",
    "#1497a5", "#1a1a1a",
)  # fmt: skip
"""Colours of named coefficients; others are pale grey."""
FAR = 6.0
"""Points this many times farther from the best than the median are outside the plot."""


@dataclass
class _Display:
    figure_: Any = field(default=None, init=False, repr=False)
    ax_: Any = field(default=None, init=False, repr=False)

    def _axes(self, ax: Any, height: float = 4.5) -> Any:
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise ModuleNotFoundError(
                f"Pictures are drawn with matplotlib: {install_hint('matplotlib')}."
            ) from error
        if ax is None:
            _, ax = plt.subplots(figsize=(7.0, height), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        ax.spines[["top", "right"]].set_visible(False)
        return ax


def _path_of(source: Any) -> Path:
    """Return a `Path`, or that of an estimator; those that fit one size have none."""
    if isinstance(source, Path):
        return source
    if not isinstance(source, L0LinearCV):
        raise TypeError(
            f"{type(source).__name__} has no path, as it fits one number of columns; give what "
            "`l0_path` returns, or a fitted L0RegressorCV or L0ClassifierCV."
        )
    check_is_fitted(source, "path_")
    return source.path_


def _names_of(path: Path) -> NDArray[Any]:
    names = path.feature_names
    return np.array([f"x{j}" for j in range(path.n_features)] if names is None else names)


def _shown(name: Any) -> str:
    """Format a name on one line; drawn with `parse_math=False`, since $ starts no formula."""
    return one_line(name)


@dataclass
class CoefficientPathDisplay(_Display):
    """Coefficients against the number of columns, with the ten largest named.

    Shown per standard deviation if the units of the columns differ.

    Attributes
    ----------
    n_nonzero : ndarray (p,)
    coefs : ndarray (p, q)
        Coefficients of the columns that are ever chosen; for several classes their norms.
    names : ndarray (q,)
    label : str
    """

    n_nonzero: NDArray[np.int64]
    coefs: NDArray[np.float64]
    names: NDArray[Any]
    label: str = "coefficient"

    @classmethod
    def from_path(
        cls, source: Any, *, X: Any = None, per: str = "auto", ax: Any = None
    ) -> CoefficientPathDisplay:
        """Draw a `Path`, or the path of a fitted L0RegressorCV or L0ClassifierCV.

        Parameters
        ----------
        source : Path or estimator
        X : array-like, DataFrame or sparse (n_samples, n_features), optional
            The data of a `Path`, for its standard deviations; not needed for estimators.
        per : "auto" (default), "unit" or "sd"
            Scale of coefficients: per unit of the column, or per standard deviation. "auto" is "sd"
            if these are known and differ tenfold among the drawn columns.
        ax : matplotlib axes, optional
        """
        check_choice("per", per, ("auto", "unit", "sd"))
        path = _path_of(source)
        coefs = path.coefs.toarray()
        used = np.flatnonzero(coefs.any(axis=0))
        spread = path.spreads if X is None else rows_of(getattr(X, "to_numpy", lambda: X)()).spreads
        if per == "sd" and spread is None:
            raise ValueError("`per='sd'` needs the data: give `X`, from which the path was made.")
        label = "coefficient" if path[0].coef.ndim == 1 else "norm of a column's coefficients"
        coefs = coefs[:, used]
        if spread is not None and (per == "sd" or (per == "auto" and units_differ(spread[used]))):
            coefs, label = coefs * spread[used], f"{label} × standard deviation"
        return cls(path.n_nonzero, coefs, _names_of(path)[used], label).plot(ax=ax)

    from_estimator = from_path  # the name in scikit-learn's displays

    def plot(self, *, ax: Any = None) -> CoefficientPathDisplay:
        """Draw into `ax`, or a new figure."""
        ax = self._axes(ax)
        last = self.coefs[-1]
        named = [j for j in np.argsort(-np.abs(last))[:LABELLED] if last[j] != 0.0]
        styles: dict[Any, Any] = dict(zip(named, COLORS, strict=False))
        # columns that are not chosen get no line, rather than one at zero
        lines = np.where(self.coefs == 0.0, np.nan, self.coefs)
        for j in np.setdiff1d(np.arange(last.size), named):
            ax.plot(self.n_nonzero, lines[:, j], lw=0.8, color=PALE, marker="o", ms=1.5)
        for j in named[::-1]:
            ax.plot(self.n_nonzero, lines[:, j], lw=1.6, color=styles[j], marker="o", ms=3)
        for j, height in zip(named, _spread(last[named], ax.get_ylim()), strict=True):
            ax.annotate(
                _shown(self.names[j]), (self.n_nonzero[-1], last[j]), fontsize=8, parse_math=False,
                xytext=(1.02, height), textcoords=ax.get_yaxis_transform(), va="center",
                color=styles[j], arrowprops={"arrowstyle": "-", "lw": 0.4, "color": PALE},
                annotation_clip=False,
            )  # fmt: skip
        ax.axhline(0.0, color=PALE, lw=0.6)
        ax.set(xlabel="number of columns", ylabel=self.label)
        ax.xaxis.get_major_locator().set_params(integer=True)
        return self


@dataclass
class SelectionCurveDisplay(_Display):
    """A criterion, or cross-validation scores with standard errors, against the number of columns.

    Default scores of estimators are shown in readable form: R², or the explained share of the
    loss, and for labels the accuracy, beside that of guessing.

    Attributes
    ----------
    n_nonzero, values : ndarray (p,)
    errors : ndarray (p,) or None
        Standard errors of scores.
    chosen, best : int
        The point chosen by the rule, and the one with the best value.
    label : str
    guess : float or None
        The accuracy of guessing the most frequent class.
    """

    n_nonzero: NDArray[np.int64]
    values: NDArray[np.float64]
    errors: NDArray[np.float64] | None
    chosen: int
    best: int
    label: str
    guess: float | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> SelectionCurveDisplay:
        """Draw the selection of a fitted L0RegressorCV or L0ClassifierCV."""
        path, chosen = _path_of(estimator), estimator.best_index_
        if not hasattr(estimator, "mean_scores_"):
            return cls.from_path(path, estimator.rule, ax=ax)
        best, shown = int(np.argmax(estimator.mean_scores_)), readable_scores(estimator)
        if not shown:
            label = estimator.scoring if isinstance(estimator.scoring, str) else "out-of-fold score"
            scores, errors = estimator.mean_scores_, estimator.se_scores_
            return cls(path.n_nonzero, scores, errors, chosen, best, label).plot(ax=ax)
        name = "accuracy" if "accuracy" in shown else "explained"
        scores, errors = shown[name]
        guess = estimator.guess_accuracy_ if name == "accuracy" else None
        name = name if name == "accuracy" else loss_of(estimator).words.explained
        label = f"{name} on held-out rows"
        return cls(path.n_nonzero, scores, errors, chosen, best, label, guess).plot(ax=ax)

    @classmethod
    def from_path(
        cls, path: Path, criterion: str = "bic", *, ax: Any = None
    ) -> SelectionCurveDisplay:
        """Draw an information criterion along a path."""
        check_choice("criterion", criterion, CRITERIA)
        values = path.criterion(criterion)
        best = next(i for i, result in enumerate(path) if result is path.best(criterion))
        return cls(path.n_nonzero, values, None, best, best, criterion.upper()).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> SelectionCurveDisplay:
        """Draw into `ax`, or a new figure."""
        ax = self._axes(ax)
        shown = np.isfinite(self.values)
        k, values = self.n_nonzero[shown], self.values[shown]
        ax.plot(k, values, color=INK, marker="o", ms=4)
        if self.errors is not None:
            errors = self.errors[shown]
            ax.fill_between(
                k, values - errors, values + errors, color=INK, alpha=0.15, lw=0,
                label="± one standard error",
            )  # fmt: skip
            self._draw_level(ax)
        ax.plot(
            self.n_nonzero[self.chosen], self.values[self.chosen], "o", ms=10, mfc="none",
            mec=ACCENT, mew=2, clip_on=False,
            label=f"chosen: {count(self.n_nonzero[self.chosen], 'column')}",
        )  # fmt: skip
        if self.best != self.chosen:
            ax.plot(
                self.n_nonzero[self.best], self.values[self.best], "o", ms=10, mfc="none",
                mec=PALE, mew=1.5, clip_on=False,
                label=f"best loss: {count(self.n_nonzero[self.best], 'column')}",
            )  # fmt: skip
        self._leave_out_far_points(ax, k, values)
        ax.set(xlabel="number of columns", ylabel=self.label)
        ax.legend(frameon=False, fontsize=8)
        ax.xaxis.get_major_locator().set_params(integer=True)
        return self

    def _draw_level(self, ax: Any) -> None:
        """Draw the threshold of the one-standard-error rule, or the accuracy of guessing."""
        if self.guess is not None:
            ax.axhline(self.guess, color=PALE, lw=0.8, ls=":", label=f"guessing: {self.guess:.3g}")
            return
        assert self.errors is not None
        limit = self.values[self.best] - self.errors[self.best]
        ax.axhline(limit, color=PALE, lw=0.8, ls="--", label="best less one standard error")

    def _leave_out_far_points(self, ax: Any, k: NDArray[Any], values: NDArray[np.float64]) -> None:
        """Limit the plot to the range of the choice, and say what is beyond.

        The chosen point stays inside, and so does whatever is closer to the best one.
        """
        distance = np.abs(values - self.values[self.best])
        chosen = abs(float(self.values[self.chosen] - self.values[self.best]))
        most = FAR * max(float(np.median(distance)), 1e-12 * float(distance.max()))
        is_far = distance > max(most, chosen)
        if not is_far.any() or is_far.sum() > len(k) // 2:
            return
        errors = 0.0 if self.errors is None else self.errors[np.isfinite(self.values)][~is_far]
        low, high = (values[~is_far] - errors).min(), (values[~is_far] + errors).max()
        margin = 0.08 * (high - low)
        ax.set_ylim(low - margin, high + margin)
        side = "below" if values[is_far][0] < low else "above"
        far = zip(k[is_far], values[is_far], strict=True)
        listed = ", ".join(f"{count(n, 'column')} at {v:.4g}" for n, v in far)
        ax.text(
            0.01, 0.01 if side == "below" else 0.99, f"{side}: {listed}", fontsize=8, color=PALE,
            transform=ax.transAxes, va="bottom" if side == "below" else "top",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5}, zorder=3,
        )  # fmt: skip


@dataclass
class SelectionMapDisplay(_Display):
    """Which column is chosen at which size: one row per column, most frequent first.

    Attributes
    ----------
    n_nonzero : ndarray (p,)
    chosen : ndarray of bool (q, p)
    names : ndarray (q,)
    marked : int or None
        The point chosen by an estimator.
    """

    n_nonzero: NDArray[np.int64]
    chosen: NDArray[np.bool_]
    names: NDArray[Any]
    marked: int | None = None

    @classmethod
    def from_path(cls, source: Any, *, ax: Any = None) -> SelectionMapDisplay:
        """Draw a `Path`, or the path of a fitted L0RegressorCV or L0ClassifierCV."""
        path = _path_of(source)
        chosen = path.coefs.toarray().T != 0.0
        # by frequency, then by first appearance
        first = np.where(chosen.any(axis=1), np.argmax(chosen, axis=1), chosen.shape[1])
        order = np.lexsort((first, -chosen.sum(axis=1)))
        order = order[chosen[order].any(axis=1)][:LISTED]
        marked = getattr(source, "best_index_", None)
        return cls(path.n_nonzero, chosen[order], _names_of(path)[order], marked).plot(ax=ax)

    from_estimator = from_path

    def plot(self, *, ax: Any = None) -> SelectionMapDisplay:
        """Draw into `ax`, or a new figure."""
        ax = self._axes(ax, max(4.5, 0.19 * len(self.names) + 0.8))
        rows, points = np.nonzero(self.chosen)
        if self.marked is not None:
            ax.axvspan(self.marked - 0.5, self.marked + 0.5, color=ACCENT, alpha=0.2, lw=0)
        height = ax.figure.get_size_inches()[1] * 72 * 0.75 / max(len(self.names), 6)
        ax.scatter(points, rows, marker="s", s=min(height * 0.7, 14.0) ** 2, color=INK, lw=0)
        ax.set_yticks(range(len(self.names)), [*map(_shown, self.names)], parse_math=False)
        ax.set_xticks(range(len(self.n_nonzero)), [str(k) for k in self.n_nonzero])
        if len(self.n_nonzero) > 25:
            ax.set_xticks(range(0, len(self.n_nonzero), 5), [str(k) for k in self.n_nonzero[::5]])
        ax.tick_params(axis="y", labelsize=min(9.0, max(5.0, height * 0.8)))
        label = "number of columns"
        if self.marked is not None:
            label += f" ({self.n_nonzero[self.marked]} chosen)"
        ax.set(xlabel=label, xlim=(-0.7, len(self.n_nonzero) - 0.3))
        ax.set_ylim(len(self.names) - 0.4, -0.6)
        ax.grid(axis="y", lw=0.3, color=PALE, alpha=0.5)
        ax.set_axisbelow(True)
        return self


@dataclass
class ConvergenceDisplay(_Display):
    """The objective against time in seconds.

    Attributes
    ----------
    history : History
    """

    history: History

    @classmethod
    def from_result(cls, source: Any, *, ax: Any = None) -> ConvergenceDisplay:
        """Draw a `Result`, or a fitted estimator."""
        history = source.history_ if hasattr(source, "history_") else source.history
        return cls(history).plot(ax=ax)

    from_estimator = from_result

    def plot(self, *, ax: Any = None) -> ConvergenceDisplay:
        """Draw into `ax`, or a new figure."""
        ax = self._axes(ax)
        seconds, objective = self.history.seconds, self.history.objective
        if len(seconds) == 1:
            return self._say_at_once(ax, float(objective[0]), float(seconds[0]))
        ends = f"best objective {objective[-1]:.6g}"
        ax.step(seconds, objective, where="post", color=INK, label=ends)
        is_better = np.diff(objective, prepend=np.inf) < 0.0
        ax.plot(
            seconds[is_better], objective[is_better], "o", ms=4, color=ACCENT, label="better point"
        )
        ax.set(xlabel="seconds", ylabel="objective")
        ax.ticklabel_format(axis="y", useOffset=False)
        ax.legend(frameon=False, fontsize=8)
        return self

    def _say_at_once(self, ax: Any, objective: float, seconds: float) -> ConvergenceDisplay:
        """Draw a single point, which has no curve."""
        ax.plot([seconds], [objective], "o", ms=6, color=ACCENT)
        ax.text(
            0.5, 0.6, f"solved at once: objective {objective:.6g} after {seconds:.2g} s",
            transform=ax.transAxes, ha="center",
        )  # fmt: skip
        ax.set(xlabel="seconds", ylabel="objective", xlim=(0.0, 2.0 * max(seconds, 1e-6)))
        ax.ticklabel_format(axis="y", useOffset=False)
        return self


def _spread(heights: NDArray[np.float64], limits: tuple[float, float]) -> NDArray[np.float64]:
    """Place labels near these heights, within the limits, without overlap."""
    if heights.size == 0:
        return heights
    low, high = limits
    gap = 0.045 * (high - low)
    order = np.argsort(heights)
    placed = heights[order].astype(np.float64)
    for i in range(1, placed.size):
        placed[i] = max(placed[i], placed[i - 1] + gap)
    placed -= max(0.0, placed[-1] - high)
    for i in range(placed.size - 2, -1, -1):
        placed[i] = min(placed[i], placed[i + 1] - gap)
    out = np.empty_like(placed)
    out[order] = placed
    return out
