"""Python inside a browser, as in the course's notebooks without an installation: what differs there.

A browser starts no processes and opens no connections to servers. So it runs the simulators, the questions and the
exercises, but no real Spark, PostgreSQL or Kafka.
"""

import sys

from labkit.core.errors import NeedsInstallation

IN_BROWSER = sys.platform == "emscripten"
"""Whether this Python is Pyodide, CPython in WebAssembly."""
INSTALL = "pip install 'labkit[lab]', then open this notebook with labkit lab"


def needs_installation(what: str) -> NeedsInstallation:
    """Return the error that says that a browser cannot do `what`, and how to install the lab."""
    return NeedsInstallation(f"{what} needs real processes, which a browser does not have: {INSTALL}.")
