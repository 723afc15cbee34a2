"""Run one crash in a background thread, so that a notebook can show its stages meanwhile and cancel it.

The stages come from the drivers' events and from the checkpoint on disk; none is estimated.
"""

import contextlib
import shutil
import threading
import time
from collections.abc import Callable
from enum import StrEnum

from labkit.core.errors import Cancelled, InvalidAction, JobFailed, LabError
from labkit.core.failpoints import Extent, progress_at
from labkit.host.processes.events import AnyEvent, Begun, Killed, Parked, Recovered
from labkit.runs.conduct import Setup
from labkit.runs.crash import finish
from labkit.runs.outcome import Outcome
from labkit.runs.prepare import fresh_folder, prepare
from labkit.runs.progress import words
from labkit.runs.run import Run
from labkit.runs.scenario import Scenario
from labkit.runs.warm_drivers import warm_drivers
from labkit.spark.checkpoint import Checkpoint


class Stage(StrEnum):
    """The stages of a run with one crash, from Spark's planning of the batch to the judge's verdict."""

    PLANNED = "planned"
    WRITTEN = "written"
    PRE_COMMITTED = "pre-committed"
    KILLED = "killed"
    RESTARTED = "restarted"
    RECOVERED = "recovered"
    JUDGED = "judged"


class Mark(StrEnum):
    """The state of one stage (`Stage`) of a run; each value is the text that a notebook shows for it."""

    WAITING = "not yet"
    NOW = "now"
    DONE = "done"
    PART = "partly, then killed"
    SKIPPED = "not reached before the kill"
    STOPPED = "stopped here"


_EXTENT = {Extent.NOT: Mark.SKIPPED, Extent.PART: Mark.PART, Extent.WHOLE: Mark.DONE}


class Stages:
    """The state (`Mark`) of each stage of a run with one crash. Call `note` with every event of the run."""

    def __init__(self, run: Run) -> None:
        assert len(run.scenario.crashes) == 1
        self._crash = run.scenario.crashes[0]
        self._checkpoint = Checkpoint(run.folder.checkpoint)
        self.marks = dict.fromkeys(Stage, Mark.WAITING)
        self.marks[Stage.PLANNED] = Mark.NOW

    def note(self, event: AnyEvent) -> None:
        """Update the states of the run's stages, such as plan, kill and restart, after an event of the run."""
        match event:
            case Parked():
                self._parked()
            # The second driver is killed as well after it has finished, so only the first kill is the crash.
            case Killed() if self.marks[Stage.KILLED] is not Mark.DONE:
                self._done(Stage.KILLED)
            case Begun() if self.marks[Stage.KILLED] is Mark.DONE:
                self._done(Stage.RESTARTED)
            case Recovered() if self.marks[Stage.RESTARTED] is Mark.DONE:
                self._done(Stage.RECOVERED)

    def look(self) -> bool:
        """Mark the stage `planned` as done once the batch's `offsets/N` exists; return whether this call marked it."""
        if self.marks[Stage.PLANNED] is Mark.DONE or self._crash.batch not in self._checkpoint.offset_log():
            return False
        self._done(Stage.PLANNED)
        return True

    def judged(self) -> None:
        """Mark the stage `judged` as done, because the judge has returned its verdict."""
        self._done(Stage.JUDGED)

    def stop(self) -> None:
        """Mark the current stage as stopped, because the run failed or was cancelled."""
        self.marks |= {stage: Mark.STOPPED for stage, mark in self.marks.items() if mark is Mark.NOW}

    def _parked(self) -> None:
        reached = progress_at(self._crash.point)
        self.marks[Stage.PLANNED] = Mark.DONE
        self.marks[Stage.WRITTEN] = _EXTENT[reached.written]
        self.marks[Stage.PRE_COMMITTED] = _EXTENT[reached.pre_committed]
        self.marks[Stage.KILLED] = Mark.NOW

    def _done(self, stage: Stage) -> None:
        self.marks[stage] = Mark.DONE
        following = next((each for each in Stage if self.marks[each] is Mark.WAITING), None)
        if following:
            self.marks[following] = Mark.NOW


CANCELLED = "Cancelled: every process of the run has ended, and its folder and its temporary files are gone."

