"""Whether a complete checkpoint is a consistent cut, channel by channel, and if not which record breaks it.

The reasons are sentences, empty where there is nothing to say. This module must not know how a checkpoint came about.
"""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from labkit.sim.models.barriers.parts import MISSING, Checkpoint, times, total
from labkit.sim.models.barriers.settings import Settings


class Channel(NamedTuple):
    """A channel within a checkpoint: who sends to whom; what was sent, what was received, what is held in flight."""

    sender: str
    receiver: str
    sent: int
    received: int
    flight: int


class Cuts:
    """Looks at checkpoints of one configuration, at each once."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.is_sound = cache(self._is_sound)

    def _is_sound(self, checkpoint: Checkpoint) -> bool:
        reasons = (self.incomplete, self.orphan, self.unbalanced, self.inexact)
        return not any(reason(checkpoint) for reason in reasons)

    def channels(self, checkpoint: Checkpoint) -> Iterator[Channel]:
        """Every channel. A missing part counts as an empty one, since that is what a restart would make of it."""
        chosen, states = self.settings, [max(state, 0) for state in checkpoint.states]
        for number, (reader, into) in enumerate(chosen.channels):
            flight = total(checkpoint.flight[number]) if checkpoint.flight else 0
            if reader < chosen.counts:
                sent = chosen.share(into, reader, end=checkpoint.offsets[into])
                received = states[reader] & 7 * chosen.share(into, reader)
                yield Channel(f"source {into}", f"count {reader}", sent, received, flight)
            else:
                yield Channel(f"count {into}", "the sink", states[into], states[-1] & 7 * chosen.all_for(into), flight)

    def incomplete(self, checkpoint: Checkpoint) -> str:
        """A task whose part is missing."""
        parts = checkpoint.offsets + checkpoint.states
        if MISSING not in parts:
            return ""
        task = self.settings.task(parts.index(MISSING))
        return f"checkpoint {checkpoint.id} is complete without the part of {task}, which has not acknowledged it."

    def orphan(self, checkpoint: Checkpoint) -> str:
        """A record that was received within the checkpoint and not sent within it."""
        for sender, receiver, sent, received, _ in self.channels(checkpoint):
            for record in range(len(self.settings.words)):
                if times(received, record) > times(sent, record):
                    return (
                        f"in checkpoint {checkpoint.id} {receiver} has received {self.settings.named(record)}, "
                        f"which {sender} has not sent by then."
                    )
        return ""

    def unbalanced(self, checkpoint: Checkpoint) -> str:
        """A record that was sent within the checkpoint, and was not received exactly as often or is not in flight."""
        for sender, receiver, sent, received, flight in self.channels(checkpoint):
            for record in range(len(self.settings.words)):
                surplus = times(received, record) + times(flight, record) - times(sent, record)
                if surplus:
                    complaint = "there once too often" if surplus > 0 else "neither received nor in flight"
                    return (
                        f"in checkpoint {checkpoint.id}, of what {sender} has sent to {receiver}, "
                        f"{self.settings.named(record)} is {complaint}."
                    )
        return ""

    def inexact(self, checkpoint: Checkpoint) -> str:
        """A record before the offsets that a count does not have exactly once, or one behind them that it has."""
        for count in range(self.settings.counts):
            held = sum(
                channel.flight for channel in self.channels(checkpoint) if channel.receiver == f"count {count}"
            ) + max(checkpoint.states[count], 0)
            before = [self.settings.share(source, count, end=end) for source, end in enumerate(checkpoint.offsets)]
            for record in range(len(self.settings.words)):
                should = times(sum(before), record)
                if times(held, record) != should:
                    source = record % self.settings.sources
                    return (
                        f"checkpoint {checkpoint.id} reads source {source} on at offset {checkpoint.offsets[source]}, "
                        f"and count {count} holds {self.settings.named(record)} {_often(times(held, record))}."
                    )
        return ""


def _often(count: int) -> str:
    return {0: "not at all", 1: "already", 2: "twice"}.get(count, f"{count} times")
