"""Kafka's log: known counts, rules that are missed when they are broken, three timeouts that must fit, scenarios."""

from functools import partial

import pytest
from cases_kafka_log import COMMITTED
from hypothesis import given, settings
from hypothesis import strategies as st
from model_cases import searched_once

from labkit.core.judge import Guarantee, Outcome, Verdict
from labkit.sim.model import Action
from labkit.sim.models.kafka_log import BLUEPRINT
from labkit.sim.models.kafka_log import coordinator as kafka
from labkit.sim.models.kafka_log.claims import Judge
from labkit.sim.models.kafka_log.model import KafkaLog
from labkit.sim.models.kafka_log.state import (
    ABORT,
    COMMIT,
    PLAIN,
    Coordinator,
    Entry,
    Fate,
    Handle,
    Partition,
    Phase,
    Slot,
    Stage,
    State,
    fates,
    last_stable_offset,
    open_epoch,
)
from labkit.sim.models.kafka_log.timeouts import longest_open
from labkit.sim.trace import Replay, Trace, make, replay

trace_of = BLUEPRINT.trace_of

play = BLUEPRINT.play


def verdict(walk: Replay, reader: int = 0) -> Verdict:
    return Judge(walk.model.settings, reader).verdict(walk.state)


def build(**given_values: object) -> KafkaLog:
    return make("kafka_log", given_values)


explored = partial(searched_once, "kafka_log")


def test_the_job_that_meets_the_same_error_again_does_not_end():
    found = explored(**COMMITTED, ticks=1, crashes=0, refused="raise")
    assert found.violations[0].because == "the job has failed 2 times, and would fail again."


def test_a_commit_that_is_repeated_at_the_restart_hits_the_next_transaction_of_a_reused_id():
    """Without any retry: the handle in the checkpoint names the id and epoch under which the next one is open."""
    found = explored(**COMMITTED, naming="one")
    [twice] = [violation for violation in found.violations if violation.property == "no_duplicate"]
    names = [str(action) for action in twice.trace.actions]
    assert names.index("write(1)") < names.index("crash") < len(names) - 1 - names[::-1].index("send_commit(0)")
    assert not explored(**COMMITTED, naming="one", protocol="v2").violations
    assert not explored(**COMMITTED).violations


FITS = [(1, 1, 0, 1), (1, 2, 0, 0), (2, 1, 0, 0), (1, 1, 1, 0), (2, 1, 1, 0), (1, 2, 1, 0)]
"""Interval, checkpoint timeout, tolerated checkpoints that expire, downtime; in ticks."""


@pytest.mark.parametrize("times", FITS, ids=str)
def test_a_timeout_must_be_longer_than_a_transaction_can_be_open(times: tuple[int, int, int, int]):
    interval, checkpoint_timeout, tolerated, downtime = times
    longest = longest_open(*times)
    shape = {"partitions": 1, "interval": interval, "checkpoint_timeout": checkpoint_timeout, "downtime": downtime}
    rest = {**COMMITTED, "lapses": tolerated, "ticks": longest + interval, "crashes": bool(downtime) + 0}
    too_short, enough = (explored(**shape, **rest, timeout=timeout) for timeout in (longest, longest + 1))
    assert [violation.property for violation in too_short.violations] == ["no_loss"]
    assert (enough.violations, enough.exhausted) == ((), True)


def test_the_sum_that_is_often_given_is_too_short_where_a_checkpoint_takes_longer_than_the_interval():
    """(Tolerated + 1) x (interval + checkpoint timeout) + downtime leaves out the checkpoint that is under way."""
    interval, checkpoint_timeout, tolerated, downtime = 1, 2, 0, 0
    said = (tolerated + 1) * (interval + checkpoint_timeout) + downtime
    shape = {"partitions": 1, "interval": interval, "checkpoint_timeout": checkpoint_timeout, "downtime": downtime}
    found = explored(**COMMITTED, **shape, crashes=0, ticks=6, timeout=said + 1)
    assert [violation.property for violation in found.violations] == ["no_loss"]
    assert longest_open(interval, checkpoint_timeout, tolerated, downtime) == said + 1


