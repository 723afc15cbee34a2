"""Replays, simulated crashes and searches as notebooks call them."""

import pytest

from labkit import lab
from labkit.core.errors import InvalidInput


def test_a_replayed_scenario_has_the_judges_verdict():
    walk = lab.replay("pipeline.jump_back")
    assert walk.verdict.regression
    assert walk.watch_for
    assert "regression" in str(walk) or "back" in str(walk)
    again = lab.replay(str(walk.trace))
    assert again.verdict == walk.verdict
    assert not again.watch_for
    assert walk.verdict.guarantee == "exactly-once"


def test_a_crash_is_simulated_behind_a_source_that_forgets():
    kept, gone = (
        lab.simulate("sink.after_pre_commit", sink="two_phase", source=source) for source in ("log", "socket")
    )
    assert (kept.verdict.lost, gone.verdict.lost) == ((), (0, 1, 2))
    assert gone.walk.actions == lab.replay("pipeline.forgetful_source").walk.actions
    with pytest.raises(InvalidInput, match="there is no source 'sockte'"):
        lab.simulate(sink="append", source="sockte")


def test_a_crash_is_simulated_as_the_real_one_is_named():
    assert lab.simulate("sink.after_pre_commit", sink="append").verdict.duplicate == (0, 1, 2)
    late = {order: lab.simulate("sink.after_commit", sink="two_phase", order=order) for order in ("engine", "decision")}
    assert [walk.verdict.guarantee.value for walk in late.values()] == ["at-least-once", "exactly-once"]
    assert lab.simulate(sink="two_phase").seen == "world=1 hello=1 hello=2"
    assert [point for point in lab.points("wal") if lab.simulate(point, sink="wal").verdict.duplicate] == [
        "sink.mid_commit",
        "sink.before_confirm",
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"sink": "apend"}, "did you mean 'append'"),
        ({"sink": "append", "order": "engine"}, "order 'engine'"),
        ({"sink": "append", "at": "sink.after_commit"}, "append has no failpoint"),
        ({"sink": "append", "store": "oracle"}, "store=oracle"),
        ({"sink": "idempotent"}, "set store=sqlite"),
    ],
)
def test_what_is_not_modelled_is_refused_in_a_sentence(given, said):
    with pytest.raises(InvalidInput, match=said):
        lab.simulate(**given)


def test_a_walk_can_be_ended_early_and_says_what_may_follow():
    walk = lab.replay("pipeline.jump_back")
    died = walk.until("crash")
    assert died.enabled == ["start(2)"]
    assert walk.seen == "world=1 hello=1 hello=2 | crash 1 | world=1 hello=1 hello=2"
    assert died.seen == "world=1 hello=1 hello=2 | crash 1 |"
    assert walk.until("write(0)").trace.actions[-1].which == 0
    with pytest.raises(InvalidInput, match=r"never happens in this run; did you mean 'start\(2\)'"):
        walk.until("start(3)")
    with pytest.raises(InvalidInput, match="has no reader"):
        _ = lab.replay("barriers.source_reads_on").seen


def test_a_job_with_checkpoints_says_what_the_latest_holds():
    job = lab.replay("barriers.crash_at_the_third")
    assert job.until("complete").facts["checkpoint_offsets"] == [2]
    assert job.until("complete").facts["checkpoint_counts"] == "hello=1 world=1"
    assert (job.until("crash").facts["counts"], job.facts["counts"]) == ("-", "hello=2 world=1")
    assert "checkpoint_offsets" not in job.until("inject").facts


def test_a_model_without_rows_has_no_verdict():
    walk = lab.replay("snapshot.stopped_world")
    with pytest.raises(InvalidInput, match="snapshot"):
        _ = walk.verdict


def test_a_search_names_what_is_broken_and_shows_the_shortest_run():
    good = lab.explore("two_phase_commit", participants=2)
    assert good.exhausted
    assert not good.violated
    assert "No schedule breaks a claim." in str(good)
    with pytest.raises(InvalidInput, match="no counterexample"):
        good.counterexample()
    bad = lab.explore("two_phase_commit", participants=2, broken="forget_decision")
    claim, because = next(iter(bad.violated.items()))
    assert because
    assert f"VIOLATED {claim}" in str(bad)
    assert lab.replay(bad.counterexample(claim)).violated[claim] == because
    assert bad.counterexample() == bad.counterexample(claim)
    with pytest.raises(InvalidInput, match="is not a violated property"):
        bad.counterexample("nonsense")


def test_a_search_that_was_cut_says_so():
    assert "not all" in str(lab.explore("pipeline", max_states=50))


def test_a_guarantee_is_what_is_left_whichever_schedule_comes():
    assert lab.explore("delivery", processes=2, records=1).guarantee == "exactly-once"
    assert lab.explore("delivery", processes=2, records=1, dedup="none").guarantee == "at-least-once"
    assert lab.explore("delivery", processes=2, records=1, retry=False).guarantee == "at-most-once"
    both = lab.explore("delivery", processes=2, records=1, retry=False, dedup="none")
    assert (both.guarantee, both.broken) == ("none", "no_loss, no_duplicate")
    assert lab.explore("delivery", max_states=3).guarantee == "unknown"
    assert lab.explore("delivery", processes=2).broken == "nothing"


def test_a_model_without_rows_has_no_guarantee():
    with pytest.raises(InvalidInput, match="snapshot has no property about rows"):
        _ = lab.explore("snapshot", processes=2).guarantee


def test_a_search_says_how_it_is_repeated():
    found = lab.explore("delivery", processes=2, records=1, dedup="none")
    again = eval(found.call, {"lab": lab})
    assert (again.states, again.violated) == (found.states, found.violated)


def test_a_notebook_shows_an_error_as_its_sentence():
    with pytest.raises(InvalidInput) as refused:
        lab.replay("pipeline.jump_bak")
    [line] = refused.value._render_traceback_()
    assert line == f"InvalidInput: {refused.value}"
