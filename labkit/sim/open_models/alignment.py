"""Barrier snapshots in which a task may read any channel, and copy its state at any moment once a barrier has come.

Everything else is `labkit.sim.models.barriers` with aligned checkpoints. When a task should read or copy is not
said here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import ClassVar

from labkit.sim.blueprint import Blueprint, play
from labkit.sim.model import Action, Property
from labkit.sim.models.barriers.model import READS, Barriers
from labkit.sim.models.barriers.operators import TaskStep, copy, take
from labkit.sim.models.barriers.state import (
    BARRIER,
    END,
    ENDED,
    PARAMETERS,
    VERSION,
    Operator,
    Rules,
    State,
    live,
    taking,
)
from labkit.sim.open_models.base import Question
from labkit.sim.parameters import Choice, Values
from labkit.sim.rules import Rule


class OpenAlignment(Barriers):
    """A job whose tasks decide for themselves when to read and when to copy."""

    name = "alignment_drill"
    parameters = PARAMETERS | {
        "mode": Choice("Barriers of all inputs belong together.", "aligned", ("aligned",)),
        "broken": Choice("Nothing is broken but what the tasks decide.", "nothing", ("nothing",)),
    }
    steps = (*READS, "snapshot")

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        rules = self.settings.rules._replace(blocks=False)
        self.settings = replace(self.settings, rules=rules)  # no channel is held back but by what a task decides
        self._takes = [cache(partial(_taken, rules, is_sink=which == self._sink)) for which in range(self._sink + 1)]
        self.schedule._of_operator = cache(self._offered)  # noqa: SLF001  # the open model's own copy of the schedule

    def _offered(self, operator: Operator, task: int) -> tuple[Action, ...]:
        """Every channel with something in it, and a copy where a barrier has come."""
        which = task - self.settings.sources
        first = which * self.settings.sources
        offered = []
        for into, queue in enumerate(operator.inputs):
            if queue:
                offered.append(Action(taking(queue[0]), first + into))
        if came(operator):
            offered.append(Action("snapshot", which))
        return tuple(offered)

    def question(self, state: State, action: Action) -> Question | None:
        """What a task knows: how many inputs it has, which brought a barrier since its copy, which have ended."""
        if action.name not in self.steps:
            return None
        which = action.which if action.name == "snapshot" else self._channels[action.which][0]
        operator = state.operators[which]
        ended = [into for into, number in enumerate(operator.at) if number == ENDED]
        return len(operator.inputs), came(operator), ended

    def into(self, action: Action) -> int:
        """The input that an action reads, by its place at its task."""
        return self._channels[action.which][1]

    def _snapshot(self, state: State, which: int) -> State:
        return self._report(
            state, which * self.settings.sources, _copied(state.operators[which], is_sink=which == self._sink)
        )

    def properties(self) -> Sequence[Property[State]]:
        """The simulator's claims; who waits for what is said of a job that stands still."""
        return [
            claim._replace(because=self._waiting) if claim.name == "ends" else claim for claim in super().properties()
        ]

    def _waiting(self, state: State) -> str:
        for which, operator in enumerate(state.operators):
            if arrived := came(operator):
                task = self.settings.task(self.settings.sources + which)
                inputs = ", ".join(map(str, arrived))
                return (
                    f"the job stands still: {task} has had a barrier by input {inputs}, and neither reads nor copies."
                )
        return "the job stands still, and nothing is read any more."

    def words(self, action: Action) -> Mapping[str, object]:
        """The words of the simulator; a copy names its task by the task's place behind the sources."""
        if action.name != "snapshot":
            return super().words(action)
        return {"task": self.settings.task(self.settings.sources + action.which)}

    rules: ClassVar[dict[str, Rule[State]]] = {
        "snapshot": Rule(_snapshot, "{task} copies its state and passes the barrier on.")
    }


def came(operator: Operator) -> list[int]:
    """The inputs by which a barrier has come for which the task has not copied its state."""
    return [into for into, number in enumerate(operator.at) if operator.done < number < ENDED]


def _taken(rules: Rules, operator: Operator, channel: int, *, is_sink: bool) -> TaskStep:
    """A task after the next item of a channel; a barrier is only noted."""
    inputs, at, done, state, sealed = operator
    item = inputs[channel][0]
    if item < BARRIER:
        return take(rules, operator, channel, is_sink=is_sink)
    left = (*inputs[:channel], inputs[channel][1:], *inputs[channel + 1 :])
    at = bytes((*at[:channel], item if item == ENDED else item - BARRIER, *at[channel + 1 :]))
    ended = min(at) == ENDED
    return TaskStep(Operator(left, at, done, state, sealed), END * ended, ended=ended, reports=ended)


def _copied(operator: Operator, *, is_sink: bool) -> TaskStep:
    """A task copies its state and passes the barrier on; the sink closes its transaction."""
    due = max(live(operator.at))
    after, rows = copy(operator, due, is_sink=is_sink)
    return TaskStep(after, bytes((BARRIER + due,)), rows, due, due, reports=True)


BLUEPRINT = Blueprint(
    OpenAlignment.name,
    VERSION,
    "Barrier snapshots by tasks whose alignment is open.",
    OpenAlignment.parameters,
    OpenAlignment,
    play,
)
