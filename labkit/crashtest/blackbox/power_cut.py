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

from labkit.crashtest.blackbox.disk import EXTREMES, Content, Disk, Tree, build, lost, same
from labkit.crashtest.blackbox.durability import is_rebuilt
from labkit.host.syscalls.calls import Answer, Call, CallKind, Decision, WatchedRun
from labkit.host.syscalls.watching import EVERY_KIND, watch


class Entry(NamedTuple):
    """A recorded system call that changes the observed folders.

    If the call moves a file from elsewhere into these folders, `brought` is the file's content; otherwise it is None.
    """

    call: Call
    brought: Content | None = None


class Journal:
    """The recorded system calls of one run, from which labkit computes what a power cut may leave."""

    def __init__(self, copies: Mapping[Path, Path]) -> None:
        """Prepare to record; `copies` maps each observed folder to a copy that was made before the run."""
        self._copies = copies
        self.entries: list[Entry] = []
        """The calls that concern the folders, in order; point n is just before entry n, counted from 0."""
        self.watched: WatchedRun

    def watch(
        self,
        command: Sequence[str],
        *,
        decide: Callable[[Call], Decision] = lambda _call: Answer.GO_ON,
        kinds: frozenset[CallKind] = EVERY_KIND,
        contents: bool = True,
        **how: Any,
    ) -> WatchedRun:
        """Run a command, and record the system calls by which it changes the folders.

        `decide` decides about calls of the given `kinds`; calls of other kinds always happen. The record has the bytes
        of writes, so `contents` is ignored. The other arguments are those of `labkit.host.syscalls.watching.watch`.
        """

        def record(call: Call) -> Decision:
            answer = decide(call) if call.kind in kinds else Answer.GO_ON
            if answer is Answer.GO_ON and self._concerns(call):
                self.entries.append(Entry(call, self._brought(call)))
            return answer

        self.watched = watch(command, decide=record, contents=True, **how)
        return self.watched

    def disk(self, point: int) -> Disk:
        """Return a model of the folders and the disk just before the recorded call number `point`, counted from 0."""
        disk = Disk(self._copies)
        for entry in self.entries[:point]:
            disk.take(entry.call, entry.brought)
        return disk

    def not_modelled(self) -> dict[str, tuple[str, ...]]:
        """Return the recorded calls whose effect on the disk is unknown, each with the files that it concerns."""
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
        """Return the files whose present contents do not follow from the recorded calls.

        Call this method before any other process changes the files.
        """
        real = Disk({folder: folder for folder in self._copies})
        pairs = zip(self.disk(len(self.entries)).trees(), real.trees(), strict=True)
        return [
            f"{folder}/{name}"
            for folder, (ours, other) in zip(self._copies, pairs, strict=True)
            for name in sorted(ours.keys() | other.keys())
            if name not in ours or name not in other or not same(ours[name], other[name])
        ]

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
    """Provide, in a `with` block, a journal that records how a command changes the folders."""
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
    """A state of the watched folders that a power cut may leave."""

    extreme: str
    sentence: str
    trees: tuple[Tree, ...]

    def build(self, folders: Sequence[Path]) -> None:
        for folder, wanted in zip(folders, self.trees, strict=True):
            build(folder, wanted)


def states_after_power_cut(journal: Journal, point: int) -> list[State]:
    """Return the different states that a power cut may leave just before call number `point` of a recorded run.

    The list is empty if everything had reached the disk, because then a power cut leaves the same files as SIGKILL.
    """
    disk = journal.disk(point)
    current = disk.trees()
    states: list[State] = []
    for extreme, trees in disk.extremes():
        if all(lost(other, trees) for other in (current, *(state.trees for state in states))):
            states.append(State(extreme, f"{EXTREMES[extreme]}: {lost(current, trees)}.", trees))
    return states


def _no_file(folder: str, names: Sequence[str]) -> set[str]:
    kinds = {name: (Path(folder) / name).lstat().st_mode for name in names}
    wanted = (stat.S_ISREG, stat.S_ISDIR, stat.S_ISLNK)
    return {name for name, mode in kinds.items() if not any(of(mode) for of in wanted)}
