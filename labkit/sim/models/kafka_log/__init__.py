"""The simulator of Kafka's log: a checkpointing job writes transactions, and readers read at both isolation levels."""

from labkit.sim.blueprint import Blueprint, play_to_the_end, scenarios_of
from labkit.sim.models.kafka_log.model import KafkaLog
from labkit.sim.tasks import tasks_of
from labkit.sim.verdicts import expected_of, history_of, verdict_as_fact

BLUEPRINT = Blueprint(
    KafkaLog,
    "A job with checkpoints writes transactions into the partitions of a log; readers see what their isolation allows.",
    play_to_the_end,
    scenarios_of(__name__),
    verdict_as_fact,
    history=history_of,
    expected=expected_of,
    tasks=tasks_of(__name__),
)
