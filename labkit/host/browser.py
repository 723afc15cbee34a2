"""Detects Python inside a browser, which runs the course's notebooks without an installation.

A browser starts no processes and opens no connections to servers. So it runs the simulators, the questions and the
exercises, but no real Spark, PostgreSQL or Kafka.
"""

import sys

from labkit.core.errors import NeedsInstallation

IN_BROWSER = sys.platform == "emscripten"
"""Whether this Python is Pyodide, CPython in WebAssembly."""
INSTALL = "pip install 'labkit[lab]', then open this notebook with labkit lab"


def needs_installation(what: str) -> NeedsInstallation:
    """Return an error which says that `what`, such as Spark, cannot run in a browser, and how to install labkit."""
    return NeedsInstallation(f"{what} needs real processes, which a browser does not have: {INSTALL}.")
