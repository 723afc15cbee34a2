"""The properties (claims) to check in the simulator `barriers`, its texts, and the cost of checkpoints.

Only `labkit.core.judge` counts lost and duplicate rows. Each claim caches its result for a checkpoint or a task,
because a search meets most of them in very many states. A complete checkpoint must be a consistent cut; if it is not,
`Cuts` names a record that shows this. `cost` computes the cost of checkpoints from the states of a run: aligned
checkpoints make records wait, unaligned ones store them, and a task that does not copy its state in the background
stops until the copy is stored.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from operator import attrgetter
from typing import NamedTuple

from labkit.core.judge import Outcome
from labkit.core.records import History, Observation, Reading, Record
from labkit.sim.model import Mood, Property, possible, unless
from labkit.sim.models.barriers.operators import is_blocked
from labkit.sim.models.barriers.schedule import is_over
from labkit.sim.models.barriers.state import (
    BARRIER,
    ENDED,
    MISSING,
    Checkpoint,
    Copying,
    Mode,
    Operator,
    Settings,
    State,
    live,
    once,
    records_in,
    times,
    total,
)
from labkit.sim.verdicts import StateJudge
from labkit.sim.wording import listed, to_come


class Channel(NamedTuple):
    """The records of one channel between two tasks according to a checkpoint: sent, received, and in flight.

    `sent`, `received` and `flight` are multisets, each encoded as one number. The number's octal digit r, counted from
    the right and from 0, says how often the multiset contains record r.
    """

    sender: str
    receiver: str
    sent: int
    received: int
    flight: int


class Cuts:
    """Checks whether checkpoints are consistent cuts: global states in which every received record was also sent."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.is_sound = cache(self._is_sound)

    def _is_sound(self, checkpoint: Checkpoint) -> bool:
        reasons = (self.incomplete, self.orphan, self.unbalanced, self.inexact)
        return not any(reason(checkpoint) for reason in reasons)

    def channels(self, checkpoint: Checkpoint) -> Iterator[Channel]:
        """Yield one `Channel` for every channel; a task whose state is missing in the checkpoint counts as empty."""
        chosen, states = self.settings, [max(state, 0) for state in checkpoint.states]
        for number, (reader, into) in enumerate(chosen.channels):
            flight = total(checkpoint.flight[number]) if checkpoint.flight else 0
            if reader < chosen.counts:
                sent = chosen.share(into, reader, end=checkpoint.offsets[into])
                received = states[reader] & 7 * chosen.share(into, reader)
                yield Channel(f"source {into}", f"count {reader}", sent, received, flight)
            else:
                yield Channel(f"count {into}", "the sink", states[into], states[-1] & 7 * chosen.all_for(into), flight)

    def incomplete(self, checkpoint: Checkpoint) -> str:
        """Return a sentence that names a task whose offset or state is missing in a checkpoint, or an empty text."""
        parts = checkpoint.offsets + checkpoint.states
        if MISSING not in parts:
            return ""
        task = self.settings.task(parts.index(MISSING))
        return (
            f"checkpoint {checkpoint.id} is complete although {task} has not acknowledged it, so its part is missing."
        )

    def orphan(self, checkpoint: Checkpoint) -> str:
        """Return a sentence that names a record which a checkpoint contains as received but not as sent.

        The sentence is empty if there is no such record.
        """
        for sender, receiver, sent, received, _ in self.channels(checkpoint):
            for record in range(len(self.settings.words)):
                if times(received, record) > times(sent, record):
                    return (
                        f"in checkpoint {checkpoint.id} {receiver} has received {self.settings.named(record)}, "
                        f"which {sender} has not sent by then."
                    )
        return ""

    def unbalanced(self, checkpoint: Checkpoint) -> str:
        """Return a sentence that names a record which a channel has lost or doubled; empty if there is none."""
        for sender, receiver, sent, received, flight in self.channels(checkpoint):
            for record in range(len(self.settings.words)):
                surplus = times(received, record) + times(flight, record) - times(sent, record)
                if surplus:
                    complaint = "there once too often" if surplus > 0 else "neither received nor in flight"
                    return (
                        f"in checkpoint {checkpoint.id}, {self.settings.named(record)}, which {sender} has sent to "
                        f"{receiver}, is {complaint}."
                    )
        return ""

    def inexact(self, checkpoint: Checkpoint) -> str:
        """Return a sentence that names a record which a task has counted the wrong number of times; empty if none.

        The checkpoint gives an offset for each source. A task must have counted its records before these offsets once
        each, and no other record. Here, a record in flight to the task is regarded as counted.
        """
        for count in range(self.settings.counts):
            counts = sum(
                channel.flight for channel in self.channels(checkpoint) if channel.receiver == f"count {count}"
            ) + max(checkpoint.states[count], 0)
            before = [self.settings.share(source, count, end=end) for source, end in enumerate(checkpoint.offsets)]
            for record in range(len(self.settings.words)):
                counted = times(counts, record)
                if counted != times(sum(before), record):
                    source = record % self.settings.sources
                    how = {0: "missing", 1: "already counted"}.get(counted, f"counted {counted} times")
                    return (
                        f"after checkpoint {checkpoint.id}, source {source} reads on at offset "
                        f"{checkpoint.offsets[source]}, but {self.settings.named(record)} is {how} in count {count}."
                    )
        return ""


