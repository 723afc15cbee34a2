"""Collects submissions: finds for every student and notebook the file that counts, and writes notes on the others.

The newest file counts, by the platform's date. A file that cannot be graded also becomes a submission, which states the
reason; it never affects another student.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path, PurePath

from labkit.core.errors import InvalidInput
from labkit.grading.course import Course
from labkit.grading.platforms import Origin, Platform, text
from labkit.grading.reading import NotANotebook, Notebook, may_be_notebook, read, says_notebook, store
from labkit.grading.reading import read_file as read_notebook
from labkit.grading.requests import Request, is_request, read_file
from labkit.grading.uploads import Upload, Uploads, check_existing
from labkit.teach.exercises.cells import named_exercise, normal
from labkit.teach.exercises.moved import now

_NAMED = 3
"""The largest number of file names in one sentence of a note."""
MOST_STORED = 256 * 1024**2
"""The largest size in bytes of all copies of one student's notebooks together."""


@dataclass(frozen=True)
class Submission:
    """One student's file for one notebook of the course, chosen for grading, with its date and notes."""

    origin: Origin
    """The student who owns the file, and what the platform says about the upload."""
    file: str
    """The file's location as shown to a person."""
    path: Path | None
    """The path of the copy to grade, or None if there is nothing to grade."""
    when: datetime
    late: bool = False
    """Whether the platform marked the file as late, or it came after the common deadline."""
    notebook: str = ""
    """The name of the course's notebook, or an empty string if it is unknown."""
    sha256: str = ""
    problem: str = ""
    notes: tuple[str, ...] = field(default=())
    doubts: tuple[str, ...] = field(default=())
    """Questions about this submission that only the instructor can answer, each with the way to do so."""
    unread: tuple[str, ...] = field(default=())
    """The notebooks whose file cannot be read; an empty name if the file could be any of them."""
    answered_at: Mapping[str, datetime] = field(default_factory=dict)
    """The dates of other files that labkit cannot read, by the notebook that they may answer; empty as in `unread`."""
    settled_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For each doubt, the notebooks to which a person must give points to answer it; an empty name is any notebook."""
    requests: tuple[Request, ...] = field(default=())
    """The student's regrade requests; only the first of the student's submissions has them."""

    @property
    def key(self) -> str:
        """The student's unique key."""
        return self.origin.key


@dataclass(frozen=True)
class _Candidate:
    """One of a student's files that may become the submission for a notebook, with the facts on which this depends."""

    upload: Upload
    notebook: str
    path: Path | None = None
    sha256: str = ""
    problem: str = ""
    touched: bool = False
    """Whether the student has changed at least one cell of the released notebook."""

    def order(self) -> tuple[bool, datetime, bool, datetime, str]:
        """Return a sort key. Of a student's files for one notebook, the file with the largest key counts."""
        one = self.upload
        return (one.named, one.when, self.touched, one.changed, one.file)

    @property
    def unread(self) -> bool:
        """Whether the file could not be read at all, so that the student's answers in it are unknown."""
        return bool(self.problem) and not self.sha256


def collect(
    places: Sequence[Path], course: Course, work: Path, deadline: datetime | None, skipped: Path | None = None
) -> list[Submission]:
    """Return one submission for each student and notebook, sorted by student.

    Notebooks are copied into `work`, files in `skipped` are ignored, and submissions after `deadline` are late. Raises
    `InvalidInput` if nothing can be a submission.
    """
    uploads = Uploads(_notebooks(course), skipped)
    reader = _Reader(course, work)
    for place in places:
        for upload in uploads.of(place):
            reader.add(upload)
    if not reader.students():
        raise _no_submission(places)
    return [
        replace(one, late=one.late or (deadline is not None and one.origin.dated and one.when > deadline))
        for key in sorted(reader.students())
        for one in reader.of(key)
    ]


def check(places: Sequence[Path]) -> None:
    """Raise `InvalidInput` if a path is missing or a link, or if the names show that no path has a submission."""
    for place in places:
        check_existing(place)
    if not any(
        any(place.iterdir()) if place.is_dir() else place.suffix.lower() == ".zip" or may_be_notebook(place.name)
        for place in places
    ):
        raise _no_submission(places)


