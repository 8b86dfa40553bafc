"""The four pictures of the page on the algorithm, all from real runs."""

from __future__ import annotations

from typing import Any

import numpy as np

import blockl0
from blockl0.datasets import make_random
from blockl0.dec.working_set import RandomGreedy
from style import ACCENT, GREEN, GREY, INK, PALE, axes, bare


class Recording:
    """The working set R5G3, remembering its blocks."""

    def __init__(self) -> None:
        self.inner = RandomGreedy(5, 3)
        self.blocks: list[np.ndarray] = []

    def select(self, state: Any, rng: np.random.Generator) -> np.ndarray:
        """Return the next block."""
        self.blocks.append(self.inner.select(state, rng))
        return self.blocks[-1]


def first_change() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(w before, the block, w after) of the first block in a run that swaps a column."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 24)) + 0.7 * rng.standard_normal((60, 1))
    y = X[:, [2, 7, 11, 16, 20]] @ [2.0, -1.5, 1.2, -1.0, 1.7] + rng.standard_normal(60)
    start = np.zeros(24)
    start[[2, 5, 9, 16, 22]] = np.linalg.lstsq(X[:, [2, 5, 9, 16, 22]], y, rcond=None)[0]
    recording, points = Recording(), [start.copy()]
    blockl0.solve(
        X, y, n_nonzero_coefs=5, method="dec", working_set=recording, init=start, random_state=0,
        callback=lambda progress: points.append(progress.coef.copy()),
    )  # fmt: skip
    points = points[-len(recording.blocks) - 1 :]
    for before, block, after in zip(points, recording.blocks, points[1:], strict=False):
        if np.any((before != 0) != (after != 0)):
            return before, block, after
    raise RuntimeError("no block changed the support")


def block() -> Any:
    """Draw the vector before and after one block; cells of the block have a frame."""
    before, chosen, after = first_change()
    figure, ax = axes(8.0, 2.3)
    bare(ax)
    top = max(np.abs(before).max(), np.abs(after).max())
    for row, (w, label) in enumerate(((before, "before"), (after, "after"))):
        y = -1.5 * row
        ax.text(-0.6, y + 0.45, label, ha="right", va="center", color=GREY)
        for j, value in enumerate(w):
            strength = 0.25 + 0.75 * abs(value) / top if value else 1.0
            colour = PALE if value == 0 else INK if value > 0 else ACCENT
            ax.add_patch(_cell(j, y, colour, strength))
            if j in chosen:
                ax.add_patch(_cell(j, y, "none", 1.0, edge="black"))
    for j in chosen:
        is_swap = (before[j] != 0) != (after[j] != 0)
        ax.annotate(
            "", (j + 0.45, -0.55), (j + 0.45, -0.05),
            arrowprops={"arrowstyle": "-|>", "color": "black" if is_swap else GREY, "lw": 1},
        )  # fmt: skip
    ax.text(12, 1.35, f"a block of {chosen.size} of 24 coordinates (framed): all "
            f"{2**chosen.size} subsets of it are searched", ha="center")  # fmt: skip
    ax.text(12, -2.15, "pale: zero     blue: positive     orange: negative", ha="center",
            color=GREY, fontsize=9)  # fmt: skip
    ax.set(xlim=(-2.6, 24.2), ylim=(-2.4, 1.7))
    return figure


def _cell(j: int, y: float, colour: str, alpha: float, edge: str = "none") -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((j, y), 0.9, 0.9, fc=colour, ec=edge, alpha=alpha, lw=1.6)


class SearchTree:
    """The plainest branch and bound of a block, and where each of its nodes is drawn.

    A node has decided some coordinates. Letting all others in free of charge bounds its subtree.
    """

    def __init__(self, H: np.ndarray, c: np.ndarray, price: float) -> None:
        self.H, self.c, self.price = H, c, price
        self.best, self.best_node = 0.0, 0
        self.nodes: list[dict[str, Any]] = []
        self._visit((), tuple(range(c.size)), None, 0.5, 0.5, "")

    def fit(self, support: tuple[int, ...]) -> float:
        """Return the minimum of ½z'Hz + c'z on a support."""
        if not support:
            return 0.0
        at = list(support)
        return -0.5 * float(self.c[at] @ np.linalg.solve(self.H[np.ix_(at, at)], self.c[at]))

    def _visit(
        self, chosen: tuple, free: tuple, parent: int | None, x: float, width: float, label: str
    ) -> None:
        value = self.fit(chosen) + self.price * len(chosen)
        bound = self.fit(chosen + free) + self.price * len(chosen)
        here = len(self.nodes)
        node = {"x": x, "y": -(self.c.size - len(free)), "parent": parent, "label": label}
        self.nodes.append(node | {"is_cut": bound >= self.best - 1e-12 and here > 0})
        if value < self.best:
            self.best, self.best_node = value, here
            self.nodes[here]["is_cut"] = False
        if bound >= self.best - 1e-12 or not free:
            self.nodes[here]["is_cut"] = bool(free)
            return
        j, rest = free[0], free[1:]
        self._visit((*chosen, j), rest, here, x - width / 2, width / 2, f"in {j + 1}")
        self._visit(chosen, rest, here, x + width / 2, width / 2, f"out {j + 1}")


