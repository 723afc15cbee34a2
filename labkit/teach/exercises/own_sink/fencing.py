"""Test two writers of one table: stop the first before each request, let the second take over, and resume the first.

The stop is a real SIGSTOP of the process that has the first writer's connection, so its locks and its open transaction
remain. If it holds a lock, the second writer is refused and retries after the first has finished, as an engine would.
"""

from collections.abc import Iterator, Sequence

from labkit.teach.exercises.asking import Unusable
from labkit.teach.exercises.own_sink.trials import (
    FENCED,
    MADE_ANOTHER_REQUEST,
    Bench,
    Delivery,
    Row,
    TrialResult,
    conclude,
)

FIRST, NEWEST = 99, 102
"""The epochs of the older and the newer writer; as text, or cut to two digits, the newer epoch is the smaller one."""
LATER = (0, 2, 5)
"""The numbers of the batches that a writer still tries to deliver after it was refused as fenced."""


def fenced_trials(bench: Bench) -> Iterator[TrialResult]:
    """Yield one run with a single writer, and then runs in which a newer writer replaces the first one.

    Each run with two writers stops the first writer at another place of its first or its last batch. Only the final
    run does not stop it: there the newer writer writes an empty batch, and the first writer continues afterwards.
    """
    with bench.trial() as begun:
        begun.run([FIRST, *bench.query[1:]], bench.batches)
        undisturbed = conclude(begun, bench.batches)
    yield undisturbed
    # If the job is stuck, the sink is wrong even without a second writer, and some batches have no requests.
    if undisturbed.story.stuck:
        return
    for place in range(undisturbed.story.deliveries[0] + 1):
        yield overtaken(bench, place)
    for place in range(undisturbed.story.deliveries[-1] + 1):
        yield _planned_otherwise(bench, place)
    yield _without_rows(bench)


def overtaken(bench: Bench, place: int) -> TrialResult:
    """Stop writer 1 after `place` requests of batch 0, let writer 2 write batches 0 and 1, and resume writer 1.

    The sink must refuse the further batches of writer 1. Finally writer 2 writes the remaining ones.
    """
    with bench.trial() as begun:
        process = begun.start()
        first = [FIRST, *bench.query[1:]]
        old = Delivery(begun, process, [*first, 0, [*bench.batches[0]]])
        is_there = _until(old, place, bench.batches[0])
        process.stop()
        new = [NEWEST, *bench.query[1:]]
        is_done = begun.run(new, bench.batches[:2])
        process.go_on()
        ended = old.finish()
        if not is_done and "locked" in begun.story.stuck:
            # The stopped writer held a lock, so the second one tries again after it.
            begun.story.stuck = ""
            is_done = begun.run(new, bench.batches[:2])
        elif not is_there:
            _note_wrong_reply(old)
        if ended.how == "returned" and ended.value != FENCED:
            Delivery(begun, process, [*first, 2, [*bench.others[0]]]).finish()
        elif ended.how == "returned":
            for batch in LATER:
                _stays_fenced(Delivery(begun, process, [*first, batch, [*bench.others[0]]]))
        if is_done:
            begun.run(new, bench.batches, first=2)
        stopped = f"writer {FIRST} is stopped after {place} requests, writer {NEWEST} replaces it"
        return conclude(begun, bench.batches, f"{stopped}, and writer {FIRST} resumes")


def _planned_otherwise(bench: Bench, place: int) -> TrialResult:
    """Stop the first writer after `place` requests of its last batch, and let a newer writer take over.

    The newer writer gets other rows for the same batch number.
    """
    *before, planned = bench.batches
    last, own = len(before), list(bench.others[0])
    with bench.trial() as begun:
        old_one, new_one = ([each, *bench.query[1:]] for each in (FIRST, NEWEST))
        begun.run(old_one, before)
        process = begun.start()
        old = Delivery(begun, process, [*old_one, last, [*own]])
        is_there = _until(old, place, own)
        process.stop()
        is_done = begun.run(new_one, before, first=last - 1)
        process.go_on()
        old.finish()
        if not is_done and "locked" in begun.story.stuck:
            begun.story.stuck, is_there = "", True
            is_done = begun.run(new_one, before, first=last - 1)
        elif not is_there:
            _note_wrong_reply(old)
        due = [*before, own if is_there else planned]
        if is_done:
            begun.run(new_one, due, first=last)
        what = f"writer {FIRST} is stopped in batch {last} after {place} requests, writer {NEWEST} starts from an older"
        return conclude(begun, due, f"{what} checkpoint with other rows, and writer {FIRST} resumes")


def _without_rows(bench: Bench) -> TrialResult:
    """Let a newer writer write an empty batch, after which the sink must refuse batches of the older writer."""
    with bench.trial() as begun:
        first, *others = bench.batches
        old_one, new_one = ([each, *bench.query[1:]] for each in (FIRST, NEWEST))
        if begun.run(old_one, [first]):
            Delivery(begun, begun.start(), [*new_one, 1, []]).finish()
            for number, batch in enumerate(others, start=1):
                _stays_fenced(Delivery(begun, begun.process(), [*old_one, number, [*batch]]))
        what = f"writer {NEWEST} delivers an empty batch, and writer {FIRST} continues afterwards"
        return conclude(begun, [first], what)


def _stays_fenced(old: Delivery) -> None:
    samples = old.trial.story.samples
    before = samples[-1].seen if samples else ()
    ended = old.finish()
    _note_wrong_reply(old)
    if ended.value == FENCED and samples and samples[-1].seen != before:
        old.trial.story.wrong_reply = f'the sink returned "{FENCED}" to the older writer, but wrote its rows'


def _until(old: Delivery, place: int, rows: Sequence[Row]) -> bool:
    """Let the older writer make the first `place` requests of its batch; return whether readers now see all `rows`."""
    for _ in range(place):
        request = old.next()
        if request is None:
            raise Unusable(f"the sink {MADE_ANOTHER_REQUEST}")
        old.perform(request)
    old.trial.look()
    samples = old.trial.story.samples  # none if the sink holds an exclusive lock from its first request on
    seen = {row.id for row in samples[-1].seen} if samples else set()
    return all(row["id"] in seen for row in rows)


def _note_wrong_reply(old: Delivery) -> None:
    ended = old.ended
    if ended is not None and ended.how == "returned" and ended.value != FENCED:
        got = f'"{ended.value}"' if ended.value else "nothing"
        old.trial.story.wrong_reply = f'the sink returned {got} to the older writer instead of "{FENCED}"'
