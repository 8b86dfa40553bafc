"""Metadata of a cross-validated fit: groups reach the splitter, weights the scorer that asks."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import config_context
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, LeaveOneGroupOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from blockl0 import L0ClassifierCV, L0RegressorCV
from linear_data import Linear

GROUPS = np.repeat(np.arange(6), 10)


make = Linear(60, 5, {1: 1.0, 3: -1.0}, noise=0.5)


def model_for(kind, **options):
    X, y = make()
    y = y if kind is L0RegressorCV else np.where(y > 0, "yes", "no")
    return kind([1, 2], effort="fast", random_state=0, **options), X, y


class Recording(GroupKFold):
    """A splitter that remembers which groups it was given."""

    def split(self, X, y=None, groups=None):
        self.seen = groups
        return super().split(X, y, groups)


class RecordingMetric:
    """A metric that remembers the weights and the margins it was given."""

    def __init__(self):
        self.weights, self.margins = [], []

    def __call__(self, y_true, y_pred, sample_weight=None, margin=None):
        self.weights.append(sample_weight)
        self.margins.append(margin)
        return float(np.mean(y_true == y_pred))


both = pytest.mark.parametrize("kind", [L0RegressorCV, L0ClassifierCV])


@both
@pytest.mark.parametrize("is_routed", [False, True])
def test_groups_reach_the_splitter(kind, is_routed):
    model, X, y = model_for(kind, cv=Recording(3))
    with config_context(enable_metadata_routing=is_routed):
        model.fit(X, y, groups=GROUPS)
    np.testing.assert_array_equal(model.cv.seen, GROUPS)
    # the folds are those of the groups: the same as with explicit splits
    splits = list(GroupKFold(3).split(X, y, GROUPS))
    explicit = model_for(kind, cv=splits)[0].fit(X, y)
    np.testing.assert_array_equal(model.cv_scores_, explicit.cv_scores_)  # the same steps


@both
def test_groups_that_are_missing_or_not_wanted(kind):
    model, X, y = model_for(kind, cv=GroupKFold(3))
    for is_routed in (False, True):
        with (
            config_context(enable_metadata_routing=is_routed),
            pytest.raises(ValueError, match="'groups' parameter should not be None"),
        ):
            model.fit(X, y)
    with pytest.warns(UserWarning, match="groups parameter is ignored by KFold"):
        model_for(kind, cv=KFold(3))[0].fit(X, y, groups=GROUPS)
    with config_context(enable_metadata_routing=True):
        splitter = LeaveOneGroupOut().set_split_request(groups="patients")
        model = model_for(kind, cv=splitter)[0].fit(X, y, patients=GROUPS)
        assert len(model.cv_scores_) == 6
        with pytest.raises(TypeError, match="got unexpected argument"):
            model_for(kind, cv=KFold(3))[0].fit(X, y, groups=GROUPS)


@both
def test_weights_reach_the_scorer_by_request(kind):
    weights = np.arange(60) % 4 + 1.0
    splits = list(KFold(3).split(np.empty((60, 1))))
    for wants in (True, False):
        metric = RecordingMetric()
        with config_context(enable_metadata_routing=True):
            scorer = make_scorer(metric).set_score_request(sample_weight=wants)
            model, X, y = model_for(kind, cv=splits, scoring=scorer)
            model.fit(X, y, sample_weight=weights)
        assert len(metric.weights) == 6  # three folds, two sizes
        for i, seen in enumerate(metric.weights):
            if wants:
                np.testing.assert_array_equal(seen, weights[splits[i // 2][1]])
            else:
                assert seen is None


def test_a_scorer_that_says_nothing_about_weights():
    model, X, y = model_for(L0RegressorCV, scoring="r2", cv=3)
    with (
        config_context(enable_metadata_routing=True),
        pytest.raises(UnsetMetadataPassedError, match=r"\[sample_weight\] are passed"),
    ):
        model.fit(X, y, np.ones(60))
    # without routing it is given them, since it takes them; the default loss always has them
    model.fit(X, y, np.ones(60))
    with config_context(enable_metadata_routing=True):
        weights = np.arange(60) % 2 + 1.0
        routed = model_for(L0RegressorCV, cv=3)[0].fit(X, y, weights)
    plain = model_for(L0RegressorCV, cv=3)[0].fit(X, y, weights)
    np.testing.assert_array_equal(routed.cv_scores_, plain.cv_scores_)  # the same steps


def test_other_metadata_of_the_rows():
    margin, metric = np.linspace(0.0, 1.0, 60), RecordingMetric()
    splits = list(KFold(3).split(np.empty((60, 1))))
    model, X, y = model_for(L0RegressorCV, cv=splits)
    with config_context(enable_metadata_routing=True):
        model.set_params(scoring=make_scorer(metric).set_score_request(margin=True))
        model.fit(X, y, margin=margin)
    np.testing.assert_array_equal(metric.margins[2], margin[splits[1][1]])
    with pytest.raises(ValueError, match=r"only supported if enable_metadata_routing=True"):
        model.fit(X, y, margin=margin)


@both
def test_requests_of_the_estimator_itself(kind):
    """`groups` are not the estimator's own; weights are, and can be requested."""
    with config_context(enable_metadata_routing=True):
        model = model_for(kind, cv=GroupKFold(3))[0]
        requests = model.get_metadata_routing()._self_request.fit.requests
        assert set(requests) == {"sample_weight"}
        model.set_fit_request(sample_weight=True).set_score_request(sample_weight=False)


def test_through_a_pipeline_and_a_search():
    """A pipeline hands groups on to the splitter inside its last step."""
    X, y = make()
    with config_context(enable_metadata_routing=True):
        cv = Recording(3)
        inner = L0RegressorCV([1, 2], cv=cv, random_state=0).set_fit_request(sample_weight=True)
        scaled = StandardScaler().set_fit_request(sample_weight=False)
        pipe = make_pipeline(scaled, inner)
        pipe.fit(X, y, groups=GROUPS, sample_weight=np.ones(60))
        np.testing.assert_array_equal(cv.seen, GROUPS)
        inner = L0RegressorCV([1, 2], cv=GroupKFold(2), random_state=0)
        search = GridSearchCV(inner, {"ridge": [0.0, 1.0]}, cv=GroupKFold(3)).fit(
            X, y, groups=GROUPS
        )
    assert search.best_estimator_.cv_scores_.shape == (2, 2)
