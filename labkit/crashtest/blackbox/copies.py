"""Run a pipeline several times in parallel, each time in its own copy of the user's folder, if runs do not interfere.

A trial decides: the pipeline runs in all copies at the same time without a crash. No two of these runs may send to the
same server or change the same file, and none may change the user's own folder. Every reader must return the rows of its
own copy, and no rows after that copy was emptied.
"""

import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from labkit.core.errors import InvalidInput, JobFailed
from labkit.crashtest.blackbox.execution import Beside
from labkit.crashtest.blackbox.healthy import Healthy
from labkit.crashtest.blackbox.reading import HelperCommands
from labkit.crashtest.blackbox.runs import Harness, counted, steady
from labkit.crashtest.blackbox.settings import PipelineSettings
from labkit.crashtest.harness.leftovers import MARK, own_folder
from labkit.crashtest.harness.reader import ReaderFailed
from labkit.crashtest.verdict import Result
from labkit.host.cores import cores
from labkit.host.syscalls.calls import Call, CallKind

FEWEST_RUNS = 4
"""The smallest number of runs for which copies are made, since their trial costs time as well."""
BYTES = 2_500_000_000
"""The memory reserved for each run in bytes, enough for an engine on the JVM with its workers."""
MOST_FILES, MOST_BYTES = 2_000, 200_000_000
"""The largest folder that is copied: its number of files, and their size in bytes."""
NOT_THE_SAME = "in a copy of this folder the pipeline behaves differently"
CACHES = "__pycache__"
"""Folders that copies may share: Python replaces a cache file by a rename, and checks it when reading."""


class Shared(Exception):
    """Raised if runs of a pipeline cannot be parallel; the message says why."""


def how_many(settings: PipelineSettings) -> int:
    """Return how many runs may be parallel: the value of `--parallel`, or as many as this machine can bear."""
    memory = psutil.virtual_memory().available // BYTES
    return settings.parallel or max(1, min(cores(), memory))


def moved(settings: PipelineSettings, folder: Path) -> PipelineSettings:
    """Return the settings with every path in the pipeline's folder replaced by the same path in the copy `folder`.

    Raises `Shared` if a path lies outside of the pipeline's folder, because all copies would then use the same file.
    """

    def there(path: Path, option: str) -> Path:
        if not path.is_relative_to(settings.folder):
            raise Shared(
                f"{option} {path} lies outside of the pipeline's folder {settings.folder}; each run would get a copy "
                "of that folder, but all runs would share this path"
            )
        return folder / path.relative_to(settings.folder)

    reader, checkpoint = settings.reader, settings.checkpoint
    if reader is not None:
        reader = replace(reader, file=str(there(Path(reader.file), "--reader")))
    return replace(
        settings,
        folder=folder,
        reader=reader,
        watched=tuple(there(each, "--watch") for each in settings.watched),
        checkpoint=checkpoint and there(checkpoint, "--checkpoint"),
    )


@contextmanager
def copies(main: Harness, healthy: Healthy, count: int, apart: Path) -> Iterator[Sequence[Harness]]:
    """Provide harnesses for `count` copies of the user's folder, for parallel runs, in a `with` block.

    `main` is the harness of the user's own folder, and `healthy` its run without a crash. `apart` is the test's own
    folder, which is not copied. Raises `Shared` if parallel runs would interfere with each other.
    """
    settings = main.settings
    moved(settings, apart)
    _measure(settings.folder, apart)
    try:
        main.helpers.begin()
    except (JobFailed, ReaderFailed, InvalidInput) as error:
        raise Shared(str(error)) from None
    beside = Beside()
    with ExitStack() as stack:
        stack.callback(beside.stop.set)
        place = stack.enter_context(own_folder()).resolve()
        all_copies = []
        for number in range(1, count + 1):
            folder, mark = place / str(number) / settings.folder.name, f"{main.mark}-{number}"
            _copy(settings.folder, folder, apart)
            in_copy = moved(settings, folder)
            try:
                helpers = stack.enter_context(HelperCommands(in_copy, folder.parent, {MARK: mark}))
            except InvalidInput as error:
                raise Shared(str(error)) from None
            copy = Harness(in_copy, helpers, main.folder / f"beside-{number}", mark)
            copy.copy_findings(main)
            copy.beside = beside
            all_copies.append(copy)
        _check(main, healthy, all_copies)
        yield all_copies


