"""Which words tell what a text is about? Sparse X, three classes, one shared set of words.

The texts are the lines of the descriptions that come with scikit-learn's bundled data sets; the
question is which data set a line describes. X is sparse and stays so: the intercept is exact, and
columns are centred without being filled in.

Run it with ``python examples/text_features.py``.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import StratifiedKFold, cross_val_score

from blockl0 import L0Classifier

SOURCES = {"cancer": load_breast_cancer, "diabetes": load_diabetes, "wine": load_wine}


def main() -> None:
    """Read the lines, count words, choose twelve of them."""
    texts, labels = [], []
    for label, load in SOURCES.items():
        lines = [line for line in load().DESCR.splitlines() if len(line.split()) >= 3]
        texts += lines
        labels += [label] * len(lines)
    words = CountVectorizer(binary=True, token_pattern=r"[A-Za-z]{3,}").fit(texts)
    X, y = words.transform(texts), np.array(labels)
    print(f"{X.shape[0]} lines, {X.shape[1]} words, {X.nnz / np.prod(X.shape):.1%} of X is stored")

    model = L0Classifier(12, ridge=0.1, effort="fast", random_state=0).fit(X, y)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    accuracy = cross_val_score(model, X, y, cv=folds).mean()
    common = max(np.mean(y == label) for label in SOURCES)
    print(f"accuracy on unseen lines {accuracy:.2f}, always the commonest class {common:.2f}\n")

    names = words.get_feature_names_out()
    print(f"{'word':14s}" + "".join(f"{label:>10s}" for label in model.classes_))
    strongest = model.support_[np.argsort(-np.abs(model.coef_[:, model.support_]).max(axis=0))]
    for j in strongest:
        print(f"{names[j]:14s}" + "".join(f"{value:10.2f}" for value in model.coef_[:, j]))


if __name__ == "__main__":
    main()
