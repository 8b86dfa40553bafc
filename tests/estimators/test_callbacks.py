"""Progress through scikit-learn's callbacks: what its own ones show, and what a recorder hears."""

from __future__ import annotations

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from blockl0 import (
    BestSubsetSelector,
    L0Classifier,
    L0ClassifierCV,
    L0Regressor,
    L0RegressorCV,
    Status,
)
from blockl0.estimators import linear

callback = pytest.importorskip("sklearn.callback")


class Recorder:
    """Remembers every hook; asks to stop after so many rounds."""

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        self.events, self.scores = [], []

    def setup(self, estimator, context):
        self.events.append(("setup", context.task_name))

    def teardown(self, estimator, context):
        self.events.append(("teardown", context.task_name))

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator):
        self.events.append(("end", context.task_name))
        if fitted_estimator is not None and X is not None:
            self.scores.append(fitted_estimator.score(X, y))
        n_rounds = self.events.count(("end", "round"))
        return self.stop_after is not None and n_rounds >= self.stop_after

    def count(self, kind, name):
        return self.events.count((kind, name))


def data(seed=0, m=80, n=40):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n))
    return X, X[:, [2, 5, 9]] @ [2.0, -1.5, 1.0] + rng.standard_normal(m)


@pytest.mark.parametrize("kind", ["regressor", "two classes", "three classes", "all columns"])
def test_rounds_of_a_search_are_tasks(kind):
    X, y = data()
    model = L0Regressor(3, random_state=0)
    if kind == "all columns":
        model = L0Regressor(40)
    elif kind != "regressor":
        y = np.digitize(y, [0.0] if kind == "two classes" else [-1.0, 1.0]).astype(str)
        model = L0Classifier(3, effort="fast", random_state=0)
    plain = clone(model).fit(X, y)
    recorder = Recorder()
    watched = model.set_callbacks(recorder).fit(X, y)
    np.testing.assert_array_equal(watched.coef_, plain.coef_)  # the same steps
    assert recorder.events[:2] == [("setup", "fit"), ("begin", "fit")]
    assert recorder.events[-2:] == [("end", "fit"), ("teardown", "fit")]
    assert recorder.count("begin", "round") == recorder.count("end", "round") >= 1
    # every recorded point, and then the fit, make estimators that predict
    assert len(recorder.scores) == len(plain.history_) + 1
    assert recorder.scores[-1] == pytest.approx(plain.score(X, y))


def test_a_callback_may_stop_the_search():
    X, y = data(m=60, n=120)
    model = L0Regressor(8, random_state=0).set_callbacks(Recorder(stop_after=2)).fit(X, y)
    assert model.status_ is Status.STOPPED and len(model.history_) == 2


@pytest.mark.parametrize("model", [L0RegressorCV(3, cv=4), L0RegressorCV(3, rule="bic"),
                                   L0ClassifierCV(2, cv=3)], ids=str)  # fmt: skip
def test_folds_and_the_path_are_tasks(model):
    X, y = data()
    if isinstance(model, L0ClassifierCV):
        y = y > 0
    recorder = Recorder()
    plain = clone(model).set_params(random_state=0).fit(X, y)
    watched = clone(model).set_params(random_state=0).set_callbacks(recorder).fit(X, y)
    assert watched.best_index_ == plain.best_index_
    n_folds = model.cv if model.rule == "paired_se" else 0
    assert recorder.count("begin", "fold") == recorder.count("end", "fold") == n_folds
    assert recorder.count("end", "path") == recorder.count("end", "fit") == 1
    assert recorder.scores[-1] == pytest.approx(plain.score(X, y))


def test_hooks_are_torn_down_after_an_error():
    X, y = data()
    recorder = Recorder()
    with pytest.raises(ValueError, match="n_nonzero_coefs"):
        L0Regressor(99).set_callbacks(recorder).fit(X, y)
    assert recorder.events[-1] == ("teardown", "fit")


def test_scikit_learns_own_callbacks(capsys):
    pytest.importorskip("rich")
    X, y = data()
    bar = callback.ProgressBar
    L0Regressor(3, random_state=0).set_callbacks(bar()).fit(X, y)
    assert "L0Regressor - fit" in capsys.readouterr().out
    L0RegressorCV(3, random_state=0).set_callbacks(bar()).fit(X, y)
    out = capsys.readouterr().out
    assert "L0RegressorCV - fit" in out and "100%" in out
    with parallel_config(backend="threading"):
        L0RegressorCV(3, n_jobs=2).set_callbacks(bar()).fit(X, y)
    BestSubsetSelector(3).set_callbacks(bar()).fit(X, y)
    assert "BestSubsetSelector - model | L0Regressor - fit" in capsys.readouterr().out
    pipe = make_pipeline(StandardScaler(), L0Regressor(effort="fast"))
    search = GridSearchCV(pipe, {"l0regressor__n_nonzero_coefs": [1, 3]}, cv=2)
    search.set_callbacks(bar(max_propagation_depth=None)).fit(X, y)
    assert "L0Regressor - fit" in capsys.readouterr().out
    monitor = callback.ScoringMonitor(scoring="r2")
    model = L0Regressor(3, random_state=0).set_callbacks(monitor).fit(X, y)
    assert np.isfinite(model.score(X, y)) and monitor.get_logs() is not None


def test_without_callbacks_the_search_has_none(monkeypatch):
    X, y = data()
    seen = []
    solve = linear.solve_problem

    def watched(*args, **given):
        seen.append(given["callback"])
        return solve(*args, **given)

    monkeypatch.setattr(linear, "solve_problem", watched)
    L0Regressor(2).fit(X, y)
    assert seen == [None]
