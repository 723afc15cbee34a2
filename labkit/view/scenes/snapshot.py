"""Draw the simulator of a bank: branches with accounts, the transfers under way, and the last completed snapshot."""

from labkit.sim.model import Action
from labkit.sim.models.snapshot.claims import transfer_name
from labkit.sim.models.snapshot.model import Bank
from labkit.sim.models.snapshot.state import AMOUNT, MARKER, Process, State, Transfers, in_channels, money
from labkit.sim.wording import listed, members
from labkit.view.scene import Box, Channel, Drawing, Kind, Mark, Place, Row, Scene, Token, field, flag, may_follow, slip


def scene(model: Bank, state: State) -> Scene:
    """Return the picture of a state: a box for each bank branch, the channels between branches, and the store."""
    boxes = [_process(model, number, process) for number, process in enumerate(state.processes)]
    boxes.append(_store(model, state))
    channels = []
    for at, queue in zip(model.ends, state.channels, strict=True):
        tokens = tuple(_message(model, each) for each in queue)
        channels.append(Channel(f"c{at.name}", f"process{at.sender}", f"process{at.receiver}", tokens))
    left = may_follow(("transfers", "snapshots", "reorderings", "crashes"), state[4:])
    return Scene(tuple(boxes), tuple(channels), left)


def _message(model: Bank, message: int) -> Token:
    if message == MARKER:
        return flag("M", "marker")
    name = transfer_name(model.ends, message)
    return slip(f"{AMOUNT} ({name})", name=f"transfer {name} of {AMOUNT}")


def _process(model: Bank, number: int, process: Process) -> Box:
    part, account, copy, awaited, in_flight, paused = process
    down = account is None
    rows = [field(process, "account", "account", "gone" if account is None else str(account.balance))]
    if copy is not None:
        rows.append(field(process, "copy", "recorded", str(copy.balance)))
        missing = listed((each + 1 for each in members(awaited)), ", ", "none")
        rows.append(field(process, "awaited", "awaits markers of", missing))
        rows.append(field(process, "in_flight", "saved of channels", _names(model, in_flight)))
    if part is not None:
        stored = f"{part.account.balance}, channels {_names(model, part.channels)}"
        rows.append(field(process, "part", "stored part", stored))
    says = "down: its memory is gone" if down else "paused" if paused else "working" if copy is None else "recording"
    marks = (Mark.DOWN,) * down + (Mark.BLOCKED,) * paused
    return Box(f"process{number}", 0, f"process {number + 1}", says, tuple(rows), marks)


def _names(model: Bank, transfers: Transfers) -> str:
    return listed((transfer_name(model.ends, each) for each in members(transfers)), ", ", "none")


def _store(model: Bank, state: State) -> Box:
    says = "a snapshot is being taken" if state.running else "no snapshot is being taken"
    if not state.completed:
        rows = [Row(Kind.DURABLE, "completed snapshot", "none")]
    else:
        rows = [Row(Kind.DURABLE, "completed snapshot", f"sum {money(state.completed)}")]
        rows += [
            Row(Kind.DURABLE, f"process {number}", str(part.account.balance))
            for number, part in enumerate(state.completed, start=1)
        ]
        rows.append(Row(Kind.DURABLE, "in channels", _names(model, in_channels(state.completed))))
    return Box("store", 1, "snapshot store", says, tuple(rows))


def place(model: Bank, action: Action) -> Place:
    """Return the box that performs an action (a bank branch or the store), and other boxes that the action affects."""
    name, which = action
    event = model.event(action)
    if name == "restore":
        return Place("store", event, tuple(f"process{number}" for number in range(model.count)))
    sender, receiver = divmod(max(which, 0), 10)
    if name in ("transfer", "receive", "overtake"):
        return Place(f"process{(sender if name == 'transfer' else receiver) - 1}", event)
    return Place(f"process{which - 1}", event, ("store",) if name == "copy" else ())


DRAWING = Drawing(scene, place)
