"""Record the order of a pipeline's durable effects in one run without a crash, and which of them are synced.

The run ends with the command. A command that makes no system call for too long is killed.
"""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from labkit.crashtest.blackbox.durability import ATTRIBUTES, CONTENTS, NAMES, synced_by
from labkit.crashtest.blackbox.effects import Effect, Namer, named_again, unordered
from labkit.crashtest.blackbox.lanes import LANES, Lanes
from labkit.crashtest.blackbox.lines import Lines
from labkit.host.syscalls.calls import Answer, Call, CallKind, WatchedRun
from labkit.host.syscalls.watching import watch
from labkit.sim.rules import Event
from labkit.view.layout import TEXT
from labkit.view.measure import wrap
from labkit.view.spacetime import Diagram, Step, body, size
from labkit.view.svg import document, number, words

LIMIT_SECONDS = 30.0
"""The seconds without a system call after which a command counts as finished and is killed."""
MOST_STEPS = 300
_SYNCED, _UNSYNCED = Event.STEP, Event.DELAY
"""The symbols of effects in a space-time diagram: a dot for synced effects, a diamond for those that are not."""
LEGEND = "Dot: synced, or nothing to sync. Diamond: not synced, a loss of power may take it."


class Line(NamedTuple):
    """One line of a pipeline's record: one call with a durable effect, or several calls of one kind on one file."""

    first: Effect
    lane: str
    times: int
    size: int
    synced: bool | None
    """Whether the effect was synced; None where that has no meaning, as for a sync, a message or the end."""

    def said(self) -> str:
        """Describe the call in a few words: kind, file or server, bytes, number of repetitions, line of Python."""
        kind, place = self.first.kind.value, self.first.file or self.first.where
        if self.first.kind is CallKind.EXIT:
            return f"the command ends with status {self.first.call.size}"
        times = f" ({self.times} times)" if self.times > 1 else ""
        size = f", {self.size} bytes" if self.first.kind in (CallKind.WRITE, CallKind.SEND) else ""
        line = f" at {self.first.line}" if self.first.line else ""
        return f"{kind} {place}{size}{times}{line}"


@dataclass(frozen=True)
class XRay:
    """The record of a pipeline's system calls with durable effects in one run without a crash."""

    command: str
    folders: tuple[Path, ...]
    effects: tuple[Effect, ...]
    lanes: Lanes
    watched: WatchedRun
    silent: bool
    """Whether the command was killed because it made no more system calls."""
    more_notes: tuple[str, ...] = ()

    def lines(self) -> list[Line]:
        """Return the recorded calls in order, with consecutive calls of one kind on one file merged into one line."""
        syncs = synced_by(self.effects)
        rows = [(each, self.lanes.of(each), _lasts(each, sync)) for each, sync in zip(self.effects, syncs, strict=True)]
        lines = []
        for _, group in groupby(rows, key=lambda row: (row[0].kind, row[0].where, row[0].file, *row[1:])):
            alike = list(group)
            first, lane, lasts = alike[0]
            size = sum(each.call.size for each, _, _ in alike)
            lines.append(Line(first, lane, len(alike), size, lasts))
        return lines

    def notes(self) -> Iterator[str]:
        """Yield notes for people who read the record, for example that the pipeline synced nothing."""
        folders = ", ".join(map(str, self.folders))
        lasting = [each for each in self.effects if each.kind is not CallKind.EXIT]
        if not lasting:
            yield f"no durable effect was seen in {folders}: --watch DIR names the folder of output and checkpoint."
        if lasting and not any(each.kind is CallKind.SYNC for each in lasting):
            yield "nothing was synced at all: a loss of power may take any of it, in any order."
        ended = any(each.kind is CallKind.EXIT for each in self.effects)
        if self.silent and ended:
            yield (
                "processes that the command left running did nothing more and did not end, so they were killed; "
                "--limit allows a longer silence."
            )
        elif self.silent:
            yield (
                "the command did nothing more and did not end, so it was killed; its effects up to then are shown, and "
                "--limit allows a longer silence."
            )
        elif self.watched.status:
            yield f"the command ended with status {self.watched.status}, so it may not have done all of its work."
        for name, times in self.watched.unseen.items():
            paths = self.watched.unseen_paths.get(name, ())
            of = f" ({', '.join(paths[:3])})" if paths else ""
            yield f"not followed: {name}, {times} time(s){of}."
        yield from self.more_notes

    def text(self) -> str:
        """Return the record as text for a terminal."""
        lines = self.lines()
        wide = max([4, *(len(line.lane) for line in lines)])
        shown = [
            f"{line.first.call.seconds:9.3f} s  {line.lane:<{wide}}  {with_state(line.said(), line.synced)}"
            for line in lines
        ]
        return "\n".join([f"effects of: {self.command}", *shown, *(f"Note: {n}" for n in self.notes())])

    def to_json(self) -> dict[str, Any]:
        """Return the record as a dict for JSON."""
        syncs = synced_by(self.effects)
        return {
            "command": self.command,
            "folders": [str(folder) for folder in self.folders],
            "status": self.watched.status,
            "lanes": {name: LANES.get(name, "") for name in self.lanes.names()},
            "effects": [self._row(each, sync) for each, sync in zip(self.effects, syncs, strict=True)],
            "unseen": dict(self.watched.unseen),
            "unseen_files": {name: list(of) for name, of in self.watched.unseen_paths.items()},
            "notes": list(self.notes()),
        }

    def _row(self, effect: Effect, sync: Effect | None) -> dict[str, Any]:
        call = effect.call
        return {
            "number": call.number,
            "seconds": round(call.seconds, 4),
            "lane": self.lanes.of(effect),
            "name": effect.name,
            "kind": effect.kind.value,
            "system_call": call.name,
            "path": call.path,
            "target": call.target,
            "bytes": call.size if effect.kind in (CallKind.WRITE, CallKind.SEND) else 0,
            "process": call.process,
            "line": str(effect.line or ""),
            "synced": _lasts(effect, sync),
            "synced_by": sync.call.number if sync else None,
        }

    def picture(self) -> str:
        """Return the record as an SVG document, in which a diamond marks a call that a power cut may undo."""
        every = self.lines()
        shown = every[:MOST_STEPS]
        used = {line.lane for line in shown}
        names = {name: name for name in self.lanes.names() if name in used}
        steps = tuple(drawn(line.lane, with_state(line.said(), line.synced), synced=line.synced) for line in shown)
        legend = LEGEND
        if len(every) > len(shown):
            legend += f" The first {len(shown)} of {len(every)} are shown."
        diagram = Diagram(names, steps)
        page = Page(size(diagram)[0])
        page.draw(diagram)
        page.say(legend)
        page.say_steps(diagram)
        return page.whole(f"Durable effects of {self.command}", self.text())


