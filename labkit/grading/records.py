"""What grading leaves of one submission: a JSON file with everything that its grade depends on.

A record that was written is whole. This module must not judge and must not know how a page looks.
"""

import hashlib
import re
from pathlib import Path

import msgspec

from labkit.core.errors import InvalidInput
from labkit.host import durable

FORMAT = 1


class VariantRecord(msgspec.Struct):
    """How an answer did in one variant. For the instructor: it names hidden parameters."""

    name: str
    hidden: bool
    passed: bool
    message: str
    observed: str = ""
    expected: str = ""
    trace: str | None = None
    at: int = 0
    parameters: dict[str, str] = msgspec.field(default_factory=dict)


class ItemRecord(msgspec.Struct):
    """One exercise of one submission."""

    name: str
    most: int
    points: int | None = 0
    """`None` where it was not graded: by hand, or because grading itself failed."""
    status: str = "not attempted"
    """`right`, `wrong`, `failed`, `not attempted`, `by hand` or `not graded`."""
    reason: str = ""
    shown: str = ""
    """The reason as the learner may read it: it holds no hidden value."""
    public: tuple[int, int] = (0, 0)
    """Visible checks that were passed, of how many."""
    hidden: tuple[int, int] = (0, 0)
    seconds: float = 0.0
    questions: int = 0
    written: str | None = None
    """A free text, where one is asked for."""
    variants: list[VariantRecord] = msgspec.field(default_factory=list)


class Isolation(msgspec.Struct):
    """How the submission was kept apart, and which better levels this machine did not have, each with its reason."""

    level: str
    missing: dict[str, str] = msgspec.field(default_factory=dict)


class Record(msgspec.Struct):
    """One submission: a notebook of a student."""

    course: str
    student: str
    notebook: str
    file: str
    sha256: str
    seed: int
    digest: str
    """Of the exercises and the grader."""
    versions: dict[str, str]
    isolation: Isolation
    items: list[ItemRecord] = msgspec.field(default_factory=list)
    notes: list[str] = msgspec.field(default_factory=list)
    limits_hit: list[str] = msgspec.field(default_factory=list)
    late: bool = False
    submitted: str = ""
    seconds: float = 0.0
    executed: str | None = None
    """The executed notebook's file name."""
    format: int = FORMAT

    def graded(self) -> bool:
        """Whether grading itself succeeded for every item."""
        return all(item.status != "not graded" for item in self.items)


def file_name(student: str, notebook: str) -> str:
    """A name for the files of a submission, for which no other student and no other folder can stand."""
    plain = re.sub(r"[^A-Za-z0-9._@-]", "_", student).lstrip("._")
    if plain != student:
        plain = f"{plain}-{hashlib.sha256(student.encode()).hexdigest()[:8]}"
    return f"{plain}--{notebook or 'nothing'}"


def write(record: Record, path: Path) -> None:
    """Writes a record whole or not at all."""
    durable.replace(
        path, msgspec.json.format(msgspec.json.encode(record), indent=1).decode()
    )


def read(path: Path) -> Record | None:
    """The record in a file; `None` when there is none. Raises `InvalidInput` for one that is damaged."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Record)
    except FileNotFoundError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"{path}: not a record of this version ({error}); delete it to grade anew."
        ) from None


def total(records: list[Record]) -> int:
    """All points of some records."""
    return sum(item.points or 0 for record in records for item in record.items)
