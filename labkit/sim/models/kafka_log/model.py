"""The simulator of Kafka's log: the enabled actions of a state, in a fixed order, and what each of them changes.

Time passes by an action, a tick, and the timeout of a transaction counts the ticks since its first write. With an
interval of 0 any step may take any time. With a larger interval the job is punctual: no tick passes while one of its
own steps is due.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from labkit.sim.model import Action, Property, crash
from labkit.sim.models.kafka_log import coordinator as kafka
from labkit.sim.models.kafka_log import job as work
from labkit.sim.models.kafka_log.claims import Judge, answered, claims, refused, text
from labkit.sim.models.kafka_log.state import (
    ABORT,
    COMMIT,
    NOBODY,
    PARAMETERS,
    PLAIN,
    READ_COMMITTED,
    Coordinator,
    Handle,
    Job,
    Phase,
    Reader,
    Request,
    Settings,
    Slot,
    Stage,
    State,
    appended,
    failed,
    open_epoch,
    settings,
    spent,
    with_coordinator,
    with_job,
    with_poll,
    with_reader,
)
from labkit.sim.parameters import Values
from labkit.sim.rules import Event, Rule, RuleModel


class Broker(RuleModel[State]):
    """The part of the simulator with Kafka's actions: those of its coordinator, its partitions and its readers."""

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        self.settings = settings(values)
        self.judge = Judge(self.settings)
        broken = self.settings.broken
        self._protocol = kafka.Rules(self.settings.bumps_epoch, broken != "no_fencing", broken == "forget_decision")

    def _deliver(self, state: State, place: int) -> State:
        handle, attempt = state.requests[place]
        state = state._replace(requests=(*state.requests[:place], *state.requests[place + 1 :]))
        coordinator, answer = kafka.end(self._protocol, state.coordinator, handle)
        state = with_coordinator(state, coordinator)
        job = state.job
        if attempt != job.incarnation or job.phase not in (Phase.RECOVERING, Phase.RUNNING):
            return state
        after = work.answered(self.settings, job, handle, answer)
        return failed(state) if after is None else with_job(state, after, state.since)

    def _mark(self, state: State, which: int) -> State:
        name, where = divmod(which, TEN)
        entry = state.coordinator.log[name]
        kind = COMMIT if entry.stage is Stage.PREPARE_COMMIT else ABORT
        state = appended(state, where, Slot(kind, name, entry.epoch))
        return with_coordinator(state, kafka.note_marker(state.coordinator, name, where))

    def _expire(self, state: State, name: int) -> State:
        return with_coordinator(state, kafka.expire(state.coordinator, name))

    def _restart_coordinator(self, state: State, _: int) -> State:
        return with_coordinator(state, state.coordinator._replace(is_up=True))

    def _poll_committed(self, state: State, where: int) -> State:
        return self._poll(state, 0, where)

    def _poll_uncommitted(self, state: State, where: int) -> State:
        return self._poll(state, len(state.readers) - 1, where)

    def _poll(self, state: State, which: int, where: int) -> State:
        reader, partition = state.readers[which], state.partitions[where]
        start, end = (reader.positions[where], kafka.end_of(self.settings, which, partition))
        more = kafka.rows(self.settings, which, state.coordinator, partition, start)
        sight = state.sights[which]
        sight = (*sight[:where], (*sight[where], *more), *sight[where + 1 :])
        after = kafka.polled(self.settings, reader, where, end)
        return with_poll(state, which, after, sight)

    def _store_positions(self, state: State, which: int) -> State:
        reader = state.readers[which]
        return with_reader(state, which, reader._replace(stored=reader.positions))

    def _restart_reader(self, state: State, which: int) -> State:
        stored = state.readers[which].stored
        return with_reader(state, which, Reader(stored, is_up=True, positions=stored))

    def _crash_coordinator(self, state: State, _: int) -> State:
        return with_coordinator(spent(state, "crashes"), kafka.die(self._protocol, state.coordinator))

    def _crash_reader(self, state: State, which: int) -> State:
        return with_reader(spent(state, "crashes"), which, crash(state.readers[which]))

    def _write_plain(self, state: State, which: int) -> State:
        record = self.settings.records + which
        return appended(spent(state, "others"), self.settings.partition_of(which), Slot(record, PLAIN, 0))

    def _tick(self, state: State, _: int) -> State:
        state = with_coordinator(spent(state, "ticks"), kafka.grow_older(state.coordinator, self.settings.timeout))
        return state._replace(since=state.since + bool(self.settings.interval))

    rules: ClassVar[dict[str, Rule[State]]] = {
        "deliver": Rule(
            _deliver, "A request to commit reaches the coordinator, which decides and answers; the markers come later."
        ),
        "mark": Rule(_mark, "The coordinator writes the marker of the id t{name} into partition {where}."),
        "expire": Rule(
            _expire,
            "The transaction of the id t{which} is too old: the coordinator aborts it and fences its producer.",
            Event.TIMEOUT,
            on_cue=False,
        ),
        "restart_coordinator": Rule(_restart_coordinator, "The coordinator starts again from its log.", Event.RESTART),
        "poll_committed": Rule(
            _poll_committed, "The reader at read_committed polls partition {which}, up to the last stable offset."
        ),
        "poll_uncommitted": Rule(
            _poll_uncommitted, "The reader at read_uncommitted polls partition {which}, up to its end."
        ),
        "store_positions": Rule(_store_positions, "Reader {which} stores its positions."),
        "restart_reader": Rule(
            _restart_reader, "Reader {which} starts again from the positions that it has stored.", Event.RESTART
        ),
        "crash_coordinator": Rule(_crash_coordinator, "The coordinator dies; only its log is left.", Event.CRASH),
        "crash_reader": Rule(_crash_reader, "Reader {which} dies; only its stored positions are left.", Event.CRASH),
        "write_plain": Rule(_write_plain, "Somebody else writes a record without a transaction.", Event.OPERATOR),
        "tick": Rule(_tick, "A tick of time passes.", Event.DELAY),
    }


