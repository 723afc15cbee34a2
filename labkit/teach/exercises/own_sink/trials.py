"""Run one trial of a learner's sink: a simulated engine hands it batches, and a real process with its store is killed.

The engine follows Spark's rule: after a restart it repeats a batch that is not recorded as finished, under the same
number, with the same rows in any order. The process with the store runs `store`, and it gets a real SIGKILL. Another
process, the reader, reads the store after every request that may have changed what readers see. So it does not read
after a request that only reads, or inside of a transaction, whose rows SQLite shows to nobody. `labkit.core.judge`
judges the rows that it read.
"""

import hashlib
import json
import os
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from labkit.core.errors import LabError
from labkit.core.judge import Verdict, judge
from labkit.crashtest.rows import Rows, Seen, Shape, named
from labkit.crashtest.samples import Sample, history
from labkit.host.processes.own_python import own_python
from labkit.teach.exercises.asking import Asker, Unusable, shown
from labkit.teach.exercises.contract import Plain

PROGRAM = Path(__file__).with_name("store.py")
MEGABYTES = 16
"""The size in MiB of a store's largest file; its process may use sixteen times as much memory."""
PROCESSOR_SECONDS = 2
"""The number of CPU seconds after which a store's process ends, to stop an endless statement."""
LONGEST = 60.0
"""The number of seconds that a request may take, even on a busy machine."""
LOCKED = 1.0
"""The number of seconds after which a lock counts as never released."""
MOST_REQUESTS, MORE_FOR_A_ROW = 40, 5
"""The largest number of requests in a batch without rows, and how many more there may be for each row."""
TORN = 0.5
"""The fraction of a file that is written if a kill interrupts a write in batch 0; in later batches it is 0."""
ALLOWED = {"table": {"execute": 2}, "folder": {"names": 0, "read": 1, "write": 2, "rename": 2, "remove": 1}}
"""The number of arguments of each request, by kind of store."""
Row = dict[str, Plain]
Batches = Sequence[Sequence[Row]]
WITHOUT = "without a crash"
FENCED, WRITTEN = "fenced", "written"
"""The texts that a sink returns to an older and to the newest writer, if its writers have epochs."""

MADE_ANOTHER_REQUEST = (
    "made another request when it ran again with the same answers: a sink must not depend on chance, on a clock, or on "
    "values that it keeps in memory."
)


class StepAsker(Asker):
    """Asks a learner's sink for its next request.

    The arguments of a call are the kind of store, the requests and replies so far, and the sink's arguments, with the
    rows of the batch. `announced` cannot be used, because a call contains the store's reply to the request before.
    """

    def _reply(self, *arguments: Plain) -> Plain:
        kind, exchanges, batch = arguments
        return self._answer.step(str(kind), exchanges, batch)


class Broken(Exception):
    """A run of a sink cannot continue, because the sink or a request failed.

    The message is a clause without a full stop, so that a caller can put it into a sentence.
    """


class StoreServer:
    """A server that forks processes. Each of them opens one store, and all end when this process ends."""

    def __init__(self) -> None:
        self._idle: list[StoreProcess] = []
        self._control, child_end = socket.socketpair()
        with child_end:
            self._process = subprocess.Popen(
                own_python("-I", "-S", str(PROGRAM), str(MEGABYTES), str(PROCESSOR_SECONDS)),
                stdin=child_end.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={"PATH": os.environ.get("PATH", os.defpath)},
            )

    def start(self, kind: str, folder: Path) -> "StoreProcess":
        """Return a process that has opened the store of this kind in this folder."""
        process = self._idle.pop() if self._idle else self._fork()
        # Wait for the reply, because a process that is killed while it opens the store could hold a lock.
        process.ask("open", kind, str(folder))
        return process

    def take_back(self, process: "StoreProcess") -> None:
        """Close the store that a process has open, and keep the process, which can later open another store."""
        if not process.is_there:
            return
        try:
            process.ask("shut")
        except Broken:
            process.kill()
        else:
            self._idle.append(process)

    def _fork(self) -> "StoreProcess":
        parent_end, child_end = socket.socketpair()
        with child_end:
            socket.send_fds(self._control, [b"+"], [child_end.fileno()])
            reply = self._control.recv(100)
        if not reply:
            parent_end.close()
            raise LabError("The store's process did not start; run the check again.")
        return StoreProcess(parent_end, int(reply))

    def close(self) -> None:
        """End the server and all its processes."""
        for each in self._idle:
            each.kill()
        self._control.close()
        self._process.wait()


