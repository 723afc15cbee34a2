"""The pipeline in words: a state in one line, an action in one sentence. Nothing here decides anything."""

from collections.abc import Iterable

from labkit.core.failpoints import FailPoint
from labkit.sim.model import Action
from labkit.sim.models.pipeline.parts import (
    NOBODY,
    Driver,
    Faults,
    Op,
    Place,
    Query,
    Seen,
    State,
    Status,
    Task,
)
from labkit.sim.models.pipeline.settings import Settings

SENTENCES = {
    "start": "Driver {which} starts and reads what was decided.",
    "plan": "Batch {which} is planned: offsets/{which} is durable.",
    "plan_nothing": "Batch {which} was planned before, and the source cannot give its records again: it is empty.",
    "finish": "No input is left: the query comes to its clean end.",
    "catch_up": "Before it stores new votes the driver commits what was decided through batch {which}.",
    "notify": "The notification of batch {which} arrives.",
    "crash": "SIGKILL: the memory of the driver is gone.",
    "expire": "The store drops unfinished transaction {which} after its timeout.",
    "lose_notice": "The notification of batch {which} is lost.",
    "lapse": "The checkpoint of batch {which} expires, and the job lives on.",
    "roll_back": "Somebody restores the checkpoint from before batch {which}.",
    "delete_checkpoint": "Somebody deletes the checkpoint folder.",
    "replace_driver": "The driver hangs, is thought dead, and will be replaced; it will wake up.",
    "write": "The row of offset {which} ({word}) is written and visible.",
    "hand_over": "The row of offset {which} ({word}) goes into the driver's one open transaction.",
    "insert": "The row of offset {which} ({word}) goes into its task's open transaction.",
    "log": "The row of offset {which} ({word}) is logged.",
    "prepare": "The task of partition {which} pre-commits its transaction: its yes.",
    "seal": "The task of partition {which} seals its log: its yes.",
    "look": "The driver looks whether batch {which} was written before.",
    "commit": "The transaction of partition {which} is committed.",
    "flush": "The logged row of offset {which} ({word}) is flushed and visible.",
    "confirm": "Batch {which} is confirmed a second time.",
    "mark": "Rows and marker of batch {which} are committed together.",
    "store_handles": "The votes of batch {which} are durable.",
    "log_commit": "commits/{which} is durable.",
    "tell": "The notification of batch {which} arrives, and nothing waits for it.",
    "end": "The query has ended.",
    "forget": "The stored votes of batch {which} are dropped.",
    "abort": "Recovery aborts the transaction of partition {which}, which was never decided.",
    "resolved": "Recovery has resolved everything in doubt.",
}

_WHO = {
    "zombie_": "The driver that was thought dead tries to go on: ",
    "notified_": "Told by the notification: ",
}


_TRIED = {
    "insert": "The row of offset {which} ({word})",
    "prepare": "The pre-commit of the task of partition {which}",
    "commit": "The commit of the transaction of partition {which}",
    "mark": "The transaction with the rows and the marker of batch {which}",
    "log_commit": "commits/{which}",
}
"""What can be refused."""


def sentence(settings: Settings, action: Action) -> str:
    """What an action sets out to do."""
    name, lead = _parted(action)
    return lead + SENTENCES[name].format(
        which=action.which, word=_word(settings, action)
    )


def refused(settings: Settings, action: Action, why: str) -> str:
    """What an action does that the engine or the store refuses."""
    name, lead = _parted(action)
    if action.name.startswith("zombie_"):
        return f"{lead.removesuffix(': ')}, and is refused: {why}."
    tried = _TRIED[name].format(which=action.which, word=_word(settings, action))
    return f"{lead}{tried} is refused, and the driver ends with this error: {why}."


def done_before(state: State, action: Action, task: Task) -> str:
    """What a commit does that changes nothing; empty for every other task."""
    statuses = [
        status
        for handle, status, _ in state.store.transactions
        if task.op is Op.COMMIT and handle in task.handles
    ]
    if statuses == [Status.COMMITTED]:
        return f"The transaction of partition {action.which} is committed already: the second commit changes nothing."
    if statuses == [Status.ABORTED]:
        return f"The store has dropped the transaction of partition {action.which}: the error is logged, and nothing else."
    return ""


def _parted(action: Action) -> tuple[str, str]:
    """The name of what is done, and the words for who does it."""
    for prefix, words in _WHO.items():
        if action.name.startswith(prefix):
            return action.name.removeprefix(prefix), words
    return action.name, ""


def _word(settings: Settings, action: Action) -> str:
    return (
        settings.words[action.which] if 0 <= action.which < len(settings.words) else ""
    )


def text(settings: Settings, state: State) -> str:
    """Driver, checkpoint folder, store, and what may still go wrong."""
    query, zombie, store, faults, failures = state
    parts = [
        _driver(query.driver),
        _folder(query),
        f"seen {_all(_seen(settings, row) for row in store.seen)}",
    ]
    if store.transactions:
        parts.append(
            f"transactions {_all(f'{each.handle} {each.status} {_offsets(each.rows)}' for each in store.transactions)}"
        )
    if store.markers:
        parts.append(
            f"markers {_all(f'q{generation}-b{batch}' for generation, batch in store.markers)}"
        )
    if zombie is not NOBODY:
        parts.append(f"zombie {_driver(zombie)}")
    left = [
        f"{count} {name}"
        for name, count in zip(Faults._fields, faults, strict=True)
        if count
    ]
    parts.append(f"to come {_all(left)}" + (f", {failures} failed" if failures else ""))
    return "; ".join(parts) + "."


def _driver(driver: Driver) -> str:
    if driver.place in (Place.DEAD, Place.ENDED):
        return (
            f"driver {driver.incarnation} ended"
            if driver.place is Place.ENDED
            else "driver dead"
        )
    said = f"driver {driver.incarnation} {driver.place}, batch {driver.batch if driver.batch >= 0 else '-'}"
    said += f", to do {_todo(driver.todo)}"
    said += f", notified to do {_todo(driver.settling)}" if driver.settling else ""
    return said + (f", notice {driver.notice} waits" if driver.notice >= 0 else "")


def _todo(tasks: tuple[Task, ...]) -> str:
    return _all(f"{task.op}({task.which}){_whose(task)}" for task in tasks)


def _whose(task: Task) -> str:
    first = "/first" if FailPoint.MID_RESOLVE in task.points else ""
    return (
        f"/i{task.handles[0].incarnation}" if task.op in (Op.COMMIT, Op.ABORT) else ""
    ) + first


def _folder(query: Query) -> str:
    said = f"q{query.generation} after {query.incarnation} drivers"
    said += f", planned {_offsets(query.ends)}, decided {query.decided}"
    said += f", from {query.first}" if query.first else ""
    if query.handles:
        said += f", votes {_all(f'b{batch} {_all(map(str, handles))}' for batch, handles in query.handles)}"
    if query.logs:
        said += f", logs {_all(f'b{batch}-p{partition}' for batch, partition in query.logs)}"
    return said + (
        f", confirmed {_offsets(query.confirmed)}" if query.confirmed else ""
    )


def _seen(settings: Settings, row: Seen) -> str:
    if row.offset < 0:
        return f"crash-{row.attempt}"
    early = f"/t{row.transaction}" if row.transaction >= 0 else ""
    return (
        f"{row.offset}={settings.words[row.offset]}/b{row.batch}/i{row.attempt}{early}"
    )


def _offsets(numbers: Iterable[int]) -> str:
    return _all(map(str, numbers))


def _all(words: Iterable[str]) -> str:
    return " ".join(words) or "-"
