"""A process that keeps to one processor: its children do as well, but for those that may use all."""

import os
import subprocess
import sys

import pytest

COUNT = "import os, sys; sys.stdin.read(); print(len(os.sched_getaffinity(0)))"
KEPT = f"""
import subprocess, sys
from labkit.host.cores import keep_to_one, let_use_all

def count(free):
    child = subprocess.Popen([sys.executable, "-c", {COUNT!r}], stdin=-1, stdout=-1)
    if free:
        let_use_all(child.pid)
    return int(child.communicate()[0])

before = count(True)
keep_to_one(1)
print(before, count(False), count(True))
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system cannot keep a process to a processor")
def test_children_keep_to_the_processor_of_their_parent_unless_they_may_use_all() -> None:
    counted = subprocess.run([sys.executable, "-c", KEPT], capture_output=True, text=True, check=True).stdout
    every = len(os.sched_getaffinity(0))
    assert [int(each) for each in counted.split()] == [every, 1, every]
