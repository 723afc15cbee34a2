"""The three timeouts of Kafka transactions in a notebook: examined on paper, and tried on a broker."""

from labkit.core.asked import takes
from labkit.core.errors import InvalidInput
from labkit.core.words import nearest
from labkit.sim.models.kafka_log.timeouts import Examination, Timeouts
from labkit.sim.models.kafka_log.timeouts import examine as examine_timeouts
from labkit.teach.cards import Examined, Trials


@takes("lab.timeouts(interval=10, checkpoint=5, transaction=60)")
def timeouts(**seconds: float) -> Examination:
    """Whether a job that commits Kafka transactions with its checkpoints can lose data, as `labkit timeouts` says it.

    `interval`, `checkpoint` and `transaction` are needed; `maximum`, `pause`, `tolerated` and `downtime` may be given.
    Raises `InvalidInput`.
    """
    known = Timeouts._fields
    if missing := [name for name in known[:3] if name not in seconds]:
        raise InvalidInput(f"lab.timeouts() needs {', '.join(missing)}, in seconds.")
    if unknown := [name for name in seconds if name not in known]:
        raise InvalidInput(f"lab.timeouts() knows no {unknown[0][:40]}; {nearest(unknown[0][:40], list(known))}")
    tolerated = int(seconds.pop("tolerated", 0))
    return Examined(*examine_timeouts(Timeouts(**seconds, tolerated=tolerated)))


@takes("lab.try_timeouts(interval=6, transaction=3)")
def try_timeouts(interval: float, transaction: float) -> Trials:
    """Runs one checkpoint interval on the Kafka broker with steady traffic, a burst, and records just before its end.

    Both in seconds, and really waited for. Raises `ServiceUnavailable` without a broker.
    """
    from labkit.stores.kafka import timeouts as broker

    return Trials(broker.try_timeouts(interval, transaction))
