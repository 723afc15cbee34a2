"""The exercises of notebook 06: keys, the second confirmation, recovery of transactions, and values that jump back."""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any

from labkit.core.failpoints import FailPoint
from labkit.core.records import Observation
from labkit.sim.model import Model
from labkit.sim.models.pipeline.claims import Judge
from labkit.sim.models.pipeline.model import Pipeline
from labkit.sim.models.pipeline.scenarios import Cue, play
from labkit.sim.models.pipeline.state import VisibleRow
from labkit.sim.trace import make
from labkit.teach.exercises.asking import Asker, a_list, shown
from labkit.teach.exercises.closing import Run
from labkit.teach.exercises.constants import Prediction
from labkit.teach.exercises.contract import Answer, Finding, Plain, Variant, by, variant
from labkit.teach.exercises.invariants import Watch
from labkit.teach.exercises.keys import judge_key
from labkit.teach.exercises.searching import ask_each, search
from labkit.teach.results import Walk


def judge_confirmation(answer: Answer, variant: Variant) -> Finding:
    """Check a learner's function `commit`, a commit's second phase, in every schedule of a simulated job with crashes.

    A second search leaves out crashes between writing the rows and confirming the batch in the log, because after such
    a crash even a right function repeats rows. If the variant has a `batch`, check instead the commit of this batch
    with many `rows`, after many other batches.
    """
    if "batch" in dict(variant.parameters):
        ask = Asker(answer, "commit")
        cases = _many_batches(variant["batch"], variant["rows"])
        return ask_each(ask, cases, lambda case: _wrong_commit(ask, *case), "It is right about {} batches")
    for in_window in (True, False):
        open_model: Any = make("confirmation_drill", {**dict(variant.parameters), "crash_in_window": in_window})
        finding = search(answer, "commit", partial(Run, open_model, of="steps"), "ends")
        if not finding.passed:
            break
    return finding


def judge_recovery(answer: Answer, variant: Variant) -> Finding:
    """Check a learner's recovery of two-phase commit in every schedule with crashes and lost notifications.

    If the variant has `decided`, the number of a batch, check instead single recoveries in which this batch, written by
    many `tasks`, is the last one to commit.
    """
    if "decided" in dict(variant.parameters):
        ask = Asker(answer, "recover_and_commit")
        cases = _many_tasks(variant["decided"], variant["tasks"])
        return ask_each(ask, cases, lambda case: _wrong_recovery(ask, *case), "It is right about {} recoveries")
    open_model: Any = make("resolution_drill", dict(variant.parameters))
    return search(answer, "recover_and_commit", lambda ask: Run(open_model, ask, "steps"), "ends")


