"""Looks at the user's store from outside while a job runs, dies and recovers, through the user's own reader.

It keeps what was read whenever that changed. This module must not judge what it saw.
"""

import threading
import time
from types import TracebackType
from typing import Self

from labkit.core.errors import LabError
from labkit.crashtest.harness.reader import Reader, ReaderFailed
from labkit.crashtest.samples import Sample

PAUSE = 0.1
"""Seconds between two looks while a job runs."""


class Watcher:
    """Reads in the background for a block."""

    def __init__(self, reader: Reader, pause: float = PAUSE) -> None:
        self._reader, self._pause = reader, pause
        self._lock, self._over = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self.samples: list[Sample] = []
        self.driver = 1
        self.failures = 0
        """How often the reader gave no answer while the job ran."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def _poll(self) -> None:
        while not self._over.wait(self._pause):
            try:
                with self._lock:
                    self._keep(
                        Sample(time.time(), self.driver, tuple(self._reader.read()))
                    )
            except ReaderFailed:
                self.failures += 1
            except LabError:
                return  # at the next quiet moment the same is raised where somebody hears it

    def look(self, moment: str, unfinished: tuple[int, ...] = ()) -> None:
        """Reads now, when everything is quiet. Raises `ReaderFailed` if the reader has no answer even then."""
        with self._lock:
            seen = tuple(self._reader.read_surely())
            self._keep(Sample(time.time(), self.driver, seen, moment, unfinished))

    def _keep(self, sample: Sample) -> None:
        if sample.moment or not self.samples or self.samples[-1].seen != sample.seen:
            self.samples.append(sample)
