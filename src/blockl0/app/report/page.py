"""The page: the template filled in, with the chosen k readable before any script runs."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import escape
from importlib.resources import files
from typing import Any

from blockl0 import __version__
from blockl0.app.report.words import figure, share
from blockl0.problem.preprocess import read_ridge
from blockl0.text import count

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; script-src 'sha256-{}'"
)
"""Only the page's own script may run: text from the data could not, even if it were not escaped."""
RULES = {"paired_se": "chosen", "one_se": "one SE", "min": "best CV"}
CHARGED = (
    " For the choice, every coefficient of a category beyond its first is charged BIC's price, so "
    "that large categories are not chosen for their size."
)
CATEGORY_LINES = (
    " Of a category: the spread of what it adds to the prediction, or, per unit, how far its "
    "values are apart."
)
SCORE_HEADS = ("fitted rows", "unseen rows", "± SE")


def render(data: dict[str, Any]) -> str:
    """Render the page of a report."""
    point = data["points"][data["start"]]
    script = _file("draw.js") + _file("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    parts = {
        "policy": POLICY.format(digest),
        "version": escape(__version__),
        "title": escape(f"Which columns explain {data['target']}?"),
        "style": _file("page.css"),
        "script": script,
        "json": embedded(data),
        "last": str(len(data["points"]) - 1),
        "start": str(data["start"]),
        **_top(data, point),
        **_columns(data, point),
        **_captions(data),
        **_proof(point),
        "inference": "".join(f"<p>{escape(text)}</p>" for text in data["inference"]),
        "python": escape(str(point["k"]).join(data["recipes"]["python"])),
        "command": escape(str(point["k"]).join(data["recipes"]["command"])),
        **_overview(data),
        "about": _about(data),
    }
    # one pass, so that braces in the data are never taken for placeholders
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _file("page.html"))


