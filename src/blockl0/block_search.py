"""The exact search inside a block: min_z ½z'Hz + c'z + price·nnz(z) subject to nnz(z) <= budget."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blockl0 import kernels
from blockl0.validate import as_numeric, check_integer, check_nonnegative

Floats = NDArray[np.float64]

NODE_LIMIT = 10_000_000
"""Default limit on nodes before a search gives up its proof."""
SLICE = 2000
"""Nodes between checks of the clock."""
RELAX_FROM = 20
"""Block size from which the perspective relaxation pays for its set-up."""
RELAX_PASSES = 3
"""Coordinate-descent passes per node on the perspective relaxation."""


CLEAR = 1e-6
"""Relative pivots above this, given all others, make values accurate to ten digits."""
LEAST_EIGENVALUE = 1e-17
"""Smaller eigenvalues, for a unit diagonal, are raised to this; what they separate stays dependent.
"""


class BlockSolution(NamedTuple):
    """Answer of a block search.

    Attributes
    ----------
    z : ndarray (k,)
    value : float
        ½z'Hz + c'z + price·nnz(z).
    proven : bool
        Whether `z` is a global minimizer; False when the node limit was hit.
    n_nodes : int
    lower_bound : float
        Equal to `value` when proven.
    """

    z: Floats
    value: float
    proven: bool
    n_nodes: int
    lower_bound: float


def new_tree(k: int, levels: int, n_notes: int = 1) -> kernels.Tree:
    """Allocate memory for searches over k coordinates with at most `levels` − 1 inclusions."""
    return kernels.Tree(
        tableau=np.empty((levels + 1, 2, k, k)),
        slots=np.empty((levels + 1, 7, k + 2)),
        index=np.empty((levels + 1, 3, k), dtype=np.int64),
        value=np.empty((levels + 1, 5)),
        count=np.zeros((levels + 1, 5), dtype=np.int64),
        notes=np.empty((n_notes, k + 2), dtype=np.int64),
    )


def grown_tree(tree: kernels.Tree) -> kernels.Tree:
    """Return the same search with memory for twice as many nested inclusions."""
    levels, k = tree.count.shape[0] - 1, tree.index.shape[2]
    larger = new_tree(k, min(2 * levels, k + 1), tree.notes.shape[0])
    for old, new in zip(tree[:-1], larger[:-1], strict=True):
        new[:levels], new[-1] = old[:levels], old[-1]
    larger.count[levels:-1, kernels.BRANCH] = -1
    larger.notes[:] = tree.notes
    return larger


def open_bound(tree: kernels.Tree) -> float:
    """Return the smaller of the incumbent's value and a bound over the open nodes."""
    level = int(tree.count[-1, kernels.LEVEL])
    if level < 0:
        return float(tree.value[-1, kernels.BEST_VALUE])
    is_open = tree.count[: level + 1, kernels.BRANCH] >= 0
    is_open[level] = True
    bounds = tree.value[: level + 1, kernels.BOUND][is_open]
    root = tree.value[0, kernels.F_ALL]
    return float(min(max(bounds.min(), root), tree.value[-1, kernels.BEST_VALUE]))


def search_block(
    H: Floats,
    c: Floats,
    price: float,
    budget: int,
    *,
    current: Floats | None = None,
    forced: NDArray[np.bool_] | None = None,
    node_limit: int = NODE_LIMIT,
    tree: kernels.Tree | None = None,
) -> BlockSolution:
    """Solve the block problem, without checking the input.

    Parameters
    ----------
    H : ndarray (k, k), C-contiguous float64
        Positive (semi)definite; full, symmetric.
    c : ndarray (k,)
    price, budget : float, int
    current : ndarray (k,), optional
        A feasible point, returned unless a better one exists; a good one prunes most of the tree.
    forced : ndarray of bool (k,), optional
        Coordinates that must be in the support.
    node_limit : int
    tree : Tree, optional
        Memory from `new_tree` to reuse.
    """
    k = c.size
    if tree is None:
        tree = new_tree(k, min(k, budget) + 1)
    start = current if current is not None else np.zeros(k)
    z = improve_block(tree, H, c, price, budget, start, forced, node_limit)
    z = start if z is None else z
    value = _value(H, c, price, z)
    proven = is_proven(tree)
    bound = value if proven else min(value, open_bound(tree))
    return BlockSolution(z, value, proven, int(tree.count[-1, kernels.NODES]), bound)


