"""README, the documentation and the docstring examples run and print what they say."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import json
import pkgutil
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import blockl0
from blockl0.solve import METHODS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
BLOCK = re.compile(
    r"```python\n(?P<code>.*?)```(?:\s*(?:prints|It prints:?)?\s*```text\n(?P<output>.*?)```)?",
    flags=re.DOTALL,
)
READER = """
import contextlib, io, json, os, pathlib, re, sys
page, folder, tests, blocks = json.load(sys.stdin)
sys.path[:0] = [folder, tests]
os.chdir(folder)
printed, namespace = [], {"__name__": "__main__"}
for line, code in blocks:
    if found := re.match(r"# (\\w+[.]py)\\n", code):
        pathlib.Path(folder, found[1]).write_text(code, encoding="utf-8")
        printed.append("")
        continue
    with contextlib.redirect_stdout(io.StringIO()) as out:
        # empty lines first: errors are reported with their line in the page
        exec(compile(chr(10) * line + code, page, "exec"), namespace)
    printed.append(out.getvalue())
print(json.dumps(printed))
"""
"""Types the blocks of a page one after the other, as its reader would.

A block that begins with the name of a Python file is that file, from which others import.
"""
MODULES = [
    module.name
    for module in pkgutil.walk_packages(blockl0.__path__, "blockl0.")
    if not module.name.endswith("__main__")
]


def code_blocks(page: Path) -> list[tuple[int, str, str | None]]:
    """Python blocks of a page: lines above it, code, and the text block that follows it."""
    text = page.read_text(encoding="utf-8")
    return [
        (text.count("\n", 0, block.start("code")), block["code"], block["output"])
        for block in BLOCK.finditer(text)
    ]


def type_in(page: Path) -> subprocess.CompletedProcess[str]:
    """All blocks of a page in one fresh process, warnings as errors."""
    blocks = [(line, code) for line, code, _ in code_blocks(page)]
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run(
            [sys.executable, "-X", "utf8", "-W", "error", "-c", READER],
            input=json.dumps([page.name, folder, str(ROOT / "tests"), blocks]), capture_output=True,
            encoding="utf-8", check=False,
        )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in PAGES if code_blocks(page)], ids=lambda page: page.name
)
def test_code_blocks_run_and_print_what_the_page_shows(page: Path) -> None:
    done = type_in(page)
    assert done.returncode == 0, done.stderr
    for (line, _, shown), printed in zip(code_blocks(page), json.loads(done.stdout), strict=True):
        if shown is not None:
            # pages print few digits, so that rounding does not show
            assert printed.strip() == shown.strip(), f"{page.name}, line {line}"


def test_a_page_that_is_wrong_is_found_out(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n```python\na = 1\n```\n\n```python\nprint(a)\n1 / 0\n```\n")
    done = type_in(page)
    assert done.returncode != 0
    assert 'File "page.md", line 9' in done.stderr


def test_the_readme_has_an_example_with_its_output() -> None:
    assert any(output for _, _, output in code_blocks(PAGES[0]))


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert failed == 0


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    included = re.findall(r"```\{(?:include|literalinclude)\} (\S+)", text)
    for target in [*re.findall(r"\]\((?!https?:|#)([^)#]+)", text), *included]:
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_page_can_be_reached_from_the_first() -> None:
    first = (DOCS / "index.md").read_text(encoding="utf-8")
    listed = {
        line
        for toc in re.findall(r"```\{toctree\}(.*?)```", first, re.DOTALL)
        for line in toc.split()
    }
    for page in DOCS.glob("*.md"):
        assert page.stem == "index" or page.stem in listed, page.name


def test_the_reference_has_every_public_name() -> None:
    reference = (DOCS / "api.md").read_text(encoding="utf-8")
    missing = {
        name
        for name in set(blockl0.__all__) - {"__version__", "datasets"}
        if not re.search(rf":: blockl0\.{name}\b", reference)
    }
    assert not missing


def test_the_page_on_methods_has_every_method() -> None:
    page = (DOCS / "choose_method.md").read_text(encoding="utf-8")
    assert not {method for method in METHODS if f'`"{method}"`' not in page}


def test_the_reference_names_attributes_as_they_are_typed(monkeypatch):
    """Not `coef` for `coef_`, and not the first of two names as the type of the second."""
    napoleon = pytest.importorskip("sphinx.ext.napoleon", reason="the documentation needs Sphinx")
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    extension = importlib.import_module("attributes")
    for thing, names in (
        (blockl0.L0Regressor, ("coef_", "intercept_", "feature_names_in_")),
        (blockl0.Certificate, ("holds", "better_coef", "better_objective")),
    ):
        config = napoleon.Config(napoleon_use_ivar=True)
        text = napoleon.NumpyDocstring(inspect.getdoc(thing) or "", config, what="class")
        lines = str(text).split("\n")
        extension.list_attributes(None, "class", "", thing, None, lines)
        shown = "\n".join(line for line in lines if line.startswith("* "))
        assert all(f"``{name}``" in shown for name in names)
        assert not any(":ivar" in line or ":vartype" in line for line in lines)


def test_the_page_on_proof_files_names_what_is_there() -> None:
    """Functions that check, all arrays and all entries of a header."""
    text = (DOCS / "proof_format.md").read_text(encoding="utf-8")
    table = text[text.index("| condition | checked in |") :].partition("\n\n")[0]
    checked = [name for line in table.splitlines()[2:] for name in re.findall("`([^`]+)`", line)]
    assert len(checked) > 15
    for name in checked:
        thing = importlib.import_module("blockl0.verify")
        for part in name.split("."):
            thing = getattr(thing, part)
        assert callable(thing), name
    files = importlib.import_module("blockl0.verify.files")
    for name in (*files.ARRAYS, *files.HEADER, f'"{files.FORMAT}"`, {files.VERSION}'):
        assert name in text, name


def test_the_dictionary_names_what_is_there() -> None:
    """Every function that the page names for an element of the paper is defined in its file."""
    text = (DOCS / "dictionary.md").read_text(encoding="utf-8")
    named = re.findall(r"`([a-z0-9_/]+\.py)(?::(\w+))?`", text)
    package = Path(blockl0.__file__).parent
    assert len(named) > 60
    for file, name in named:
        if file.startswith(("tests/", "benchmarks/")):
            continue
        tree = ast.parse((package / file).read_text(encoding="utf-8"))
        defined = {getattr(node, "name", "") for node in tree.body}
        assert not name or name in defined, f"{file}: {name}"
