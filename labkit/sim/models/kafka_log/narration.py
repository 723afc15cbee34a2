"""The log in words: a state in one line, an action in one sentence. Nothing here decides anything."""

from collections.abc import Iterable

from labkit.sim.model import Action
from labkit.sim.models.kafka_log.enabled import TEN
from labkit.sim.models.kafka_log.log import Fate, fates, last_stable_offset
from labkit.sim.models.kafka_log.parts import (
    COMMIT,
    NOBODY,
    PLAIN,
    Budget,
    Coordinator,
    Job,
    Partition,
    Phase,
    Slot,
    State,
)
from labkit.sim.models.kafka_log.settings import Settings

SENTENCES = {
    "restart": "Incarnation {which} of the job starts from the last completed checkpoint.",
    "fence": "Recovery initialises the id t{which}: what is open under it is aborted, and older epochs are fenced.",
    "begin": "The producer initialises the id t{which} for its next transaction; nothing is open yet.",
    "write": "Record {which} goes into the job's transaction; the first one opens it, and its clock starts.",
    "pre_commit": "The barrier of checkpoint {which}: the transaction is sealed, and the checkpoint takes its handle.",
    "complete": "Checkpoint {which} is complete: the decision.",
    "send_commit": "The job asks the coordinator for a commit that is decided.",
    "finish": "All is committed or given up: the job ends.",
    "zombie_write": "The job that was thought dead tries to write record {which}.",
    "deliver": "A request to commit reaches the coordinator, which decides and answers; the markers come later.",
    "mark": "The marker of the id t{name} goes into partition {where}.",
    "expire": "The transaction of the id t{which} is too old: the coordinator aborts it and fences its producer.",
    "restart_coordinator": "The coordinator starts again from its log.",
    "poll_committed": "The reader at read_committed polls partition {which}, up to the last stable offset.",
    "poll_uncommitted": "The reader at read_uncommitted polls partition {which}, up to its end.",
    "store_positions": "Reader {which} stores its positions.",
    "restart_reader": "Reader {which} starts again from the positions that it has stored.",
    "crash": "The job dies; only its completed checkpoints are left.",
    "crash_coordinator": "The coordinator dies; only its log is left.",
    "crash_reader": "Reader {which} dies; only its stored positions are left.",
    "resend": "No answer has come, so the job asks for the commit again; the first request may still arrive.",
    "lapse": "Checkpoint {which} expires, and the job lives on; its transaction waits for the next one.",
    "roll_back": "Somebody removes checkpoint {which}, so that an older one is restored.",
    "replace_job": "The job hangs, is thought dead, and will be replaced; it will wake up.",
    "write_plain": "Somebody else writes a record without a transaction.",
    "tick": "A tick of time passes.",
}


def sentence(_settings: Settings, action: Action) -> str:
    """What happens."""
    name, where = divmod(action.which, TEN)
    return SENTENCES[action.name].format(which=action.which, name=name, where=where)


def answered(*, was_refused: bool, nothing_new: bool, ends: bool) -> str:
    """What comes of a request to commit."""
    if was_refused:
        then = (
            "the job ends with this error"
            if ends
            else "whoever asked logs the error and goes on"
        )
        return f"A request to commit reaches the coordinator, and nothing is open under its epoch: refused, and {then}."
    if nothing_new:
        return "A request to commit reaches the coordinator, which has committed it before: nothing changes."
    return SENTENCES["deliver"]


def refused(action: Action) -> str:
    """What a write does that Kafka refuses."""
    why = "its producer is fenced, or its transaction is over"
    if action.name == "zombie_write":
        return f"The job that was thought dead tries to write record {action.which} and is refused: {why}."
    return f"Record {action.which} is refused, and the job ends with this error: {why}."