def with_state(said: str, synced: bool | None) -> str:
    """Return a system call's description with `[synced]` or `[not synced]` after it, unless `synced` is None."""
    if synced is None:
        return said
    return f"{said} [{'synced' if synced else 'not synced'}]"


def drawn(lane: str, sentence: str, *, synced: bool | None) -> Step:
    """Return a system call as a step of a space-time diagram, in the row `lane` and with the text `sentence`.

    The symbol is a diamond if `synced` is False, because a loss of power may then undo the call. Otherwise it is a dot:
    the effect was synced (True), or there is nothing to sync (None).
    """
    return Step(lane, _UNSYNCED if synced is False else _SYNCED, (), sentence)


class Page:
    """An SVG page under construction. Each call of a method adds a text or a diagram below the earlier ones."""

    def __init__(self, wide: float) -> None:
        self._wide, self._high = wide, 0.0
        self._parts: list[str] = []

    def say(self, text: str) -> None:
        for line in wrap(text, TEXT, self._wide - 32) or [""]:
            self._high += 16
            self._parts.append(words(16, self._high, line))

    def draw(self, diagram: Diagram) -> None:
        self._parts.append(f'<g transform="translate(0 {number(self._high)})">{body(diagram)}</g>')
        self._high += size(diagram)[1] + 4

    def say_steps(self, diagram: Diagram) -> None:
        for place, step in enumerate(diagram.steps, start=1):
            self.say(f"{place}. {step.lane}: {step.sentence}")

    def whole(self, title: str, described: str) -> str:
        """Return the SVG document; `described` is a text for readers who do not see the picture."""
        return document("".join(self._parts), self._wide, self._high + 12, title=title, desc=described)


def _lasts(effect: Effect, sync: Effect | None) -> bool | None:
    return sync is not None if effect.kind in CONTENTS | NAMES | ATTRIBUTES else None


class Recorder:
    """Records the durable effects of a command, and kills a command that makes no system call for `limit` seconds."""

    def __init__(self, folders: Sequence[Path], limit: float) -> None:
        self._namer = Namer(folders)
        self._limit = limit
        self.lines = Lines()
        self._last = time.monotonic()
        self.effects: list[Effect] = []
        self.silent = False

    def decide(self, call: Call) -> Answer:
        """Record an intercepted system call, and let it happen."""
        self._last = time.monotonic()
        effect = self._namer.name(call)
        if effect is not None:
            self.effects.append(self.lines.added(effect, Path.cwd()))
        return Answer.GO_ON

    def tick(self) -> Answer:
        """Return KILL if the command has made no system call for `limit` seconds, otherwise GO_ON."""
        self.silent = time.monotonic() - self._last > self._limit
        return Answer.KILL if self.silent else Answer.GO_ON


def xray(command: str, folders: Sequence[Path], output: Path, *, lanes: Lanes, limit: float = LIMIT_SECONDS) -> XRay:
    """Run a shell command once in the current folder, and return the record of its effects on `folders`.

    The command's output goes to the file `output`. The command is killed if it makes no system call for `limit`
    seconds. Raises the same errors as `labkit.host.syscalls.watching.watch`, for example if system calls cannot be
    watched.
    """
    recorder = Recorder(folders, limit)
    watched = watch(
        ["/bin/sh", "-c", command],
        folder=Path.cwd(),
        environment=dict(os.environ),
        output=output,
        decide=recorder.decide,
        tick=recorder.tick,
    )
    namer, notes = Namer(folders, numbered=unordered(recorder.effects)), tuple(recorder.lines.notes())
    effects = tuple(named_again(recorder.effects, namer))
    return XRay(command, tuple(folders), effects, lanes, watched, recorder.silent, notes)
