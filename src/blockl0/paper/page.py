"""The page: one self-contained HTML file, for a desktop or a phone, light or dark."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from datetime import date
from html import escape
from importlib.metadata import version
from pathlib import Path

from blockl0 import __version__
from blockl0.datasets import E2006_SOURCE, E2006_VARIABLE
from blockl0.paper import markup
from blockl0.paper.claims import Count, Observation, Promise
from blockl0.paper.profile import (
    DRAW_CHANGES,
    END_CHANGES,
    FIGURE1_METHODS,
    FIGURE2_CHANGES,
    FIGURE2_METHODS,
    OTHERS,
    Profile,
)
from blockl0.paper.readings import CODE_SOURCE, READINGS, ROLE_TITLES
from blockl0.paper.variants import CHANGE_TITLES, GREEDY_UNIT, VARIANTS, Variant, dec

FILE_NAME = "index.html"

STYLE = """
:root { color-scheme: light dark; --text: #1b1e23; --soft: #5b6470; --back: #ffffff;
  --band: #f2f4f7; --line: #d5dae1; --first: #b3361a; --second: #0a5fa8; --third: #00704f;
  --good: #00704f; --bad: #b3361a; --so: #7a5b00; --ink: #1b1e23; --blue: #0072b2;
  --sky: #56b4e9; --green: #009e73; --orange: #e69f00; --red: #d55e00; --pink: #cc79a7;
  --grey: #8a8f98; --brown: #8c6510; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e8eb; --soft: #a3abb5; --back: #15181c;
  --band: #1f242b; --line: #39414b; --first: #ff9075; --second: #7cc0ff; --third: #5cd6ae;
  --good: #5cd6ae; --bad: #ff9075; --so: #f0c75e; --ink: #e6e8eb; --blue: #2f9be0;
  --sky: #8fd0f7; --green: #1fc796; --orange: #f0b429; --red: #f27a2c; --pink: #e29cc4;
  --grey: #a3a9b2; --brown: #c79a3b; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 84rem; padding: 1.2rem clamp(.8rem, 3vw, 2.5rem) 4rem;
  font: 1rem/1.5 system-ui, sans-serif; color: var(--text); background: var(--back); }
h1 { font-size: clamp(1.4rem, 4vw, 2rem); line-height: 1.2; margin: .3rem 0 .6rem; }
h2 { font-size: 1.25rem; margin: 2.4rem 0 .6rem; }
h3 { font-size: 1.05rem; margin: 1.4rem 0 .4rem; }
p { max-width: 62rem; }
a { color: var(--second); }
nav ul { display: flex; flex-wrap: wrap; gap: .3rem 1.1rem; list-style: none; padding: 0; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: .5rem;
  max-width: max-content; }
figure { margin: .8rem 0; }
figcaption { color: var(--soft); font-size: .9rem; max-width: 62rem; margin-top: .4rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .8rem; vertical-align: top; text-align: right; white-space: nowrap; }
thead th { border-bottom: 2px solid var(--line); }
tbody tr + tr { border-top: 1px solid var(--line); }
th:first-child { text-align: left; font-weight: 600; position: sticky; left: 0;
  background: var(--back); }
@media (max-width: 40rem) { th, td { padding: .3rem .5rem; font-size: .92rem; } }
tr.group th { background: var(--band); }
tr.group span { position: sticky; left: .8rem; }
td > * { display: block; }
small { color: var(--soft); font-size: .78rem; line-height: 1.3; }
.place1 { color: var(--first); } .place2 { color: var(--second); } .place3 { color: var(--third); }
.claims { list-style: none; padding: 0; max-width: 62rem; }
.claims > li { padding: .6rem 0; border-top: 1px solid var(--line); }
.claims p { margin: .15rem 0 0; color: var(--soft); overflow-wrap: anywhere; }
.claims details { margin: .15rem 0 0; } .claims details ul { margin: .3rem 0; }
.counts { list-style: none; padding: 0 0 0 .9rem; margin: .2rem 0; font-size: .95rem; }
.counts b { font-variant-numeric: tabular-nums; }
.details { max-height: 26rem; overflow-y: auto; }
.verdict { font-weight: 700; margin-right: .5rem; }
.good { color: var(--good); } .bad { color: var(--bad); } .so { color: var(--so); }
.note { border-left: 4px solid var(--so); padding: .3rem .8rem; background: var(--band); }
.panels { display: grid; gap: 1rem; grid-template-columns: 1fr; }
@media (min-width: 40rem) { .panels { grid-template-columns: 1fr 1fr; } }
@media (min-width: 75rem) { .panels { grid-template-columns: repeat(4, 1fr); } }
.panels figure { margin: 0; min-width: 0; }
.panels svg { width: 100%; height: auto; display: block; }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.1rem; list-style: none; padding: .4rem 0;
  margin: 0; position: sticky; top: 0; background: var(--back); z-index: 1; font-size: .9rem; }
