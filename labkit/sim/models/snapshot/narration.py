"""The bank in words: a state in one line, an action in one sentence. Nothing here decides anything."""

from collections.abc import Sequence

from labkit.sim.models.snapshot.parts import MARKER, PER_CHANNEL, Account, Ends, Process, State, Transfers, numbers
from labkit.sim.wording import listed, to_come

VARIANTS = {
    ("forget_pause", "pause"): "Process {which} is told to pause, and goes on.",
    ("forget_pause", "resume"): "Process {which} is told to resume, and has never stopped.",
    ("late_markers", "record"): "Process {which} has seen no marker and records its account; its markers come later.",
    ("restore_alone", "restore"): "Who died starts again from the last completed snapshot, alone: the others go on.",
}
"""What the action means where the rule is left out."""


def transfer_name(ends: Sequence[Ends], transfer: int) -> str:
    """12.1: the first transfer from process 1 to process 2."""
    channel, nth = divmod(transfer, PER_CHANNEL)
    return f"{ends[channel].name}.{nth + 1}"


def text(ends: Sequence[Ends], state: State) -> str:
    """Processes with their parts, what is under way, the last completed snapshot, and what may still happen."""
    parts = [_process(ends, number, process) for number, process in enumerate(state.processes, start=1)]
    under_way = [
        f"{ends[number].name}: {listed(_message(ends, each) for each in queue)}"
        for number, queue in enumerate(state.channels)
        if queue
    ]
    parts.append("under way " + (", ".join(under_way) or "-"))
    if state.running:
        parts.append("a snapshot runs")
    if state.completed:
        completed = (
            f"{number} {_account(ends, part.account)}{_if_any(ends, ', channels', part.channels)}"
            for number, part in enumerate(state.completed, start=1)
        )
        parts.append(f"completed snapshot: {' | '.join(completed)}")
    left = to_come(State._fields[4:], state[4:])
    parts.append(f"to come {listed(left, ', ')}")
    return "; ".join(parts) + "."


def _process(ends: Sequence[Ends], number: int, process: Process) -> str:
    part, account, copy, awaited, in_flight, paused = process
    sentence = f"process {number} " + ("down" if account is None else _account(ends, account)) + ", paused" * paused
    if copy is not None:
        waits = listed((str(each + 1) for each in numbers(awaited)), ", ")
        sentence += f", recorded {_account(ends, copy)}{_if_any(ends, ', saved', in_flight)}, awaits {waits}"
    if part is not None:
        sentence += f", stored {_account(ends, part.account)}{_if_any(ends, ', channels', part.channels)}"
    return sentence


def _account(ends: Sequence[Ends], account: Account) -> str:
    sent, received = (_if_any(ends, " sent", account.sent), _if_any(ends, " received", account.received))
    return f"{account.balance}" + (f" ({(sent + received).strip()})" if sent or received else "")


def _if_any(ends: Sequence[Ends], before: str, transfers: Transfers) -> str:
    return f"{before} {listed(transfer_name(ends, each) for each in numbers(transfers))}" if transfers else ""


def _message(ends: Sequence[Ends], message: int) -> str:
    return "marker" if message == MARKER else transfer_name(ends, message)
