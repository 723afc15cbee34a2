"""Exercises of notebook 06: keys, the second confirmation, recovery of transactions, and values that jump back."""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any

from labkit.core.failpoints import FailPoint
from labkit.core.records import Observation
from labkit.sim.model import Model
from labkit.sim.models.pipeline.claims import Judge
from labkit.sim.models.pipeline.model import Pipeline
from labkit.sim.models.pipeline.parts import VisibleRow
from labkit.sim.models.pipeline.scenarios import Cue, play
from labkit.sim.trace import make
from labkit.teach.exercises.closing import Run
from labkit.teach.exercises.constants import Prediction
from labkit.teach.exercises.contract import Answer, Exercise, Finding, Kind, Level, Plain, Variant
from labkit.teach.exercises.invariants import Watch
from labkit.teach.exercises.keys import judge_key
from labkit.teach.exercises.searching import search
from labkit.teach.results import Walk

NOTEBOOK = "06_sinks"


def judge_confirmation(answer: Answer, variant: Variant) -> Finding:
    """Twice every schedule: with crashes anywhere, and with none in the window that a log cannot close."""
    for in_window in (True, False):
        open_model: Any = make("confirmation_drill", {**dict(variant.parameters), "crash_in_window": in_window})
        found = search(answer, "commit", partial(Run, open_model, of="steps"), "ends")
        if not found.passed:
            break
    return found


def judge_recovery(answer: Answer, variant: Variant) -> Finding:
    """Every schedule of a job with two-phase commit, crashes and lost notifications."""
    open_model: Any = make("resolution_drill", dict(variant.parameters))
    return search(answer, "recover_and_commit", lambda ask: Run(open_model, ask, "steps"), "ends")


def _seen(model: Model[Any], state: Any) -> tuple[Any, ...]:
    """What an outside reader saw, in order."""
    assert isinstance(model, Pipeline)
    events = Judge(model.settings).history(state).events
    return ([[event.key, event.value] for event in events if isinstance(event, Observation)],)


def _sights(model: Model[Any], said: Mapping[str, Any]) -> Iterator[Any]:
    """A word seen twice with any two of its counts, and up to so many rows of another word between and behind.

    The input has the word first, as often as it can count, and then the other one.
    """
    assert isinstance(model, Pipeline)
    words, state = model.settings.words, model.initial()
    counts = range(words.count(words[0]))
    # The other word only grows, and stays at its last count: it never jumps itself.
    others = [*range(len(counts), len(words)), *[len(words) - 1] * said["between"]]
    for first, second, between, behind in product(counts, counts, range(said["between"] + 1), (0, 1)):
        rows = others[: between + behind]
        seen = (first, *rows[:between], second, *rows[between:])
        looks = tuple(VisibleRow(offset, 0, 1) for offset in seen)
        yield state._replace(seen=looks)


WATCH = Watch("steady", "pipeline", "no_regression", _seen, _sights)
WORDS: dict[str, object] = {"words": "hello-world-hello"}
SECOND_BATCH: dict[str, object] = {"strategy": "wal", "words": "hello-world-hello-world", "records_per_batch": 2}
UPSERT: dict[str, object] = {"words": "hello-hello", "strategy": "idempotent", "store": "sqlite"}


def _second_batch(_variant: Variant) -> tuple[dict[str, Plain], str | None]:
    model = make("pipeline", SECOND_BATCH)
    assert isinstance(model, Pipeline)
    walk = Walk(play(model, (Cue(FailPoint.BEFORE_CONFIRM, batch=1),)))
    return {"lost": list(walk.verdict.lost), "duplicate": list(walk.verdict.duplicate)}, str(walk.trace)


PREDICTION = Prediction("predicted_06", {"lost": list, "duplicate": list}, _second_batch)

