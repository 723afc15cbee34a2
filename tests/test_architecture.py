"""One way down: a module imports only from what lies below it, and the pure core touches nothing outside itself.

The checker is a function from a folder to a list of complaints; the last tests feed it broken trees.
"""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

LABKIT = Path(__file__).parent.parent / "labkit"

LAYERS = (
    {"cli"},
    {"grading"},
    {"lab"},
    {"exercises"},
    {"crashtest"},
    {"chains"},
    {"panel"},
    {"background"},
    {"outcome"},
    {"servers"},
    {"study"},
    {"view"},
    {"spark"},
    {"choices"},
    {"scenario", "expected"},
    {"counting", "masters"},
    {"jobs"},
    {"services"},
    {"sinks"},
    {"stores"},
    {"files"},
    {"sim"},
    {"judge"},
    {"verdict"},
    {"failpoints"},
    {"records"},
    {"errors"},
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
CORE = {"sim", "judge", "verdict", "failpoints", "records", "errors"}
PURE = {
    *(
        "__future__",
        "abc",
        "array",
        "bisect",
        "collections",
        "contextlib",
        "copy",
        "dataclasses",
        "difflib",
        "enum",
    ),
    *(
        "fractions",
        "functools",
        "graphlib",
        "hashlib",
        "heapq",
        "itertools",
        "json",
        "math",
        "operator",
        "re",
        "string",
    ),
    *("struct", "textwrap", "types", "typing", "zlib"),
}
"""Of the standard library, what the core may use: no clock, no chance, no files, no processes, no network."""
ONLY_IN = {
    "pyspark": ("spark", "crashtest"),
    "py4j": ("spark",),
    "psycopg": ("stores",),
    "kafka": ("stores",),
    "matplotlib": ("view",),
    "anywidget": ("view",),
    "papermill": ("grading",),
}


def imported(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything that a module imports, wherever the import stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            name = "." * node.level + (node.module or "")
            yield from (
                (node.lineno, f"{name}.{alias.name}" if name == "labkit" else name)
                for alias in node.names
            )


def forbidden(layer: str, name: str) -> str | None:
    """Why a module of this layer must not import this name, or None."""
    top, _, rest = name.partition(".")
    if top == "":
        return "relative import"
    if top == "labkit":
        target = rest.partition(".")[0]
        if target == "__version__":
            return None
        if target not in LEVEL:
            return f"{target or 'labkit itself'} has no layer"
        return "upwards" if target != layer and LEVEL[target] <= LEVEL[layer] else None
    if top in ONLY_IN and layer not in ONLY_IN[top]:
        return f"only {ONLY_IN[top][0]} may"
    if layer in CORE and top not in PURE:
        return "the core is pure"
    return None


def complaints(package: Path) -> list[str]:
    """Everything in the package that breaks the order."""
    found = []
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package)
        layer = inside.parts[0].removesuffix(".py")
        tree = ast.parse(path.read_text())
        if not ast.get_docstring(tree):
            found.append(f"{inside}: no docstring")
        if layer in {"__init__", "__main__"}:
            layer = "cli" if layer == "__main__" else "errors"
        if layer not in LEVEL:
            found.append(f"{inside}: {layer} has no layer")
            continue
        for line, name in imported(tree):
            if reason := forbidden(layer, name):
                found.append(f"{inside}:{line}: {layer} imports {name}: {reason}")
    return found


def test_every_import_goes_down() -> None:
    assert complaints(LABKIT) == []


def test_importing_the_package_loads_nothing_heavy() -> None:
    modules = [
        "labkit",
        *(f"labkit.{name}" for name in ("errors", "records", "failpoints")),
    ]
    code = f"import json, sys, {', '.join(modules)}; print(json.dumps(sorted(sys.modules)))"
    loaded = json.loads(
        subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        ).stdout
    )
    heavy = {
        *ONLY_IN,
        "pandas",
        "pyarrow",
        "numpy",
        "IPython",
        "ipywidgets",
        "jupyterlab",
        "typer",
        "rich",
        "psutil",
    }
    assert heavy.isdisjoint(name.partition(".")[0] for name in loaded)


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        (
            "sim/x.py",
            "from labkit.sinks import y",
            "sim/x.py:2: sim imports labkit.sinks: upwards",
        ),
        (
            "judge.py",
            "from labkit import view",
            "judge.py:2: judge imports labkit.view: upwards",
        ),
        (
            "scenario.py",
            "def f():\n    import labkit.runs.expected",
            "scenario.py:3: scenario imports labkit.runs.expected: upwards",
        ),
        ("sim/x.py", "import time", "sim/x.py:2: sim imports time: the core is pure"),
        (
            "records.py",
            "import msgspec",
            "records.py:2: records imports msgspec: the core is pure",
        ),
        (
            "sinks/x.py",
            "from pyspark.sql import Row",
            "sinks/x.py:2: sinks imports pyspark.sql: only spark may",
        ),
        (
            "services/kafka.py",
            "import kafka.admin",
            "services/kafka.py:2: services imports kafka.admin: only stores may",
        ),
        (
            "view/x.py",
            "from . import svg",
            "view/x.py:2: view imports .: relative import",
        ),
        ("utils.py", "", "utils.py: utils has no layer"),
        (
            "spark/x.py",
            "from labkit.utils import y",
            "spark/x.py:2: spark imports labkit.utils: utils has no layer",
        ),
        (
            "__init__.py",
            "import labkit.view",
            "__init__.py:2: errors imports labkit.view: upwards",
        ),
    ],
)
def test_a_violation_is_found(
    tmp_path: Path, file: str, text: str, complaint: str
) -> None:
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'"""What it is for."""\n{text}\n')
    assert complaints(tmp_path) == [complaint]


def test_a_missing_docstring_is_found(tmp_path: Path) -> None:
    (tmp_path / "errors.py").write_text("import enum\n")
    assert complaints(tmp_path) == ["errors.py: no docstring"]


def test_what_goes_down_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "lab.py").write_text(
        '"""The lab."""\nimport os\nfrom labkit.core.errors import LabError\nfrom labkit.lab import x\n'
    )
    assert complaints(tmp_path) == []