def _no_submission(places: Sequence[Path]) -> InvalidInput:
    shown = ", ".join(text(str(path)) for path in places)
    return InvalidInput(f"{shown}: found no submission; name folders, notebooks or ZIP archives.")


class _Reader:
    """Reads all uploaded files, stores the notebooks among them, and finds the files that count for each student."""

    def __init__(self, course: Course, work: Path) -> None:
        self._course, self._work = course, work
        self._stored: Counter[str] = Counter()
        self._released: dict[str, set[str]] = {}
        """By name, the code cells of the notebooks that the course has released, and the empty cell."""
        self.candidates: dict[str, list[_Candidate]] = defaultdict(list)
        """The files that may be graded, by student."""
        self.others: dict[str, list[Upload]] = defaultdict(list)
        """The files that are not notebooks, by student."""
        self._asking: dict[str, tuple[Upload, tuple[Request, ...]]] = {}
        """By student, the newest file of regrade requests, without its content, and the requests in it."""

    def students(self) -> set[str]:
        return {*self.candidates, *self.others, *self._asking}

    def add(self, upload: Upload) -> None:
        """Read an uploaded file and store it for its student, as a notebook, as regrade requests or as another file."""
        key = upload.origin.key
        if is_request(upload.file) and not upload.problem:
            newest, _ = self._asking.get(key, (upload, ()))
            if (newest.when, newest.file) <= (upload.when, upload.file):
                self._asking[key] = replace(upload, content=b""), tuple(read_file(upload.content))
            return
        candidate = None if upload.other else self._candidate(upload)
        if candidate is None:
            self.others[key].append(replace(upload, content=b""))
        else:
            self.candidates[key].append(candidate)

    def _candidate(self, upload: Upload) -> _Candidate | None:
        bare = replace(upload, content=b"")
        by_name = _by_name(upload.file, self._course)
        if upload.problem:
            return _Candidate(bare, by_name, problem=upload.problem)
        try:
            notebook = read(upload.content)
        except NotANotebook as error:
            if not says_notebook(upload.file):
                return None
            return _Candidate(bare, by_name, problem=str(error))
        except Exception as error:  # noqa: BLE001 - a file that breaks its reader must not stop the batch
            why = f"The file cannot be read ({type(error).__name__})."
            return _Candidate(bare, by_name, problem=why)
        return self._readable(bare, notebook, by_name)

    def _readable(self, bare: Upload, notebook: Notebook, by_name: str) -> _Candidate:
        name = _by_exercises(notebook, self._course) or by_name or notebook.name
        if name not in _notebooks(self._course):
            what = "this assignment" if self._course.is_part else "the course"
            why = f"The file is not a notebook of {what}, because it answers none of its exercises."
            return _Candidate(bare, "", sha256=notebook.sha256, problem=why)
        touched = self._is_touched(notebook, name)
        if self._stored[bare.origin.key] > MOST_STORED:
            why = f"This student's notebooks have more than {MOST_STORED // 1024**2} MB together; submit fewer."
            return _Candidate(bare, name, sha256=notebook.sha256, problem=why)
        path = store(notebook, self._work)
        self._stored[bare.origin.key] += path.stat().st_size
        return _Candidate(bare, name, path, notebook.sha256, touched=touched)

    def _is_touched(self, notebook: Notebook, name: str) -> bool:
        if name not in self._released:
            released = read_notebook(self._course.released(name))
            self._released[name] = {normal(cell.source) for cell in released.cells} | {""}
        return any(normal(cell.source) not in self._released[name] for cell in notebook.cells)

    def of(self, key: str) -> list[Submission]:
        """Return the submissions of the student `key`: one for each notebook, sorted by the notebook's name.

        The first one carries all regrade requests of the student, whichever notebook they are about.
        """
        first, *more = self._of(key)
        if not (self.candidates.get(key) or self.others.get(key)):
            first = replace(first, doubts=(), unread=())  # only requests, so no answer is unread
        return [replace(first, requests=self._asking[key][1] if key in self._asking else ()), *more]

    def _of(self, key: str) -> list[Submission]:
        by_notebook: dict[str, list[_Candidate]] = defaultdict(list)
        for candidate in self.candidates.get(key, ()):
            by_notebook[candidate.notebook].append(candidate)
        unknown_files = by_notebook.pop("", [])
        others = self.others.get(key, [])
        if not others and key in self._asking:
            others = [self._asking[key][0]]
        if not by_notebook:
            return [_nothing(unknown_files, others)]
        chosen, released = _worked_on(by_notebook)
        notes = _unknown_notes(unknown_files)
        notes += [f"Not graded, because unchanged since the release: {_listed(released)}."] if released else []
        first, *more = [_submission(files, name, notes) for name, files in sorted(chosen.items())]
        is_empty = not any(file.touched for files in chosen.values() for file in files)
        files_of = _in_another_form(others, chosen, self._course, is_empty=is_empty)
        in_another_form = {name: " ".join(map(_form_question, files)) for name, files in files_of.items()}
        unknown = tuple(_unread(unknown_files))
        doubts = (*first.doubts, *unknown, *in_another_form.values())
        unread = (*first.unread, *_unknown_unread(unknown_files), *filter(None, in_another_form))
        forms = {
            question: (name,) if name else (*chosen,) for name, question in in_another_form.items() if name or is_empty
        }
        settled_by = {**first.settled_by, **dict.fromkeys(unknown, ("",)), **forms}
        answered_at = {"": max(one.upload.when for one in unknown_files if one.unread)} if unknown else {}
        for name, files in files_of.items():
            # A document without a notebook's name answers only notebooks that are empty.
            answered = (name,) if name else chosen if is_empty else ()
            answered_at |= dict.fromkeys(answered, max(one.when for one in files))
        answered_at = answered_at if first.origin.dated else {}
        first = replace(first, doubts=doubts, unread=unread, settled_by=settled_by, answered_at=answered_at)
        return [first, *more]