def embedded(data: dict[str, Any]) -> str:
    """Convert to JSON that is safe inside a script element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _file(name: str) -> str:
    return files("blockl0.app.report").joinpath(name).read_text(encoding="utf-8")


def _upper(text: str) -> str:
    """Capitalize the first letter."""
    return text[:1].upper() + text[1:]


def _sentence(parts: list[Any]) -> str:
    """Mark up a sentence, setting names from the data apart."""
    return "".join(
        f'<b class="name">{escape(part[0])}</b>' if isinstance(part, list) else escape(part)
        for part in parts
    )


def _top(data: dict[str, Any], point: dict[str, Any]) -> dict[str, str]:
    source, words = data["about"]["source"], point["words"]
    eyebrow = [source] if source else []
    eyebrow += [f"target {data['target']}", count(data["rows"], "row")]
    eyebrow += [f"{count(data['columns'], 'column')} to choose from"]
    rules = "".join(
        f'<button type="button" data-rule="{name}" aria-pressed="{str(i == data["start"]).lower()}"'
        f' title="{escape(data["rules"][name])}">{escape(RULES.get(name) or name.upper())}: '
        f"{data['points'][i]['k']}</button>"
        for name, i in data["choices"].items()
    )
    return {
        "eyebrow": escape(" · ".join(eyebrow)),
        "headline": _sentence(words["headline"]),
        "why": escape(data["why"]),
        "size": f"{point['k']} of {data['columns']}",
        "rules": rules,
        **{
            f"{name}_{key}": escape(words[name][key])
            for name in ("fit", "steady")
            for key in ("value", "text")
        },
    }


def _columns(data: dict[str, Any], point: dict[str, Any]) -> dict[str, str]:
    classes = data["classes"] or []
    is_many = len(classes) > 2
    heads = ["Column", *(classes if is_many else ["Coefficient", "… per standard deviation"])]
    heads.append(f"{_upper(data['score'])} lost without it")
    if point["again"] is not None:
        heads.append("Chosen again")
    heads.append("Enters at")
    rows = []
    n_coefs = len(classes) if is_many else 2
    for at, f in enumerate(point["support"]):
        texts = _coefficients(data, point, at, is_many)
        n_rest = len(heads) - 1 - n_coefs
        texts.append("kept" if point["drop"][at] is None else share(point["drop"][at]))
        if point["again"] is not None:
            texts.append(
                f"{round(point['again'][at] * data['half_samples'])} of {data['half_samples']}"
            )
        texts.append(str(next(p["k"] for p in data["points"] if f in p["support"])))
        name = f'<th scope="row" class="name">{escape(_title(data, f))}</th>'
        rows.append(f"<tr>{name}{''.join(f'<td>{text}</td>' for text in texts)}</tr>")
        rows += _parts(data, point, at, n_coefs, n_rest)
    intercept = point["intercept"] if is_many else [point["intercept"]]
    return {
        "meaning": _sentence(point["words"]["meaning"]),
        "cautions": "".join(f"<li>{_sentence(parts)}</li>" for parts in point["cautions"]),
        "heads": "".join(f'<th scope="col" class="name">{escape(head)}</th>' for head in heads),
        "rows": "".join(rows),
        "intercept": f"Intercept: {', '.join(map(figure, intercept))}. Objective: "
        f"{figure(point['objective'], 6)}; mean loss: {figure(point['loss'], 5)}.",
    }


def _title(data: dict[str, Any], f: int) -> str:
    """Return the name of a column, with the number of coefficients of a category."""
    parts = data["parts"][f]
    return data["features"][f] + (f" ({len(parts)} coefficients)" if parts else "")


def _coefficients(data: dict[str, Any], point: dict[str, Any], at: int, is_many: bool) -> list[str]:
    """Return the cells of a chosen column; for a group only its effect on the prediction."""
    coef, f = point["coef"][at], point["support"][at]
    if coef is None:
        return [""] * len(data["classes"]) if is_many else ["", figure(point["effect"][at])]
    return [figure(value) for value in (coef if is_many else [coef, coef * data["spread"][f]])]


def _parts(
    data: dict[str, Any], point: dict[str, Any], at: int, n_coefs: int, n_rest: int
) -> list[str]:
    """Return a row for every level of a category, reference first."""
    f = point["support"][at]
    if point["coef"][at] is not None:
        return []
    reference, n_values = data["references"][f], n_coefs if data["classes"] else 1
    rows = [] if reference is None else [(reference, [0.0] * max(1, n_values), True)]
    for name, coef in zip(data["parts"][f], point["parts"][at], strict=True):
        rows.append((name, coef if isinstance(coef, list) else [coef], False))
    return [_part(*row, n_coefs + n_rest) for row in rows]


def _part(name: str, coefs: list[float], is_reference: bool, n_cells: int) -> str:
    texts = [figure(value) for value in coefs] + [""] * n_cells
    head = escape(name) + (" (reference)" if is_reference else "")
    cells = "".join(f"<td>{text}</td>" for text in texts[:n_cells])
    return f'<tr class="part"><th scope="row" class="name">{head}</th>{cells}</tr>'


def _captions(data: dict[str, Any]) -> dict[str, str]:
    folds, halves, score = data["folds"], data["half_samples"], data["score"]
    legend = (
        "Of a category, “per standard deviation” is the standard deviation of what it adds to the "
        "prediction. " if any(data["parts"]) and len(data["classes"] or ()) < 3 else ""
    )  # fmt: skip
    legend += (
        f"“Lost without it”: the fall of {'' if len(score) < 3 else 'the '}{score} on the fitted "
        "rows when the column is left out and the others are fitted anew."
    )
    curve = f"{_upper(score)} on the rows of the fit (dashed)."
    weak = "A full cell: the column is chosen at that size."
    if halves:
        legend += (
            f" “Chosen again”: how many of {halves} half-samples take the column at the same size. "
            "Each random split of the rows gives two half-samples. The share measures stability; "
            "it is not a probability."
        )
        weak += " A thin pale one: no more than half of the half-samples agree."
    if folds:
        curve = (
            f"Solid: held-out rows, the mean of {folds} folds, with a band of one "
            "standard error. Dashed: the rows of the fit, which always improves. The ring is the "
            "number that is chosen: the fewest columns that predict as well as the best."
        )
    return {
        "legend": escape(legend),
        "curve_caption": escape(curve),
        "map_caption": escape(weak),
        "lines_caption": CATEGORY_LINES if any(data["parts"]) else "",
        "unsteady": _sentence(data["unsteady"]),
        "objective": escape(_objective(data)),
    }


def _objective(data: dict[str, Any]) -> str:
    ridge = read_ridge(data["about"]["settings"]["ridge"])
    whose = " of standardized columns" if ridge.per_spread else ""
    plus = f", plus ½·{figure(ridge.value)} times the sum of squared coefficients{whose}"
    total = f"{data['total']}, summed over the rows{plus if ridge.value else ''}"
    is_charged = any(point.get("price") for point in data["points"])
    has_categories = is_charged or any(data["parts"])
    what = "columns chosen, a category with all its values" if has_categories else (
        "coefficients nonzero"
    )  # fmt: skip
    bounds = f". {data['bounds']}" if data["bounds"] else ""
    return f"The objective is {total}, at most k {what}{bounds}.{CHARGED if is_charged else ''}"


def _proof(point: dict[str, Any]) -> dict[str, str]:
    found = point["certificate"]
    return {
        "proof_question": escape(found["question"]),
        "proof_value": escape(found["answer"]),
        "proof_text": escape(found["short"]),
        "mark": found["mark"],
        **{name: escape(found[name]) for name in ("verdict", "proven", "open")},
    }


def _overview(data: dict[str, Any]) -> dict[str, str]:
    """Tabulate one row per size, also for readers without scripts."""
    keys = {"explained": _upper(data["score"])} | (
        {"accuracy": "Accuracy", "auc": "AUC"} if data["classes"] else {}
    )
    heads = ["Columns", "Enters", "Objective", "Mean loss"]
    heads += [f"{name}, {rows}" for name in keys.values() for rows in SCORE_HEADS]
    heads += [*(name.upper() for name in data["criteria"]), "Certificate"]
    rows, before = [], set()
    for i, point in enumerate(data["points"]):
        here, cv = set(point["support"]), point["cv"] or {}
        new = ", ".join(data["features"][f] for f in point["support"] if f not in before)
        texts = [figure(point["objective"], 6), figure(point["loss"], 5)]
        for key in keys:
            texts += [figure(point[key], 3), figure(cv.get(key), 3), figure(cv.get(f"{key}_se"), 2)]
        texts += [figure(values[i], 6) for values in data["criteria"].values()]
        cells = "".join(f"<td>{text}</td>" for text in texts)
        rows.append(
            f'<tr><th scope="row">{point["k"]}</th><td class="name">{escape(new)}</td>{cells}'
            f"<td>{escape(point['certificate']['verdict'])}</td></tr>"
        )
        before = here
    return {
        "overview_heads": "".join(f'<th scope="col">{escape(head)}</th>' for head in heads),
        "overview": "".join(rows),
    }


def _about(data: dict[str, Any]) -> str:
    about = data["about"]
    settings = ", ".join(f"{k} {v}" for k, v in about["settings"].items() if v is not None)
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    entries = {
        "Data": about["source"],
        "Fingerprint": about["fingerprint"],
        "Command": about["command"],
        "Settings": settings,
        "Versions": versions,
        "Made": f"{about['date']}, in {about['seconds']:g} s",
    }
    items = [
        f"<dt>{name}</dt><dd>{'<code>' * is_code}{escape(text)}{'</code>' * is_code}</dd>"
        for name, text in entries.items()
        if text
        for is_code in [name in ("Fingerprint", "Command")]
    ]
    if about["notes"]:
        notes = "".join(f"<li>{escape(note)}</li>" for note in about["notes"])
        items.insert(1, f"<dt>Notes</dt><dd><ul>{notes}</ul></dd>")
    return f"<dl>{''.join(items)}</dl>"
