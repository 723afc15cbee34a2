"""Makes the copy of the lab for learners, or the one for instructors, which contains the solutions.

Learners can install their copy. It has the package without the grader, the notebooks as built for learners, and the
sample data. It contains no solution, no hidden variant and no test: it is searched for parts of them at the end.
"""

import importlib
import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from labkit.core.errors import GradingError, InvalidInput, ServiceUnavailable
from labkit.grading.sandbox.root_layout import PACKAGE
from labkit.teach.course import filled, signed
from labkit.teach.exercises.cells import MARK
from labkit.teach.shipped import of_course

ROOT = PACKAGE.parent
_PARTS = (
    *("README.md", "LICENSE", "CHANGELOG.md", "Makefile", "pyproject.toml", "environment.yml", ".gitignore"),
    *("requirements.lock", "requirements-java.lock", "tools/install.py", "data", "docker", "labkit"),
)
_NEVER = {"__pycache__", "grading", ".ipynb_checkpoints"}
_SHORT = 25
"""Only lines of a solution with at least so many characters are searched for; shorter lines match by chance."""


def release(folder: Path, *, instructor: bool = False) -> list[Path]:
    """Make a copy of the lab for learners, or for instructors, in the new folder `folder`.

    Returns the paths of the notebooks in the copy. Raises `InvalidInput` if the folder is not empty,
    `ServiceUnavailable` outside of a checkout, and `GradingError` if the learners' copy contains part of a solution or
    of the grader.
    """
    _refuse(folder)
    solutions = _solutions()
    folder.mkdir(parents=True, exist_ok=True)
    for part in (*_PARTS, *(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs").glob("*.svg")))):
        _copy(ROOT / part, folder / part)
    # In place of the project's own README, which mentions tests and grading that learners do not have.
    words = {"install": "make install java", "labkit": ".venv/bin/labkit"}
    (folder / "README.md").write_text(filled("README.md", words), encoding="utf-8")
    copies = []
    for source in of_course(ROOT / "notebooks"):
        copies.append(folder / "notebooks" / source.name)
        copies[-1].parent.mkdir(exist_ok=True)
        copies[-1].write_text(solved(source, solutions) if instructor else signed(source), encoding="utf-8")
    if not instructor:
        _search(folder, solutions)
    return copies


def _refuse(folder: Path) -> None:
    if not (ROOT / "notebooks" / "src").is_dir():
        raise ServiceUnavailable(
            "`labkit release`: the sources of the notebooks are missing; run it in a checkout of the repository."
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInput(f"{folder}: the folder is not empty; name a new one.")
    if folder.absolute().is_relative_to(PACKAGE):
        raise InvalidInput(f"{folder}: the folder is inside labkit's own package; name a folder elsewhere.")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns(*_NEVER))
    elif source.exists():
        shutil.copyfile(source, target)


def solved(notebook: Path, solutions: Mapping[str, str] | None = None) -> str:
    """Return the JSON of a notebook as learners get it, but with solutions filled in: by default, those of the lab."""
    plain: dict[str, Any] = json.loads(signed(notebook))
    solutions = _solutions() if solutions is None else solutions
    for cell in plain["cells"]:
        mark = MARK.match("".join(cell["source"]))
        if cell["cell_type"] == "code" and "exercise" in cell["metadata"].get("tags", []) and mark:
            cell["source"] = solutions.get(mark.group(1), "".join(cell["source"])).splitlines(keepends=True)
    return json.dumps(plain, indent=1, ensure_ascii=False) + "\n"


def _solutions() -> dict[str, str]:
    tool = _build_tool()
    return {name: solution for source in tool.sources(ROOT) for name, (_, solution) in tool.exercises(source).items()}


def _build_tool() -> ModuleType:
    folder = str(ROOT / "tools")
    sys.path.insert(0, folder)
    try:
        return importlib.import_module("build_notebooks")
    except ImportError as error:
        raise ServiceUnavailable(
            f"`labkit release` needs a checkout with the development packages ({error}); run `make install` there."
        ) from None
    finally:
        sys.path.remove(folder)


def _search(folder: Path, solutions: dict[str, str]) -> None:
    """Raise `GradingError` if the learners' copy of the lab contains solutions or a folder of the grader."""
    lines = {line: name for name, source in solutions.items() for line in _telling(source)}
    for path in sorted(folder.rglob("*")):
        if path.suffix in {".py", ".ipynb", ".json", ".toml", ".md"}:
            for line, name in lines.items():
                if line in _text(path):
                    raise GradingError(
                        f"{path}: this file is for learners, but it contains a line of the solution of {name}: {line!r}"
                        "; remove this line from the source of the file."
                    )
    for name in ("labkit/grading", "tests", "notebooks/src", "checked"):
        if (folder / name).exists():
            raise GradingError(
                f"{folder / name}: learners must not get this folder, because it may reveal solutions; delete it "
                "from their copy."
            )


def _telling(source: str) -> Iterator[str]:
    """Yield the long lines of a solution's code. In a learner's file, such a line would prove a leak."""
    for line in source.splitlines():
        plain = line.strip()
        if len(plain) >= _SHORT and not plain.startswith(("def ", "class ", "#", '"', "'", "import ", "from ")):
            yield plain


def _text(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    # Without the notebook's raw JSON, because it contains escaped quotes.
    return "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