def _worked_on(by_notebook: dict[str, list[_Candidate]]) -> tuple[dict[str, list[_Candidate]], list[str]]:
    """Return the notebooks to grade, as a dict from notebook to files, and a list of the other notebooks' names.

    Notebooks that the student has edited, or that are unreadable, are graded. If there are none, all notebooks are
    graded, and the list of names is empty.
    """
    edited = {name: files for name, files in by_notebook.items() if any(one.touched or one.problem for one in files)}
    chosen = edited or by_notebook
    return chosen, sorted({*by_notebook} - {*chosen})


def _unknown_notes(unknown_files: Sequence[_Candidate]) -> list[str]:
    if not unknown_files:
        return []
    last = max(unknown_files, key=_Candidate.order)
    more = f" {len(unknown_files) - 1:,} other files were not graded either." if len(unknown_files) > 1 else ""
    return [f"{last.upload.file[:300]} was not graded. {last.problem}{more}"]


def _unread(files: Iterable[_Candidate]) -> Iterable[str]:
    for one in files:
        if one.unread:
            yield f"{one.upload.file[:300]} was not graded. {one.problem} {_ASK}"


def _unknown_unread(files: Iterable[_Candidate]) -> tuple[str, ...]:
    return ("",) if any(one.unread for one in files) else ()


def _in_another_form(
    others: Iterable[Upload], graded: Collection[str], course: Course, *, is_empty: bool
) -> dict[str, list[Upload]]:
    """Return the files, such as a PDF, that may be answers in another form, by notebook.

    A file belongs to the notebook that its name contains. The key is "" if the name contains no notebook, or one in
    `graded`. Text files are among them only if `is_empty` says that no notebook in `graded` was edited.
    """
    files: dict[str, list[Upload]] = defaultdict(list)
    for one in others:
        path = PurePath(one.file.lower())
        name = _by_name(one.file, course)
        missing = name if name not in graded else ""
        if path.suffix in _DOCUMENTS or (path.suffix == ".py" and missing) or (path.suffix == ".txt" and is_empty):
            files[missing].append(one)
    return files


def _form_question(one: Upload) -> str:
    return f"{one.file[:300]} was not graded, because it is not a notebook, but it may be an answer. {_ASK}"


