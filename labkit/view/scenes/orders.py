"""Draw the simulator of engines that make their durable writes in a chosen order: input, process, store and reader."""

from labkit.core.records import Observation
from labkit.sim.model import Action
from labkit.sim.models.orders.claims import KEY, Judge
from labkit.sim.models.orders.model import Orders
from labkit.sim.models.orders.state import NO_JOB, Note, Place, State, kept
from labkit.sim.writes import Output, Write
from labkit.view.scene import Box, Channel, Drawing, Kind, Mark, Row, Scene, Token, field, may_follow, record, slip
from labkit.view.scene import Place as Where
from labkit.view.timeline import timeline

_DOING = {
    Place.DOWN: "dead: its memory is gone",
    Place.UNDOING: "takes output back",
    Place.IDLE: "waits for the next step",
    Place.WORKING: "works on a step",
    Place.FINISHING: "finishes what is staged",
}


def scene(model: Orders, state: State) -> Scene:
    """Return the picture of a state: boxes for the input, the engine's log, the process, the store and the reader."""
    boxes = [_input(model, state), _engine(model, state), _process(model, state)]
    if Write.NOTICE in model.design.writes:
        notice = field(state.process, "notice", "was told of", _note(state.process.notice))
        boxes.append(Box("told", 1, "somebody else", "keeps its own note", (notice,), lane=False))
    boxes += [_store(model, state), _reader(model, state)]
    arrows = [
        Channel("reads", "input", "process"),
        Channel("notes", "engine", "process"),
        Channel("writes", "process", "store"),
    ]
    left = may_follow(("crashes", "faults"), (state.crashes, state.faults))
    return Scene(tuple(boxes), tuple(arrows), left)


def _record(offset: int, *, faded: bool = False) -> Token:
    return record((KEY,), KEY, str(offset), faded=faded)


def _input(model: Orders, state: State) -> Box:
    next_row = state.process.job.end
    tokens = tuple(_record(offset, faded=offset < next_row) for offset in range(model.settings.rows))
    return Box("input", 0, "input", "each row counts hello", (Row(Kind.PLAIN, "rows", tokens=tokens),), lane=False)


def _engine(model: Orders, state: State) -> Box:
    process, writes = state.process, model.design.writes
    rows = []
    if Write.PLAN in writes:
        plans = [slip(f"{each.step}: rows {each.start} to {each.end - 1}") for each in process.plans]
        rows.append(field(process, "plans", "plans", "" if plans else "none", plans))
    if Write.STATE in writes:
        states = [slip(f"{each.step}: hello = {each.total}") for each in process.states]
        rows.append(field(process, "states", "state after step", "" if states else "none", states))
    if Write.DECISION in writes:
        rows.append(field(process, "decision", "decided", _note(process.decision)))
    if not rows:
        rows = [Row(Kind.PLAIN, "no note", "")]
    return Box("engine", 0, "engine's notes", str(model.design.recovery), tuple(rows), lane=False)


def _process(model: Orders, state: State) -> Box:
    process = state.process
    job = process.job
    down = process.place is Place.DOWN
    records = [_record(offset) for offset in range(job.start, job.end)]
    rows = [
        field(process, "job", "step", str(job.step) if not down else "gone"),
        field(process, "job", "rows", "" if records else "-", records),
        field(process, "job", "count before", str(job.base) if not down else "gone"),
        field(process, "at", "next write", _next_write(model, state)),
    ]
    return Box("process", 1, f"process {state.life}", _DOING[process.place], tuple(rows), (Mark.DOWN,) * down)


def _next_write(model: Orders, state: State) -> str:
    process = state.process
    if process.place in (Place.DOWN, Place.IDLE, Place.UNDOING):
        return "-"
    return " + ".join(model.design.steps[process.at])


def _store(model: Orders, state: State) -> Box:
    process, design = state.process, model.design
    rows = []
    if Write.STAGED in design.writes:
        staged = process.staged
        tokens = [_record(offset) for offset in range(staged.start, staged.end)]
        label = "staged" if staged is NO_JOB else f"staged, step {staged.step}"
        rows.append(Row(Kind.PREPARED, label, "" if tokens else "none", tuple(tokens)))
    if Write.MARKER in design.writes:
        rows.append(field(process, "marker", "marker", _note(process.marker)))
    shown = tuple(slip(f"hello = {state.seen[each].value}") for each in kept(state.seen))
    if design.output is Output.UPSERT:
        shown = shown[-1:]
    rows.append(Row(Kind.COMMITTED, "rows", "" if shown else "none", shown))
    return Box("store", 2, "store", f"output: {design.output}", tuple(rows))


def _reader(model: Orders, state: State) -> Box:
    judge = Judge(model.settings)
    events = list(judge.history(state).events)
    rows = [Row(Kind.VISIBLE, "saw", timeline(events[:-1]) or "nothing")]
    if any(isinstance(event, Observation) for event in events):
        rows.append(Row(Kind.PLAIN, "if this is the end", judge.verdict(state).guarantee.value))
    return Box("reader", 3, "reader", "looks from outside", tuple(rows), lane=False)


def _note(note: Note) -> str:
    return "nothing" if note.step < 0 else f"step {note.step}, up to row {note.end - 1}"


_AT_STORE = ("staged", "visible", "marker", "clean", "show", "skip", "undo", "unanswered", "expire", "refused")


def place(model: Orders, action: Action) -> Where:
    """Return the box of the process, which carries out every action; add the store's box if the action affects it."""
    touched = ("store",) * (action.name in _AT_STORE)
    return Where("process", model.event(action), touched)


DRAWING = Drawing(scene, place)
