"""How many features does the Lasso need to predict as well as the best subset?

scikit-learn's diabetes data with squares and products, 65 columns in all. Both methods choose their
size by the same five folds; the test rows are seen by neither.

Run it with ``python examples/best_subset_against_lasso.py``.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LassoCV
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, train_test_split
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from blockl0 import L0RegressorCV


def main() -> None:
    """Fit both, compare sizes and errors, and explain the subset."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    features = PolynomialFeatures(2, include_bias=False).set_output(transform="default").fit(X)
    names = features.get_feature_names_out()
    Z = StandardScaler().fit_transform(features.transform(X))
    Z_train, Z_test, y_train, y_test = train_test_split(Z, y, test_size=0.3, random_state=0)
    folds = KFold(5, shuffle=True, random_state=0)

    lasso = LassoCV(cv=folds, max_iter=100_000).fit(Z_train, y_train)
    subset = L0RegressorCV(12, cv=folds, rule="one_se", random_state=0).fit(Z_train, y_train)

    print("method                     features   R² on test rows")
    for name, model in (("Lasso", lasso), ("best subset, one SE rule", subset)):
        score = r2_score(y_test, model.predict(Z_test))
        print(f"{name:26s} {np.count_nonzero(model.coef_):8d}   {score:.3f}")
    print("\nsubset:", ", ".join(names[subset.support_]))
    print()
    print(subset.summary(Z_train, y_train, n_bootstrap=10, random_state=0))


if __name__ == "__main__":
    main()
