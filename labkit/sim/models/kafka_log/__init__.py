"""Kafka's log with transactions, written by a job with checkpoints and read at both isolation levels.

`parts` are the states, `log` what a reader may see of a partition, `coordinator` who decides for Kafka, `job` what the
writing job does, `readers` who reads, `model` who acts when, `claims` what must hold, `scenarios` the runs with a name.
"""

from labkit.sim.model import Blueprint
from labkit.sim.models.kafka_log.model import KafkaLog
from labkit.sim.models.kafka_log.settings import PARAMETERS, VERSION

__all__ = ["BLUEPRINT"]

BLUEPRINT = Blueprint(
    "kafka_log",
    VERSION,
    "A job with checkpoints writes transactions into the partitions of a log; readers see what their isolation allows.",
    PARAMETERS,
    KafkaLog,
)
