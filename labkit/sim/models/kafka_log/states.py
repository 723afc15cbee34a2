"""The state after one part of it has changed: the job, the coordinator, a reader, a partition, or a budget.

A search builds a state for every step, so these build it from all its fields at once (`labkit.sim.model.from_fields`).
This module must not know which action changes what.
"""

from labkit.sim.model import crash, from_fields
from labkit.sim.models.kafka_log.parts import Coordinator, Job, Partition, Reader, Sight, Slot, State
from labkit.sim.rules import one_less

as_state = from_fields(State)


def with_job(state: State, job: Job, since: int) -> State:
    """The state with this job; `since` counts the ticks since its last checkpoint was triggered, or since it
    is down.
    """
    return as_state((job, *state[1:8], since, state.failures))


def with_coordinator(state: State, coordinator: Coordinator) -> State:
    """The state with this coordinator."""
    return as_state((*state[:2], coordinator, *state[3:]))


def with_reader(state: State, which: int, reader: Reader) -> State:
    """The state with this reader in the place of another."""
    at = state.readers
    readers = (*at[:which], reader, *at[which + 1 :])
    return as_state((*state[:4], readers, *state[5:]))


def with_poll(state: State, which: int, reader: Reader, sight: Sight) -> State:
    """The state with this reader, and with all that it has been handed so far."""
    at, sights = state.readers, state.sights
    readers = (*at[:which], reader, *at[which + 1 :])
    handed = (*sights[:which], sight, *sights[which + 1 :])
    return as_state((*state[:4], readers, handed, *state[6:]))


def appended(state: State, where: int, slot: Slot) -> State:
    """The state with one more slot at the end of a partition."""
    at = state.partitions
    partition: Partition = (*at[where], slot)
    partitions = (*at[:where], partition, *at[where + 1 :])
    return as_state((*state[:3], partitions, *state[4:]))


def spent(state: State, fault: str) -> State:
    """The state in which this fault may happen once less."""
    return state._replace(budget=one_less(state.budget, fault))


def failed(state: State) -> State:
    """The state after the job has failed by itself: its crash is none of those that were budgeted."""
    return with_job(state, crash(state.job), 0)._replace(failures=state.failures + 1)
