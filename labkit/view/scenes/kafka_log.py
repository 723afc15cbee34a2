"""Draw the simulator of Kafka's log: the job, the coordinator, the partitions, and a reader at each isolation level."""

from labkit.sim.model import Action
from labkit.sim.models.kafka_log.model import TEN, KafkaLog
from labkit.sim.models.kafka_log.state import (
    COMMIT,
    NOBODY,
    PLAIN,
    Budget,
    Coordinator,
    Fate,
    Handle,
    Job,
    Partition,
    Phase,
    Reader,
    Sight,
    Stage,
    State,
    fates,
    last_stable_offset,
)
from labkit.view.scene import (
    Box,
    Channel,
    Drawing,
    Kind,
    Mark,
    Place,
    Row,
    Scene,
    Shape,
    Token,
    field,
    flag,
    may_follow,
    slip,
)


def scene(model: KafkaLog, state: State) -> Scene:
    """Return the picture of a state: the job on the left, the broker's data in the middle, and readers on the right."""
    boxes = [_job("job", "job", state.job)]
    if state.zombie != NOBODY:
        boxes.append(_job("zombie", "the job thought dead", state.zombie))
    boxes.append(_coordinator(state.coordinator))
    boxes += [_partition(where, partition) for where, partition in enumerate(state.partitions)]
    requests = tuple(slip(f"commit {each.handle}") for each in state.requests)
    for which, reader in enumerate(state.readers):
        boxes.append(_reader(model, which, reader, state.sights[which], state.partitions))
    left = may_follow(Budget._fields, state.budget)
    left += f"; {state.since} ticks since the last checkpoint began" * bool(state.since)
    left += f"; the job has failed {state.failures} times" * bool(state.failures)
    return Scene(tuple(boxes), (Channel("requests", "job", "coordinator", requests),), left)


def _job(name: str, title: str, job: Job) -> Box:
    down, ended = job.phase is Phase.DOWN, job.phase is Phase.ENDED
    done = tuple(slip(f"{each.number}: next {each.offset}, {_handles(each.handles)}") for each in job.checkpoints)
    rows = [field(job, "checkpoints", "completed checkpoints", "" if done else "none", done)]
    rows.append(field(job, "offset", "next record", "gone" if down else str(job.offset)))
    rows.append(field(job, "current", "writes with", "gone" if down else str(job.current or "none")))
    if job.pending:
        rows.append(field(job, "pending", "pre-committed", _handles(job.pending)))
    if (begun := job.triggered) is not None:
        rows.append(field(job, "triggered", f"checkpoint {begun.number}", f"under way: {_handles(begun.handles)}"))
    if job.due:
        due = " ".join(f"{each.handle}{' (asked)' * each.is_sent}" for each in job.due)
        rows.append(field(job, "due", "to commit", due))
    if job.to_fence:
        rows.append(field(job, "to_fence", "to initialise", " ".join(f"t{number}" for number in job.to_fence)))
    marks = (Mark.DOWN,) * down + (Mark.ENDED,) * ended
    return Box(name, 0, f"{title} {job.incarnation}", _PHASES[job.phase], tuple(rows), marks)


_PHASES = {
    Phase.DOWN: "down: its memory is gone",
    Phase.RECOVERING: "recovering",
    Phase.RUNNING: "running",
    Phase.ENDED: "ended",
}


def _handles(handles: tuple[Handle, ...]) -> str:
    return " ".join(map(str, handles)) or "no transaction"


_STAGES = {
    Stage.EMPTY: "empty",
    Stage.ONGOING: "ongoing",
    Stage.PREPARE_COMMIT: "PrepareCommit",
    Stage.PREPARE_ABORT: "PrepareAbort",
    Stage.COMPLETE_COMMIT: "CompleteCommit",
    Stage.COMPLETE_ABORT: "CompleteAbort",
}


