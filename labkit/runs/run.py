"""One run in progress: its scenario, its folder, and the evidence of its crashes so far.

`prepare` creates it, `conduct` drives it, and `conclude` turns it into a `RunRecord` (modules of `labkit.runs`).
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from labkit.core.errors import InvalidInput, LabError
from labkit.core.exposure import Span
from labkit.core.failpoints import Crash
from labkit.host import durable
from labkit.host.logs import read_log
from labkit.runs.driver_task import QueryTask, Socket
from labkit.runs.layout import RunFolder
from labkit.runs.scenario import Scenario
from labkit.runs.socket_source import Plans
from labkit.spark.checkpoint import Checkpoint
from labkit.spark.options import CheckpointFate
from labkit.spark.reach import Armed, Reaction
from labkit.stores import open_store
from labkit.stores.contract import Store

_STAMP = re.compile(r"^\d{8}T\d{6}-")


@dataclass(eq=False)
class Run:
    """One run in progress: a Spark query with planned crashes, and the evidence of the crashes so far."""

    scenario: Scenario
    folder: RunFolder
    drivers: int = 0
    crashes: list[dict[str, Any]] = field(default_factory=list)
    readings: list[tuple[str, int]] = field(default_factory=list)
    """For each moment at which a reader looked: its name (`crash 1`), and the number of rows visible then."""
    ready: dict[int, Span] | None = field(default_factory=dict)
    """When each row that was hidden at a crash had been pre-committed, by offset; None if unknown."""
    started: dict[int, float] = field(default_factory=dict)
    """When each driver's query started after its recovery, in seconds since 1970, by driver number."""
    error: LabError | None = None
    ended: bool = False
    seconds: dict[str, float] = field(default_factory=dict)
    """The durations of the run's phases in seconds, by name, such as `to_crash_1`."""
    keep_store: bool = False
    """Whether the run's rows stay in their server after the verdict."""
    port: int | None = None
    """The port of the server that feeds this run if its source is a socket."""

    @property
    def name(self) -> str:
        """The name of the run's query: the folder's name without its leading time stamp."""
        return _STAMP.sub("", self.folder.path.name)

    @property
    def crashes_left(self) -> tuple[Crash, ...]:
        """The planned crashes that have not happened yet, in the order in which they will happen."""
        return self.scenario.crashes[len(self.crashes) :]

    @property
    def next_crash(self) -> Crash | None:
        """The crash at which the next driver is killed; None if the next driver runs to the end."""
        return next(iter(self.crashes_left), None)

    def open_store(self) -> Store:
        """Open the store that the run's query writes to."""
        return open_store(self.scenario.store, self.folder.store(self.scenario.store))

    def query_task(self) -> QueryTask:
        """Return the message that tells the next driver to execute this run's query up to the next planned crash."""
        driver = self.drivers + 1
        armed = None
        if self.next_crash is not None:
            reaction = Reaction(self.scenario.victim.value)
            armed = Armed(self.next_crash, self.folder.reached(driver), reaction).to_json()
        socket = None
        if self.port is not None:
            socket = Socket(self.port, len(self.portions()[len(self.crashes)]))
        return QueryTask(
            name=self.name,
            folder=str(self.folder.path),
            driver=driver,
            scenario=self.scenario.to_json(),
            armed=armed,
            socket=socket,
        )

    def waits_for_lines(self) -> bool:
        """Return whether the socket server may send the driver's lines now; if it does, they all fall into one batch.

        The first driver begins with an empty batch. It gets its lines afterwards, halfway between two planning times. A
        later driver first repeats the killed driver's batch. Its own lines must come before it plans the next batch: a
        restarted source without any line has an offset below 0, and Spark would stop with "Offsets committed out of
        order".
        """
        checkpoint = Checkpoint(self.folder.checkpoint)
        plans, done = Plans.read(checkpoint), checkpoint.commit_log()
        if plans is None:
            return False
        if self.drivers > 1:
            return plans.is_near() or set(checkpoint.offset_log()) <= set(done)
        return 0 in done and plans.is_between()

    def portions(self) -> list[list[str]]:
        """Return the lines for each driver's socket source.

        Each driver that will be killed gets the lines of one batch, and the last driver gets all remaining lines.
        """
        lines = [json.dumps({"offset": n, "word": word}) for n, word in enumerate(read_log(self.scenario.input))]
        size, crashes = self.scenario.records_per_batch, len(self.scenario.crashes)
        return [lines[size * n : size * (n + 1)] for n in range(crashes)] + [lines[size * crashes :]]

    def put_aside(self) -> None:
        """After a crash, move the checkpoint's folder aside if the scenario deletes the checkpoint.

        A second call after the same crash does nothing.
        """
        aside = self.folder.put_aside(len(self.crashes))
        if self.scenario.checkpoint is CheckpointFate.DELETED and self.crashes and not aside.exists():
            self.folder.checkpoint.rename(aside)

    def keep_evidence(self, end: Mapping[str, Any] | None = None) -> None:
        """Write all evidence to the run's folder, so that a later process can resume the run.

        `end` describes the checkpoint that the last driver left when it had ended; None while the run goes on.
        """
        content: dict[str, Any] = {
            "crashes": self.crashes,
            "readings": self.readings,
            "ready": self.ready,
            "started": self.started,
            "ended": self.ended,
            "seconds": self.seconds,
        }
        durable.replace(self.folder.evidence, json.dumps(content if end is None else {**content, "end": end}, indent=2))

    def read_evidence(self) -> None:
        """Load the evidence that an earlier process has written to the run's folder, if there is any.

        Raises `InvalidInput` if the file is damaged.
        """
        path = self.folder.evidence
        if not path.exists():
            return
        try:
            evidence = json.loads(path.read_text(encoding="utf-8"))
            self.crashes, self.readings = evidence["crashes"], [tuple(pair) for pair in evidence["readings"]]
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(f"{path}: this file is damaged ({error}); start the run again.") from None
        # Earlier versions of labkit did not write these two fields.
        ready = evidence.get("ready", None if self.crashes else {})
        self.ready = ready and {int(offset): Span(*span) for offset, span in ready.items()}
        self.started = {int(driver): at for driver, at in evidence.get("started", {}).items()}
