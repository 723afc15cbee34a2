"""Draw the simulator of barrier snapshots: sources, counting tasks, the sink, the coordinator, the table of output."""

from collections.abc import Iterable

from labkit.sim.model import Action
from labkit.sim.models.barriers.model import Barriers
from labkit.sim.models.barriers.state import BARRIER, ENDED, MISSING, Checkpoint, Operator, Source, State, records_in
from labkit.view.scene import (
    Box,
    Channel,
    Drawing,
    Kind,
    Mark,
    Place,
    Row,
    Scene,
    Token,
    field,
    flag,
    may_follow,
    record,
    slip,
)


def scene(model: Barriers, state: State) -> Scene:
    """Return the picture of a state: sources, counting tasks and the sink, with coordinator and output table below."""
    settings = model.settings
    coordinator, sources, operators, _, _, faults = state
    down = not coordinator.running
    boxes = [_source(model, which, source, down=down) for which, source in enumerate(sources)]
    channels: list[Channel] = []
    for which, operator in enumerate(operators):
        is_sink = which == settings.counts
        boxes.append(_sink(model, operator, down=down) if is_sink else _count(model, which, operator, down=down))
        senders = [
            f"count{n}" if is_sink else f"source{n}" for n in range(settings.counts if is_sink else settings.sources)
        ]
        target = "sink" if is_sink else f"count{which}"
        for into, sender in enumerate(senders):
            queue = operator.inputs[into] if operator.inputs else b""
            held = bool(operator.inputs) and _is_held(model, operator, into)
            note = f"held back: barrier {operator.at[into]} came" if held else ""
            name = f"{sender}-{target}"
            tokens = tuple(_item(model, item) for item in queue)
            channels.append(Channel(name, sender, target, tokens, note, held, volatile=True))
    boxes += [_coordinator(model, state), _outside(model, state)]
    return Scene(tuple(boxes), tuple(channels), may_follow(faults._fields, faults))


def _is_held(model: Barriers, operator: Operator, into: int) -> bool:
    """Return whether a task does not read the input `into` now, because it waits for barriers from other inputs."""
    at = operator.at[into]
    return model.settings.rules.blocks and at != ENDED and at > operator.done


def _word(model: Barriers, item: int, *, faded: bool = False) -> Token:
    words = model.settings.words
    return record(tuple(dict.fromkeys(words)), words[item], str(item), faded=faded)


def _item(model: Barriers, item: int) -> Token:
    if item == ENDED:
        return slip("end")
    if item >= BARRIER:
        return flag(str(item - BARRIER), f"barrier {item - BARRIER}")
    return _word(model, item)


def _source(model: Barriers, which: int, source: Source, *, down: bool) -> Box:
    settings = model.settings
    log = [
        _word(model, settings.record(which, offset), faded=offset < source.position)
        for offset in range(settings.lengths[which])
    ]
    says = "down" if down else "has read its whole log" if source.ended else "reads its log"
    rows = (
        Row(Kind.PLAIN, "log", tokens=tuple(log)),
        field(source, "position", "next offset", "gone" if down else str(source.position)),
        field(source, "epoch", "last barrier", "gone" if down else str(source.epoch)),
    )
    return Box(f"source{which}", 0, f"source {which}", says, rows, (Mark.DOWN,) * down)


def _tokens(model: Barriers, counts: int) -> tuple[Token, ...]:
    return tuple(_word(model, item) for item in records_in(counts))


def _count(model: Barriers, which: int, operator: Operator, *, down: bool) -> Box:
    counted = model.settings.totals(operator.state) if operator.state else ""
    rows = [field(operator, "state", "counted", *_gone(counted, _tokens(model, operator.state), down=down))]
    rows.append(field(operator, "done", "copied for", *_gone(f"checkpoint {operator.done}", (), down=down)))
    blocked = not down and any(_is_held(model, operator, into) for into in range(len(operator.inputs)))
    marks = (Mark.DOWN,) * down + (Mark.BLOCKED,) * blocked
    return Box(f"count{which}", 1, f"count {which}", _waits(operator, down=down), tuple(rows), marks)


def _gone(value: str, tokens: tuple[Token, ...], *, down: bool) -> tuple[str, tuple[Token, ...]]:
    if down:
        return "gone", ()
    return ("nothing" if not value and not tokens else value), tokens


