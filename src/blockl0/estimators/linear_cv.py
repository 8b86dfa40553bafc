"""Shared by the cross-validated estimators: grid, folds, choice, metadata."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer
from sklearn.utils.metadata_routing import (
    UNUSED,
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)

from blockl0.blas import one_blas_thread
from blockl0.errors import warn_caller
from blockl0.estimators.binding import Data, StoredRows, rows_of
from blockl0.estimators.callbacks import FitTask, fit_task, with_callbacks
from blockl0.estimators.classifier import L0Classifier
from blockl0.estimators.coefficient_costs import (
    BY_COEFFICIENTS,
    column_costs,
    priced_points,
)
from blockl0.estimators.folds import (
    N_FOLDS,
    RIDGES,
    FoldScores,
    Split,
    Tell,
    each_fold,
    fold_factors,
    gathered,
    make_splits,
    moment_splits,
    ridge_of,
    score_fold,
    takes_weights,
    warn_of_folds,
)
from blockl0.estimators.linear import L0Linear
from blockl0.estimators.reading import guess_share
from blockl0.estimators.regressor import L0Regressor
from blockl0.path import Path, solve_path
from blockl0.problem.preprocess import AUTO, Prepared, Ridge, read_ridge
from blockl0.problem.problem import Problem, Sparsity
from blockl0.result import Status
from blockl0.search.local_search import FEW_ABOVE
from blockl0.selection import (
    CRITERIA,
    PAIRED,
    RULES,
    Comparison,
    best_point,
    can_judge,
    choose_by_score,
    count_samples,
    has_signal,
    mean_scores,
)
from blockl0.solve import solve_problem, with_left_out
from blockl0.units import COLUMNS
from blockl0.validate import check_choice, check_path

Floats = NDArray[np.float64]

DEFAULT_LARGEST = 20
"""Default largest budget of a path."""
CV_ATTRIBUTES = (
    "cv_scores_", "mean_scores_", "se_scores_", "best_score_", "cv_null_scores_", "cv_accuracies_",
    "cv_aucs_", "guess_accuracy_", "n_passes_", "ridge_",
)  # fmt: skip
"""Attributes of folds; removed by rules without folds."""
COMPLETE = (Status.CONVERGED, Status.OPTIMAL)
"""Statuses of the points of a path that was not cut short."""

Made = tuple[Prepared, Path]


def checks_chosen_only(problem: Problem) -> bool:
    """Return whether only the chosen point of a path is checked against every single change.

    Checks of all points take several times the path itself where columns are many.
    """
    is_wide = problem.n_features > FEW_ABOVE and problem.is_plain
    return is_wide and not problem.is_quadratic and problem.design.n_read is None


def fit_path(est: Any, X: Any, y: Any, known: Made | None = None, tell: Tell | None = None) -> Made:
    """Fit a cross-validated estimator, and return the path on all rows with its problem.

    Another estimator of the same data, budgets and ridge, with another rule, takes it as `known`.
    `tell` is called before every fold.
    """
    return est._fit_path(X, y, None, {}, known, tell)


class L0LinearCV(L0Linear):
    """Base class of the cross-validated estimators: grid, folds, choice, refit."""

    _most_by_default = DEFAULT_LARGEST
    _goes_on = False
    # the groups belong to the splitter, which requests them itself
    __metadata_request__fit: ClassVar = {"groups": UNUSED}

    def __init__(
        self, n_nonzero_coefs: Any, *, cv: Any, scoring: Any, rule: str, n_jobs: Any, **given: Any
    ) -> None:
        super().__init__(n_nonzero_coefs, n_jobs=n_jobs, **given)
        self.cv = cv
        self.scoring = scoring
        self.rule = rule

    @with_callbacks
    @one_blas_thread()
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        **metadata: Any,
    ) -> Self:
        """Fit the path to the folds and to all data, and keep the best point.

        With scikit-learn's metadata routing, `groups` and other `metadata` go to the splitter and
        scorer that have requested them, and `sample_weight` to the scorer if requested. Without
        routing there are only groups, for the splitter, and weights, for any scorer that takes
        them.
        """
        self._fit_path(X, y, sample_weight, {**metadata, "groups": groups})
        return self

    def get_metadata_routing(self) -> MetadataRouter:
        """Return how the metadata of `fit` are routed: to itself, the splitter and the scorer."""
        scorer = None if self.scoring is None else get_scorer(self.scoring)
        split, score = (
            MethodMapping().add(caller="fit", callee=callee) for callee in ("split", "score")
        )
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(splitter=self.cv, method_mapping=split)
        return router.add(scorer=scorer, method_mapping=score)

    def _route(self, sample_weight: Any, given: dict[str, Any]) -> tuple[Any, Any]:
        """Return (metadata of the splitter, of the scorer), by request if routing is enabled.

        Otherwise groups go to the splitter, and weights to a scorer that takes them.
        """
        given = {name: values for name, values in given.items() if values is not None}
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        if _routing_enabled():
            routed = process_routing(self, "fit", **given, **weights)
            return routed.splitter.split, routed.scorer.score
        _raise_for_params(given, self, "fit", allow=["groups"])
        is_for_scorer = self.scoring is not None and weights and takes_weights(self.scoring)
        return given, weights if is_for_scorer else {}

    def _fit_path(
        self, X: Any, y: Any, sample_weight: Any, metadata: dict[str, Any],
        known: Made | None = None, tell: Tell | None = None,
    ) -> Made:  # fmt: skip
        """Fit, and return the path on all rows, which another rule can take up as `known`."""
        self._loss()
        data = self._read(X, y, sample_weight)
        check_choice("rule", self.rule, (*RULES, *CRITERIA))
        for name in CV_ATTRIBUTES:
            self.__dict__.pop(name, None)  # from an earlier fit
        self._charge_coefficients(data.X)
        points, seed = self._points(data.X, data.weights), self._seed()
        for_splitter, for_scorer = self._route(data.weights, metadata)
        data = data._replace(for_scorer=for_scorer)
        # before the expensive part, so that wrong input is refused at once
        splits = self._splits(data, seed, for_splitter) if self.rule in RULES else []
        labels = self._labels(data.y)
        with fit_task(self, data.X, labels, data.weights, len(splits) + 1) as task:
            made = self._fit_all(data, splits, points, seed, task, known, tell)
            prepared, path, folds, final = made
            self._choose(path, prepared, folds, points, data)
            self._keep_readable(data, folds)
            final.end({})
        self._warn_of_constants(prepared)
        return prepared, path

    def _drawn_folds(self) -> dict[str, Any]:
        """Return the number of folds and their seed; empty if the rule needs none."""
        if self.rule not in RULES:
            return {}
        n_folds = N_FOLDS if self.cv is None else self.cv
        return {"folds": n_folds, "seed": self._row_seed(self._seed())}

    def _splits(self, data: Data, seed: int, metadata: dict[str, Any]) -> list[Split]:
        if rows_of(data.X).has_target:
            if self.scoring is not None or self.cv not in (None, data.X.n_folds) or metadata:
                raise ValueError(
                    "Moments are scored by the squared loss on their own folds; leave `scoring`, "
                    "`cv` and metadata out."
                )
            return moment_splits(data.X)
        seed = self._row_seed(seed)
        return make_splits(self.cv, data.X, data.y, is_classifier(self), seed, **metadata)

    def _fit_all(
        self,
        data: Data,
        splits: list[Any],
        points: Any,
        seed: int,
        task: FitTask,
        known: Made | None,
        tell: Tell | None,
    ) -> tuple[Prepared, Path, FoldScores, FitTask]:
        """Fit the path on all rows and score all folds; with X in blocks in shared passes."""
        if known is not None:
            prepared, path = known
            points = list(zip(path.alphas.tolist(), path.n_nonzero_coefs.tolist(), strict=True))
        elif self.costs_ is not None or not rows_of(data.X).is_stored:
            prepared = self._prepare(data, None, self.alpha or 0.0)
            points = self._priced(prepared, points, seed)
        if isinstance(rows := rows_of(data.X), StoredRows):
            jobs = self._fold_jobs(data, splits, points, seed, task)
            before, whole = data.X.n_read, task.part("path", len(splits))
            tasks = [partial(self._whole_path, data, points, seed, whole)]
            tasks += [partial(score_fold, *job) for job in jobs]
            (prepared, path), *found = rows.run(tasks)
            folds = gathered(found, len(points))
            made, folds = self._shrink(data, (prepared, path), folds, points, seed)
            self.n_passes_ = round(data.X.n_read - before)
            return *made, folds, whole
        jobs = self._fold_jobs(data, splits, points, seed, task)
        folds = gathered(each_fold(score_fold, jobs, self.n_jobs, tell), len(points))
        whole = task.part("path", len(splits)).begin()
        made = known or (prepared, self._path_of(prepared, points, seed))
        made, folds = self._shrink(data, made, folds, points, seed)
        return *made, folds, whole

    def _shrink(
        self, data: Data, made: Made, folds: FoldScores, points: Any, seed: int
    ) -> tuple[Made, FoldScores]:
        """Choose the ridge by the folds; return the path on all rows and the scores with it."""
        prepared, path = made
        if self.rule != PAIRED:
            return made, folds
        n_samples = count_samples(data.n_rows, data.weights)
        if self._has_null(data, points) and not has_signal(
            path, prepared.problem.loss, n_samples, folds.scores[:, : len(path)]
        ):
            return made, folds._replace(has_signal=False)
        at = Comparison(folds.by_ridge).ridge
        if at:
            self.ridge_ = ridge_of(at, prepared)
            made = self._whole_path(data, points, seed)
        return made, folds._replace(scores=folds.by_ridge[:, at], ridge=at)

    def _ridges(self, data: Data) -> Sequence[float]:
        """Return the ridges to compare beside the estimator's own, for each row."""
        is_open = isinstance(self.ridge, str) and self.ridge == AUTO
        is_known = self._fact("is_quadratic") and self.scoring is None
        return RIDGES if is_open and is_known else ()

    def _has_null(self, data: Data, points: Any) -> bool:
        """Check if the path begins with the kept columns alone."""
        return points[0][1] == self._n_kept(data.X.shape[1])

    def _ridge(self) -> Ridge:
        """Return the ridge that was chosen, or the one given."""
        return read_ridge(self.ridge_) if hasattr(self, "ridge_") else super()._ridge()

    def _whole_path(self, data: Data, points: Any, seed: int, task: FitTask | None = None) -> Made:
        if task is not None:
            task.begin()
        prepared = self._prepare(data, None, self.alpha or 0.0)
        return prepared, self._path_of(prepared, points, seed)

    def _fold_jobs(
        self, data: Data, splits: list[Any], points: Any, seed: int, task: FitTask
    ) -> list[Any]:
        """Return the arguments of `score_fold` for every fold."""
        factors = fold_factors(self, data, splits)
        ridges = self._ridges(data) if self.rule == PAIRED else ()
        return [
            (self, data, split, points, seed, task.part("fold", i), factors[i], ridges)
            for i, split in enumerate(splits)
        ]

    def _choose(
        self, path: Path, prepared: Prepared, folds: FoldScores, points: Any, data: Data
    ) -> None:
        """Choose the point by the rule."""
        if self.rule in RULES:
            found = folds.scores[:, : len(path)]
            mean, error = mean_scores(found)
            chosen = self._choose_point(path, folds)
            warn_of_folds(found, points[: len(path)])
            self.cv_scores_, self.mean_scores_, self.se_scores_ = found, mean, error
            self.best_score_ = float(mean[chosen])
        else:
            if not can_judge(path).any():
                warn_caller(
                    f"The sample weights sum to {path.n_samples:.3g}, which the criteria take for "
                    "the number of samples, and no point of the path has fewer coefficients; "
                    "weights that count samples sum to about as many as there are.",
                )
            chosen = best_point(self.rule, path)
        if len(path) < len(points):
            warn_caller(
                f"The path was cut ({path[-1].status}) after {len(path)} of {len(points)} points, "
                f"at n_nonzero_coefs={path.n_nonzero_coefs[-1]}; larger ones were not considered.",
                ConvergenceWarning,
            )
        self._keep_path(path, prepared, chosen)

    def _choose_point(self, path: Path, folds: FoldScores) -> int:
        """Choose the point by the scores of the folds."""
        sizes = path.n_nonzero if self.costs_ is None else path.n_coefficients
        found = folds.scores[:, : len(path)]
        if self.rule != PAIRED:
            return choose_by_score(found, sizes, self.rule)[0]
        if not folds.has_signal:
            return 0
        return Comparison(folds.by_ridge[:, :, : len(path)]).point(folds.ridge, sizes)

    def _keep_readable(self, data: Data, folds: FoldScores) -> None:
        """Store readable results: standard deviations, and the estimator's own scores."""
        self.path_ = replace(self.path_, spreads=rows_of(data.X).spreads)
        if self.scoring is None and self.rule in RULES:
            self.cv_null_scores_ = folds.null
            if is_classifier(self):
                self.cv_accuracies_ = folds.accuracies[:, : len(self.path_)]
                self.cv_aucs_ = folds.aucs[:, : len(self.path_)]
                self.guess_accuracy_ = guess_share(data.y, data.weights)

    def _points(self, X: Any, weights: Any) -> list[tuple[float, int]]:
        """Return (price, budget) along the path: 0..K for a number K, or the given budgets."""
        n_kept, budgets = self._n_kept(X.shape[1]), self.n_nonzero_coefs
        units = self._units(X.shape[1])
        n_units = units.number(X.shape[1])
        name = "n_features" if units is COLUMNS else "n_groups"
        if budgets is None:
            budgets = self._default_budget(X, n_kept, weights)
        if np.ndim(budgets) == 0:
            # one check of type and size for numbers and lists
            top = check_path(budgets, None, 0.0, n_units, 0, name)[-1][1]
            budgets = range(n_kept, top + 1)
        return check_path(budgets, None, self.alpha or 0.0, n_units, n_kept, name)

    def _charge_coefficients(self, X: Any) -> None:
        """Find what the columns pay for the coefficients of their groups, as `costs` says."""
        self.costs_ = None
        if self.costs is None:
            return
        check_choice("costs", self.costs, (BY_COEFFICIENTS,))
        if self.alpha:
            raise ValueError(
                f"costs={self.costs!r} sets the price of a coefficient itself, got "
                f"alpha={self.alpha}; leave one of them out."
            )
        self.costs_ = column_costs(X, self._units(X.shape[1]), self.fit_intercept)

    def _priced(self, prepared: Prepared, points: Any, seed: int) -> Any:
        """Add the prices of a coefficient to the points, if coefficients have costs."""
        if self.costs_ is None:
            return points

        def solve(points: Any) -> Path:
            path = solve_path(
                prepared.problem, points, random_state=seed, time_limit=self.time_limit,
                is_checked=False,
            )  # fmt: skip
            if path[-1].status is Status.INTERRUPTED:
                raise KeyboardInterrupt  # there is no answer yet that could be returned
            return path

        criterion = self.rule if self.rule in CRITERIA else "bic"
        budgets = [budget for _, budget in points]
        return priced_points(budgets, criterion, solve, prepared.problem.smooth_at_zero)

    def _structure(self, n_features: int) -> dict[str, Any]:
        return {**super()._structure(n_features), "costs": self.costs_}

    def _price_at(self, budget: int) -> float:
        if self.costs_ is None:
            return 0.0
        return float(np.interp(budget, self.path_.n_nonzero_coefs, self.path_.alphas))

    def _path_of(self, prepared: Prepared, points: Any, seed: int, is_checked: bool = True) -> Path:
        is_checked = is_checked and not checks_chosen_only(prepared.problem)
        return solve_path(
            prepared.problem, points, random_state=seed, time_limit=self.time_limit,
            verbose=self.verbose, effort=self.effort, is_checked=is_checked,
        )  # fmt: skip

    def _check_chosen(self, path: Path, prepared: Prepared, chosen: int) -> Path:
        """Search on from the chosen point of a path whose points are not checked, and check it.

        Where that finds better, no later point of the path stays worse.
        """
        problem, is_cut = prepared.problem, path[-1].status not in COMPLETE
        if is_cut or not checks_chosen_only(problem):
            return path
        sparsity = Sparsity(float(path.alphas[chosen]), int(path.n_nonzero_coefs[chosen]))
        found = solve_problem(
            replace(problem, sparsity=sparsity), "refit", random_state=self._seed(),
            init=path[chosen].coef, effort=self.effort, time_limit=self.time_limit,
        )  # fmt: skip
        results, losses = list(path.results), path.losses.copy()
        # a second fit of the same support may differ in its last bits, either way
        is_same = np.array_equal(found.support, results[chosen].support)
        if not (is_same or found.objective <= results[chosen].objective):
            return path
        for i in range(chosen, len(results)):
            if i == chosen or results[i].objective > found.objective:
                results[i] = found if i == chosen else replace(found, certificate=None)
                losses[i] = problem.data_loss(problem.from_given(found.coef))
        return replace(path, results=tuple(results), losses=losses)

    def _keep_path(self, path: Path, prepared: Prepared, chosen: int) -> None:
        path = self._check_chosen(path, prepared, chosen)
        names = getattr(self, "feature_names_in_", None)
        self.path_ = replace(
            path,
            intercepts=np.array([prepared.invert(result.coef)[1] for result in path]),
            feature_names=None if names is None else tuple(map(str, names)),
        )
        self.best_index_ = chosen
        self.best_n_nonzero_coefs_ = int(path.n_nonzero_coefs[chosen])
        sparsity = Sparsity(float(path.alphas[chosen]), self.best_n_nonzero_coefs_)
        problem = replace(prepared.problem, sparsity=sparsity)
        self._store(with_left_out(path[chosen], problem), prepared)

    def _chosen_sparsity(self) -> tuple[Any, Any]:
        budget = self.best_n_nonzero_coefs_
        return budget, self.alpha if self.costs_ is None else self._price_at(budget)

    def _plain(self, budget: int | None = None) -> Any:
        kind = L0Classifier if is_classifier(self) else L0Regressor
        given = self.get_params(deep=False)
        common = {name: given[name] for name in kind().get_params() if name in given}
        common["n_nonzero_coefs"] = self.best_n_nonzero_coefs_ if budget is None else budget
        common["costs"] = None
        if budget is None and self.costs_ is not None:
            common |= {"alpha": self._price_at(common["n_nonzero_coefs"]), "costs": self.costs_}
        common["ridge"] = getattr(self, "ridge_", self.ridge)
        return kind(**common)