NAMED = {
    "kafka_to_kafka": (Guarantee.EXACTLY_ONCE, {}, {"precommitted_read": (0,)}),
    "dirty_read": (Guarantee.EXACTLY_ONCE, {}, {"aborted_read": (0,)}),
    "half_visible": (Guarantee.EXACTLY_ONCE, {}, {}),
    "waiting_behind": (Guarantee.EXACTLY_ONCE, {}, {"aborted_read": (0,)}),
    "commit_after_restart": (Guarantee.EXACTLY_ONCE, {}, {}),
    "initialised_first": (Guarantee.AT_MOST_ONCE, {"lost": (0,)}, {"lost": (0,), "aborted_read": (0,)}),
    "coordinator_crash": (Guarantee.EXACTLY_ONCE, {}, {}),
    "late_commit": (Guarantee.EXACTLY_ONCE, {}, {}),
    "reused_id": (Guarantee.AT_LEAST_ONCE, {"duplicate": (1,)}, {"duplicate": (1,)}),
    "reused_id_with_new_epochs": (Guarantee.EXACTLY_ONCE, {}, {"aborted_read": (1,)}),
    "zombie_fenced": (Guarantee.EXACTLY_ONCE, {}, {}),
    "zombie": (Guarantee.AT_LEAST_ONCE, {"duplicate": (0, 1)}, {"duplicate": (0, 1)}),
    "steady_traffic": (Guarantee.EXACTLY_ONCE, {}, {"aborted_read": (0,)}),
    "burst_then_silence": (Guarantee.AT_MOST_ONCE, {"lost": (0, 1)}, {"lost": (0, 1), "aborted_read": (0, 1)}),
    "just_before_the_barrier": (Guarantee.EXACTLY_ONCE, {}, {}),
    "timeout_in_a_loop": (Guarantee.AT_MOST_ONCE, {"lost": (0,)}, {"lost": (0,), "aborted_read": (0,)}),
    "expired_checkpoint": (Guarantee.EXACTLY_ONCE, {}, {}),
    "older_checkpoint": (Guarantee.AT_LEAST_ONCE, {"duplicate": (0,)}, {"duplicate": (0,)}),
    "reader_crash": (Guarantee.AT_LEAST_ONCE, {"duplicate": (0,)}, {}),
}
"""The guarantee for the first reader, and what goes wrong for it and for the reader at read_uncommitted."""

ANOMALIES = ("lost", "duplicate", "aborted_read", "precommitted_read", "unseen", "unexpected")


@pytest.mark.parametrize("name", {**BLUEPRINT.scenarios, **NAMED})
def test_a_scenario_shows_what_it_promises(name: str):
    guarantee, *anomalies = NAMED[name]
    walked = replay(trace_of(name))
    assert verdict(walked).guarantee == guarantee
    for reader in range(len(walked.model.settings.readers)):
        found = verdict(walked, reader)
        assert {each: getattr(found, each) for each in ANOMALIES if getattr(found, each)} == anomalies[reader]
    assert all(step in map(str, walked.actions) for step in BLUEPRINT.scenarios[name].script.split())


def states_of(name: str) -> list[State]:
    return replay(trace_of(name)).states


def test_the_scenarios_show_on_the_way_what_they_say():
    def shown(name: str, claim: str) -> bool:
        walked = replay(trace_of(name))
        [found] = [each for each in walked.model.properties() if each.name == claim]
        return any(map(found.holds, walked.states))

    assert shown("half_visible", "half_visible")
    assert not shown("commit_after_restart", "half_visible")
    assert shown("waiting_behind", "waits")
    assert max(state.failures for state in states_of("steady_traffic")) == 1
    assert states_of("timeout_in_a_loop")[-1].job.phase is Phase.DOWN
    repeated = [slot for slot in states_of("half_visible")[-1].partitions[0] if slot.record == COMMIT]
    assert len(repeated) == 2, "a coordinator that has forgotten which markers are written writes them again"


def test_markers_take_positions_and_the_order_is_that_of_the_log():
    state = states_of("kafka_to_kafka")[-1]
    assert [slot.record for slot in state.partitions[0]] == [0, 1, COMMIT, COMMIT]
    assert state.readers[0].positions == (4,)


def test_an_open_transaction_is_no_loss_but_unknown():
    """An empty topic is not yet a lost record: the last stable offset hides it."""
    walked = replay(Trace.of(build(), [Action.parse(each) for each in ("begin(0)", "write(0)", "write(1)", "crash")]))
    found = Judge(walked.model.settings).verdict(walked.state)
    assert (found.properties["no_loss"], found.unseen) == (Outcome.UNKNOWN, (0, 1))


# What a partition shows, told a second time.


slots = st.lists(st.tuples(st.sampled_from([COMMIT, ABORT, 0, 1, 2]), st.sampled_from([PLAIN, 0, 1])), max_size=9)


def partition_of(pairs: list[tuple[int, int]]) -> Partition:
    return tuple(Slot(record, name, 0) for record, name in pairs if name != PLAIN or record >= 0)


@settings(max_examples=200)
@given(slots)
def test_fates_and_the_last_stable_offset_are_what_a_broker_counts_forwards(pairs: list[tuple[int, int]]):
    partition = partition_of(pairs)
    first_open: dict[int, int] = {}
    told: list[Fate | None] = []
    for position, slot in enumerate(partition):
        if slot.record < 0:
            told.append(None)
            start = first_open.pop(slot.name, position)
            for earlier in range(start, position):
                if partition[earlier].name == slot.name and told[earlier] is Fate.OPEN:
                    told[earlier] = Fate.COMMITTED if slot.record == COMMIT else Fate.ABORTED
        elif slot.name == PLAIN:
            told.append(Fate.COMMITTED)
        else:
            first_open.setdefault(slot.name, position)
            told.append(Fate.OPEN)
    assert fates(partition) == tuple(told)
    assert last_stable_offset(partition) == min(first_open.values(), default=len(partition))
    for name in (0, 1):
        assert (open_epoch(partition, name) >= 0) == (name in first_open)


