"""The properties (claims) to check in the simulator `snapshot`, its texts, and facts about a run's pauses and copies.

The bank can reach the state in a snapshot if the snapshot, with its channels, is a consistent cut: every transfer
received in the snapshot was also sent in it, and its channels hold exactly the transfers that were sent but not
received. Chandy and Lamport prove that such a state can be reached from the state at which the snapshot began; the
tests also search for it.
"""

from collections.abc import Sequence

from labkit.sim.model import Mood, Property, possible
from labkit.sim.models.snapshot.state import (
    AMOUNT,
    MARKER,
    PER_CHANNEL,
    START,
    Account,
    Ends,
    Process,
    Snapshot,
    State,
    Transfers,
    in_channels,
    money,
    orphans_and_missing,
)
from labkit.sim.parameters import Values
from labkit.sim.wording import listed, members, to_come


def claims(values: Values, ends: Sequence[Ends]) -> Sequence[Property[State]]:
    """Return the properties of the bank that a search checks: for example, that snapshots are consistent.

    `values` are the simulator's parameters, and `ends` lists the channels.
    """
    always = Mood.ALWAYS
    teller = Sentences(ends)
    properties = [
        Property(
            "conserved", always, "A completed snapshot holds all the money.", _conserved, teller.changed, _has_one
        ),
        Property(
            "reachable",
            always,
            "A completed snapshot shows a state that the bank can reach: it and its channels are a consistent cut.",
            lambda state: orphans_and_missing(state.completed) == (0, 0),
            teller.strayed,
            _has_one,
        ),
        Property("money", always, "While no process is down, all the money is there.", _all_there, teller.live, is_up),
    ]
    if values["snapshots"]:
        properties.append(possible("completes", "A snapshot is completed.", _has_one))
        if values["algorithm"] == "chandy_lamport" and values["transfers"]:
            sentence = "A snapshot contains money in a channel."
            properties.append(possible("in_flight", sentence, lambda state: in_channels(state.completed) != 0))
    if crashes := values["crashes"]:
        properties.append(
            possible("recovers", "All are up after a crash.", lambda state: state.crashes != crashes, is_up)
        )
    ended = Property("ends", Mood.EVENTUALLY, "In the end nobody waits, and no snapshot is unfinished.", _ended, _waits)
    return (*properties, ended)


