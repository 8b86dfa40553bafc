"""README, the documentation and the docstring examples run and print what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import blockl0

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MODULES = [
    module.name
    for module in pkgutil.walk_packages(blockl0.__path__, "blockl0.")
    if not module.name.endswith("__main__")
]


def code_blocks(page: Path) -> list[tuple[str, str | None]]:
    """Python blocks of a page, each with the text block that follows it as its output."""
    pattern = r"```python\n(.*?)```(?:\s*(?:prints|It prints:?)?\s*```text\n(.*?)```)?"
    return re.findall(pattern, page.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_blocks_run_and_print_what_the_page_shows(page: Path) -> None:
    for code, output in code_blocks(page):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        if output:
            assert done.stdout.strip() == output.strip()


def test_the_readme_has_an_example_with_its_output() -> None:
    assert any(output for _, output in code_blocks(PAGES[0]))


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"
