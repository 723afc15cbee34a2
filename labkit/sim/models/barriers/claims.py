"""What must hold of checkpoints, of barriers on their way, and in the end: protocol invariants, the judge's verdict.

Rows that came out are judged by `labkit.core.judge`; this module must not count lost or duplicate rows. What a
claim looks at is looked at once: most checkpoints and most tasks are met in very many states.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial

from labkit.core.judge import Outcome, Verdict, judge
from labkit.core.records import History, Observation, Reading, Record
from labkit.sim.model import Mood, Property
from labkit.sim.models.barriers.cuts import Cuts
from labkit.sim.models.barriers.parts import BARRIER, ENDED, Checkpoint, Operator, State, live, once, records_in, times
from labkit.sim.models.barriers.schedule import is_over
from labkit.sim.models.barriers.settings import Mode, Settings

Reason = Callable[[State], str]
"""Why a state breaks a claim, in a sentence; empty where it does not."""


class Ends:
    """The judge's verdict on rows: one row says that its record has come out. The same rows are judged once."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.expected = [Record(record, word, 1) for record, word in enumerate(settings.words)]
        self.verdict = cache(self._verdict)

    def _verdict(self, visible: int) -> Verdict:
        rows = [Observation(*self.expected[record], 0, 1) for record in records_in(visible)]
        return judge(self.expected, History([*rows, Reading("end")]))

    def lost(self, state: State) -> str:
        """A row that is missing."""
        verdict = self.verdict(state.visible)
        missing = verdict.properties["no_loss"] is Outcome.VIOLATED
        return f"the row of {self.settings.named(verdict.lost[0])} is lost." if missing else ""

    def doubled(self, state: State) -> str:
        """A row that has come out again."""
        verdict = self.verdict(state.visible)
        again = verdict.properties["no_duplicate"] is Outcome.VIOLATED
        return f"the row of {self.settings.named(verdict.duplicate[0])} has come out more than once." if again else ""


def _disorder(settings: Settings) -> Reason:
    """I4: barriers of a channel come in the order of their ids, each once."""

    @cache
    def out_of_order(operator: Operator) -> int:
        for into, queue in enumerate(operator.inputs):
            coming = [item if item == ENDED else item - BARRIER for item in queue if item >= BARRIER]
            came = [operator.at[into], *coming]
            if any(first >= then for first, then in zip(came, coming, strict=False)):
                return into
        return -1

    def why(state: State) -> str:
        for which, into in enumerate(map(out_of_order, state[2])):
            if into >= 0:
                task = settings.task(settings.sources + which)
                return f"barriers come to {task} out of order by its channel {into}."
        return ""

    return why


def _ahead(settings: Settings) -> Reason:
    """I5: no record from behind a barrier is taken before the task has copied its state."""

    def behind(checkpoint: Checkpoint, which: int, into: int) -> int:
        if which < settings.counts:
            return 7 * settings.share(into, which, start=checkpoint.offsets[into])
        return 7 * settings.all_for(into) & ~checkpoint.states[into]

    @cache
    def early(checkpoint: Checkpoint, which: int, operator: Operator) -> int:
        """A record that a task has taken too early, or -1."""
        _, at, done, held, _ = operator
        came = [into for into, number in enumerate(at) if done < checkpoint.id <= number < ENDED]
        return next((record for into in came for record in records_in(held & behind(checkpoint, which, into))), -1)

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
                        f"{settings.task(settings.sources + which)} has taken {settings.named(record)} from behind "
                        f"barrier {checkpoint.id}, and has not copied its state yet."
                    )
        return ""

    return why


def _outdated(state: State) -> str:
    """I6: ids grow, and a job runs from the latest complete checkpoint."""
    (_, completed, running, _, _), _, operators, _, _, _ = state
    if not completed or not running:
        return ""
    latest, sink = completed[-1].id, operators[-1]
    if len(completed) > 1 and completed[-2].id >= latest:
        return f"checkpoint {latest} was completed out of order."
    if sink.done < latest and min(sink.at) < ENDED:
        return f"checkpoint {latest} is complete, and the job runs from checkpoint {sink.done}."
    return ""


def _undecided(settings: Settings) -> Reason:
    """I7: what is visible is in a complete checkpoint."""

    def why(state: State) -> str:
        completed, visible = state.coordinator.completed, state.visible
        held = completed[-1].states[-1] if completed else 0
        if not visible & ~held:
            return ""
        for record in records_in(visible):
            shown, decided = times(visible, record), times(held, record)
            if shown > decided:
                how = f"visible {shown} times" if decided else "visible"
                return f"the row of {settings.named(record)} is {how}, and the latest complete checkpoint " + (
                    f"holds it {decided} times."
                    if decided > 1
                    else "holds it once."
                    if decided
                    else "does not hold it."
                )
        return ""

    return why