def _measure(folder: Path, apart: Path) -> None:
    files = size = 0
    for place, folders, names in os.walk(folder):
        folders[:] = [each for each in folders if Path(place, each) != apart]
        for name in names:
            files += 1
            size += Path(place, name).lstat().st_size
        if files > MOST_FILES or size > MOST_BYTES:
            raise Shared(
                f"{folder} has more than {MOST_FILES} files or {MOST_BYTES // 1_000_000} MB, too much to "
                "copy for each run"
            )


def _copy(folder: Path, copy: Path, apart: Path) -> None:
    def left_out(place: str, names: list[str]) -> list[str]:
        return [name for name in names if Path(place, name) == apart]

    try:
        shutil.copytree(folder, copy, symlinks=True, ignore=left_out)
    except (OSError, shutil.Error) as error:
        raise Shared(f"{folder} cannot be copied ({error})") from None


def _check(main: Harness, healthy: Healthy, all_copies: Sequence[Harness]) -> None:
    """Run the pipeline in all copies at the same time; raise `Shared` if the runs interfere with each other."""
    with ThreadPoolExecutor(len(all_copies)) as pool:
        tried = list(pool.map(lambda copy: _tried(copy, healthy), all_copies))
    times = Counter(place for places, _ in tried for place in places)
    common = [place for place, count in times.items() if count > 1]
    home = [place for place in times if Path(place).is_relative_to(main.settings.folder)]
    if home or common:
        used_twice = min(home or common)
        raise Shared(f"runs in two copies of the folder would both use {used_twice}, so they would interfere")
    if why := next((why for _, why in tried if why), ""):
        raise Shared(why)
    if main.helpers.read():
        raise Shared("the pipeline ran in a copy of its folder, and its rows appeared outside of that copy")
    for copy in all_copies:
        _check_emptied(copy)


def _tried(harness: Harness, healthy: Healthy) -> tuple[set[str], str]:
    """Run the pipeline in one copy of the user's folder, without a crash, while other copies do the same.

    Return two values. The first is a set of the servers to which the run sent data, and of the files outside of the
    copy that it changed. The second is a text that says how the run differed from `healthy`, empty if it did not.
    """
    places: set[str] = set()

    def meet(call: Call) -> None:
        if call.kind is CallKind.SEND:
            places.add(call.target)
            return
        for path in filter(None, (call.path, call.target)):
            is_inside = Path(path).is_relative_to(harness.settings.folder)
            if not (is_inside or path.startswith(("/dev/", "/proc/")) or CACHES in path):
                places.add(path)

    usual, quiet = healthy.run.starts[0], harness.beside
    harness.beside = Beside(meet, quiet.stop)
    try:
        with harness.run("healthy", "no crash, beside others") as run:
            start = harness.start(run)
            harness.settle()
            steady(harness.helpers.read)
            harness.look(run, "end")
    except (JobFailed, ReaderFailed, InvalidInput) as error:
        # For example, a reset finds files that another copy has just made.
        return places, f"{NOT_THE_SAME}: {str(error).rstrip('.')}"
    finally:
        harness.beside = quiet
    if run.unknown:
        return places, f"{NOT_THE_SAME}: {run.unknown.rstrip('.')}"
    ended = (start.over, start.watched.status)
    alike = {each.family for each in start.effects} == {each.family for each in healthy.effects}
    same = counted(run.values) == counted(healthy.run.values)
    if ended != (usual.over, usual.watched.status) or not alike or not same:
        return places, NOT_THE_SAME
    silence, longer = harness.silence, start.silence
    harness.silence = replace(
        silence, before=max(silence.before, longer.before), between=max(silence.between, longer.between)
    )
    return places, ""


def at_home(result: Result, copy: Path, folder: Path) -> Result:
    """Return the result of a run in the folder `copy`; in its texts, the user's own folder replaces `copy`."""

    def named(value: Any) -> Any:
        return value.replace(str(copy), str(folder)) if isinstance(value, str) else value

    return replace(
        result,
        stuck=named(result.stuck),
        notes=tuple(map(named, result.notes)),
        story=tuple(map(named, result.story)),
        evidence=tuple({name: named(value) for name, value in each.items()} for each in result.evidence),
    )


def _check_emptied(copy: Harness) -> None:
    try:
        copy.helpers.begin()
        left = copy.helpers.read()
    except (JobFailed, ReaderFailed, InvalidInput) as error:
        raise Shared(str(error).rstrip(".")) from None
    if left:
        raise Shared(
            "labkit ran the pipeline's reset in a copy of the pipeline's folder, and the reset did not empty that copy"
        )
