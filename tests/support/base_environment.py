"""An environment in which nothing but the base of labkit can be imported, made of links and without a network."""

import importlib.metadata
import os
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


def distributions(names: list[str]) -> set[str]:
    """Return these distributions and everything that they need in this environment."""
    found: set[str] = set()
    waiting = [Requirement(name) for name in names]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name in found:
            continue
        found.add(name)
        for needed in map(Requirement, importlib.metadata.requires(name) or []):
            marker, chosen = needed.marker, ("", *requirement.extras)
            if marker is None or any(marker.evaluate({"extra": each}) for each in chosen):
                waiting.append(needed)
    return found


def make(folder: Path, *more: str) -> dict[str, str]:
    """Link what the base needs, and `more` distributions, into a folder; return the environment for `run`."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    for name in distributions([*declared, *more]):
        for file in importlib.metadata.files(name) or []:
            top = file.parts[0]
            if top == ".." or (folder / top).exists():
                continue
            (folder / top).symlink_to(Path(str(importlib.metadata.distribution(name).locate_file(top))))
    return {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}", "PYTHONDONTWRITEBYTECODE": "1"}


def run(environment: dict[str, str], *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run Python without its installed packages: `-S` leaves out site-packages, and PYTHONPATH has the base."""
    command = [sys.executable, "-S", *words]
    return subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, check=False)
