"""The simulator of a design of writes: a process makes the writes of each step in order, and may die between two.

A step begins after all writes of the step before. `next_job` and `to_finish` contain the rules of recovery: what a
restart reads, and with which step it continues.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from labkit.sim.model import Action, Property, crash, from_fields
from labkit.sim.models.orders.claims import (
    claims,
    rows_in_words,
    set_in_words,
    skipped_in_words,
    started_in_words,
    text,
)
from labkit.sim.models.orders.state import (
    NO_JOB,
    NOTHING,
    PARAMETERS,
    ROWS_OF_A_STEP,
    VERSION,
    Job,
    Note,
    Place,
    Process,
    Seen,
    Settings,
    State,
    World,
    settings,
)
from labkit.sim.parameters import Values
from labkit.sim.rules import Event, Rule, RuleModel
from labkit.sim.writes import AtomicSet, Leftover, Output, Start, Write


def next_job(settings: Settings, process: Process) -> Job:
    """Return the step that runs next after a restart; it has not yet taken any rows."""
    note = _note(settings.design.recovery.start, process)
    offset = note.end
    if settings.world is World.GONE:
        offset = max(offset, process.notice.end)
    step = note.step + 1
    return Job(step, offset, offset, _count(settings, process, step, offset))


def _note(start: Start, process: Process) -> Note:
    if start is Start.STATE:
        if not process.states:
            return NOTHING
        return Note(process.states[-1].step, process.states[-1].end)
    if start is Start.PLAN:
        if not process.plans:
            return NOTHING
        last = process.plans[-1]
        return Note(last.step - 1, last.start)
    return {
        Start.BEGINNING: NOTHING,
        Start.MARKER: process.marker,
        Start.DECISION: process.decision,
        Start.NOTICE: process.notice,
    }[start]


def _count(settings: Settings, process: Process, step: int, offset: int) -> int:
    """Return the running count before a step. Without stored state it equals the offset of the step's first row."""
    design = settings.design
    if Write.STATE not in design.writes:
        return offset
    if design.recovery.newest:
        return process.states[-1].total if process.states else 0
    before = [each.total for each in process.states if each.step < step]
    return before[-1] if before else 0


def to_finish(settings: Settings, process: Process) -> Job:
    """Return the step whose staged output a restart finishes; `NO_JOB` if there is none, or if it is dropped."""
    leftover, staged = settings.design.recovery.leftover, process.staged
    if staged is NO_JOB or leftover is Leftover.DROPPED:
        return NO_JOB
    if leftover is Leftover.DECIDED and staged.step >= next_job(settings, process).step:
        return NO_JOB
    return staged


def planned(process: Process, job: Job) -> Job | None:
    """Return the durable plan of a step; None if no plan contains its first row."""
    for plan in process.plans:
        if plan.step == job.step and plan.start <= job.start < plan.end:
            return plan
    return None


_CRASH = Action("crash")
_state = from_fields(State)


def _write_rules(effect: Callable[[Any, State, int], State]) -> dict[str, Rule[State]]:
    """Return the rules for all kinds of write, with the same effect; an atomic set uses the rule of its last write."""
    return {write.value: Rule(effect, "Step {which}: {what}.") for write in Write}