class Sentences:
    """Builds the sentences that say how a state violates a property; they name the transfer and the processes."""

    def __init__(self, ends: Sequence[Ends]) -> None:
        self._ends = ends

    def changed(self, state: State) -> str:
        """Return a sentence that says by how much the sum of money in the completed snapshot is wrong, and why."""
        total, expected = money(state.completed), START * len(state.processes)
        word = "appeared" if total > expected else "vanished"
        return f"the snapshot holds {total} of {expected}, so {abs(total - expected)} {word}: {self.strayed(state)}"

    def strayed(self, state: State) -> str:
        """Return a sentence that names the first transfer that makes the completed snapshot inconsistent."""
        orphans, missing = orphans_and_missing(state.completed)
        if orphans:
            number, ends = self._first(orphans)
            return (
                f"transfer {number} is received in the copy of process {ends.receiver + 1} "
                f"and not sent in the copy of process {ends.sender + 1}."
            )
        if missing:
            number, ends = self._first(missing)
            return (
                f"transfer {number} is sent in the copy of process {ends.sender + 1}, not received in the copy of "
                f"process {ends.receiver + 1}, and in no channel."
            )
        return f"the accounts were wrong before it: {_balances(state)}."

    def live(self, state: State) -> str:
        """Return a sentence that compares all money in accounts and channels now with the money at the start.

        The sentence always speaks of the sum "after a restore", because only a restore can change it.
        """
        total, expected = _money_of(state), START * len(state.processes)
        return f"there is {total} of {expected} after a restore: {_balances(state)}."

    def _first(self, transfers: int) -> tuple[str, Ends]:
        transfer = members(transfers)[0]
        return transfer_name(self._ends, transfer), self._ends[transfer // PER_CHANNEL]


def _has_one(state: State) -> bool:
    return bool(state.completed)


def _conserved(state: State) -> bool:
    return money(state.completed) == START * len(state.processes)


def _all_there(state: State) -> bool:
    return _money_of(state) == START * len(state.processes)


def is_up(state: State) -> bool:
    """Return whether all processes are up."""
    return all(process.account is not None for process in state.processes)


def _money_of(state: State) -> int:
    accounts = sum(process.account.balance for process in state.processes if process.account is not None)
    return accounts + AMOUNT * sum(message != MARKER for queue in state.channels for message in queue)


def _balances(state: State) -> str:
    parts = [
        f"process {number} has {process.account.balance}"
        for number, process in enumerate(state.processes, start=1)
        if process.account is not None
    ]
    return ", ".join(parts)


def _ended(state: State) -> bool:
    return not state.running and is_up(state) and not any(process.paused for process in state.processes)


def _waits(state: State) -> str:
    for number, process in enumerate(state.processes, start=1):
        if process.copy is not None:
            return f"process {number} waits for ever for a marker of process {members(process.awaited)[0] + 1}."
        if process.paused:
            return f"process {number} is paused for ever."
    return "a snapshot is never completed."


def paused(states: Sequence[State]) -> tuple[int, ...]:
    """Return for each process the number of the run's states in which it is paused."""
    lives = zip(*(state.processes for state in states), strict=True)
    return tuple(sum(process.paused for process in life) for life in lives)


def stood_still(states: Sequence[State]) -> int:
    """Return the number of states in which all processes are paused, so that no transfer can begin."""
    return sum(all(process.paused for process in state.processes) for state in states)


def moment(states: Sequence[State]) -> int | None:
    """Return the step after which the bank was really in the state of the last completed snapshot; None if never."""
    snapshot = states[-1].completed
    return next((step for step, state in enumerate(states) if snapshot and _shows(state, snapshot)), None)


def _shows(state: State, snapshot: Snapshot) -> bool:
    within = 0
    for queue in state.channels:
        for message in queue:
            within |= 0 if message == MARKER else 1 << message
    accounts = [process.account for process in state.processes]
    return within == in_channels(snapshot) and accounts == [part.account for part in snapshot]


VARIANTS = {
    ("forget_pause", "pause"): "Process {which} is told to pause, but goes on.",
    ("forget_pause", "resume"): "Process {which} is told to resume, but has never stopped.",
    ("late_markers", "record"): "Process {which} has seen no marker and records its account; its markers come later.",
    ("restore_alone", "restore"): "Only the dead go back to the last completed snapshot; the other processes go on.",
}
"""The sentences of actions that change if a rule is left out, by the names of the rule and of the action."""


def transfer_name(ends: Sequence[Ends], transfer: int) -> str:
    """Return the name of a transfer, such as 12.1 for the first transfer from process 1 to process 2."""
    channel, nth = divmod(transfer, PER_CHANNEL)
    return f"{ends[channel].name}.{nth + 1}"


def text(ends: Sequence[Ends], state: State) -> str:
    """Return a state as one line of text: processes, transfers in flight, last snapshot, and events still allowed."""
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
        waits = listed((str(each + 1) for each in members(awaited)), ", ")
        sentence += f", recorded {_account(ends, copy)}{_if_any(ends, ', saved', in_flight)}, awaits {waits}"
    if part is not None:
        sentence += f", stored {_account(ends, part.account)}{_if_any(ends, ', channels', part.channels)}"
    return sentence


def _account(ends: Sequence[Ends], account: Account) -> str:
    sent, received = (_if_any(ends, " sent", account.sent), _if_any(ends, " received", account.received))
    return f"{account.balance}" + (f" ({(sent + received).strip()})" if sent or received else "")


def _if_any(ends: Sequence[Ends], before: str, transfers: Transfers) -> str:
    return f"{before} {listed(transfer_name(ends, each) for each in members(transfers))}" if transfers else ""


def _message(ends: Sequence[Ends], message: int) -> str:
    return "marker" if message == MARKER else transfer_name(ends, message)
