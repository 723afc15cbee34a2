"""The properties (claims) to check in the simulator `pipeline`, its texts, and the judge of the rows that readers saw.

Only `labkit.core.judge` counts lost, duplicate and early effects, as for real runs: `Judge` turns a state into a
History.
"""

from collections.abc import Iterator, Sequence
from operator import attrgetter

from labkit.core.failpoints import FailPoint
from labkit.core.records import History, Observation, PlannedBatch, Reading, Visibility, word_counts
from labkit.core.strategies import Op
from labkit.sim.model import Action, Mood, Property, possible, unless
from labkit.sim.models.pipeline.effects import TASKS
from labkit.sim.models.pipeline.state import (
    NOBODY,
    Driver,
    Faults,
    Place,
    Query,
    Settings,
    State,
    Status,
    Task,
    Transaction,
    VisibleRow,
)
from labkit.sim.verdicts import StateJudge
from labkit.sim.wording import listed, to_come

_VISIBILITY = {
    Status.OPEN: Visibility.PRECOMMITTED,
    Status.PREPARED: Visibility.PRECOMMITTED,
    Status.COMMITTED: Visibility.PRECOMMITTED,
    Status.ABORTED: Visibility.ABORTED,
}
"""The visibility of a row that was readable before its transaction ended, by the state of that transaction."""


def is_over(state: State) -> bool:
    """Return whether the run is over: the query has ended, and the old driver (`zombie`) has no steps left."""
    return state.query.driver.place is Place.ENDED and not state.zombie.todo


class Judge(StateJudge[State]):
    """Judges the rows that readers have seen: whether some are lost, duplicated, aborted, or were visible too early."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(list(word_counts(settings.words)), attrgetter("seen", "transactions", "query.ends"))
        self._settings = settings

    def history(self, state: State) -> History:
        """Return the rows that an outside reader could have seen, with a complete read at each crash and at the end."""
        unfinished = [each for each in state.transactions if each.status in (Status.OPEN, Status.PREPARED)]
        hidden = [
            self._row(VisibleRow(offset, handle.batch, handle.incarnation), ())
            for handle, _, rows in unfinished
            for offset in rows
        ]
        query = state.query
        planned = [PlannedBatch(batch, query.start_of(batch), end) for batch, end in enumerate(query.ends)]
        return History(self._events(state), self._settings.keyed, planned, hidden)

    def _events(self, state: State) -> Iterator[Observation | Reading]:
        crashes = 0
        for row in state.seen:
            crashes += row.offset < 0
            yield (Reading(f"crash {crashes}") if row.offset < 0 else self._row(row, state.transactions))
        yield Reading("end")

    def _row(self, row: VisibleRow, transactions: Sequence[Transaction]) -> Observation:
        record = self.expected[row.offset]
        early = row.transaction >= 0
        visibility = _VISIBILITY[transactions[row.transaction].status] if early else Visibility.COMMITTED
        return Observation(*record, row.batch, row.incarnation, visibility)


SENTENCES = {
    "no_loss": "In the end no record is lost.",
    "no_duplicate": "In the end no record has come out twice.",
    "no_regression": "No reader saw the value of a key go back.",
    "no_aborted_read": "Nobody read a row of a transaction that was dropped.",
    "no_precommitted_read": "Nobody read a row before its transaction was decided.",
    "no_fractured_read": "While no driver was alive, no reader saw only a part of a batch.",
}
"""For each property that the judge checks here, the sentence that states it to users.

`no_unexpected` is left out: it cannot fail, because all values come from the input.
"""


def claims(settings: Settings, judged: Judge) -> Sequence[Property[State]]:
    """Return the properties of the simulator `pipeline` that a search checks.

    `judged` compares the rows that readers have seen with the input. Other properties concern transactions and the end
    of the query.
    """
    properties = [judged.claim(name, sentence, is_over) for name, sentence in SENTENCES.items()]
    sentence = "In the end no transaction is left unfinished."
    properties.append(unless("no_orphan", Mood.ALWAYS, sentence, _orphan, is_over))
    if settings.defers and not settings.faults.rollbacks and not settings.faults.deletions:
        sentence = "A transaction is committed only after its batch was decided."
        properties.append(unless("decided_first", Mood.ALWAYS, sentence, _decided_early))
    if settings.faults.crashes:
        properties.append(possible("recovers", "A query ends after a crash.", _has_recovered, is_over))
    return (
        *properties,
        judged.all_out("A query ends, and every record has come out.", is_over),
        Property("ends", Mood.EVENTUALLY, "The query ends, without an endless error.", is_over, _stuck),
    )


def _has_recovered(state: State) -> bool:
    return any(row.offset < 0 for row in state.seen)


def _orphan(state: State) -> str:
    for each in state.transactions:
        if each.status in (Status.OPEN, Status.PREPARED):
            hides = f"it hides offsets {each.rows}."
            return f"the transaction {each.handle} is {each.status} and nobody will end it: {hides}"
    return ""


def _decided_early(state: State) -> str:
    for each in state.transactions:
        if each.status is Status.COMMITTED and each.handle.batch > state.query.decided:
            return f"the transaction {each.handle} was committed before commits/N, the decision."
    return ""


def _stuck(state: State) -> str:
    return f"{state.failures} drivers have ended with an error, and each new driver would fail with it again."


ZOMBIE, NOTIFIED = "zombie_", "notified_"
"""The prefixes of actions of a driver that was wrongly declared dead, and of the thread that handles notifications."""

LEADS = {ZOMBIE: "The driver that was thought dead tries to go on: ", NOTIFIED: "After the notification: "}
"""For the prefix of an action's name (`ZOMBIE`, `NOTIFIED`), the words with which its sentence begins."""