SIGN_OF_LIFE = 3.0
"""The seconds without an event after which `changed` is called all the same, so that a display can update its time."""

_ONE = threading.Lock()
"""Locked while a run is in progress, because a second one would need memory for two more drivers."""


class BackgroundRun:
    """A run with one crash in a background thread, so that a notebook stays usable meanwhile.

    The thread calls the function `changed` whenever the stages, the status or the outcome may have changed, and at
    least every `SIGN_OF_LIFE` seconds. A display that follows the run can then read them again.
    """

    def __init__(self, scenario: Scenario, changed: Callable[[], None]) -> None:
        self.scenario = scenario
        self.stages: Stages | None = None
        self.status = "checking the input and Java"
        self.outcome: Outcome | None = None
        self.error: LabError | None = None
        self._folder = fresh_folder(scenario.name)
        self._changed = changed
        self._cancel = threading.Event()
        self._over = threading.Event()
        self._news_at = time.monotonic()
        self._thread = threading.Thread(target=self._run, name=f"labkit crash {scenario.name}", daemon=True)

    def start(self) -> None:
        """Start the run in its thread. Raises `InvalidAction` if this process already has another run in progress."""
        # Without waiting, because a user who clicks twice wants a message at once, and no second crash in a minute.
        if not _ONE.acquire(blocking=False):
            raise InvalidAction(
                "Another run with a crash is in progress in this notebook. Wait for its verdict, or cancel it in "
                "its own panel."
            )
        self._thread.start()

    def cancel(self) -> None:
        """Ask the run's thread to kill the drivers and delete the run's folder; `wait` then raises `Cancelled`."""
        self._cancel.set()

    @property
    def under_way(self) -> bool:
        """Whether the run has been started and is still in progress."""
        return self._thread.ident is not None and not self._over.is_set()

    def wait(self, seconds: float | None = None) -> Outcome:
        """Wait until the run has ended, at most `seconds` (None: without a limit), and return its outcome.

        Raises the run's error, `Cancelled`, or `TimeoutError` if the run has not ended after `seconds`.
        """
        if not self._over.wait(seconds):
            raise TimeoutError(
                f"The run has not ended after {seconds} seconds (now: {self.status}); wait again, or cancel it."
            )
        if self.error is not None:
            raise self.error
        assert self.outcome is not None
        return self.outcome

    def _run(self) -> None:
        try:
            self.outcome = self._crash()
        except Cancelled as stopped:
            shutil.rmtree(self._folder, ignore_errors=True)
            with contextlib.suppress(OSError):  # other runs may be in the same folder
                self._folder.parent.rmdir()
            self._fail(stopped)
        except LabError as error:
            self._fail(error)
        except Exception as error:  # nobody would see an error that a thread raises
            self._fail(
                JobFailed(f"the run stopped with an unexpected error, {error!r}; see the files in {self._folder}.")
            )
        finally:
            # Released before anybody learns of the end, so that a waiting caller may start the next crash at once.
            _ONE.release()
            self._over.set()
            self._changed()

    def _fail(self, error: LabError) -> None:
        self.error, self.status = error, str(error)
        if self.stages:
            self.stages.stop()

    def _crash(self) -> Outcome:
        run = prepare(self.scenario, self._folder)
        # Preparing may take seconds if a broker has to answer, so a cancellation in the meantime ends the run before a
        # driver starts.
        self._beat()
        self.stages = Stages(run)
        self._news()
        outcome = finish(run, self._tell, setup=Setup(warm=warm_drivers()), heartbeat=self._beat)
        self.stages.judged()
        self.status = "judged"
        return outcome

    def _tell(self, event: AnyEvent) -> None:
        assert self.stages is not None
        self.stages.note(event)
        self.status = words(event, "the query")
        self._news()

    def _beat(self) -> None:
        if self._cancel.is_set():
            raise Cancelled(CANCELLED)
        if self.stages and self.stages.look():
            self.status = "the batch is planned: offsets/0 is durable"
        elif time.monotonic() - self._news_at < SIGN_OF_LIFE:
            return
        self._news()

    def _news(self) -> None:
        self._news_at = time.monotonic()
        self._changed()
