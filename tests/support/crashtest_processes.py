"""The processes of crash tests that this session of the tests has started and that are still there."""

import os

import psutil

from labkit.crashtest.harness.leftovers import MARK

SESSION = "LABKIT_TEST_SESSION"
"""The mark of tests/conftest.py: other sessions may run side by side with this one."""


def left_over() -> list[int]:
    """Processes of drivers under test, and what their sinks have started."""
    found = []
    for process in psutil.process_iter():
        try:
            environment = process.environ()
        except psutil.Error:
            continue
        if MARK in environment and environment.get(SESSION) == os.environ[SESSION]:
            found.append(process.pid)
    return found
