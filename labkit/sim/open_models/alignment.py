"""Checkpoints by barriers in which a learner decides when a task reads a channel and when it copies its state.

A task may read any channel, and copy its state at any time after a barrier has arrived. Everything else is
`labkit.sim.models.barriers` with aligned checkpoints.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import ClassVar

from labkit.sim.blueprint import Blueprint, play
from labkit.sim.model import Action, Property
from labkit.sim.models.barriers.model import READS, Barriers
from labkit.sim.models.barriers.operators import TaskStep, copy, take
from labkit.sim.models.barriers.state import BARRIER, END, ENDED, PARAMETERS, Operator, Rules, State, live, taking
from labkit.sim.open_models.base import ChoiceModel, Question
from labkit.sim.parameters import Choice, Values
from labkit.sim.rules import Rule


class OpenAlignment(Barriers, ChoiceModel):
    """A simulated job with checkpoints in which the learner programs when a task reads and when it copies its state."""

    name = "alignment_drill"
    parameters = PARAMETERS | {
        "mode": Choice("The learner decides when a task reads and when it copies.", "aligned", ("aligned",)),
        "broken": Choice("Nothing is left out; only the learner's code can be wrong.", "nothing", ("nothing",)),
    }
    steps = (*READS, "snapshot")

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        rules = self.settings.rules._replace(blocks=False)
        self.settings = replace(self.settings, rules=rules)  # the model itself blocks no channel
        self._takes = [cache(partial(_taken, rules, is_sink=which == self._sink)) for which in range(self._sink + 1)]
        self.schedule._of_operator = cache(self._offered)  # noqa: SLF001  # the open model's own copy of the schedule

    def _offered(self, operator: Operator, task: int) -> tuple[Action, ...]:
        which = task - self.settings.sources
        first = which * self.settings.sources
        offered = []
        for into, queue in enumerate(operator.inputs):
            if queue:
                offered.append(Action(taking(queue[0]), first + into))
        if inputs_at_barrier(operator):
            offered.append(Action("snapshot", which))
        return tuple(offered)

    def question(self, state: State, action: Action) -> Question | None:
        """Return the arguments of the learner's function, which decides whether the task takes this action.

        The arguments are the task's number of inputs, the indices of the inputs on which a barrier has arrived since
        the task last copied its state, and the indices of the ended inputs. The result is None if the simulator decides
        the action.
        """
        if action.name not in self.steps:
            return None
        which = action.which if action.name == "snapshot" else self._channels[action.which][0]
        operator = state.operators[which]
        ended = [into for into, number in enumerate(operator.at) if number == ENDED]
        return len(operator.inputs), inputs_at_barrier(operator), ended

    def input_of(self, action: Action) -> int:
        """Return the index of the input from which the task reads in this action."""
        return self._channels[action.which][1]

    def _snapshot(self, state: State, which: int) -> State:
        return self._report(
            state, which * self.settings.sources, _copied(state.operators[which], is_sink=which == self._sink)
        )

    def properties(self) -> Sequence[Property[State]]:
        """Return the properties of `Barriers`; if the job can get stuck, the reason names a task that waits forever."""
        return [
            claim._replace(because=self._waiting) if claim.name == "ends" else claim for claim in super().properties()
        ]

    def _waiting(self, state: State) -> str:
        for which, operator in enumerate(state.operators):
            if arrived := inputs_at_barrier(operator):
                task = self.settings.task(self.settings.sources + which)
                inputs = ", ".join(map(str, arrived))
                return (
                    f"the job stands still: a barrier has arrived on input {inputs} of {task}, which does not copy its "
                    "state and has nothing left to read on its other inputs."
                )
        return "the job stands still, because no task reads any more."

    def words(self, action: Action) -> Mapping[str, object]:
        """Return the values of a sentence's placeholders: `task` is the task that copies its state."""
        if action.name != "snapshot":
            return super().words(action)
        return {"task": self.settings.task(self.settings.sources + action.which)}

    rules: ClassVar[dict[str, Rule[State]]] = {
        "snapshot": Rule(_snapshot, "{task} copies its state and passes the barrier on.")
    }


def inputs_at_barrier(operator: Operator) -> list[int]:
    """Return the indices of the inputs on which a barrier has arrived since the task last copied its state."""
    return [into for into, number in enumerate(operator.at) if operator.done < number < ENDED]


def _taken(rules: Rules, operator: Operator, channel: int, *, is_sink: bool) -> TaskStep:
    inputs, at, done, state, sealed = operator
    item = inputs[channel][0]
    if item < BARRIER:
        return take(rules, operator, channel, is_sink=is_sink)
    left = (*inputs[:channel], inputs[channel][1:], *inputs[channel + 1 :])
    at = bytes((*at[:channel], item if item == ENDED else item - BARRIER, *at[channel + 1 :]))
    ended = min(at) == ENDED
    return TaskStep(Operator(left, at, done, state, sealed), END * ended, ended=ended)


def _copied(operator: Operator, *, is_sink: bool) -> TaskStep:
    due = max(live(operator.at))
    after, rows = copy(operator, due, is_sink=is_sink)
    return TaskStep(after, bytes((BARRIER + due,)), rows, due, due)


BLUEPRINT = Blueprint(
    OpenAlignment,
    "Checkpoints by barriers; your function decides when a task reads and when it copies its state.",
    play,
)
