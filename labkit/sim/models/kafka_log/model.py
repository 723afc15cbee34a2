"""Kafka's log as a model: what each action changes. This module must not draw anything or count what readers saw."""

from collections.abc import Callable, Sequence

from labkit.sim.model import Action, Model, Property, crash
from labkit.sim.models.kafka_log import coordinator as kafka
from labkit.sim.models.kafka_log import job as work
from labkit.sim.models.kafka_log import readers as reading
from labkit.sim.models.kafka_log.claims import claims
from labkit.sim.models.kafka_log.enabled import TEN, enabled
from labkit.sim.models.kafka_log.log import open_epoch
from labkit.sim.models.kafka_log.narration import answered, refused, sentence, text
from labkit.sim.models.kafka_log.parts import (
    ABORT,
    COMMIT,
    NOBODY,
    PLAIN,
    Budget,
    Coordinator,
    Handle,
    Job,
    Partition,
    Phase,
    Reader,
    Request,
    Slot,
    Stage,
    State,
)
from labkit.sim.models.kafka_log.settings import VERSION, settings
from labkit.sim.parameters import Values


class KafkaLog(Model[State]):
    """One configuration of the log."""

    name, version = "kafka_log", VERSION

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        self.settings = settings(values)
        broken = self.settings.broken
        self._rules = kafka.Rules(
            self.settings.bumps_epoch,
            broken != "no_fencing",
            broken == "forget_decision",
        )
        self._acts: dict[str, Callable[[State, int], State]] = {
            name: getattr(self, f"_{name}") for name in ACTIONS
        }

    def initial(self) -> State:
        """Empty partitions; everybody is up, and the job is about to start."""
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
        """The job, a job that was thought dead, requests, the coordinator, readers; then what goes wrong, and time."""
        return enabled(self.settings, state)

    def apply(self, state: State, action: Action) -> State:
        """One step of somebody, or one thing that goes wrong."""
        return self._acts[action.name](state, action.which)

    # The job.

    def _restart(self, state: State, _: int) -> State:
        return _with_job(
            state, work.restart(self.settings, state.coordinator, state.job), 0
        )

    def _fence(self, state: State, name: int) -> State:
        was_open = state.coordinator.log[name].stage is Stage.ONGOING
        state = _with_coordinator(state, kafka.initialise(state.coordinator, name))
        return state if was_open else _with_job(state, work.fenced(state.job), 0)

    def _begin(self, state: State, name: int) -> State:
        entry = kafka.known(state.coordinator, name)
        state = _with_coordinator(state, kafka.initialise(state.coordinator, name))
        if entry is not None and entry.stage is Stage.ONGOING:
            return state
        handle = Handle(name, state.coordinator.log[name].epoch)
        return _with_job(state, work.begin(state.job, handle), state.since)

    def _write(self, state: State, _: int) -> State:
        after = self._written(state, state.job)
        if after is None:
            return _fail(state)
        return _with_job(after, self._advanced(state.job), state.since)

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
        """The state with the next record of this job in its partition. None: the write is refused.

        A partition takes a record only of a transaction that is open there, or that the coordinator has just opened.
        """
        handle, where = job.current, self.settings.partition_of(job.offset)
        assert handle is not None
        open_here = open_epoch(state.partitions[where], handle.name)
        is_open = open_here == handle.epoch or (
            open_here >= 0 and not self._rules.fences
        )
        if not is_open:
            if job.added >> where & 1 and self._rules.fences:
                return None
            coordinator = kafka.add_partition(
                self._rules, state.coordinator, handle, where
            )
            if coordinator is None:
                return None
            state = _with_coordinator(state, coordinator)
        slot = Slot(
            job.offset, handle.name, handle.epoch, job.number + 1, job.incarnation
        )
        return _appended(state, where, slot)

    def _pre_commit(self, state: State, _: int) -> State:
        return _with_job(state, work.pre_commit(self.settings, state.job), 0)

    def _complete(self, state: State, _: int) -> State:
        return _with_job(state, work.complete(state.job), state.since)

    def _send_commit(self, state: State, place: int) -> State:
        job = state.job
        request = Request(job.due[place].handle, job.incarnation)
        state = _with_job(state, work.sent(job, place), state.since)
        return state._replace(requests=(*state.requests, request))

    def _finish(self, state: State, _: int) -> State:
        job = state.job
        return _with_job(state, Job(job.checkpoints, job.incarnation, Phase.ENDED), 0)

    # Kafka.

    def _deliver(self, state: State, place: int) -> State:
        handle, attempt = state.requests[place]
        state = state._replace(
            requests=(*state.requests[:place], *state.requests[place + 1 :])
        )
        coordinator, answer = kafka.end(self._rules, state.coordinator, handle)
        state = _with_coordinator(state, coordinator)
        job = state.job
        if attempt != job.incarnation or job.phase not in (
            Phase.RECOVERING,
            Phase.RUNNING,
        ):
            return state
        told = work.answered(self.settings, job, handle, answer)
        return _fail(state) if told is None else _with_job(state, told, state.since)

    def _mark(self, state: State, which: int) -> State:
        name, where = divmod(which, TEN)
        entry = state.coordinator.log[name]
        kind = COMMIT if entry.stage is Stage.PREPARE_COMMIT else ABORT
        state = _appended(state, where, Slot(kind, name, entry.epoch))
        return _with_coordinator(
            state, kafka.note_marker(state.coordinator, name, where)
        )

    def _expire(self, state: State, name: int) -> State:
        return _with_coordinator(state, kafka.expire(state.coordinator, name))

    def _restart_coordinator(self, state: State, _: int) -> State:
        return _with_coordinator(state, state.coordinator._replace(is_up=True))

    # Readers.

    def _poll_committed(self, state: State, where: int) -> State:
        return self._poll(state, 0, where)

    def _poll_uncommitted(self, state: State, where: int) -> State:
        return self._poll(state, len(state.readers) - 1, where)

    def _poll(self, state: State, which: int, where: int) -> State:
        (
            job,
            zombie,
            coordinator,
            partitions,
            readers,
            sights,
            requests,
            budget,
            since,
            failures,
        ) = state
        reader, partition = readers[which], partitions[where]
        more = reading.rows(
            self.settings, which, coordinator, partition, reader.positions[where]
        )
        reader = reading.polled(
            self.settings,
            reader,
            where,
            reading.end_of(self.settings, which, partition),
        )
        readers = (*readers[:which], reader, *readers[which + 1 :])
        sights = (
            *sights[:which],
            reading.seen_more(sights[which], where, more),
            *sights[which + 1 :],
        )
        return State(
            job,
            zombie,
            coordinator,
            partitions,
            readers,
            sights,
            requests,
            budget,
            since,
            failures,
        )

    def _store_positions(self, state: State, which: int) -> State:
        reader = state.readers[which]
        return _with_reader(state, which, reader._replace(stored=reader.positions))

    def _restart_reader(self, state: State, which: int) -> State:
        return _with_reader(state, which, reading.restarted(state.readers[which]))

    # What goes wrong, and time.

    def _crash(self, state: State, _: int) -> State:
        return _with_job(_spent(state, "crashes"), crash(state.job), 0)

    def _crash_coordinator(self, state: State, _: int) -> State:
        return _with_coordinator(
            _spent(state, "crashes"), kafka.die(self._rules, state.coordinator)
        )

    def _crash_reader(self, state: State, which: int) -> State:
        return _with_reader(
            _spent(state, "crashes"), which, crash(state.readers[which])
        )

    def _resend(self, state: State, place: int) -> State:
        return self._send_commit(_spent(state, "retries"), place)

    def _lapse(self, state: State, _: int) -> State:
        return _with_job(_spent(state, "lapses"), work.lapse(state.job), state.since)

    def _roll_back(self, state: State, _: int) -> State:
        return _with_job(
            _spent(state, "rollbacks"), work.roll_back(state.job), state.since
        )

    def _replace_job(self, state: State, _: int) -> State:
        zombie = state.job
        return _with_job(_spent(state, "zombies"), crash(zombie), 0)._replace(
            zombie=zombie
        )

    def _write_plain(self, state: State, which: int) -> State:
        record = self.settings.records + which
        return _appended(
            _spent(state, "others"),
            self.settings.partition_of(which),
            Slot(record, PLAIN, 0),
        )

    def _tick(self, state: State, _: int) -> State:
        state = _with_coordinator(
            _spent(state, "ticks"),
            kafka.grow_older(state.coordinator, self.settings.timeout),
        )
        return state._replace(since=state.since + bool(self.settings.interval))

    def properties(self) -> Sequence[Property[State]]:
        """What the judge says of what readers saw, and rules of the protocol."""
        return claims(self.settings, self.text)

    def text(self, state: State) -> str:
        """Job, coordinator, partitions, readers."""
        return text(self.settings, state)

    def sentence(self, action: Action) -> str:
        """What an action sets out to do."""
        return sentence(self.settings, action)

    def told(self, state: State, action: Action) -> str:
        """What an action does, and why not what it set out to do."""
        if action.name == "deliver":
            handle, _ = state.requests[action.which]
            coordinator, answer = kafka.end(self._rules, state.coordinator, handle)
            ends = self.apply(state, action).failures > state.failures
            nothing_new = coordinator == state.coordinator
            return answered(
                was_refused=answer is kafka.Answer.REFUSED,
                nothing_new=nothing_new,
                ends=ends,
            )
        if action.name in ("write", "zombie_write"):
            job = state.job if action.name == "write" else state.zombie
            if self._written(state, job) is None:
                return refused(action)
        return self.sentence(action)


