"""Figures about the structure of a checkout: rooms, imports, what `labkit run` loads, types, density.

    python tools/house.py [CHECKOUT] [--run]

Every figure is computed from the checkout's files, so two states of the project can be compared. With `--run` one
crash is run on real Spark and the openings of its store in the runner's process are counted; the checkout needs its
own `.venv` for that and for the modules that a run loads. This script must not change what it looks at.
"""

import argparse
import ast
import json
import re
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator
from itertools import product
from pathlib import Path

LOADED = """
import json, sys, time
begun = time.perf_counter()
import labkit.cli
sys.argv = ["labkit", "run", "--sink", "nothing"]
try:
    labkit.cli.main()
except SystemExit:
    pass
seconds = time.perf_counter() - begun
own = sorted(name for name in sys.modules if name.partition(".")[0] == "labkit")
print(json.dumps({"all": len(sys.modules), "own": own, "seconds": seconds}))
"""
"""A run that is refused for its sink's name: everything that checks a scenario is loaded, and Spark is not started."""

OPENED = """
import json, sys
import labkit.stores as stores
opened, real = [], stores.open_store
def counted(*arguments, **named):
    opened.append(1)
    return real(*arguments, **named)
stores.open_store = counted
import labkit.cli
sys.argv = ["labkit", "run", "--sink", "two_phase", "--crash", "sink.after_pre_commit", "--json", "--out", sys.argv[1]]
try:
    labkit.cli.main()
except SystemExit:
    pass
own = [name for name in sys.modules if name.partition(".")[0] == "labkit"]
print(json.dumps({"opened": len(opened), "own": len(own)}), file=sys.stderr)
"""


def trees(folder: Path) -> Iterator[tuple[Path, str, ast.Module]]:
    """Every Python file below a folder with its text and its syntax tree."""
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        yield path, text, ast.parse(text)


def rooms(package: Path) -> set[str]:
    """The folders and modules directly inside the package, without its own `__init__` and `__main__`."""
    results = {path.name for path in package.iterdir() if (path / "__init__.py").exists()}
    return results | {path.stem for path in package.glob("*.py") if not path.stem.startswith("__")}


def used_pairs(package: Path) -> set[tuple[str, str]]:
    """Pairs of different rooms of which the first imports the second."""
    known, result = rooms(package), set()
    for path, _, tree in trees(package):
        room = path.relative_to(package).parts[0].removesuffix(".py")
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            targets = {name.split(".")[1] for name in names if name.startswith("labkit.")}
            result |= {(room, target) for target in targets & known if target != room}
    return {(one, other) for one, other in result if one in known}


def allowed_pairs(root: Path) -> int | None:
    """How many pairs of rooms the rules allow: import-linter's layers, or the older list in the architecture test."""
    tables = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = tables.get("tool", {}).get("importlinter", {}).get("contracts", [])
    if contracts:
        [layers] = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
        floors = [[room.strip() for room in re.split(r"[|:]", line)] for line in layers]
        taboo = {
            (source.removeprefix("labkit."), target.removeprefix("labkit."))
            for contract in contracts
            if contract["type"] == "forbidden"
            for source, target in product(contract["source_modules"], contract["forbidden_modules"])
        }
    else:
        text = (root / "tests" / "test_architecture.py").read_text(encoding="utf-8")
        match = re.search(r"^LAYERS = (\(.*?^\))", text, re.DOTALL | re.MULTILINE)
        if match is None:
            return None
        floors = [sorted(names) for names in ast.literal_eval(match[1])]
        taboo = set()
    pairs = {
        (upper, lower)
        for number, floor in enumerate(floors)
        for below in floors[number + 1 :]
        for upper, lower in product(floor, below)
    }
    return len(pairs - taboo)


def parameters(package: Path) -> list[tuple[int, str]]:
    """Functions with more than five parameters, `self` and `cls` not counted, most first."""
    results = []
    for path, _, tree in trees(package):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                count = sum(argument.arg not in {"self", "cls"} for argument in every)
                if count > 5:
                    results.append((count, f"{path.relative_to(package)}:{node.name}"))
    return sorted(results, reverse=True)


def code_lines(text: str, tree: ast.Module) -> int:
    """Lines that hold code: neither blank, nor a comment alone, nor part of a docstring."""
    prose: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            prose |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(
        bool(line.strip()) and not line.lstrip().startswith("#") and number not in prose for number, line in lines
    )


