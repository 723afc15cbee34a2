"""Run a small checkpointing job against a real Kafka broker, to see whether its transactions time out.

The job reads a replayable log, writes the records of one checkpoint interval into one transaction, pre-commits at the
barrier, completes the checkpoint, and commits. After a failed write it restarts from its last complete checkpoint;
after `ATTEMPTS` failures it restarts with a timeout that is long enough. A broker looks for expired transactions only
every few seconds, so a job whose transaction is too old waits until the broker has aborted it. Otherwise the result
would depend on chance. `labkit.sim.models.kafka_log.timeouts` simulates the same job.
"""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory

from labkit.core.errors import InvalidInput, JobFailed, LabError, ServiceUnavailable
from labkit.core.judge import judge
from labkit.core.records import History, Observation, Reading, Record
from labkit.core.verdict import Verdict
from labkit.stores.contract import Handle
from labkit.stores.kafka.store import KafkaStore, Outcome
from labkit.stores.kafka.topic import TIMEOUT
from labkit.stores.kafka.transaction import ABORTED, Stage

LONGEST = 120.0
"""The longest checkpoint interval that a caller may try, in seconds, because a person waits for the result."""

ATTEMPTS = 2
"""How often the job runs with the requested timeout before it gets a longer one."""

PATIENCE = 60.0
"""Seconds within which the broker must abort an expired transaction; by default it looks for them every 10 s."""

WAITS = "the job waits until Kafka has aborted it"
"""The words in `TimeoutTrial.steps` that mark a wait until the broker has aborted an expired transaction."""

_LOOK = 0.1


class Traffic(StrEnum):
    """A pattern in which records arrive during a checkpoint interval, for an experiment with Kafka's timeouts."""

    STEADY = "steady"
    """A record every twentieth of the interval."""
    BURST = "burst"
    """Three records at the beginning of the interval, then none."""
    LATE = "late"
    """Three records at nine tenths of the interval."""

    def moments(self, interval: float) -> list[float]:
        """Return when records arrive, in seconds from the beginning of a checkpoint interval of `interval` seconds."""
        if self is Traffic.STEADY:
            return [interval * number / 20 for number in range(20)]
        return [interval * (0.9 if self is Traffic.LATE else 0)] * 3


@dataclass
class TimeoutTrial:
    """The result of one experiment with Kafka's transaction timeout: what happened, and the verdict on the output."""

    traffic: Traffic
    steps: list[str] = field(default_factory=list)
    """The events of the trial in words, each with the seconds since its attempt began."""
    failures: int = 0
    """The number of attempts that ended in a failed write."""
    outcome: Outcome | None = None
    """How Kafka answered the commit of the first attempt; None if that attempt failed before its commit."""
    verdict: Verdict | None = None

    def __str__(self) -> str:
        """Return the result as text: the verdict, then one line per event."""
        verdict = "" if self.verdict is None else f": {self.verdict.guarantee}, because {self.verdict.because}"
        return "\n".join([f"{self.traffic}{verdict}", *(f"  {step}" for step in self.steps)])

    def to_json(self) -> dict[str, object]:
        """Return the result as a JSON object."""
        verdict = None if self.verdict is None else self.verdict.to_json()
        outcome = None if self.outcome is None else self.outcome.value
        return {"steps": self.steps, "failures": self.failures, "commit": outcome, "verdict": verdict}


def try_timeouts(
    interval: float, transaction: float, kinds: Sequence[Traffic] = tuple(Traffic)
) -> dict[str, TimeoutTrial]:
    """Run a checkpointing job on a real broker for each kind of traffic.

    Returns a dict from the kind's name to the result of its job. The jobs run at the same time. `interval` is the
    checkpoint interval and `transaction` the transaction timeout, both in seconds of real time. Raises `InvalidInput`
    if one of them is out of range. Raises `ServiceUnavailable` if there is no broker, or if the broker does not abort
    an expired transaction within `PATIENCE` seconds.
    """
    if not 0 < interval <= LONGEST:
        raise InvalidInput(
            f"a checkpoint interval of {interval:g} s: choose more than 0 and at most {LONGEST:g} s, because the lab "
            "waits for it in real time."
        )
    if transaction <= 0:
        raise InvalidInput(f"a transaction timeout of {transaction:g} s is impossible; choose more than 0 s.")
    with TemporaryDirectory(prefix="labkit-timeouts-") as base, ThreadPoolExecutor(len(kinds)) as pool:
        runs = [_Job(Path(base) / kind, kind, interval, transaction) for kind in kinds]
        return {run.tried.traffic.value: tried for run, tried in zip(runs, pool.map(_Job.run, runs), strict=True)}


