"""One run that is under way: its scenario, its folder, and the evidence of its crashes so far.

`labkit.runs.prepare` makes it, `labkit.runs.conduct` drives it, `labkit.runs.conclude` ends it.
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
from labkit.runs.socket_source import between_plans
from labkit.spark.checkpoint import Checkpoint
from labkit.spark.options import CheckpointFate
from labkit.spark.reach import Armed, Reaction
from labkit.stores import open_store
from labkit.stores.contract import Store

_STAMP = re.compile(r"^\d{8}T\d{6}-")


@dataclass(eq=False)
class Run:
    """One scenario under way in its folder. When it has ended and was judged, all that is known is its `RunRecord`."""

    scenario: Scenario
    folder: RunFolder
    drivers: int = 0
    crashes: list[dict[str, Any]] = field(default_factory=list)
    readings: list[tuple[str, int]] = field(default_factory=list)
    """Of each moment at which a reader looked its name, and how many rows were visible."""
    ready: dict[int, Span] | None = field(default_factory=dict)
    """When rows were found pre-committed at a crash, by the offset of their record; None: not known."""
    started: dict[int, float] = field(default_factory=dict)
    """When the query of each driver started, after its recovery, in seconds since the epoch; by the driver's number."""
    error: LabError | None = None
    ended: bool = False
    seconds: dict[str, float] = field(default_factory=dict)
    keep_store: bool = False
    """Whether rows in a server stay there after the verdict."""
    port: int | None = None
    """The port of the server that feeds this run, where its source is a socket."""

    @property
    def name(self) -> str:
        """A name that no other run has which is conducted together with this one."""
        return _STAMP.sub("", self.folder.path.name)

    @property
    def crashes_left(self) -> tuple[Crash, ...]:
        """The planned crashes that have not happened yet."""
        return self.scenario.crashes[len(self.crashes) :]

    @property
    def next_crash(self) -> Crash | None:
        """The crash that the next driver will die of; None for the driver that runs to the end."""
        return next(iter(self.crashes_left), None)

    def open_store(self) -> Store:
        """Opens the store that the run writes to."""
        return open_store(self.scenario.store, self.folder.store(self.scenario.store))

    def query_task(self) -> QueryTask:
        """The task of the run's next driver."""
        driver = self.drivers + 1
        armed = None
        if self.next_crash is not None:
            reaction = Reaction(self.scenario.victim.value)
            armed = Armed(self.next_crash, self.folder.reached(driver), reaction)
        socket = None
        if self.port is not None:
            portion = self.portions()[len(self.crashes)]
            socket = Socket(self.port, len(portion))
        return QueryTask(
            name=self.name,
            folder=str(self.folder.path),
            driver=driver,
            scenario=self.scenario.to_json(),
            armed=None if armed is None else armed.to_json(),
            socket=socket,
        )

    def waits_for_lines(self) -> bool:
        """Whether a socket may send now: to the first driver after its empty first batch, to later ones at once.

        The first driver gets its lines between two plans, so that one batch has all of them. A later driver that finds
        no line when it plans its first new batch plans one that ends before it begins, and Spark then refuses to go on
        ("Offsets committed out of order").
        """
        first_is_over = 0 in Checkpoint(self.folder.checkpoint).commit_log()
        return self.drivers > 1 or (first_is_over and between_plans())

    def portions(self) -> list[list[str]]:
        """The lines that a socket sends to each driver: a batch to those that will be killed, the rest to the last."""
        lines = [json.dumps({"offset": n, "word": word}) for n, word in enumerate(read_log(self.scenario.input))]
        size, crashes = self.scenario.records_per_batch, len(self.scenario.crashes)
        return [lines[size * n : size * (n + 1)] for n in range(crashes)] + [lines[size * crashes :]]

    def put_aside(self) -> None:
        """Moves the checkpoint aside after a crash where the scenario says so and nobody has done it yet."""
        aside = self.folder.put_aside(len(self.crashes))
        if self.scenario.checkpoint is CheckpointFate.DELETED and self.crashes and not aside.exists():
            self.folder.checkpoint.rename(aside)

    def keep_evidence(self, end: Mapping[str, Any] | None = None) -> None:
        """Writes everything that is known so far into the folder, so that a stopped run can be resumed.

        `end` describes the checkpoint after the last driver.
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
        """Takes over the evidence that a stopped runner has kept, if there is any. Raises `InvalidInput`."""
        path = self.folder.evidence
        if not path.exists():
            return
        try:
            evidence = json.loads(path.read_text(encoding="utf-8"))
            self.crashes, self.readings = evidence["crashes"], [tuple(pair) for pair in evidence["readings"]]
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(f"{path}: damaged ({error}); start the run anew.") from None
        # Not in the evidence of a run that an earlier version has begun.
        ready = evidence.get("ready", None if self.crashes else {})
        self.ready = ready and {int(offset): Span(*span) for offset, span in ready.items()}
        self.started = {int(driver): at for driver, at in evidence.get("started", {}).items()}
