"""Modules that a test runs as programs of their own."""

import os
import subprocess
import sys
from pathlib import Path


def run_module(*words: str, cwd: Path | None = None, **environment: str) -> "subprocess.CompletedProcess[str]":
    """`python -m` with these words; what it says is printed for whoever reads of a failed test.

    pytest, as one of the modules, gets no plugin but those that the words name.
    """
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **environment}
    command = [sys.executable, "-m", *words]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr)
    return done