.legend svg { width: 2.4rem; height: 1rem; margin-right: .35rem; vertical-align: middle; }
details { margin: .8rem 0; } summary { cursor: pointer; color: var(--second); }
code { background: var(--band); padding: .1em .3em; border-radius: .25em; overflow-wrap: anywhere; }
footer { margin-top: 3rem; color: var(--soft); font-size: .9rem; }
"""

VERDICT_CLASSES = {
    "PASS": "good", "reproduces": "good", "FAIL": "bad", "does not reproduce": "bad",
}  # fmt: skip
VERDICTS = (
    "<p>The paper leaves open how its methods were run, so every observation is counted under "
    "several variants: under <b>the paper's text</b> (Algorithm 1 and its parameters to the "
    "letter, outliers in X alone, the greedy methods on raw columns), under <b>its authors' "
    f"code</b> ({CODE_SOURCE}, uploaded in 2023: evidence of what was run, and not the text), "
    "under <b>what the printed numbers show</b> (see the quantiles below), and under whatever "
    "else was tried. It "
    "<i>reproduces</i> when it holds in nine cases of ten under the text, the code or what the "
    "printed numbers show, and <i>does not reproduce</i> only when it holds in less than half "
    "of the cases under every variant. Claims about seconds have no verdict: other machines, "
    "other programs; the numbers stand at Table 3 and Figure 1.</p>"
)


def write_page(
    out: Path,
    profile: Profile,
    sections: dict[str, str],
    promises: Sequence[Promise],
    observations: Sequence[Observation],
    *,
    skipped: Sequence[str],
    jobs: Sequence[int],
) -> Path:
    """Put the sections together; `skipped` names the sets whose data were missing."""
    judged = {
        "promises": _list("promises", "What this run shows", "", map(_promise, promises)),
        "observations": _list(
            "observations",
            "The paper's observations, recounted",
            VERDICTS,
            map(_observation, observations),
        ),
    }
    parts = {name: text for name, text in (judged | sections).items() if text}
    body = "".join(
        [_header(profile), _skipped(skipped), _contents(parts), *parts.values(), _footer(jobs)]
    )
    path = out / FILE_NAME
    path.write_text(
        "<!doctype html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'  # or the browser requests one
        f"<title>blockl0: the paper reproduced</title><style>{STYLE}</style></head>"
        f"<body>{body}</body></html>\n",
        encoding="utf-8",
    )
    return path


def _header(profile: Profile) -> str:
    text = (
        "<h1>A Block Decomposition Algorithm for Sparse Optimization, recomputed</h1>"
        "<p>The tables and figures of Yuan, Shen and Zheng (KDD 2020), computed by blockl0 "
        f"{escape(__version__)}: our runs of the paper's methods, the printed numbers beside them, "
        "and blockl0's default method, <b>refit</b>. Lower objectives are better.</p>"
    )
    if profile.name == "quick":
        text += (
            f'<p class="note">A quick run: {markup.count(profile.seeds, "random start")}, fewer '
            'budgets and curves, and refit with <code>effort="fast"</code>. With '
            f"{markup.count(profile.draws, 'draw')} of the data quantiles say nothing and verdicts "
            "little. Without <code>--quick</code> everything is computed.</p>"
        )
    return text


def _skipped(names: Sequence[str]) -> str:
    if not names:
        return ""
    return (
        f'<p class="note"><b>Skipped: {escape(", ".join(names))}.</b> Their data is not here. Set '
        f"<code>{E2006_VARIABLE}</code> to the path of {escape(E2006_SOURCE)}.</p>"
    )


def _contents(parts: dict[str, str]) -> str:
    titles = (
        (name, text[text.index("<h2>") + 4 : text.index("</h2>")]) for name, text in parts.items()
    )
    links = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title in titles)
    return f'<nav aria-label="Contents"><ul>{links}</ul></nav>'


def _list(name: str, title: str, text: str, claims: Iterable[str]) -> str:
    items = "".join(markup.tag("li", claim) for claim in claims)
    return markup.section(name, title, text, markup.tag("ul", items, class_="claims")) * bool(items)


def _promise(promise: Promise) -> str:
    text = _verdict(promise.verdict) + escape(promise.text)
    text += markup.tag("p", escape(promise.detail))
    return text + (_cases("Which", promise.exceptions) if promise.exceptions else "")


def _observation(claim: Observation) -> str:
    text = _verdict(claim.verdict) + escape(claim.text)
    text += markup.tag("p", escape(f"{claim.reason[0].upper()}{claim.reason[1:]}."))
    rows = [(ROLE_TITLES[role], c) for role in READINGS for c in claim.counts if role in c.roles]
    best = claim.best
    if best is not None and all(c.empty or c.share < best.share for _, c in rows):
        rows.append(("at its best", best))
    lines = (_count(title, count) for title, count in rows)
    text += markup.tag("ul", "".join(lines), class_="counts")
    text += markup.tag("p", escape(_circumstances(claim)))
    text += _cases("One by one", claim.lines) if claim.lines else ""
    if len(claim.counts) < 2:
        return text
    tried = [f"{count}: {count.variant}{_empty(count)}" for count in _by_share(claim.counts)]
    return text + _cases(f"All {len(tried)} variants", tried)


def _by_share(counts: Sequence[Count]) -> list[Count]:
    return sorted(counts, key=lambda count: (bool(count.empty), -count.share))


def _count(title: str, count: Count) -> str:
    runs = f"; {markup.count(count.draws, 'draw')}, {markup.count(count.starts, 'start')}"
    more = escape(count.variant + (runs if count.draws else "") + _empty(count))
    return markup.tag(
        "li",
        f"{escape(title)}: <b>{count}</b> ({_percent(count.share)}) <small>{more}</small>",
    )


def _percent(share: float) -> str:
    """Write a percentage, with decimals only next to 0 and 100."""
    return f"{share:.1%}" if 0.0 < share < 0.1 or 0.99 < share < 1.0 else f"{share:.0%}"


def _empty(count: Count) -> str:
    return f" (empty: {count.empty})" if count.empty else ""


def _circumstances(claim: Observation) -> str:
    parts = [f"Compared are {claim.compared}."]
    if claim.chance is not None:
        parts.append(f"In random order it would hold in {claim.chance:.0%}.")
    if claim.printed is not None:
        parts.append("In the paper's own table it holds in {} of {}.".format(*claim.printed))
    return " ".join([*parts, claim.note]).strip()


def _verdict(verdict: str) -> str:
    return markup.tag("span", verdict, class_=f"verdict {VERDICT_CLASSES.get(verdict, 'so')}")


def _cases(summary: str, cases: Iterable[str]) -> str:
    items = "".join(markup.tag("li", escape(case)) for case in cases)
    return markup.details(summary, markup.tag("ul", items, class_="details"))


def _footer(jobs: Sequence[int]) -> str:
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba"))
    at_once = " or ".join(map(str, jobs)) or "1"
    return (
        f"<footer>{date.today().isoformat()}; Python {platform.python_version()}, {versions}; "
        f"{escape(platform.system())} {escape(platform.machine())}; one thread for each run, "
        f"{markup.count(at_once, 'run')} at a time. "
        "All finished cells are in <code>cells.jsonl</code>, "
        "the tables in CSV files beside this page.</footer>"
    )


# -- the settings of every method ------------------------------------------------------------------

VARIANTS_HEAD = (
    "", "start", "greedy choice", "θ", "stopping", "iterations at most", "columns ranked",
)  # fmt: skip
GREEDY_TITLES = {
    "split": "half from the support",
    "ranked": "one list",
    "paper": "the paper's list",
}
STOPPING_TITLES = {"paper": ", the paper's", "support": ", blocks without a nonzero not counted"}


def variants_section(profile: Profile) -> str:
    """Return the table of all variants that this profile runs."""
    changes = {*END_CHANGES, *FIGURE2_CHANGES, *DRAW_CHANGES} | (
        {"unstopped"} if profile.is_unstopped else set()
    )
    others = {*OTHERS, *FIGURE1_METHODS, *FIGURE2_METHODS, *GREEDY_UNIT, "refit-fast"}
    rows = [
        [f"DEC-RiGj, {title}", *_record(VARIANTS[dec(change=name)])]
        for name, title in CHANGE_TITLES.items()
        if name in changes
    ]
    rows += [
        [escape(variant.title), *_record(variant)]
        for label, variant in VARIANTS.items()
        if label in others | {profile.refit} and variant.solver != "dec"
    ]
    caption = (
        "“Half from the support” is what the authors' code does under a budget, of an odd number "
        "with one more from the support, and “one list”, which merges the scores of zeros and "
        "support, what it does at a price; “the paper's list” is that with the scores to the "
        "letter, by which all zeros are equal once the budget is full. θ is “relative” where it is "
        "multiplied by the largest squared length of a column if that is below 1. Stopping: the "
        "mean relative decrease over so many iterations is at most 1e-5; “the paper's” judges the "
        "loss alone, from the second iteration on. θ is varied on e2006 alone: on the random sets "
        "the largest squared length is in the hundreds, so that relative or not is the same, and "
        "1e-5 hardly another number than 1e-3. Without stopping, R0G2 ends when a block changes "
        "nothing: it would come again for ever."
    )
    table = markup.table(VARIANTS_HEAD, rows, caption=caption)
    return markup.section("variants", "How every method is run", table)


def _record(variant: Variant) -> Sequence[str]:
    theta = "–"
    if variant.theta is not None:
        theta = f"{variant.theta:g}" + (", relative" if variant.theta_scale else "")
    stopping = "–"
    if variant.window is not None:
        stopping = f"over {variant.window}" + STOPPING_TITLES.get(variant.stopping or "", "")
        stopping = "never" if variant.window == variant.max_iter else stopping
    columns = {None: "–", True: "unit", False: "raw"}[variant.normalize]
    limit = "–" if variant.max_iter is None else f"{variant.max_iter:,}"
    greedy = GREEDY_TITLES.get(variant.greedy or "", "–")
    return [variant.start, greedy, theta, stopping, limit, columns]
