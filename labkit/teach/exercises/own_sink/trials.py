"""One trial of a learner's sink: a simulated engine hands it batches, a real process has its store, and dies.

The engine is Spark's rule in a few lines: a batch that is not noted as finished comes again after a restart, under its
number, with the same rows in any order. The process with the store is `store`, and it gets a real SIGKILL. Another one
reads after every request, as a reader who connects at that moment. What was read is judged by `labkit.core.judge`.
"""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from labkit.core.errors import LabError
from labkit.core.judge import Verdict, judge
from labkit.crashtest.rows import Rows, Seen, Shape, named
from labkit.crashtest.samples import Sample, history
from labkit.host.processes.own_python import own_python
from labkit.teach.exercises.asking import Asker, Unusable, shown
from labkit.teach.exercises.contract import Answer, Plain

PROGRAM = Path(__file__).with_name("store.py")
MEGABYTES = 16
"""Of the largest file of a store; its process may have sixteen times as much memory."""
PROCESSOR_SECONDS = 2
"""Of one process; an endless statement ends with them, however busy the machine is."""
LONGEST = 60.0
"""Seconds of one request: longer than a machine is ever busy with something else."""
LOCKED = 1.0
"""Seconds until a lock that nobody takes back counts as held for ever."""
MOST_REQUESTS = 40
"""Requests of one batch."""
TORN = 0.5
"""The part of a file that is written when a kill comes in the middle of it; nothing of it in batches behind the first.
"""
ALLOWED = {"table": {"execute": 2}, "folder": {"names": 0, "read": 1, "write": 2, "rename": 2, "remove": 1}}
"""How many arguments each request of a store has."""
Row = dict[str, Plain]
Batches = Sequence[Sequence[Row]]
WITHOUT = "without a crash"
FENCED, WRITTEN = "fenced", "written"
"""What a sink returns to a writer that is not the newest any more, and to the newest; only writers have epochs."""


CHANGES = (
    "asked for something else when it was run again with the same answers: a sink that is repeated must not depend on "
    "chance, on a clock, or on what it keeps in memory."
)


@dataclass(frozen=True)
class Steps:
    """An answer whose calls are steps of a sink, for `Asker`."""

    answer: Answer

    def value(self) -> Plain:
        """The constant, which a sink is not."""
        return self.answer.value()

    def step(self, kind: str, known: Plain, arguments: Plain) -> Plain:
        """What the sink asks for next."""
        return self.answer.step(kind, known, arguments)

    def call(self, *arguments: Plain) -> Plain:
        """The same, for who knows calls only."""
        kind, known, given = arguments
        return self.answer.step(str(kind), known, given)


class Broken(Exception):
    """A trial that cannot go on through the sink's fault; the message is a sentence without its end."""


