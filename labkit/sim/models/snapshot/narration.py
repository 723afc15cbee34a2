"""The bank in words: a state in one line, an action in one sentence. Nothing here decides anything."""

from collections.abc import Iterable, Sequence

from labkit.sim.model import Action
from labkit.sim.models.snapshot.parts import (
    AMOUNT,
    MARKER,
    PER_CHANNEL,
    Account,
    Ends,
    Process,
    State,
    Transfers,
    numbers,
)

SENTENCES = {
    "transfer": "Process {sender} takes {amount} from its account and sends it to process {receiver}.",
    "receive": "Process {receiver} reads the next message of process {sender}.",
    "overtake": "A message from process {sender} to process {receiver} overtakes the one before it.",
    "copy": "Process {which} copies its account: its part of the snapshot is whole.",
    "record": "Process {which} has seen no marker, records its account, and sends a marker into each of its channels.",
    "announce": "Process {which} sends the markers that it should have sent when it recorded its account.",
    "pause": "Process {which} pauses: it begins no transfer, and still reads what comes in.",
    "resume": "Process {which} resumes.",
    "crash": "Process {which} dies; only its part of the snapshot is left, if it was whole.",
    "restore": "Who died starts again, and all go back to the last completed snapshot; if there is none, to the start.",
}

BROKEN = {
    ("forget_pause", "pause"): "Process {which} is told to pause, and goes on.",
    (
        "forget_pause",
        "resume",
    ): "Process {which} is told to resume, and has never stopped.",
    (
        "late_markers",
        "record",
    ): "Process {which} has seen no marker and records its account; its markers come later.",
    (
        "restore_alone",
        "restore",
    ): "Who died starts again from the last completed snapshot, alone: the others go on.",
}
"""What the action means where the rule is left out."""


def sentence(broken: str, action: Action) -> str:
    """What happens."""
    sender, receiver = divmod(max(action.which, 0), 10)
    said = BROKEN.get((broken, action.name), SENTENCES[action.name])
    return said.format(
        which=action.which, sender=sender, receiver=receiver, amount=AMOUNT
    )


def transfer_name(ends: Sequence[Ends], transfer: int) -> str:
    """12.1: the first transfer from process 1 to process 2."""
    channel, nth = divmod(transfer, PER_CHANNEL)
    return f"{ends[channel].name}.{nth + 1}"


def text(ends: Sequence[Ends], state: State) -> str:
    """Processes with their parts, what is under way, the last completed snapshot, and what may still happen."""
    parts = [
        _process(ends, number, process)
        for number, process in enumerate(state.processes, start=1)
    ]
    under_way = [
        f"{ends[number].name}: {_all(_message(ends, each) for each in queue)}"
        for number, queue in enumerate(state.channels)
        if queue
    ]
    parts.append("under way " + (", ".join(under_way) or "-"))
    if state.running:
        parts.append("a snapshot runs")
    if state.completed:
        said = (
            f"{number} {_account(ends, part.account)}{_listed(ends, ', channels', part.channels)}"
            for number, part in enumerate(state.completed, start=1)
        )
        parts.append(f"completed snapshot: {' | '.join(said)}")
    left = zip(
        ("transfers", "snapshots", "reorderings", "crashes"), state[4:], strict=True
    )
    parts.append(
        f"to come {_all((f'{count} {name}' for name, count in left if count), ', ')}"
    )
    return "; ".join(parts) + "."


def _process(ends: Sequence[Ends], number: int, process: Process) -> str:
    part, account, copy, awaited, seen, paused = process
    said = (
        f"process {number} "
        + ("down" if account is None else _account(ends, account))
        + ", paused" * paused
    )
    if copy is not None:
        waits = _all((str(each + 1) for each in numbers(awaited)), ", ")
        said += f", recorded {_account(ends, copy)}{_listed(ends, ', saved', seen)}, awaits {waits}"
    if part is not None:
        said += f", stored {_account(ends, part.account)}{_listed(ends, ', channels', part.channels)}"
    return said


def _account(ends: Sequence[Ends], account: Account) -> str:
    sent, received = (
        _listed(ends, " sent", account.sent),
        _listed(ends, " received", account.received),
    )
    return f"{account.balance}" + (
        f" ({(sent + received).strip()})" if sent or received else ""
    )


def _listed(ends: Sequence[Ends], before: str, transfers: Transfers) -> str:
    return (
        f"{before} {_all(transfer_name(ends, each) for each in numbers(transfers))}"
        if transfers
        else ""
    )


def _message(ends: Sequence[Ends], message: int) -> str:
    return "marker" if message == MARKER else transfer_name(ends, message)


def _all(words: Iterable[str], between: str = " ") -> str:
    return between.join(words) or "-"
