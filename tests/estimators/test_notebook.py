"""What a notebook shows of an estimator: links to the reference, a tooltip for each parameter."""

from __future__ import annotations

import html
import re

import numpy as np
import pytest
import sklearn
from sklearn.utils import estimator_html_repr

import blockl0
from blockl0.estimators import documentation
from blockl0.estimators.documentation import entries, shares_entries

ESTIMATORS = [
    blockl0.L0Regressor,
    blockl0.L0Classifier,
    blockl0.L0RegressorCV,
    blockl0.L0ClassifierCV,
    blockl0.BestSubsetSelector,
    blockl0.SINDyL0,
]
VERSION = tuple(int(part) for part in sklearn.__version__.split(".")[:2])
every = pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)


@every
def test_each_parameter_has_an_entry_of_its_own(kind):
    found = entries(kind.__doc__, "Parameters")
    assert all(len(entry.names) == 1 and entry.type for entry in found)
    names = [entry.names[0] for entry in found]
    assert sorted(names) == sorted(kind().get_params())
    assert all(entry.text for entry in found)


@every
def test_each_attribute_of_a_fit_is_documented(kind):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 4))
    y = X[:, 0] > 0 if "Classifier" in kind.__name__ else X[:, 0] + rng.standard_normal(40)
    model = kind(2).fit(X, y)
    names = {name for entry in entries(kind.__doc__, "Attributes") for name in entry.names}
    made = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    assert made - {"n_features_in_", "history_", "result_"} <= names


@every
def test_the_representation_links_to_the_reference(kind, monkeypatch):
    monkeypatch.setenv(documentation.VARIABLE, "https://docs.example/blockl0/")
    link = f"https://docs.example/blockl0/reference/{kind.__name__}.html#blockl0.{kind.__name__}"
    assert kind()._get_doc_link() == link
    assert f'href="{link}"' in estimator_html_repr(kind())


@every
@pytest.mark.skipif(VERSION < (1, 8), reason="tooltips came with scikit-learn 1.8")
def test_each_parameter_has_a_tooltip(kind):
    page = estimator_html_repr(kind())
    for entry in entries(kind.__doc__, "Parameters"):
        name = entry.names[0]
        shown = html.escape(f"{name}: {entry.type}")
        tooltip = re.search(rf'--doc-link-{name};">\s*{re.escape(shown)}<br>', page)
        assert tooltip, name


def test_a_class_of_somebody_else_has_no_link():
    class Mine(blockl0.L0Regressor):
        """Mine."""

    assert Mine()._get_doc_link() == ""


def test_the_address_may_be_declared_by_the_package(monkeypatch):
    monkeypatch.delenv(documentation.VARIABLE, raising=False)
    monkeypatch.setattr(documentation, "_declared", lambda: "https://declared.example")
    assert documentation.reference_of("Path") == (
        "https://declared.example/reference/Path.html#blockl0.Path"
    )
    monkeypatch.setattr(documentation, "_declared", lambda: "")
    assert documentation.reference_of("Path") == "#blockl0.Path"


def test_the_anchors_are_those_of_the_reference():
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
    for kind in ESTIMATORS:
        assert f".. autoclass:: blockl0.{kind.__name__}\n" in page


# -- shared entries --------------------------------------------------------------------------------


class Source:
    """A source.

    Parameters
    ----------
    a : int
        The first.

        With a second paragraph.
    b, c : float
        The others.
    """


def test_entries_are_written_out():
    @shares_entries(Source)
    class Shared:
        """Shares.

        Parameters
        ----------
        a, c
            As in `Source`.
        d, e : str
            Its own.

        Examples
        --------
        >>> 1
        1
        """

    found = {
        entry.names: (entry.type, entry.text) for entry in entries(Shared.__doc__, "Parameters")
    }
    assert set(found) == {("a",), ("c",), ("d",), ("e",)}
    assert found["a",] == ("int", ("    The first.", "", "    With a second paragraph."))
    assert found["c",] == ("float", ("    The others.",))
    assert found["d",] == found["e",] == ("str", ("    Its own.",))
    assert Shared.__doc__.startswith("Shares.") and ">>> 1\n1" in Shared.__doc__


def test_without_docstrings_nothing_happens():
    class Silent:
        pass

    assert shares_entries(Source)(Silent).__doc__ is None and entries("", "Parameters") == []
