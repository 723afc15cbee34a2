"""Read and set the offset that a consumer group has committed for a topic of the lab.

A job that starts from its checkpoint never asks for this offset; it serves monitoring and experiments.
"""

from kafka import TopicPartition

from labkit.stores.kafka.reader import PARTITION
from labkit.stores.kafka.topic import Topic


class Group:
    """A consumer group without members.

    Its name begins with the topic's name, so it is deleted together with the topic.
    """

    def __init__(self, topic: Topic, name: str) -> None:
        self._topic, self._name = topic, f"{topic.name()}.{name}"
        self._partition = TopicPartition(topic.name(), PARTITION)

    def offset(self) -> int | None:
        """Return the offset of the next record that the group would read; None if it has committed no offset."""
        return self._topic.coordinators.group_offsets(self._name).get(self._partition)

    def commit(self, offset: int) -> None:
        """Set the group's offset, forwards or backwards, as a member or an operator may do."""
        self._topic.coordinators.commit_offsets(self._name, {self._partition: offset})
