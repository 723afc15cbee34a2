"""Programs whose system calls a test watches, with every call that was asked about."""

import os
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from labkit.crashtest.harness.leftovers import MARK
from labkit.host.syscalls.calls import Answer, Call, Decision, WatchedRun
from labkit.host.syscalls.table import architecture
from labkit.host.syscalls.watching import watch

HERE = architecture()
NUMBERS = HERE.numbers if HERE else {}
"""The numbers of this machine's calls; without an architecture that is known, no call is watched, and no test runs."""


def go_on(_call: Call) -> Answer:
    return Answer.GO_ON


def output_of(folder: Path) -> Path:
    """What a program that works in this folder prints."""
    return folder.with_name(f"{folder.name}.out")


def run(
    folder: Path, command: Sequence[str], decide: Callable[[Call], Decision] = go_on, **options: Any
) -> tuple[WatchedRun, list[Call]]:
    """The run of a command, and every call of it."""
    calls: list[Call] = []

    def keep(call: Call) -> Decision:
        calls.append(call)
        return decide(call)

    environment = {**os.environ, MARK: str(folder)}
    ended = watch(command, folder=folder, environment=environment, output=output_of(folder), decide=keep, **options)
    return ended, calls


def shell(
    folder: Path, text: str, decide: Callable[[Call], Decision] = go_on, **options: Any
) -> tuple[WatchedRun, list[Call]]:
    return run(folder, ["sh", "-c", text], decide, **options)


def python(
    folder: Path, text: str, decide: Callable[[Call], Decision] = go_on, **options: Any
) -> tuple[WatchedRun, list[Call]]:
    return run(folder, [sys.executable, "-I", "-S", "-c", textwrap.dedent(text)], decide, **options)
