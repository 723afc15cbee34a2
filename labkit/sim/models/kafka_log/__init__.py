"""Kafka's log with transactions, written by a job with checkpoints and read at both isolation levels."""

from collections.abc import Mapping, Sequence

from labkit.core.records import History, Record
from labkit.sim.blueprint import Blueprint, Fact, play_to_the_end
from labkit.sim.models.kafka_log.claims import Judge
from labkit.sim.models.kafka_log.model import KafkaLog
from labkit.sim.models.kafka_log.scenarios import SCENARIOS
from labkit.sim.models.kafka_log.state import PARAMETERS, VERSION
from labkit.sim.walk import Replay

__all__ = ["BLUEPRINT"]


def judge_of(walk: Replay, reader: int = 0) -> Judge:
    """The judge of what a reader has in a walk through the log."""
    assert isinstance(walk.model, KafkaLog)
    return Judge(walk.model.settings, reader)


def history(walk: Replay) -> History:
    """What the first reader has handed on in a walk through the log."""
    return judge_of(walk).history(walk.state)


def expected(walk: Replay) -> Sequence[Record]:
    """What should come out of a walk through the log."""
    return judge_of(walk).expected


def facts(walk: Replay) -> Mapping[str, Fact]:
    """The judge's verdict on what the first reader has at the end."""
    return {"verdict": judge_of(walk).verdict(walk.state)}


BLUEPRINT = Blueprint(
    "kafka_log",
    VERSION,
    "A job with checkpoints writes transactions into the partitions of a log; readers see what their isolation allows.",
    PARAMETERS,
    KafkaLog,
    play_to_the_end,
    SCENARIOS,
    facts,
    history=history,
    expected=expected,
)