# The coordinator's answers, as Kafka gives them (protocols of version 1 and 2).


ANSWERS = [
    (False, Stage.ONGOING, 4, 4, kafka.Answer.DONE),
    (False, Stage.ONGOING, 4, 3, kafka.Answer.REFUSED),
    (False, Stage.COMPLETE_COMMIT, 4, 4, kafka.Answer.DONE),
    (False, Stage.COMPLETE_COMMIT, 5, 4, kafka.Answer.REFUSED),
    (False, Stage.COMPLETE_ABORT, 4, 4, kafka.Answer.REFUSED),
    (False, Stage.COMPLETE_ABORT, 5, 4, kafka.Answer.REFUSED),
    (False, Stage.EMPTY, 4, 4, kafka.Answer.REFUSED),
    (True, Stage.ONGOING, 4, 4, kafka.Answer.DONE),
    (True, Stage.ONGOING, 5, 4, kafka.Answer.REFUSED),
    (True, Stage.COMPLETE_COMMIT, 5, 4, kafka.Answer.DONE),
    (True, Stage.COMPLETE_COMMIT, 5, 5, kafka.Answer.REFUSED),
    (True, Stage.COMPLETE_ABORT, 5, 4, kafka.Answer.REFUSED),
]


@pytest.mark.parametrize(("newer", "stage", "epoch", "held", "answer"), ANSWERS)
def test_a_commit_is_answered_by_stage_and_epoch(newer: bool, stage: Stage, epoch: int, held: int, answer: str):
    before = Coordinator((Entry(stage, epoch, 1),), is_up=True)
    after, given_answer = kafka.end(kafka.Rules(bumps_epoch=newer), before, Handle(0, held))
    assert given_answer is answer
    decided = stage is Stage.ONGOING and answer is kafka.Answer.DONE
    assert after == (before if not decided else Coordinator((Entry(Stage.PREPARE_COMMIT, epoch + newer, 1),), True))


def test_initialising_an_open_id_aborts_it_and_raises_the_epoch_by_two():
    coordinator = Coordinator((Entry(Stage.ONGOING, 4, 1),), is_up=True)
    coordinator = kafka.initialise(coordinator, 0)
    assert coordinator.log[0] == Entry(Stage.PREPARE_ABORT, 5, 1)
    coordinator = kafka.initialise(kafka.note_marker(coordinator, 0, 0), 0)
    assert coordinator.log[0] == Entry(Stage.EMPTY, 6)


def test_a_partition_takes_no_record_of_a_transaction_that_was_ended_behind_its_producer():
    """The producer has added the partition and does not ask again; the broker looks (KIP-890, first part)."""
    steps = (
        *("begin(0)", "write(0)", "pre_commit(0)", "complete(0)", "send_commit(0)", "resend(0)", "deliver(0)"),
        *("mark(0)", "write(1)", "deliver(0)", "mark(0)", "write(2)"),
    )
    walked = play_some(*steps, naming="one", retries=1, records=3, partitions=1)
    assert (walked.state.job.phase, walked.state.failures) == (Phase.DOWN, 1)
    assert [slot.record for slot in walked.state.partitions[0]] == [0, COMMIT, 1, COMMIT]


def test_the_clock_starts_with_the_first_write_and_the_timeout_is_no_sooner():
    walked = play_some("begin(0)", ticks=3, timeout=2, partitions=1)
    assert "tick" not in names(walked), "an id that is only initialised has no clock"
    for step, age in (("write(0)", 0), ("tick", 1), ("write(1)", 1), ("pre_commit(0)", 1), ("tick", 2)):
        assert "expire(0)" not in names(walked)
        walked.forward(Action.parse(step))
        assert walked.state.coordinator.log[0].age == age
    assert "expire(0)" in names(walked), "sealed is not decided: the clock goes on"
    walked.forward(Action("expire", 0))
    assert walked.state.coordinator.log[0] == Entry(Stage.PREPARE_ABORT, 1, 1)


def play_some(*steps: str, **given_values: object):
    return replay(Trace.of(build(**given_values), [Action.parse(each) for each in steps]))


def names(walked) -> list[str]:
    return [str(action) for action in walked.model.actions(walked.state)]


def test_a_key_goes_back_where_a_replay_shows_more_than_one_record():
    found = explored(**COMMITTED, partitions=1, rollbacks=1)
    assert "no_regression" in {violation.property for violation in found.violations}


@pytest.mark.parametrize(
    ("scenario", "part"),
    [
        ("steady_traffic", "Record 1 is refused, and the job ends with this error"),
        ("zombie_fenced", "tries to write record 0 and is refused"),
        ("timeout_in_a_loop", "nothing is open under its epoch; the job ends with this error."),
        ("burst_then_silence", "nothing is open under its epoch; the sender logs the error"),
        ("late_commit", "a commit that it has already made, so nothing changes."),
    ],
)
def test_a_step_that_is_refused_says_so(scenario, part):
    assert any(part in said for said in replay(trace_of(scenario)).sentences())
