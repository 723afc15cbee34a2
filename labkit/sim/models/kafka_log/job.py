"""What the writing job does: begin, write, pre-commit, complete a checkpoint, ask for the commit, recover.

As Flink's Kafka sink does it: the barrier seals the transaction and its handle goes into the checkpoint; the completed
checkpoint is the decision; only then is the commit sent, by whoever holds the handle, also after a restart. Recovery
commits what the last checkpoint names before it initialises any id.
"""

from labkit.sim.models.kafka_log.coordinator import Answer, entry_of, is_busy
from labkit.sim.models.kafka_log.state import Checkpoint, Coordinator, Due, Handle, Job, Phase, Settings


def can_begin(settings: Settings, coordinator: Coordinator, job: Job) -> bool:
    """Whether the producer needs an id, and may have the next one: it has no open transaction, and input is left."""
    if job.phase is not Phase.RUNNING or job.current is not None or job.offset == settings.records:
        return False
    return coordinator.is_up and not is_busy(coordinator, next_name(settings, job))


def next_name(settings: Settings, job: Job) -> int:
    """The id of the next transaction: that of the checkpoint which will commit it, or the only one."""
    return 0 if settings.reuses_id else job.number + 1


def begin(job: Job, handle: Handle) -> Job:
    """The producer is bound to an id and has its epoch; nothing is open before the first record."""
    return job._replace(current=handle, added=0)


def can_write(settings: Settings, job: Job) -> bool:
    """Whether the producer has a transaction that is free: one id can hold only one that is not yet committed."""
    if job.phase is not Phase.RUNNING or job.current is None or job.offset == settings.records:
        return False
    return not (settings.reuses_id and (job.pending or job.due))


def can_trigger(settings: Settings, job: Job, since: int) -> bool:
    """Whether a barrier may come: something is to be committed, no checkpoint is under way, and it is time."""
    if job.phase is not Phase.RUNNING or job.triggered is not None or not (job.added or job.pending):
        return False
    return since >= settings.interval or job.offset == settings.records


def pre_commit(settings: Settings, job: Job) -> Job:
    """The barrier: what was written is flushed and sealed, and its handle goes into the checkpoint."""
    number = job.number + 1
    pending, current, due = job.pending, job.current, job.due
    if job.added:
        assert current is not None
        pending = (*pending, current)
        if settings.broken == "early_commit":
            due = (*due, Due(current))
        if not settings.reuses_id:
            current = None
    elif not settings.reuses_id:
        current = None
    handles = (*(each.handle for each in job.due), *pending)
    return job._replace(
        number=number,
        current=current,
        added=0,
        pending=pending,
        triggered=Checkpoint(number, job.offset, handles),
        due=due,
    )


def complete(job: Job) -> Job:
    """The checkpoint is durable: everything in it is decided, also what rode along from one that expired."""
    assert job.triggered is not None
    waiting = {each.handle for each in job.due}
    new = tuple(Due(handle) for handle in job.pending if handle not in waiting)
    return job._replace(checkpoints=(*job.checkpoints, job.triggered), pending=(), triggered=None, due=(*job.due, *new))


def lapse(job: Job) -> Job:
    """The checkpoint expires and the job lives on; its transactions stay pending for the next one."""
    return job._replace(triggered=None)


def sent(job: Job, number: int) -> Job:
    """The job has asked for a commit and waits for the answer."""
    due = job.due
    return job._replace(due=(*due[:number], Due(due[number].handle, is_sent=True), *due[number + 1 :]))


def answered(settings: Settings, job: Job, handle: Handle, answer: Answer) -> Job | None:
    """The answer to a commit arrives. None: the job fails. A producer of version 2 learns its new epoch from it."""
    if Due(handle, is_sent=True) not in job.due:
        return job
    if answer is Answer.REFUSED and settings.fails_when_refused:
        return None
    job = job._replace(due=tuple(each for each in job.due if each.handle != handle))
    if job.current == handle:
        current = Handle(handle.name, handle.epoch + settings.bumps_epoch) if answer is Answer.DONE else None
        job = job._replace(current=current)
    return recovered(job)


def restart(settings: Settings, coordinator: Coordinator, job: Job) -> Job:
    """A new incarnation reads the last completed checkpoint: what to commit, what to fence, where to read on."""
    last = job.checkpoints[-1] if job.checkpoints else Checkpoint(-1, 0, ())
    lingering = range(1) if settings.reuses_id else range(last.number + 1, len(coordinator.log))
    to_fence = tuple(name for name in lingering if entry_of(coordinator, name) is not None)
    if settings.broken == "init_first":
        to_fence = (*(handle.name for handle in last.handles if handle.name not in to_fence), *to_fence)
    elif settings.broken == "forget_lingering":
        to_fence = ()
    return recovered(
        Job(
            job.checkpoints,
            job.incarnation + 1,
            Phase.RECOVERING,
            last.number,
            last.offset,
            due=tuple(Due(handle) for handle in last.handles),
            to_fence=to_fence,
        )
    )


def may_fence(settings: Settings, job: Job) -> bool:
    """Whether recovery may initialise ids: only when all that was decided is committed."""
    return bool(job.to_fence) and (not job.due or settings.broken == "init_first")


def may_send(settings: Settings, job: Job) -> bool:
    """Whether the job may ask for commits."""
    return not (settings.broken == "init_first" and job.to_fence)


def fenced(job: Job) -> Job:
    """One id is initialised, and nothing is open under it."""
    return recovered(job._replace(to_fence=job.to_fence[1:]))


def recovered(job: Job) -> Job:
    """A recovery with nothing left to do is over."""
    if job.phase is Phase.RECOVERING and not job.due and not job.to_fence:
        return job._replace(phase=Phase.RUNNING)
    return job


def is_finished(settings: Settings, job: Job) -> bool:
    """Whether the job may end: all input is written, and every transaction is committed or given up."""
    if job.phase is not Phase.RUNNING or job.offset < settings.records:
        return False
    return not (job.added or job.pending or job.triggered or job.due)


def roll_back(job: Job) -> Job:
    """Somebody removes the newest completed checkpoint."""
    return job._replace(checkpoints=job.checkpoints[:-1])
