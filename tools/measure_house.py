"""Measure the size of the house: lines by room, walks of a call, names, docstrings, comments.

Run with ``python tools/measure_house.py``; ``--walks`` or ``--lines`` prints one part, ``--write``
brings the table of walks in docs/house.md up to date, which a test compares, and ``--types`` fails
if too few public names have a type that every type checker knows. Lines are those of
code, without blank lines, comments and docstrings. A walk is one call, warm: how many files and
functions of the package it enters, and how deep its calls nest.
"""

from __future__ import annotations

import argparse
import ast
import collections
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import blockl0

PACKAGE = Path(blockl0.__file__).parent
PAGE = Path(__file__).parents[1] / "docs" / "house.md"
HEAD = "| a walk | files | functions | frames deep |\n|---|---|---|---|\n"
APART = ("app", "paper")
"""Rooms that are not the library: the application, and the tables and figures of the paper."""


# -- lines, names, docstrings ----------------------------------------------------------------------


def code_lines(source: str) -> int:
    """Count the lines of code, without blank lines, comments and docstrings."""
    tree, lines = ast.parse(source), set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in (
            tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
            tokenize.ENDMARKER,
        ):  # fmt: skip
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        # a docstring, or the text below a constant that says what it is
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            if isinstance(node.value.value, str):
                lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def comment_lines(source: str) -> int:
    """Count the lines that hold a comment which says something, and not only `# fmt: skip`."""
    tools = ("# fmt:", "# noqa", "# type:", "# pyright:", "#!")
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return sum(t.type == tokenize.COMMENT and not t.string.startswith(tools) for t in tokens)


def sources() -> Iterator[tuple[str, str]]:
    """Yield the path of every module below the package, and its source."""
    for file in sorted(PACKAGE.rglob("*.py")):
        yield file.relative_to(PACKAGE).as_posix(), file.read_text(encoding="utf-8")


def measure_lines() -> dict[str, Any]:
    """Count lines and files by room, class names that stand twice, and comments."""
    rooms: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0])
    classes: dict[str, list[str]] = collections.defaultdict(list)
    code = comments = 0
    for path, source in sources():
        room = path.split("/")[0] if "/" in path else "(root)"
        n = code_lines(source)
        rooms[room][0] += n
        rooms[room][1] += 1
        code, comments = code + n, comments + comment_lines(source)
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(path)
    twice = {name: paths for name, paths in sorted(classes.items()) if len(paths) > 1}
    library = [size for room, size in rooms.items() if room not in APART]
    return {
        "rooms": dict(sorted(rooms.items())),
        "library": [sum(s[0] for s in library), sum(s[1] for s in library)],
        "all": [code, sum(s[1] for s in rooms.values())],
        "class names used twice": twice,
        "comments per 100 lines of code": round(100.0 * comments / code, 2),
    }


def count_rules(*rules: str) -> dict[str, int]:
    """Count what ruff finds of some rules in the package."""
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", "--select", ",".join(rules),
         "--config", "lint.mccabe.max-complexity=15",
         "--config", "lint.pydocstyle.convention='numpy'",
         "--output-format", "json", str(PACKAGE)],
        capture_output=True, text=True,
    )  # fmt: skip
    found = collections.Counter(item["code"] for item in json.loads(done.stdout))
    return {rule: found[rule] for rule in rules}


def measure_types() -> float:
    """Return the share of public names whose types pyright calls complete."""
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--verifytypes",
         "blockl0", "--ignoreexternal", "--outputjson"],
        capture_output=True, text=True, cwd=tempfile.gettempdir(),
        # an editable installation alone is not found
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
    )  # fmt: skip
    return float(json.loads(done.stdout)["typeCompleteness"]["completenessScore"])


# -- walks -----------------------------------------------------------------------------------------


def walk(call: Callable[[], Any]) -> dict[str, int]:
    """Count files and functions of the package that a call enters, and the deepest nesting."""
    call()
    seen, depth, deepest = set(), 0, 0
    folder = str(PACKAGE)

    def watch(frame: Any, event: str, _: Any) -> None:
        nonlocal depth, deepest
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(folder):
            return
        depth += 1 if event == "call" else -1
        deepest = max(deepest, depth)
        seen.add((code.co_filename, code.co_qualname))

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return {"files": len({f for f, _ in seen}), "functions": len(seen), "frames": deepest}


