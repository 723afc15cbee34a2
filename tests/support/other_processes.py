"""Processes that live beside a test: whether they have ended, and one that is killed when it has said something."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or at most a zombie."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.Error:
        return True


def with_word(text: str) -> list[int]:
    """The processes, without zombies, that have the text in a word of their command."""
    found = psutil.process_iter(["cmdline", "status"])
    alive = [each for each in found if each.info["status"] != psutil.STATUS_ZOMBIE]
    return [each.pid for each in alive if any(text in word for word in each.info["cmdline"] or [])]


@contextmanager
def until_killed(code: str, *words: str, without: str = "") -> Iterator[Callable[[], str]]:
    """A process that runs this code, without one variable of the environment, and is killed at the end of the block.

    The block gets a function that reads the next line that the process prints.
    """
    environment = {name: value for name, value in os.environ.items() if name != without}
    command = [sys.executable, "-c", code, *words]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        output = process.stdout
        assert output is not None
        try:
            yield lambda: output.readline().strip()
        finally:
            process.kill()