def _nothing(unknown_files: Sequence[_Candidate], others: Sequence[Upload]) -> Submission:
    """Return a `Submission` for a student without a notebook; it says why none of the student's files can be graded."""
    if unknown_files:
        last = _submission(unknown_files, "", ())
        unknown = dict.fromkeys(_unread(unknown_files), ("",))
        doubts = tuple(dict.fromkeys((*last.doubts, *unknown)))
        return replace(last, doubts=doubts, unread=_unknown_unread(unknown_files), settled_by=unknown)
    newest = max(others, key=lambda upload: (upload.when, upload.file))
    why = f"There is no notebook among the submitted files: {_listed([one.file for one in others])}."
    return _submission([_Candidate(newest, "", problem=why)], "", ())


_ASK = "Ask the student for the notebook itself, the .ipynb file, or give points by hand (by_hand/marks.csv)."
_DOCUMENTS = {".html", ".htm", ".pdf", ".docx", ".doc", ".odt", ".rtf", ".rar", ".7z", ".tar", ".gz", ".tgz"}
"""Suffixes of files that may contain an answer in a form that labkit does not read."""


def _submission(files: Sequence[_Candidate], notebook: str, notes: Sequence[str]) -> Submission:
    """Return the submission for one notebook: the file that counts, with notes on the student's other files."""
    *older, last = sorted(files, key=_Candidate.order)
    upload, origin = last.upload, last.upload.origin
    passed = [one.upload.file for one in reversed(older)]
    choice = (
        [f"{len(files)} files for one notebook; the newest counts ({upload.file[:300]}), not {_listed(passed)}."]
        if older
        else []
    )
    return Submission(
        origin,
        file=upload.file,
        path=last.path,
        when=upload.when,
        late=origin.late,
        notebook=notebook,
        sha256=last.sha256,
        problem=last.problem,
        notes=(*choice, *notes),
        doubts=tuple(dict.fromkeys(_doubts(older, last))),
        unread=(notebook,) if last.unread else (),
        settled_by=dict.fromkeys(_unread([last]), (notebook,)),
    )


def _doubts(older: Sequence[_Candidate], last: _Candidate) -> Iterable[str]:
    """Yield questions for the instructor: which files are unreadable, and which of several files should count."""
    yield from _unread([last])
    for one in (*older, last):
        if one.upload.doubt:
            yield one.upload.doubt
    chosen = last.upload
    folders = {PurePath(one.upload.file).parent for one in (*older, last)}
    differ = any(one.sha256 != last.sha256 for one in older)
    if chosen.origin.platform is Platform.PLAIN and len(folders) > 1 and differ:
        yield (
            f"{len(older) + 1} files for one notebook are in different folders, but only one counts: "
            f"{chosen.file[:300]}; if they belong to several students, name the folder that contains the "
            "students' folders."
        )
    for one in older:
        if chosen.named and not one.upload.named:
            yield (
                f"{one.upload.file[:300]} is in an archive that the command line does not name, so it does not "
                "count; if the platform made this archive, name it on the command line."
            )
        elif one.order()[:4] == last.order()[:4] and one.sha256 != last.sha256:
            yield (
                f"{one.upload.file[:300]} and {chosen.file[:300]} have the same date, and the second one "
                "counts; if the first should count, move the second away."
            )


def _listed(files: Sequence[str]) -> str:
    names = ", ".join(file[:300] for file in files[:_NAMED])
    more = len(files) - _NAMED
    return f"{names} and {more:,} more" if more > 0 else names


def _notebooks(course: Course) -> list[str]:
    names = {exercise.notebook for exercise in course.exercises.values()}
    return sorted(names, key=lambda name: (-len(name), name))


def _by_exercises(notebook: Notebook, course: Course) -> str:
    """Return the name of the course's notebook from which most of a file's exercise cells come, or an empty text."""
    named = [named_exercise(cell) or "" for cell in notebook.cells]
    exercises = [course.exercises.get(now(name, course.exercises)) for name in named]
    owners = [exercise.notebook for exercise in exercises if exercise is not None]
    return max(sorted(set(owners)), key=owners.count, default="")


def _by_name(file: str, course: Course) -> str:
    name = PurePath(file).name
    return next((one for one in _notebooks(course) if one in name), "")
