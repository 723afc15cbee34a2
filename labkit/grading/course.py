"""A course to grade: its exercises, its notebooks as students received them, and the hidden variants of its questions.

The course is the lab's own, or that of an instructor's Python file, which may be private.
"""

import hashlib
import importlib.util
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType

from labkit import __version__
from labkit.core.errors import InvalidInput
from labkit.grading.sandbox.root_layout import PACKAGE
from labkit.teach.exercises.contract import Exercise, Variant

Variants = Callable[[str, int], Sequence[Variant]]
"""Returns the hidden variants of an exercise (by name) for a seed. The same arguments always give the same variants."""


@dataclass(frozen=True)
class Course:
    """A course with its exercises, its released notebooks, and a function that draws the hidden variants."""

    name: str
    exercises: Mapping[str, Exercise]
    notebooks: Path
    """The folder with the notebooks as learners received them."""
    variants: Variants
    digest: str
    """A digest of every file on which a grade depends: after a change, old grades are no longer valid."""
    is_part: bool = False
    """Whether these are only the exercises of one assignment."""

    def only(self, exercises: Collection[str]) -> "Course":
        """Return a copy of this course with only these exercises, or the course itself if `exercises` is empty."""
        if not exercises:
            return self
        return replace(self, exercises={name: self.exercises[name] for name in exercises}, is_part=True)

    def of_notebook(self, notebook: str) -> list[Exercise]:
        """Return the exercises of the notebook with this name, in the order of the course."""
        return [exercise for exercise in self.exercises.values() if exercise.notebook == notebook]

    def withheld(self) -> list[str]:
        """Return the names of all modules that sandboxes must not contain, because they would reveal an answer."""
        return sorted({module for exercise in self.exercises.values() for module in exercise.withheld})

    def released(self, notebook: str) -> Path:
        """Return the path of a notebook as released to learners. Raises `InvalidInput` if the file is missing."""
        path = self.notebooks / f"{notebook}.ipynb"
        if not path.is_file():
            raise InvalidInput(f"{path}: the released copy of {notebook} is missing; run `make notebooks`.")
        return path


def load(file: Path | None) -> Course:
    """Return the course that a Python file defines, or labkit's own course if `file` is None.

    Raises `InvalidInput` for an unusable file.
    """
    return _own() if file is None else _of_file(file)


@cache
def _own() -> Course:
    from labkit.grading.hidden import variants
    from labkit.teach import shipped
    from labkit.teach.exercises.registry import GRADED

    notebooks = shipped.notebooks()
    return Course("labkit", GRADED, notebooks, variants, _digest(notebooks))


@cache
def _of_file(file: Path) -> Course:
    module = _loaded(file)
    missing = [name for name in ("EXERCISES", "NOTEBOOKS", "variants") if not hasattr(module, name)]
    if missing:
        raise InvalidInput(f"{file}: the file does not define {', '.join(missing)}; see docs/reference/exercises.md.")
    exercises = {exercise.name: exercise for exercise in module.EXERCISES}
    notebooks = file.parent / module.NOTEBOOKS
    name = getattr(module, "COURSE", file.stem)
    return Course(name, exercises, notebooks, module.variants, _digest(notebooks, file))


def _loaded(file: Path) -> ModuleType:
    if not file.is_file():
        raise InvalidInput(f"{file}: there is no such file; name a Python file that defines exercises.")
    spec = importlib.util.spec_from_file_location(f"labkit_course_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise InvalidInput(f"{file}: this is not a Python file; name one that defines exercises.")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # an instructor's file may raise anything
        raise InvalidInput(f"{file}: importing it raised {type(error).__name__}: {error}; fix the file.") from error
    return module


def _digest(notebooks: Path, *files: Path) -> str:
    digest = hashlib.sha256(__version__.encode())
    for file in sorted((*files, *PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.toml"), *notebooks.glob("*.ipynb"))):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]