class StoreServer:
    """Forks processes that have a store open. Whatever ends this process ends them all."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                own_python("-I", "-S", str(PROGRAM), str(MEGABYTES), str(PROCESSOR_SECONDS)),
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={"PATH": os.environ.get("PATH", os.defpath)},
            )

    def start(self, kind: str, folder: Path) -> "StoreProcess":
        """A new process with this store."""
        ours, theirs = socket.socketpair()
        with theirs:
            asked = json.dumps([kind, str(folder)]).encode()
            socket.send_fds(self._control, [asked], [theirs.fileno()])
            said = self._control.recv(100)
        if not said:
            ours.close()
            raise LabError("The process of the store did not start.")
        return StoreProcess(ours, int(said))

    def close(self) -> None:
        """Ends the server; every process that it has forked ends with its connection."""
        self._control.close()
        self._process.wait()


class StoreProcess:
    """The process that has a store open."""

    def __init__(self, connection: socket.socket, pid: int) -> None:
        self._connection, self._pid = connection, pid
        self._read = b""
        # Whoever is stopped or killed while it opens the store may hold a lock that no sink has asked for.
        self.ask("ready")

    def ask(self, *request: Plain) -> list[Any]:
        """What came of a request. Raises `Broken` where nothing comes: it took too long, or too much."""
        end = time.monotonic() + LONGEST
        try:
            self._connection.settimeout(LONGEST)
            self._connection.sendall(json.dumps(request).encode() + b"\n")
            while b"\n" not in self._read:
                self._connection.settimeout(max(0.001, end - time.monotonic()))
                more = self._connection.recv(1 << 16)
                if not more:
                    raise BrokenPipeError
                self._read += more
        except TimeoutError:
            raise Broken(f"{_said(request)} took longer than {LONGEST:.0f} s") from None
        except OSError:
            raise Broken(
                f"{_said(request)} ended the process of the store: it took more than {PROCESSOR_SECONDS} s "
                "of a processor, or too much memory"
            ) from None
        line, _, self._read = self._read.partition(b"\n")
        said: list[Any] = json.loads(line)
        return said

    def kill(self) -> None:
        """A real SIGKILL; returns when the process is gone, and its locks with it."""
        if self._connection.fileno() < 0:  # it is gone already
            return
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        self._connection.settimeout(None)
        with suppress(OSError):
            while self._connection.recv(1 << 16):
                pass
        self._connection.close()
        # The kernel closes one file after the other, so the store may be locked still; the number of a process goes
        # last.
        with suppress(ProcessLookupError):
            while True:
                os.kill(self._pid, 0)
                time.sleep(0.0001)

    def stop(self) -> None:
        """A real SIGSTOP: its files, locks and transaction stay as they are."""
        os.kill(self._pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """A real SIGCONT."""
        os.kill(self._pid, signal.SIGCONT)


def _said(request: Sequence[Plain]) -> str:
    """A request as a learner wrote it, without what would only repeat the rows."""
    name, *arguments = request
    if name == "execute":
        return str(arguments[0])
    return f"{name}({', '.join(shown(each)[:60] for each in arguments)})"


class Kill(NamedTuple):
    """Where the process dies: before request `at` of a delivery of `batch`; behind the last one: the sink has
    returned.
    """

    batch: int
    at: int
    torn: bool = False
    """In the middle of that request, which writes a file."""


@dataclass
class Story:
    """What happened in one trial."""

    samples: list[Sample] = field(default_factory=list)
    stuck: str = ""
    """What the sink raised twice for the same batch; empty: it went on."""
    told_wrong: str = ""
    """Which writer got another text back than it should; empty: none, or only one writer was there."""
    unreadable: str = ""
    """Why a reader could not read; empty: it could."""
    left_over: list[str] = field(default_factory=list)
    deliveries: list[int] = field(default_factory=list)
    """The number of requests of each delivery of a batch, in order."""
    requests: list[str] = field(default_factory=list)
    """Everything that was asked for and performed, in order, in words."""
    kills: list[str] = field(default_factory=list)
    """Each kill in words."""
    states: list[str] = field(default_factory=list)
    """What the store held behind each kill, as JSON."""


class Ended(NamedTuple):
    """How a delivery ended."""

    how: str
    """`returned`, `raised`, `killed` or `stopped`."""
    said: str = ""


class Delivery:
    """One batch, handed to the sink in one process, request by request."""

    def __init__(self, trial: "Trial", process: StoreProcess, arguments: Sequence[Plain]) -> None:
        self.process, self.trial, self._arguments = process, trial, arguments
        self._known: list[Plain] = []
        self.ended: Ended | None = None

    @property
    def number(self) -> int:
        """The number of requests that were performed."""
        return len(self._known)

    def next(self) -> list[Any] | None:
        """The next request; None: there is none any more, see `ended`. Raises `Unusable`."""
        ask, kind = self.trial.ask, self.trial.kind
        said = ask(kind, [*self._known], [*self._arguments])
        if not isinstance(said, list) or not said:
            raise Unusable(f"{ask.name} gave {shown(said)}, which is no request.")
        if said[0] == "differs":
            raise Unusable(f"{ask.name} {CHANGES}")
        if said[0] != "do":
            how = "returned" if said[0] == "end" else "raised"
            self.ended = Ended(how, str(said[1] or "") if len(said) > 1 else "")
            return None
        request = said[1] if len(said) > 1 else None
        if not _is_request(kind, request):
            raise Unusable(f"{ask.name} asked for {shown(request)}, which no {kind} does.")
        assert isinstance(request, list)
        if self.number >= MOST_REQUESTS:
            raise Unusable(f"{ask.name} asks for more than {MOST_REQUESTS} things in one batch: does a loop never end?")
        return request

    def finish(self) -> Ended:
        """Performs whatever the sink still asks for."""
        while (request := self.next()) is not None:
            self.perform(request)
        assert self.ended is not None
        return self.ended

    def perform(self, request: list[Any]) -> None:
        """Has the store do it, and notes the answer for the sink. Raises `Broken`."""
        answer = self.process.ask(*request)
        if answer[0] == "raised" and not answer[1]:
            raise Broken(f"{_said(request)} failed: {answer[2]}")
        self._known.append([request, answer])
        self.trial.story.requests.append(_said(request))
        self.trial.look()


def _is_request(kind: str, request: Plain) -> bool:
    """Whether a store of this kind does it. What a sandbox says may be anything."""
    if not isinstance(request, list) or not request or type(request[0]) is not str:
        return False
    return ALLOWED[kind].get(request[0]) == len(request) - 1


class Trial:
    """A store, its reader, and an engine that hands batches to the sink."""

    def __init__(self, server: StoreServer, ask: Asker, kind: str, folder: Path) -> None:
        self.ask, self.kind, self.folder = ask, kind, folder
        self.story = Story()
        self._server = server
        self._started: list[StoreProcess] = []
        self._reader = self.start()
        self._driver = 1
        self._process: StoreProcess | None = None

    def start(self) -> StoreProcess:
        """One more process with this store, which lives until the trial is over at most."""
        started = self._server.start(self.kind, self.folder)
        self._started.append(started)
        return started

    def process(self) -> StoreProcess:
        """The process of the driver that runs now."""
        self._process = self._process or self.start()
        return self._process

    def restart(self) -> None:
        """Kills the process; the next batch is handed over in a new one."""
        if self._process is not None:
            self._process.kill()
            self._process, self._driver = None, self._driver + 1

    def close(self) -> None:
        """Ends every process."""
        for each in self._started:
            each.kill()

    def look(self, moment: str = "") -> None:
        """Reads as somebody would who connects now. Raises `Broken` where that is not possible."""
        said = self._reader.ask("see")
        if said[0] == "raised":
            # Where it is locked, the reader waits, and reads a little later.
            if "locked" not in said[2]:
                self.story.unreadable = said[2]
                kills = self.story.kills
                behind = f"killed in {kills[-1]}: " if kills else ""
                raise Broken(f"{behind}a reader could not read: {said[2]}")
            return
        seen = tuple(_row(row) for row in said[1])
        samples = self.story.samples
        if moment or not samples or samples[-1].seen != seen:
            samples.append(Sample(len(samples), self._driver, seen, moment))

    def deliver(self, arguments: Sequence[Plain], batch: int, kill: Kill | None) -> Ended:
        """Hands a batch to the sink, which is killed where `kill` says so."""
        delivery = Delivery(self, self.process(), arguments)
        while (request := delivery.next()) is not None:
            if kill is not None and kill.at == delivery.number:
                half = kill.torn and request[0] == "write"
                if half:
                    self.process().ask(*request, 0.0 if batch else TORN)
                where = "in the middle of" if half else "before"
                self._crash(f"batch {batch}, {where} {_said(request)}")
                return Ended("killed")
            delivery.perform(request)
        self.story.deliveries.append(delivery.number)
        assert delivery.ended is not None
        if kill is not None and kill.at == delivery.number and delivery.ended.how == "returned":
            self._crash(f"batch {batch}, when the sink had returned")
            return Ended("killed")
        return delivery.ended

    def _crash(self, where: str) -> None:
        self.restart()
        self.story.kills.append(where)
        self.look(f"crash {len(self.story.kills)}")
        self.story.states.append(json.dumps(self._reader.ask("state")))

    def run(self, query: Sequence[Plain], batches: Batches, kills: Sequence[Kill] = (), first: int = 0) -> bool:
        """Hands over the batches from `first` on, each until it is noted as finished. False: the job is stuck."""
        waiting, raised, again = list(kills), 0, False
        number = first
        while number < len(batches):
            kill = waiting[0] if waiting and waiting[0].batch == number else None
            rows: list[Plain] = [*batches[number]]
            if again:
                rows.reverse()
            ended = self.deliver([*query, number, rows], number, kill)
            if ended.how == "returned":
                if isinstance(query[0], int) and ended.said != WRITTEN:
                    got = f'"{ended.said}"' if ended.said else "nothing"
                    self.story.told_wrong = f'the newest writer got {got} back, and not "{WRITTEN}"'
                number, raised, again = number + 1, 0, False
                continue
            again = True
            if ended.how == "killed":
                waiting.pop(0)
                continue
            raised += 1
            self.restart()
            if raised == 2 or not self.story.kills:
                self.story.stuck = ended.said
                return False
        return True

    def finish(self) -> Story:
        """The story, with what everybody can read in the end."""
        end = time.monotonic() + LOCKED
        self.look("end")
        while not self.story.samples or self.story.samples[-1].moment != "end":
            if time.monotonic() > end:
                raise Broken("in the end nobody can read: the sink still holds a lock")
            self.look("end")
        said = self._reader.ask("left_over")
        if said[0] == "gave":
            self.story.left_over = said[1]
        return self.story


def _row(row: Sequence[Any]) -> Seen:
    """A row as the judge knows it; one of other types is a row that nobody has sent."""
    if [type(each) for each in row] == [int, str, int]:
        return Seen(*row)
    return Seen(-1, shown(list(row)), 0)


@contextmanager
def stores() -> Iterator[StoreServer]:
    """A server for the trials of one check."""
    server = StoreServer()
    try:
        yield server
    finally:
        server.close()


@contextmanager
def trial(server: StoreServer, ask: Asker, kind: str) -> Iterator[Trial]:
    """A trial on an empty store; nothing is left of it."""
    with TemporaryDirectory(prefix="labkit-own-sink-") as folder:
        begun = Trial(server, ask, kind, Path(folder))
        try:
            yield begun
        finally:
            begun.close()


def verdict_of(story: Story, batches: Batches) -> Verdict:
    """What the one judge says of a story in which these batches were handed over."""
    rows = Rows(
        [
            [{"id": row["id"], "key": row["item"], "amount": row["amount"]} for row in batch]
            # A second query may have smaller numbers, and the judge reads in their order.
            for batch in sorted(batches, key=lambda each: int(str(each[0]["id"])))
        ]
    )
    due = rows.expected()
    return judge([named(each, Shape.ROWS) for each in due], history(story.samples, rows, Shape.ROWS, due))


class Tried(NamedTuple):
    """One trial that is over."""

    what: str
    """What was done to the job, in words."""
    story: Story
    due: Batches
    """All batches that were handed over, in order."""


Runs = dict[tuple[int, tuple[Kill, ...]], Tried]
"""Runs of one query that were made already, by the number of its batches and the kills: the same run comes out the
same.
"""


class Bench(NamedTuple):
    """What every trial of one check needs."""

    server: StoreServer
    ask: Asker
    kind: str
    batches: Batches
    query: Sequence[Plain]
    """What a sink is told before the number of a batch: the query, and a writer's epoch before it."""
    others: Batches
    """The batches of another query."""
    other: Sequence[Plain]
    known: Runs
    """Several axes look at the same runs."""

    def run(self, kills: Sequence[Kill] = ()) -> Tried:
        """One query from its first batch to its last, killed at these places."""
        key = len(self.batches), tuple(kills)
        if key not in self.known:
            with trial(self.server, self.ask, self.kind) as begun:
                begun.run(self.query, self.batches, kills)
                self.known[key] = told(begun, self.batches)
        return self.known[key]


def told(begun: Trial, due: Batches) -> Tried:
    """A trial that is over."""
    story = begun.finish()
    what = "; then ".join(f"killed in {each}" for each in story.kills) or WITHOUT
    return Tried(what, story, due)
