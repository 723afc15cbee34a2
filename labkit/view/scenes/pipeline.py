"""Draw the simulator of a pipeline: the log, the checkpoint folder, the driver, the store, and an outside reader."""

from collections.abc import Sequence

from labkit.core.records import Observation
from labkit.core.strategies import Op, Pending
from labkit.sim.model import Action
from labkit.sim.models.pipeline.effects import TASKS
from labkit.sim.models.pipeline.model import Pipeline
from labkit.sim.models.pipeline.state import (
    NOBODY,
    Driver,
    Faults,
    Handle,
    Place,
    Query,
    State,
    Status,
    Task,
    Transaction,
)
from labkit.view.scene import Box, Channel, Drawing, Kind, Mark, Row, Scene, Token, field, may_follow, record, slip
from labkit.view.scene import Place as Where
from labkit.view.timeline import timeline

_DOING = {
    Place.DEAD: "dead: its memory is gone",
    Place.RECOVERING: "resolves what was in doubt",
    Place.RUNNING: "running",
    Place.ENDING: "coming to its end",
    Place.ENDED: "ended",
}
_AHEAD = 3
"""The number of a driver's next tasks that are drawn; further ones are only counted."""


def scene(model: Pipeline, state: State) -> Scene:
    """Return the picture of a state: boxes for the query's durable data, its driver, the store and the reader."""
    query, zombie, faults, _, _, _, failures = state
    boxes = [_log(model, query), _folder(model, query), _driver("driver", "driver", query, query.driver)]
    if zombie != NOBODY:
        boxes.append(_driver("zombie", "the driver thought dead", query._replace(driver=zombie), zombie))
    boxes += [_store(model, state), _reader(model, state)]
    arrows = [
        Channel("reads", "log", "driver"),
        Channel("keeps", "folder", "driver"),
        Channel("writes", "driver", "store"),
    ]
    if zombie != NOBODY:
        arrows.append(Channel("wakes", "zombie", "store"))
    left = may_follow(Faults._fields, faults) + (f"; the driver has failed {failures} times" if failures else "")
    return Scene(tuple(boxes), tuple(arrows), left)


def _word(model: Pipeline, offset: int, *, faded: bool = False, crossed: bool = False) -> Token:
    words = model.settings.words
    return record(tuple(dict.fromkeys(words)), words[offset], str(offset), faded=faded, crossed=crossed)


def _log(model: Pipeline, query: Query) -> Box:
    words, next_offset = model.settings.words, query.start_of(len(query.ends))
    tokens = [_word(model, offset, faded=offset < next_offset) for offset in range(len(words))]
    rows = (Row(Kind.PLAIN, "records", tokens=tuple(tokens)), Row(Kind.PLAIN, "next to plan", f"offset {next_offset}"))
    if not model.settings.replayable:
        return Box("log", 0, "socket", "input, each record comes once", rows, lane=False)
    return Box("log", 0, "log", "input, can be read again", rows, lane=False)


def _folder(model: Pipeline, query: Query) -> Box:
    ends = [slip(f"{batch}: to {end}") for batch, end in enumerate(query.ends)]
    commits = [slip(str(batch)) for batch in range(query.decided + 1)]
    rows = [
        field(query, "ends", "offsets/", "" if ends else "none", ends),
        field(query, "decided", "commits/", "" if commits else "none", commits),
    ]
    if model.settings.defers or query.handles:
        votes = [slip(f"{batch}: {' '.join(map(_name, handles))}") for batch, handles in query.handles]
        rows.append(field(query, "handles", "stored votes", "" if votes else "none", votes))
    if model.settings.strategy.facts.pending is Pending.LOG:
        logs = [slip(f"batch {batch}, p{partition}") for batch, partition in query.logs]
        confirmed = [slip(str(batch)) for batch in query.confirmed]
        rows.append(field(query, "logs", "sealed logs", "" if logs else "none", logs))
        rows.append(field(query, "confirmed", "second confirmations", "" if confirmed else "none", confirmed))
    says = f"query {query.generation}, {query.incarnation} drivers so far"
    return Box("folder", 0, "checkpoint folder", says, tuple(rows))


def _name(handle: Handle) -> str:
    return f"p{handle.partition}/i{handle.incarnation}"