class Cost(NamedTuple):
    """The cost of checkpoints in a run: records that were delayed or stored, and steps in which tasks had to wait."""

    held: int
    """The number of records that had to wait in a blocked channel."""
    waited: int
    """The number of steps of the run after which a record was waiting in a blocked channel."""
    stored: int
    """The number of in-flight records that complete checkpoints contain."""
    stood: int
    """The number of steps of the run after which a task was stopped because its copy was not yet stored."""


def cost(settings: Settings, states: Sequence[State]) -> Cost:
    """Compute the cost of checkpoints in a run from all its states."""
    held = waited = stood = 0
    before: dict[int, int] = {}
    stored: dict[int, int] = {}
    for state in states:
        blocked = dict(_blocked(settings, state))
        held += sum(max(count - before.get(channel, 0), 0) for channel, count in blocked.items())
        waited += any(blocked.values())
        before = blocked
        stood += settings.copying is Copying.STANDING and any(
            checkpoint.taken & ~checkpoint.acked for checkpoint in state.coordinator.pending
        )
        stored |= {each.id: len(b"".join(each.flight)) for each in state.coordinator.completed}
    return Cost(held, waited, sum(stored.values()), stood)


def _blocked(settings: Settings, state: State) -> Iterator[tuple[int, int]]:
    if state.coordinator.running:
        for channel, (which, into) in enumerate(settings.channels):
            operator = state.operators[which]
            if is_blocked(settings.rules, operator, into):
                yield channel, sum(item < BARRIER for item in operator.inputs[into])


Reason = Callable[[State], str]
"""A function that says in a sentence how a state violates a property; an empty text if the state does not."""


class Ends(StateJudge[State]):
    """Judges the output rows that are visible in a state. Each row is the output of one input record."""

    def __init__(self, settings: Settings) -> None:
        super().__init__([Record(record, word, 1) for record, word in enumerate(settings.words)], attrgetter("visible"))
        self.settings = settings

    def history(self, state: State) -> History:
        rows = [Observation(*self.expected[record], 0, 1) for record in records_in(state.visible)]
        return History([*rows, Reading("end")])

    def lost(self, state: State) -> str:
        """Return a sentence that names an output row that is lost; an empty string if none is."""
        verdict = self.verdict(state)
        missing = verdict.properties["no_loss"] is Outcome.VIOLATED
        return f"the row of {self.settings.named(verdict.lost[0])} is lost." if missing else ""

    def doubled(self, state: State) -> str:
        """Return a sentence that names an output row that appears more than once; an empty string if there is none."""
        verdict = self.verdict(state)
        again = verdict.properties["no_duplicate"] is Outcome.VIOLATED
        return f"the row of {self.settings.named(verdict.duplicate[0])} has come out more than once." if again else ""


def _disorder(settings: Settings) -> Reason:
    @cache
    def out_of_order(operator: Operator) -> int:
        for into, queue in enumerate(operator.inputs):
            coming = [item if item == ENDED else item - BARRIER for item in queue if item >= BARRIER]
            barriers = [operator.at[into], *coming]
            if any(first >= then for first, then in zip(barriers, coming, strict=False)):
                return into
        return -1

    def why(state: State) -> str:
        for which, into in enumerate(map(out_of_order, state[2])):
            if into >= 0:
                task = settings.task(settings.sources + which)
                return f"barriers arrive at {task} out of order on its channel {into}."
        return ""

    return why


