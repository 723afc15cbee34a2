"""The simulator `pipeline` with two-phase commit, in which a learner decides what a new driver commits and aborts.

Everything else is `labkit.sim.models.pipeline` with the order log-then-commit, except that a task may run twice.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from labkit.core.failpoints import FailPoint
from labkit.core.strategies import Op
from labkit.sim.blueprint import Blueprint, play
from labkit.sim.model import Action, Property
from labkit.sim.models.pipeline.effects import TaskRefusal, perform
from labkit.sim.models.pipeline.model import Pipeline
from labkit.sim.models.pipeline.programs import unfinished
from labkit.sim.models.pipeline.state import PARAMETERS, Place, State, Status, Task, Transaction, driven
from labkit.sim.open_models.base import ProgramModel, Question
from labkit.sim.parameters import Choice, Values, Whole
from labkit.sim.rules import Event, Rule

SETTLES: Final = ("settle_commit", "settle_abort")
CLAIMS: Final = ("no_loss", "no_duplicate", "no_orphan", "decided_first", "ends")
_DONE: Final = (Task(Op.RESOLVED, 0, 0, (FailPoint.AFTER_RESOLVE,)),)


class OpenResolution(Pipeline, ProgramModel):
    """The simulator of a driver whose recovery, programmed by the learner, may commit or abort each transaction."""

    name = "resolution_drill"
    parameters = PARAMETERS | {
        "strategy": Choice("Transactions that are pre-committed.", "two_phase", ("two_phase",)),
        "retries": Whole("Tasks that the engine runs a second time; nobody stores the vote of that attempt.", 0, 0, 2),
    }
    steps = (*SETTLES, "resolved")

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        self._retries = int(values["retries"])

    def actions(self, state: State) -> Sequence[Action]:
        """Return the possible actions; during recovery, they include a commit and an abort of each transaction."""
        enabled = list(super().actions(state))
        numbers = range(len(state.transactions))
        if state.query.driver.place is Place.RECOVERING:
            enabled += [Action(name, number) for number in numbers for name in SETTLES]
        elif self._retries and state.query.driver.place is Place.RUNNING:
            enabled += [Action("retry", number) for number in numbers if self._may_retry(state, number)]
        return enabled

    def _may_retry(self, state: State, number: int) -> bool:
        """Return whether the engine may repeat the task that wrote transaction `number`.

        The transaction must be prepared, and the task must belong to the current batch and not be a repetition itself.
        A task is repeated at most once, and the number of repeated tasks is limited.
        """
        driver, transactions = state.query.driver, state.transactions
        handle, status, _ = transactions[number]
        again = [each.handle for each in transactions if each.handle.attempt]
        return (
            len(again) < self._retries
            and status is Status.PREPARED
            and (handle.batch, handle.incarnation) == (driver.batch, driver.incarnation)
            and not handle.attempt
            and handle._replace(attempt=1) not in again
        )

    def _retry(self, state: State, number: int) -> State:
        handle, status, rows = state.transactions[number]
        again = Transaction(handle._replace(attempt=1), status, rows)
        return state._replace(transactions=(*state.transactions, again))

    def _plan_and_drop(self, state: State, batch: int) -> State:
        return self._without_retries(self._plan(state, batch))

    def _finish_and_drop(self, state: State, which: int) -> State:
        return self._without_retries(self._finish(state, which))

    @staticmethod
    def _without_retries(state: State) -> State:
        """Abort all transactions that were opened by retries of the current driver's tasks; return the new state.

        Real sinks abort these too, because no stored vote (commit message of a task) names them.
        """
        incarnation = state.query.driver.incarnation
        kept = tuple(
            Transaction(each.handle, Status.ABORTED, each.rows)
            if each.handle.attempt and each.handle.incarnation == incarnation
            else each
            for each in state.transactions
        )
        return state._replace(transactions=kept) if kept != state.transactions else state

    def _start(self, state: State, incarnation: int) -> State:
        started = super()._start(state, incarnation)
        return driven(started, started.query.driver._replace(todo=_DONE))

    def _settle_commit(self, state: State, number: int) -> State:
        return self._settle(state, number, Op.COMMIT)

    def _settle_abort(self, state: State, number: int) -> State:
        return self._settle(state, number, Op.ABORT)

    def _settle(self, state: State, number: int, op: Op) -> State:
        handle = state.transactions[number].handle
        task = Task(op, handle.partition, handle.batch, (), (handle,))
        try:
            return perform(self._outside, state, state.query.driver, task)
        except TaskRefusal:
            return self._fail(state)

    def asks(self, _before: State, action: Action, after: State) -> Question | None:
        """Return the arguments of the learner's function: last finished batch, stored votes, unfinished transactions.

        A vote is {"batch": number, "handles": names of transactions}. The result is None if the learner's function is
        not called after this action.
        """
        if action.name != "start":
            return None
        query = after.query
        stored = [{"batch": batch, "handles": list(map(str, handles))} for batch, handles in query.handles]
        return query.decided, stored, list(map(str, unfinished(query, after.transactions)))

    def program(self, after: State, answer: Sequence[Any]) -> Sequence[Action]:
        """Return the learner's answer as actions, followed by the action `resolved`.

        `answer` is a list of steps of the form `["commit", handle]` or `["abort", handle]`. `after` is the state in
        which the learner's function was called. Raises `ValueError` for an invalid step.
        """
        place = {str(each.handle): number for number, each in enumerate(after.transactions)}
        steps = []
        for step in answer:
            if not isinstance(step, list) or len(step) != 2 or step[0] not in ("commit", "abort"):
                raise ValueError(f'{step!r} is not a step; write ["commit", handle] or ["abort", handle].')
            verb, handle = step
            if not isinstance(handle, str) or handle not in place:
                raise ValueError(f"there is no transaction {handle!r}; the store has {', '.join(place) or 'none'}.")
            settled = Action(f"settle_{verb}", place[handle])
            if verb == "abort" and Action("settle_commit", place[handle]) in steps:
                raise ValueError(f"the answer commits {handle} and then aborts it; do only one of the two.")
            steps.append(settled)
        return [*steps, Action("resolved", 0)]

    def forgets(self, _action: Action, after: State) -> bool:
        """Return whether the driver died, by a crash or an error, so that the learner's remaining steps are dropped."""
        return after.query.driver.place is Place.DEAD

    def properties(self) -> Sequence[Property[State]]:
        """Return only those properties of the pipeline that depend on recovery."""
        return [claim for claim in super().properties() if claim.name in CLAIMS]

    def sentence_in(self, state: State, action: Action) -> str:
        """Return the sentence for an action in this state, with the name of its transaction."""
        if action.name not in (*SETTLES, "retry"):
            return super().sentence_in(state, action)
        handle = state.transactions[action.which].handle
        return self.template(action).format(handle=handle)

    def words(self, action: Action) -> Mapping[str, object]:
        """Return the values of a sentence's placeholders: `handle` is the number of the action's transaction."""
        return {**super().words(action), "handle": f"number {action.which}"}

    rules: ClassVar[dict[str, Rule[State]]] = {
        "settle_commit": Rule(_settle_commit, "Recovery commits the transaction {handle}."),
        "settle_abort": Rule(_settle_abort, "Recovery aborts the transaction {handle}."),
        "retry": Rule(
            _retry,
            "The engine runs the task of transaction {handle} a second time: both attempts have pre-committed, but the "
            "votes name only the first one.",
            Event.OPERATOR,
        ),
        "start": Pipeline.rules["start"]._replace(effect=_start),
        "plan": Pipeline.rules["plan"]._replace(effect=_plan_and_drop),
        "finish": Pipeline.rules["finish"]._replace(effect=_finish_and_drop),
    }


BLUEPRINT = Blueprint(
    OpenResolution,
    "A pipeline with two-phase commit; your function decides what a new driver commits and aborts.",
    play,
)
