"""A plain transactional writer of one topic, which claims its transactional id first and may be fenced later.

This is Kafka's own way of fencing: one id, whose epoch grows with each claim, so an earlier owner is refused. The
writer never retries.
"""

from collections.abc import Callable, Sequence

from kafka import KafkaProducer
from kafka.errors import ProducerFencedError

from labkit.core.records import Observation
from labkit.stores.files import encode


def claim(address: str, topic: str) -> Callable[[Sequence[Observation]], bool]:
    """Initialise the transactional id of a topic's writer and return a function that writes rows in one transaction.

    That function returns True if the transaction committed, and False if the broker refuses it because somebody else
    has claimed the id since.
    """
    producer = KafkaProducer(bootstrap_servers=address, transactional_id=f"{topic}.writer")
    producer.init_transactions()

    def write(rows: Sequence[Observation]) -> bool:
        try:
            producer.begin_transaction()
            for row in rows:
                producer.send(topic, encode(row), partition=0)
            producer.commit_transaction()
        except ProducerFencedError:
            return False
        return True

    return write
