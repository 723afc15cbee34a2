"""The log in words: a state in one line, and what comes of an action that is refused. Nothing here decides anything."""

from labkit.sim.model import Action
from labkit.sim.models.kafka_log.log import Fate, fates, last_stable_offset
from labkit.sim.models.kafka_log.parts import (
    COMMIT,
    NOBODY,
    PLAIN,
    Budget,
    Checkpoint,
    Coordinator,
    Job,
    Partition,
    Phase,
    Slot,
    State,
)
from labkit.sim.models.kafka_log.settings import Settings
from labkit.sim.wording import listed, members, to_come


def answered(*, was_refused: bool, nothing_new: bool, ends: bool) -> str:
    """What comes of a request to commit, where it is not that the coordinator decides; empty: that is it."""
    if was_refused:
        then = "the job ends with this error" if ends else "whoever asked logs the error and goes on"
        return f"A request to commit reaches the coordinator, and nothing is open under its epoch: refused, and {then}."
    if nothing_new:
        return "A request to commit reaches the coordinator, which has committed it before: nothing changes."
    return ""


def refused(action: Action) -> str:
    """What a write does that Kafka refuses."""
    why = "its producer is fenced, or its transaction is over"
    if action.name == "zombie_write":
        return f"The job that was thought dead tries to write record {action.which} and is refused: {why}."
    return f"Record {action.which} is refused, and the job ends with this error: {why}."


def text(settings: Settings, state: State) -> str:
    """Job, coordinator, partitions, readers, and what may still happen."""
    parts = [_job(state.job)]
    if state.zombie != NOBODY:
        parts.append(f"zombie {_job(state.zombie)}")
    parts.append(_coordinator(state.coordinator))
    parts += [f"p{where} {_partition(partition)}" for where, partition in enumerate(state.partitions)]
    for which, reader in enumerate(state.readers):
        at = f"at {listed(map(str, reader.positions))}" if reader.is_up else "down"
        stored = "" if reader.stored == reader.positions else f", stored {listed(map(str, reader.stored))}"
        parts.append(f"{settings.readers[which]} {at}{stored}, has {_sight(state, which)}")
    if state.requests:
        parts.append(f"on their way {listed(f'commit {each.handle} of {each.attempt}' for each in state.requests)}")
    left = to_come(Budget._fields, state.budget)
    parts.append(f"to come {listed(left)}")
    if state.since:
        parts.append(f"{state.since} ticks since")
    return "; ".join(parts) + (f"; {state.failures} failed." if state.failures else ".")


def _job(job: Job) -> str:
    done = f"checkpoints {listed(map(_checkpoint, job.checkpoints))}"
    if job.phase in (Phase.DOWN, Phase.ENDED):
        return f"job {job.incarnation} {job.phase}, {done}"
    sentence = f"job {job.incarnation} {job.phase}, number {job.number}, offset {job.offset}"
    sentence += f", producer {job.current or '-'}" + (f" in {_bits(job.added)}" if job.added else "")
    if job.pending:
        sentence += f", pending {listed(map(str, job.pending))}"
    if job.triggered:
        sentence += f", under way {_checkpoint(job.triggered)}"
    if job.due:
        sentence += f", due {listed(f'{each.handle}' + ' asked' * each.is_sent for each in job.due)}"
    if job.to_fence:
        sentence += f", to fence {listed(f't{name}' for name in job.to_fence)}"
    return f"{sentence}, {done}"


def _checkpoint(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.number}@{checkpoint.offset} {listed(checkpoint.handles)}"


def _coordinator(coordinator: Coordinator) -> str:
    log = listed(
        f"t{name} {stage}/e{epoch}"
        + (f" in {_bits(partitions)}" if partitions else "")
        + (f" age {age}" if age else "")
        for name, (stage, epoch, partitions, age) in enumerate(coordinator.log)
        if epoch >= 0
    )
    marked = (
        f", marked {listed(f't{name}-p{where}' for name, where in coordinator.marked)}" if coordinator.marked else ""
    )
    return f"coordinator {'up' if coordinator.is_up else 'down'}: {log}{marked}"


def _partition(partition: Partition) -> str:
    end = last_stable_offset(partition)
    slots = [_slot(slot) for slot in partition]
    return listed([*slots[:end], "|", *slots[end:]]) if end < len(slots) else listed(slots)


def _slot(slot: Slot) -> str:
    if slot.record < 0:
        return f"{'C' if slot.record == COMMIT else 'A'}(t{slot.name}/e{slot.epoch})"
    if slot.name == PLAIN:
        return f"{slot.record}"
    return f"{slot.record}(t{slot.name}/e{slot.epoch}/c{slot.batch}/i{slot.attempt})"


def _sight(state: State, which: int) -> str:
    parts = []
    for where, (partition, sight) in enumerate(zip(state.partitions, state.sights[which], strict=True)):
        fate_of = fates(partition)
        for position, early in sight:
            mark = "!" if early else ""
            parts.append(
                f"p{where}:{position}={partition[position].record}{mark}{'x' * (fate_of[position] is Fate.ABORTED)}"
            )
    return listed(parts)


def _bits(partitions: int) -> str:
    return "+".join(f"p{where}" for where in members(partitions))
