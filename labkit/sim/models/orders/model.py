"""The simulator of a design of writes: a process makes the writes of each step in order, and may die between two.

A step begins after all writes of the step before. `next_job` and `to_finish` contain the rules of recovery: what a
restart reads, and with which step it continues.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from labkit.sim.model import Action, Property, crash, from_fields
from labkit.sim.models.orders.claims import (
    Judge,
    claims,
    rows_in_words,
    set_in_words,
    skipped_in_words,
    started_in_words,
    text,
)
from labkit.sim.models.orders.state import (
    CRASHED,
    NO_JOB,
    NOTHING,
    PARAMETERS,
    ROWS_OF_A_STEP,
    TAKEN_BACK,
    Fault,
    Job,
    Note,
    Place,
    Process,
    Seen,
    Settings,
    State,
    World,
    kept,
    settings,
)
from labkit.sim.parameters import Values
from labkit.sim.rules import Event, Rule, RuleModel
from labkit.sim.writes import AtomicSet, Leftover, Output, Start, Write


def next_job(settings: Settings, process: Process) -> Job:
    """Return the step that runs next after a restart, as a `Job` that has not taken any rows yet."""
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
    """Return the running count of the input's only word up to the first row of step number `step`, without this row.

    `offset` is the offset of this row.
    """
    design = settings.design
    if Write.STATE not in design.writes:
        return offset  # all rows have the same word
    if design.recovery.newest:
        return process.states[-1].total if process.states else 0
    before = [each.total for each in process.states if each.step < step]
    return before[-1] if before else 0


def to_finish(settings: Settings, process: Process) -> Job:
    """Return the step whose staged (not yet visible) output a restart publishes; `NO_JOB` if there is none."""
    leftover, staged = settings.design.recovery.leftover, process.staged
    if staged is NO_JOB or leftover is Leftover.DROPPED:
        return NO_JOB
    if leftover is Leftover.DECIDED and staged.step >= next_job(settings, process).step:
        return NO_JOB
    return staged


def planned(process: Process, job: Job) -> Job | None:
    """Return the stored plan that fixes the rows of the step `job`; None if no plan contains the step's first row."""
    for plan in process.plans:
        if plan.step == job.step and plan.start <= job.start < plan.end:
            return plan
    return None


_CRASH = Action("crash")
_LAGGING = frozenset({Write.PLAN, Write.DECISION, Write.NOTICE})
"""The writes that an engine may leave out if its log lags."""
_state = from_fields(State)


def _write_rules(effect: Callable[[Any, State, int], State]) -> dict[str, Rule[State]]:
    return {write.value: Rule(effect, "Step {which}: {what}.") for write in Write}


