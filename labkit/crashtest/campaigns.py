"""Chooses the kind of crash test that the given settings need: that of a sink, or that of a pipeline."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from labkit.crashtest.blackbox.campaign import Campaign, pipeline_campaign
from labkit.crashtest.blackbox.settings import PipelineSettings
from labkit.crashtest.ledger import Tell, silent
from labkit.crashtest.report import Report
from labkit.crashtest.settings import Settings, settings


def crash_test(subject: str = "", *, folder: Path | None = None, tell: Tell = silent, **more: Any) -> Report:
    """Run the crash test of the sink `subject` (`FILE:NAME`), with the options of `labkit.crashtest.settings.settings`.

    The logs go to `folder`, by default a temporary one. `tell` is called with each progress message. Raises
    `InvalidInput` if the file, the name, the reader or the store does not work.
    """
    with campaign_of(settings(subject, **more), folder, tell) as running:
        return running.everything()


def campaign_of(
    wanted: Settings | PipelineSettings, folder: Path | None = None, tell: Tell = silent, *, only_lists: bool = False
) -> AbstractContextManager[Campaign]:
    """Provide, in a `with` block, the crash test that the settings `wanted` describe.

    With `only_lists`, the caller needs nothing but the list of crash points, so no Spark session starts in advance.
    """
    if isinstance(wanted, PipelineSettings):
        return pipeline_campaign(wanted, folder, tell)
    from labkit.crashtest.kernel import kernel_campaign

    return kernel_campaign(wanted, folder, tell, only_lists=only_lists)