class _Job:
    """One job that writes to its own topic, and deletes this topic at the end. All times are in seconds."""

    def __init__(self, folder: Path, traffic: Traffic, interval: float, transaction: float) -> None:
        self._folder, self._interval, self._transaction = folder, interval, transaction
        self._moments = traffic.moments(interval)
        self._read, self._attempt, self._began = 0, 0, 0.0
        self._opened: float | None = None
        self.tried = TimeoutTrial(traffic)

    def run(self) -> TimeoutTrial:
        """Run the job until all records are committed, and return the result.

        The job makes at most `ATTEMPTS` attempts with its own timeout. If all of them fail, it makes another attempt
        with the timeout `TIMEOUT`.
        """
        try:
            return self._tried()
        except LabError:
            with suppress(LabError), self._store(TIMEOUT) as store:
                store.destroy()
            raise

    def _tried(self) -> TimeoutTrial:
        with self._store(self._transaction) as store:
            store.check("Transactional")
            while self._read == 0 and self.tried.failures < ATTEMPTS:
                self._run_attempt(store, self._interval)
        if self._read == 0:
            with self._store(TIMEOUT) as store:
                self._say(f"restarted with a timeout of {TIMEOUT:g} s, from offset {self._read}")
                self._run_attempt(store, 0)
        with self._store(TIMEOUT) as store:
            expected = [Record(number, "record", number) for number in range(len(self._moments))]
            self.tried.verdict = judge(expected, History([*store.history(), Reading("end")]))
            store.destroy()
        return self.tried

    @contextmanager
    def _store(self, timeout: float) -> Iterator[KafkaStore]:
        with closing(KafkaStore(self._folder)) as store:
            store.expire_after(timeout)
            yield store

    def _run_attempt(self, store: KafkaStore, interval: float) -> None:
        """Make one attempt: write the records of an interval, pre-commit, complete the checkpoint, and commit.

        If a write fails, abort the transaction and return. If `interval` is 0, all records arrive at once.
        """
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
        self._say(f"attempt {self._attempt}: pre-committed; the checkpoint is complete, at offset {self._read}")
        outcome = store.finish(handle)
        self._say(f"attempt {self._attempt}: commit: {outcome}")
        if not self.tried.failures:
            self.tried.outcome = outcome

    def _write(self, store: KafkaStore, handle: Handle, interval: float) -> None:
        transaction = store.begin(handle)
        # The clock starts only now, because a busy broker may need as long as a whole interval to begin a transaction.
        self._began = time.monotonic()
        self._opened = None
        for number, moment in enumerate(self._moments):
            self._wait(store, handle, moment if interval else 0)
            if self._opened is None:
                # Read before the write, so that the broker cannot have started its timeout earlier.
                self._opened = time.monotonic()
            transaction.write(Observation(number, "record", number, 0, self._attempt))
            transaction.flush()
            if number == 0:
                self._say(f"attempt {self._attempt}: the first record opens the transaction")
        self._wait(store, handle, interval)
        transaction.prepare()

    def _wait(self, store: KafkaStore, handle: Handle, moment: float) -> None:
        """Wait until `moment` seconds after the start of the attempt.

        If the transaction has expired by then, also wait until Kafka has aborted it. Raises `ServiceUnavailable` if the
        abort takes more than `PATIENCE` seconds.
        """
        while (left := self._began + moment - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK))
            self._is_aborted(store, handle)
        is_too_old = self._opened is not None and time.monotonic() - self._opened >= store.topic.timeout
        if not is_too_old or self._is_aborted(store, handle):
            return
        limit = f"{store.topic.timeout:g} s"
        self._say(f"attempt {self._attempt}: the transaction is open for more than {limit}; {WAITS}")
        deadline = time.monotonic() + PATIENCE
        while not self._is_aborted(store, handle):
            if time.monotonic() > deadline:
                raise ServiceUnavailable(
                    f"Kafka has not aborted a transaction within {PATIENCE:g} s after its timeout of {limit}; lower "
                    "the broker's setting transaction.abort.timed.out.transaction.cleanup.interval.ms."
                )
            time.sleep(_LOOK)

    def _is_aborted(self, store: KafkaStore, handle: Handle) -> bool:
        described = store.topic.coordinators.describe(store.topic.transactional_id(handle))
        if described is None or described.stage not in ABORTED:
            return False
        announcement = f"attempt {self._attempt}: Kafka has aborted the transaction"
        if not any(announcement in step for step in self.tried.steps):
            self._say(f"{announcement}, which was open for more than {described.timeout:g} s")
        # Kafka first decides to abort, then writes the marker; in between, the partition might accept a late write.
        return described.stage is Stage.COMPLETE_ABORT

    def _say(self, what: str) -> None:
        self.tried.steps.append(f"{time.monotonic() - self._began:5.1f} s  {what}")
