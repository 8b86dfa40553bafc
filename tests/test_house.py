"""The rooms of the package: imports go one way, and what must exist once exists once."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import blockl0

ROOT = Path(blockl0.__file__).parent
TOOLS = Path(__file__).parents[1] / "tools"
FLOORS = (
    (
        "_version",
        "blas",
        "errors",
        "files",
        "lazy",
        "progress",
        "text",
        "units",
        "verify",
    ),
    ("result", "validate"),
    ("compiling", "kernels", "losses", "run", "theory"),
    ("data",),
    ("problem",),
    ("methods",),
    ("block_search", "dec", "exact", "moves"),
    ("certify",),
    ("search",),
    ("baselines",),
    ("solve",),
    ("path", "selection"),
    ("estimators", "plot"),
    ("datasets", "storage"),
    ("paper",),
    ("app",),
    ("model_file", "report", "tables"),
)
"""From the ground up: a room imports rooms below it, and those beside it."""
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def room_of(module: str) -> str:
    return module.removeprefix("blockl0.").split(".")[0]


@cache
def sources() -> dict[str, str]:
    """Every module with its source."""
    found = {}
    for file in ROOT.rglob("*.py"):
        name = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if name not in ("__init__", "__main__"):
            found[name] = file.read_text(encoding="utf-8")
    return found


def imports_of(source: str) -> set[str]:
    """The rooms that a module imports anywhere, inside functions and for types, too."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("blockl0"):
            found |= {room_of(f"{node.module}.{alias.name}") for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {room_of(a.name) for a in node.names if a.name.startswith("blockl0.")}
    return found & set(FLOOR_OF)


def test_every_module_is_in_a_room():
    assert {room_of(name) for name in sources()} == set(FLOOR_OF)


def test_the_drawing_shows_every_room_on_its_floor():
    text = (Path(__file__).parents[1] / "docs" / "house.md").read_text(encoding="utf-8")
    drawing = re.search(r"```text\n(.*?)```", text, re.S)
    assert drawing is not None
    # two spaces part the rooms from each other, and from what stands before and behind them
    drawn = [
        {word for word in re.split(r"\s{2,}", line.strip()) if word in FLOOR_OF}
        for line in drawing[1].splitlines()
        if not line.strip().startswith("---")
    ]
    assert drawn == [set(rooms) for rooms in reversed(FLOORS)]


@pytest.mark.parametrize("room", FLOOR_OF)
def test_imports_go_one_way(room):
    upwards = {
        f"{name} -> {other}"
        for name, source in sources().items()
        if room_of(name) == room
        for other in imports_of(source)
        if FLOOR_OF[other] > FLOOR_OF[room]
    }
    # a result carries a certificate, of which it knows the name, for types only
    assert upwards <= {"result -> certify"}


def places(pattern: str) -> set[str]:
    """The modules in whose code, comments and docstrings apart, a pattern occurs."""
    return {name for name, source in sources().items() if re.search(pattern, code(source), re.M)}


@cache
def code(source: str) -> str:
    """A source without comments and docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and ast.get_docstring(
            node
        ):
            node.body[0] = ast.Pass()
    return ast.unparse(tree)


def test_what_exists_once():
    # a run is begun in one place, and storage and losses are known in their own files only
    assert places(r"\bRun\(") == {"run"}
    # `run` defines it, `solve.open_run` calls it, once a method is known to take the problem
    assert places(r"(?<![.\w])(?<!def )begin\(") == {"solve"}
    # coefficients come from `Fits`; the function of one line is for the room that it came from
    assert places(r"(?<!def )least_squares_on\(") <= {"exact.search"}
    assert places(r"(?<!def )\bGrowingFit\(") == {"problem.fits"}
    assert places(r"isinstance\([^)]*\bCsc\b") <= {"data.design"}
    assert places(r"isinstance\([^)]*\bCentered\b") <= {"data.centred"}
    assert places(r"Multinomial") == set()
    # which loss several classes have: `for_classes`
    assert places(r"LOSSES\['softmax'\]|get_loss\('softmax'\)") == set()
    assert places(r"== ['\"](squared|logistic|poisson|huber|softmax|gamma|tweedie)['\"]") == set()


def test_all_compiled_functions_are_in_one_file():
    assert places(r"^@(kernel|cached|njit)\b") == {"kernels"}


def test_no_name_of_the_kernels_is_given_twice():
    """The second constant of a name would take the place of the first, in kernels far above it."""
    names: list[str] = []
    for node in ast.parse(sources()["kernels"]).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            names += [name.id for name in ast.walk(node) if isinstance(name, ast.Name)
                      and isinstance(name.ctx, ast.Store)]  # fmt: skip
    assert len(names) > 100 and sorted(set(names)) == sorted(names)


def test_no_function_is_long():
    longest = {}
    for name, source in sources().items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                if body:
                    size = (body[-1].end_lineno or 0) - body[0].lineno + 1
                    longest[f"{name}.{node.name}"] = size
    assert not {name: size for name, size in longest.items() if size > 60}


def test_no_name_stands_for_two_classes():
    owners: dict[str, list[str]] = {}
    for name, source in sources().items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ClassDef):
                owners.setdefault(node.name, []).append(name)
    assert not {name: found for name, found in owners.items() if len(found) > 1}


DIALECT = re.compile(
    r"(What|Whether|Of|Those|That|The same|As many|How|Where|Why|None|One|No) ", re.UNICODE
)
"""Beginnings of clauses without a head, which say neither what is done nor what something is."""


@pytest.mark.parametrize("room", sorted(set(FLOOR_OF) - {"moves", "search"}))
def test_docstrings_of_functions_begin_with_a_verb(room):
    """D401 of ruff knows verbs; it passes over such clauses, and over properties."""
    odd = [
        f"{name}.{node.name}: {first}"
        for name, source in sources().items()
        if room_of(name) == room
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and not is_property(node)
        for first in [(ast.get_docstring(node) or "").split("\n")[0]]
        if DIALECT.match(first)
    ]
    assert not odd


def is_property(node: ast.FunctionDef) -> bool:
    names = {ast.unparse(part).split(".")[-1] for part in node.decorator_list}
    return bool(names & {"property", "cached_property", "lazy", "setter"})


def test_the_glossary_has_words_of_the_code():
    text = (Path(__file__).parents[1] / "docs" / "glossary.md").read_text(encoding="utf-8")
    words = re.findall(r"^\| ([a-z][a-z -]*) \| (.*) \|$", text, re.M)[1:]
    assert 25 <= len(words) <= 40 and [word for word, _ in words] == sorted(w for w, _ in words)
    used = {name.lower().replace("_", "") for name in identifiers()}
    unused = [w for w, _ in words if not any(re.sub(r"[ -]", "", w) in name for name in used)]
    assert not unused
    assert not [
        meaning for _, meaning in words if not re.fullmatch(r"[^.]*(\.\w[^.]*)*\.", meaning)
    ]


def identifiers() -> set[str]:
    """The names of the package: of classes, functions, arguments, attributes and variables."""
    found: set[str] = set()
    for source in sources().values():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Name):
                found.add(node.id)
            elif isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.arg):
                found.add(node.arg)
    return found


@pytest.mark.slow
def test_the_page_states_the_walks():
    """Files, functions and frames as measured, but for what releases of other packages change."""
    sys.path.insert(0, str(TOOLS))
    try:
        import measure_house
    finally:
        sys.path.remove(str(TOOLS))
    command = [sys.executable, str(TOOLS / "measure_house.py"), "--walks", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    measured, stated = json.loads(done.stdout)["walks"], measure_house.read_page()
    assert set(measured) == set(stated)
    for name, sizes in measured.items():
        assert stated[name] == pytest.approx(sizes, rel=0.1, abs=1)


NAMED_TUPLE = {"_asdict", "_fields", "_replace"}
"""Public names that begin with an underscore."""


@pytest.mark.parametrize("room", ["app", "paper"])
def test_the_application_and_the_paper_use_public_names_only(room):
    """What begins with an underscore belongs to the module, or the class, in which it stands."""
    private = set()
    for name, source in sources().items():
        if room_of(name) != room:
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom):
                used = [alias.name for alias in node.names]
            elif isinstance(node, ast.Attribute):
                is_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
                used = [] if is_own else [node.attr]
            else:
                continue
            private |= {
                f"{name}: {one}"
                for one in used
                if re.match(r"_(?!_)", one) and one not in NAMED_TUPLE | {"_version"}
            }
    assert not private