MAX_FAILURES = 2
"""The number of failures after which nobody restarts the job; two show that it would fail for ever."""

TEN = 10
"""The number of the action that writes a marker is `TEN` times the transactional id, plus the partition."""


def enabled(rules: Settings, state: State) -> list[Action]:
    """Return the actions that are possible in a state."""
    actions: list[Action] = []
    _job_actions(rules, state, actions)
    _coordinator_actions(rules, state, actions)
    _reader_actions(rules, state, actions)
    if any(state.budget):
        _wrong(rules, state, actions)
    return actions


def _job_actions(rules: Settings, state: State, actions: list[Action]) -> None:
    job = state.job
    if job.phase is Phase.DOWN:
        if state.failures < MAX_FAILURES:
            actions.append(Action("restart", job.incarnation + 1))
    elif job.phase is not Phase.ENDED:
        _steps(rules, state, actions)
    if state.zombie != NOBODY and _is_reachable(rules, state, state.zombie):
        actions.append(Action("zombie_write", state.zombie.offset))


def _steps(rules: Settings, state: State, actions: list[Action]) -> None:
    job, coordinator = state.job, state.coordinator
    if coordinator.is_up and work.may_fence(rules, job) and not kafka.is_busy(coordinator, job.to_fence[0]):
        actions.append(Action("fence", job.to_fence[0]))
    if work.can_begin(rules, coordinator, job):
        actions.append(Action("begin", work.next_name(rules, job)))
    if work.can_write(rules, job) and _is_reachable(rules, state, job):
        actions.append(Action("write", job.offset))
    if work.can_trigger(rules, job, state.since):
        actions.append(Action("pre_commit", job.number + 1))
    if job.triggered is not None:
        actions.append(Action("complete", job.triggered.number))
    if work.may_send(rules, job):
        actions += [Action("send_commit", place) for place, due in enumerate(job.due) if not due.is_sent]
    if work.is_finished(rules, job):
        actions.append(Action("finish"))


def _is_reachable(rules: Settings, state: State, job: Job) -> bool:
    assert job.current is not None
    name, where = job.current.name, rules.partition_of(job.offset)
    if job.added >> where & 1:
        return True
    return state.coordinator.is_up and not kafka.is_busy(state.coordinator, name)


def _coordinator_actions(rules: Settings, state: State, actions: list[Action]) -> None:
    coordinator = state.coordinator
    if not coordinator.is_up:
        actions.append(Action("restart_coordinator"))
        return
    for place, request in enumerate(state.requests):
        if not kafka.is_busy(coordinator, request.handle.name):
            actions.append(Action("deliver", place))
    actions += [Action("mark", name * TEN + where) for name, where in kafka.unmarked(coordinator)]
    for name, entry in enumerate(coordinator.log):
        if entry.stage is Stage.ONGOING and entry.age >= rules.timeout:
            actions.append(Action("expire", name))


def _reader_actions(rules: Settings, state: State, actions: list[Action]) -> None:
    for which, reader in enumerate(state.readers):
        if not reader.is_up:
            actions.append(Action("restart_reader", which))
            continue
        poll = "poll_committed" if rules.readers[which] == READ_COMMITTED else "poll_uncommitted"
        for where, position in enumerate(reader.positions):
            if position < kafka.end_of(rules, which, state.partitions[where]):
                actions.append(Action(poll, where))
        if reader.stored != reader.positions:
            actions.append(Action("store_positions", which))


