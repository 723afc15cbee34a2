"""Reads the user's store through the user's own reader while a job runs, dies and recovers.

The watcher keeps a reading whenever it differs from the previous one. In the run without a crash the job waits at each
crash point (`labkit.crashtest.instrument.asking`), and the watcher answers each request with a separate reading.
"""

import json
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from labkit.core.errors import LabError
from labkit.crashtest.harness.reader import Reader, ReaderFailed
from labkit.crashtest.instrument.asking import SUFFIX
from labkit.crashtest.instrument.effects import Point
from labkit.crashtest.samples import Sample
from labkit.crashtest.seeing import PointReading

PAUSE = 0.1
"""The number of seconds between two readings while a job runs."""

_GLANCE = 0.002
"""The number of seconds between two checks whether a waiting job has requested a reading."""


class Watcher:
    """Reads the user's store in a background thread; use it in a `with` block."""

    def __init__(self, reader: Reader, pause: float = PAUSE, asks: Path | None = None) -> None:
        """Prepare the watcher.

        `pause` is the seconds between two readings. `asks` is the folder in which the job requests readings at its
        crash points; None if it requests none.
        """
        self._reader, self._pause, self._asks = reader, pause, asks
        if asks is not None:
            asks.mkdir(parents=True, exist_ok=True)
        self._lock, self._over = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self.samples: list[Sample] = []
        self._begun: float | None = None
        """The time at which the last reading began, as a Unix time."""
        self.readings: list[PointReading] = []
        """The readings that the job requested at its crash points, in order."""
        self.driver = 1
        self.failures = 0
        """The number of times that the reader gave no answer while the job ran."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _poll(self) -> None:
        due = time.monotonic() + self._pause
        while not self._over.wait(self._pause if self._asks is None else _GLANCE):
            try:
                with self._lock:
                    self._answer()
                    if self._asks is None or time.monotonic() > due:
                        self._read()
                        due = time.monotonic() + self._pause
            except ReaderFailed:
                self.failures += 1
            except LabError:
                return  # at the next quiet moment the same is raised where somebody hears it

    def _read(self) -> None:
        begun = time.time()
        seen = tuple(self._reader.read())
        self._keep(Sample(begun, self.driver, seen), begun)

    def _answer(self) -> None:
        """Take one reading for each request of the job, the oldest first, and remove the request, which lets the job go
        on.
        """
        for path in sorted(self._asks.glob(f"*{SUFFIX}")) if self._asks else []:
            try:
                question = json.loads(path.read_text(encoding="utf-8"))
                seen = tuple(self._reader.read())
            except ReaderFailed:
                self.failures += 1
                path.unlink(missing_ok=True)
                continue
            except FileNotFoundError:
                continue  # the job waits no longer
            try:
                path.unlink()
            except FileNotFoundError:
                continue  # the job went on meanwhile, so this reading belongs to no point
            point = Point.from_json(question["point"])
            self.readings.append(PointReading(str(point), question["position"], seen, point))

    def look(self, moment: str, unfinished: tuple[int, ...] = ()) -> None:
        """Take a reading while no driver is running, and store it as that of `moment`, such as "end".

        `unfinished` are the batches that the job had not finished. Raises `ReaderFailed` if the reader cannot answer
        even then.
        """
        with self._lock:
            begun = time.time()
            seen = tuple(self._reader.read_surely())
            sample = Sample(time.time(), self.driver, seen, moment, unfinished)
            self._keep(sample, begun)

    def _keep(self, sample: Sample, begun: float) -> None:
        """Store the reading if it differs from the previous one, with the span of time in which the rows changed."""
        if sample.moment or not self.samples or self.samples[-1].seen != sample.seen:
            timed = sample._replace(since=self._begun, until=time.time())
            self.samples.append(timed)
        self._begun = begun