def refused(action: Action, task: Task, word: str, why: str) -> str:
    """Return the sentence for an action that the engine or the store refuses; `why` is the reason.

    `task` is the driver's step that the action tries to take. `word` is the input word that this step writes, if it
    writes a single row.
    """
    lead = next((lead for prefix, lead in LEADS.items() if action.name.startswith(prefix)), "")
    if action.name.startswith(ZOMBIE):
        return f"{lead.removesuffix(': ')}, and is refused: {why}."
    tried = TASKS[task.op].tried.format(which=action.which, word=word)
    return f"{lead}{tried} is refused, and the driver ends with this error: {why}."


def done_before(state: State, action: Action, task: Task) -> str:
    """Return the sentence for a commit of a transaction that has already ended; empty for any other action."""
    statuses = [status for handle, status, _ in state.transactions if task.op is Op.COMMIT and handle in task.handles]
    if statuses == [Status.COMMITTED]:
        return f"The transaction of partition {action.which} is committed already: the second commit changes nothing."
    if statuses == [Status.ABORTED]:
        return f"The store has dropped the transaction of partition {action.which}: the driver only logs the error."
    return ""


def text(settings: Settings, state: State) -> str:
    """Return a state as one line of text: driver, checkpoint directory, store, and the faults that may still happen."""
    query, zombie, faults, seen, transactions, markers, failures = state
    parts = [_driver(query.driver), _folder(query), f"seen {listed(_row(settings, row) for row in seen)}"]
    if transactions:
        parts.append(
            f"transactions {listed(f'{each.handle} {each.status} {listed(each.rows)}' for each in transactions)}"
        )
    if markers:
        parts.append(f"markers {listed(f'q{generation}-b{batch}' for generation, batch in markers)}")
    if zombie != NOBODY:
        parts.append(f"zombie {_driver(zombie)}")
    left = to_come(Faults._fields, faults)
    parts.append(f"to come {listed(left)}" + (f", {failures} failed" if failures else ""))
    return "; ".join(parts) + "."


def _driver(driver: Driver) -> str:
    if driver.place in (Place.DEAD, Place.ENDED):
        return f"driver {driver.incarnation} ended" if driver.place is Place.ENDED else "driver dead"
    sentence = f"driver {driver.incarnation} {driver.place}, batch {driver.batch if driver.batch >= 0 else '-'}"
    sentence += f", to do {_todo(driver.todo)}"
    sentence += f", notified to do {_todo(driver.settling)}" if driver.settling else ""
    return sentence + (f", notice {driver.notice} waits" if driver.notice >= 0 else "")


def _todo(tasks: tuple[Task, ...]) -> str:
    return listed(f"{task.op}({task.which}){_owner(task)}" for task in tasks)


def _owner(task: Task) -> str:
    first = "/first" if FailPoint.MID_RESOLVE in task.points else ""
    return (f"/i{task.handles[0].incarnation}" if task.op in (Op.COMMIT, Op.ABORT) else "") + first


def _folder(query: Query) -> str:
    sentence = f"q{query.generation} after {query.incarnation} drivers"
    sentence += f", planned {listed(query.ends)}, decided {query.decided}"
    sentence += f", from {query.first}" if query.first else ""
    if query.handles:
        sentence += f", votes {listed(f'b{batch} {listed(map(str, handles))}' for batch, handles in query.handles)}"
    if query.logs:
        sentence += f", logs {listed(f'b{batch}-p{partition}' for batch, partition in query.logs)}"
    return sentence + (f", confirmed {listed(query.confirmed)}" if query.confirmed else "")


def _row(settings: Settings, row: VisibleRow) -> str:
    if row.offset < 0:
        return f"crash-{row.incarnation}"
    early = f"/t{row.transaction}" if row.transaction >= 0 else ""
    return f"{row.offset}={settings.words[row.offset]}/b{row.batch}/i{row.incarnation}{early}"
