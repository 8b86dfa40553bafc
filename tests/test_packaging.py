"""The wheel installs into an empty environment and works there; what is said twice agrees."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_string
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import blockl0

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
NO_NETWORK = re.compile(
    "NewConnectionError|ConnectTimeout|ReadTimeout|Temporary failure in name|getaddrinfo|"
    "Network is unreachable|Could not fetch URL|No module named pip",
)
MISSING_CLICK = "The command line needs click and pandas: pip install click pandas."
USE = """
import sys
import numpy as np
import blockl0

assert "site-packages" in blockl0.__file__, blockl0.__file__
assert not {"matplotlib", "click", "pandas"} & set(sys.modules)
X = np.random.default_rng(0).standard_normal((50, 20))
result = blockl0.solve(X, X[:, 3] - 2 * X[:, 7], n_nonzero_coefs=2, random_state=0)
print(blockl0.__version__, result.support.tolist())
"""
DRAW = """
import numpy as np
from blockl0.plot import CoefficientPathDisplay

CoefficientPathDisplay(np.array([1]), np.ones((1, 1)), np.array(["x0"])).plot()
"""


def pip(*arguments: str) -> None:
    """Run pip; without a network the test is skipped and says so."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments],
        capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    if done.returncode != 0 and NO_NETWORK.search(done.stdout + done.stderr):
        pytest.skip("pip reaches no packages: building and installing the wheel is NOT TESTED")
    assert done.returncode == 0, done.stderr


class Installed(NamedTuple):
    """The wheel, and the environment that holds nothing else but what it asks for."""

    wheel: Path
    scripts: Path

    def python(self, code: str) -> subprocess.CompletedProcess[str]:
        """Run a program there, far from the checkout."""
        return self.run("python", "-I", "-c", code)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the environment."""
        return subprocess.run(
            [str(self.scripts / command[0]), *command[1:]], cwd=self.scripts, capture_output=True,
            encoding="utf-8", check=False,
        )  # fmt: skip


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("packaging")
    pip("wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
    (wheel,) = folder.glob("blockl0-*.whl")
    there = folder / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(there)], check=True)
    scripts = there / ("Scripts" if sys.platform == "win32" else "bin")
    pip("--python", str(scripts / "python"), "install", "--no-compile", str(wheel))
    return Installed(wheel, scripts)


@pytest.mark.slow
def test_the_installed_wheel_solves(installed: Installed) -> None:
    done = installed.python(USE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split(maxsplit=1) == [blockl0.__version__, "[3, 7]\n"]


@pytest.mark.slow
def test_a_missing_extra_is_named(installed: Installed) -> None:
    command = installed.run("blockl0", "--help")
    assert command.returncode != 0
    assert command.stderr.strip() == MISSING_CLICK
    drawing = installed.python(DRAW)
    assert drawing.returncode != 0
    assert "pip install matplotlib" in drawing.stderr


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(installed: Installed) -> None:
    with zipfile.ZipFile(installed.wheel) as archive:
        names = archive.namelist()
        (metadata,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        text = archive.read(metadata).decode("utf-8")
    assert installed.wheel.name.endswith("-py3-none-any.whl")  # no compiler is needed
    assert "blockl0/py.typed" in names
    sources = {
        str(file.relative_to(ROOT / "src").as_posix())
        for file in (ROOT / "src" / "blockl0").rglob("*.py")
    }
    assert sources <= set(names)
    held = [name for name in names if not name.startswith("blockl0-")]
    assert all(name.startswith("blockl0/") for name in held)
    assert not [name for name in held if re.search(r"\.(nbi|nbc|pyc)$", name)]
    required = [
        line
        for line in message_from_string(text).get_all("Requires-Dist", [])
        if "extra" not in line
    ]
    assert {re.split(r"[^\w-]", line)[0] for line in required} == {
        "numpy", "scipy", "numba", "scikit-learn",
    }  # fmt: skip


def test_the_version_is_the_same_everywhere() -> None:
    assert PROJECT["project"]["dynamic"] == ["version"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (\S+)$", citation, re.MULTILINE)[1] == blockl0.__version__  # type: ignore[index]
    recipe = (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    assert re.search(r'^  version: "(\S+)"$', recipe, re.MULTILINE)[1] == blockl0.__version__  # type: ignore[index]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## \[(\d\S*)\]", changes, re.MULTILINE)[1] == blockl0.__version__  # type: ignore[index]


def test_the_extras_that_messages_name_exist() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    groups = PROJECT["dependency-groups"]
    assert {"cli", "plot"} <= set(extras)
    assert {"dev", "test", "lint", "bench", "docs", "peers"} <= set(groups)
    places = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "src").rglob("*.py")]
    for place in places:
        for named in re.findall(r"(?:blockl0|\.)\[([\w,]+)\]'", place.read_text(encoding="utf-8")):
            assert set(named.split(",")) <= set(extras), f"{place}: {named}"


def test_the_conda_recipe_asks_for_what_the_package_asks_for() -> None:
    recipe = (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    project = PROJECT["project"]
    for line in [*project["dependencies"], *project["optional-dependencies"]["cli"]]:
        name, least = line.split(">=")
        assert f"    - {name} >={least}\n" in recipe


def test_actions_of_the_workflows_are_pinned_by_hash() -> None:
    for workflow in (ROOT / ".github" / "workflows").glob("*.yml"):
        used = re.findall(r"uses: (\S+)", workflow.read_text(encoding="utf-8"))
        assert used
        assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action) for action in used), workflow


def test_the_workflow_tests_every_python_that_the_package_claims() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    listed = re.search(r"python: \[(.*)\]", workflow)
    claimed = [
        line.rsplit(" ", 1)[1]
        for line in PROJECT["project"]["classifiers"]
        if re.search(r":: 3\.\d+$", line)
    ]
    assert listed is not None
    assert re.findall(r'"(3\.\d+)"', listed[1]) == claimed
    assert PROJECT["project"]["requires-python"] == f">={claimed[0]}"
