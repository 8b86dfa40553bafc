"""The sentences and numbers of the page.

In sentences names from the data are lists of one text, to be set apart.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from blockl0.certify.words import INFERENCE
from blockl0.estimators.half_samples import FIRM
from blockl0.losses import Words
from blockl0.losses.base import UNCHANGED
from blockl0.text import count, percent

Sentence = list[Any]

NAMED, NAMED_CHARACTERS = 10, 180
"""Columns named in the headline, and their total length."""
PRODUCTS = 3
"""Products of columns named in explanations."""
CATEGORIES = 4
"""Categories whose reference level is named."""
RECALLS = 4
"""Classes whose recall is given, the lowest first."""
UNSTEADY = 8
"""Unstable columns named."""
DIGITS = 6
"""Significant digits of the embedded numbers."""
OVERFIT = 0.1
"""Overfitting of this share, if beyond two standard errors, is mentioned."""
RULES = {
    "paired_se": "fewest columns that predict as well as the best",
    "one_se": "one-standard-error rule",
    "min": "best cross-validated loss",
    "aic": "AIC",
    "bic": "BIC",
    "ebic": "EBIC",
    "gic": "GIC",
}
CAUTIONS = (
    f"{INFERENCE} So the page shows none of them.",
    "A column that was not chosen may matter too: of two columns that say the same, one is enough "
    "to predict. And a column that was chosen need not be a cause.",
    "Cross-validation repeats the whole choice in every fold, so its numbers are honest for a "
    "given k. Having picked k by the same numbers makes the best of them slightly too good. They "
    "also suppose that rows are independent: for repeated measurements or time series they are too "
    "optimistic.",
)


def of_point(point: dict[str, Any], data: dict[str, Any], words: Words) -> dict[str, Any]:
    """Write the headline and the three answers for one k; `words` are those of the loss."""
    return {
        "headline": _headline(point, data, words),
        "fit": _fit(point, data, words),
        "steady": _steady(point, data),
        "meaning": _meaning(point, data, words),
    }


def of_report(data: dict[str, Any], words: Words) -> dict[str, Any]:
    """Write everything that does not depend on k."""
    return {
        "score": words.explained,
        "what": words.lost,
        "total": words.objective,
        "why": _why(data),
        "rules": RULES,
        "unsteady": _unsteady(data),
        "inference": list(CAUTIONS),
    }


def _headline(point: dict[str, Any], data: dict[str, Any], words: Words) -> Sentence:
    target, cv = [data["target"]], point["cv"]
    if not data["classes"] and point["explained"] is None:
        return ["There is nothing to explain: ", target, " is constant."]
    if not point["support"]:
        constant = "its commonest class" if data["classes"] else words.constant
        return ["Without any column, the best prediction of ", target, f" is {constant}."]
    names = _names(point, data)
    many = len(point["support"]) > 1
    rows = f"these {count(data['rows'], 'row')}"
    if data["classes"]:
        text = f" {'predict' if many else 'predicts'} "
        right = f" correctly for {percent(point['accuracy'])} of {rows}"
        if cv and cv.get("accuracy") is not None:
            right += f", and for about {percent(cv['accuracy'])} of held-out rows"
        right += f"; guessing would be right for {percent(data['guess'])}"
        return [*names, text, target, f"{right}."]
    # a fit no better than chance on held-out rows explains nothing
    verb = "explain" if cv is None or cv["explained"] > cv["explained_se"] else "fit"
    text = f" {verb if many else verb + 's'} {percent(point['explained'])} of the "
    text += f"{words.lost} of "
    if cv is None:
        end = "."
    elif cv["explained"] <= 0.0:
        end = ", but nothing in held-out rows."
    else:
        end = f", and about {percent(cv['explained'])} in held-out rows."
    return [*names, text, target, f" in {rows}{end}"]


def _names(point: dict[str, Any], data: dict[str, Any]) -> Sentence:
    """Join names as in 'a, b and c', most useful first, with the number of others."""
    names = [data["features"][i] for i in point["support"]]
    shown = 0
    while shown < min(len(names), NAMED) and sum(map(len, names[: shown + 1])) < NAMED_CHARACTERS:
        shown += 1
    shown = max(shown, 1)
    rest = len(names) - shown
    last = f"{rest} more" if rest else [names[shown - 1]]
    firsts: Sentence = [[name] for name in names[: shown if rest else shown - 1]]
    if not firsts:
        return [last]
    out: Sentence = [firsts[0]]
    for name in firsts[1:]:
        out += [", ", name]
    return [*out, " and ", last]


def _fit(point: dict[str, Any], data: dict[str, Any], words: Words) -> dict[str, str]:
    """Describe the quality of the fit: one number, one sentence."""
    key = "accuracy" if data["classes"] else "explained"
    train, cv = point[key], point["cv"]
    what = "correct" if data["classes"] else f"of the {words.lost}"
    if train is None:
        return {"value": "–", "text": "There is nothing to explain."}
    if not point["support"] and not data["classes"]:
        text = f"{what}: without columns nothing is explained, and all else is measured against it."
        return {"value": percent(0.0), "text": text}
    if cv is None:
        text = f"{what} on the rows it was fitted to. There was no cross-validation."
        text += _guessing(data) if data["classes"] else ""
        return {"value": percent(train), "text": text}
    mean, error = cv[key], cv[f"{key}_se"]
    text = (
        f"{what} on held-out rows, give or take {percent(error)} (one standard error); "
        f"{percent(train)} on the rows it was fitted to."
    )
    if data["classes"]:
        text += _guessing(data) + _apart(point, data)
    elif mean <= error:
        text += " That is not clearly better than no column at all."
    if sum(len(data["parts"][f] or [f]) for f in point["support"]) >= data["rows"] - 1:
        text += " With as many coefficients as rows, any columns would fit."
    if train - mean > max(OVERFIT, 2.0 * error):
        text += " The difference says that a good part of the fit is chance."
    return {"value": percent(mean), "text": text}


def _apart(point: dict[str, Any], data: dict[str, Any]) -> str:
    """Describe how well classes are told apart, which accuracy hides where one is rare."""
    cv, text = point["cv"] or {}, ""
    if not point["support"]:
        return text
    if cv.get("auc") is not None:
        text += f" AUC on held-out rows: {cv['auc']:.3g} (0.5 by chance)."
    each = sorted(zip(point["recall"], data["classes"], strict=True))[:RECALLS]
    shares = ", ".join(f"{name} {percent(share)}" for share, name in each)
    return f"{text} Recall on the rows of the fit: {shares}."


def _guessing(data: dict[str, Any]) -> str:
    return f" Guessing the commonest class: {percent(data['guess'])}."


def _steady(point: dict[str, Any], data: dict[str, Any]) -> dict[str, str]:
    """Describe how often half-samples select the same columns."""
    again, n = point["again"], data["half_samples"]
    if again is None:
        return {"value": "–", "text": "The choice was not repeated on parts of the rows."}
    if not point["support"]:
        return {"value": "–", "text": "No column is chosen."}
    # kept columns are not selected, and there is no choice if all are in
    pairs = zip(point["support"], again, strict=True)
    again = [share for f, share in pairs if f not in data["kept"]]
    k = len(again)
    if k == 0 or len(point["support"]) == data["columns"]:
        return {"value": "–", "text": "There was nothing to choose at this size."}
    firm = sum(share >= FIRM for share in again)
    columns = "column is" if firm == 1 else "columns are"
    text = (
        f"{columns} chosen again in at least {percent(FIRM)} of {n} half-samples, which are halves "
        "of the rows."
    )
    if firm < k:
        text += (
            f" On average {sum(again):.2g} of the {k} came back, the least stable one in "
            f"{round(min(again) * n)} of {n}."
        )
    return {"value": f"{firm} of {k}", "text": text}


def _why(data: dict[str, Any]) -> str:
    """Explain the initial position of the slider."""
    choices, points = data["choices"], data["points"]
    k = points[data["start"]]["k"]
    if k == 0 and "paired_se" in choices:
        return (
            "The page opens at 0 columns: no number of columns explains more than the best of as "
            "many subsets would explain by chance."
        )
    if "paired_se" not in choices:
        return f"The page opens at {count(k, 'column')}, the choice of BIC."
    best = points[choices["min"]]["k"]
    if best == k:
        return (
            f"The page opens at {count(k, 'column')}: the best cross-validated loss, and every "
            "smaller number predicts worse, fold by fold."
        )
    return (
        f"The page opens at {count(k, 'column')}: the fewest that predict, fold by fold, as well "
        f"as the best cross-validated loss, which {count(best, 'column')} reach. More are not "
        "clearly better."
    )


def _meaning(point: dict[str, Any], data: dict[str, Any], words: Words) -> Sentence:
    """Explain the meaning of a coefficient of the chosen columns."""
    target = [data["target"]]
    products = [*_categories(point, data), *_products(point, data)]
    if not data["classes"]:
        effect = words.effect.replace(UNCHANGED, "") if _products(point, data) else words.effect
        before, _, after = effect.partition("{}")
        return [before, target, after, *products]
    if len(data["classes"]) > 2:
        return ["A positive coefficient makes the class at the top of its column more likely, a "
                "negative one less.", *products]  # fmt: skip
    return ["A positive coefficient makes ", target, " = ", [data["classes"][1]],
            f" more likely{words.odds}, a negative one ", [data["classes"][0]], ".",
            *products]  # fmt: skip


def _categories(point: dict[str, Any], data: dict[str, Any]) -> Sentence:
    """Name the reference levels of the chosen categories, if any."""
    chosen = [f for f in point["support"] if data["references"][f] is not None]
    if not chosen:
        return []
    out: Sentence = [" Values of a category are compared with one of them: "]
    for i, f in enumerate(chosen[:CATEGORIES]):
        out += [", " if i else "", [data["features"][f]], " with ", [data["references"][f]]]
    more = len(chosen) - CATEGORIES
    return [*out, f" and {more} more." if more > 0 else "."]


def _products(point: dict[str, Any], data: dict[str, Any]) -> Sentence:
    """Explain that a product or power cannot change by itself, if one is chosen."""
    chosen = [data["features"][f] for f in point["support"]]
    factors = {data["features"][f]: data["factors"][f] for f in point["support"]}
    found = [name for name in chosen if factors[name]]
    if not found:
        return []
    out: Sentence = [" But "]
    for i, name in enumerate(found[:PRODUCTS]):
        out += [", " if i else "", [name]]
    more, is_one = len(found) - PRODUCTS, len(found) == 1
    out.append(f" and {more} more" if more > 0 else "")
    out.append(
        f" cannot change while the columns {'it is' if is_one else 'they are'} made of do not"
    )
    alone = [(name, factor) for name in found for factor in factors[name] if factor not in chosen]
    if not alone:
        return [*out, ": read them together."]
    name, factor = alone[0]
    return [
        *out, ". Where one of those is not chosen, as ", [factor], " beside ", [name], ", the "
        "coefficient also depends on where its zero lies: a part of a formula, not an effect.",
    ]  # fmt: skip


def _unsteady(data: dict[str, Any]) -> Sentence:
    """Name the columns that enter and leave along the path."""
    sizes = [point["k"] for point in data["points"]]
    found = []
    for feature, name in enumerate(data["features"]):
        inside = [feature in point["support"] for point in data["points"]]
        starts = [i for i, here in enumerate(inside) if here and (i == 0 or not inside[i - 1])]
        ends = [i for i, (here, after) in enumerate(pairwise([*inside, False]))
                if here and not after]  # fmt: skip
        if ends and (len(starts) > 1 or ends[-1] < len(inside) - 1):
            runs = [_run(sizes[a], sizes[b]) for a, b in zip(starts, ends, strict=True)]
            found.append((len(inside) - sum(inside), name, " and ".join(runs)))
    if not found:
        return ["Every column stays once it has been chosen."]
    found.sort(key=lambda item: item[0])
    verb = "comes and goes" if len(found) == 1 else "come and go"
    out: Sentence = [f"{count(len(found), 'column')} {verb} along the path: "]
    for i, (_, name, runs) in enumerate(found[:UNSTEADY]):
        out += ["; " if i else "", [name], f" at k = {runs}"]
    more = len(found) - UNSTEADY
    return [*out, f"; and {more} more." if more > 0 else "."]


def _run(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}–{last}"


# -- numbers and names -----------------------------------------------------------------------------


def compact(value: Any) -> Any:
    """Round to six significant digits, None if not finite; arrays become nested lists."""
    if np.ndim(value):
        return [compact(entry) for entry in value]
    number = float(value)
    if not np.isfinite(number):
        return None
    rounded = float(f"{number:.{DIGITS}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def clean(value: Any) -> str:
    """Make text safe to write: lone surrogates become question marks."""
    return str(value).encode("utf-8", "replace").decode("utf-8")


def ratio(part: float, whole: float) -> float:
    """Divide; NaN if the whole is not positive."""
    return part / whole if whole > 0.0 else float("nan")


def figure(value: float | None, digits: int = 4) -> str:
    """Format a number as the page's script does."""
    if value is None:
        return "–"
    rounded = float(f"{value:.{digits}g}")
    is_whole = rounded.is_integer() and abs(rounded) < 1e15
    return (str(int(rounded)) if is_whole else repr(rounded)).replace("-", "\N{MINUS SIGN}")


def share(value: float) -> str:
    """Format a share with four decimals, so that a column of them aligns."""
    return "< 0.0001" if 0.0 < value < 5e-5 else f"{value:.4f}".replace("-", "\N{MINUS SIGN}")
