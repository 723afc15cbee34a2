"""The steps of the writing job: begin, write, pre-commit, complete a checkpoint, request the commit, recover.

They follow Flink's Kafka sink. At the barrier the job seals the transaction and puts its handle into the checkpoint.
The completed checkpoint is the decision to commit; only then does the job, or its next incarnation, request the commit.
Recovery commits the transactions of the last checkpoint before it initialises any id.
"""

from labkit.sim.models.kafka_log.coordinator import Answer, entry_of, is_busy
from labkit.sim.models.kafka_log.state import Checkpoint, Coordinator, Due, Handle, Job, Phase, Settings


def can_begin(settings: Settings, coordinator: Coordinator, job: Job) -> bool:
    """Return whether the job may initialise its next transactional id.

    The job must have input left and no transaction, and all markers of the id's last transaction must be written.
    """
    if job.phase is not Phase.RUNNING or job.current is not None or job.offset == settings.records:
        return False
    return coordinator.is_up and not is_busy(coordinator, next_name(settings, job))


def next_name(settings: Settings, job: Job) -> int:
    """Return the id for the next transaction: the number of its checkpoint, or 0 if all transactions share one id."""
    return 0 if settings.reuses_id else job.number + 1


def can_write(settings: Settings, job: Job) -> bool:
    """Return whether the producer may write the next record.

    If all transactions share one id, the producer must wait until the transaction before this one is committed.
    """
    if job.phase is not Phase.RUNNING or job.current is None or job.offset == settings.records:
        return False
    return not (settings.reuses_id and (job.pending or job.due))


def can_trigger(settings: Settings, job: Job, since: int) -> bool:
    """Return whether a checkpoint may start: none is running, there is something to commit, and the interval is over.

    `since` is the number of ticks since the last checkpoint or restart of the job. At the end of the input, the job
    does not wait for the end of the interval.
    """
    if job.phase is not Phase.RUNNING or job.triggered is not None or not (job.added or job.pending):
        return False
    return since >= settings.interval or job.offset == settings.records


def pre_commit(settings: Settings, job: Job) -> Job:
    """Return the job after a checkpoint barrier, which flushes the open transaction and adds it to the checkpoint."""
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
    """Return the job's next state when its checkpoint is durable: now it must commit all its pending transactions."""
    assert job.triggered is not None
    waiting = {each.handle for each in job.due}
    new = tuple(Due(handle) for handle in job.pending if handle not in waiting)
    return job._replace(checkpoints=(*job.checkpoints, job.triggered), pending=(), triggered=None, due=(*job.due, *new))


def sent(job: Job, number: int) -> Job:
    """Return the job after it has requested the commit of the transaction at position `number` of its list `due`."""
    due = job.due
    return job._replace(due=(*due[:number], Due(due[number].handle, is_sent=True), *due[number + 1 :]))


def answered(settings: Settings, job: Job, handle: Handle, answer: Answer) -> Job | None:
    """Return the job after the answer to its request to commit, or None if the job fails because of a refusal.

    A producer with transactions of version 2 learns its new epoch from the answer.
    """
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
    """Return the job after a restart from its last completed checkpoint.

    The result contains the transactions to commit, the transactional ids to fence, and the offset to read next.
    """
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
    """Return whether recovery may now initialise transactional ids, which aborts their open transactions.

    Unless `broken=init_first` is set, recovery first commits the transactions of its checkpoint.
    """
    return bool(job.to_fence) and (not job.due or settings.broken == "init_first")


def may_send(settings: Settings, job: Job) -> bool:
    """Return whether the job may request commits.

    With `broken=init_first`, its recovery must first initialise all transactional ids in `job.to_fence`.
    """
    return not (settings.broken == "init_first" and job.to_fence)


def recovered(job: Job) -> Job:
    """Return the job; a recovering job with nothing left to commit or to fence changes to the phase RUNNING."""
    if job.phase is Phase.RECOVERING and not job.due and not job.to_fence:
        return job._replace(phase=Phase.RUNNING)
    return job


def is_finished(settings: Settings, job: Job) -> bool:
    """Return whether the job may end, because all input is written and every transaction is committed or given up."""
    if job.phase is not Phase.RUNNING or job.offset < settings.records:
        return False
    return not (job.added or job.pending or job.triggered or job.due)
