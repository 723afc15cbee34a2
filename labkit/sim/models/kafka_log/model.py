"""Kafka's log as a model: what each action changes. This module must not draw anything or count what readers saw."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from labkit.sim.model import Action, Property, crash
from labkit.sim.models.kafka_log import coordinator as kafka
from labkit.sim.models.kafka_log import job as work
from labkit.sim.models.kafka_log import readers as reading
from labkit.sim.models.kafka_log.claims import claims
from labkit.sim.models.kafka_log.enabled import TEN, enabled
from labkit.sim.models.kafka_log.log import open_epoch
from labkit.sim.models.kafka_log.narration import answered, refused, text
from labkit.sim.models.kafka_log.parts import (
    ABORT,
    COMMIT,
    NOBODY,
    PLAIN,
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
from labkit.sim.models.kafka_log.settings import PARAMETERS, VERSION, settings
from labkit.sim.parameters import Values
from labkit.sim.rules import Event, Rule, RuleModel, one_less


class KafkaLog(RuleModel[State]):
    """One configuration of the log."""

    name, version, parameters = "kafka_log", VERSION, PARAMETERS

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        self.settings = settings(values)
        broken = self.settings.broken
        self._protocol = kafka.Rules(
            self.settings.bumps_epoch,
            broken != "no_fencing",
            broken == "forget_decision",
        )

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
            open_here >= 0 and not self._protocol.fences
        )
        if not is_open:
            if job.added >> where & 1 and self._protocol.fences:
                return None
            coordinator = kafka.add_partition(
                self._protocol, state.coordinator, handle, where
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
        coordinator, answer = kafka.end(self._protocol, state.coordinator, handle)
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
            _spent(state, "crashes"), kafka.die(self._protocol, state.coordinator)
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

    def words(self, action: Action) -> Mapping[str, object]:
        """The id and the partition of a marker, which its action names in one number."""
        name, where = divmod(action.which, TEN)
        return {"name": name, "where": where}

    def told(self, state: State, action: Action) -> str:
        """What an action does, and why not what it set out to do."""
        if action.name == "deliver":
            handle, _ = state.requests[action.which]
            coordinator, answer = kafka.end(self._protocol, state.coordinator, handle)
            ends = self.apply(state, action).failures > state.failures
            nothing_new = coordinator == state.coordinator
            comes = answered(
                was_refused=answer is kafka.Answer.REFUSED,
                nothing_new=nothing_new,
                ends=ends,
            )
            return comes or self.sentence(action)
        if action.name in ("write", "zombie_write"):
            job = state.job if action.name == "write" else state.zombie
            if self._written(state, job) is None:
                return refused(action)
        return self.sentence(action)

    rules: ClassVar[dict[str, Rule[State]]] = {
        "restart": Rule(
            _restart,
            "Incarnation {which} of the job starts from the last completed checkpoint.",
            Event.RESTART,
        ),
        "fence": Rule(
            _fence,
            "Recovery initialises the id t{which}: what is open under it is aborted, and older epochs are fenced.",
        ),
        "begin": Rule(
            _begin,
            "The producer initialises the id t{which} for its next transaction; nothing is open yet.",
        ),
        "write": Rule(
            _write,
            "Record {which} goes into the job's transaction; the first one opens it, and its clock starts.",
        ),
        "pre_commit": Rule(
            _pre_commit,
            "The barrier of checkpoint {which}: the transaction is sealed, and the checkpoint takes its handle.",
        ),
        "complete": Rule(_complete, "Checkpoint {which} is complete: the decision."),
        "send_commit": Rule(
            _send_commit, "The job asks the coordinator for a commit that is decided."
        ),
        "finish": Rule(_finish, "All is committed or given up: the job ends."),
        "zombie_write": Rule(
            _zombie_write,
            "The job that was thought dead tries to write record {which}.",
        ),
        "deliver": Rule(
            _deliver,
            "A request to commit reaches the coordinator, which decides and answers; the markers come later.",
        ),
        "mark": Rule(
            _mark, "The marker of the id t{name} goes into partition {where}."
        ),
        "expire": Rule(
            _expire,
            "The transaction of the id t{which} is too old: the coordinator aborts it and fences its producer.",
            Event.TIMEOUT,
            on_cue=False,
        ),
        "restart_coordinator": Rule(
            _restart_coordinator,
            "The coordinator starts again from its log.",
            Event.RESTART,
        ),
        "poll_committed": Rule(
            _poll_committed,
            "The reader at read_committed polls partition {which}, up to the last stable offset.",
        ),
        "poll_uncommitted": Rule(
            _poll_uncommitted,
            "The reader at read_uncommitted polls partition {which}, up to its end.",
        ),
        "store_positions": Rule(
            _store_positions, "Reader {which} stores its positions."
        ),
        "restart_reader": Rule(
            _restart_reader,
            "Reader {which} starts again from the positions that it has stored.",
            Event.RESTART,
        ),
        "crash": Rule(
            _crash,
            "The job dies; only its completed checkpoints are left.",
            Event.CRASH,
        ),
        "crash_coordinator": Rule(
            _crash_coordinator,
            "The coordinator dies; only its log is left.",
            Event.CRASH,
        ),
        "crash_reader": Rule(
            _crash_reader,
            "Reader {which} dies; only its stored positions are left.",
            Event.CRASH,
        ),
        "resend": Rule(
            _resend,
            "No answer has come, so the job asks for the commit again; the first request may still arrive.",
            Event.DUPLICATE,
        ),
        "lapse": Rule(
            _lapse,
            "Checkpoint {which} expires, and the job lives on; its transaction waits for the next one.",
            Event.TIMEOUT,
        ),
        "roll_back": Rule(
            _roll_back,
            "Somebody removes checkpoint {which}, so that an older one is restored.",
            Event.OPERATOR,
        ),
        "replace_job": Rule(
            _replace_job,
            "The job hangs, is thought dead, and will be replaced; it will wake up.",
            Event.CRASH,
        ),
        "write_plain": Rule(
            _write_plain,
            "Somebody else writes a record without a transaction.",
            Event.OPERATOR,
        ),
        "tick": Rule(_tick, "A tick of time passes.", Event.DELAY),
    }


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


def _spent(state: State, fault: str) -> State:
    return state._replace(budget=one_less(state.budget, fault))


def _fail(state: State) -> State:
    """The job fails by itself, without its crash being one of those that were budgeted."""
    return _with_job(state, crash(state.job), 0)._replace(failures=state.failures + 1)