def _driver(name: str, title: str, query: Query, driver: Driver) -> Box:
    alive = driver.place not in (Place.DEAD, Place.ENDED)
    number = f" {driver.incarnation}" if driver.incarnation else ""
    rows = [
        field(query, "driver", "batch", str(driver.batch) if driver.batch >= 0 else "-"),
        field(query, "driver", "to do", "" if driver.todo else "-", _todo(driver.todo)),
    ]
    if driver.settling:
        rows.append(field(query, "driver", "told to do", "", _todo(driver.settling)))
    elif driver.notice >= 0:
        rows.append(field(query, "driver", "a notification waits", f"batch {driver.notice}"))
    marks = (Mark.DOWN,) if driver.place is Place.DEAD else (Mark.ENDED,) if not alive else ()
    return Box(name, 1, title + number, _DOING[driver.place], tuple(rows), marks)


def _todo(tasks: Sequence[Task]) -> list[Token]:
    shown = [slip(TASKS[task.op].short.format(task.which)) for task in tasks[:_AHEAD]]
    return shown + [slip(f"+ {len(tasks) - _AHEAD} more", faded=True)] * (len(tasks) > _AHEAD)


_STATUS = {
    Status.OPEN: (Kind.OPEN, "open"),
    Status.PREPARED: (Kind.PREPARED, "pre-committed"),
    Status.COMMITTED: (Kind.COMMITTED, "committed"),
    Status.ABORTED: (Kind.ABORTED, "aborted"),
}


def _store(model: Pipeline, state: State) -> Box:
    rows = [_transaction(model, each) for each in state.transactions]
    if state.markers:
        rows.append(Row(Kind.COMMITTED, "markers", tokens=tuple(slip(f"q{q} b{b}") for q, b in state.markers)))
    if handed_over := _handed_over(state.query.driver):
        tokens = tuple(_word(model, each) for each in handed_over)
        rows.append(Row(Kind.OPEN, "driver's transaction", tokens=tokens))
    doubt = any(each.status is Status.PREPARED for each in state.transactions)
    says = f"sink: {model.settings.strategy.value.replace('_', ' ')}"
    if order := model.settings.order.spoken:
        says += f", {order}"
    if not rows:
        rows = [Row(Kind.PLAIN, "no transaction", "")]
    return Box("store", 2, "store", says, tuple(rows), (Mark.IN_DOUBT,) * doubt)


def _handed_over(driver: Driver) -> tuple[int, ...]:
    mark = next((task for task in driver.todo if task.op is Op.MARK), None)
    if mark is None or driver.todo[0].op is Op.LOOK:
        return ()
    to_come = {task.which for task in driver.todo if task.op is Op.HAND_OVER}
    return tuple(offset for offset in mark.rows if offset not in to_come)


def _transaction(model: Pipeline, transaction: Transaction) -> Row:
    kind, word = _STATUS[transaction.status]
    dropped = kind is Kind.ABORTED
    tokens = tuple(_word(model, offset, crossed=dropped, faded=dropped) for offset in transaction.rows)
    return Row(kind, f"b{transaction.handle.batch} {_name(transaction.handle)}", word, tokens)


def _reader(model: Pipeline, state: State) -> Box:
    history = model.judge.history(state)
    events = list(history.events)
    observed = [event for event in events if isinstance(event, Observation)]
    if model.settings.keyed:
        latest = {event.key: event.value for event in observed}
        tokens = tuple(slip(f"{key} = {value}") for key, value in sorted(latest.items()))
        row = Row(Kind.VISIBLE, "table", "" if tokens else "nothing yet", tokens)
    else:
        tokens = tuple(_word(model, event.offset) for event in observed)
        row = Row(Kind.VISIBLE, "rows", "" if tokens else "nothing yet", tokens)
    order = Row(Kind.PLAIN, "seen in this order", timeline(events) if observed else "nothing")
    return Box("reader", 2, "outside reader", f"reads {model.values['reader']} rows", (row, order))


_AT = {"expire": "store", "roll_back": "folder", "delete_checkpoint": "folder"}
_TO_FOLDER = ("plan", "plan_nothing", "start")


def place(model: Pipeline, action: Action) -> Where:
    """Return the box in the picture that carries out an action, and the other boxes that the action affects."""
    name = action.name
    box = "zombie" if name.startswith("zombie_") else _AT.get(name, "driver")
    bare = name.removeprefix("zombie_").removeprefix("notified_")
    if bare in list(Op):
        return Where(box, model.event(action), TASKS[Op(bare)].reaches)
    touches = ("folder",) if bare in _TO_FOLDER else ()
    return Where(box, model.event(action), touches)


DRAWING = Drawing(scene, place)