ACTIONS = (
    *(
        "restart",
        "fence",
        "begin",
        "write",
        "pre_commit",
        "complete",
        "send_commit",
        "finish",
        "zombie_write",
    ),
    *("deliver", "mark", "expire", "restart_coordinator"),
    *("poll_committed", "poll_uncommitted", "store_positions", "restart_reader"),
    *(
        "crash",
        "crash_coordinator",
        "crash_reader",
        "resend",
        "lapse",
        "roll_back",
        "replace_job",
        "write_plain",
        "tick",
    ),
)


# Built by position: `_replace` would take three times as long, and a state is built for every step of a search.


def _with_job(state: State, job: Job, since: int) -> State:
    (
        _,
        zombie,
        coordinator,
        partitions,
        readers,
        sights,
        requests,
        budget,
        _,
        failures,
    ) = state
    return State(
        job,
        zombie,
        coordinator,
        partitions,
        readers,
        sights,
        requests,
        budget,
        since,
        failures,
    )


def _with_coordinator(state: State, coordinator: Coordinator) -> State:
    job, zombie, _, partitions, readers, sights, requests, budget, since, failures = (
        state
    )
    return State(
        job,
        zombie,
        coordinator,
        partitions,
        readers,
        sights,
        requests,
        budget,
        since,
        failures,
    )


def _with_reader(state: State, which: int, reader: Reader) -> State:
    (
        job,
        zombie,
        coordinator,
        partitions,
        at,
        sights,
        requests,
        budget,
        since,
        failures,
    ) = state
    readers = (*at[:which], reader, *at[which + 1 :])
    return State(
        job,
        zombie,
        coordinator,
        partitions,
        readers,
        sights,
        requests,
        budget,
        since,
        failures,
    )


def _appended(state: State, where: int, slot: Slot) -> State:
    job, zombie, coordinator, at, readers, sights, requests, budget, since, failures = (
        state
    )
    partition: Partition = (*at[where], slot)
    partitions = (*at[:where], partition, *at[where + 1 :])
    return State(
        job,
        zombie,
        coordinator,
        partitions,
        readers,
        sights,
        requests,
        budget,
        since,
        failures,
    )


def _spent(state: State, what: str) -> State:
    budget: Budget = state.budget
    return state._replace(budget=budget._replace(**{what: getattr(budget, what) - 1}))


def _fail(state: State) -> State:
    """The job fails by itself, without its crash being one of those that were budgeted."""
    return _with_job(state, crash(state.job), 0)._replace(failures=state.failures + 1)
