"""What a restart reads, and where it goes on: the only place that knows the meaning of a design's recovery.

This module must not change what lies in a store.
"""

from labkit.sim.models.orders.parts import NO_JOB, NOTHING, Job, Note, Process
from labkit.sim.models.orders.settings import Settings, World
from labkit.sim.writes import Leftover, Start, Write


def next_job(settings: Settings, process: Process) -> Job:
    """The step that runs next after a restart, still without rows."""
    note = _note(settings.design.recovery.start, process)
    offset = note.end
    if settings.world is World.GONE:
        offset = max(offset, process.notice.end)
    step = note.step + 1
    return Job(step, offset, offset, _count(settings, process, step, offset))


def _note(start: Start, process: Process) -> Note:
    if start is Start.STATE:
        if not process.states:
            return NOTHING
        return Note(process.states[-1].step, process.states[-1].end)
    if start is Start.PLAN:
        if not process.plans:
            return NOTHING
        last = process.plans[-1]
        return Note(last.step - 1, last.start)
    return {
        Start.BEGINNING: NOTHING,
        Start.MARKER: process.marker,
        Start.DECISION: process.decision,
        Start.NOTICE: process.notice,
    }[start]


def _count(settings: Settings, process: Process, step: int, offset: int) -> int:
    """The running count before a step. A design without state derives each value from its row alone."""
    design = settings.design
    if Write.STATE not in design.writes:
        return offset
    if design.recovery.newest:
        return process.states[-1].total if process.states else 0
    before = [each.total for each in process.states if each.step < step]
    return before[-1] if before else 0


def to_finish(settings: Settings, process: Process) -> Job:
    """The staged step that a restart goes on with; `NO_JOB`: there is none, and staged output is dropped."""
    leftover, staged = settings.design.recovery.leftover, process.staged
    if staged is NO_JOB or leftover is Leftover.DROPPED:
        return NO_JOB
    if leftover is Leftover.DECIDED and staged.step >= next_job(settings, process).step:
        return NO_JOB
    return staged


def planned(process: Process, job: Job) -> Job | None:
    """The durable plan of a step, as far as its input is still there."""
    for plan in process.plans:
        if plan.step == job.step and plan.start <= job.start < plan.end:
            return plan
    return None
