"""Records are plain, comparable values, and a history may be a stream that is read once."""

from dataclasses import FrozenInstanceError

import pytest

from labkit.core.records import History, Observation, PlannedBatch, Reading, Record, Visibility


def test_an_observation_is_committed_unless_told_otherwise():
    assert Observation(0, "hello", 1, 0, 1).visibility == Visibility.COMMITTED


def test_an_observation_starts_with_the_fields_of_its_record():
    assert Record(*Observation(2, "hello", 2, 0, 1)[:3]) == Record(2, "hello", 2)


def test_visibilities_are_printable_names():
    assert [str(visibility) for visibility in Visibility] == ["committed", "precommitted", "aborted"]


def test_a_history_needs_events_only():
    history = History([Reading("end")])
    assert (history.keyed, tuple(history.planned_batches), tuple(history.hidden)) == (False, (), ())


def test_a_history_takes_a_generator():
    events = (Observation(offset, "hello", offset + 1, 0, 1) for offset in range(3))
    assert [row.offset for row in History(events).events] == [0, 1, 2]


def test_a_history_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        History([]).keyed = True


def test_an_epoch_names_its_batch_and_its_half_open_range():
    assert PlannedBatch(batch=1, start=3, end=6) == (1, 3, 6)
