"""A job with checkpoints whose Kafka transactions run out of time, against a real broker and by a real clock.

The job is the smallest that shows it: it reads a log that can be replayed, writes what it reads into one transaction,
pre-commits at the barrier, counts the checkpoint as complete, and commits. When a write fails it is started again from
its last complete checkpoint; when it has failed often enough, somebody gives it a timeout that fits, and it goes on
from there. `labkit.sim.models.kafka_log.timeouts` says the same without a broker. This module must not judge by itself.
"""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory

from labkit.core.errors import InvalidInput, JobFailed
from labkit.core.judge import judge
from labkit.core.records import History, Observation, Reading, Record
from labkit.core.verdict import Verdict
from labkit.stores.contract import Handle
from labkit.stores.kafka.store import KafkaStore, Outcome
from labkit.stores.kafka.topic import TIMEOUT
from labkit.stores.kafka.transaction import ABORTED

LONGEST = 120.0
"""Seconds of the longest interval that is run: somebody waits for it."""

ATTEMPTS = 2
"""How often the job is tried with the timeout that was asked for."""

_LOOK = 0.1


class Traffic(StrEnum):
    """When records come, between two barriers."""

    STEADY = "steady"
    """All the time: a record every twentieth of the interval."""
    BURST = "burst"
    """Three at once, right behind the barrier; then nothing."""
    LATE = "late"
    """Three at once, when nine tenths of the interval are over."""

    def moments(self, interval: float) -> list[float]:
        """Seconds after the barrier at which each record comes."""
        if self is Traffic.STEADY:
            return [interval * number / 20 for number in range(20)]
        return [interval * (0.9 if self is Traffic.LATE else 0)] * 3


@dataclass
class TimeoutTrial:
    """What became of one kind of traffic, from the first attempt to the judge's verdict."""

    traffic: Traffic
    steps: list[str] = field(default_factory=list)
    """What happened, each with the seconds since the attempt began."""
    failures: int = 0
    """Attempts that ended in a failed write."""
    outcome: Outcome | None = None
    """What Kafka made of the commit of the checkpoint that was complete; None where none was with this timeout."""
    verdict: Verdict | None = None

    def __str__(self) -> str:
        """The trial as text for a person: the verdict, then one line a step."""
        held = (
            ""
            if self.verdict is None
            else f": {self.verdict.guarantee}, because {self.verdict.because}"
        )
        return "\n".join(
            [f"{self.traffic}{held}", *(f"  {step}" for step in self.steps)]
        )

    def to_json(self) -> dict[str, object]:
        """The trial as plain data, for JSON."""
        verdict = None if self.verdict is None else self.verdict.to_json()
        outcome = None if self.outcome is None else self.outcome.value
        return {
            "steps": self.steps,
            "failures": self.failures,
            "commit": outcome,
            "verdict": verdict,
        }


def try_timeouts(
    interval: float, transaction: float, kinds: Sequence[Traffic] = tuple(Traffic)
) -> dict[str, TimeoutTrial]:
    """Runs one checkpoint interval with every kind of traffic, side by side; all in seconds of a real clock.

    Raises `ServiceUnavailable` without a broker, `InvalidInput` for a timeout that the broker does not allow.
    """
    if not 0 < interval <= LONGEST:
        raise InvalidInput(
            f"an interval of {interval:g} s: it is really waited for; choose at most {LONGEST:g} s."
        )
    if transaction <= 0:
        raise InvalidInput(
            f"a transaction timeout of {transaction:g} s: must be more than 0 s."
        )
    with (
        TemporaryDirectory(prefix="labkit-timeouts-") as base,
        ThreadPoolExecutor(len(kinds)) as pool,
    ):
        runs = [_Job(Path(base) / kind, kind, interval, transaction) for kind in kinds]
        return {
            run.tried.traffic.value: tried
            for run, tried in zip(runs, pool.map(_Job.run, runs), strict=True)
        }


class _Job:
    """One job on a topic of its own, which is gone afterwards."""

    def __init__(
        self, folder: Path, traffic: Traffic, interval: float, transaction: float
    ) -> None:
        self._folder, self._interval, self._transaction = folder, interval, transaction
        self._moments = traffic.moments(interval)
        self._read, self._attempt, self._began = 0, 0, 0.0
        self.tried = TimeoutTrial(traffic)

    def run(self) -> TimeoutTrial:
        """Tries, corrects the timeout where the job does not get on, and has the outcome judged."""
        with self._store(self._transaction) as store:
            store.check("Transactional")
            while self._read == 0 and self.tried.failures < ATTEMPTS:
                self._epoch(store, self._interval)
        if self.tried.failures:
            with self._store(TIMEOUT) as store:
                self._say(
                    f"restarted with a timeout of {TIMEOUT:g} s, from offset {self._read}"
                )
                self._epoch(store, 0)
        with self._store(TIMEOUT) as store:
            expected = [
                Record(number, "record", number) for number in range(len(self._moments))
            ]
            self.tried.verdict = judge(
                expected, History([*store.history(), Reading("end")])
            )
            store.destroy()
        return self.tried

    @contextmanager
    def _store(self, timeout: float) -> Iterator[KafkaStore]:
        with closing(KafkaStore(self._folder)) as store:
            store.expire_after(timeout)
            yield store

    def _epoch(self, store: KafkaStore, interval: float) -> None:
        """From one barrier to the next: records, pre-commit, checkpoint, commit. A failed write ends the attempt."""
        self._attempt += 1
        self._began = time.monotonic()
        handle = Handle("job", 0, 0, self._attempt, 1)
        try:
            self._write(store, handle, interval)
        except JobFailed as failed:
            self.tried.failures += 1
            self._say(f"attempt {self._attempt}: the write fails: {failed}")
            store.abort(handle)
            return
        self._read = len(self._moments)
        self._say(
            f"attempt {self._attempt}: pre-committed; the checkpoint is complete, at offset {self._read}"
        )
        outcome = store.finish(handle)
        self._say(f"attempt {self._attempt}: commit: {outcome}")
        if not self.tried.failures:
            self.tried.outcome = outcome

    def _write(self, store: KafkaStore, handle: Handle, interval: float) -> None:
        transaction = store.begin(handle)
        for number, moment in enumerate(self._moments):
            self._wait(store, handle, moment if interval else 0)
            transaction.write(Observation(number, "record", number, 0, self._attempt))
            transaction.flush()
            if number == 0:
                self._say(
                    f"attempt {self._attempt}: the first record opens the transaction"
                )
        self._wait(store, handle, interval)
        transaction.prepare()

    def _wait(self, store: KafkaStore, handle: Handle, moment: float) -> None:
        """Waits for a moment of the attempt, and says so when the coordinator has aborted the transaction meanwhile."""
        name, announcement = (
            store.topic.transactional_id(handle),
            f"attempt {self._attempt}: Kafka says",
        )
        while (left := self._began + moment - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK))
            description = store.topic.coordinators.describe(name)
            if (
                description
                and description.stage in ABORTED
                and not any(announcement in step for step in self.tried.steps)
            ):
                self._say(
                    f"{announcement} {description.stage}: the transaction was open for more than {description.timeout:g} s"
                )

    def _say(self, what: str) -> None:
        self.tried.steps.append(f"{time.monotonic() - self._began:5.1f} s  {what}")
