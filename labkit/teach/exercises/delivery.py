"""Exercises of notebook 02: a receiver that knows a message again, a chain that waits, predictions."""

from typing import Any

from labkit.sim.trace import make
from labkit.teach.exercises.closing import Run
from labkit.teach.exercises.constants import Chosen, Prediction, Settings, Statements
from labkit.teach.exercises.contract import Answer, Exercise, Finding, Kind, Level, Plain, Variant
from labkit.teach.exercises.searching import search
from labkit.teach.study import replay

NOTEBOOK = "02_delivery"


def judge_dedup(answer: Answer, variant: Variant) -> Finding:
    """Every schedule of one sender and one receiver over a network that loses and doubles, with crashes."""
    open_model: Any = make("deduplication_drill", dict(variant.parameters))
    return search(answer, "receive", lambda ask: Run(open_model, ask, "steps"), "ends")


def _weak_chain(chosen: Chosen, variant: Variant) -> dict[str, object]:
    return {"productions": "weak", **chosen, **dict(variant.parameters)}


CHAIN = Settings(
    "chain_settings",
    "delivery",
    {"retry": (True, False), "dedup": ("none", "connection", "volatile", "durable"), "ids": ("derived", "fresh")},
    ("no_loss", "no_duplicate", "ends"),
    _weak_chain,
)


def _second_of_four(_variant: Variant) -> tuple[dict[str, Plain], str | None]:
    walk = replay("delivery.second_of_four")
    executions = walk.facts["executions"]
    assert isinstance(executions, list)
    return {"executions": list(executions), "effects": walk.verdict.rows}, str(walk.trace)


PREDICTION = Prediction("predicted_02", {"executions": list, "effects": int}, _second_of_four)

STATEMENTS = Statements(
    "tcp_answer",
    {
        "a": "It is true that a connection delivers each byte once, but only while it lives. After a crash the sender "
        "repeats on a new connection, which knows nothing of the old one (delivery.broken_connection).",
        "b": "The receiver must know the message by an id of its own, noted where a crash does not reach it, together "
        "with what came of the message. Then it does not matter how often anybody sends.",
        "c": "A longer timeout makes repetitions rarer. A sender whose acknowledgement was lost still cannot know, and "
        "will repeat in the end (delivery.lost_acknowledgement).",
        "d": "Acknowledging first does stop the repetition, and loses the message if the receiver dies before its "
        "write (delivery.acknowledged_too_early).",
    },
    "b",
)

EXERCISES = (
    Exercise(
        name="02-predict",
        notebook=NOTEBOOK,
        title="a crash in the middle",
        kind=Kind.PREDICT,
        level=Level.EASY,
        points=1,
        answer="predicted_02",
        task="Four processes, weak productions, derived ids. Process 3 has put the record out, and "
        "process 2 dies before it "
        "has heard of that. How often do the processes 1, 2 and 3 work on the record, and how often does it come out?",
        hints=(
            "Who has noted the id of the record when process 2 dies?",
            "Process 1 is still waiting, so it sends again. Whom does process 2 then send to, and with which id?",
        ),
        lines=1,
        public=(Variant("delivery.second_of_four"),),
        judge=PREDICTION.judge,
    ),
    Exercise(
        name="02-dedup",
        notebook=NOTEBOOK,
        title="know it again",
        kind=Kind.COMPLETE,
        level=Level.MEDIUM,
        points=4,
        answer="receive",
        task="receive(id, table, memory) returns the steps that a receiver takes with a message.",
        hints=(
            "A crash can come between any two steps. Which two of them must not be apart?",
            "What is in memory is gone after a crash, and the sender sends again whatever was not acknowledged.",
            "A message that is known must be acknowledged once more: its first acknowledgement may have been lost.",
        ),
        lines=3,
        public=(
            Variant("one record, a loss, a crash", (("records", 1), ("duplicates", 0))),
            Variant("two records, doubled", (("records", 2), ("drops", 0), ("duplicates", 1), ("crashes", 1))),
            Variant("two under way", (("records", 2), ("window", 2), ("duplicates", 0), ("crashes", 0))),
        ),
        judge=judge_dedup,
        withheld=("labkit.sim.models.delivery.model",),
    ),
    Exercise(
        name="02-chain",
        notebook=NOTEBOOK,
        title="a chain that waits",
        kind=Kind.CONFIGURE,
        level=Level.MEDIUM,
        points=2,
        answer="chain_settings",
        task="Processes send their productions on without writing them (weak productions). Choose retry, dedup "
        "and ids so that every record comes out exactly once, with a crash of anybody and a lost message.",
        hints=(
            "A production that is made again after a crash: by what can the next process know it?",
            "Where does the last process keep the ids that it has seen, if it may die too?",
        ),
        lines=1,
        public=(Variant("three processes, a crash, a loss", (("processes", 3), ("records", 1), ("duplicates", 0))),),
        judge=CHAIN.judge,
    ),
    Exercise(
        name="02-tcp",
        notebook=NOTEBOOK,
        title="does TCP take care of it?",
        kind=Kind.EXPLAIN,
        level=Level.EASY,
        points=1,
        answer="tcp_answer",
        task="What keeps a record from counting twice when a receiver dies and is sent the record again?",
        hints=(
            "What does each of the four know after a crash?",
            'Play lab.show("delivery.broken_connection", beside="delivery.table_in_the_store").',
        ),
        lines=1,
        public=(Variant("statements"),),
        judge=STATEMENTS.judge,
    ),
)
