"""Chooses the test for given settings: that of a sink, or that of a pipeline."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from labkit.crashtest.blackbox.settings import PipelineSettings
from labkit.crashtest.jobs import Job
from labkit.crashtest.ledger import Tell, silent
from labkit.crashtest.report import Report
from labkit.crashtest.settings import Settings, settings
from labkit.crashtest.verdict import Result


class Tests(Protocol):
    """The crash test of a sink or of a pipeline, which can be run as a whole or run by run."""

    is_part: bool
    """Whether runs are left out, so that the test never counts as complete."""

    @property
    def results(self) -> list[Result]:
        """The results of the runs so far."""

    def everything(self) -> Report:
        """Perform every run of the test and return the report."""

    def healthy(self) -> Result:
        """Perform the run without a crash, which must come first, and return its judged result."""

    def jobs(self) -> list[Job]:
        """Return the jobs that are known after the run without a crash."""

    def named(self, name: str) -> Iterator[Job]:
        """Return the jobs for one name of `--only`. Raises `InvalidInput` at once if there is no such run."""

    def second_crashes(self) -> list[Job]:
        """Return the jobs that are known only after the jobs of `jobs` have run."""

    def rest(self) -> Iterator[Sequence[Job]]:
        """Yield, as long as there is time, groups of jobs for the points and pairs that the jobs before did not try."""

    def last_jobs(self) -> Iterator[Job]:
        """Yield the jobs that depend on all earlier runs: large batches of a sink, a pipeline's state elsewhere."""

    def run(self, job: Job) -> Result:
        """Perform the run of one job and return its judged result."""

    def listing(self) -> list[dict[str, str]]:
        """Return the id of each crash point, with the line of Python there, and then the id of each other run."""

    def stopped(self) -> Report | None:
        """Return the report of a test that was stopped early; None if not even the run without a crash had ended."""

    def report(self) -> Report:
        """Return the report on the runs so far."""


def crash_test(subject: str = "", *, folder: Path | None = None, tell: Tell = silent, **more: Any) -> Report:
    """Run the crash test of the sink `FILE:NAME`, and return the report.

    `more` are options by keyword, as in `labkit.crashtest.settings.settings`. Raises `InvalidInput` with one sentence
    if the file, the name, the reader or the store cannot be tested.
    """
    with campaign_of(settings(subject, **more), folder, tell) as running:
        return running.everything()


def campaign_of(
    wanted: Settings | PipelineSettings, folder: Path | None = None, tell: Tell = silent, *, only_lists: bool = False
) -> AbstractContextManager[Tests]:
    """Return the crash test for these settings as a context manager.

    `only_lists` says that no run follows the one without a crash. Each kind of test is imported only when it is used,
    because only sinks need Spark.
    """
    if isinstance(wanted, PipelineSettings):
        from labkit.crashtest.blackbox.campaign import pipeline_campaign

        return pipeline_campaign(wanted, folder, tell)
    from labkit.crashtest.kernel import kernel_campaign

    return kernel_campaign(wanted, folder, tell, only_lists=only_lists)