def density(package: Path) -> tuple[float, float]:
    """Syntax nodes a line of code, without the three that only say how a name is used; comments, percent of lines."""
    nodes = code = comments = lines = 0
    for _, text, tree in trees(package):
        nodes += sum(not isinstance(node, ast.expr_context) for node in ast.walk(tree))
        code += code_lines(text, tree)
        comments += sum(line.lstrip().startswith("#") for line in text.splitlines())
        lines += len(text.splitlines())
    return nodes / code, 100 * comments / lines


def strict_lines(root: Path) -> tuple[int, int]:
    """Lines of the package under all of mypy's strict mode, and all its lines."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]
    relaxed = [
        re.compile(re.escape(name).replace(r"\.\*", r"(\..*)?") + "$")
        for override in settings.get("overrides", [])
        if any(key.startswith(("disallow", "warn")) for key in override)
        for name in override["module"]
    ]
    strict = every = 0
    for path, text, _ in trees(root / "labkit"):
        name = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        count = len(text.splitlines())
        every += count
        strict += count * (not any(pattern.match(name) for pattern in relaxed))
    return strict, every


def words(package: Path, word: str) -> int:
    """How often a name stands in the package's code."""
    return sum(
        isinstance(node, ast.Name) and node.id == word for _, _, tree in trees(package) for node in ast.walk(tree)
    )


def lines_of(folder: Path) -> int:
    """Lines of all Python files below a folder."""
    return sum(len(text.splitlines()) for _, text, _ in trees(folder)) if folder.exists() else 0


def loaded(root: Path) -> dict[str, object]:
    """What a `labkit run` loads until its options are checked, and the median of five starts in seconds."""
    starts = []
    for _ in range(5):
        ended = subprocess.run(
            [root / ".venv/bin/python", "-c", LOADED], cwd=root, check=True, capture_output=True, text=True
        )
        starts.append(json.loads(ended.stdout.splitlines()[-1]))
    middle = sorted(each["seconds"] for each in starts)[2]
    return {"modules": starts[0]["all"], "own modules": len(starts[0]["own"]), "seconds": round(middle, 3)}


def opened(root: Path) -> dict[str, int]:
    """How often the runner opens the store in one crash on real Spark, and how many own modules it has loaded then."""
    with tempfile.TemporaryDirectory() as folder:
        ended = subprocess.run(
            [root / ".venv/bin/python", "-c", OPENED, f"{folder}/run"],
            cwd=root,
            check=True,
            capture_output=True,
            text=True,
        )
    result: dict[str, int] = json.loads(ended.stderr.splitlines()[-1])
    return result


def figures(root: Path) -> dict[str, object]:
    """Every figure that needs no process of the checkout's own."""
    package = root / "labkit"
    nodes, comments = density(package)
    strict, every = strict_lines(root)
    many = parameters(package)
    return {
        "rooms": len(rooms(package)),
        "import pairs allowed": allowed_pairs(root),
        "import pairs used": len(used_pairs(package)),
        "functions with more than 5 parameters": len(many),
        "most parameters": [f"{name} ({count})" for count, name in many[:3]],
        "Any": words(package, "Any"),
        "lines under mypy strict": f"{strict} of {every}",
        "syntax nodes a line of code": round(nodes, 2),
        "comments, % of lines": round(comments, 2),
        "lines of the package": lines_of(package),
        "lines of benchmarks and tools": lines_of(root / "bench") + lines_of(root / "tools"),
        "lines of the tests": lines_of(root / "tests"),
    }


def main() -> None:
    """Prints the figures, one a line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path, nargs="?", default=Path(__file__).parent.parent)
    parser.add_argument("--run", action="store_true", help="Also start `labkit run` of that checkout, and one crash.")
    asked = parser.parse_args()
    result = figures(asked.checkout)
    if asked.run:
        result |= {f"labkit run: {name}": value for name, value in loaded(asked.checkout).items()}
        counted = opened(asked.checkout)
        result |= {"openings of the store in one crash": counted["opened"], "own modules after it": counted["own"]}
    for name, value in result.items():
        print(f"{name:<42} {value}")


if __name__ == "__main__":
    main()
