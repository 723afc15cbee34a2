"""Compute the states in which a loss of power may leave a pipeline's folders, at any point of a recorded run.

    with recording([folder]) as journal:
        journal.watch(["sh", "-c", "..."], folder=folder, environment=os.environ, output=log)
        for state in states_after_power_cut(journal, point):
            state.build([somewhere])

Each point has up to five extreme states, by the rules of `labkit.crashtest.blackbox.disk`. Every other order in which
writes may reach the disk lies between these extremes and is not tried. Memory-mapped files, io_uring, data that
`splice` moves out of a pipe, and nameless files that get a name are not modelled; if a run uses them, the result says
so. Times, modes, owners and extended attributes are not modelled either: every state has those of the run. A write with
O_DIRECT counts like any other, so the model may lose more of it than a disk would.
"""

import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from labkit.crashtest.blackbox.disk import (
    Content,
    Disk,
    Folder,
    Look,
    Naming,
    Node,
    Read,
    Tree,
    alike,
    build,
    bytes_of,
    lost,
    now_named,
    same,
    tree,
)
from labkit.crashtest.blackbox.durability import is_rebuilt
from labkit.host.syscalls.calls import Answer, Call, CallKind, WatchedRun
from labkit.host.syscalls.watching import watch

ALL_LOST, NAMES_KEPT, CONTENTS_KEPT = "all lost", "names kept", "contents kept"
NEWEST_KEPT, TORN = "newest kept", "torn"
EXTREMES = {
    ALL_LOST: "everything that was not synced is lost",
    NAMES_KEPT: "names reached the disk, and contents that were not synced did not",
    CONTENTS_KEPT: "contents reached the disk, and names in folders that were not synced did not",
    NEWEST_KEPT: "only the newest of all that was not synced reached the disk",
    TORN: "everything reached the disk, but only half of the newest write that was not synced",
}
"""The extreme states that are tried at each point, each with what reached the disk in it and what was lost."""


class Entry(NamedTuple):
    """A recorded system call; `brought` is the content of a file that it moves into the recorded folders, or None."""

    call: Call
    brought: Content | None = None


class Journal:
    """The recorded system calls of one run, from which labkit computes what a power cut may leave; see `recording`."""

    def __init__(self, copies: Mapping[Path, Path]) -> None:
        """Prepare to record the calls that concern some folders; `copies` maps each to its copy before the run."""
        self._copies = copies
        self.entries: list[Entry] = []
        """The calls that concern the folders, in order; point n is just before entry n, counted from 0."""
        self.watched: WatchedRun

    def watch(
        self,
        command: Sequence[str],
        *,
        decide: Callable[[Call], Answer] = lambda _call: Answer.GO_ON,
        contents: bool = True,  # as `watch`; the record needs them always
        **more: Any,
    ) -> WatchedRun:
        """Run a command, and record its system calls that change the folders.

        `decide` is asked before each call whether it may happen; only calls that happen are recorded. `contents` is
        ignored, since the record always needs the bytes of writes. `more` are other arguments of
        `labkit.host.syscalls.watching.watch`.
        """

        def record(call: Call) -> Answer:
            answer = decide(call)
            if answer is Answer.GO_ON and self._concerns(call):
                self.entries.append(Entry(call, self._brought(call)))
            return answer

        self.watched = watch(command, decide=record, contents=True, **more)
        return self.watched

    def disk(self, point: int) -> Disk:
        """Return a model of the folders and their disk just before the recorded call number `point`, from 0."""
        disk = Disk(self._copies)
        for entry in self.entries[:point]:
            disk.take(entry.call, entry.brought)
        return disk

    def not_modelled(self) -> dict[str, tuple[str, ...]]:
        """Return the recorded calls whose result on the disk is unknown, by name, with their files; {} is ideal."""
        disk = self.disk(len(self.entries))
        unknown = {name: tuple(sorted(set(of))) for name, of in disk.not_modelled.items()}
        folders = tuple(map(str, self._copies))
        for name in self.watched.unseen:
            paths = self.watched.unseen_paths.get(name, ())
            own = tuple(each for each in paths if each.startswith(folders) and not is_rebuilt(each))
            if own or not paths:
                unknown[name] = own
        return unknown

    def unexplained(self) -> list[str]:
        """Return the files that differ from what the recorded calls should have made of them.

        Call this before anything else changes files.
        """
        disk = self.disk(len(self.entries))
        different: list[str] = []
        for folder, root in disk.roots.items():
            ours, other = (tree(root, now_named), tree(Disk({folder: folder}).roots[folder], now_named))
            different += [
                f"{folder}/{name}"
                for name in sorted(ours.keys() | other.keys())
                if (name not in ours or name not in other or not same(ours[name], other[name])) and not is_rebuilt(name)
            ]
        return different

    def _concerns(self, call: Call) -> bool:
        if call.name == "sync":
            return True
        return call.kind not in (CallKind.SEND, CallKind.EXIT) and (
            self._is_inside(call.path) or self._is_inside(call.target)
        )

    def _brought(self, call: Call) -> bytes | None:
        moves = call.kind in (CallKind.RENAME, CallKind.LINK)
        if not moves or self._is_inside(call.path) or "symlink" in call.name:
            return None
        with suppress(OSError):
            return Path(call.path).read_bytes()
        return None

    def _is_inside(self, path: str) -> bool:
        return any(PurePosixPath(path).is_relative_to(each) for each in self._copies)


