"""Which few genes separate two tissues, when there are ten times more genes than samples?

Generated to look like a microarray: 160 samples, 1600 genes in correlated pathways, five of which
carry the signal. L0ClassifierCV chooses how many genes to read.

Run it with ``python examples/gene_expression.py``.
"""

from __future__ import annotations

import numpy as np
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.svm import LinearSVC

from blockl0 import L0ClassifierCV

TRUE_GENES = [100, 500, 900, 1200, 1500]


def make(n_samples: int = 400, n_genes: int = 1600, pathway: int = 20, seed: int = 0):
    """Log expressions with one hidden factor per pathway, and tissue labels."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n_samples, n_genes // pathway))
    X = 0.6 * np.repeat(factors, pathway, axis=1) + 0.8 * rng.standard_normal((n_samples, n_genes))
    score = X[:, TRUE_GENES] @ [3.0, -3.0, 2.5, -2.5, 3.0]
    return X, np.where(score + rng.logistic(size=n_samples) > 0, "tumour", "normal")


def main() -> None:
    """Fit on 160 samples, judge on 240."""
    X, y = make()
    X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=160, random_state=1)
    subset = L0ClassifierCV(6, ridge=0.5, cv=3, random_state=0).fit(X_train, y_train)
    svm = LinearSVC(penalty="l1", dual=False, max_iter=10_000, random_state=0)
    lasso = GridSearchCV(svm, {"C": np.geomspace(0.01, 1.0, 7)}, cv=5).fit(X_train, y_train)
    lasso = lasso.best_estimator_

    print("method          genes   accuracy on new samples")
    for name, model in (("ℓ1 linear SVM", lasso), ("best subset", subset)):
        accuracy = np.mean(model.predict(X_test) == y_test)
        print(f"{name:14s} {np.count_nonzero(model.coef_):6d}   {accuracy:.3f}")
    found = sorted(set(subset.support_) & set(TRUE_GENES))
    print(f"\ngenes read: {subset.support_.tolist()}")
    print(f"of the five that carry the signal: {[int(j) for j in found]}")


if __name__ == "__main__":
    main()
