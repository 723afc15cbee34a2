"""The functions of `lab` about the three timeouts of Kafka transactions: calculate whether they fit, or try them."""

from labkit.core.arguments import takes
from labkit.core.errors import InvalidInput
from labkit.core.words import nearest
from labkit.sim.models.kafka_log.timeouts import Examination, Timeouts
from labkit.sim.models.kafka_log.timeouts import examine as examine_timeouts
from labkit.teach.cards import Examined, Trials


@takes("lab.timeouts(interval=10, checkpoint=5, transaction=60)")
def timeouts(**seconds: float) -> Examination:
    """Calculate whether a job that commits Kafka transactions with its checkpoints can lose data.

    `labkit timeouts` does the same. All values are seconds, except `tolerated`, a number of failed checkpoints.
    `interval`, `checkpoint` and `transaction` are required; `maximum`, `pause`, `tolerated` and `downtime` are
    optional. Raises `InvalidInput` if one is missing, unknown or out of range.
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
    """Run one checkpoint interval on a Kafka broker with steady traffic, a burst, and records near its end.

    Both arguments are seconds, and the run really takes that long. Raises `ServiceUnavailable` without a broker.
    """
    from labkit.stores.kafka import timeouts as broker

    return Trials(broker.try_timeouts(interval, transaction))
