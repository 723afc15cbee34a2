"""Defines the messages between the main process of `labkit grade` and its workers: plain values over a socket."""

from pathlib import Path
from typing import TypeVar

import msgspec

from labkit.grading.order import Patience
from labkit.grading.sandbox.inside.jobs import Level, Limits, Place
from labkit.grading.submissions import Submission

MOST = 1 << 20
"""The largest size of one message in bytes."""


class Setting(msgspec.Struct):
    """The settings of one `labkit grade` command, which each worker process receives before its first submission."""

    course: Path | None
    """The file of the course, or None for the lab's own course."""
    seed: int
    level: Level
    missing: dict[str, str]
    """The better levels of isolation that this machine does not offer, with the reasons."""
    limits: Limits
    patience: Patience
    place: Place
    lab: Path
    """The folder with the copy of labkit for sandboxes, without grader and solutions."""
    out: Path
    exercises: list[str] = []
    """The names of the exercises to grade again; empty for all."""
    core: int | None = None
    """The number of the only processor on which the worker and its sandboxes run; None for any processor."""


class SubmissionOutcome(msgspec.Struct):
    """A worker's reply after grading one submission. `name` is the file name of the submission's stored result."""

    name: str
    graded: bool = True
    out_of_time: bool = False
    """Whether the answers took too long, which a busy machine may have caused."""
    error: str | None = None
    """The reason why the worker could not write a record."""


def encode(message: Setting | Submission | SubmissionOutcome) -> bytes:
    """Return a message between the grader and a worker process as bytes."""
    return msgspec.json.encode(message, enc_hook=str)


MessageT = TypeVar("MessageT", Setting, Submission, SubmissionOutcome)


def decode(raw: bytes, kind: type[MessageT]) -> MessageT:
    """Return the message of type `kind` from the bytes that `encode` has written."""
    # Paths are the only values that msgspec cannot decode by itself.
    return msgspec.json.decode(raw, type=kind, dec_hook=lambda _path, text: Path(text))
