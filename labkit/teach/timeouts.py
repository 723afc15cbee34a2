"""The functions of `lab` on the timeouts of Kafka transactions: calculate whether they fit together, or try them."""

from labkit.core.arguments import takes
from labkit.core.errors import InvalidInput
from labkit.core.words import nearest
from labkit.sim.models.kafka_log.timeouts import Examination, Timeouts
from labkit.sim.models.kafka_log.timeouts import examine as examine_timeouts
from labkit.teach.cards import Examined, Trials


@takes("lab.timeouts(interval=10, checkpoint=5, transaction=60)")
def timeouts(**seconds: float) -> Examination:
    """Calculate whether a job that commits Kafka transactions with its checkpoints can lose data.

    Returns a card, like `labkit timeouts`. All values are seconds except `tolerated`. Required: `interval`, the time
    between two checkpoints; `checkpoint`, the timeout of a checkpoint; and `transaction`, the timeout of a
    transaction. Optional: `maximum`, the longest transaction timeout that the broker allows; `pause`, the least time
    between two checkpoints; `tolerated`, the number of checkpoints in a row that may fail; and `downtime`, the
    longest time from a crash until the restarted job has committed. Raises `InvalidInput` if a value is missing,
    unknown or out of range.
    """
    names = Timeouts._fields
    if missing := [name for name in names[:3] if name not in seconds]:
        raise InvalidInput(f"lab.timeouts() needs {', '.join(missing)}, in seconds.")
    if unknown := [name for name in seconds if name not in names]:
        raise InvalidInput(
            f"lab.timeouts() has no parameter {unknown[0][:40]}; {nearest(unknown[0][:40], list(names))}"
        )
    tolerated = int(seconds.pop("tolerated", 0))
    return Examined(*examine_timeouts(Timeouts(**seconds, tolerated=tolerated)))


@takes("lab.try_timeouts(interval=6, transaction=3)")
def try_timeouts(interval: float, transaction: float) -> Trials:
    """Run jobs that write to a real Kafka broker in transactions for one checkpoint interval; report the lost
    records.

    There are three jobs with different traffic: steady, a burst at the beginning, and records near the end.
    `interval` between checkpoints and `transaction`, the transaction timeout, are seconds of real time. Raises
    `InvalidInput` for a time out of range, and `ServiceUnavailable` without a broker.
    """
    from labkit.stores.kafka import timeouts as broker

    return Trials(broker.try_timeouts(interval, transaction))