def tree() -> Any:
    """Draw the tree of a block of six, coordinates with the largest gain first."""
    rng = np.random.default_rng(5)
    A = rng.standard_normal((12, 6)) + 0.5 * rng.standard_normal((12, 1))
    c = -A.T @ (A @ np.array([1.6, 0.0, -1.1, 0.0, 0.25, 0.1]) + 0.4 * rng.standard_normal(12))
    order = np.argsort(-(c**2) / np.einsum("ij,ij->j", A, A))
    A, c = A[:, order], c[order]
    search = SearchTree(A.T @ A, c, price=3.0)
    figure, ax = axes(8.0, 3.8)
    bare(ax)
    for node in search.nodes:
        if node["parent"] is not None:
            above = search.nodes[node["parent"]]
            ax.plot([above["x"], node["x"]], [above["y"], node["y"]], color=GREY, lw=0.9, zorder=1)
            if node["y"] >= -3:
                ax.text((above["x"] + node["x"]) / 2, (above["y"] + node["y"]) / 2, node["label"],
                        fontsize=7.5, ha="center", va="center", color=GREY,
                        bbox={"fc": "white", "ec": "none", "pad": 0.6}, zorder=2)  # fmt: skip
    for kind, colour, label in (
        (False, INK, "looked into"),
        (True, ACCENT, "cut off: cannot beat the best so far"),
    ):
        those = [node for node in search.nodes if node["is_cut"] is kind]
        ax.scatter([n["x"] for n in those], [n["y"] for n in those], s=46, color=colour, zorder=3,
                   label=label)  # fmt: skip
    best = search.nodes[search.best_node]
    ax.scatter(best["x"], best["y"], s=150, fc="none", ec=GREEN, lw=2.2, zorder=4,
               label="the best subset")  # fmt: skip
    ax.legend(loc=(0.6, 0.42), frameon=False, fontsize=9)
    ax.set_title(f"{len(search.nodes)} of the {2**7 - 1} nodes of the whole tree", fontsize=10)
    return figure


def convergence() -> Any:
    """Objective against time of "dec" and "refit", three seeds each, on the paper's data."""
    X, y = make_random(256, 1024, random_state=0)
    methods = {"dec": {}, "refit": {"effort": "fast"}, "refit ": {"effort": "balanced"}}
    colours = {"dec": ACCENT, "refit": GREEN, "refit ": INK}
    labels = {"dec": 'method "dec"', "refit": '"refit", effort "fast"',
              "refit ": '"refit", effort "balanced"'}  # fmt: skip
    runs = {}
    for name, options in methods.items():
        # once before, so that no compiler is in the times
        blockl0.solve(X[:, :60], y, n_nonzero_coefs=5, method=name.strip(), **options)
        for seed in range(3):
            runs[name, seed] = blockl0.solve(
                X, y, n_nonzero_coefs=32, method=name.strip(), random_state=seed, **options
            )
    best = min(run.objective for run in runs.values())
    figure, ax = axes(8.0, 3.6)
    for (name, seed), run in runs.items():
        excess = 100.0 * (run.history.objective / best - 1.0)
        ax.step(
            1e3 * run.history.seconds, excess, where="post", color=colours[name], lw=1.1, alpha=0.8,
            label=labels[name] if seed == 0 else None,
        )  # fmt: skip
        ax.plot(1e3 * run.seconds, excess[-1], "o", ms=4, color=colours[name])
    ax.set(
        xscale="log", xlabel="milliseconds", ylabel="% above the best objective", ylim=(-2, 60),
        xlim=(20, None),
    )  # fmt: skip
    ax.legend(frameon=False)
    ax.set_title(
        "random-256-1024, 32 nonzeros, three seeds; a dot is the end of a run", fontsize=10
    )
    return figure


def gains(X: np.ndarray, y: np.ndarray, support: np.ndarray) -> np.ndarray:
    """Compute the change of the objective by the best swap that brings each column in, (n,)."""
    S = X[:, support]
    K = np.linalg.inv(S.T @ S)
    w = K @ (S.T @ y)
    residual = y - S @ w
    U = S.T @ X
    W = K @ U
    pivots = np.einsum("ij,ij->j", X, X) - np.einsum("ij,ij->j", U, W)
    leave = w**2 / (2.0 * np.diag(K))
    slopes = -(X.T @ residual) - W * (w / np.diag(K))[:, None]
    swaps = leave[:, None] - slopes**2 / (2.0 * (pivots + W**2 / np.diag(K)[:, None]))
    best = swaps.min(axis=0)
    best[support] = np.nan
    return best


def pricing() -> Any:
    """Pricing at the point of forward selection and at the answer of "refit"."""
    X, y = make_random(150, 600, n_nonzero=25, noise=4.0, random_state=6)
    budget = 20
    forward = blockl0.solve(X, y, n_nonzero_coefs=budget, method="forward")
    answer = blockl0.solve(X, y, n_nonzero_coefs=budget, random_state=0)
    figure, panels = axes(8.0, 3.8, ncols=2, sharey=True)
    for ax, point, title in (
        (panels[0], forward, "after forward selection"),
        (panels[1], answer, "at the answer: nothing below zero"),
    ):
        change = gains(X, y, point.support)
        pool = np.argsort(-np.abs(X.T @ (y - X @ point.coef)))[:60]
        outside = np.setdiff1d(np.arange(600), pool)
        ax.axhline(0.0, color="black", lw=0.8)
        ax.scatter(outside, change[outside], s=6, color=GREY, label="other columns")
        ax.scatter(pool, change[pool], s=14, color=INK, label="a pool of 60")
        better = np.flatnonzero(change < -1e-9)
        ax.scatter(better, change[better], s=46, fc="none", ec=ACCENT, lw=1.6,
                   label="would improve the point")  # fmt: skip
        ax.set_title(f"{title}\nobjective {point.objective:.0f}", fontsize=10)
        ax.set_xlabel("column")
    panels[0].set_ylabel("change by its best swap")
    panels[0].set_ylim(top=62)
    panels[0].legend(frameon=False, fontsize=8.5, loc="upper left")
    return figure


PICTURES = {"block": block, "tree": tree, "convergence": convergence, "pricing": pricing}