def _miscount(settings: Settings) -> Reason:
    """In the end the counts are those of a run without failure."""

    def why(state: State) -> str:
        held = sum(operator.state for operator in state.operators[:-1])
        for record in range(len(settings.words)):
            if times(held, record) != 1:
                complaint = (
                    "is in no count" if not times(held, record) else f"has been counted {times(held, record)} times"
                )
                return f"{settings.named(record)} {complaint}: in the end {settings.totals(held)}."
        return ""

    return why


def _claim(
    name: str, mood: Mood, sentence: str, reason: Reason, where: Callable[[State], bool] | None = None
) -> Property[State]:
    return Property(name, mood, sentence, lambda state: not reason(state), reason, where)


def _has_barriers(state: State) -> bool:
    """Whether the barriers of a checkpoint that the coordinator still wants may be on their way."""
    pending = state[0].pending
    return bool(pending) and state[2][-1].done < pending[-1].id


def claims(settings: Settings, text: Reason) -> Sequence[Property[State]]:
    """The invariants of checkpoints, what should be possible, and what must be so in the end."""
    return (
        *_of_checkpoints(settings),
        *_of_barriers(settings),
        *_possible(settings, text),
        *_of_the_end(settings, text),
    )


def _of_checkpoints(settings: Settings) -> Iterator[Property[State]]:
    cuts = Cuts(settings)

    @cache
    def is_sound(completed: tuple[Checkpoint, ...]) -> bool:
        ids = [checkpoint.id for checkpoint in completed]
        return ids == sorted(set(ids)) and cuts.is_sound(completed[-1])

    def is_suspect(state: State) -> bool:
        """Most checkpoints are sound, and most jobs run from the latest: only the others are looked at closely."""
        completed = state[0].completed
        return bool(completed) and (state[2][-1].done < completed[-1].id or not is_sound(completed))

    def latest(reason: Callable[[Checkpoint], str]) -> Reason:
        return lambda state: reason(state.coordinator.completed[-1])

    for name, sentence, reason in (
        ("complete", "A complete checkpoint has the part of every task.", latest(cuts.incomplete)),
        ("no_orphan", "What a complete checkpoint holds as received, it holds as sent.", latest(cuts.orphan)),
        ("conserved", "In a complete checkpoint, sent is received plus in flight.", latest(cuts.unbalanced)),
        ("exact", "A complete checkpoint holds each record before its offsets once, no other.", latest(cuts.inexact)),
        ("latest", "Ids grow, and the job runs from the latest complete checkpoint.", _outdated),
    ):
        yield _claim(name, Mood.ALWAYS, sentence, reason, is_suspect)
    if settings.transactional and (settings.keeps_cancelled or not settings.faults.cancels):
        sentence = "A row is visible only if a complete checkpoint holds it."
        yield _claim("decided_first", Mood.ALWAYS, sentence, _undecided(settings), lambda state: state[3] > 0)


def _of_barriers(settings: Settings) -> Iterator[Property[State]]:
    sentence = "A channel brings each barrier once, and the lower id first."
    yield _claim("in_order", Mood.ALWAYS, sentence, _disorder(settings), _has_barriers)
    if settings.mode is Mode.ALIGNED:
        sentence = "No task takes a record from behind a barrier that others still owe it."
        yield _claim("aligned", Mood.ALWAYS, sentence, _ahead(settings), _has_barriers)


def _possible(settings: Settings, text: Reason) -> Iterator[Property[State]]:
    def completes(state: State) -> bool:
        return bool(state[0].completed)

    crashes, everything = (settings.faults.crashes, sum(map(once, range(len(settings.words)))))

    def recovers(state: State) -> bool:
        return state[3] == everything and state.faults.crashes < crashes

    if settings.transactional or settings.checkpoints:
        yield Property("completes", Mood.SOMETIMES, "A checkpoint completes.", completes, text)
    if crashes:
        yield Property("recovers", Mood.SOMETIMES, "All rows are out although the job has crashed.", recovers, text)


def _of_the_end(settings: Settings, text: Reason) -> Iterator[Property[State]]:
    ends, over = Ends(settings), partial(is_over, settings)
    yield Property("ends", Mood.EVENTUALLY, "The job ends.", over, text)
    for name, sentence, reason in (
        ("counted_once", "In the end every record is counted once.", _miscount(settings)),
        ("no_loss", "In the end no row is lost.", ends.lost),
        ("no_duplicate", "In the end no row has come out twice.", ends.doubled),
    ):
        yield _claim(name, Mood.EVENTUALLY, sentence, reason)