def _ahead(settings: Settings) -> Reason:
    def records_after(checkpoint: Checkpoint, which: int, into: int) -> int:
        if which < settings.counts:
            return 7 * settings.share(into, which, start=checkpoint.offsets[into])
        return 7 * settings.all_for(into) & ~checkpoint.states[into]

    @cache
    def early(checkpoint: Checkpoint, which: int, operator: Operator) -> int:
        _, at, done, counts, _ = operator
        arrived = [into for into, number in enumerate(at) if done < checkpoint.id <= number < ENDED]
        return next(
            (record for into in arrived for record in records_in(counts & records_after(checkpoint, which, into))), -1
        )

    @cache
    def waits(operator: Operator) -> bool:
        return max(live(operator.at), default=0) > operator.done

    def why(state: State) -> str:
        if not any(map(waits, state[2])):
            return ""
        for checkpoint in state.coordinator.pending:
            for which, operator in enumerate(state.operators):
                record = early(checkpoint, which, operator)
                if record >= 0:
                    return (
                        f"{settings.task(settings.sources + which)} has taken {settings.named(record)}, which follows "
                        f"barrier {checkpoint.id}, before it has copied its state."
                    )
        return ""

    return why


def _outdated(state: State) -> str:
    (_, completed, running, _, _), _, operators, _, _, _ = state
    if not completed or not running:
        return ""
    latest, sink = completed[-1].id, operators[-1]
    if len(completed) > 1 and completed[-2].id >= latest:
        return f"checkpoint {latest} was completed out of order."
    if sink.done < latest and min(sink.at) < ENDED:
        return f"checkpoint {latest} is complete, but the job was restarted from checkpoint {sink.done}."
    return ""


def _undecided(settings: Settings) -> Reason:
    def why(state: State) -> str:
        completed, visible = state.coordinator.completed, state.visible
        counts = completed[-1].states[-1] if completed else 0
        if not visible & ~counts:
            return ""
        for record in records_in(visible):
            shown, decided = times(visible, record), times(counts, record)
            if shown > decided:
                how = f"visible {shown} times" if decided else "visible"
                holds = {0: "does not contain it", 1: "contains it once"}.get(decided, f"contains it {decided} times")
                return f"the row of {settings.named(record)} is {how}, but the latest complete checkpoint {holds}."
        return ""

    return why


def _miscount(settings: Settings) -> Reason:
    def why(state: State) -> str:
        counts = sum(operator.state for operator in state.operators[:-1])
        for record in range(len(settings.words)):
            if times(counts, record) != 1:
                complaint = (
                    "is in no count" if not times(counts, record) else f"has been counted {times(counts, record)} times"
                )
                return f"{settings.named(record)} {complaint}: in the end {settings.totals(counts)}."
        return ""

    return why


def _has_barriers(state: State) -> bool:
    pending = state[0].pending
    return bool(pending) and state[2][-1].done < pending[-1].id


def claims(settings: Settings) -> Sequence[Property[State]]:
    """Return the properties of the simulator `barriers` that a search checks.

    Most of them concern checkpoints, barriers or the final output; some demand that a certain event can happen.
    """
    groups = (_of_checkpoints, _of_barriers, _possible, _of_the_end)
    return [claim for group in groups for claim in group(settings)]


def _of_checkpoints(settings: Settings) -> Iterator[Property[State]]:
    cuts = Cuts(settings)

    @cache
    def is_sound(completed: tuple[Checkpoint, ...]) -> bool:
        ids = [checkpoint.id for checkpoint in completed]
        return ids == sorted(set(ids)) and cuts.is_sound(completed[-1])

    def is_suspect(state: State) -> bool:
        # A cheap test: most states do not need the full check of their checkpoints.
        completed = state[0].completed
        return bool(completed) and (state[2][-1].done < completed[-1].id or not is_sound(completed))

    def latest(reason: Callable[[Checkpoint], str]) -> Reason:
        return lambda state: reason(state.coordinator.completed[-1])

    for name, sentence, reason in (
        ("complete", "A complete checkpoint contains the state of every task.", latest(cuts.incomplete)),
        (
            "sent_first",
            "A record that a complete checkpoint contains as received is also contained as sent.",
            latest(cuts.orphan),
        ),
        ("conserved", "In a complete checkpoint, each sent record is received or in flight.", latest(cuts.unbalanced)),
        ("exact", "A complete checkpoint counts each record before its offsets once, no other.", latest(cuts.inexact)),
        ("latest", "The ids of checkpoints grow, and a job restarts from the latest complete one.", _outdated),
    ):
        yield unless(name, Mood.ALWAYS, sentence, reason, is_suspect)
    if settings.transactional and (settings.keeps_cancelled or not settings.faults.cancels):
        sentence = "A row is visible only if a complete checkpoint contains it."
        yield unless("decided_first", Mood.ALWAYS, sentence, _undecided(settings), lambda state: state[3] > 0)


