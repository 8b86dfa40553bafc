"""scikit-learn's diabetes data with all products of two columns."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from benchopt import BaseDataset


class Dataset(BaseDataset):
    """442 × 65, columns of mean zero and unit variance, y centred."""

    name = "Diabetes"
    parameters = {"n_nonzero": [5, 15]}
    requirements = ["scikit-learn"]

    def get_data(self):
        X, y = load_diabetes(return_X_y=True)
        products = PolynomialFeatures(2, include_bias=False).fit_transform(X)
        X = np.asfortranarray(StandardScaler().fit_transform(products))
        return {"X": X, "y": y - y.mean(), "n_nonzero": self.n_nonzero}
