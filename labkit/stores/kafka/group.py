"""Read and set the offset that a consumer group has committed for a topic of the lab.

A job that starts from its checkpoint never asks for this offset; it serves monitoring and experiments.
"""

from kafka import TopicPartition

from labkit.stores.kafka.reader import PARTITION
from labkit.stores.kafka.topic import Topic


class Group:
    """A Kafka consumer group without members, whose committed offset for a topic can be read and set. Its name
    begins with the topic's name, so it is deleted together with the topic.
    """

    def __init__(self, topic: Topic, name: str) -> None:
        self._topic, self._name = topic, f"{topic.name()}.{name}"
        self._partition = TopicPartition(topic.name(), PARTITION)

    def offset(self) -> int | None:
        """Return the group's committed offset, which is the next record to read; None if it has committed none."""
        return self._topic.coordinators.group_offsets(self._name).get(self._partition)

    def commit(self, offset: int) -> None:
        """Commit this offset for the group; it may be smaller than the present one."""
        self._topic.coordinators.commit_offsets(self._name, {self._partition: offset})