def walks() -> dict[str, dict[str, int]]:
    """Walk through `solve`, an estimator, `certify`, a proof, and the command line."""
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 60))
    y = X[:, [3, 14, 15]] @ [1.0, -2.0, 0.5] + rng.standard_normal(200)
    best = blockl0.solve(X, y, n_nonzero_coefs=3, random_state=0)
    calls: dict[str, Callable[[], Any]] = {
        "solve": lambda: blockl0.solve(X, y, n_nonzero_coefs=3, random_state=0),
        "L0Regressor.fit": lambda: blockl0.L0Regressor(3, random_state=0).fit(X, y),
        "certify": lambda: blockl0.certify(X, y, best.coef, n_nonzero_coefs=3, level=2),
        "exact": lambda: blockl0.solve(X, y, n_nonzero_coefs=3, method="exact", random_state=0),
    }
    found = {name: walk(call) for name, call in calls.items()}
    with contextlib.suppress(ImportError):  # the command line is an extra
        found["blockl0 fit"] = walk_command(X[:, :12], y)
    return found


def walk_command(X: Any, y: Any) -> dict[str, int]:
    """Walk through `blockl0 fit` of a CSV file, without its imports."""
    import numpy as np

    from blockl0.__main__ import main  # type: ignore[attr-defined]

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.csv"
        names = [f"x{j}" for j in range(X.shape[1])]
        np.savetxt(path, np.c_[X, y], "%.6g", ",", header=",".join([*names, "y"]), comments="")

        def fit() -> None:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
                main(["fit", str(path), "--target", "y", "-k", "3"])

        return walk(fit)


# -- the table -------------------------------------------------------------------------------------


def read_page() -> dict[str, dict[str, int]]:
    """Read the walks that docs/house.md states."""
    rows = PAGE.read_text(encoding="utf-8").split(HEAD)[1].split("\n\n")[0].splitlines()
    cells = [[cell.strip(" `") for cell in row.strip("|").split("|")] for row in rows]
    return {
        name: dict(zip(("files", "functions", "frames"), map(int, sizes), strict=True))
        for name, *sizes in cells
    }


def write_page(found: dict[str, dict[str, int]]) -> None:
    """Write the walks into docs/house.md."""
    before, after = PAGE.read_text(encoding="utf-8").split(HEAD)
    rows = [f"| `{name}` | {' | '.join(map(str, size.values()))} |" for name, size in found.items()]
    rest = after.split("\n\n", 1)[1]
    PAGE.write_text(before + HEAD + "\n".join(rows) + "\n\n" + rest, encoding="utf-8")


def main() -> None:
    """Print what was measured, as text or with ``--json``."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--lines", action="store_true", help="lines, names and rules only")
    parser.add_argument("--walks", action="store_true", help="walks only")
    parser.add_argument("--types", type=float, metavar="SHARE", help="least share of known types")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help="walks, into docs/house.md")
    options = parser.parse_args()
    if options.write:
        write_page(walks())
        return
    if options.types is not None:
        share = measure_types()
        print(f"types known: {share:.1%}, at least {options.types:.0%}")
        sys.exit(int(share < options.types))
    found: dict[str, Any] = {}
    if not options.walks:
        found |= measure_lines() | {"rules": count_rules("D401", "C901")}
    if not options.lines:
        found["walks"] = walks()
    if options.json:
        print(json.dumps(found, indent=1))
        return
    for name, size in found.get("rooms", {}).items():
        print(f"  {name:<12} {size[0]:>7,} lines {size[1]:>4} files")
    for name in ("library", "all"):
        if name in found:
            print(f"{name:<14} {found[name][0]:>7,} lines {found[name][1]:>4} files")
    for name, value in found.items():
        if name not in ("rooms", "library", "all", "walks"):
            print(f"{name}: {len(value) if name.startswith('class') else value}")
    for name, size in found.get("walks", {}).items():
        counts = (f"{size[what]:>5} {what}" for what in ("files", "functions", "frames"))
        print(f"  {name:<16}", *counts)


if __name__ == "__main__":
    main()