def _wrong(rules: Settings, state: State, actions: list[Action]) -> None:
    job, budget = state.job, state.budget
    is_alive = job.phase in (Phase.RECOVERING, Phase.RUNNING)
    if budget.crashes:
        if is_alive:
            actions.append(Action("crash"))
        if state.coordinator.is_up:
            actions.append(Action("crash_coordinator"))
        actions += [Action("crash_reader", which) for which, reader in enumerate(state.readers) if reader.is_up]
    if budget.retries and is_alive:
        actions += [Action("resend", place) for place, due in enumerate(job.due) if due.is_sent]
    if budget.lapses and job.triggered is not None:
        actions.append(Action("lapse", job.triggered.number))
    if budget.rollbacks and job.phase is Phase.DOWN and job.checkpoints:
        actions.append(Action("roll_back", job.checkpoints[-1].number))
    if budget.zombies and work.can_write(rules, job):
        actions.append(Action("replace_job"))
    if budget.others:
        actions.append(Action("write_plain", rules.budget.others - budget.others))
    if budget.ticks and _may_tick(rules, state):
        actions.append(Action("tick"))


def _may_tick(rules: Settings, state: State) -> bool:
    """Return whether time may pass: a timeout or an interval is running, and the job has no step that is due now."""
    job = state.job
    is_counted = any(entry.stage is Stage.ONGOING and entry.age < rules.timeout for entry in state.coordinator.log)
    if not rules.interval or job.phase is Phase.ENDED:
        return is_counted
    if job.phase is Phase.DOWN:
        return is_counted and state.since < rules.downtime and state.failures < MAX_FAILURES
    if job.phase is Phase.RECOVERING or job.due or kafka.unmarked(state.coordinator):
        return False
    return state.since < (rules.checkpoint_timeout if job.triggered is not None else rules.interval)


