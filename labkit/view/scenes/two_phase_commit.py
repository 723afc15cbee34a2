"""Draw the simulators of two-phase commit: coordinator, participants, and a queue in each direction between them.

In one simulator processes fail (`labkit.sim.models.two_phase_commit.model`); in the textbook's they never do.
"""

from typing import Any

from labkit.sim.model import Action
from labkit.sim.models.two_phase_commit.state import (
    Coordinator,
    Participant,
    Phase,
    Queue,
    State,
    holds_locks,
    in_doubt,
    names,
)
from labkit.sim.models.two_phase_commit.textbook import Position, Textbook
from labkit.sim.models.two_phase_commit.textbook import State as TextbookState
from labkit.view.scene import Box, Channel, Drawing, Kind, Mark, Place, Row, Scene, field, may_follow, slip

_BELIEF = {
    Phase.DOWN: "dead: its memory is gone",
    Phase.WORKING: "working",
    Phase.WAITING: "collecting votes",
    Phase.IN_DOUBT: "voted yes, waits for the decision",
    Phase.DECIDED: "has decided to commit",
    Phase.COMMITTED: "committed",
    Phase.ABORTED: "aborted",
    Phase.FORGOTTEN: "all acknowledged: forgotten",
}

_OUTCOMES = {"commit": Kind.COMMITTED, "abort": Kind.ABORTED, "abort_alone": Kind.ABORTED, "prepared": Kind.PREPARED}


def scene(model: Any, state: Any) -> Scene:
    """Return the picture of a state: the coordinator on the left and the participants on the right."""
    if isinstance(model, Textbook):
        return _textbook(state)
    return _with_failures(state)


def _with_failures(state: State) -> Scene:
    coordinator = state.coordinator
    log, phase, votes, acks = coordinator
    boxes = [
        Box(
            "coordinator",
            0,
            "coordinator",
            _BELIEF[phase],
            (
                _log(coordinator, log),
                field(coordinator, "phase", "believes", _believed(phase, phase)),
                field(coordinator, "votes", "yes of", _believed(phase, names(votes))),
                field(coordinator, "acks", "acknowledged by", _believed(phase, names(acks))),
            ),
            (Mark.DOWN,) * (phase is Phase.DOWN),
            tall=True,
        )
    ]
    boxes += [_participant(which, each) for which, each in enumerate(state.participants)]
    channels: list[Channel] = []
    for which in range(len(state.participants)):
        channels.append(_queue("to", which, state.outward[which]))
        channels.append(_queue("from", which, state.inward[which]))
    return Scene(tuple(boxes), tuple(channels), may_follow(("crashes", "losses"), (state.crashes, state.losses)))


def _queue(way: str, which: int, queue: Queue) -> Channel:
    ends = ("coordinator", f"participant{which}")
    source, target = ends if way == "to" else ends[::-1]
    return Channel(f"{way}{which}", source, target, tuple(map(slip, queue)))


def _participant(which: int, participant: Participant) -> Box:
    log, phase = participant
    marks = [Mark.DOWN] * (phase is Phase.DOWN)
    marks += [Mark.IN_DOUBT] * in_doubt(participant) + [Mark.LOCKED] * holds_locks(participant)
    transfer = Row(_OUTCOMES.get(log[-1] if log else "", Kind.OPEN), "its part of the transfer", _part(log))
    return Box(
        f"participant{which}",
        1,
        f"participant {which}",
        _BELIEF[phase],
        (_log(participant, log), field(participant, "phase", "believes", _believed(phase, phase)), transfer),
        tuple(marks),
    )


def _believed(phase: Phase, decision: str) -> str:
    return "gone" if phase is Phase.DOWN else decision.replace("_", " ")


def _log(process: Coordinator | Participant, log: tuple[str, ...]) -> Row:
    entries = tuple(slip(entry.replace("_", " ")) for entry in log)
    return field(process, "log", "log", "" if log else "empty", entries)


def _part(log: tuple[str, ...]) -> str:
    words = {"commit": "done", "abort": "undone", "abort_alone": "undone alone", "prepared": "promised"}
    return words[log[-1]] if log else "not promised"


def _textbook(state: TextbookState) -> Scene:
    decision, participants, sent, heard = state
    words = "undecided" if decision is Position.WORKING else decision.value
    # The textbook's processes never fail, so none of their data is volatile.
    rows = (Row(Kind.PLAIN, "has heard the yes of", names(heard)), Row(Kind.PLAIN, "decision", words))
    boxes = [Box("coordinator", 0, "coordinator", words, rows, tall=True)]
    channels = []
    for which, position in enumerate(participants):
        kind = {"prepared": Kind.PREPARED, "committed": Kind.COMMITTED, "aborted": Kind.ABORTED}
        row = Row(kind.get(position, Kind.OPEN), "its part", position.value)
        marks = (Mark.IN_DOUBT,) * (position is Position.PREPARED)
        boxes.append(Box(f"participant{which}", 1, f"participant {which}", position.value, (row,), marks))
        under_way = (slip("yes"),) if sent >> which & 1 and not heard >> which & 1 else ()
        channels.append(Channel(f"from{which}", f"participant{which}", "coordinator", under_way))
    return Scene(tuple(boxes), tuple(channels), "nothing can fail here")


_OF_COORDINATOR = ("hear", "resend", "lose_inward")


def place(model: Any, action: Action) -> Place:
    """Return the box of the process that carries out an action, and the coordinator's box if the action affects it."""
    name, which = action
    if isinstance(model, Textbook):
        touched = ("coordinator",) * name.startswith("learn")
        return Place("coordinator" if which < 0 or name == "hear" else f"participant{which}", touches=touched)
    at_coordinator = which < 0 or name in _OF_COORDINATOR
    return Place("coordinator" if at_coordinator else f"participant{which}", model.event(action))


DRAWING = Drawing(scene, place)
