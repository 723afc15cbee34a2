"""The parameters and states of the simulator `two_phase_commit`, and the properties (claims) to check in it."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from labkit.sim.model import Durable, Mood, Property, Volatile, Word, possible, unless
from labkit.sim.parameters import Choice, Parameter, Switch, Whole
from labkit.sim.wording import listed, members

VERSION = 1
PARAMETERS: dict[str, Parameter] = {
    "participants": Whole("How many participants vote.", 2, 1, 8),
    "textbook": Switch(
        "Use Gray and Lamport's abstraction, without crashes and losses; a sent message can be read for ever.",
        default=False,
    ),
    "crashes": Whole("How many crashes there may be.", 1, 0, 3),
    "losses": Whole("How many messages may be lost.", 1, 0, 3),
    "coordinator_returns": Switch("Whether a crashed coordinator is ever restarted.", default=True),
    "broken": Choice(
        "Which rule is left out: heuristic (a participant in doubt aborts alone after a timeout), early (commit before "
        "all votes), forget_decision (the commit is not logged), forget_vote (the yes is not logged).",
        "nothing",
        ("nothing", "heuristic", "early", "forget_decision", "forget_vote"),
    ),
}


class Entry(Word):
    """The kinds of record in a process's log, which only grows."""

    PREPARED = "prepared"
    COMMIT = "commit"
    ABORT = "abort"
    ALONE = "abort_alone"
    """A heuristic decision: a participant in doubt has aborted without asking the coordinator."""
    END = "end"
    """The coordinator has every acknowledgement and may forget the transaction."""


class Phase(Word):
    """How far a process has got in the protocol."""

    DOWN = "down"
    WORKING = "working"
    """The participant has not voted, or the coordinator has not asked for votes."""
    WAITING = "waiting"
    """The coordinator collects votes."""
    IN_DOUBT = "in_doubt"
    """The participant has voted yes and does not know the decision."""
    DECIDED = "decided"
    """The coordinator has decided to commit and has not announced this since it started."""
    COMMITTED = "committed"
    ABORTED = "aborted"
    FORGOTTEN = "forgotten"


class Message(Word):
    """The kinds of message between the coordinator and a participant."""

    PREPARE = "prepare"
    YES = "yes"
    NO = "no"
    COMMIT = "commit"
    ABORT = "abort"
    ACK = "ack"
    INQUIRY = "inquiry"


class Coordinator(NamedTuple):
    """The state of the coordinator. `votes` and `acks` are sets of participants, one bit for each."""

    log: Durable[tuple[Entry, ...]] = ()
    phase: Volatile[Phase] = Phase.DOWN
    votes: Volatile[int] = 0
    acks: Volatile[int] = 0


class Participant(NamedTuple):
    """The state of a participant: its log, and how far it has got with its part of the money transfer."""

    log: Durable[tuple[Entry, ...]] = ()
    phase: Volatile[Phase] = Phase.DOWN


Queue = tuple[Message, ...]


class State(NamedTuple):
    """The state of all processes, the message queues in both directions, and the faults that may still happen.

    `promised` is the set of participants that have sent a yes (one bit for each). `announced` is the first decision
    that the coordinator has sent. A crash changes neither field.
    """

    coordinator: Coordinator
    participants: tuple[Participant, ...]
    outward: tuple[Queue, ...]
    inward: tuple[Queue, ...]
    promised: int
    announced: Phase
    crashes: int
    losses: int


FINAL = (Phase.COMMITTED, Phase.ABORTED)


def holds_locks(participant: Participant) -> bool:
    """Return whether a participant holds locks: while it works, and while the last entry of its log is its yes vote."""
    log, phase = participant
    return phase is Phase.WORKING or (bool(log) and log[-1] is Entry.PREPARED)


def in_doubt(participant: Participant) -> bool:
    """Return whether a participant has voted yes and does not know the decision, so that it can only wait."""
    log = participant.log
    return bool(log) and log[-1] is Entry.PREPARED


def blocked(states: Sequence[State]) -> tuple[int, ...]:
    """Return for each participant the number of the run's states in which it has voted yes but knows no decision."""
    return tuple(sum(map(in_doubt, lives)) for lives in zip(*(state.participants for state in states), strict=True))


