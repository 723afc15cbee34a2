"""Chooses the campaign for settings: a sink's with instruments, a sink's by its system calls, or a pipeline's."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from labkit.crashtest.blackbox.settings import PipelineSettings
from labkit.crashtest.jobs import Job
from labkit.crashtest.ledger import Tell, silent
from labkit.crashtest.report import Report
from labkit.crashtest.settings import Settings
from labkit.crashtest.verdict import Result


class Tests(Protocol):
    """The test of a sink or of a pipeline, as a whole or run by run."""

    @property
    def results(self) -> list[Result]:
        """The results of the runs so far."""

    def everything(self) -> Report:
        """Makes all runs."""

    def healthy(self) -> Result:
        """The run without a crash, which comes first."""

    def jobs(self) -> list[Job]:
        """The jobs that are known after the run without a crash."""

    def second_crashes(self) -> list[Job]:
        """The jobs that are known after the runs of `jobs`."""

    def large_jobs(self) -> Iterator[Job]:
        """The jobs with more rows than the others."""

    def run(self, job: Job) -> Result:
        """Makes the run of one job."""


def campaign_of(
    wanted: Settings | PipelineSettings, folder: Path | None = None, tell: Tell = silent
) -> AbstractContextManager[Tests]:
    """The campaign, within a `with` block. Each kind is imported when it is needed: only sinks need Spark."""
    if isinstance(wanted, PipelineSettings):
        from labkit.crashtest.blackbox.campaign import pipeline_campaign

        return pipeline_campaign(wanted, folder, tell)
    if wanted.by_kernel:
        from labkit.crashtest.kernel import kernel_campaign

        return kernel_campaign(wanted, folder, tell)
    from labkit.crashtest.campaign import campaign

    return campaign(wanted, folder, tell)
