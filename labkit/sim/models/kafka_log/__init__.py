"""The simulator of Kafka's log: a checkpointing job writes transactions, and readers read at both isolation levels."""

from collections.abc import Mapping, Sequence

from labkit.core.records import History, Record
from labkit.sim.blueprint import Blueprint, Fact, play_to_the_end, scenarios_of
from labkit.sim.models.kafka_log.claims import Judge
from labkit.sim.models.kafka_log.model import KafkaLog
from labkit.sim.tasks import tasks_of
from labkit.sim.walk import Replay

__all__ = ["BLUEPRINT"]


def judge_of(walk: Replay) -> Judge:
    """Return the judge that compares the records that the first reader receives in a run with the expected records."""
    assert isinstance(walk.model, KafkaLog)
    return Judge(walk.model.settings)


def history(walk: Replay) -> History:
    """Return the records that the first reader has received in a run, as a history for the judge."""
    return judge_of(walk).history(walk.state)


def expected(walk: Replay) -> Sequence[Record]:
    """Return the records that a reader should receive in a run."""
    return judge_of(walk).expected


def facts(walk: Replay) -> Mapping[str, Fact]:
    """Return results of a run as a mapping: only the verdict on the records that the first reader received."""
    return {"verdict": judge_of(walk).verdict(walk.state)}


BLUEPRINT = Blueprint(
    KafkaLog,
    "A job with checkpoints writes transactions into the partitions of a log; readers see what their isolation allows.",
    play_to_the_end,
    scenarios_of(__name__),
    facts,
    history=history,
    expected=expected,
    tasks=tasks_of(__name__),
)