def outcome(participant: Participant) -> Entry | None:
    """Return the outcome in a participant's log, or None if the log has no outcome."""
    log = participant.log
    return log[-1] if log and log[-1] is not Entry.PREPARED else None


def _torn(state: State) -> str:
    outcomes = [outcome(participant) for participant in state.participants]
    if Entry.COMMIT not in outcomes or not (Entry.ABORT in outcomes or Entry.ALONE in outcomes):
        return ""
    aborted = next(which for which, entry in enumerate(outcomes) if entry in (Entry.ABORT, Entry.ALONE))
    how = "has aborted alone" if outcomes[aborted] is Entry.ALONE else "has aborted"
    return (
        f"participant {outcomes.index(Entry.COMMIT)} has committed and participant {aborted} {how}: "
        "half of the transfer happened, and its money is lost."
    )


def _changed(state: State) -> str:
    announced, phase = state.announced, state.coordinator.phase
    will_say = Phase.COMMITTED if phase in (Phase.DECIDED, Phase.FORGOTTEN) else phase
    if announced is not Phase.WORKING and phase is not Phase.DOWN and will_say is not announced:
        return f"the coordinator has announced the decision {announced}, and now its own state is {phase}."
    for which, participant in enumerate(state.participants):
        if len(participant.log) > 2:
            return f"participant {which} has changed its outcome: its log is {', '.join(participant.log)}."
    return ""


def _broke_promise(state: State) -> str:
    if not state.promised or state.announced is Phase.ABORTED:
        return ""
    for which, participant in enumerate(state.participants):
        if state.promised >> which & 1 and outcome(participant) in (Entry.ABORT, Entry.ALONE):
            return f"participant {which} had voted yes and has aborted, although nobody had decided to abort."
    return ""


def _all(phase: Phase, state: State) -> bool:
    return all(participant.phase is phase for participant in state.participants)


def _waiting(state: State) -> str:
    for which, participant in enumerate(state.participants):
        if holds_locks(participant):
            log = ", ".join(participant.log) or "empty"
            return (
                f"participant {which} holds its locks for ever: its log is {log}, and the coordinator is "
                f"{state.coordinator.phase}."
            )
    return ""


def claims() -> Sequence[Property[State]]:
    """Return the properties of two-phase commit that a search checks.

    For example, no participant commits while another aborts, and in the end no participant holds a lock.
    """
    always = Mood.ALWAYS
    return (
        unless("atomic", always, "No participant commits while another aborts.", _torn),
        unless("final", always, "No decision that was sent or logged is changed.", _changed),
        unless("promise", always, "A participant that voted yes aborts only if that was decided.", _broke_promise),
        possible("all_commit", "All have committed.", partial(_all, Phase.COMMITTED)),
        possible("all_abort", "All have aborted.", partial(_all, Phase.ABORTED)),
        unless("nobody_blocked", Mood.EVENTUALLY, "In the end no participant holds a lock.", _waiting),
    )


def text(state: State) -> str:
    """Return a state as one line of text: processes with their logs, messages, and the faults that may still happen."""
    log, phase, votes, acks = state.coordinator
    heard = f", yes of {names(votes)}" * bool(votes) + f", ack of {names(acks)}" * bool(acks)
    parts = [f"coordinator {phase} (log: {listed(log)}{heard})"]
    for which, (entries, believed) in enumerate(state.participants):
        queues = f"to it {listed(state.outward[which])}, from it {listed(state.inward[which])}"
        parts.append(f"participant {which} {believed} (log: {listed(entries)}; {queues})")
    parts.append(f"promised by {names(state.promised)}, announced {state.announced}")
    return f"{'; '.join(parts)}; {state.crashes} crashes and {state.losses} losses may follow."


def names(bits: int) -> str:
    """Return the numbers of the participants in a bit set as text."""
    return listed(members(bits), ", ", "nobody")


def spread(bits: int, count: int) -> list[int]:
    """Return a bit set of participants as a list that has 1 or 0 for each of the `count` participants."""
    return [bits >> which & 1 for which in range(count)]


def gathered(bits: int, order: Sequence[int]) -> int:
    """Return a bit set of participants after a change of the participants' numbers.

    The participant with the old number `order[0]` gets the number 0, the one with the old number `order[1]` gets 1,
    etc.
    """
    return sum((bits >> old & 1) << new for new, old in enumerate(order))