class KafkaLog(Broker):
    """The simulator of a job that writes to Kafka in transactions, and of the readers of its records."""

    name, version, parameters = "kafka_log", 1, PARAMETERS

    def initial(self) -> State:
        """Return the initial state: empty partitions, and all processes running."""
        count, readers = self.settings.partitions, len(self.settings.readers)
        start = (0,) * count
        return State(
            Job(incarnation=1, phase=Phase.RUNNING),
            NOBODY,
            Coordinator(is_up=True),
            ((),) * count,
            (Reader(start, is_up=True, positions=start),) * readers,
            (((),) * count,) * readers,
            (),
            self.settings.budget,
        )

    def actions(self, state: State) -> Sequence[Action]:
        return enabled(self.settings, state)

    # The job.

    def _restart(self, state: State, _: int) -> State:
        return with_job(state, work.restart(self.settings, state.coordinator, state.job), 0)

    def _fence(self, state: State, name: int) -> State:
        was_open = state.coordinator.log[name].stage is Stage.ONGOING
        state = with_coordinator(state, kafka.initialise(state.coordinator, name))
        if was_open:
            return state
        return with_job(state, work.recovered(state.job._replace(to_fence=state.job.to_fence[1:])), 0)

    def _begin(self, state: State, name: int) -> State:
        entry = kafka.entry_of(state.coordinator, name)
        state = with_coordinator(state, kafka.initialise(state.coordinator, name))
        if entry is not None and entry.stage is Stage.ONGOING:
            return state
        handle = Handle(name, state.coordinator.log[name].epoch)
        return with_job(state, state.job._replace(current=handle, added=0), state.since)

    def _write(self, state: State, _: int) -> State:
        after = self._written(state, state.job)
        if after is None:
            return failed(state)
        return with_job(after, self._advanced(state.job), state.since)

    def _zombie_write(self, state: State, _: int) -> State:
        zombie = state.zombie
        after = self._written(state, zombie)
        advanced = self._advanced(zombie)
        is_done = after is None or advanced.offset == self.settings.records
        return (after or state)._replace(zombie=NOBODY if is_done else advanced)

    def _advanced(self, job: Job) -> Job:
        added = job.added | 1 << self.settings.partition_of(job.offset)
        return job._replace(offset=job.offset + 1, added=added)

    def _written(self, state: State, job: Job) -> State | None:
        """Return the state after the job has written its next record; None if Kafka refuses the write.

        The coordinator first adds the partition to the transaction if no record of the transaction is in it yet.
        """
        handle, where = job.current, self.settings.partition_of(job.offset)
        assert handle is not None
        open_here = open_epoch(state.partitions[where], handle.name)
        is_open = open_here == handle.epoch or (open_here >= 0 and not self._protocol.fences)
        if not is_open:
            if job.added >> where & 1 and self._protocol.fences:
                return None
            coordinator = kafka.add_partition(self._protocol, state.coordinator, handle, where)
            if coordinator is None:
                return None
            state = with_coordinator(state, coordinator)
        slot = Slot(job.offset, handle.name, handle.epoch, job.number + 1, job.incarnation)
        return appended(state, where, slot)

    def _pre_commit(self, state: State, _: int) -> State:
        return with_job(state, work.pre_commit(self.settings, state.job), 0)

    def _complete(self, state: State, _: int) -> State:
        return with_job(state, work.complete(state.job), state.since)

    def _send_commit(self, state: State, place: int) -> State:
        job = state.job
        request = Request(job.due[place].handle, job.incarnation)
        state = with_job(state, work.sent(job, place), state.since)
        return state._replace(requests=(*state.requests, request))

    def _finish(self, state: State, _: int) -> State:
        job = state.job
        return with_job(state, Job(job.checkpoints, job.incarnation, Phase.ENDED), 0)

    # What goes wrong, and time.

    def _crash(self, state: State, _: int) -> State:
        return with_job(spent(state, "crashes"), crash(state.job), 0)

    def _resend(self, state: State, place: int) -> State:
        return self._send_commit(spent(state, "retries"), place)

    def _lapse(self, state: State, _: int) -> State:
        return with_job(spent(state, "lapses"), state.job._replace(triggered=None), state.since)

    def _roll_back(self, state: State, _: int) -> State:
        job = state.job
        return with_job(spent(state, "rollbacks"), job._replace(checkpoints=job.checkpoints[:-1]), state.since)

    def _replace_job(self, state: State, _: int) -> State:
        zombie = state.job
        return with_job(spent(state, "zombies"), crash(zombie), 0)._replace(zombie=zombie)

    def properties(self) -> Sequence[Property[State]]:
        return claims(self.settings, self.judge)

    def text(self, state: State) -> str:
        return text(self.settings, state)

    def words(self, action: Action) -> Mapping[str, object]:
        """Return the values of a sentence's placeholders: the transactional id and the partition of a marker."""
        name, where = divmod(action.which, TEN)
        return {"name": name, "where": where}

    def sentence_in(self, state: State, action: Action) -> str:
        """Return the sentence for an action in this state; for a refused request or write, the sentence says why."""
        if action.name == "deliver":
            handle, _ = state.requests[action.which]
            coordinator, answer = kafka.end(self._protocol, state.coordinator, handle)
            ends = self.apply(state, action).failures > state.failures
            nothing_new = coordinator == state.coordinator
            comes = answered(was_refused=answer is kafka.Answer.REFUSED, nothing_new=nothing_new, ends=ends)
            return comes or self.sentence(action)
        if action.name in ("write", "zombie_write"):
            job = state.job if action.name == "write" else state.zombie
            if self._written(state, job) is None:
                return refused(action)
        return self.sentence(action)

    rules: ClassVar[dict[str, Rule[State]]] = {
        "restart": Rule(
            _restart, "Incarnation {which} of the job starts from the last completed checkpoint.", Event.RESTART
        ),
        "fence": Rule(
            _fence, "Recovery initialises the id t{which}, which aborts its open transaction and fences older epochs."
        ),
        "begin": Rule(
            _begin, "The producer initialises the id t{which} for its next transaction; nothing is open yet."
        ),
        "write": Rule(
            _write, "The job writes record {which}; the first record opens the transaction and starts its timeout."
        ),
        "pre_commit": Rule(
            _pre_commit,
            "At the barrier of checkpoint {which}, the job seals its transaction; the checkpoint gets its handle.",
        ),
        "complete": Rule(_complete, "Checkpoint {which} is complete: the decision."),
        "send_commit": Rule(_send_commit, "The job asks the coordinator to commit a transaction that is decided."),
        "finish": Rule(_finish, "All is committed or given up: the job ends."),
        "zombie_write": Rule(_zombie_write, "The job that was thought dead tries to write record {which}."),
        "crash": Rule(_crash, "The job dies; only its completed checkpoints are left.", Event.CRASH),
        "resend": Rule(
            _resend,
            "No answer has come, so the job asks for the commit again; the first request may still arrive.",
            Event.DUPLICATE,
        ),
        "lapse": Rule(
            _lapse,
            "Checkpoint {which} expires, and the job goes on; its transaction waits for the next checkpoint.",
            Event.TIMEOUT,
        ),
        "roll_back": Rule(
            _roll_back, "Somebody removes checkpoint {which}, so that an older one is restored.", Event.OPERATOR
        ),
        "replace_job": Rule(
            _replace_job,
            "The job hangs and is thought dead, so a new one will replace it; it wakes up later.",
            Event.CRASH,
        ),
    }
