"""Sequences of budgets or prices, with each point also started from both its neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from blockl0.blas import one_blas_thread
from blockl0.problem.factors import reduced
from blockl0.problem.problem import Sparsity, problem_of
from blockl0.result import Result, Status
from blockl0.run import Callback, Incumbent, Run, timed_by
from blockl0.search.frontier import Frontier
from blockl0.search.local_search import FEW_ABOVE
from blockl0.search.search import finish, improve, make_search, refit_options
from blockl0.search.search_base import Search
from blockl0.search.shared_frontier import SharedFrontier
from blockl0.selection import best_point, information_criterion, path_frame
from blockl0.solve import check_method, open_run
from blockl0.units import COLUMNS
from blockl0.validate import check_path, check_random_state

Floats = NDArray[np.float64]

MAX_SWEEPS = 4
"""Rounds of starts from neighbours, forth and back; fewer if nothing changes."""
TOGETHER_BYTES = 256 << 20
"""Memory for the pools of points solved side by side, in bytes."""


@dataclass(frozen=True, eq=False, repr=False)
class Path:
    """Results along a sequence of budgets or prices.

    Attributes
    ----------
    n_nonzero_coefs : ndarray of int (p,)
        The budgets, ascending; for a path of prices the largest possible one.
    alphas : ndarray (p,)
        The prices, descending; for a path of budgets the given price, or zero.
    results : tuple of Result
        One per point; `status` shows if a time limit, Ctrl-C or the callback cut it short. The
        `seconds` and `n_passes` of each are its own; shared work is counted by the first.
    seconds : float
        Time of the whole path.
    losses : ndarray (p,)
        The loss at every point, summed over the samples, without ridge and price.
    loss : str
        Name of the loss.
    has_scale : bool
        Whether the likelihood of that loss has a scale, which criteria also maximize over.
    n_samples : float
        Rows of X; with sample weights, their sum.
    intercepts : ndarray or None
        One per point, or one row per point for several classes, if fitted.
    feature_names : tuple of str or None
    spreads : ndarray (n_features,) or None
        The standard deviations of the columns, for paths of an estimator.
    n_directions : int
        Free coefficients per column: responses, or classes less one.
    n_responses : int
        Columns of y.
    """

    n_nonzero_coefs: NDArray[np.int64]
    alphas: Floats
    results: tuple[Result, ...]
    seconds: float = 0.0
    losses: Floats = field(default_factory=lambda: np.empty(0))
    loss: str = "squared"
    has_scale: bool = True
    n_samples: float = 0.0
    intercepts: Any = None
    feature_names: tuple[str, ...] | None = None
    spreads: Floats | None = None
    n_directions: int = 1
    n_responses: int = 1

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def __getitem__(self, i: int) -> Result:
        return self.results[i]

    def at(self, n_nonzero_coefs: int) -> Result:
        """Return the result for a budget of the path."""
        where = np.flatnonzero(self.n_nonzero_coefs == n_nonzero_coefs)
        if where.size != 1:
            raise KeyError(
                f"no single point for n_nonzero_coefs={n_nonzero_coefs}; the path has "
                f"{_brief(self.n_nonzero_coefs)}."
            )
        return self.results[where[0]]

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return self.results[0].coef.shape[0]

    @property
    def n_units(self) -> int:
        """Number of units that a budget counts: columns of X, or groups."""
        return self.results[0].n_units

    @property
    def objective(self) -> Floats:
        """The objective at every point, (p,)."""
        return np.array([result.objective for result in self.results])

    @property
    def n_nonzero(self) -> NDArray[np.int64]:
        """The number of nonzeros at every point, (p,), or of groups if the budget counts them."""
        return np.array([result.n_nonzero for result in self.results], dtype=np.int64)

    @property
    def n_coefficients(self) -> NDArray[np.int64]:
        """Free coefficients at every point, (p,): of C classes C − 1 per column, of q responses q.

        A group has as many as columns that are not zero.
        """
        sizes = np.array([support.size for support in self.supports], dtype=np.int64)
        return sizes * self.n_directions

    @property
    def supports(self) -> list[NDArray[np.int64]]:
        """The chosen columns at every point."""
        return [result.support for result in self.results]

    @property
    def coefs(self) -> sp.csr_array:
        """The coefficients, sparse (p, n); for several classes their Euclidean norms."""
        supports = self.supports
        values = [r.coef[s] for r, s in zip(self.results, supports, strict=True)]
        if self.results[0].coef.ndim == 2:
            values = [np.sqrt((v**2).sum(axis=1)) for v in values]
        indptr = np.concatenate([[0], np.cumsum([s.size for s in supports])])
        shape = (len(self), self.n_features)
        return sp.csr_array((np.concatenate(values), np.concatenate(supports), indptr), shape=shape)

    def criterion(self, name: str) -> Floats:
        """Compute an information criterion at every point, (p,); lower is better.

        With the loss L, n samples (the sum of the sample weights, which count samples), p columns
        and k nonzeros, it is D plus a penalty. D is n·log(2L/n) for "squared", the likelihood
        maximized over the scale, too, for "gamma" and "tweedie", where that is an approximation
        that is the better the smaller their dispersion, and by analogy for "huber"; and 2L for the
        others, a deviance but for "squared_hinge". The penalties are 2k for "aic", k·log n for
        "bic", k·log n + 2·log C(p, k) for "ebic", where C(p, k) is at most C(p, p/2), and
        k·log p·log log n for "gic". With at least as many columns as samples the others charge
        2·log C(p, k), too, and for losses with a scale all of it is multiplied by n/(n - k - 1):
        otherwise the largest model wins, even in noise. For several classes or responses k counts
        coefficients, for groups those of all columns that are not
        zero, while p and C(p, k) count groups; q responses are n·q numbers in D.
        """
        return information_criterion(name, self)

    def best(self, criterion: str = "bic") -> Result:
        """Return the point with the lowest "aic", "bic", "ebic" or "gic"; the sparsest of equal
        ones.

        Points with more than half as many coefficients as samples nearly interpolate and are
        excluded, unless there are no others. For cross-validation see `L0RegressorCV`.
        """
        return self.results[best_point(criterion, self)]

    def to_frame(self) -> Any:
        """Tabulate one row per point: budget, price, nonzeros, loss, objective, criteria, support.

        Needs pandas.
        """
        return path_frame(self)

    def __repr__(self) -> str:
        return (
            f"Path({len(self)} points, n_nonzero {_brief(self.n_nonzero)}, objective "
            f"{self.results[0].objective:.6g} to {self.results[-1].objective:.6g}, "
            f"seconds={self.seconds:.3g})"
        )


@one_blas_thread()
def l0_path(
    X: Any,
    y: ArrayLike | None = None,
    *,
    n_nonzero_coefs: int | Sequence[int] | None = None,
    alphas: ArrayLike | None = None,
    alpha: float = 0.0,
    ridge: float = 0.0,
    loss: Any = "squared",
    keep: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    feature_groups: Any = None,
    bounds: Any = None,
    positive: Any = None,
    costs: Any = None,
    random_state: Any = None,
    time_limit: float | None = None,
    memory_limit: float | None = None,
    callback: Callback | None = None,
    verbose: int | bool = 0,
    effort: str | int = "fast",
    **method_options: Any,
) -> Path:
    """Solve for every budget 1..K, or for every price of a grid, by method "refit".

    Each point is first solved alone, exactly as ``solve(..., effort=effort)`` with the same seed
    does; then it is started from its neighbours on both sides, forth and back along the path, until
    nothing changes. So a point of the path is the result of `solve`, or strictly better, and the
    objective never increases with the budget, nor with a falling price. The Gram matrix of the
    columns is shared by all points. With more effort than "fast", points of the squared loss after
    one with 40 nonzeros or more are not solved alone: they share annealings down to the last point,
    and each continues from the best support of its size found by any of them.

    Parameters
    ----------
    X, y, ridge, loss, keep, sample_weight, feature_groups, bounds, positive, costs
        As in `blockl0.solve`; `costs` require `alphas`, or budgets with `alpha`.
    n_nonzero_coefs : int or sequence of int, optional
        K for the budgets 1..K (with `keep`, from the number of kept columns), or the budgets.
    alphas : array-like, optional
        The prices of a nonzero; give either these or `n_nonzero_coefs`.
    alpha : float
        A price that every point of a path of budgets pays as well.
    random_state : int, Generator or None
        One seed for every point.
    time_limit : float, optional
        Seconds for the whole path. Points that were not reached are left out; there is always at
        least one.
    memory_limit : float, optional
        Bytes for an X that is read in blocks; see `solve`.
    callback : callable, optional
        Called with a `Progress` after every round of every point; returning True stops the path.
    verbose : int or bool
        Log progress every `verbose` seconds.
    effort : "fast", "balanced", "thorough" or int
        Effort per point; see `solve`.
    **method_options
        `pool`, `n_jobs` of method "refit".

    Returns
    -------
    Path

    Examples
    --------
    >>> import numpy as np
    >>> from blockl0 import l0_path
    >>> X = np.random.default_rng(0).standard_normal((50, 20))
    >>> path = l0_path(X, X[:, 3] - 2 * X[:, 7], n_nonzero_coefs=3, random_state=0)
    >>> [support.tolist() for support in path.supports[:2]]
    [[7], [3, 7]]
    """
    check_method("refit", method_options)
    # costs multiply prices, and budgets alone have none
    price = alpha if costs is None or alphas is not None or alpha else None
    problem = problem_of(
        X, y, alpha=price, ridge=ridge, loss=loss, sample_weight=sample_weight, keep=keep,
        feature_groups=feature_groups, bounds=bounds, positive=positive, costs=costs,
        n_nonzero_coefs=1 if price is None else None, memory_limit=memory_limit,
    )  # fmt: skip
    name = "n_features" if problem.units is COLUMNS else "n_groups"
    points = check_path(n_nonzero_coefs, alphas, alpha, problem.n_units, problem.keep.size, name)
    return solve_path(
        problem, points, random_state=random_state, time_limit=time_limit, callback=callback,
        verbose=verbose, effort=effort, **method_options,
    )  # fmt: skip


@one_blas_thread()
def solve_path(
    problem: Any,
    points: Sequence[tuple[float, int]],
    *,
    random_state: Any = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    verbose: int | bool = 0,
    effort: str | int = "fast",
    are_linked: bool = True,
    is_checked: bool = True,
    **method_options: Any,
) -> Path:
    """Solve the path of a problem at (price, budget) points; see `l0_path`.

    Unless linked, points ignore those after them, so that none depends on how far a path goes.
    Unless checked, points of other losses are not certified, and the first round is replaced by a
    descent from all columns, which is faster.
    """
    clock = open_run(
        problem, "refit", {"effort": effort, **method_options}, time_limit=time_limit,
        callback=callback, verbose=verbose,
    )  # fmt: skip
    options, rounds = refit_options(effort, **method_options)
    # all points are seeded alike, like separate calls
    seed = random_state
    if not isinstance(random_state, int | np.integer):
        seed = int(check_random_state(random_state).integers(2**63))
    options = options._replace(is_checked=is_checked)
    is_quick, is_wide = not (is_checked or problem.is_quadratic), problem.n_features > FEW_ABOVE
    if rounds == 0 and is_quick and are_linked and is_wide:
        # neighbours contribute most of what a round would
        rounds = -1
    search = make_search(reduced(problem, clock), options)
    common = SharedFrontier(search, Sparsity(*points[-1])) if are_linked and rounds > 0 else None
    n_shared, sparsities = search.n_passes, [Sparsity(*p) for p in points]
    path = _search_all(search, sparsities, clock, seed)
    is_known = path is not None
    if path is None:
        asks_last = is_quick and not (are_linked or is_wide)
        path = _solve_each(search, sparsities, clock, seed, rounds, common, asks_last)
    path[0].n_passes += n_shared
    if are_linked and not is_known:
        if not any(point.is_cut for point in path):
            with timed_by(clock):
                _ask_neighbours(path, clock)
        _carry_forward(path)
    results = tuple(point.result() for point in path)
    return Path(
        n_nonzero_coefs=np.array([budget for _, budget in points[: len(path)]], dtype=np.int64),
        alphas=np.array([price for price, _ in points[: len(path)]]),
        results=results,
        seconds=clock.seconds,
        losses=np.array(
            [_loss_at(point.run.problem, r) for point, r in zip(path, results, strict=True)]
        ),
        loss=problem.loss.name,
        has_scale=getattr(problem.loss, "has_scale", False),
        n_samples=problem.total_weight,
        n_directions=problem.loss.n_directions,
        n_responses=problem.n_outputs if problem.loss.takes_responses else 1,
    )


def _loss_at(problem: Any, result: Result) -> float:
    """Compute the loss without ridge and price; equals the objective if there is neither."""
    if problem.ridge == 0.0 and problem.sparsity.price == 0.0:
        return result.objective
    return problem.data_loss(problem.from_given(result.coef))


@dataclass
class _Point:
    """A point of a path under construction."""

    search: Search
    incumbent: Incumbent
    status: Status
    run: Run
    rng: np.random.Generator
    seconds: float
    n_passes: int

    def result(self) -> Result:
        """Return the result, with the time and passes of this point alone."""
        found = finish(self.search, self.incumbent, self.status, self.run)
        return replace(found, seconds=self.seconds, n_passes=self.n_passes)

    @property
    def is_cut(self) -> bool:
        """Whether the clock, the callback or Ctrl-C ended it."""
        return self.status not in (Status.CONVERGED, Status.OPTIMAL)

    def try_from(self, other: Incumbent, must_replace: bool) -> bool:
        """Descend from another point; return True if it is better, or this one must be replaced."""
        budget, w = self.search.problem.sparsity.budget, other.w
        start, passes = self.run.seconds, self.search.n_passes
        if self.search.problem.occupied(w).size > budget:
            w = self.search.shrink(w, budget)
        found = self.search.settle(self.search.start(w, self.run), self.run)
        self.search.release()
        self.seconds += self.run.seconds - start
        self.n_passes += self.search.n_passes - passes
        gain = self._gain(found)
        if gain <= self.search.tolerance and not (must_replace and gain > 0.0):
            return False
        found = self.search.settle_checked(found, self.run)
        found.iteration += self.incumbent.iteration
        self.incumbent = found
        self.status = self.run.record(found) or self.status
        return True

    def _gain(self, other: Incumbent) -> float:
        """Compute by how much another point is better."""
        return self.incumbent.objective - other.objective


def _search_all(
    search: Search, points: Sequence[Sparsity], clock: Run, seed: Any
) -> list[_Point] | None:
    """Solve all budgets by one search of all subsets; None if there are too many."""
    if any(point.price > 0.0 for point in points):
        return None
    started, passes = clock.seconds, search.n_passes
    try:
        with timed_by(clock):
            found = search.best_of_sizes(points[-1].budget, clock)
    except KeyboardInterrupt as stop:
        clock.interrupt(stop)
        return None
    if found is None:
        return None
    path: list[_Point] = []
    for sparsity in points:
        at = search.for_sparsity(sparsity)
        incumbent = at.start(found[sparsity.budget])
        is_open = incumbent.objective > search.negligible
        incumbent.is_settled = search.options.is_checked and is_open
        run = clock.part(replace(clock.problem, sparsity=sparsity), is_shown=True)
        status = run.record(incumbent) or Status.CONVERGED
        # the first one counts shared work
        n_passes, passes = search.n_passes - passes, search.n_passes
        seconds, started = clock.seconds - started, clock.seconds
        rng = check_random_state(seed)
        path.append(_Point(at, incumbent, status, run, rng, seconds, n_passes))
        if path[-1].is_cut:
            break
    return path


def _solve_each(
    search: Search,
    points: Sequence[Sparsity],
    clock: Run,
    seed: Any,
    rounds: int,
    common: SharedFrontier | None,
    asks_last: bool,
) -> list[_Point]:
    """Solve the points alone, as `solve` does; large ones of many share a frontier.

    With `asks_last`, each is also started from the one before. Stops after the first that is cut.
    """
    several, width = search.for_sparsity(points[-1]).together(
        TOGETHER_BYTES / search.problem.design.n_searches
    )
    are_alone = common is None or not common.may_serve(points)
    if width > 1 and are_alone and not asks_last:
        return _solve_together(several, width, points, clock, seed, rounds)
    path = [_solve_point(search, points[0], clock, seed, rounds)]
    for i, sparsity in enumerate(points[1:], start=1):
        if path[-1].is_cut:
            break
        before, init, frontier = path[-1].incumbent, None, None
        if common is not None and common.serves(before, len(points) - i):
            if common.frontier is None and not _filled(common, path[-1], clock, seed):
                break
            init, frontier = common.start_for(sparsity, before), common.frontier
        path.append(_solve_point(search, sparsity, clock, seed, rounds, init, frontier))
        if asks_last and not path[-1].is_cut:
            try:
                with timed_by(clock):
                    path[-1].try_from(before, must_replace=False)
            except KeyboardInterrupt as stop:
                path[-1].status = clock.status_of(stop)
    return path


def _solve_together(
    search: Any, width: int, points: Sequence[Sparsity], clock: Run, seed: Any, rounds: int
) -> list[_Point]:
    """Solve the points alone, `width` of them side by side, sharing only passes over X.

    The first counts the passes, and each an equal share of the time. Stops after one that is cut.
    """
    path: list[_Point] = []
    for start in range(0, len(points), width):
        here, passes, begun = points[start : start + width], search.n_passes, clock.seconds
        runs = [clock.part(replace(clock.problem, sparsity=s), is_shown=True) for s in here]
        tasks = [
            partial(_solve_point, search, sparsity, clock, seed, rounds, run=run)
            for sparsity, run in zip(here, runs, strict=True)
        ]
        with timed_by(clock):
            some = search.run_together(tasks, lambda runs=runs: [run.interrupt() for run in runs])
        for point in some:
            point.n_passes, point.seconds = 0, (clock.seconds - begun) / len(some)
            point.incumbent.prices = None  # they can be recomputed from the search's memory
            point.search.release()
        some[0].n_passes = search.n_passes - passes
        path += some
        if any(point.is_cut for point in some):
            break
    return path


def _filled(common: SharedFrontier, last: _Point, clock: Run, seed: Any) -> bool:
    """Fill the frontier; return False, with a status at the last point, on Ctrl-C."""
    start = clock.seconds
    try:
        with timed_by(clock):
            common.fill(clock, check_random_state(seed))
    except KeyboardInterrupt as stop:
        last.status = clock.status_of(stop)
        return False
    last.seconds += clock.seconds - start
    return True


def _solve_point(
    search: Search,
    sparsity: Sparsity,
    clock: Run,
    seed: Any,
    rounds: int,
    init: Floats | None = None,
    frontier: Frontier | None = None,
    run: Run | None = None,
) -> _Point:
    """Solve a point as `solve` does, or from a start and its frontier."""
    passes = search.n_passes
    search = search.for_sparsity(sparsity)
    if run is None:
        run = clock.part(replace(clock.problem, sparsity=sparsity), is_shown=True)
    rng = check_random_state(seed)
    with timed_by(run):
        incumbent, status = improve(search, init, run, rng, rounds, frontier)
    n_passes = search.n_passes - passes
    return _Point(search, incumbent, status, run, rng, run.seconds, n_passes)


def _ask_neighbours(path: list[_Point], clock: Run) -> None:
    """Start every point from its neighbours, forth and back, until nothing changes."""
    last = len(path) - 1
    # a neighbour is tried again only after it has changed
    news = [{i - 1, i + 1} & set(range(last + 1)) for i in range(last + 1)]
    try:
        for sweep in range(2 * MAX_SWEEPS):
            order = range(1, last + 1) if sweep % 2 == 0 else range(last - 1, -1, -1)
            step = -1 if sweep % 2 == 0 else 1
            for i in order:
                if clock.seconds_left <= 0.0:
                    path[-1].status = Status.TIME_LIMIT
                    return
                if i + step not in news[i]:
                    continue
                news[i].discard(i + step)
                beside = path[i + step].incumbent
                # more room, or a lower price, must never give a higher objective
                is_above = step == -1 and path[i].incumbent.objective > beside.objective
                if path[i].try_from(beside, is_above):
                    if path[i].is_cut:
                        return
                    for j in {i - 1, i + 1} & set(range(last + 1)):
                        news[j].add(i)
            if not any(news):
                return
    except KeyboardInterrupt as stop:
        path[-1].status = clock.status_of(stop)


def _carry_forward(path: list[_Point]) -> None:
    """Replace points above their predecessor, which happens if a path was cut early."""
    for before, point in pairwise(path):
        here = point.search.problem.objective(before.incumbent.w)
        if here < point.incumbent.objective:
            w, n_nonzero = before.incumbent.w, before.incumbent.n_nonzero
            point.incumbent = replace(point.incumbent, w=w, objective=here, n_nonzero=n_nonzero,
                                      prices=None, is_settled=False, is_proven=False)  # fmt: skip


def _brief(values: NDArray[np.int64]) -> str:
    return f"{values[0]}..{values[-1]}" if values.size > 1 else str(values[0])
