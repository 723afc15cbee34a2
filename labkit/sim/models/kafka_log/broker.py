"""What Kafka and its readers do: requests and markers, polls, their deaths and restarts, and the ticks of time.

This module must not know what a job does by itself.
"""

from typing import ClassVar

from labkit.sim.model import crash
from labkit.sim.models.kafka_log import coordinator as kafka
from labkit.sim.models.kafka_log import job as work
from labkit.sim.models.kafka_log import readers as reading
from labkit.sim.models.kafka_log.enabled import TEN
from labkit.sim.models.kafka_log.parts import ABORT, COMMIT, PLAIN, Phase, Slot, Stage, State
from labkit.sim.models.kafka_log.settings import settings
from labkit.sim.models.kafka_log.states import (
    appended,
    failed,
    spent,
    with_coordinator,
    with_job,
    with_poll,
    with_reader,
)
from labkit.sim.parameters import Values
from labkit.sim.rules import Event, Rule, RuleModel


class Broker(RuleModel[State]):
    """The coordinator, the partitions and the readers of one configuration."""

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        self.settings = settings(values)
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
        start, end = (reader.positions[where], reading.end_of(self.settings, which, partition))
        more = reading.rows(self.settings, which, state.coordinator, partition, start)
        sight = reading.extend_sight(state.sights[which], where, more)
        after = reading.polled(self.settings, reader, where, end)
        return with_poll(state, which, after, sight)

    def _store_positions(self, state: State, which: int) -> State:
        reader = state.readers[which]
        return with_reader(state, which, reader._replace(stored=reader.positions))

    def _restart_reader(self, state: State, which: int) -> State:
        return with_reader(state, which, reading.restarted(state.readers[which]))

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
        "mark": Rule(_mark, "The marker of the id t{name} goes into partition {where}."),
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
