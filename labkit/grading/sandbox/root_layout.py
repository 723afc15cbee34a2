"""Decides which files a sandbox can see: Python and its packages, the system's programs, and a copy of the lab.

The copy contains no grader and no tests. A stub replaces each module that would give away the answer to an exercise.
"""

import compileall
import shutil
import site
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from labkit.core.errors import GradingError
from labkit.grading.sandbox.inside.confine import layers

PACKAGE = Path(__file__).parents[2]
_SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"),
    *("/etc/ld.so.cache", "/etc/localtime", "/etc/fonts", "/etc/alternatives"),
)
_KEPT = {
    "grading": {"__init__.py", "sandbox"},
    "grading/sandbox": {"__init__.py", "inside"},
    "teach/exercises": {"__init__.py", "contract.py", "steps.py"},
    "teach/questions": {"__init__.py"},
}
"""For each of these packages, the only files that the lab's copy keeps, so that it has no grader, judge or answer."""
_LEFT_OUT = {"teach/course", "cli/course.py"}
"""Modules that write the course to a folder. No answer needs them, and submitted code must not find that course."""
_WITHHELD = '''"""Withheld while exercises are graded, because the real content of this module would answer one."""

from typing import Any


class _Withheld(type):
    def __getattr__(cls, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return __getattr__(name)

    def __call__(cls, *arguments: object, **named: object) -> object:
        raise ImportError(f"{__name__} is withheld while exercises are graded: write the answer without it.")

    __contains__ = __iter__ = __getitem__ = __call__


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(name)
    return _Withheld(name, (), {})
'''


def copy_lab(folder: Path, withheld: Iterable[str]) -> None:
    """Copy labkit into `folder`, without the grader and with a stub in place of each module in `withheld`.

    Raises `GradingError` if such a module does not exist.
    """
    copy = folder / "labkit"

    def left_out(parent: str, names: list[str]) -> set[str]:
        room = Path(parent).relative_to(PACKAGE)
        kept = _KEPT.get(room.as_posix(), set(names))
        return {
            name for name in names if name == "__pycache__" or name not in kept or (room / name).as_posix() in _LEFT_OUT
        }

    shutil.copytree(PACKAGE, copy, ignore=left_out)
    for module in withheld:
        _empty(folder, module)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    compileall.compile_dir(copy, quiet=2)


def _empty(folder: Path, module: str) -> None:
    place = folder.joinpath(*module.split("."))
    if place.is_dir():
        shutil.rmtree(place)
        place.mkdir()
        place /= "__init__"
    elif not place.with_suffix(".py").exists():
        raise GradingError(
            f"{module}: an exercise lists this module in `withheld`, but it does not exist; correct the exercise."
        )
    place.with_suffix(".py").write_text(_WITHHELD, encoding="utf-8")


def shown(lab: Path) -> tuple[str, ...]:
    """Return the paths that every sandbox may read: the system, Python, and the copy of labkit in `lab`.

    A path of the system is left out if another listed path contains it. Paths of Python and labkit are always listed,
    because they must stay readable even if the path that contains them is hidden.
    """
    packages = [*site.getsitepackages(), *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]
    needed = _there([sys.base_prefix, sys.prefix, *packages, str(lab), *_links_to_python()])
    existing = _there(_SYSTEM) | needed
    return tuple(
        str(path) for path in sorted(existing) if path in needed or not any(above in existing for above in path.parents)
    )


def _links_to_python() -> list[str]:
    links, path = [], Path(sys.executable)
    while path.is_symlink():
        links.append(str(path))
        path = path.parent / path.readlink()
    return links


def _there(names: Iterable[str]) -> set[Path]:
    existing = {Path(name) for name in names if Path(name).exists()}
    return existing | {path.resolve() for path in existing}


def masked(visible: Sequence[str], private: Iterable[Path]) -> tuple[str, ...]:
    """Return the folders inside `visible` that a sandbox must not see: those in `private`, and other copies of labkit.

    If labkit runs from a checkout, the whole checkout is hidden, because its history, built files and notes contain
    solutions.
    """
    installed = [Path(name) / "labkit" for name in site.getsitepackages()]
    project = PACKAGE.parent
    is_checkout = (project / "pyproject.toml").is_file()
    own = [PACKAGE, *([project] if is_checkout else [])]
    hidden = {str(path.resolve()) for path in (*installed, *own, *private) if path.is_dir()}
    mounted = layers(visible, sorted(hidden))
    empty = [folder for folder, is_shown in mounted.items() if not is_shown]
    return tuple(sorted({*empty, *hidden.intersection(visible)}))