def improve_block(
    tree: kernels.Tree,
    H: Floats,
    c: Floats,
    price: float,
    budget: int,
    current: Floats,
    forced: NDArray[np.bool_] | None = None,
    node_limit: int = NODE_LIMIT,
    seconds: float = np.inf,
) -> Floats | None:
    """Return the best point of a block, or None if nothing better than `current` was found."""
    passes = plant(tree, H, c, price, budget, current, forced)
    if not kernels.search_tree(tree, price, budget, passes, min(node_limit, SLICE)):
        _search_on(tree, price, budget, passes, node_limit, seconds)
    size = tree.count[-1, kernels.BEST_SIZE]
    if size < 0:
        return None
    support = tree.index[-1, kernels.BEST, :size]
    z = np.zeros(c.size)
    z[support] = _solve(H[support[:, None], support], -c[support])
    if forced is not None and np.any(forced & (current == 0.0)):
        return z
    # pivots above their floor may still multiply to zero: then the gain is rounding
    return z if _value(H, c, price, z) < _value(H, c, price, current) else None


def _value(H: Floats, c: Floats, price: float, z: Floats) -> float:
    return float(z @ (0.5 * (H @ z) + c) + price * np.count_nonzero(z))


def _solve(A: Floats, b: Floats) -> Floats:
    """Return inv(A) b; the shortest solution where A is singular to working precision."""
    try:
        z = np.linalg.solve(A, b)
    except np.linalg.LinAlgError:
        z = np.linalg.lstsq(A, b, rcond=None)[0]
    return np.asarray(z, dtype=np.float64)


def _search_on(
    tree: kernels.Tree,
    price: float,
    budget: int,
    passes: int | None,
    node_limit: int,
    seconds: float,
) -> None:
    """Search in slices of nodes until the tree, the nodes or the time are exhausted."""
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        n_left = node_limit - int(tree.count[-1, kernels.NODES])
        if n_left <= 0 or kernels.search_tree(tree, price, budget, passes, min(n_left, SLICE)):
            return


def is_proven(tree: kernels.Tree) -> bool:
    """Return whether the tree was exhausted, so that its answer is the global minimum."""
    return bool(tree.count[-1, kernels.LEVEL] < 0)


def plant(
    tree: kernels.Tree,
    H: Floats,
    c: Floats,
    price: float,
    budget: int,
    current: Floats,
    forced: NDArray[np.bool_] | None = None,
    relax: bool | None = None,
) -> int | None:
    """Fill the root of the tree; return the relaxation's passes per node, None without one."""
    k = c.size
    if forced is None:
        forced = np.zeros(k, dtype=np.bool_)
    elif forced.any():
        forced = _independent(H, forced)
    if relax is None:
        relax = k >= RELAX_FROM
    if not kernels.plant_tree(tree, H, c, price, forced, current, -np.inf):
        # singular: open nodes are bounded by the minimum without any zero
        kernels.plant_tree(tree, H, c, price, forced, current, floor(H, c))
        return None
    # a regular H may still be too close to singular for a curvature
    relaxes = relax and kernels.start_relaxation(tree, price, budget)
    return RELAX_PASSES if relaxes else None


