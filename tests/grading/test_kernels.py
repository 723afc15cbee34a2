"""Tests of the kernel's application, which is created before the fork and takes its arguments after it."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from labkit.host.processes.own_python import own_python

# In a process of its own, because the application is one for the whole process.
_PROGRAM = """
import json, sys
from ipykernel.kernelapp import IPKernelApp
from labkit.grading.sandbox.inside import kernels

kernels.prepare()
app = IPKernelApp.instance()
kernels._take_arguments(app, json.loads(sys.argv[1]))
app.parse_command_line(None)
history = app.config.HistoryManager
print(json.dumps([app.connection_file, app.argv, str(history.hist_file), "enabled" in history]))
"""


@pytest.mark.parametrize(
    ("options", "off"),
    [
        (["--HistoryManager.hist_file=:memory:"], False),
        (["--HistoryManager.hist_file=x", "--HistoryManager.enabled=False"], True),
    ],
    ids=["as expected", "others"],
)
def test_a_kernel_takes_the_arguments_of_its_start(options: Sequence[str], off: bool, tmp_path: Path) -> None:
    given = ["-f", "/tmp/connection.json", *options]
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM, encoding="utf-8")
    told = subprocess.run(
        own_python(str(program), json.dumps(given)), check=True, capture_output=True, text=True, timeout=600
    ).stdout
    file, arguments, history, is_off = json.loads(told.splitlines()[-1])
    assert (file, arguments) == (given[1], given)
    assert history == options[0].partition("=")[2]
    assert is_off is off
