"""The exercises of notebook 02: a receiver that recognises repeated messages, a chain of processes, and predictions."""

from typing import Any

from labkit.sim.trace import make
from labkit.teach.exercises.closing import Run
from labkit.teach.exercises.constants import Chosen, Prediction, Settings
from labkit.teach.exercises.contract import Answer, Finding, Plain, Variant, by, variant
from labkit.teach.exercises.searching import search
from labkit.teach.study import replay


def judge_dedup(answer: Answer, variant: Variant) -> Finding:
    """Judge a learner's receiver by every schedule with one sender and crashes, if messages get lost or duplicated."""
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


JUDGES = {
    "02-predict": by(PREDICTION.judge, variant("delivery.second_of_four")),
    "02-dedup": by(
        judge_dedup,
        variant("one record, a loss, a crash", records=1, duplicates=0),
        variant("two records, doubled", records=2, drops=0, duplicates=1, crashes=1),
        variant("two under way", records=2, window=2, duplicates=0, crashes=0),
    ),
    "02-chain": by(CHAIN.judge, variant("three processes, a crash, a loss", processes=3, records=1, duplicates=0)),
}