def _waits(operator: Operator, *, down: bool) -> str:
    if down:
        return "down: its memory is gone"
    barriers = ", ".join("end" if at == ENDED else str(at) for at in operator.at)
    return f"newest barriers by input: {barriers}"


def _sink(model: Barriers, operator: Operator, *, down: bool) -> Box:
    rows = [field(operator, "state", "put out", *_gone("", _tokens(model, operator.state), down=down))]
    if model.settings.transactional:
        unsealed = operator.state - operator.sealed if not down else 0
        rows.append(Row(Kind.OPEN, "open transaction", "" if unsealed else "empty", _tokens(model, unsealed)))
    rows.append(field(operator, "done", "copied for", *_gone(f"checkpoint {operator.done}", (), down=down)))
    kind = "two-phase commit" if model.settings.transactional else "append"
    return Box("sink", 2, f"sink: {kind}", _waits(operator, down=down), tuple(rows), (Mark.DOWN,) * down)


def _outside(model: Barriers, state: State) -> Box:
    rows = [Row(Kind.PREPARED, f"sealed for {number}", tokens=_tokens(model, rows)) for number, rows in state.prepared]
    visible = _tokens(model, state.visible)
    rows.append(Row(Kind.VISIBLE, "rows", "" if visible else "nothing yet", visible))
    return Box("outside", 2, "outside table", "what readers find", tuple(rows), (Mark.IN_DOUBT,) * bool(state.prepared))


def _coordinator(model: Barriers, state: State) -> Box:
    coordinator = state.coordinator
    down = not coordinator.running
    rows = [field(coordinator, "triggered", "triggered", str(coordinator.triggered))]
    rows += [
        field(coordinator, "completed", f"checkpoint {each.id}", "; ".join(_parts(model, each)))
        for each in coordinator.completed
    ]
    rows += [
        field(coordinator, "pending", f"pending {each.id}", "; ".join(_parts(model, each)))
        for each in coordinator.pending
    ]
    if not coordinator.pending:
        rows.append(field(coordinator, "pending", "pending", "gone" if down else "none"))
    column = 1 if model.settings.counts < model.settings.sources else 0
    return Box("coordinator", column, "coordinator", "down" if down else "running", tuple(rows), (Mark.DOWN,) * down)


def _parts(model: Barriers, checkpoint: Checkpoint) -> Iterable[str]:
    settings = model.settings
    offsets = " ".join("?" if each == MISSING else str(each) for each in checkpoint.offsets)
    yield f"offsets {offsets}"
    for which, held in enumerate(checkpoint.states):
        task = settings.task(settings.sources + which).removeprefix("the ")
        yield f"{task} {'?' if held == MISSING else settings.totals(held)}"
    flight = [str(item) for queue in checkpoint.flight for item in queue]
    if flight:
        yield f"in flight {' '.join(flight)}"
    missing = [settings.task(task) for task in range(settings.tasks) if not checkpoint.acked >> task & 1]
    if missing:
        yield f"awaits {', '.join(missing)}"


_COORDINATOR = ("trigger", "copy", "complete", "expire", "announce", "crash", "cancel", "restore")


def place(model: Barriers, action: Action) -> Place:
    """Return the box of the task that carries out an action, and the other boxes that the action affects directly."""
    name, which = action
    settings = model.settings
    if name in _COORDINATOR:
        everyone = tuple(_box(model, task) for task in range(settings.tasks))
        touches = {"trigger": everyone[: settings.sources], "copy": everyone, "announce": ("sink", "outside")}
        reached = everyone if name in ("crash", "cancel", "restore") else touches.get(name, ())
        return Place("coordinator", model.event(action), reached)
    if name in ("process", "take_barrier", "take_end"):
        reader, _ = settings.channels[which]
        touches_outside = name == "process" and reader == settings.counts and not settings.transactional
        return Place(_box(model, settings.sources + reader), touches=("outside",) * touches_outside)
    return Place(_box(model, which), touches=("coordinator",) if name in ("store", "inject") else ())


def _box(model: Barriers, task: int) -> str:
    settings = model.settings
    if task < settings.sources:
        return f"source{task}"
    count = task - settings.sources
    return f"count{count}" if count < settings.counts else "sink"


DRAWING = Drawing(scene, place)
