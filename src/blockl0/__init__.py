"""Best-subset selection and ℓ0-sparse optimization by block decomposition.

min_w f(Xw; y) + ½·ridge·‖w‖² + alpha·‖w‖₀  subject to  ‖w‖₀ <= n_nonzero_coefs
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from blockl0._version import __version__

if TYPE_CHECKING:
    from blockl0 import datasets
    from blockl0.block_search import block_search
    from blockl0.certify import Certificate, certify
    from blockl0.errors import OutOfReachError
    from blockl0.estimators import BestSubsetSelector, L0Classifier, L0Regressor
    from blockl0.estimators.coding import SINDyL0, sparse_encode
    from blockl0.estimators.cv import L0ClassifierCV, L0RegressorCV
    from blockl0.estimators.structure import groups_of
    from blockl0.path import Path, l0_path
    from blockl0.problem.moments import Moments
    from blockl0.problem.preprocess import ConstantColumnWarning
    from blockl0.result import History, Result, Status
    from blockl0.solve import solve
    from blockl0.verify import ProofError, verify

__all__ = [
    "BestSubsetSelector",
    "Certificate",
    "ConstantColumnWarning",
    "History",
    "L0Classifier",
    "L0ClassifierCV",
    "L0Regressor",
    "L0RegressorCV",
    "Moments",
    "OutOfReachError",
    "Path",
    "ProofError",
    "Result",
    "SINDyL0",
    "Status",
    "__version__",
    "block_search",
    "certify",
    "datasets",
    "groups_of",
    "l0_path",
    "solve",
    "sparse_encode",
    "verify",
]

# loaded on first use: the compiler and scikit-learn take a second each to import, which `blockl0
# --help` should not wait for
_LAZY = {
    "BestSubsetSelector": "blockl0.estimators",
    "Certificate": "blockl0.certify",
    "ConstantColumnWarning": "blockl0.problem.preprocess",
    "History": "blockl0.result",
    "L0Classifier": "blockl0.estimators",
    "L0ClassifierCV": "blockl0.estimators.cv",
    "L0Regressor": "blockl0.estimators",
    "L0RegressorCV": "blockl0.estimators.cv",
    "Moments": "blockl0.problem.moments",
    "OutOfReachError": "blockl0.errors",
    "Path": "blockl0.path",
    "ProofError": "blockl0.verify",
    "Result": "blockl0.result",
    "SINDyL0": "blockl0.estimators.coding",
    "Status": "blockl0.result",
    "block_search": "blockl0.block_search",
    "certify": "blockl0.certify",
    "datasets": "blockl0.datasets",
    "groups_of": "blockl0.estimators.structure",
    "l0_path": "blockl0.path",
    "solve": "blockl0.solve",
    "sparse_encode": "blockl0.estimators.coding",
    "verify": "blockl0.verify",
}


class _Package(ModuleType):
    """The package module: a submodule never replaces the public function of the same name."""

    def __setattr__(self, name: str, value: Any) -> None:
        # the import system binds every loaded submodule, such as `solve` over the function solve
        if isinstance(value, ModuleType) and name in _LAZY:
            value = getattr(value, name, value)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'blockl0' has no attribute {name!r}")
    module = import_module(_LAZY[name])
    value = globals()[name] = getattr(module, name, module)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
