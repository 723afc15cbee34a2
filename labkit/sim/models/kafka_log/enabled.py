"""Who may act when, in a fixed order: the job, requests, the coordinator, readers; then what goes wrong, and time.

Time is counted in ticks and never measured: a tick is an action, and the timeout of a transaction counts those after
its first write. With an interval of 0 anything may take any time; with another one the job is punctual, which means
that no tick passes while a step of its own is due. This module must not change a state.
"""

from labkit.sim.model import Action
from labkit.sim.models.kafka_log import coordinator as kafka
from labkit.sim.models.kafka_log import job as work
from labkit.sim.models.kafka_log import readers as reading
from labkit.sim.models.kafka_log.parts import NOBODY, Job, Phase, Stage, State
from labkit.sim.models.kafka_log.settings import READ_COMMITTED, Settings

MAX_FAILURES = 2
"""Failures of the job after which nobody starts it again: enough to see that it would go on for ever."""

TEN = 10
"""A marker's action names id and partition in one number: ten times the id, plus the partition."""


def enabled(rules: Settings, state: State) -> list[Action]:
    """The actions that can be taken."""
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
    """What a job that is alive may do next."""
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
    """Whether a write gets an answer: a partition that is new to the transaction needs the coordinator first."""
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
            if position < reading.end_of(rules, which, state.partitions[where]):
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
    """Whether time may pass. It does so only where somebody's clock runs, and past nothing that is due."""
    job = state.job
    is_counted = any(entry.stage is Stage.ONGOING and entry.age < rules.timeout for entry in state.coordinator.log)
    if not rules.interval or job.phase is Phase.ENDED:
        return is_counted
    if job.phase is Phase.DOWN:
        return is_counted and state.since < rules.downtime and state.failures < MAX_FAILURES
    if job.phase is Phase.RECOVERING or job.due or kafka.unmarked(state.coordinator):
        return False
    return state.since < (rules.checkpoint_timeout if job.triggered is not None else rules.interval)