class Orders(RuleModel[State]):
    """The simulator of a process that writes each batch in several steps; a design fixes the order of these steps."""

    name, version, parameters = "orders", VERSION, PARAMETERS

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        self.settings = settings(values)
        self.design = self.settings.design
        self._shows = self.design.place(Write.VISIBLE)
        self._by_row = self.design.output is not Output.TRANSACTION

    def initial(self) -> State:
        """Return the initial state: the stores are empty, and the process waits for its first step."""
        process = Process(place=Place.IDLE, job=Job(0, 0, 0, 0))
        return State(process, crashes=self.settings.crashes)

    def actions(self, state: State) -> Sequence[Action]:
        """Return the enabled actions: the next step's input, the next write, or the restart; then the crash."""
        process = state.process
        if process.place is Place.DOWN:
            return [Action("restart", state.life + 1)]
        if process.place is Place.IDLE:
            enabled = [Action("take", end) for end in self._ends(process)]
        else:
            enabled = [self._next(process)]
        if state.crashes:
            enabled.append(_CRASH)
        return enabled

    def _ends(self, process: Process) -> list[int]:
        """Return the input offsets at which the next step may end; none if no input is left."""
        job, rows = process.job, self.settings.rows
        if job.start >= rows:
            return []
        plan = planned(process, job)
        if plan:
            return [plan.end]
        most = min(job.start + ROWS_OF_A_STEP, rows)
        if self.settings.world is World.OTHER:
            return list(range(job.start + 1, most + 1))
        return [most]

    def _next(self, process: Process) -> Action:
        step = process.job.step
        if process.at == self._shows:
            if process.is_marked:
                return Action("skip", step)
            if self._by_row:
                return Action("show", process.job.start + process.shown)
            return Action("visible", step)
        return Action(self.design.steps[process.at][-1].value, step)

    def _is_marked(self, process: Process, job: Job) -> bool:
        return self.design.recovery.skips and process.marker.step >= job.step

    # What the process does.

    def _take(self, state: State, end: int) -> State:
        process = state.process
        job = process.job._replace(end=end)
        is_marked = self._is_marked(process, job)
        return state._replace(
            process=process._replace(place=Place.WORKING, job=job, at=0, shown=0, is_marked=is_marked)
        )

    def _write(self, state: State, _: int) -> State:
        return self._after_writes(state, self.design.steps[state.process.at])

    def _skip(self, state: State, _: int) -> State:
        writes = self.design.steps[self._shows]
        left = tuple(each for each in writes if each not in (Write.VISIBLE, Write.MARKER))
        return self._after_writes(state, left)

    def _show(self, state: State, offset: int) -> State:
        process = state.process
        shown = process.shown + 1
        state = state._replace(seen=(*state.seen, _row(state, offset)))
        if process.job.start + shown < process.job.end:
            return state._replace(process=process._replace(shown=shown))
        return self._after_writes(state, ())

    def _after_writes(self, state: State, writes: AtomicSet) -> State:
        """Return the state after an atomic set of writes; the process goes on to the next set, or to the next step."""
        process, seen = state.process, state.seen
        for write in writes:
            if write is Write.VISIBLE:
                seen += tuple(_row(state, offset) for offset in range(process.job.start, process.job.end))
                process = process._replace(staged=NO_JOB)
            else:
                process = written(process, write)
        return _state((self._gone_on(process), seen, state.life, state.crashes))

    def _gone_on(self, process: Process) -> Process:
        if process.at + 1 < len(self.design.steps):
            return process._replace(at=process.at + 1, shown=0)
        job = process.job
        if process.place is Place.FINISHING:
            job = next_job(self.settings, process)
        else:
            behind = job.snapshot
            job = Job(job.step + 1, job.end, job.end, behind.total)
        return process._replace(place=Place.IDLE, job=job, at=0, shown=0, is_marked=False)

    # Crash and restart.

    def _crash(self, state: State, _: int) -> State:
        mark = Seen(-1, 0, -1, state.life)
        return State(crash(state.process), (*state.seen, mark), state.life, state.crashes - 1)

    def _restart(self, state: State, life: int) -> State:
        process = state.process
        job = to_finish(self.settings, process)
        if job is NO_JOB:
            process = process._replace(staged=NO_JOB, place=Place.IDLE, job=next_job(self.settings, process))
        else:
            process = process._replace(
                place=Place.FINISHING,
                job=job,
                at=self.design.place(Write.STAGED) + 1,
                is_marked=self._is_marked(process, job),
            )
        return State(process, state.seen, life, state.crashes)

    def properties(self) -> Sequence[Property[State]]:
        """Return the claims to check at the end of a run and on readings before the end."""
        return claims(self.settings, self.text)

    def text(self, state: State) -> str:
        return text(state)

    def words(self, action: Action) -> Mapping[str, object]:
        """Return the value of `{what}` in an action's sentence: words for all writes of its atomic set."""
        return {"what": set_in_words(next((each for each in self.design.steps if action.name in each), ()))}

    def sentence_in(self, state: State, action: Action) -> str:
        process = state.process
        if action.name == "take":
            return rows_in_words(process.job._replace(end=action.which), planned(process, process.job))
        if action.name == "skip":
            return skipped_in_words(process)
        if action.name == "restart":
            after = self._restart(state, action.which).process
            return started_in_words(self.design.recovery, process, after)
        return self.sentence(action)

    rules: ClassVar[dict[str, Rule[State]]] = {
        "take": Rule(_take, "The next step takes the input up to offset {which}."),
        **_write_rules(_write),
        "show": Rule(_show, "The row of offset {which} becomes visible."),
        "skip": Rule(_skip, "The marker names step {which}: its output is left out."),
        "crash": Rule(_crash, "The process dies: its memory is gone.", Event.CRASH),
        "restart": Rule(_restart, "Process {which} starts and reads what was noted.", Event.RESTART),
    }


def _row(state: State, offset: int) -> Seen:
    job = state.process.job
    return Seen(offset, job.base + offset - job.start + 1, job.step, state.life)


def written(process: Process, write: Write) -> Process:
    """Return the process after one durable write of its current step; `write` is any kind but visible output."""
    job = process.job
    if write is Write.PLAN:
        kept = tuple(each for each in process.plans if each.step < job.step)
        return process._replace(plans=(*kept, job._replace(base=0)))
    if write is Write.STATE:
        before = tuple(each for each in process.states if each.step < job.step)
        return process._replace(states=(*before, job.snapshot))
    if write is Write.STAGED:
        return process._replace(staged=job)
    if write is Write.CLEAN:
        return process._replace(staged=NO_JOB)
    return _noted(process, write)


def _noted(process: Process, write: Write) -> Process:
    note = process.job.note
    if write is Write.MARKER:
        return process._replace(marker=note)
    if write is Write.DECISION:
        return process._replace(decision=note)
    return process._replace(notice=note)
