"""The pipeline in words: a state in one line, and what comes of a task that is refused. Nothing here decides
anything.
"""

from labkit.core.failpoints import FailPoint
from labkit.sim.model import Action
from labkit.sim.models.pipeline.effects import TASKS
from labkit.sim.models.pipeline.parts import NOBODY, Driver, Faults, Op, Place, Query, State, Status, Task, VisibleRow
from labkit.sim.models.pipeline.settings import Settings
from labkit.sim.wording import listed, to_come

ZOMBIE, NOTIFIED = "zombie_", "notified_"
"""How the name of an action begins that is no step of the driver's own program."""

LEADS = {ZOMBIE: "The driver that was thought dead tries to go on: ", NOTIFIED: "Told by the notification: "}
"""How the sentence of such an action begins."""


def refused(action: Action, task: Task, word: str, why: str) -> str:
    """What an action does that the engine or the store refuses."""
    lead = next((lead for prefix, lead in LEADS.items() if action.name.startswith(prefix)), "")
    if action.name.startswith(ZOMBIE):
        return f"{lead.removesuffix(': ')}, and is refused: {why}."
    tried = TASKS[task.op].tried.format(which=action.which, word=word)
    return f"{lead}{tried} is refused, and the driver ends with this error: {why}."


def done_before(state: State, action: Action, task: Task) -> str:
    """What a commit does that changes nothing; empty for every other task."""
    statuses = [status for handle, status, _ in state.transactions if task.op is Op.COMMIT and handle in task.handles]
    if statuses == [Status.COMMITTED]:
        return f"The transaction of partition {action.which} is committed already: the second commit changes nothing."
    if statuses == [Status.ABORTED]:
        return (
            f"The store has dropped the transaction of partition {action.which}: the error is logged, and nothing else."
        )
    return ""


def text(settings: Settings, state: State) -> str:
    """Driver, checkpoint folder, store, and what may still go wrong."""
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
    return listed(f"{task.op}({task.which}){_whose(task)}" for task in tasks)


def _whose(task: Task) -> str:
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
