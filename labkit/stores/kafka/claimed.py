"""Write to a Kafka topic in transactions until another writer takes over.

This is Kafka's own way of fencing: each writer initialises the same transactional id, which raises the id's epoch, and
the broker then refuses the earlier writer. A writer never retries.
"""

from collections.abc import Callable, Sequence

from kafka import KafkaProducer
from kafka.errors import ProducerFencedError

from labkit.core.records import Observation
from labkit.stores.files import encode


def claim(address: str, topic: str) -> Callable[[Sequence[Observation]], bool]:
    """Fence every earlier writer of the topic, and return a function that writes rows in one transaction.

    `address` is the broker's host:port. The returned function returns True after the commit. It returns False if a
    later call of `claim`, in any process, has fenced this writer.
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
