"""Fitted models as plain JSON files: the chosen columns, their coefficients, and their origin."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import blockl0
from blockl0.app.model_checks import brief, check_document, check_loss
from blockl0.app.tables.recipe import Feature
from blockl0.app.tables.recipe import apply as apply_to_frame
from blockl0.errors import ModelFileError
from blockl0.files import read_document, write_whole
from blockl0.losses import LOSSES, Loss, get_loss, label_of
from blockl0.losses.stored import LossNotFoundError, from_json, original, to_json
from blockl0.text import clause
from blockl0.validate import as_numeric, check_column_entries

Floats = NDArray[np.float64]

FORMAT = "blockl0-model"
FORMAT_VERSION = 2
"""Raised when older versions can no longer read a file; each file has the lowest one that works."""


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A fitted linear model on its chosen columns.

    Attributes
    ----------
    loss : str
        Its name, with any parameter that differs from the default, as in "huber:0.5"; for more
        than two classes "logistic" is the softmax loss.
    coef : ndarray (k,), or (n_classes, k) for more than two classes, (q, k) for q targets
    intercept : ndarray (1,), or (n_classes,), or (q,)
    features : tuple of Feature
        The chosen columns, in the order of `coef`, with how each is made from a table.
    index : ndarray of int (k,)
        Their indices in the X of the fit.
    n_features_in : int
        Number of columns of that X.
    classes : ndarray or None
    target : str
        The target's name; all names if there are several targets.
    targets : tuple of str
    metadata : dict
        Other contents of the file: options, scores, data fingerprint, certificate, notes.
    own_loss : Loss or None
        The loss itself if it is not built in.
    """

    loss: str
    coef: Floats
    intercept: Floats
    features: tuple[Feature, ...]
    index: NDArray[np.int64]
    n_features_in: int
    classes: NDArray[Any] | None = None
    target: str = "y"
    metadata: dict[str, Any] = field(default_factory=dict)
    own_loss: Loss | None = None
    targets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.targets:
            object.__setattr__(self, "targets", (self.target,))

    @property
    def loss_object(self) -> Loss:
        """The loss object, with its link and its words."""
        return get_loss(self.loss) if self.own_loss is None else self.own_loss

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the chosen columns."""
        return tuple(feature.name for feature in self.features)

    def columns_of(self, X: Any) -> Any:
        """Return the chosen columns (m, k) of a DataFrame, by name, or of an array."""
        if hasattr(X, "iloc"):
            return apply_to_frame(X, self.features)
        X = X if sp.issparse(X) else as_numeric(X, "X")
        if X.ndim != 2 or X.shape[1] != self.n_features_in:
            raise ValueError(
                f"X must have {self.n_features_in} columns, as in the fit, got shape {X.shape}; "
                "or give a DataFrame with the columns by name."
            )
        return (sp.csc_array(X) if sp.issparse(X) else X)[:, self.index].astype(np.float64)

    def decision_function(self, X: Any) -> Floats:
        """Compute x'w + b: (m,), (m, n_classes) for several classes, (m, q) for q targets."""
        return self.decide(self.columns_of(X))

    def decide(self, X_S: Any) -> Floats:
        """Compute `decision_function` from the chosen columns (m, k), refusing overflow."""
        check_column_entries(X_S, self.feature_names)
        with np.errstate(over="ignore", invalid="ignore"):
            eta = np.asarray(X_S @ np.atleast_2d(self.coef).T) + self.intercept
        if not np.isfinite(eta).all():
            row = int(np.argmin(np.isfinite(eta).reshape(len(eta), -1).all(axis=1)))
            raise ValueError(f"The prediction for row {row} overflows: the entries are too large.")
        return eta[:, 0] if self.coef.ndim == 1 else eta

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict numbers, or the most likely class of each row."""
        return self.answer(self.decision_function(X))

    def answer(self, eta: Floats) -> NDArray[Any]:
        """Compute `predict` from the decision function."""
        if self.classes is not None:
            codes = (eta > 0).astype(np.intp) if eta.ndim == 1 else np.argmax(eta, axis=1)
            return self.classes[codes]
        return self.loss_object.mean(eta)

    def predict_proba(self, X: Any) -> Floats:
        """Predict probabilities of the classes, (m, n_classes)."""
        return self.probabilities(self.decision_function(X))

    def probabilities(self, eta: Floats) -> Floats:
        """Compute `predict_proba` from the decision function."""
        loss = self.loss_object
        if not loss.has_probabilities:
            raise ValueError(f"loss={self.loss!r} gives no probabilities; fit loss='logistic'.")
        return loss.for_classes(2 if eta.ndim == 1 else eta.shape[1]).probabilities(eta)

    def to_sklearn(self) -> Any:
        """Convert to a fitted scikit-learn estimator of the chosen columns, in their order."""
        is_labels = self.classes is not None
        loss = self.loss if self.own_loss is None else original(self.own_loss)
        est: Any = (blockl0.L0Classifier if is_labels else blockl0.L0Regressor)(loss=loss)
        est.coef_ = np.atleast_2d(self.coef) if is_labels else self.coef
        is_single = not is_labels and self.coef.ndim == 1
        est.intercept_ = float(self.intercept[0]) if is_single else self.intercept
        est.n_features_in_, est.n_iter_ = len(self.features), 1
        est.feature_names_in_ = np.array(self.feature_names, dtype=object)
        if is_labels:
            est.classes_ = self.classes
        return est.to_sklearn()


def save_model(
    estimator: Any,
    path: Any,
    *,
    feature_names: Sequence[str] | None = None,
    features: Sequence[Feature] | None = None,
    target: str | Sequence[str] = "y",
    metadata: dict[str, Any] | None = None,
    force: bool = False,
) -> Path:
    """Write a fitted estimator as JSON, atomically.

    A loss that is not built in is stored as the import path of its class and its parameters, which
    must be representable in JSON; a class of the main program or inside a function has no such
    path.

    Parameters
    ----------
    estimator : L0Regressor, L0Classifier or one of their CV versions
    path : path-like
    feature_names : sequence of str, optional
        Names of the columns of X; by default those seen by the estimator, or x0, x1, …
    features : sequence of Feature, optional
        How each chosen column is made from a table (`Table.recipe`); by default used as it is.
    target : str or sequence of str
        Several targets have as many names; by default y0, y1, …
    metadata : dict, optional
        Anything that JSON can hold.
    force : bool
        Replace an existing file.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_diabetes
    >>> from blockl0 import L0Regressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = L0Regressor(n_nonzero_coefs=3, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     loaded = load_model(save_model(model, folder + "/model.json"))
    >>> loaded.feature_names, bool((loaded.predict(X) == model.predict(X)).all())
    (('bmi', 'bp', 's5'), True)
    """
    from blockl0.estimators.binding import loss_of  # slow, and loading a model needs none of it

    try:
        loss = loss_of(estimator)
        document = _document(estimator, loss, feature_names, features, target, metadata or {})
        # checked as it will be read: JSON turns tuples into lists
        checked = json.loads(json.dumps(document, allow_nan=False))
        check_loss(checked)
        check_document(checked, loss)
    except ValueError as error:
        raise ValueError(f"This estimator cannot be saved: {clause(error)}.") from error
    document["checksum"] = _checksum(document)
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return write_whole(path, text, force)


def _document(
    estimator: Any, loss: Loss, names: Any, features: Any, target: Any, metadata: dict[str, Any]
) -> dict[str, Any]:
    est, n = estimator, int(estimator.n_features_in_)
    if names is None:
        names = getattr(est, "feature_names_in_", [f"x{j}" for j in range(n)])
    support = [int(j) for j in est.support_]
    if features is None:
        features = [Feature(str(names[j]), str(names[j])) for j in support]
    coef = np.atleast_2d(est.coef_)[:, support]
    targets = _targets(est, target)
    has_groups = any(f.reference is not None for f in features)
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION if has_groups or len(targets) > 1 else 1,
        "blockl0_version": blockl0.__version__,
        **to_json(loss, LOSSES),
        "target": targets[0] if len(targets) == 1 else ", ".join(map(str, targets)),
        **({"targets": targets} if len(targets) > 1 else {}),
        "classes": _plain(est.classes_) if hasattr(est, "classes_") else None,
        "intercept": _plain(np.atleast_1d(est.intercept_)),
        "n_features_in": n,
        "features": [
            {k: v for k, v in {**f._asdict(), "index": j}.items() if v is not None}
            | {"coef": _plain(coef[:, i])}
            for i, (f, j) in enumerate(zip(features, support, strict=True))
        ],
        "metadata": metadata,
    }


def _targets(est: Any, target: Any) -> list[str]:
    """Return the names of all targets; 2-D coefficients of a regression mean several."""
    is_several = not hasattr(est, "classes_") and np.ndim(est.coef_) == 2
    n = np.shape(est.coef_)[0] if is_several else 1
    names = list(target) if isinstance(target, list | tuple) else [target]
    if is_several and names == ["y"]:
        names = [f"y{i}" for i in range(n)]
    if len(names) != n:
        raise ValueError(f"`target` must name {n} target{'s' * (n > 1)}, got {names!r}")
    return names


def load_model(path: Any, *, losses: Sequence[Any] = (), trust: bool = False) -> LinearModel:
    """Read a model file, raising `ModelFileError` if anything is wrong with it.

    Every entry is checked: the loaded model predicts finite numbers or known classes. No code
    named by a file is run unless the file is trusted.

    Parameters
    ----------
    path : path-like
    losses : sequence of class
        Custom losses, for models that were fitted with one of them.
    trust : bool
        Import the class of such a loss from the path in the file. Importing a module runs it, so
        use this for your own files only.

    Returns
    -------
    LinearModel
    """
    document = read_document(path)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f'{path} is not a model: it has no "format": "{FORMAT}".')
    version = document.get("format_version")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"{path} is damaged: its format version is {brief(version)}.")
    if version > FORMAT_VERSION:
        raise ModelFileError(
            f"{path} was written by a newer blockl0 ({brief(document.get('blockl0_version'))}, "
            f"format {brief(version)}); this one, {blockl0.__version__}, reads formats up to "
            f"{FORMAT_VERSION}: upgrade it."
        )
    stored = document.pop("checksum", None)
    if stored != _checksum(document):
        raise ModelFileError(f"{path} is damaged or was changed: its checksum does not fit.")
    try:
        check_loss(document)
        loss = from_json(document, LOSSES, losses, trust)
        check_document(document, loss)
    except LossNotFoundError as error:
        raise ModelFileError(f"{path} cannot be loaded: {clause(error)}.") from error
    except ValueError as error:
        raise ModelFileError(f"{path} is damaged: {clause(error)}.") from error
    return _model(document, loss)


def _model(document: dict[str, Any], loss: Loss) -> LinearModel:
    entries = document["features"]
    classes = document["classes"]
    n_rows = len(document["intercept"])
    coef = np.array([entry["coef"] for entry in entries], dtype=np.float64).reshape(-1, n_rows).T
    return LinearModel(
        loss=label_of(loss),
        coef=coef[0] if n_rows == 1 else coef,
        targets=tuple(document.get("targets", ())),
        intercept=np.array(document["intercept"], dtype=np.float64),
        features=tuple(map(_feature, entries)),
        index=np.array([entry["index"] for entry in entries], dtype=np.int64),
        n_features_in=document["n_features_in"],
        classes=None if classes is None else np.array(classes),
        target=document["target"],
        metadata={**document["metadata"], "blockl0_version": document["blockl0_version"]},
        own_loss=loss if "loss_class" in document else None,
    )


def _feature(entry: dict[str, Any]) -> Feature:
    given: dict[str, Any] = {name: entry[name] for name in Feature._fields if name in entry}
    if "levels" in given:
        given["levels"] = tuple(given["levels"])
    return Feature(**given)


def _plain(array: Any) -> list[Any]:
    """Convert an array to JSON: the shortest decimals that give the same float64."""
    values = np.asarray(array)
    return (values.astype(str) if values.dtype.kind == "O" else values).tolist()


def _checksum(document: dict[str, Any]) -> str:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
