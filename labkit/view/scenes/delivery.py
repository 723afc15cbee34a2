"""Draw the simulator of message delivery: a chain of processes with records, acknowledgements and the output."""

from labkit.sim.model import Action
from labkit.sim.models.delivery.model import Delivery
from labkit.sim.models.delivery.state import Faults, Ids, Message, Process, Stage, State
from labkit.sim.wording import listed, members
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
    may_follow,
    slip,
)

_DOING = {
    Stage.DOWN: "down: its memory is gone",
    Stage.IDLE: "has no record in hand",
    Stage.WORKING: "works in memory",
    Stage.WAITING: "waits for downstream",
    Stage.STORED: "stored, id not noted",
    Stage.DONE: "done, sender not told",
}


def scene(model: Delivery, state: State) -> Scene:
    """Return the picture of a state: the chain of processes from left to right, and the output at its end."""
    last = len(state.processes) - 1
    boxes = [_process(model, number, process, last) for number, process in enumerate(state.processes)]
    tokens = tuple(Token(Shape.CIRCLE, str(record), f"record {record}") for record, _ in state.out)
    out = Row(Kind.VISIBLE, "records", "" if tokens else "nothing yet", tokens)
    boxes.append(Box("outside", last + 1, "outside", "what everybody sees", (out,)))
    channels = []
    dies = model.settings.dedup == "connection"
    for number, hop in enumerate(state.hops):
        ends = (f"process{number}", f"process{number + 1}")
        channels.append(Channel(f"to{number + 1}", *ends, tuple(map(_record, hop.forward)), volatile=dies))
        acks = tuple(slip(f"ack {name}") for name in hop.back)
        channels.append(Channel(f"back{number}", *ends[::-1], acks, volatile=dies))
    channels.append(Channel("out", f"process{last}", "outside"))
    return Scene(tuple(boxes), tuple(channels), may_follow(Faults._fields, state.faults))


def _record(message: Message) -> Token:
    name = "" if message.name == message.record else f"#{message.name}"
    return Token(Shape.CIRCLE, f"{message.record}{name}", f"record {message.record}, id {message.name}")


def _process(model: Delivery, number: int, process: Process, last: int) -> Box:
    outbox, ids, memory, stage, held, output = process
    down = stage is Stage.DOWN
    rows = []
    if number < last:
        bring = tuple(map(_record, outbox))
        rows.append(field(process, "outbox", "to bring", "" if bring else "nothing", bring))
    if number:
        if model.settings.dedup == "durable":
            rows.append(field(process, "ids", "ids in store", _ids(ids)))
        if model.settings.dedup == "volatile":
            rows.append(field(process, "memory", "ids in memory", "gone" if down else _ids(memory)))
        at_hand = (_record(held),) if held is not None else ()
        rows.append(field(process, "held", "in hand", "gone" if down else "" if at_hand else "nothing", at_hand))
        if output is not None:
            rows.append(field(process, "output", "made of it", "", (_record(output),)))
    title = "source" if number == 0 else "last process" if number == last else f"process {number}"
    says = "reads its log" if number == 0 and not down else _DOING[stage]
    return Box(f"process{number}", number, title, says, tuple(rows), (Mark.DOWN,) * down)


def _ids(bits: Ids) -> str:
    return listed(members(bits), none="none")


def place(model: Delivery, action: Action) -> Place:
    """Return the place of an action in the picture: the box of the process that carries it out.

    The place of a network fault is the box of the process that would receive the affected message.
    """
    out = ("outside",) * (action.name == "store" and action.which == model.settings.last)
    return Place(f"process{action.which}", model.event(action), out)


DRAWING = Drawing(scene, place)
