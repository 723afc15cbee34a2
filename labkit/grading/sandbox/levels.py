"""Finds the levels of isolation that this machine offers, by trying them, and chooses one.

A level that is not offered is named with its reason. No level is silently taken instead of a better one: `plain` needs
the user's word.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from labkit.core.errors import InvalidInput
from labkit.grading.sandbox.inside.frames import FrameError, receive
from labkit.grading.sandbox.inside.jobs import Job, Level, Limits, Place
from labkit.grading.sandbox.sandbox import environment
from labkit.host.processes.own_python import own_python

_SECONDS = 60.0
_FIRST_USER = 64_000
"""The first user id of sandboxes that root starts, one id for each that runs at the same time; commonly unused."""


def place_of(work: Path, shown: Sequence[str], masked: Sequence[str], number: int) -> Place:
    """The place of one worker's sandboxes."""
    root = work / f"root-{number}"
    root.mkdir(exist_ok=True)
    return Place(str(root), tuple(shown), tuple(masked), _FIRST_USER + number)


def missing(level: Level, place: Place, lab: Path) -> str | None:
    """The reason why this machine does not offer a level, or `None` when it does."""
    if level is Level.PLAIN:
        return None
    if sys.platform != "linux":
        return "Namespaces are a part of Linux, and this is another system."
    if level is Level.NAMESPACES and os.geteuid() != 0:
        return "It needs root."
    return _tried(Job(level, place, Limits(), (), environment("/home/learner", lab)), lab)


def _tried(job: Job, lab: Path) -> str | None:
    """The error when a sandbox of this level starts Python, in a sentence; None without an error."""
    mine, theirs = socket.socketpair()
    command = own_python("-m", "labkit.grading.sandbox.inside.probe", str(theirs.fileno()), json.dumps(asdict(job)))
    with mine, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command, env=environment(str(lab), lab), cwd=lab, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True,
        )  # fmt: skip
        theirs.close()
        try:
            answer = receive(mine, 10_000, time.monotonic() + _SECONDS).decode()
        except FrameError:
            errors.seek(0)
            lines = errors.read(20_000).decode(errors="replace").strip().splitlines()
            answer = lines[-1][:300] if lines else "The sandbox ended without a word."
        process.kill()
        process.wait()
    return None if answer == "works" else answer


def choose(asked: str, place: Place, lab: Path, *, trust: bool) -> tuple[Level, dict[str, str]]:
    """The best level, or the one that was asked for, and why better levels are missing. Raises `InvalidInput`."""
    absent: dict[str, str] = {}
    if asked != "best":
        level = Level(asked)
        if level is Level.PLAIN and not trust:
            raise InvalidInput(
                "--isolation plain: submitted code could read your files and use the network; add --trust."
            )
        if (why := missing(level, place, lab)) is not None:
            raise InvalidInput(f"--isolation {level}: this machine does not offer it. {why}")
        return level, absent
    for level in (Level.NAMESPACES, Level.USER_NAMESPACES):
        why = missing(level, place, lab)
        if why is None:
            return level, absent
        absent[level.value] = why
    if trust:
        return Level.PLAIN, absent
    reasons = " ".join(f"{level}: {why}" for level, why in absent.items())
    raise InvalidInput(f"This machine cannot keep submitted code apart. {reasons} Add --trust to run it all the same.")
