"""Find the files outside of the watched folders that a pipeline writes, and decide which of them are its state.

The test never crashes before a write to such a file, so the report names the files. A file is state if a later start
reads or changes it. It is also state if a later start leaves it alone although a start from nothing creates it, because
the later start may have looked for its name. If there is such state, the guarantee is unknown. A file whose name has a
random part is no state, because no later start can look for it.
"""

import fnmatch
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from labkit.crashtest.blackbox.effects import mask
from labkit.host.file_reads import FileReads
from labkit.host.syscalls.calls import Call, CallKind

CACHES = (
    "*/__pycache__/*",
    "*/__pycache__",
    "*/.cache/fontconfig/*",
    "*/.cache/matplotlib/*",
    "*/.config/matplotlib/*",
    "*/.ivy2*/*",
    "*/.m2/repository/*",
    "*/hsperfdata_*",
)
"""Patterns of files in which interpreters, the JVM and package managers keep data that they can rebuild at any time."""

NOWHERE = ("/proc/", "/sys/", "/dev/")
MEMORY = "/dev/shm/"  # noqa: S108 - no file is made there
"""The folder of files in memory. They outlive a process, so they count although other files below `/dev` do not."""

FEW = 3
"""The number of files that a message lists by name."""
MOST = 500
"""The largest number of files whose reads are observed; all further files count as read."""

_NO_FILE = frozenset({CallKind.SEND, CallKind.EXIT, CallKind.SYNC, CallKind.LINE})


class Use(StrEnum):
    """How a later start used a file outside of the watched folders; each use is a sign that the file holds state."""

    READ = "a later start read it"
    CHANGED = "a later start changed it again"
    LEFT_ALONE = "a later start found it and left it alone"


class Elsewhere:
    """Decides whether a file outside of the watched folders may hold state of the pipeline."""

    def __init__(self, watched: Sequence[Path], ignored: Sequence[str]) -> None:
        self._watched = [folder.resolve() for folder in watched]
        self._ignored = ignored

    def __call__(self, path: str) -> bool:
        """Return whether the path is outside of the watched folders and is no device, cache or ignored file."""
        if not path.startswith("/") or (path.startswith(NOWHERE) and not path.startswith(MEMORY)):
            return False
        if any(Path(path).is_relative_to(folder) for folder in self._watched):
            return False
        return not any(_fits(path, pattern) for pattern in (*CACHES, *self._ignored))


def _fits(path: str, pattern: str) -> bool:
    # `Path.match` compares the pattern with the last parts of the path.
    whole = str(Path(pattern).expanduser()) if pattern.startswith("~") else pattern
    return fnmatch.fnmatch(path, whole) or Path(path).match(whole)


@dataclass
class Changes:
    """The files outside of the watched folders that one start of the pipeline made, changed or removed.

    Files that the start made and removed again are left out.
    """

    elsewhere: Elsewhere
    made: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    """Files that existed before the start, and that it wrote, replaced or gave other attributes."""
    removed: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)
    emptied: dict[str, bool] = field(default_factory=dict)
    """The files that the start emptied to write them anew, each with whether something had read it before."""
    reads: FileReads | None = None
    whole: bool = False
    """Whether the start came to its end. If not, it might have opened further files later."""

    def __call__(self, call: Call) -> None:
        """Note a system call that is about to happen."""
        if call.kind in _NO_FILE:
            return
        if call.kind is CallKind.RENAME:
            self._rename(call)
        elif call.kind is CallKind.LINK:
            self._make(call.target)
        elif call.kind is CallKind.UNLINK:
            self._remove(call.path)
        elif call.kind in (CallKind.CREATE, CallKind.MKDIR):
            self._make(call.path)
            if call.kind is CallKind.MKDIR and call.path in self.made:
                self.folders.add(call.path)
        else:
            path = Path(call.path)
            is_emptied = call.kind is CallKind.TRUNCATE and call.size == 0
            if is_emptied and self.reads is not None and call.path not in self.emptied:
                self.emptied[call.path] = bool(self.reads.use(path).read) or not self.reads.covers(path)
            self._change(call.path)

    @property
    def all(self) -> set[str]:
        """Every path that this start of the pipeline made, changed or removed.

        A new folder is left out if a path inside it is listed.
        """
        files = self.made | self.changed | self.removed
        return files - {each for each in self.folders if any(other.startswith(f"{each}/") for other in files)}

    def _rename(self, call: Call) -> None:
        if "EXCHANGE" in call.name:
            self._change(call.path)
            self._change(call.target)
            return
        replaces = os.path.lexists(call.target) and call.target not in self.made
        moved = [each for each in self.made if each.startswith(f"{call.path}/")]
        folders = {each for each in self.folders if each == call.path or each in moved}
        self._remove(call.path)
        if replaces:
            self._change(call.target)
        else:
            self._make(call.target)
        for each in moved:
            self.made.discard(each)
            self._make(call.target + each.removeprefix(call.path))
        self.folders -= folders
        self.folders |= {new for each in folders if (new := call.target + each.removeprefix(call.path)) in self.made}

    def _make(self, path: str) -> None:
        if not self.elsewhere(path):
            return
        if path in self.removed:
            self.removed.discard(path)
            self.changed.add(path)
        else:
            self.made.add(path)

    def _change(self, path: str) -> None:
        if path not in self.made and self.elsewhere(path):
            self.changed.add(path)

    def _remove(self, path: str) -> None:
        if path in self.made:
            self.made.discard(path)
            self.folders.discard(path)
        elif self.elsewhere(path):
            self.changed.discard(path)
            self.removed.add(path)


