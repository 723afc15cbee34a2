"""The rooms hold: import-linter's contracts (pyproject.toml), a core that is pure, and few who know a heavy package.

What import-linter cannot say is checked here by a function from a folder to a list of complaints; the last tests feed
both checkers broken trees.
"""

import ast
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LABKIT = ROOT / "labkit"

BESIDE = {"bench", *(path.stem for path in (ROOT / "tools").glob("*.py"))}
"""What stands beside the package, for a checkout: the package must run without it."""

CORE = ("core", "sim")
PURE = {
    *("__future__", "abc", "array", "bisect", "collections", "contextlib", "copy"),
    *("dataclasses", "difflib", "enum", "fractions", "functools", "graphlib", "hashlib"),
    *("heapq", "importlib", "inspect", "itertools", "json", "math", "operator", "re", "shlex", "string", "struct"),
    *("textwrap", "tomllib", "types", "typing", "zlib"),
}
"""The parts of the standard library that the core may use: no clock, no chance, no files, no processes, no network.

`importlib` is for registries that import a model when it is looked up, for naming a missing extra, and for the tables
(`tomllib`) that stand beside a module.
"""
ONLY_IN = {
    "pyspark": ("spark", "runs", "crashtest"),
    "py4j": ("spark", "runs"),
    "psycopg": ("stores", "host", "teach"),  # teach: SQL that learners write runs as they wrote it
    "kafka": ("stores",),
    "matplotlib": ("view", "runs"),
    "anywidget": ("view",),
    "papermill": ("grading",),
    "numpy": ("search",),
}


def imported(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything that a module imports, wherever the import stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, "." * node.level + (node.module or "")


def forbidden(room: str, name: str) -> str | None:
    """Why a module of this room must not import this name, or None."""
    top = name.partition(".")[0]
    if top == "":
        return "relative import"
    if top == "labkit":
        return None  # import-linter's part
    if top in BESIDE:
        return "it is not in the wheel"
    if top in ONLY_IN and room not in ONLY_IN[top]:
        return f"only {', '.join(ONLY_IN[top])} may"
    if room in CORE and top not in PURE:
        return "the core is pure"
    return None


def complaints(package: Path) -> list[str]:
    """Everything in the package that breaks these rules."""
    found = []
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package)
        room = inside.parts[0].removesuffix(".py")
        tree = ast.parse(path.read_text())
        if not ast.get_docstring(tree):
            found.append(f"{inside}: no docstring")
        for line, name in imported(tree):
            if reason := forbidden(room, name):
                found.append(f"{inside}:{line}: {room} imports {name}: {reason}")
    return found


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    """Holds a checkout against the contracts."""
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--config", ROOT / "pyproject.toml"],
        cwd=root,
        env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_nothing_but_the_face_is_at_the_top() -> None:
    assert {path.name for path in LABKIT.glob("*.py")} == {"__init__.py", "__main__.py", "lab.py"}


@pytest.mark.parametrize("page", ["docs/design/index.md"])
def test_the_tree_on_a_page_is_the_tree_of_the_package(page: str) -> None:
    tree = (ROOT / page).read_text().partition("```\nlabkit/\n")[2].partition("```")[0]
    told = {line.split()[0].rstrip("/") for line in tree.splitlines() if line.startswith("  ")}
    rooms = {path.parent.name for path in LABKIT.glob("*/__init__.py")} | {"lab.py"}
    assert told == rooms


def test_every_contract_is_kept() -> None:
    told = lint(ROOT)
    assert told.returncode == 0, told.stdout
    assert "0 broken" in told.stdout


def test_the_core_is_pure_and_heavy_packages_have_few_users() -> None:
    assert complaints(LABKIT) == []


def test_importing_the_package_loads_nothing_heavy() -> None:
    modules = ["labkit", *(f"labkit.core.{name}" for name in ("errors", "records", "failpoints"))]
    code = f"import json, sys, {', '.join(modules)}; print(json.dumps(sorted(sys.modules)))"
    loaded = json.loads(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
    heavy = {*ONLY_IN, "pandas", "pyarrow", "numpy", "IPython", "ipywidgets", "jupyterlab", "typer", "rich", "psutil"}
    assert heavy.isdisjoint(name.partition(".")[0] for name in loaded)


BROKEN = {
    "upwards": ("sim/x.py", "from labkit.sinks import append", "labkit.sim.x -> labkit.sinks.append"),
    "the judge looks at pictures": (
        "core/judge.py",
        "from labkit.view import svg",
        "labkit.core.judge -> labkit.view.svg",
    ),
    "siblings": ("view/x.py", "def f():\n    import labkit.spark.start", "labkit.view.x -> labkit.spark.start"),
    "the command line uses the notebook's face": (
        "cli/demo.py",
        "from labkit import lab",
        "labkit.cli.demo -> labkit.lab",
    ),
    "a picture starts a process": ("view/svg.py", "import subprocess", "labkit.view.svg -> subprocess"),
    "the core reads a clock": ("core/records.py", "import time", "labkit.core.records -> time"),
    "one strategy knows another": (
        "sinks/wal.py",
        "from labkit.sinks import append",
        "labkit.sinks.wal -> labkit.sinks.append",
    ),
    "a circle within a room": (
        "spark/jvm.py",
        "from labkit.spark.fast import zygote",
        "No cycles are allowed in labkit.spark.",
    ),
    "a room that nobody planned": ("utils/__init__.py", "", "- labkit.utils"),
}
"""For each contract: a file, a line that breaks it, and what import-linter says then."""


@pytest.fixture(scope="module")
def told_of_broken(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What import-linter says of a package in which every contract is broken at once."""
    root = tmp_path_factory.mktemp("broken")
    shutil.copytree(LABKIT, root / "labkit", ignore=shutil.ignore_patterns("__pycache__"))
    for file, text, _ in BROKEN.values():
        path = root / "labkit" / file
        path.parent.mkdir(exist_ok=True)
        with path.open("a") as module:
            module.write(f"\n{text}\n")
    told = lint(root)
    assert told.returncode == 1, told.stdout + told.stderr
    return told.stdout


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_contract_is_seen(told_of_broken: str, what: str) -> None:
    assert BROKEN[what][2] in told_of_broken


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("sim/x.py", "import time", "sim/x.py:2: sim imports time: the core is pure"),
        ("core/records.py", "import msgspec", "core/records.py:2: core imports msgspec: the core is pure"),
        (
            "sinks/x.py",
            "from pyspark.sql import Row",
            "sinks/x.py:2: sinks imports pyspark.sql: only spark, runs, crashtest may",
        ),
        ("host/kafka.py", "import kafka.admin", "host/kafka.py:2: host imports kafka.admin: only stores may"),
        (
            "cli/x.py",
            "def f():\n    from bench import registry",
            "cli/x.py:3: cli imports bench: it is not in the wheel",
        ),
        ("view/x.py", "import still", "view/x.py:2: view imports still: it is not in the wheel"),
        ("view/x.py", "from . import svg", "view/x.py:2: view imports .: relative import"),
    ],
)
def test_a_violation_is_found(tmp_path: Path, file: str, text: str, complaint: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'"""What it is for."""\n{text}\n')
    assert complaints(tmp_path) == [complaint]


def test_a_missing_docstring_is_found(tmp_path: Path) -> None:
    (tmp_path / "errors.py").write_text("import enum\n")
    assert complaints(tmp_path) == ["errors.py: no docstring"]


def test_what_goes_down_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "lab.py").write_text('"""The lab."""\nimport os\nfrom labkit.core.errors import LabError\n')
    assert complaints(tmp_path) == []
