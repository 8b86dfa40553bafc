"""How many features does the Lasso need to predict as well as the best subset?

scikit-learn's diabetes data with squares and products, 65 columns in all. Both methods choose their
size by the same five folds; the test rows are seen by neither. With so much noise a little ridge
helps the subset, as shrinking helps the Lasso.

Run it with ``python examples/best_subset_against_lasso.py``.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LassoCV
from sklearn.model_selection import KFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from blockl0 import L0RegressorCV

SPLITS = 3


def main() -> None:
    """Fit both on several splits, compare sizes and errors, and explain the last subset."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    expand = make_pipeline(PolynomialFeatures(2, include_bias=False), StandardScaler())
    Z = expand.set_output(transform="pandas").fit_transform(X)
    folds = KFold(5, shuffle=True, random_state=0)

    print("        Lasso                best subset")
    print("split   features  test R²    features  test R²")
    rows = []
    for split in range(SPLITS):
        Z_train, Z_test, y_train, y_test = train_test_split(Z, y, test_size=0.3, random_state=split)
        lasso = LassoCV(cv=folds, max_iter=100_000).fit(Z_train, y_train)
        subset = L0RegressorCV(20, ridge=30.0, cv=folds, random_state=0).fit(Z_train, y_train)
        rows.append([])
        for model in (lasso, subset):
            rows[-1] += [np.count_nonzero(model.coef_), model.score(Z_test, y_test)]
        print("{:5d} {:10d} {:8.3f} {:11d} {:8.3f}".format(split, *rows[-1]))
    print("{:5s} {:10.1f} {:8.3f} {:11.1f} {:8.3f}".format("mean", *np.mean(rows, axis=0)))
    print("\nThe subset of the last split:\n")
    print(subset.summary(Z_train, y_train, n_half_samples=10, random_state=0))


if __name__ == "__main__":
    main()