def _independent(H: Floats, forced: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the forced coordinates less those that are combinations of forced ones before them."""
    chosen: list[int] = []
    for j in np.flatnonzero(forced):
        coupling = H[chosen, j]
        pivot = H[j, j] - coupling @ np.linalg.solve(H[np.ix_(chosen, chosen)], coupling)
        if pivot > kernels.PIVOT_FLOOR * H[j, j]:
            chosen.append(int(j))
    independent = np.zeros_like(forced)
    independent[chosen] = True
    return independent


def floor(H: Floats, c: Floats) -> float:
    """Return a lower bound on ½z'Hz + c'z over all z, for a singular H with c in its range."""
    scale = np.sqrt(np.where(np.diag(H) > 0.0, np.diag(H), 1.0))
    eigenvalues, V = np.linalg.eigh(H / scale[:, None] / scale)
    slopes = V.T @ (c / scale)
    # directions flatter than rounding carry no slope when c is in the range
    real = eigenvalues > 1e-14 * c.size
    value = -0.5 * float(np.sum(slopes[real] ** 2 / eigenvalues[real]))
    return value * (1.0 + 1e-6)


def block_search(
    H: ArrayLike, c: ArrayLike, price: float = 0.0, budget: int | None = None
) -> tuple[Floats, float]:
    """Minimize ½z'Hz + c'z + price·nnz(z) subject to nnz(z) <= budget, to proven global optimality.

    Branch and bound over the 2^k supports with two tableaus that are inverses of each other, so
    that including or excluding a coordinate is one pivot, O(k²). Blocks of 12 take microseconds,
    blocks of 40 milliseconds; the worst case is exponential in k.

    Parameters
    ----------
    H : array-like (k, k)
        Symmetric positive semidefinite.
    c : array-like (k,)
        Must lie in the range of H, or the problem has no minimum.
    price : float, default 0
        Cost of a nonzero.
    budget : int, optional
        Largest number of nonzeros; k by default.

    Returns
    -------
    z : ndarray (k,)
        A global minimizer among all whose coordinates do not depend on each other: scaled to a unit
        diagonal, no pivot of one given the others is below 1e-16, see
        `blockl0.problem.orthogonal`.
    value : float
        The objective at `z`.

    Raises
    ------
    RuntimeError
        When the node limit is hit and the answer could not be proven (see `search_block`).

    Examples
    --------
    >>> import numpy as np
    >>> from blockl0 import block_search
    >>> z, value = block_search(np.diag([1.0, 2.0, 3.0]), np.array([-1.0, -2.0, -0.3]), budget=1)
    >>> z, round(value, 3)
    (array([0., 1., 0.]), -1.0)
    """
    H, c = _check_block(H, c)
    k = c.size
    price = check_nonnegative("price", price)
    budget = k if budget is None else check_integer("budget", budget, low=0, high=k)
    tree = new_tree(k, min(k, budget) + 1)
    solution = search_block(H, c, price, budget, tree=tree)
    if tree.value[-1, kernels.NEAREST] < CLEAR:
        solution = _search_columns(H, c, price, budget)
    if not solution.proven:
        raise RuntimeError(
            f"search over {k} coordinates stopped without a proof after {solution.n_nodes} nodes "
            f"(best {solution.value:.6g}, lower bound {solution.lower_bound:.6g}); "
            "use a smaller block, or search_block, which returns the unproven answer."
        )
    return solution.z, solution.value


def _search_columns(H: Floats, c: Floats, price: float, budget: int) -> BlockSolution:
    """Solve the problem for a nearly singular H, from columns A and a target b: H = A'A, c = −A'b.

    Dependence, and differences within rounding, are then decided from the columns.
    """
    # imported late: the search over columns is itself built on this module
    from blockl0.data.design import Dense
    from blockl0.exact.search import ExactSearch
    from blockl0.losses import LOSSES
    from blockl0.problem.problem import Problem, Sparsity

    scale = np.sqrt(np.where(np.diag(H) > 0.0, np.diag(H), 1.0))
    eigenvalues, V = np.linalg.eigh(H / scale[:, None] / scale)
    root = np.sqrt(np.maximum(eigenvalues, LEAST_EIGENVALUE))
    A, b = root[:, None] * V.T, -(V.T @ (c / scale)) / root
    if not b.any():
        return BlockSolution(np.zeros(c.size), 0.0, True, 0, 0.0)
    problem = Problem(Dense(A), b, LOSSES["squared"], Sparsity(price, budget))
    search = ExactSearch(problem, np.empty(0, dtype=np.int64))
    while not search.finished and search.incumbent.iteration < NODE_LIMIT:
        search.advance(SLICE)
    z, constant = search.incumbent.w / scale, 0.5 * float(b @ b)
    value = search.incumbent.objective - constant
    return BlockSolution(
        z, value, search.finished, search.incumbent.iteration, search.bound - constant
    )


def _check_block(H: Any, c: Any) -> tuple[Floats, Floats]:
    """Check shapes, finiteness, symmetry, definiteness, and that the minimum exists."""
    H = np.ascontiguousarray(as_numeric(H, "H"), dtype=np.float64)
    c = np.ascontiguousarray(as_numeric(c, "c"), dtype=np.float64)
    if c.ndim != 1 or c.size == 0 or H.shape != (c.size, c.size):
        raise ValueError(
            f"`H` must be (k, k) and `c` (k,) with k >= 1, got shapes {H.shape} and {c.shape}."
        )
    if not (np.isfinite(H).all() and np.isfinite(c).all()):
        raise ValueError("`H` and `c` must be finite, got NaN or infinity.")
    if np.diag(H).min() < 0.0:
        raise ValueError(
            f"`H` must be positive semidefinite, got {np.diag(H).min():.3g} on its diagonal."
        )
    scale = np.sqrt(np.where(np.diag(H) > 0.0, np.diag(H), 1.0))
    R, b = H / scale[:, None] / scale, c / scale
    if np.abs(R - R.T).max() > 1e-8:
        raise ValueError("`H` must be symmetric; use (H + H.T) / 2.")
    eigenvalues, V = np.linalg.eigh(R)
    if eigenvalues[0] < -1e-8:
        raise ValueError(
            f"`H` must be positive semidefinite, got a (scaled) eigenvalue of {eigenvalues[0]:.3g}."
        )
    null = V[:, eigenvalues < 1e-13 * c.size]
    if null.size and np.abs(null.T @ b).max() > 1e-6 * np.abs(b).max():
        raise ValueError("`c` is not in the range of the singular `H`: there is no minimum.")
    return H, c