def _of_barriers(settings: Settings) -> Iterator[Property[State]]:
    sentence = "Barriers arrive on each channel in the order of their checkpoints, each once."
    yield unless("in_order", Mood.ALWAYS, sentence, _disorder(settings), _has_barriers)
    if settings.mode is Mode.ALIGNED:
        sentence = (
            "No task takes a record that follows a barrier before the same barrier has arrived on all its channels."
        )
        yield unless("aligned", Mood.ALWAYS, sentence, _ahead(settings), _has_barriers)


def _possible(settings: Settings) -> Iterator[Property[State]]:
    if settings.transactional or settings.checkpoints:
        yield possible("completes", "A checkpoint is complete.", lambda state: bool(state[0].completed))
    if crashes := settings.faults.crashes:
        everything, sentence = (
            sum(map(once, range(len(settings.words)))),
            "All rows are out although the job has crashed.",
        )
        yield possible("recovers", sentence, lambda state: state[3] == everything and state[5].crashes < crashes)


def _of_the_end(settings: Settings) -> Iterator[Property[State]]:
    ends, over = Ends(settings), partial(is_over, settings)
    yield Property("ends", Mood.EVENTUALLY, "The job ends.", over, partial(text, settings))
    for name, sentence, reason in (
        ("counted_once", "In the end every record is counted once.", _miscount(settings)),
        ("no_loss", "In the end no row is lost.", ends.lost),
        ("no_duplicate", "In the end no row has come out twice.", ends.doubled),
    ):
        yield unless(name, Mood.EVENTUALLY, sentence, reason)


def text(settings: Settings, state: State) -> str:
    """Return a state as one line of text: coordinator, tasks with channels, visible rows, and faults still allowed."""
    coordinator, sources, operators, visible, prepared, faults = state
    parts = [f"{coordinator.triggered} triggered"]
    parts += [f"complete {_checkpoint(settings, checkpoint)}" for checkpoint in coordinator.completed]
    parts += [f"pending {_checkpoint(settings, checkpoint)}" for checkpoint in coordinator.pending]
    if coordinator.pause:
        parts.append(f"no trigger for {coordinator.pause} steps")
    if coordinator.running:
        parts += [
            f"source {which} at offset {position} after barrier {epoch}{', ended' * ended}"
            for which, (position, epoch, ended) in enumerate(sources)
        ]
        parts += [_operator(settings, which, operator) for which, operator in enumerate(operators)]
    else:
        parts.append("job down")
    parts.append(f"visible {_counts_text(settings, visible)}")
    parts += [f"sealed for {number} {_counts_text(settings, rows)}" for number, rows in prepared]
    left = to_come(faults._fields, faults)
    return f"{'; '.join(parts)}; to come {listed(left)}."


def _checkpoint(settings: Settings, checkpoint: Checkpoint) -> str:
    number, taken, acked, offsets, states, flight = checkpoint
    parts = [f"offset {which}:{'?' if offset == MISSING else offset}" for which, offset in enumerate(offsets)]
    parts += [
        f"{settings.task(which)} {'?' if state == MISSING else _counts_text(settings, state)}"
        for which, state in enumerate(states, settings.sources)
    ]
    parts += [f"in flight in channel {channel} {_queue(queue)}" for channel, queue in enumerate(flight) if queue]
    everyone = (1 << settings.tasks) - 1
    if taken != everyone:
        parts.append(f"parts of {_tasks(settings, taken)}")
    if acked != everyone:
        parts.append(f"acknowledged by {_tasks(settings, acked)}")
    return f"{number} ({', '.join(parts)})"


def _tasks(settings: Settings, bits: int) -> str:
    return " and ".join(settings.task(which) for which in range(settings.tasks) if bits >> which & 1) or "nobody"


def _operator(settings: Settings, which: int, operator: Operator) -> str:
    inputs, at, done, state, sealed = operator
    sentence = f"{settings.task(settings.sources + which)} {_counts_text(settings, state)}, copied for {done}"
    for into, (barrier, queue) in enumerate(zip(at, inputs, strict=True)):
        sender = settings.task(into if which < settings.counts else settings.sources + into)
        sentence += f", from {sender} {'the end' if barrier == ENDED else f'barrier {barrier}'} then {_queue(queue)}"
    return sentence + (f", sealed {_counts_text(settings, sealed)}" if which == settings.counts else "")


def _counts_text(settings: Settings, counts: int) -> str:
    return f"{settings.totals(counts)} [{listed(map(str, records_in(counts)))}]"


def _queue(queue: bytes) -> str:
    return listed("END" if item == ENDED else f"B{item - BARRIER}" if item >= BARRIER else str(item) for item in queue)
