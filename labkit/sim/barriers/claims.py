"""What must hold of checkpoints, of barriers on their way, and of the end: protocol invariants, and the judge's verdict.

Rows that came out are judged by `labkit.judge`; this module must not count lost or duplicate rows. What a claim looks
at is looked at once: most checkpoints and most tasks are met in very many states.
"""

from collections.abc import Callable, Sequence
from functools import cache

from labkit.judge import Outcome, Verdict, judge
from labkit.records import History, Observation, Reading, Record
from labkit.sim.barriers.cuts import Cuts
from labkit.sim.barriers.parts import BARRIER, ENDED, Checkpoint, Operator, State, records_in, times
from labkit.sim.barriers.schedule import is_over
from labkit.sim.barriers.settings import Mode, Settings
from labkit.sim.model import Mood, Property

Reason = Callable[[State], str]
"""Why a state breaks a claim, in a sentence; empty where it does not."""


class Ends:
    """The judge's verdict on rows: one row says that its record has come out. The same rows are judged once."""

    def __init__(self, settings: Settings) -> None:
        self.expected = [Record(record, word, 1) for record, word in enumerate(settings.words)]
        self.verdict = cache(self._verdict)

    def _verdict(self, visible: int) -> Verdict:
        rows = [Observation(*self.expected[record], 0, 1) for record in records_in(visible)]
        return judge(self.expected, History([*rows, Reading("end")]))

    def reason(self, name: str) -> Reason:
        """Why one of the judge's properties is violated."""

        def why(state: State) -> str:
            found = self.verdict(state.visible)
            return found.because if found.properties[name] is Outcome.VIOLATED else ""

        return why


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
        for which, operator in enumerate(state.operators):
            into = out_of_order(operator)
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

    behind = cache(behind)

    def why(state: State) -> str:
        for checkpoint in state.coordinator.pending:
            for which, (_, at, done, held, _) in enumerate(state.operators):
                if done < checkpoint.id <= max(at):
                    for into, came in enumerate(at):
                        early = held & behind(checkpoint, which, into) if checkpoint.id <= came < ENDED else 0
                        if early:
                            task, record = settings.task(settings.sources + which), next(records_in(early))
                            return (
                                f"{task} has taken {settings.named(record)} from behind barrier {checkpoint.id}, "
                                "and has not copied its state yet."
                            )
        return ""

    return why


def _outdated(state: State) -> str:
    """I6: ids grow, and a job runs from the latest complete checkpoint."""
    coordinator, _, operators, _, _, _ = state
    completed, sink = coordinator.completed, operators[-1]
    if not completed or not coordinator.running:
        return ""
    latest = completed[-1].id
    if latest > coordinator.triggered or (len(completed) > 1 and completed[-2].id >= latest):
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
        early = [record for record in records_in(visible) if times(visible, record) > times(held, record)]
        return f"the row of {settings.named(early[0])} is visible, and no complete checkpoint holds it." if early else ""

    return why


def _miscount(settings: Settings) -> Reason:
    """In the end the counts are those of a run without failure."""

    def why(state: State) -> str:
        held = sum(operator.state for operator in state.operators[:-1])
        for record in range(len(settings.words)):
            if times(held, record) != 1:
                told = "is in no count" if not times(held, record) else f"has been counted {times(held, record)} times"
                return f"{settings.named(record)} {told}: in the end {settings.totals(held)}."
        return ""

    return why


def _claim(
    name: str, mood: Mood, sentence: str, reason: Reason, where: Callable[[State], bool] | None = None
) -> Property[State]:
    return Property(name, mood, sentence, lambda state: not reason(state), reason, where)


def _has_pending(state: State) -> bool:
    return bool(state.coordinator.pending)


def claims(settings: Settings, text: Reason) -> Sequence[Property[State]]:
    """The invariants of checkpoints, what should be possible, and what must be so in the end."""
    cuts, ends, over = Cuts(settings), Ends(settings), lambda state: is_over(settings, state)
    always, eventually = Mood.ALWAYS, Mood.EVENTUALLY

    def is_unsound(state: State) -> bool:
        completed = state.coordinator.completed
        return bool(completed) and not cuts.is_sound(completed[-1])

    def latest(reason: Callable[[Checkpoint], str]) -> Reason:
        return lambda state: reason(state.coordinator.completed[-1])

    found = [
        _claim("complete", always, "A complete checkpoint has the part of every task.", latest(cuts.incomplete), is_unsound),
        _claim("no_orphan", always, "What a complete checkpoint holds as received, it holds as sent.", latest(cuts.orphan), is_unsound),
        _claim("conserved", always, "In a complete checkpoint, sent is received plus in flight.", latest(cuts.unbalanced), is_unsound),
        _claim("exact", always, "A complete checkpoint holds each record before its offsets once, and no other.", latest(cuts.inexact), is_unsound),
        _claim("in_order", always, "A channel brings each barrier once, and the lower id first.", _disorder(settings), _has_pending),
        _claim("latest", always, "Ids grow, and the job runs from the latest complete checkpoint.", _outdated),
    ]
    if settings.mode is Mode.ALIGNED:
        found.append(_claim("aligned", always, "No task takes a record from behind a barrier that others still owe it.", _ahead(settings), _has_pending))
    if settings.transactional and (settings.keeps_cancelled or not settings.faults.cancels):
        found.append(_claim("decided_first", always, "A row is visible only if a complete checkpoint holds it.", _undecided(settings), lambda state: state.visible > 0))
    if settings.transactional or settings.checkpoints:
        found.append(Property("completes", Mood.SOMETIMES, "A checkpoint completes.", lambda state: bool(state.coordinator.completed), text))
    if settings.faults.crashes:
        found.append(Property("recovers", Mood.SOMETIMES, "The job ends although it has crashed.", lambda state: state.faults.crashes < settings.faults.crashes and over(state), text))
    return (
        *found,
        Property("ends", eventually, "The job ends.", over, text),
        _claim("counted_once", eventually, "In the end every record is counted once.", _miscount(settings)),
        _claim("no_loss", eventually, "In the end no row is lost.", ends.reason("no_loss")),
        _claim("no_duplicate", eventually, "In the end no row has come out twice.", ends.reason("no_duplicate")),
    )