class Outside:
    """The files outside of the watched folders that the pipeline wrote in one test, and how later starts used them."""

    def __init__(self, watched: Sequence[Path], ignored: Sequence[str]) -> None:
        self._elsewhere = Elsewhere(watched, ignored)
        self.named: set[str] = set()
        """The files that were made, changed or removed by starts that came to their end."""
        self._known: set[str] = set()
        """The files that any start made, changed or removed."""
        self._made: set[str] = set()
        """The files that were created by starts that came to their end."""
        self.states: dict[str, Use] = {}

    def changes(self) -> Changes:
        """Return an empty record of what one start changes; the caller must pass it each system call."""
        return Changes(self._elsewhere)

    @contextmanager
    def observed(self, changes: Changes, earlier: Collection[str]) -> Iterator[None]:
        """In a `with` block, observe how one start of the pipeline uses the files that earlier starts left.

        `changes` is the record of what this start changes. Inside the block, the caller passes each system call to
        `changes`, and sets `changes.whole` if the start came to its end. This method reads the record when the block
        ends. `earlier` are the files that earlier starts of the same run made.
        """
        found = sorted(each for each in self._known if os.path.lexists(each))
        # Unlike those of `Path`, these two functions never raise.
        files = [Path(each) for each in found if os.path.isfile(each) and not os.path.islink(each)]  # noqa: PTH113, PTH114
        with FileReads([], files[:MOST]) as reads:
            changes.reads = reads
            yield
            used = {str(each) for each in files if changes.emptied.get(str(each), not reads.is_only_written(each))}
            for each in found:
                again = changes.whole and each in earlier and not reads.use(Path(each)).opened
                use = Use.READ if each in used else self._use(each, changes, again=again)
                if use is not None:
                    self.states.setdefault(each, use)
            changes.reads = None
        self._known |= changes.made | changes.changed | changes.removed
        if changes.whole:
            self.named |= changes.all
            self._made |= changes.made - changes.folders

    def _use(self, path: str, changes: Changes, *, again: bool) -> Use | None:
        """Return how a start used the file `path` without reading it; None if nothing suggests that the file is state.

        Either the start changed the file again. Or it left the file alone, although starts that do not find the file
        make it; so perhaps the start checked whether the file exists. This second use counts only with `again`, which
        says that an earlier start of the same run made the file, and that this start came to its end without opening
        the file.
        """
        touched = path in changes.changed or path in changes.removed or path in changes.made
        if touched and path in self.named:
            return Use.CHANGED
        return Use.LEFT_ALONE if again and path in self._made and not touched else None

    def add(self, other: "Outside", there: Path, here: Path) -> None:
        """Add the state files that `other` found in the copy `there`, with paths as in the user's folder `here`."""

        def usual(path: str) -> str:
            below = Path(path).is_relative_to(there.parent)
            return os.path.normpath(here / os.path.relpath(path, there)) if below else path

        for path, use in other.states.items():
            self.states.setdefault(usual(path), use)

    def notes(self) -> list[str]:
        """Return a note, in a list, on files that the pipeline writes outside of the watched folders; otherwise []."""
        note = (
            f"the pipeline also writes outside of the watched folders: {_listed(self.named)}; --watch DIR tests it, "
            "--ignore GLOB says that it does not matter"
        )
        return [note] if self.named else []

    def doubt(self) -> str:
        """Return why state outside of the watched folders makes the guarantee unknown; empty without such state."""
        if not self.states:
            return ""
        first = min(self.states, key=lambda path: (list(Use).index(self.states[path]), path))
        others = f" (and so with {len(self.states) - 1} more)" if len(self.states) > 1 else ""
        return (
            f"the pipeline keeps state outside of the watched folders, where the test never kills: {_short(first)}, "
            f"{self.states[first]}{others}; --watch {_short(str(Path(first).parent))} tests it, --ignore GLOB says "
            "that nobody depends on it"
        )


def _short(path: str) -> str:
    home = os.path.expanduser("~")  # noqa: PTH111 - it cannot fail
    return f"~{path.removeprefix(home)}" if path.startswith(f"{home}/") else path


def _listed(paths: Iterable[str]) -> str:
    alike = {mask(path, entries=False): _short(path) for path in sorted(paths, reverse=True)}
    names = sorted(alike.values())
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return ", ".join(names[:FEW]) + more
