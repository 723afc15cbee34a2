"""The simulator `pipeline` with a write-ahead log, in which a learner decides how a commit writes and confirms rows.

The commit may write rows and confirmations in any order. Everything else is `labkit.sim.models.pipeline` with the order
commit-then-log.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from labkit.core.strategies import Op
from labkit.sim.blueprint import Blueprint, play
from labkit.sim.model import Action, Mood, Property, unless
from labkit.sim.models.pipeline.effects import perform
from labkit.sim.models.pipeline.model import Pipeline
from labkit.sim.models.pipeline.state import PARAMETERS, Place, State, Task, driven
from labkit.sim.open_models.base import ProgramModel, Question
from labkit.sim.parameters import Choice, Switch, Values
from labkit.sim.rules import Rule

LEFT_OUT: Final = (Op.LOOK, Op.FLUSH, Op.CONFIRM)


class OpenConfirmation(Pipeline, ProgramModel):
    """The simulator of a sink with a write-ahead log, in which the learner programs how the sink commits."""

    name = "confirmation_drill"
    parameters = PARAMETERS | {
        "strategy": Choice("Rows go into a log first.", "wal", ("wal",)),
        "order": Choice("The sink commits, then the engine writes commits/N.", "engine", ("engine",)),
        "crash_in_window": Switch("Whether crashes may come while written rows are not yet confirmed.", default=True),
    }
    steps = ("write_out", "confirm_batch", "log_commit")

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        self._in_window = bool(values["crash_in_window"])

    def actions(self, state: State) -> Sequence[Action]:
        """Return the possible actions; once the batch is in the write-ahead log, they include the learner's actions."""
        enabled = [action for action in super().actions(state) if action.name != "crash" or self._may_crash(state)]
        if self._commits(state):
            query = state.query
            batch = query.driver.batch
            enabled += [Action("write_out", offset) for offset in range(query.start_of(batch), query.ends[batch])]
            enabled += [Action("confirm_batch", each) for each in range(len(query.ends))]
        return enabled

    @staticmethod
    def _commits(state: State) -> bool:
        todo = state.query.driver.todo
        return bool(todo) and todo[0].op is Op.LOG_COMMIT

    def _may_crash(self, state: State) -> bool:
        if self._in_window or not self._commits(state):
            return True
        batch = state.query.driver.batch
        return batch in state.query.confirmed or all(row.batch != batch for row in state.seen)

    def _plan(self, state: State, batch: int) -> State:
        planned = super()._plan(state, batch)
        driver = planned.query.driver
        return driven(planned, driver._replace(todo=tuple(task for task in driver.todo if task.op not in LEFT_OUT)))

    def _write_out(self, state: State, offset: int) -> State:
        driver = state.query.driver
        return perform(self._outside, state, driver, Task(Op.FLUSH, offset, driver.batch))

    def _confirm_batch(self, state: State, batch: int) -> State:
        return perform(self._outside, state, state.query.driver, Task(Op.CONFIRM, batch, batch))

    def asks(self, _before: State, action: Action, after: State) -> Question | None:
        """Return the arguments of the learner's function if a commit begins after `action`, otherwise None.

        The arguments are the number of the batch to commit, a list of the offsets of its rows, and a list of the
        numbers of the confirmed batches. `after` is the state after `action`.
        """
        if action.name != "seal" or not self._commits(after):
            return None
        query = after.query
        batch = query.driver.batch
        return (batch, list(range(query.start_of(batch), query.ends[batch])), list(query.confirmed))

    def program(self, after: State, answer: Sequence[Any]) -> Sequence[Action]:
        """Return the learner's answer as actions, followed by the action in which Spark writes its file `commits/N`.

        `answer` is a list of steps of the form `["write", offset]` or `["confirm", batch]`. `after` is the state in
        which the learner's function was called. Raises `ValueError` for an invalid step.
        """
        query = after.query
        batch = query.driver.batch
        rows, steps = range(query.start_of(batch), query.ends[batch]), []
        for step in answer:
            if not isinstance(step, list) or len(step) != 2 or step[0] not in ("write", "confirm"):
                raise ValueError(f'{step!r} is not a step; write ["write", offset] or ["confirm", batch].')
            verb, number = step
            numbers = rows if verb == "write" else range(len(query.ends))
            if type(number) is not int or number not in numbers:
                what = "the offset" if verb == "write" else "the batch to confirm"
                raise ValueError(
                    f"{step!r} is not possible in batch {batch}; {what} must be one of {', '.join(map(str, numbers))}."
                )
            steps.append(Action("write_out" if verb == "write" else "confirm_batch", number))
        return [*steps, Action("log_commit", batch)]

    def forgets(self, _action: Action, after: State) -> bool:
        """Return whether the driver died, by a crash or an error, so that the learner's remaining steps are dropped."""
        return after.query.driver.place is Place.DEAD

    def properties(self) -> Sequence[Property[State]]:
        """Return the pipeline's properties that depend on the commit, and one more: `confirmed`.

        It demands that a batch is confirmed before `commits/N` is written. Duplicates are forbidden only if no crash
        can come between the write of a row and the confirmation of its batch.
        """
        names = ["no_loss", "ends"] if self._in_window else ["no_loss", "no_duplicate", "ends"]
        sentence = "When commits/N is written, batch N is confirmed."
        properties = [claim for claim in super().properties() if claim.name in names]
        return (*properties, unless("confirmed", Mood.ALWAYS, sentence, _unconfirmed))

    rules: ClassVar[dict[str, Rule[State]]] = {
        "write_out": Rule(_write_out, "The logged row of offset {which} is written to the store and visible."),
        "confirm_batch": Rule(_confirm_batch, "The confirmation that batch {which} is written is durable."),
        "plan": Pipeline.rules["plan"]._replace(effect=_plan),
    }


def _unconfirmed(state: State) -> str:
    batch = state.query.decided
    if batch <= max(state.query.confirmed, default=-1):  # older confirmations are deleted
        return ""
    return f"commits/{batch} is written, but batch {batch} is not confirmed: no record says that its rows are written."


BLUEPRINT = Blueprint(
    OpenConfirmation, "A pipeline with a write-ahead log; your function decides how it commits.", play
)
