"""A plain transactional writer of one topic: it claims its transactional id first, and may be refused later.

This is Kafka's own way without a handle: one id, whose epoch grows with each claim. This module must not retry.
"""

from collections.abc import Callable, Sequence

from kafka import KafkaProducer
from kafka.errors import ProducerFencedError

from labkit.core.records import Observation
from labkit.stores.files import encode


def claim(address: str, topic: str) -> Callable[[Sequence[Observation]], bool]:
    """Initialises the id of a topic's writer; gives the function that writes rows in one transaction.

    That gives False where the broker refuses, since somebody has claimed the id meanwhile.
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
