"""Estimators of a command: made from its options, fitted, scored, and proven."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import blockl0
from blockl0.app.cli.data import CommandData
from blockl0.app.cli.job import Interrupted, Job
from blockl0.app.cli.options import FOLD_RULES
from blockl0.app.cli.progress import PathWatch, SearchWatch, aborting, watched
from blockl0.app.cli.structure import bounds_of, class_weights, kept_columns
from blockl0.certify import certify_problem
from blockl0.errors import OutOfReachError
from blockl0.estimators.binding import bind as bind_data
from blockl0.estimators.binding import plain_estimator, read_data
from blockl0.estimators.coefficient_costs import column_costs
from blockl0.estimators.linear_cv import fit_path
from blockl0.estimators.reading import class_scores
from blockl0.exact import obstacle
from blockl0.exact.few_columns import may_enumerate
from blockl0.losses import get_loss
from blockl0.search.search import EFFORTS
from blockl0.selection import CRITERIA, readable_scores
from blockl0.solve import METHODS, solve_problem
from blockl0.validate import check_groups

SEARCH, AFTER = 1.6, 3
"""How --time-limit is divided. With -k the search gets one of `SEARCH` shares, the explanation the
rest; otherwise every path gets one share, and the explanation `AFTER`."""
LARGEST_PROOF = 3000
"""Columns up to which a proof is tried by default."""
MOST_ENTRIES = 20_000_000
"""Entries of X up to which a proof is tried by default."""
WORK, INSISTENT_WORK = 5.0, 60.0
"""Units of 1e9 multiplications for a proof, about a second each, by default and if requested.
They are counted, so that the same data give the same claim on any machine, however busy.
"""


@dataclass
class Fitted:
    """A fitted model, its data, how its size was chosen, and whether Ctrl-C ended it early."""

    model: Any
    data: CommandData
    choice: dict[str, Any] | None = None
    is_cut: bool = False

    def __post_init__(self) -> None:
        self.is_cut |= str(self.model.status_) == "interrupted"

    @property
    def budget(self) -> int:
        """The budget: given, or chosen."""
        return int(getattr(self.model, "best_n_nonzero_coefs_", self.model.n_nonzero_coefs))

    @cached_property
    def prepared(self) -> Any:
        """The problem that the model solves at its budget, prepared from the training data."""
        return bind(plain_estimator(self.model), self.data)


def make_estimator(data: CommandData, options: dict[str, Any], **more: Any) -> Any:
    """Make an estimator from the options; with `rule` one that chooses the number of columns."""
    names = ("L0ClassifierCV", "L0Classifier", "L0RegressorCV", "L0Regressor")
    kind = names[2 * (not data.is_classification) + ("rule" not in more)]
    given = {name: options.get(name) for name in ("ridge", "effort")}
    given = {name: value for name, value in given.items() if value is not None}
    if data.is_streamed:
        more.pop("cv", None)  # moments have their own folds
    if "rule" in more:
        more["costs"] = costs_of(data, options)
    if data.is_classification:
        more["class_weight"] = class_weights(data.table.target, data.labels, options)
    return getattr(blockl0, kind)(
        loss=data.loss, keep=kept_columns(data.table, options.get("keep", ())),
        feature_groups=data.table.groups, bounds=bounds_of(data.table, options),
        random_state=options["seed"], **given, **more,
    )  # fmt: skip


def bind(model: Any, data: CommandData) -> Any:
    """Build the problem that an estimator, fitted or not, solves on the training data."""
    return bind_data(model, read_data(model, data.X, data.y))


# -- costs of categories ---------------------------------------------------------------------------


def costs_of(data: CommandData, options: dict[str, Any]) -> str | None:
    """Return the costs of categories: by coefficients, unless --costs is none."""
    costs = options.get("costs", "none")
    return costs if costs != "none" and data.table.groups is not None else None


def _charge_coefficients(model: Any, data: CommandData, options: dict[str, Any]) -> None:
    """Set the price and costs of a model with a given budget, if categories are charged."""
    if costs_of(data, options) is None:
        return
    rule = options.get("rule")
    chooser = make_estimator(
        data, {**options, "effort": "fast"}, n_nonzero_coefs=[model.n_nonzero_coefs],
        rule=rule if rule in CRITERIA else "bic",
    ).fit(data.X, data.y)  # fmt: skip
    # the price of a coefficient depends on the loss at this size, which a path of one point finds
    priced = plain_estimator(chooser)
    model.set_params(alpha=priced.alpha, costs=priced.costs)


def coefficient_costs(data: CommandData) -> Any:
    """Compute the costs of the columns of X, as a fit does; None if no category pays."""
    return column_costs(data.X, check_groups(data.table.groups, data.X.shape[1]))


# -- fits ------------------------------------------------------------------------------------------


def fit_k(job: Job, data: CommandData, options: dict[str, Any]) -> Fitted:
    """Fit with at most this many columns."""
    model = make_estimator(data, options, n_nonzero_coefs=options["columns"])
    _charge_coefficients(model, data, options)
    rounds = EFFORTS[model.effort] if isinstance(model.effort, str) else model.effort
    shorter = "--effort fast is quicker; Ctrl-C takes the best so far"
    with watched(job, "Searching", SearchWatch, rounds, shorter=shorter, shares=SEARCH):
        return Fitted(model.fit(data.X, data.y), data)


def largest_size(job: Job, data: CommandData, k: int | None) -> int | None:
    """Return the end of a path: the requested one, at most all columns."""
    n = data.n_units
    if k is not None and k > n:
        job.notice(f"There are {n} columns to choose from: the path ends there.")
    return None if k is None else min(k, n)


def fit_choosing(job: Job, data: CommandData, options: dict[str, Any]) -> Fitted:
    """Fit by a criterion first, then by cross-validation, so that Ctrl-C leaves a model."""
    rule, folds = options["rule"], options["folds"]
    by_folds = rule in FOLD_RULES
    most = largest_size(job, data, options["max_k"])
    more = {"n_nonzero_coefs": most, "cv": folds, "n_jobs": options["jobs"]}
    first = make_estimator(data, options, rule="bic" if by_folds else rule, **more)
    shorter = "a smaller --max-k, or --time-limit, ends it sooner"
    n_points, shares = (most or min(20, data.n_units)) + 1, (folds if by_folds else 0) + AFTER + 1
    with watched(job, "Path", PathWatch, n_points, shorter=shorter, shares=shares):
        path = fit_path(first, data.X, data.y)
    is_cut = str(first.path_[-1].status) == "interrupted"
    if not by_folds or is_cut:
        return Fitted(first, data, _choice(job, first), is_cut)
    # the criterion's model stays: it is the answer if Ctrl-C or the time limit ends the folds
    model, n_points = make_estimator(data, options, rule=rule, **more), len(first.path_) * folds
    title, shorter = f"Cross-validation, {folds} folds", f"{shorter}; so is --rule bic"
    shares = (folds + AFTER) / folds
    try:
        with watched(job, title, PathWatch, n_points, shorter=shorter, shares=shares), aborting():
            # the path on all rows is that of the criterion: it is made once
            fit_path(model, data.X, data.y, path)
    except Interrupted:
        job.notice("Cross-validation was interrupted: the number of columns is chosen by BIC.")
        return Fitted(first, data, _choice(job, first), True)
    if _is_short(first, model, options):
        job.notice(
            "The folds did not come that far within --time-limit: the number of columns is chosen "
            "by BIC."
        )
        model = first
    return Fitted(model, data, _choice(job, model))


def _is_short(first: Any, model: Any, options: dict[str, Any]) -> bool:
    """Check if the time limit cut the folds before the size that BIC chooses on all rows."""
    if options["time_limit"] is None:
        return False
    # a size that not all folds have reached was not compared with the smaller ones
    n_scored = np.isfinite(model.cv_scores_).all(axis=0).sum()
    return bool(n_scored <= first.best_index_)


def _choice(job: Job, model: Any) -> dict[str, Any]:
    """Record how the number of columns was chosen."""
    chosen, most = model.best_n_nonzero_coefs_, int(model.path_.n_nonzero_coefs[-1])
    is_cut = str(model.path_[-1].status) in ("interrupted", "time_limit")
    if chosen == most < model.result_.n_units and not is_cut:
        job.notice(f"The rule chose the most columns it could, {most}; more may be better.")
    choice = {
        "rule": model.rule,
        "n_nonzero_coefs": model.path_.n_nonzero_coefs.tolist(),
        "chosen": chosen,
    }
    if not hasattr(model, "mean_scores_"):
        return choice | {"criterion": model.path_.criterion(model.rule).tolist()}
    at, unseen = model.best_index_, readable_scores(model).items()
    return choice | {
        "mean_scores": model.mean_scores_.tolist(),
        "se": model.se_scores_.tolist(),
        "unseen": {name: [float(mean[at]), float(error[at])] for name, (mean, error) in unseen},
    }


# -- proofs ----------------------------------------------------------------------------------------


def prove(problem: Any, seed: int, work: float, gap: float = 0.0) -> Any:
    """Search for the global optimum, or a lower bound at a limit or if the gap is reached."""
    return solve_problem(problem, "exact", random_state=seed, work_limit=work, gap=gap)


def is_promising(problem: Any) -> bool:
    """Decide if a proof is tried by default: one may exist, and the data are not large."""
    is_taken = METHODS["exact"].refusal(problem) is None
    return is_small(problem) and is_taken and (may_enumerate(problem) or obstacle(problem) is None)


def is_small(problem: Any) -> bool:
    """Check if the data are small enough for proofs by default."""
    m, n = problem.n_samples, problem.n_features
    return n <= LARGEST_PROOF and m * n <= MOST_ENTRIES


def certified(problem: Any, coef: Any) -> Any:
    """Certify a point by all exchanges of one column for another; None if that is out of reach."""
    if not is_small(problem):
        return None
    try:
        found = certify_problem(problem, coef, level=2)
    except OutOfReachError:
        return None
    return found if found.complete else None


# -- scores ----------------------------------------------------------------------------------------


def score(data: CommandData, model: Any) -> dict[str, Any]:
    """Score an estimator on its own rows, on held-out rows, and guessing beside it."""
    n_train = data.X.n_samples if data.is_streamed else data.X.shape[0]
    if data.is_streamed:
        train = data.X.explained(model.coef_, float(model.intercept_))
        return {"metric": data.metric, "train": train, "n_train": n_train}
    scores = {"metric": data.metric, **_score_rows("train", data, model, data.X, data.y)}
    scores["n_train"] = n_train
    if data.X_test is not None:
        y = data.coded(data.y_test)
        scores |= _score_rows("test", data, model, data.X_test, y) | {"n_test": len(y)}
    return scores | guesses(data)


def _score_rows(name: str, data: CommandData, model: Any, X: Any, y: Any) -> dict[str, Any]:
    """Score some rows; with several targets the mean, and each of them."""
    scores, loss = {name: float(model.score(X, y))}, get_loss(data.loss)
    more: dict[str, Any] = {}
    if np.ndim(y) == 2:
        prediction = model.predict(X)  # of losses whose predictor is the prediction itself
        more[f"{name}_of_each"] = {
            target: float(loss.score(prediction[:, j], y[:, j]))
            for j, target in enumerate(data.table.targets)
        }
    if data.is_classification:
        shares = model.predict_proba(X) if loss.has_probabilities else None
        codes = np.searchsorted(model.classes_, y)
        more[f"{name}_classes"] = class_scores(
            model.decision_function(X), codes, model.classes_, shares
        )
    return scores | more


def guesses(data: CommandData) -> dict[str, float]:
    """Return the accuracy of always guessing the most frequent class; empty for numbers."""
    if not data.is_classification:
        return {}
    labels, counts = np.unique(data.table.y, return_counts=True)
    found = {"guess": float(counts.max() / counts.sum())}
    if data.y_test is not None:
        found["guess_test"] = float(np.mean(data.y_test == labels[np.argmax(counts)]))
    return found
