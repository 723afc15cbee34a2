"""Chooses the level of isolation for submitted code, after trying which levels this machine offers.

If the machine does not offer a level, the module reports the reason. Only a user's consent allows the level `plain`.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from labkit.core.errors import InvalidInput
from labkit.grading.sandbox.inside.frames import FrameError, receive
from labkit.grading.sandbox.inside.jobs import Job, Level, Limits, Place
from labkit.grading.sandbox.sandbox import environment
from labkit.host.processes.own_python import own_python

_SECONDS = 180.0
"""The seconds that a test sandbox may take to start: many, so that a busy machine does not seem to lack a level."""
_FIRST_USER = 64_000
"""The user id of worker 0's sandboxes if root starts them, to which worker N adds N; normally no account has it."""


def place_of(work: Path, shown: Sequence[str], masked: Sequence[str], number: int) -> Place:
    """Create a root folder in `work` for the sandboxes of worker `number`; return a `Place` with this folder.

    The `Place` also has a user id for this worker, the paths that the sandboxes may read (`shown`), and the folders
    inside these paths that must appear empty (`masked`).
    """
    root = work / f"root-{number}"
    root.mkdir(exist_ok=True)
    return Place(str(root), tuple(shown), tuple(masked), _FIRST_USER + number)


def missing(level: Level, place: Place, lab: Path) -> str | None:
    """Return a sentence that says why this machine does not offer an isolation level, or None if it is available."""
    if level is Level.PLAIN:
        return None
    if sys.platform != "linux":
        return "Namespaces exist on Linux only."
    if level is Level.NAMESPACES and os.geteuid() != 0:
        return "It needs root privileges."
    return _tried(Job(level, place, Limits(), (), environment("/home/learner", lab)), lab)


def _tried(job: Job, lab: Path) -> str | None:
    """Try to start Python in the sandbox that `job` describes; return the error as a sentence, or None."""
    parent_end, child_end = socket.socketpair()
    words = str(child_end.fileno()), msgspec.json.encode(job).decode()
    command = own_python("-m", "labkit.grading.sandbox.inside.probe", *words)
    with parent_end, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command, env=environment(str(lab), lab), cwd=lab, pass_fds=[child_end.fileno()], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True,
        )  # fmt: skip
        child_end.close()
        try:
            answer = receive(parent_end, 10_000, time.monotonic() + _SECONDS).decode()
        except FrameError:
            errors.seek(0)
            lines = errors.read(20_000).decode(errors="replace").strip().splitlines()
            is_running = process.poll() is None
            silent = f"did not start within {_SECONDS:g} s" if is_running else "ended without an error message"
            answer = lines[-1][:300] if lines else f"The test sandbox {silent}."
        process.kill()
        process.wait()
    return None if answer == "works" else answer


def choose(wanted: str, place: Place, lab: Path, *, trust: bool) -> tuple[Level, dict[str, str]]:
    """Return the isolation level to use, and a dict from each better level to the reason why it is unavailable.

    `wanted` is a level, or `best` for the best one that is available. Raises `InvalidInput` if the machine does not
    offer the level, or if it would be the unprotected level `plain` although `trust` is false.
    """
    absent: dict[str, str] = {}
    if wanted != "best":
        level = Level(wanted)
        if level is Level.PLAIN and not trust:
            raise InvalidInput(
                "--isolation plain: submitted code could read your files and use the network; to accept that, "
                "add --trust."
            )
        if (why := missing(level, place, lab)) is not None:
            raise InvalidInput(f"--isolation {level}: this machine does not support it. {why}")
        return level, absent
    for level in (Level.NAMESPACES, Level.USER_NAMESPACES):
        why = missing(level, place, lab)
        if why is None:
            return level, absent
        absent[level.value] = why
    if trust:
        return Level.PLAIN, absent
    reasons = " ".join(f"{level}: {why}" for level, why in absent.items())
    raise InvalidInput(f"This machine cannot isolate submitted code. {reasons} To run it unprotected, add --trust.")
