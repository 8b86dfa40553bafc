"""Valid model files with something changed and the checksum made to fit again."""

from __future__ import annotations

import copy
import hashlib
import json

HUGE = int("9" * 400)
VALUES = (
    None, True, False, 0, 1, -1, 2, 7, 10**6, HUGE, -HUGE, 0.5, -0.0, 1e308, -1e308, 5e-324,
    float("nan"), float("inf"), -float("inf"), "", "a", "NaN", "nan", "1", "squared", "logistic",
    "poisson", "level", "date", "\ud800", "x" * 5000, [], [None], [1.0], [1.0, 2.0], [[1.0]],
    ["a", "a"], ["a", "b"], [0, 1, 2], [True, False], [1, "1"], {}, {"a": 1}, [{}],
)  # fmt: skip
"""What an entry may be replaced by; most of it is wrong for most entries."""


def places(document, path=()):
    """The paths to all entries of a document."""
    yield path
    entries = (
        document.items()
        if isinstance(document, dict)
        else enumerate(document)
        if isinstance(document, list)
        else ()
    )
    for key, value in entries:
        yield from places(value, (*path, key))


def mutated(document, rng):
    """A copy with one to three entries replaced, removed, repeated or swapped."""
    document = copy.deepcopy(document)
    for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
        path = [p for p in places(document) if p][1:]
        *above, key = path[rng.integers(len(path))]
        parent = document
        for step in above:
            parent = parent[step]
        kind = rng.choice(["replace", "replace", "replace", "remove", "repeat", "swap"])
        if kind == "replace":
            parent[key] = copy.deepcopy(VALUES[rng.integers(len(VALUES))])
        elif kind == "remove":
            del parent[key]
        elif isinstance(parent, list) and kind == "repeat":
            parent.append(copy.deepcopy(parent[key]))
        else:
            other = list(parent) if isinstance(parent, dict) else range(len(parent))
            other = list(other)[rng.integers(len(parent))]
            parent[key], parent[other] = parent[other], parent[key]
    return document


def signed(document):
    """The text of a document, with the checksum that `load_model` expects, or one close to it."""
    document.pop("checksum", None)
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()
    return json.dumps({**document, "checksum": f"sha256:{digest}"})
