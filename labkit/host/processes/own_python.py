"""Builds the command line of every Python process that labkit starts for its own programs.

With `-m` or `-c`, Python looks for modules in the working folder first. That folder may be a student's: a `json.py` in
it would run with the rights of the instructor who grades there. `-P` leaves the working folder out. PYTHONPATH stays in
use, because checkouts, tests and users name folders of modules with it; `check_python_path` refuses a PYTHONPATH that
names the working folder by accident.

A program that has to import a user's module (`labkit.crashtest.subject.load`) is started in the same way, and adds the
user's folders itself, after its own imports.
"""

import os
import sys
from collections.abc import Mapping

from labkit.core.errors import InvalidInput


def own_python(*words: str) -> list[str]:
    """Return a command that runs this Python with these arguments, but never imports from the working folder."""
    return [sys.executable, "-P", *words]


def check_python_path(environment: Mapping[str, str] = os.environ) -> None:
    """Raise `InvalidInput` if PYTHONPATH has an empty or relative entry.

    Such an entry makes Python import modules from the working folder, which may contain a learner's submission. The
    error prevents this, except for a `sitecustomize.py` in the folder, which Python already ran when it started.
    """
    written = environment.get("PYTHONPATH", "")
    for entry in written.split(os.pathsep) if written else ():
        if not os.path.isabs(entry):  # noqa: PTH117 - an empty entry is no path
            raise InvalidInput(
                f"PYTHONPATH has the entry {entry!r}, which is relative to the working folder, so Python would "
                "import any file from there. Write absolute paths only, or unset PYTHONPATH."
            )