@contextmanager
def recording(folders: Sequence[Path]) -> Iterator[Journal]:
    """Provide a journal, in a `with` block; its `watch` runs a command and records how it changes these folders."""
    with tempfile.TemporaryDirectory() as scratch:
        copies = {}
        for number, folder in enumerate(each.resolve() for each in folders):
            copies[folder] = Path(scratch) / str(number)
            if folder.is_dir():
                shutil.copytree(folder, copies[folder], symlinks=True, ignore=_no_file)
            else:  # the command makes it
                copies[folder].mkdir()
        yield Journal(copies)


@dataclass(frozen=True)
class State:
    """A state in which the folders may be when the power returns after a power cut."""

    extreme: str
    sentence: str
    trees: tuple[Tree, ...]
    """The contents of each folder, in the order of the journal's folders."""

    def build(self, folders: Sequence[Path]) -> None:
        """Make each of these real folders equal to this state; files that are equal already stay untouched."""
        for folder, wanted in zip(folders, self.trees, strict=True):
            build(folder, wanted)

    def files(self, number: int = 0) -> dict[str, bytes]:
        """Return the files of one folder (index `number`) in this state: their bytes by relative path."""
        return {
            name: bytes_of(content) for name, content in self.trees[number].items() if isinstance(content, bytes | Path)
        }


def states_after_power_cut(journal: Journal, point: int) -> list[State]:
    """Return the different states that a power cut may leave just before call number `point` of a recorded run.

    The list is empty if everything had reached the disk, because a power cut then leaves the same as a SIGKILL.
    Shared memory of databases is left out, because the first process to open them makes it anew.
    """
    disk = journal.disk(point)
    current = tuple(_lasting(tree(root, now_named)) for root in disk.roots.values())
    states: list[State] = []
    for extreme, trees in _extremes(disk):
        others = [current, *(state.trees for state in states)]
        if not any(alike(trees, other) for other in others):
            sentence = f"{EXTREMES[extreme]}: {lost(current, trees)}."
            states.append(State(extreme, sentence, trees))
    return states


def _extremes(disk: Disk) -> Iterator[tuple[str, tuple[Tree, ...]]]:
    roots = list(disk.roots.values())

    def trees(names: Look, contents: Read) -> tuple[Tree, ...]:
        return tuple(_lasting(tree(root, names, contents)) for root in roots)

    yield ALL_LOST, trees(lambda folder: folder.on_disk, lambda file: file.on_disk)
    yield NAMES_KEPT, trees(now_named, lambda file: file.on_disk)
    yield CONTENTS_KEPT, trees(lambda folder: folder.on_disk, lambda file: file.now)
    if disk.on_its_way:
        newest = disk.on_its_way[-1]
        brought = {id(each.node) for each in newest.entries}
        names = _with(newest)
        yield (NEWEST_KEPT, trees(names, lambda file: file.now if id(file) in brought else file.on_disk))
    torn = max(
        (file for file in disk.files() if file.newest and file.newest.size > 1),
        key=lambda file: file.newest.number if file.newest else 0,
        default=None,
    )
    if torn is not None and torn.newest is not None:
        half = torn.newest.half(torn.now)
        yield TORN, trees(now_named, lambda file: half if file is torn else file.now)


def _lasting(whole: Tree) -> Tree:
    return {name: content for name, content in whole.items() if not is_rebuilt(name)}


def _with(naming: Naming) -> Look:
    def names(folder: Folder) -> Mapping[str, Node]:
        visible = dict(folder.on_disk)
        for entry in naming.entries:
            if entry.folder is folder and entry.node is None:
                visible.pop(entry.name, None)
            elif entry.folder is folder and entry.node is not None:
                visible[entry.name] = entry.node
        return visible

    return names


def _no_file(folder: str, names: Sequence[str]) -> set[str]:
    kinds = {name: (Path(folder) / name).lstat().st_mode for name in names}
    wanted = (stat.S_ISREG, stat.S_ISDIR, stat.S_ISLNK)
    return {name for name, mode in kinds.items() if not any(of(mode) for of in wanted)}
