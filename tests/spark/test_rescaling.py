"""A restart with another number of tasks: recovery finishes what was decided by name, however many had voted."""

import pytest
from conducted import Outcomes

from labkit.runs.scenario import plan
from labkit.spark.options import TWELVE_WORDS
from labkit.stores.contract import Handle

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HALF_COMMITTED = {"crashes": ["sink.mid_commit@0", "sink.mid_commit@1"], "records_per_batch": 4}

RUNS = {
    (4, 2): plan(sink="two_phase", input=TWELVE_WORDS, partitions=4, later_partitions=2, **HALF_COMMITTED),
    (2, 4): plan(sink="two_phase", input=TWELVE_WORDS, partitions=2, later_partitions=4, **HALF_COMMITTED),
}
"""By the numbers of tasks before the first crash and after it."""


@pytest.mark.parametrize("tasks", RUNS)
def test_recovery_finishes_what_another_number_of_tasks_prepared(tasks: tuple[int, int], outcomes: Outcomes):
    outcome = outcomes[tasks]
    assert [crash["signal"] for crash in outcome.crashes] == [9, 9]
    assert [participants(crash["recovery"]) for crash in outcome.crashes] == [(0, tasks[0]), (1, tasks[1])]
    assert outcome.verdict.guarantee == "exactly-once"
    assert outcome.to_json()["in_doubt_rows"] == 0


@pytest.mark.parametrize("tasks", RUNS)
def test_the_state_keeps_the_partitions_that_it_began_with(tasks: tuple[int, int], outcomes: Outcomes):
    outcome = outcomes[tasks]
    assert max(outcome.crashes[0]["offset_log"]) < 2, "the third batch was planned by a driver with other tasks"
    planned = (outcome.folder / "checkpoint" / "offsets" / "2").read_text(encoding="utf-8")
    assert f'"spark.sql.shuffle.partitions":"{tasks[0]}"' in planned


def participants(recovery: list[str]) -> tuple[int, int]:
    """The one batch that this recovery committed, and how many transactions it had.

    What it aborted belongs to the next batch, which begins before the notification of this one has been followed.
    """
    committed = [sentence.removeprefix("committed ") for sentence in recovery if sentence.startswith("committed ")]
    handles = [Handle.parse(sentence.split(",")[0]) for sentence in committed]
    [batch] = {handle.batch for handle in handles}
    return batch, len(handles)
