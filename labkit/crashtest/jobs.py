"""The jobs of a test: the runs to perform, each with an id, a title and a group."""

from collections.abc import Callable
from typing import Any, NamedTuple

from labkit.crashtest.verdict import Group, Result

NEVER_REACHED = "the point was never reached"
"""The beginning of the reason why a run proves nothing if its job ended without reaching the crash point."""

RAISED = "the sink raised "
"""The beginning of the line in which the job of a sink prints an error of the user's code."""


class Job(NamedTuple):
    """One run that a crash test is to perform: its id, title and kind, and the function that performs it."""

    id: str
    title: str
    group: Group
    perform: Callable[[Any, Any], None] | None = None
    """Performs the run, given the harness and the record of the run (`labkit.crashtest.blackbox.runs`).

    None for a doubt about the test's view, which needs no run, and for a power cut, which needs several.
    """
    fault: str = ""
    """The kind of fault that a call suffers in the run; empty for a run without one."""


def unknown(job: Job, why: str) -> Result:
    """Return the result of a run that proves nothing; `why` is the reason."""
    return Result(job.id, job.title, job.group, unknown=why)