def _coordinator(coordinator: Coordinator) -> Box:
    rows = [
        field(
            coordinator,
            "log",
            f"t{name}, epoch {entry.epoch}",
            _STAGES[entry.stage] + f", age {entry.age}" * bool(entry.age),
        )
        for name, entry in enumerate(coordinator.log)
        if entry.epoch >= 0
    ]
    if not rows:
        rows = [field(coordinator, "log", "its log", "empty")]
    marked = " ".join(f"t{name}/p{where}" for name, where in coordinator.marked)
    rows.append(field(coordinator, "marked", "markers written", marked or "none" if coordinator.is_up else "gone"))
    says = "logs every decision" if coordinator.is_up else "down: its memory is gone"
    return Box("coordinator", 1, "coordinator", says, tuple(rows), (Mark.DOWN,) * (not coordinator.is_up))


_FATES = {
    Fate.OPEN: (Kind.OPEN, "open"),
    Fate.COMMITTED: (Kind.COMMITTED, "committed"),
    Fate.ABORTED: (Kind.ABORTED, "aborted"),
}


def _partition(where: int, partition: Partition) -> Box:
    stable, fate_of = last_stable_offset(partition), fates(partition)
    tokens = [_slot(partition, position) for position in range(len(partition))]
    if stable < len(partition):
        tokens.insert(stable, Token(Shape.STOP, "", "last stable offset"))
    rows = [Row(Kind.PLAIN, "positions", "" if tokens else "empty", tuple(tokens))]
    for fate, (kind, word) in _FATES.items():
        records = [str(slot.record) for slot, each in zip(partition, fate_of, strict=True) if each is fate]
        rows.append(Row(kind, word, " ".join(records) or "none"))
    says = f"last stable offset {stable} of {len(partition)}"
    return Box(f"partition{where}", 1, f"partition {where}", says, tuple(rows))


def _slot(partition: Partition, position: int) -> Token:
    slot = partition[position]
    if slot.record < 0:
        word = "commit" if slot.record == COMMIT else "abort"
        return flag(f"{word[0].upper()}{slot.name}", f"marker: {word} of t{slot.name}")
    dropped = fates(partition)[position] is Fate.ABORTED
    shape = Shape.SQUARE if slot.name == PLAIN else Shape.CIRCLE
    words = f"record {slot.record} " + ("without a transaction" if slot.name == PLAIN else f"of t{slot.name}")
    return Token(shape, str(slot.record), words, dropped, dropped)


def _reader(model: KafkaLog, which: int, reader: Reader, sight: Sight, partitions: tuple[Partition, ...]) -> Box:
    rows = []
    for where, records in enumerate(sight):
        tokens = tuple(_slot(partitions[where], each.position)._replace(faded=False) for each in records)
        rows.append(Row(Kind.VISIBLE, f"of partition {where}", "" if tokens else "nothing", tokens))
    at = " ".join(map(str, reader.positions)) if reader.is_up else "gone"
    rows.append(field(reader, "positions", "positions", at))
    rows.append(field(reader, "stored", "stored positions", " ".join(map(str, reader.stored))))
    says = "has handed on, in order" if reader.is_up else "down: its memory is gone"
    return Box(f"reader{which}", 2, model.settings.readers[which], says, tuple(rows), (Mark.DOWN,) * (not reader.is_up))


_OF_COORDINATOR = ("deliver", "mark", "expire", "crash_coordinator", "restart_coordinator")


def place(model: KafkaLog, action: Action) -> Place:
    """Return the box that carries out an action, and the partition or coordinator that the action affects directly."""
    name, which = action
    settings, event = model.settings, model.event(action)
    if name == "mark":
        return Place("coordinator", event, (f"partition{which % TEN}",))
    if name in _OF_COORDINATOR:
        return Place("coordinator", event)
    if name.startswith("poll_"):
        reader = settings.readers.index(f"read_{name.removeprefix('poll_')}")
        return Place(f"reader{reader}", event, (f"partition{which}",))
    if name in ("store_positions", "restart_reader", "crash_reader"):
        return Place(f"reader{which}", event)
    if name == "write_plain":
        return Place("partition0", event)
    reached: tuple[str, ...] = ()
    if name in ("write", "zombie_write"):
        reached = (f"partition{settings.partition_of(which)}",)
    elif name in ("begin", "fence"):
        reached = ("coordinator",)
    return Place("zombie" if name == "zombie_write" else "job", event, reached)


DRAWING = Drawing(scene, place)
