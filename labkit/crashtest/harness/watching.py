"""Watches the user's store from outside while a job runs, dies and recovers, through the user's own reader.

A reading is kept whenever it differs from the one before. In the run without a crash the job waits at its points
(`labkit.crashtest.instrument.asking`); each question is answered by one reading of its own.
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
"""Seconds between two looks while a job runs."""

_GLANCE = 0.002
"""Seconds between two looks for a question of a job that waits."""


class Watcher:
    """Reads the store in the background, within a `with` block."""

    def __init__(self, reader: Reader, pause: float = PAUSE, asks: Path | None = None) -> None:
        """`asks`: the folder in which the job asks for readings at its points; None: the job asks for none."""
        self._reader, self._pause, self._asks = reader, pause, asks
        if asks is not None:
            asks.mkdir(parents=True, exist_ok=True)
        self._lock, self._over = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self.samples: list[Sample] = []
        self._begun: float | None = None
        """When the last reading began."""
        self.readings: list[PointReading] = []
        """Readings at the points of the job, in order."""
        self.driver = 1
        self.failures = 0
        """How often the reader gave no answer while the job ran."""

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
        """Takes one reading for each question, the oldest first, and removes the question."""
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
        """Takes a reading while no driver acts. Raises `ReaderFailed` if the reader cannot answer even then."""
        with self._lock:
            begun = time.time()
            seen = tuple(self._reader.read_surely())
            sample = Sample(time.time(), self.driver, seen, moment, unfinished)
            self._keep(sample, begun)

    def _keep(self, sample: Sample, begun: float) -> None:
        """Keeps what differs from the reading before; between the beginnings of both, it changed."""
        if sample.moment or not self.samples or self.samples[-1].seen != sample.seen:
            timed = sample._replace(since=self._begun, until=time.time())
            self.samples.append(timed)
        self._begun = begun