EXERCISES = (
    Exercise(
        name="06-predict",
        notebook=NOTEBOOK,
        title="the second batch",
        kind=Kind.PREDICT,
        level=Level.EASY,
        points=1,
        answer="predicted_06",
        task="wal, log-then-commit, hello (offset 0), world (1), hello (2), world (3), two records "
        "a batch: killed when "
        "batch 1 is flushed and not yet confirmed. Which offsets are lost, which come more than once?",
        hints=(
            "Which batches have a second confirmation?",
            "Recovery flushes the whole log of every other batch that is noted.",
        ),
        lines=1,
        public=(Variant("wal, sink.before_confirm of batch 1"),),
        judge=PREDICTION.judge,
    ),
    Exercise(
        name="06-key",
        notebook=NOTEBOOK,
        title="the right key",
        kind=Kind.COMPLETE,
        level=Level.EASY,
        points=2,
        answer="key",
        task="key(row) gives the key by which a row is upserted, so that the table ends with one row for every record.",
        hints=(
            "Which fields of a row are the same when its batch runs again, and which differ between two records?",
            "A batch number is the same after a restart, and begins at 0 again when the checkpoint folder is gone.",
        ),
        lines=1,
        public=(
            Variant("one crash", (("words", "hello-world-hello"), ("crashes", 1))),
            Variant(
                "the checkpoint folder is deleted",
                (("words", "hello-hello-world"), ("records_per_batch", 1), ("crashes", 1), ("deletions", 1)),
            ),
            Variant(
                "five records of words with one initial", (("words", "spark-stream-spark-spark-stream"), ("crashes", 0))
            ),
        ),
        judge=judge_key,
    ),
    Exercise(
        name="06-wal",
        notebook=NOTEBOOK,
        title="the second confirmation",
        kind=Kind.COMPLETE,
        level=Level.MEDIUM,
        points=4,
        answer="commit",
        task="commit(batch, rows, confirmed) returns the steps with which a write-ahead log writes a batch out.",
        hints=(
            "A crash can come between any two steps. Which of them says that all rows are out?",
            "A batch that was confirmed may run again, when the crash came before commits/N.",
            "Only this batch's own confirmation says anything about it.",
        ),
        lines=4,
        public=(
            Variant("two batches, one crash", (("words", "hello-world-hello"), ("records_per_batch", 2))),
            Variant(
                "one batch of three, two crashes",
                (("words", "hello-hello-world"), ("records_per_batch", 3), ("crashes", 2)),
            ),
        ),
        judge=judge_confirmation,
        withheld=("labkit.sim.models.pipeline.programs", "labkit.sinks.wal"),
    ),
    Exercise(
        name="06-recover",
        notebook=NOTEBOOK,
        title="recover and commit",
        kind=Kind.COMPLETE,
        level=Level.HARD,
        points=5,
        answer="recover_and_commit",
        task="recover_and_commit(decided, stored, found) returns what a restarted driver does with each transaction.",
        hints=(
            "What is the decision: the pre-commit, the stored votes, or commits/N?",
            "Votes are stored before the decision, so some of them may be undecided.",
            "A transaction that no decided vote names would stay open for ever, and hide its rows.",
        ),
        lines=4,
        public=(
            Variant("two batches, one crash", (("words", "hello-world-hello"), ("records_per_batch", 2))),
            Variant(
                "a lost notification, two crashes",
                (("words", "hello-world"), ("records_per_batch", 1), ("crashes", 2), ("lost_notices", 1)),
            ),
            Variant(
                "a task is tried twice, one crash", (("words", "hello-world"), ("records_per_batch", 1), ("retries", 1))
            ),
        ),
        judge=judge_recovery,
        withheld=("labkit.sim.models.pipeline.programs", "labkit.sinks.coordinator", "labkit.sinks.two_phase"),
    ),
    Exercise(
        name="06-jump",
        notebook=NOTEBOOK,
        title="nothing jumps back",
        kind=Kind.INVARIANT,
        level=Level.EASY,
        points=3,
        answer="steady",
        task="steady(seen) says whether no key was seen to go back to a smaller count.",
        hints=(
            "Another word in between changes nothing for hello.",
            "Remember the largest count of every word so far. The same count twice is a duplicate and no jump.",
        ),
        lines=6,
        public=(
            Variant(
                "one word at a time",
                (
                    (
                        "good",
                        (
                            ("two_phase", WORDS),
                            ("two_phase, two batches", {"words": "hello-hello-world", "records_per_batch": 2}),
                            ("append, each word once", {"words": "hello-world", "strategy": "append"}),
                        ),
                    ),
                    (
                        "bad",
                        (
                            ("a driver that was thought dead wakes up", {**UPSERT, "crashes": 0, "zombies": 1}),
                            ("append", {"words": "hello-hello", "strategy": "append"}),
                        ),
                    ),
                ),
            ),
            Variant(
                "two words",
                (
                    ("good", (("batch_marker", {**WORDS, "strategy": "batch_marker"}),)),
                    ("bad", (("idempotent", {**UPSERT, **WORDS}), ("wal", {**WORDS, "strategy": "wal"}))),
                ),
            ),
            Variant(
                "rows of others between",
                (
                    (
                        "assembled",
                        (
                            (
                                "any two counts of hello",
                                {"words": "hello-hello-hello-hello-world-world"},
                                {"between": 4},
                            ),
                        ),
                    ),
                ),
            ),
        ),
        judge=WATCH.judge,
        withheld=("labkit.core.judge", "labkit.core.judge_large", "labkit.core.explanation", "labkit.view.charts"),
    ),
)