def text(settings: Settings, state: State) -> str:
    """Job, coordinator, partitions, readers, and what may still happen."""
    parts = [_job(state.job)]
    if state.zombie is not NOBODY:
        parts.append(f"zombie {_job(state.zombie)}")
    parts.append(_coordinator(state.coordinator))
    parts += [
        f"p{where} {_partition(partition)}"
        for where, partition in enumerate(state.partitions)
    ]
    for which, reader in enumerate(state.readers):
        at = f"at {_all(map(str, reader.positions))}" if reader.is_up else "down"
        stored = (
            ""
            if reader.stored == reader.positions
            else f", stored {_all(map(str, reader.stored))}"
        )
        parts.append(
            f"{settings.readers[which]} {at}{stored}, has {_sight(state, which)}"
        )
    if state.requests:
        parts.append(
            f"on their way {_all(f'commit {each.handle} of {each.attempt}' for each in state.requests)}"
        )
    left = [
        f"{count} {name}"
        for name, count in zip(Budget._fields, state.budget, strict=True)
        if count
    ]
    parts.append(f"to come {_all(left)}")
    if state.since:
        parts.append(f"{state.since} ticks since")
    return "; ".join(parts) + (f"; {state.failures} failed." if state.failures else ".")


def _job(job: Job) -> str:
    done = f"checkpoints {_all(f'{each.number}@{each.offset} {_all(map(str, each.handles))}' for each in job.checkpoints)}"
    if job.phase in (Phase.DOWN, Phase.ENDED):
        return f"job {job.incarnation} {job.phase}, {done}"
    said = (
        f"job {job.incarnation} {job.phase}, number {job.number}, offset {job.offset}"
    )
    said += f", producer {job.current or '-'}" + (
        f" in {_bits(job.added)}" if job.added else ""
    )
    if job.pending:
        said += f", pending {_all(map(str, job.pending))}"
    if job.triggered:
        said += f", under way {job.triggered.number}@{job.triggered.offset} {_all(map(str, job.triggered.handles))}"
    if job.due:
        said += f", due {_all(f'{each.handle}' + ' asked' * each.is_sent for each in job.due)}"
    if job.to_fence:
        said += f", to fence {_all(f't{name}' for name in job.to_fence)}"
    return f"{said}, {done}"


def _coordinator(coordinator: Coordinator) -> str:
    log = _all(
        f"t{name} {stage}/e{epoch}"
        + (f" in {_bits(partitions)}" if partitions else "")
        + (f" age {age}" if age else "")
        for name, (stage, epoch, partitions, age) in enumerate(coordinator.log)
        if epoch >= 0
    )
    marked = (
        f", marked {_all(f't{name}-p{where}' for name, where in coordinator.marked)}"
        if coordinator.marked
        else ""
    )
    return f"coordinator {'up' if coordinator.is_up else 'down'}: {log}{marked}"


def _partition(partition: Partition) -> str:
    end = last_stable_offset(partition)
    slots = [_slot(slot) for slot in partition]
    return _all([*slots[:end], "|", *slots[end:]]) if end < len(slots) else _all(slots)


def _slot(slot: Slot) -> str:
    if slot.record < 0:
        return f"{'C' if slot.record == COMMIT else 'A'}(t{slot.name}/e{slot.epoch})"
    if slot.name == PLAIN:
        return f"{slot.record}"
    return f"{slot.record}(t{slot.name}/e{slot.epoch}/c{slot.batch}/i{slot.attempt})"


def _sight(state: State, which: int) -> str:
    said = []
    for where, (partition, sight) in enumerate(
        zip(state.partitions, state.sights[which], strict=True)
    ):
        found = fates(partition)
        for position, early in sight:
            mark = "!" if early else ""
            said.append(
                f"p{where}:{position}={partition[position].record}{mark}{'x' * (found[position] is Fate.ABORTED)}"
            )
    return _all(said)


def _bits(partitions: int) -> str:
    return "+".join(
        f"p{where}"
        for where in range(partitions.bit_length())
        if partitions >> where & 1
    )


def _all(words: Iterable[str]) -> str:
    return " ".join(words) or "-"