class Orders(RuleModel[State]):
    """The simulator of a process that makes several durable writes for each batch, in an order given by a parameter."""

    name, version, parameters = "orders", 1, PARAMETERS

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        self.settings = settings(values)
        self.judge = Judge(self.settings)
        self.design = self.settings.design
        self._shows = self.design.place(Write.VISIBLE)
        self._by_row = self.design.output is not Output.TRANSACTION
        self._leased = self.design.place(Write.NOTICE) if self.design.recovery.start is Start.NOTICE else -1

    def initial(self) -> State:
        """Return the initial state: the stores are empty, and the process waits for its first step."""
        process = Process(place=Place.IDLE, job=Job(0, 0, 0, 0))
        return State(process, crashes=self.settings.crashes, faults=self.settings.faults)

    def actions(self, state: State) -> Sequence[Action]:
        process = state.process
        if process.place is Place.DOWN:
            enabled = [Action("restart", state.life + 1)]
        elif process.place is Place.IDLE:
            enabled = [Action("take", end) for end in self._ends(process)]
        elif process.place is Place.UNDOING:
            enabled = [Action("undo", self._undecided(state)[-1].offset)]
        else:
            enabled = [self._next(process)]
        if state.faults:
            enabled += self._faults(process)
        if state.crashes and process.place is not Place.DOWN:
            enabled.append(_CRASH)
        return enabled

    def _faults(self, process: Process) -> list[Action]:
        fault, step = self.settings.fault, process.job.step
        if fault is Fault.EXPIRY:
            expires = process.staged is not NO_JOB and not self._by_row
            return [Action("expire", process.staged.step)] * expires
        if process.place not in (Place.WORKING, Place.FINISHING):
            return []
        if fault is Fault.LOST_ANSWER:
            if process.at != self._shows or process.is_marked:
                return []
            return [Action("unanswered", step)]
        if fault is Fault.LEASE:
            is_lent = process.place is Place.WORKING and not process.is_late
            return [Action("lapse", step)] * (is_lent and process.at <= self._leased)
        writes = self.design.steps[process.at]
        return [Action("defer", step)] * _LAGGING.issuperset(writes)

    def _ends(self, process: Process) -> list[int]:
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
        if self._is_refused(process):
            return Action("refused", step)
        if process.at == self._shows:
            if process.is_marked:
                return Action("skip", step)
            if self._by_row:
                return Action("show", process.job.start + process.shown)
            return Action("visible", step)
        return Action(self.design.steps[process.at][-1].value, step)

    def _is_refused(self, process: Process) -> bool:
        if process.is_late:
            return process.at == self._leased
        if self.settings.fault is not Fault.EXPIRY or self._by_row or Write.STAGED not in self.design.writes:
            return False
        return process.at == self._shows and not process.is_marked and process.staged is NO_JOB

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
        process, seen = state.process, state.seen
        for write in writes:
            if write is Write.VISIBLE:
                if self._is_committed(process):
                    continue
                seen += tuple(_row(state, offset) for offset in range(process.job.start, process.job.end))
                process = process._replace(staged=NO_JOB)
            else:
                process = written(process, write)
        return _state((self._gone_on(process), seen, state.life, state.crashes, state.faults))

    def _is_committed(self, process: Process) -> bool:
        return Write.STAGED in self.design.writes and process.staged is NO_JOB

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

    # Faults other than crashes.

    def _unanswered(self, state: State, _: int) -> State:
        process = state.process
        if self._by_row:
            return _faulty(state, process, (_row(state, process.job.start + process.shown),))
        after = self._after_writes(state, self.design.steps[process.at])
        stores = after.process._replace(place=process.place, job=process.job, at=process.at)
        # The process repeats the write; if it skips marked steps, it first reads the marker, as after a restart.
        again = stores._replace(is_marked=self._is_marked(stores, process.job))
        return _faulty(after, again)

    def _expire(self, state: State, _: int) -> State:
        return _faulty(state, state.process._replace(staged=NO_JOB))

    def _lapse(self, state: State, _: int) -> State:
        return _faulty(state, state.process._replace(is_late=True))

    def _defer(self, state: State, _: int) -> State:
        return _faulty(state, self._gone_on(state.process))

    def _refused(self, state: State, _: int) -> State:
        process = state.process
        job = next_job(self.settings, process)
        if job.step > process.job.step:  # a restart would not repeat the step
            return state._replace(process=self._gone_on(process))
        process = process._replace(place=Place.IDLE, job=job, at=0, shown=0, is_marked=False, is_late=False)
        return state._replace(process=process)

    # Crash and restart.

    def _crash(self, state: State, _: int) -> State:
        mark = Seen(CRASHED, 0, -1, state.life)
        return state._replace(process=crash(state.process), seen=(*state.seen, mark), crashes=state.crashes - 1)

    def _restart(self, state: State, life: int) -> State:
        process = state.process
        job = to_finish(self.settings, process)
        if job is NO_JOB:
            process = process._replace(staged=NO_JOB, place=Place.IDLE, job=next_job(self.settings, process))
            if self.design.recovery.undoes and self._undecided(state._replace(process=process)):
                process = process._replace(place=Place.UNDOING)
        else:
            process = process._replace(
                place=Place.FINISHING,
                job=job,
                at=self.design.place(Write.STAGED) + 1,
                is_marked=self._is_marked(process, job),
            )
        return state._replace(process=process, life=life)

    def _undecided(self, state: State) -> list[Seen]:
        """Return the visible rows of steps that will run again; they are the newest of all visible rows."""
        rows = [state.seen[index] for index in kept(state.seen)]
        return [each for each in rows if each.step >= state.process.job.step]

    def _undo(self, state: State, _: int) -> State:
        """Return the state after recovery has taken back output of steps that will run again.

        Recovery takes back one row, the newest transaction, or all upserts at once, depending on the kind of output.
        When an upsert is taken back, the earlier row of its key becomes visible again.
        """
        rows = len(self._undecided(state))
        if self.design.output is Output.TRANSACTION:
            steps = [each.step for each in self._undecided(state)]
            undone = steps.count(steps[-1])
        else:
            undone = rows if self.design.output is Output.UPSERT else 1
        event = Seen(TAKEN_BACK, 0, -1, state.life)
        process = state.process
        if undone == rows:
            process = process._replace(place=Place.IDLE)
        return state._replace(process=process, seen=state.seen + (event,) * undone)

    def properties(self) -> Sequence[Property[State]]:
        return claims(self.settings, self.judge)

    def text(self, state: State) -> str:
        return text(state)

    def words(self, action: Action) -> Mapping[str, object]:
        """Return the values of a sentence's placeholders: `what` names the writes that happen together."""
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
        "skip": Rule(_skip, "The marker names step {which}, so the process skips its output."),
        "undo": Rule(
            _undo, "Visible output that will be written again is taken back, the row of offset {which} first."
        ),
        "unanswered": Rule(
            _unanswered,
            "Output of step {which} becomes visible, but the answer is lost, so the process writes it again.",
            Event.DROP,
        ),
        "expire": Rule(_expire, "The store aborts the prepared output of step {which}.", Event.TIMEOUT),
        "lapse": Rule(_lapse, "The time for which the source lends the rows of step {which} is over.", Event.TIMEOUT),
        "defer": Rule(_defer, "Step {which} goes on without its entry in the engine's log.", Event.DELAY),
        "refused": Rule(_refused, "The next write of step {which} is refused."),
        "crash": Rule(_crash, "The process dies: its memory is gone.", Event.CRASH),
        "restart": Rule(_restart, "Process {which} starts and reads its durable records.", Event.RESTART),
    }


def _faulty(state: State, process: Process, rows: tuple[Seen, ...] = ()) -> State:
    return state._replace(process=process, seen=state.seen + rows, faults=state.faults - 1)


def _row(state: State, offset: int) -> Seen:
    job = state.process.job
    return Seen(offset, job.base + offset - job.start + 1, job.step, state.life)


def written(process: Process, write: Write) -> Process:
    """Return the process's state after its current step has made the durable write `write`.

    `write` must not be `Write.VISIBLE`, because visible output changes the state of the readers.
    """
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
    noted: dict[str, Any] = {write.value: job.note}  # the field has the name of the write: marker, decision or notice
    return process._replace(**noted)
