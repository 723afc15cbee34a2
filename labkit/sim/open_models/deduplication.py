"""The simulator `delivery`, in which a learner decides how the receiver handles a message.

The receiver may output the message, store its id in a durable table or in memory, and acknowledge it, in any order.
Sender, network and crashes are those of `labkit.sim.models.delivery`, with two processes.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from labkit.sim.blueprint import Blueprint, play
from labkit.sim.model import Action, Property
from labkit.sim.models.delivery.model import Delivery, acknowledge
from labkit.sim.models.delivery.state import PARAMETERS, Ids, Output, Process, Stage, State
from labkit.sim.open_models.base import ProgramModel, Question
from labkit.sim.parameters import Values, Whole
from labkit.sim.rules import Rule
from labkit.sim.wording import members

RECEIVER: Final = 1

WORDS: Final = {
    "output": "put_out",
    "note": "note_id",
    "output and note": "put_out_and_note",
    "remember": "remember_id",
    "acknowledge": "confirm",
}
"""The steps as a learner writes them, each with the name of its action."""

CLAIMS: Final = ("no_loss", "no_duplicate", "kept", "ends")
"""The claims that are checked; the order of records is not the receiver's task here."""


class OpenDeduplication(Delivery, ProgramModel):
    """A simulator in which a sender repeats unacknowledged messages, and the learner programs the receiver."""

    name = "deduplication_drill"
    parameters = PARAMETERS | {"processes": Whole("Processes: a sender and a receiver.", 2, 2, 2)}
    steps = (*WORDS.values(), "finish")

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        self._open = [Action(name, RECEIVER) for name in self.steps]

    def _receiver_actions(self, state: State, which: int, enabled: list[Action]) -> None:
        process = state.processes[which]
        if process.stage is Stage.WORKING:
            enabled += self._open
        elif process.stage is Stage.IDLE and state.hops[which - 1].forward:
            enabled.append(self._of["receive"][which])

    def asks(self, _before: State, action: Action, after: State) -> Question | None:
        """Return the arguments of the learner's function if `action` received a message; None after other actions.

        The arguments are the message's id, the ids in the receiver's durable table, and the ids in its memory.
        """
        if action.name != "receive":
            return None
        process = after.processes[RECEIVER]
        assert process.held is not None
        return process.held.name, members(process.ids), members(process.memory)

    def program(self, _after: State, answer: Sequence[Any]) -> Sequence[Action]:
        """Convert the learner's answer, a list of steps as words, into actions, and append the action `finish`.

        Raises `ValueError` for an unknown step.
        """
        for step in answer:
            if not isinstance(step, str) or step not in WORDS:
                raise ValueError(f"{step!r} is not a step; choose from {', '.join(map(repr, WORDS))}.")
        return [Action(name, RECEIVER) for name in [*(WORDS[step] for step in answer), "finish"]]

    def forgets(self, action: Action, _after: State) -> bool:
        """Return whether the receiver crashed, so that the learner's remaining steps are dropped."""
        return action == ("crash", RECEIVER)

    def _put_out(self, state: State, which: int) -> State:
        held = state.processes[which].held
        assert held is not None
        row = Output(held.record, self.settings.faults.crashes - state.faults.crashes)
        return state._replace(out=(*state.out, row))

    def _note_id(self, state: State, which: int) -> State:
        process = state.processes[which]
        return self._with(state, process._replace(ids=process.ids | _bit(process)))

    def _put_out_and_note(self, state: State, which: int) -> State:
        return self._note_id(self._put_out(state, which), which)

    def _remember_id(self, state: State, which: int) -> State:
        process = state.processes[which]
        return self._with(state, process._replace(memory=process.memory | _bit(process)))

    def _confirm(self, state: State, which: int) -> State:
        held = state.processes[which].held
        assert held is not None
        return acknowledge(state, which - 1, held.name)

    def _finish(self, state: State, which: int) -> State:
        return self._with(state, state.processes[which]._replace(stage=Stage.IDLE, held=None))

    @staticmethod
    def _with(state: State, receiver: Process) -> State:
        return state._replace(processes=(state.processes[0], receiver))

    def properties(self) -> Sequence[Property[State]]:
        """Return those properties of the chain that depend on the receiver."""
        return [claim for claim in super().properties() if claim.name in CLAIMS]

    rules: ClassVar[dict[str, Rule[State]]] = {
        "put_out": Rule(_put_out, "The receiver outputs the message without noting its id in the same step."),
        "note_id": Rule(_note_id, "The receiver notes the id in its durable table."),
        "put_out_and_note": Rule(
            _put_out_and_note, "The receiver outputs the message and notes its id in its table, in one durable step."
        ),
        "remember_id": Rule(_remember_id, "The receiver notes the id in memory."),
        "confirm": Rule(_confirm, "The receiver acknowledges the message."),
        "finish": Rule(_finish, "The receiver has finished with the message."),
    }


def _bit(process: Process) -> Ids:
    assert process.held is not None
    return 1 << process.held.name


BLUEPRINT = Blueprint(OpenDeduplication, "Delivery; your function decides what the receiver does with a message.", play)