def _many_batches(batch: int, rows: int) -> Iterator[tuple[int, list[Plain], list[Plain]]]:
    """Yield arguments of the learner's `commit`: the batch, its rows' offsets, and the batches already confirmed."""
    offsets: list[Plain] = [*range(1_000, 1_000 + rows)]
    others: list[Plain] = [each for each in range(2 * batch) if each != batch]
    yield batch, offsets, others
    for place in (0, 8, len(others) // 2, len(others)):
        yield batch, offsets, [*others[:place], batch, *others[place:]]


def _wrong_commit(ask: Asker, batch: int, rows: list[Plain], confirmed: list[Plain]) -> Finding | None:
    steps = a_list(ask, ask(batch, rows, confirmed), "steps")
    due: list[Plain] = [] if batch in confirmed else [["write", offset] for offset in rows]
    writes = [step for step in steps if step != ["confirm", batch]]
    is_right = sorted(map(str, writes)) == sorted(map(str, due)) and writes == steps[: len(writes)]
    if is_right and (batch in confirmed or len(steps) > len(writes)):
        return None
    where = f"{len(rows)} rows, and {len(confirmed)} batches are confirmed"
    what = "this one among them: nothing is to be written" if batch in confirmed else "but not this one"
    message = f"commit({batch}, ...) with {where}, {what}: it answered {shown(steps)}."
    general = "With many rows or many confirmed batches the steps are wrong."
    return Finding(False, message, "the steps are wrong", "each row once, and then the confirmation", general=general)


def _many_tasks(decided: int, tasks: int) -> Iterator[tuple[int, list[Any], list[Any]]]:
    """Yield arguments of the learner's `recover_and_commit`: batch `decided`, stored votes, and open transactions."""
    last, following = ([f"q0-b{batch}-p{task}-i1" for task in range(tasks)] for batch in (decided, decided + 1))
    votes: list[Any] = [
        {"batch": batch, "handles": [*each]} for batch, each in ((decided, last), (decided + 1, following))
    ]
    attempts = [f"{handle}-a1" for handle in last]
    for found in ([*last, *attempts], [*following, *last], last[tasks // 2 :], attempts):
        yield decided, votes, [*found]
    twelfth: list[Any] = [f"{handle}2" for handle in last]
    yield decided, [{"batch": decided, "handles": twelfth}], [*last, *twelfth]
    expired: list[Any] = [{"batch": batch, "handles": [f"q0-b{batch}-p0-i1"]} for batch in range(decided - 9, decided)]
    open_ = [*(f"q0-b{batch}-p0-i1" for batch in range(decided - 9, decided)), *last, *following]
    for stored in ([*expired, *votes], [*votes[::-1], *expired[::-1]]):
        yield decided, stored, [*open_]


def _wrong_recovery(ask: Asker, decided: int, votes: list[Any], found: list[Any]) -> Finding | None:
    steps = [str(step) for step in a_list(ask, ask(decided, votes, found), "steps")]
    due = [handle for vote in votes if vote["batch"] <= decided for handle in vote["handles"]]
    wanted = {str(["commit" if handle in due else "abort", handle]) for handle in found}
    forbidden = {str(["abort" if handle in due else "commit", handle]) for handle in found}
    # Whoever commits a transaction that is gone, because it was committed before, changes nothing.
    if wanted <= {*steps} and not forbidden & {*steps}:
        return None
    message = f"{ask.call(decided, votes, found)}: it leaves transactions open, or ends some in the wrong way."
    general = "With many transactions some stay open, or end in the wrong way."
    return Finding(False, message, "a transaction ends in the wrong way", "commit what is decided", general=general)


def _seen(model: Model[Any], state: Any) -> tuple[Any, ...]:
    """Return the arguments of the learner's function: the words and counts that an outside reader saw, in order."""
    assert isinstance(model, Pipeline)
    events = Judge(model.settings).history(state).events
    return ([[event.key, event.value] for event in events if isinstance(event, Observation)],)


def _sights(model: Model[Any], parts: Mapping[str, Any]) -> Iterator[Any]:
    """Yield states in which a reader saw two counts of one word, with rows of another word between and after."""
    assert isinstance(model, Pipeline)
    words, state = model.settings.words, model.initial()
    number = words.count(words[0])
    counts = parts.get("counts", range(number))
    # The other word only grows, and stays at its last count: it never jumps itself.
    numbers = [*range(parts["between"] + 1), *([parts["long"]] if "long" in parts else [])]
    others = [*range(number, len(words)), *[len(words) - 1] * numbers[-1]]
    for first, second, between, behind in product(counts, counts, numbers, (0, 1)):
        rows = others[: between + behind]
        seen = (first, *rows[:between], second, *rows[between:])
        looks = tuple(VisibleRow(offset, 0, 1) for offset in seen)
        yield state._replace(seen=looks)


WATCH = Watch("steady", "pipeline", "no_regression", _seen, _sights)
WORDS: dict[str, object] = {"words": "hello-world-hello"}
SECOND_BATCH: dict[str, object] = {"strategy": "wal", "words": "hello-world-hello-world", "records_per_batch": 2}
A, B = "hello" * 14 + "s", "hello" * 14 + "t"
COMPOSED = ("caf\u00e9", "cafe\u0301")
"""Two words that a reader sees as one: the accent belongs to the letter in the first, and follows it in the second."""
UPSERT: dict[str, object] = {"words": "hello-hello", "strategy": "idempotent", "store": "sqlite"}


def _second_batch(_variant: Variant) -> tuple[dict[str, Plain], str | None]:
    model = make("pipeline", SECOND_BATCH)
    assert isinstance(model, Pipeline)
    walk = Walk(play(model, (Cue(FailPoint.BEFORE_CONFIRM, batch=1),)))
    return {"lost": list(walk.verdict.lost), "duplicate": list(walk.verdict.duplicate)}, str(walk.trace)


PREDICTION = Prediction("predicted_06", {"lost": list, "duplicate": list}, _second_batch)

JUDGES = {
    "06-predict": by(PREDICTION.judge, variant("wal, sink.before_confirm of batch 1")),
    "06-key": by(
        judge_key,
        variant("one crash", words="hello-world-hello", crashes=1),
        variant(
            "the checkpoint folder is deleted", words="hello-hello-world", records_per_batch=1, crashes=1, deletions=1
        ),
        variant("five records of words with one initial", words="spark-stream-spark-spark-stream", crashes=0),
        variant(
            "a long input", words=("a1", "x" * 11, *["a"] * 11, "x", "X", *COMPOSED, *["word"] * 120, "words", "word")
        ),
    ),
    "06-wal": by(
        judge_confirmation,
        variant("two batches, one crash", words="hello-world-hello", records_per_batch=2),
        variant("one batch of three, two crashes", words="hello-hello-world", records_per_batch=3, crashes=2),
        variant("batch 12, after many others", batch=12, rows=3),
    ),
    "06-recover": by(
        judge_recovery,
        variant("two batches, one crash", words="hello-world-hello", records_per_batch=2),
        variant(
            "a lost notification, two crashes", words="hello-world", records_per_batch=1, crashes=2, lost_notices=1
        ),
        variant("a task is tried twice, one crash", words="hello-world", records_per_batch=1, retries=1),
        variant("batch 9 is decided, and not batch 10", decided=9, tasks=3),
    ),
    "06-jump": by(
        WATCH.judge,
        variant(
            "one word at a time",
            good=(
                ("two_phase", WORDS),
                ("two_phase, two batches", {"words": "hello-hello-world", "records_per_batch": 2}),
                ("append, each word once", {"words": "hello-world", "strategy": "append"}),
            ),
            bad=(
                ("a driver that was thought dead wakes up", {**UPSERT, "crashes": 0, "zombies": 1}),
                ("append", {"words": "hello-hello", "strategy": "append"}),
            ),
        ),
        variant(
            "two words",
            good=(("batch_marker", {**WORDS, "strategy": "batch_marker"}),),
            bad=(("idempotent", {**UPSERT, **WORDS}), ("wal", {**WORDS, "strategy": "wal"})),
        ),
        variant(
            "rows of others between",
            assembled=(
                ("any two counts of hello", {"words": "hello-hello-hello-hello-world-world"}, {"between": 4}),
                ("Hello besides", {"words": "hello"}, {"input": "hello-hello-Hello-Hello", "between": 0, "long": 20}),
                (
                    "one word, composed in two ways",
                    {"words": "hello"},
                    {"input": "-".join(sorted(COMPOSED * 2)), "between": 0},
                ),
                ("far apart", {"words": "hello"}, {"input": "hello-hello-world", "between": 0, "long": 260}),
                ("long words alike", {"words": "hello"}, {"input": f"{A}-{A}-{B}-{B}", "between": 1}),
            ),
        ),
    ),
}
