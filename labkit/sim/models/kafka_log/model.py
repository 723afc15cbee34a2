"""Kafka's log as a model: what each action changes. This module must not draw anything or count what readers saw."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from labkit.sim.model import Action, Property, crash
from labkit.sim.models.kafka_log import coordinator as kafka
from labkit.sim.models.kafka_log import job as work
from labkit.sim.models.kafka_log.broker import Broker
from labkit.sim.models.kafka_log.claims import claims
from labkit.sim.models.kafka_log.enabled import TEN, enabled
from labkit.sim.models.kafka_log.log import open_epoch
from labkit.sim.models.kafka_log.narration import answered, refused, text
from labkit.sim.models.kafka_log.parts import (
    NOBODY,
    Coordinator,
    Handle,
    Job,
    Phase,
    Reader,
    Request,
    Slot,
    Stage,
    State,
)
from labkit.sim.models.kafka_log.settings import PARAMETERS, VERSION
from labkit.sim.models.kafka_log.states import appended, failed, spent, with_coordinator, with_job
from labkit.sim.rules import Event, Rule


class KafkaLog(Broker):
    """One configuration of the log."""

    name, version, parameters = "kafka_log", VERSION, PARAMETERS

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
        return with_job(state, work.restart(self.settings, state.coordinator, state.job), 0)

    def _fence(self, state: State, name: int) -> State:
        was_open = state.coordinator.log[name].stage is Stage.ONGOING
        state = with_coordinator(state, kafka.initialise(state.coordinator, name))
        return state if was_open else with_job(state, work.fenced(state.job), 0)

    def _begin(self, state: State, name: int) -> State:
        entry = kafka.entry_of(state.coordinator, name)
        state = with_coordinator(state, kafka.initialise(state.coordinator, name))
        if entry is not None and entry.stage is Stage.ONGOING:
            return state
        handle = Handle(name, state.coordinator.log[name].epoch)
        return with_job(state, work.begin(state.job, handle), state.since)

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
        """The state with the next record of this job in its partition. None: the write is refused.

        A partition takes a record only of a transaction that is open there, or that the coordinator has just opened.
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

    # Kafka.

    # Readers.

    # What goes wrong, and time.

    def _crash(self, state: State, _: int) -> State:
        return with_job(spent(state, "crashes"), crash(state.job), 0)

    def _resend(self, state: State, place: int) -> State:
        return self._send_commit(spent(state, "retries"), place)

    def _lapse(self, state: State, _: int) -> State:
        return with_job(spent(state, "lapses"), work.lapse(state.job), state.since)

    def _roll_back(self, state: State, _: int) -> State:
        return with_job(spent(state, "rollbacks"), work.roll_back(state.job), state.since)

    def _replace_job(self, state: State, _: int) -> State:
        zombie = state.job
        return with_job(spent(state, "zombies"), crash(zombie), 0)._replace(zombie=zombie)

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

    def sentence_in(self, state: State, action: Action) -> str:
        """What an action does, and why not what it set out to do."""
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
            _fence,
            "Recovery initialises the id t{which}: what is open under it is aborted, and older epochs are fenced.",
        ),
        "begin": Rule(
            _begin, "The producer initialises the id t{which} for its next transaction; nothing is open yet."
        ),
        "write": Rule(
            _write, "Record {which} goes into the job's transaction; the first one opens it, and its clock starts."
        ),
        "pre_commit": Rule(
            _pre_commit,
            "The barrier of checkpoint {which}: the transaction is sealed, and the checkpoint takes its handle.",
        ),
        "complete": Rule(_complete, "Checkpoint {which} is complete: the decision."),
        "send_commit": Rule(_send_commit, "The job asks the coordinator for a commit that is decided."),
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
            "Checkpoint {which} expires, and the job lives on; its transaction waits for the next one.",
            Event.TIMEOUT,
        ),
        "roll_back": Rule(
            _roll_back, "Somebody removes checkpoint {which}, so that an older one is restored.", Event.OPERATOR
        ),
        "replace_job": Rule(
            _replace_job, "The job hangs, is thought dead, and will be replaced; it will wake up.", Event.CRASH
        ),
    }