class StoreProcess:
    """A process that has a sink's store open and performs the sink's requests, so that it can be killed."""

    def __init__(self, connection: socket.socket, pid: int) -> None:
        self._connection, self._pid = connection, pid
        # The kernel watches the time, because Python's own timeouts cost two more system calls for each reply.
        longest = struct.pack("ll", int(LONGEST), 0)
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            connection.setsockopt(socket.SOL_SOCKET, option, longest)
        self._read = b""
        self.may_show = True
        """Whether the last request may have changed what readers of the store see."""

    @property
    def is_there(self) -> bool:
        """Whether `kill` has not been called yet; the process may have ended by itself."""
        return self._connection.fileno() >= 0

    def ask(self, *request: Plain) -> list[Any]:
        """Send a request and return its reply. Raises `Broken` if it took too much time or memory."""
        try:
            self._connection.sendall(json.dumps(request).encode() + b"\n")
            while b"\n" not in self._read:
                more = self._connection.recv(1 << 16)
                if not more:
                    raise BrokenPipeError
                self._read += more
        except BlockingIOError:
            raise Broken(f"{_request_text(request)} took longer than {LONGEST:.0f} s") from None
        except OSError:
            raise Broken(
                f"{_request_text(request)} was stopped: it took more than {PROCESSOR_SECONDS} s of CPU time, "
                "or too much memory"
            ) from None
        line, _, self._read = self._read.partition(b"\n")
        reply: list[Any]
        reply, self.may_show = json.loads(line)
        return reply

    def kill(self) -> None:
        """Kill the process with SIGKILL, and return when the process and its file locks are gone."""
        if not self.is_there:
            return
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        with suppress(OSError):
            while self._connection.recv(1 << 16):
                pass
        self._connection.close()
        # The kernel closes one file after the other, so the store may still be locked. The process id disappears last.
        with suppress(ProcessLookupError):
            while True:
                os.kill(self._pid, 0)
                time.sleep(0.0001)

    def stop(self) -> None:
        """Suspend the process with SIGSTOP; its files, locks and transaction stay open."""
        os.kill(self._pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Continue the suspended process with SIGCONT."""
        os.kill(self._pid, signal.SIGCONT)


def _request_text(request: Sequence[Plain]) -> str:
    name, *arguments = request
    if name == "execute":
        return str(arguments[0])
    return f"{name}({', '.join(shown(each)[:60] for each in arguments)})"


class Kill(NamedTuple):
    """A kill right before the request number `at` of a batch, counted from 0.

    If the sink makes exactly `at` requests, the kill happens after it has returned.
    """

    batch: int
    at: int
    torn: bool = False
    """Whether the kill happens in the middle of the request, if the request writes a file."""


@dataclass
class Story:
    """The record of one run of a sink: the rows that readers saw, requests, kills and errors, each oldest first."""

    samples: list[Sample] = field(default_factory=list)
    stuck: str = ""
    """The sink's error that stopped the job; empty if the job continued."""
    wrong_reply: str = ""
    """A sentence on a sink that returned the wrong text to a writer; empty if there is none."""
    left_over: list[str] = field(default_factory=list)
    deliveries: list[int] = field(default_factory=list)
    """The number of requests of each completed delivery of a batch, in order."""
    requests: list[str] = field(default_factory=list)
    """All performed requests as text, in order."""
    kills: list[str] = field(default_factory=list)
    """A description of each kill, such as the batch and the request, in order."""
    states: list[bytes] = field(default_factory=list)
    """A digest of the store's files after each kill."""


class Mark(NamedTuple):
    """The point in a run's record right after the run's last kill.

    `driver` is the number of the driver (process of the simulated engine) that starts next. The other fields say how
    many samples, requests and deliveries were recorded before this point.
    """

    driver: int
    samples: int
    requests: int
    deliveries: int


class Recovery(NamedTuple):
    """A run's record, and the point `begins` in this record at which the recovery from the last kill begins."""

    begins: Mark
    story: Story


RecoveryKey = tuple[int, int, int, bytes]
"""How many batches there are, in which one the kill was, how often the sink raised in it, and a digest of the store."""
Recoveries = dict[RecoveryKey, Recovery]
"""Recoveries from kills; each runs once, because the same batch and files lead to the same requests."""


class DeliveryEnd(NamedTuple):
    """How the sink's work on one batch ended, with the text that it returned or its error."""

    how: str
    """`returned`, `raised` or `killed`."""
    value: str = ""


class Delivery:
    """The sink's work on one batch in one process: one request to the store after the other."""

    def __init__(self, trial: "Trial", process: StoreProcess, arguments: Sequence[Plain]) -> None:
        self.process, self.trial, self._arguments = process, trial, arguments
        self._exchanges: list[Plain] = []
        rows = arguments[-1]
        self._most = MOST_REQUESTS + MORE_FOR_A_ROW * (len(rows) if isinstance(rows, list) else 0)
        self.ended: DeliveryEnd | None = None

    @property
    def number(self) -> int:
        """The number of requests of this batch performed so far."""
        return len(self._exchanges)

    def next(self) -> list[Any] | None:
        """Return the sink's next request, or None if the sink makes no more requests.

        In the second case, `ended` says how the sink ended. Raises `Unusable` for an invalid request.
        """
        ask, kind = self.trial.ask, self.trial.kind
        reply = ask(kind, [*self._exchanges], [*self._arguments])
        if not isinstance(reply, list) or not reply:
            raise Unusable(f"{ask.name} returned {shown(reply)}, which is not a request to the store.")
        if reply[0] == "differs":
            raise Unusable(f"{ask.name} {MADE_ANOTHER_REQUEST}")
        if reply[0] != "do":
            how = "returned" if reply[0] == "end" else "raised"
            self.ended = DeliveryEnd(how, str(reply[1] or "") if len(reply) > 1 else "")
            return None
        request = reply[1] if len(reply) > 1 else None
        if not _is_request(kind, request):
            raise Unusable(f"{ask.name} requested {shown(request)}, which a {kind} does not support.")
        assert isinstance(request, list)
        if self.number >= self._most:
            raise Unusable(f"{ask.name} makes more than {self._most} requests in one batch; perhaps a loop never ends.")
        return request

    def finish(self) -> DeliveryEnd:
        """Perform all remaining requests of the sink for this batch, and return how the sink's work ended."""
        while (request := self.next()) is not None:
            self.perform(request)
        assert self.ended is not None
        return self.ended

    def perform(self, request: list[Any]) -> None:
        """Let the store perform a request, and read the store if readers may now see other rows. Raises `Broken`."""
        answer = self.process.ask(*request)
        if answer[0] == "raised" and not answer[1]:
            raise Broken(f"the store could not perform {_request_text(request)}: {answer[2]}")
        self._exchanges.append([request, answer])
        self.trial.story.requests.append(_request_text(request))
        if self.process.may_show or self.trial.is_behind:
            self.trial.look()


def _is_request(kind: str, request: Plain) -> bool:
    if not isinstance(request, list) or not request or type(request[0]) is not str:
        return False
    return ALLOWED[kind].get(request[0]) == len(request) - 1


class Trial:
    """One run of a sink with an empty store, a reader, and a simulated engine that passes batches to the sink."""

    def __init__(self, server: StoreServer, ask: Asker, kind: str, folder: Path) -> None:
        self.ask, self.kind, self.folder = ask, kind, folder
        self.story = Story()
        self._recovers: tuple[Recoveries, RecoveryKey, Mark] | None = None
        """The cache of recoveries, the key of this run's recovery, and where in its record the recovery begins."""
        self._server = server
        self._started: list[StoreProcess] = []
        self._reader = self.start()
        self._driver = 1
        self._process: StoreProcess | None = None
        self.is_behind = True
        """Whether the reader has not read yet, or could not because of a lock."""

    def start(self) -> StoreProcess:
        """Start a further process that opens the store of this run; `close` ends the process."""
        started = self._server.start(self.kind, self.folder)
        self._started.append(started)
        return started

    def process(self) -> StoreProcess:
        """Return the process that performs the sink's requests to its store, and start it if necessary."""
        self._process = self._process or self.start()
        return self._process

    def restart(self, *, kill: bool = False) -> None:
        """Close the store in its present process, or `kill` that process; the next request opens the store again."""
        if self._process is not None:
            if kill:
                self._process.kill()
            else:
                self._server.take_back(self._process)
                self._started.remove(self._process)
            self._process, self._driver = None, self._driver + 1

    def close(self, *, whole: bool) -> None:
        """End the run: if it is complete (`whole`), keep its processes for other runs, otherwise kill them."""
        for each in self._started:
            if whole:
                self._server.take_back(each)
            else:
                each.kill()

    def look(self, moment: str = "") -> None:
        """Read the store like a client that connects now, and record the rows with the label `moment`.

        If the store is locked, nothing is recorded. Raises `Broken` if reading fails for another reason.
        """
        reply = self._reader.ask("see")
        self.is_behind = reply[0] == "raised"
        if reply[0] == "raised":
            # If the store is locked, the reader reads again later.
            if "locked" not in reply[2]:
                kills = self.story.kills
                after_kill = f"killed in {kills[-1]}: " if kills else ""
                raise Broken(f"{after_kill}a reader could not read: {reply[2]}")
            return
        seen = tuple(_row(row) for row in reply[1])
        samples = self.story.samples
        if moment or not samples or samples[-1].seen != seen:
            samples.append(Sample(len(samples), self._driver, seen, moment))

    def deliver(self, arguments: Sequence[Plain], batch: int, kill: Kill | None) -> DeliveryEnd:
        """Call the sink with one batch, and return how the call ended: `returned`, `raised` or `killed`.

        The sink gets the store and then `arguments`: the query, the batch number and the rows. `batch` is again the
        batch number. `kill` says before which request the sink's process is killed; None means no kill.
        """
        delivery = Delivery(self, self.process(), arguments)
        while (request := delivery.next()) is not None:
            if kill is not None and kill.at == delivery.number:
                half = kill.torn and request[0] == "write"
                if half:
                    self.process().ask(*request, 0.0 if batch else TORN)
                where = "in the middle of" if half else "before"
                self._crash(f"batch {batch}, {where} {_request_text(request)}")
                return DeliveryEnd("killed")
            delivery.perform(request)
        self.story.deliveries.append(delivery.number)
        assert delivery.ended is not None
        if kill is not None and kill.at == delivery.number and delivery.ended.how == "returned":
            self._crash(f"batch {batch}, when the sink had returned")
            return DeliveryEnd("killed")
        return delivery.ended

    def _crash(self, where: str) -> None:
        self.restart(kill=True)
        self.story.kills.append(where)
        # The reader rolls back what the killed process had not committed, so the files hold the committed rows only.
        self.look(f"crash {len(self.story.kills)}")
        self.story.states.append(_digest(self.folder))

    def run(
        self,
        query: Sequence[Plain],
        batches: Batches,
        kills: Sequence[Kill] = (),
        first: int = 0,
        recoveries: Recoveries | None = None,
    ) -> bool:
        """Pass the batches to the sink, from number `first` on; repeat each batch until the sink returns.

        Returns False if the job is stuck, because the sink raised an error without a kill before, or twice in one
        batch; otherwise True. `recoveries` is a cache of earlier runs. If the last kill of an earlier run was in the
        same batch and left the same files, this run would recover in the same way. To save time, it then ends right
        after its last kill, and `finish` copies the rest of the record from the cache.
        """
        waiting, raised, again = list(kills), 0, False
        number = first
        while number < len(batches):
            kill = waiting[0] if waiting and waiting[0].batch == number else None
            rows: list[Plain] = [*batches[number]]
            if again:
                rows.reverse()
            ended = self.deliver([*query, number, rows], number, kill)
            if ended.how == "returned":
                if isinstance(query[0], int) and ended.value != WRITTEN:
                    got = f'"{ended.value}"' if ended.value else "nothing"
                    self.story.wrong_reply = f'the sink returned {got} to the newest writer instead of "{WRITTEN}"'
                number, raised, again = number + 1, 0, False
                continue
            again = True
            if ended.how == "killed":
                waiting.pop(0)
                if recoveries is not None and not waiting and not self.is_behind:
                    key = len(batches), number, raised, self.story.states[-1]
                    self._recovers = recoveries, key, self._mark()
                    if key in recoveries:
                        return True
                continue
            raised += 1
            self.restart()
            if raised == 2 or not self.story.kills:
                self.story.stuck = ended.value
                return False
        return True

    def finish(self) -> Story:
        """Read the store a last time, and return the run's record. Raises `Broken` if the sink still holds a lock."""
        if self._recovers is None:
            self._end()
            return self.story
        recoveries, key, mark = self._recovers
        if key in recoveries:
            self._recover_like(recoveries[key])
        else:
            self._end()
            recoveries[key] = Recovery(mark, self.story)
        return self.story

    def _mark(self) -> Mark:
        story = self.story
        return Mark(self._driver, len(story.samples), len(story.requests), len(story.deliveries))

    def _recover_like(self, other: Recovery) -> None:
        """Complete this run's record with a copy of what the run `other` recorded after its last kill.

        The copied samples (readings of the store) and driver starts get the numbers that come next in this run.
        """
        story, begins, after = self.story, other.begins, other.story
        for each in after.samples[begins.samples :]:
            driver = self._driver + each.driver - begins.driver
            story.samples.append(each._replace(at=len(story.samples), driver=driver))
        story.requests += after.requests[begins.requests :]
        story.deliveries += after.deliveries[begins.deliveries :]
        story.stuck, story.left_over = after.stuck, after.left_over
        story.wrong_reply = after.wrong_reply or story.wrong_reply

    def _end(self) -> None:
        end = time.monotonic() + LOCKED
        self.look("end")
        while not self.story.samples or self.story.samples[-1].moment != "end":
            if time.monotonic() > end:
                raise Broken("at the end no reader can read the store: the sink has not released its lock by a commit")
            self.look("end")
        reply = self._reader.ask("left_over")
        if reply[0] == "gave":
            self.story.left_over = reply[1]


def _digest(folder: Path) -> bytes:
    digest = hashlib.blake2b()
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        digest.update(f"{path.name}/{len(content)}/".encode() + content)
    return digest.digest()


def _row(row: Sequence[Any]) -> Seen:
    """Return a row of the store in the form of the rows that were sent, so that the two can be compared.

    If the values in the store have wrong types, return a row that is equal to no sent row.
    """
    if [type(each) for each in row] == [int, str, int]:
        return Seen(*row)
    return Seen(-1, shown(list(row)), 0)


@dataclass(frozen=True)
class TrialResult:
    """The result of a finished run of a sink: the kills as text, the record of the run, and the expected rows."""

    what: str
    """A description of the failures in this trial."""
    story: Story
    due: Batches
    """All batches whose rows should be stored in the end, in order."""

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict on the rows that readers saw in this run."""
        rows = Rows(
            [
                [{"id": row["id"], "key": row["item"], "amount": row["amount"]} for row in batch]
                # A second query may have smaller ids, and the judge expects the rows in the order of their ids.
                for batch in sorted(self.due, key=lambda each: int(str(each[0]["id"])))
            ]
        )
        due = rows.expected()
        return judge([named(each, Shape.ROWS) for each in due], history(self.story.samples, rows, Shape.ROWS, due))


@dataclass
class Past:
    """A cache of earlier runs of one sink with one input, because tests of several properties need the same runs."""

    runs: dict[tuple[int, tuple[Kill, ...]], TrialResult] = field(default_factory=dict)
    """The results of finished trials, by the number of batches and the kills."""
    recoveries: Recoveries = field(default_factory=dict)


class Bench(NamedTuple):
    """The data that all runs of one sink share: the server of stores, the sink, and the batches of two queries."""

    server: StoreServer
    ask: Asker
    kind: str
    batches: Batches
    query: Sequence[Plain]
    """The first arguments of a sink: the name of the query, preceded by the writer's epoch if the sink gets one."""
    others: Batches
    """The batches of another query."""
    other: Sequence[Plain]
    past: Past
    alike: Sequence[str] = ()
    """Names of further queries, which a sink confuses if it shortens names or ignores upper and lower case."""
    wide: Batches = ()
    """One more batch, with as many rows as the task allows; only one run with it is killed."""

    @contextmanager
    def trial(self) -> Iterator[Trial]:
        """Start a run with an empty store in a temporary folder, and remove everything after the block."""
        with TemporaryDirectory(prefix="labkit-own-sink-") as folder:
            begun, whole = Trial(self.server, self.ask, self.kind, Path(folder)), False
            try:
                yield begun
                whole = True
            finally:
                begun.close(whole=whole)

    def run(self, kills: Sequence[Kill] = ()) -> TrialResult:
        """Run the first query from its first batch to its last, with these kills, and return the (cached) result."""
        key = len(self.batches), tuple(kills)
        if key not in self.past.runs:
            with self.trial() as begun:
                begun.run(self.query, self.batches, kills, recoveries=self.past.recoveries)
                self.past.runs[key] = conclude(begun, self.batches)
        return self.past.runs[key]


def conclude(trial: Trial, due: Batches, what: str = "") -> TrialResult:
    """Finish a run that should have stored the batches `due`, and return its result.

    `what` describes the run for a message; the default is a list of its kills.
    """
    story = trial.finish()
    kills = "; then ".join(f"killed in {each}" for each in story.kills)
    return TrialResult(what or kills or WITHOUT, story, due)
