"""Reads and writes the record of one graded submission: a JSON file with everything that its grade depends on."""

import hashlib
import re
from pathlib import Path

import msgspec

from labkit.core.errors import InvalidInput
from labkit.grading.platforms import Person
from labkit.grading.requests import Request
from labkit.host import durable

FORMAT = 2
MOST_TRIES = 3
"""After this many failures of the grader itself on one file, the exercises get 0 points and the instructor is asked."""
GIVEN_UP = "Grading broke off"
"""The first words of the question to the instructor after `MOST_TRIES` failures; it stays until a person answers it."""


class VariantRecord(msgspec.Struct):
    """The result of testing a learner's answer with one variant of the question, public or hidden."""

    name: str
    hidden: bool
    passed: bool
    message: str
    observed: str = ""
    expected: str = ""
    trace: str | None = None
    """The counterexample as the text of a trace, and in `at` the number of the step at which the answer fails."""
    at: int = 0
    parameters: dict[str, str] = msgspec.field(default_factory=dict)


class ItemRecord(msgspec.Struct):
    """The result of one exercise in one submission: points, reason, and the outcome of each variant tested."""

    name: str
    most: int
    points: int | None = 0
    """The points, or None if a person grades the exercise or grading itself failed."""
    status: str = "not attempted"
    """One of `right`, `wrong`, `failed`, `not attempted`, `by hand` and `not graded`."""
    reason: str = ""
    shown: str = ""
    """The reason in words for the learner, without any hidden value."""
    public: tuple[int, int] = (0, 0)
    """How many public variants the answer passed, and how many there are; `hidden` says the same of hidden ones."""
    hidden: tuple[int, int] = (0, 0)
    seconds: float = 0.0
    questions: int = 0
    written: str | None = None
    """The learner's free text, if the exercise asks for one."""
    code: str = ""
    """The source of the learner's own cell."""
    structure: str = ""
    """A digest of the answer's code without names and layout, for finding copies; empty for a short cell."""
    error: str = ""
    """The error message of the learner's code, from a run that asked it no hidden question."""
    variants: list[VariantRecord] = msgspec.field(default_factory=list)


class Isolation(msgspec.Struct):
    """The isolation level of the sandbox that ran a submission, and why the machine does not offer a better one."""

    level: str
    missing: dict[str, str] = msgspec.field(default_factory=dict)


class Record(msgspec.Struct):
    """The stored grading result of one submission (one notebook of one student), and everything that it depends on."""

    course: str
    student: str
    notebook: str
    file: str
    sha256: str
    seed: int
    digest: str
    """A digest of the exercises and the grader; points are valid only while it stays the same."""
    versions: dict[str, str]
    isolation: Isolation
    items: list[ItemRecord] = msgspec.field(default_factory=list)
    notes: list[str] = msgspec.field(default_factory=list)
    limits_hit: list[str] = msgspec.field(default_factory=list)
    late: bool = False
    submitted: str = ""
    seconds: float = 0.0
    executed: str | None = None
    """The file name of the executed notebook."""
    key: str = ""
    """The student's unique key. `student` is only a name, which several students may share."""
    platform: str = "plain"
    account: str = ""
    """The platform's own number or name for the student."""
    upload: str = ""
    """The file or folder name under which the platform expects the feedback."""
    people: list[Person] = msgspec.field(default_factory=list)
    """All people who handed the file in together, if the platform states them."""
    dated: bool = True
    """Whether the submission's date comes from somebody other than the student, so that it can prove lateness."""
    dated_by: str = ""
    """The archive whose own date counts, because the student may have packed it; the true date may be earlier."""
    marked_late: bool = False
    """Whether the platform marked the file as late."""
    doubts: list[str] = msgspec.field(default_factory=list)
    """Questions that only the instructor can settle, each with the way to do so."""
    unread: list[str] = msgspec.field(default_factory=list)
    """The handed-in notebooks whose file cannot be read; an empty name if the file could be any notebook."""
    answered_at: dict[str, str] = msgspec.field(default_factory=dict)
    """The dates of other files that labkit cannot read, by the notebook that they may answer; empty as in `unread`."""
    settled_by: dict[str, list[str]] = msgspec.field(default_factory=dict)
    """For each question in `doubts`, the notebooks or exercises to which a person has to give points to answer it.

    An empty name stands for every notebook that has not been read. Points cannot answer a question that is not listed.
    """
    requests: list[Request] = msgspec.field(default_factory=list)
    """The student's regrade requests, which belong to no notebook in particular."""
    tries: int = 0
    """How many times `labkit grade` has failed on this file by its own fault."""
    format: int = FORMAT

    def graded(self) -> bool:
        """Return whether grading itself succeeded for every exercise, whatever the points are."""
        return all(item.status != "not graded" for item in self.items)


_PLAIN = re.compile(r"[a-z0-9](?:[a-z0-9._@]|-(?!-)){0,62}")
_LIKE_OURS = re.compile(r".*-[0-9a-f]{16}")
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?")  # Windows reserves these names
_READABLE = 40


def file_name(key: str, notebook: str) -> str:
    """Return the file name, without suffix, for the grading result of one student's notebook.

    No two students get the same name, even if the file system ignores case. If the student's `key` is a short text in
    lower-case ASCII, the name contains it unchanged, except if it is reserved (`con`) or could be confused with another
    name. Otherwise the name contains the readable characters of the key and a digest of the key.
    """
    if (
        _PLAIN.fullmatch(key)
        and not _LIKE_OURS.fullmatch(key)
        and not _DEVICES.fullmatch(key)
        and not key.endswith((".", "-"))
    ):
        return f"{key}--{notebook or 'nothing'}"
    readable = re.sub(r"[^a-z0-9._@]+", "_", key.lower()).strip("._")[:_READABLE]
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    return f"{readable or 'student'}-{digest}--{notebook or 'nothing'}"


def write(record: Record, path: Path) -> None:
    """Write a submission's grading result to a file atomically."""
    durable.replace(path, msgspec.json.format(msgspec.json.encode(record), indent=1).decode())


def read(path: Path) -> Record | None:
    """Return the grading result in a file, or None without a file. Raises `InvalidInput` if it is damaged."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Record)
    except FileNotFoundError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"{path}: this grading result is damaged, or not a record of this version of labkit ({error}); delete "
            "the file, and labkit grades the submission again."
        ) from None


def read_all(folder: Path) -> tuple[list[Record], list[str]]:
    """Return a pair: the grading results of all submissions in a folder, and a sentence for each damaged file."""
    records, complaints = [], []
    for path in sorted(folder.glob("*.json")):
        try:
            record = read(path)
        except InvalidInput as error:
            complaints.append(str(error))
        else:
            if record is not None:
                records.append(record)
    return records, complaints
