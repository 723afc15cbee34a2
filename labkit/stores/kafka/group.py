"""The offset that a consumer group has committed for a topic of the lab: asked for, and set to anything.

A job of the lab that starts from its checkpoint never asks for it; it is for monitoring, and for experiments. This
module must not read records.
"""

from kafka import TopicPartition

from labkit.stores.kafka.reader import PARTITION
from labkit.stores.kafka.topic import Topic


class Group:
    """One group without members; it is deleted with the topic, since its name begins with the topic's."""

    def __init__(self, topic: Topic, name: str) -> None:
        self._topic, self._name = topic, f"{topic.name()}.{name}"
        self._partition = TopicPartition(topic.name(), PARTITION)

    def offset(self) -> int | None:
        """The next record that the group would read; None if it has committed nothing."""
        return self._topic.coordinators.group_offsets(self._name).get(self._partition)

    def commit(self, offset: int) -> None:
        """Sets the offset, forwards or backwards, as a member or an operator may."""
        self._topic.coordinators.commit_offsets(self._name, {self._partition: offset})
