"""The report page: safe markup, readable without scripts, and alive in a real browser."""

from __future__ import annotations

import base64
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from blockl0.app.report import make_report, proof
from blockl0.app.report.page import embedded
from blockl0.app.report.words import share
from webdriver import CHROMIUM, DRIVER, Browser

HOSTILE = [
    "</script><script>document.title = 'hit'</script>", "\"double\" & 'single'",
    "<img src=x onerror=document.title='hit'>", "{{json}} ${1} \\u003c", "\u202eעברית",
    "a very long name " * 8, "\ud800 ", " ",
]  # fmt: skip
TARGET = "y</title><b>\"'"


@pytest.fixture(scope="module")
def report():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((70, len(HOSTILE)))
    y = X[:, :4] @ [3.0, -2.0, 2.0, 1.0] + rng.standard_normal(70)
    return make_report(
        X, y, feature_names=HOSTILE, target=TARGET, cv=3, source="<i>here</i>.csv",
        fingerprint="sha256:<u>", notes=["<script>document.title = 'hit'</script>"],
        command="blockl0 report '<i>'", ridge=0.0,
    )  # fmt: skip


class Reader(HTMLParser):
    """Elements by name, their attributes, and the text of those with an id."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict]] = []
        self.texts: dict[str, str] = {}
        self.open: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "input", "br", "img"):
            self.open.append((tag, dict(attrs).get("id")))

    def handle_endtag(self, tag):
        while self.open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        for _, name in self.open:
            if name:
                self.texts[name] = self.texts.get(name, "") + data


def test_text_from_the_data_is_never_markup(report):
    page = report.to_html()
    page.encode("utf-8")  # lone surrogates could not be written
    read = Reader(page)
    tags = [tag for tag, _ in read.elements]
    assert tags.count("script") == 2 and tags.count("title") == 1
    assert not {"img", "i", "u", "iframe"} & set(tags)
    assert not any(key.startswith("on") for _, attrs in read.elements for key in attrs)
    assert {attrs["class"] for tag, attrs in read.elements if tag == "b" and "class" in attrs} == {
        "name"
    }
    assert json.loads(read.texts["data"]) == report.to_dict()
    assert "<" not in embedded(report.to_dict())


def test_the_page_needs_nothing_else(report):
    page = report.to_html()
    for tag, attrs in Reader(page).elements:
        for key in ("src", "href"):
            assert attrs.get(key, "#").startswith(("#", "data:")), (tag, attrs)
    assert not re.search(r"url\((?!#)|@import|fetch\(|XMLHttpRequest", page)
    assert "{{" not in page.replace("{{json}}", "")


def test_the_chosen_size_is_readable_without_scripts(report):
    data, read = report.to_dict(), Reader(report.to_html())
    point = data["points"][data["start"]]
    rows = read.texts["rows"]
    for at, f in enumerate(point["support"]):
        assert data["features"][f] in rows and share(point["drop"][at]) in rows
    headline = "".join(p if isinstance(p, str) else p[0] for p in point["words"]["headline"])
    assert read.texts["headline"] == headline
    assert read.texts["proven"] == point["certificate"]["proven"]
    assert read.texts["python"] == str(point["k"]).join(data["recipes"]["python"])


@pytest.mark.slow
def test_a_large_page_is_small(monkeypatch):
    monkeypatch.setattr(proof, "WORK", 0.3)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 500))
    y = X[:, :8].sum(axis=1) + rng.standard_normal(90)
    names = [f"a rather long name of a column, number {j:03d}" for j in range(500)]
    made = make_report(X, y, feature_names=names, n_nonzero_coefs=50, cv=2, effort=0)
    page = made.to_html()
    assert len(made.to_dict()["points"]) == 51
    assert len(page.encode()) < 500_000


# -- a real browser --------------------------------------------------------------------------------

needs_browser = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None,
    reason="Chromium or chromedriver is not installed: the report page was NOT checked",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = Browser(tmp_path_factory.mktemp("browser"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def address(report, tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(report.to_html(), encoding="utf-8")
    return file.as_uri()


RIGHT, LEFT, END = "\ue014", "\ue012", "\ue010"


@needs_browser
def test_the_slider_moves_the_page(report, browser, address):
    data = report.to_dict()
    browser.view(1280)
    browser.open(address)
    start = data["start"]
    seen = {}
    for keys, i in (("", start), (RIGHT, start + 1), (LEFT * 2, start - 1), (END, 8)):
        if keys:
            browser.keys("slider", keys)
        point = data["points"][i]
        assert browser.text("size") == f"{point['k']} of 8"
        cells = browser.run(
            "return [...document.querySelectorAll('#rows tr')].map(row => [...row.cells].map("
            "cell => cell.textContent))"
        )
        assert [row[0] for row in cells] == [data["features"][f] for f in point["support"]]
        written = [float(row[1].replace("−", "-")) for row in cells]
        np.testing.assert_allclose(written, point["coef"], rtol=1e-3)
        assert [row[3] for row in cells] == [share(value) for value in point["drop"]]
        assert browser.text("proven") == point["certificate"]["proven"]
        assert f".at({point['k']})" in browser.text("python")
        seen[point["k"]] = browser.text("headline")
    # every size has a headline of its own
    assert len(set(seen.values())) == len(seen) >= 3 and HOSTILE[0] in next(iter(seen.values()))
    assert browser.run("return location.hash") == "#k=8"
    assert browser.run("return document.title") == f"Which columns explain {TARGET}?"
    assert browser.run("return performance.getEntriesByType('resource').length") == 0
    assert browser.complaints() == []


@needs_browser
def test_marks_stand_at_their_values_on_the_axis(report, browser, address):
    """The ticks and the points of the curve are on one scale."""
    browser.view(1280)
    browser.open(address)
    ticks, marks = browser.run("""
      const all = selector => [...document.querySelectorAll('#curve ' + selector)];
      const y = e => Number(e.getAttribute('y'));
      const ends = all('text[text-anchor=end]').filter(e => e.getAttribute('class') === null);
      return [ends.map(e => [Number(e.textContent.replace('\u2212', '-')), y(e) - 4]),
              all('circle.dot').map(e => Number(e.getAttribute('cy')))];
    """)
    slope, offset = np.polyfit(*np.transpose(ticks), 1)
    means = [point["cv"]["explained"] for point in report.to_dict()["points"]]
    np.testing.assert_allclose(marks, [slope * value + offset for value in means], atol=0.2)


@needs_browser
def test_links_buttons_and_pictures_move_it_too(report, browser, address):
    data = report.to_dict()
    browser.open(address + "#k=2")
    assert browser.text("size") == "2 of 8"
    browser.click("more")
    assert browser.text("size") == "3 of 8"
    browser.run("document.querySelector('[data-rule=paired_se]').click()")
    assert browser.text("size") == f"{data['points'][data['start']]['k']} of 8"
    click = "arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    for picture in ("curve", "criteria", "lines", "map", "strip"):
        browser.run("location.hash = '#k=1'")
        find = f"document.querySelector('#{picture} [data-i=\"6\"]')"
        browser.run(click.replace("arguments[0]", find))
        assert browser.text("size") == "6 of 8", picture
    browser.keys("more", LEFT)
    assert browser.text("size") == "5 of 8"
    move = click.replace("MouseEvent('click'", "PointerEvent('pointermove'")
    browser.run(move.replace("arguments[0]", "document.querySelector('#curve [data-i=\"6\"]')"))
    assert browser.text("tip").startswith("k = 6\nunseen rows: ")
    assert not browser.run("return document.getElementById('tip').hidden")
    names = browser.run(
        "return [...document.querySelectorAll('#map text.label')].map(e => e.textContent)"
    )
    assert len(names) == 8 and any(name.startswith("</script>") for name in names)
    before = browser.run("return document.querySelector('#lines .series').getAttribute('d')")
    browser.run("document.querySelector('[value=plain]').click()")
    assert (
        browser.run("return document.querySelector('#lines .series').getAttribute('d')") != before
    )
    browser.run("document.querySelector('#coefficients').open = true")
    browser.run("return new Promise(done => setTimeout(done, 50))")
    assert (
        browser.run("return document.querySelectorAll('#coefficient-table tbody tr').length") == 8
    )
    assert browser.complaints() == []


@needs_browser
@pytest.mark.parametrize("has_clipboard", [True, False])
def test_copies_what_is_shown(report, browser, address, has_clipboard):
    browser.open(address + "#k=3")
    browser.run(
        "document.addEventListener('copy', e => { window.copied = e.target.value; });"
        "const writeText = async text => { window.copied = text; };"
        "Object.defineProperty(navigator, 'clipboard',"
        " {value: arguments[0] ? {writeText} : undefined, configurable: true});",
        has_clipboard,
    )
    for name in ("python", "command"):
        browser.click(f"copy-{name}")
        browser.run("return new Promise(done => setTimeout(done, 30))")
        assert browser.run("return window.copied") == "3".join(report.to_dict()["recipes"][name])
        assert browser.text("copied") == "Copied for k = 3."
    assert browser.complaints() == []


@needs_browser
def test_wide_narrow_light_dark_and_print(browser, address):
    colours = set()
    for width in (1280, 390):
        for scheme in ("light", "dark"):
            browser.view(width, scheme)
            browser.open(address + "#k=8")
            assert browser.run("return document.documentElement.scrollWidth") <= width
            drawn = browser.run(
                "return [...document.querySelectorAll('.plot svg')].map(e => [e.clientWidth,"
                " e.parentElement.clientWidth, e.getAttribute('aria-label').length])"
            )
            assert len(drawn) == 4
            assert all(abs(w - box) <= 1 and label > 20 for w, box, label in drawn)
            colours.add(browser.run("return getComputedStyle(document.body).backgroundColor"))
    assert len(colours) == 2
    printed = base64.b64decode(browser.call("/print", {"background": True}))
    assert printed.startswith(b"%PDF") and browser.complaints() == []


@needs_browser
def test_no_other_script_can_run(browser, address):
    browser.open(address)
    browser.run(
        "document.body.insertAdjacentHTML('beforeend', '<img src=data:, onerror=window.hit=1>');"
        "const s = document.createElement('script'); s.textContent = 'window.hit = 1';"
        "document.body.append(s);"
    )
    browser.run("return new Promise(done => setTimeout(done, 50))")
    assert browser.run("return window.hit") is None
    assert "Content Security Policy" in str(browser.complaints())
