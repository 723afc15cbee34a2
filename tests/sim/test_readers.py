"""What readers of a walk went through, in steps: by scenarios whose steps can be counted, and for every scenario."""

import json

import pytest

from labkit.cli.replay import replay as step_through
from labkit.core.exposure import KeyExposure, Span
from labkit.core.judge import Guarantee, Outcome
from labkit.core.verdict import LISTS
from labkit.sim.readers import reader_account
from labkit.sim.scenarios import every
from labkit.sim.trace import blueprint, replay
from labkit.teach.results import Walk
from labkit.teach.study import simulate

TOLD = [name for name, found in every().items() if found.model in ("pipeline", "kafka_log")]


def walk_of(name: str) -> Walk:
    return Walk(replay(every()[name].trace))


@pytest.mark.parametrize("name", TOLD)
def test_every_scenario_with_a_reader_is_told_as_the_judge_judges_it(name: str) -> None:
    walk = walk_of(name)
    found = walk.reader_account
    clean = walk.verdict.guarantee is Guarantee.EXACTLY_ONCE and not any(
        getattr(walk.verdict, anomaly) for anomaly in LISTS
    )
    assert (found.explanation.exists is Outcome.HOLDS) == clean
    steps = len(walk.walk.actions)
    for key in found.exposure.keys.values():
        assert 0 <= key.wrong.most <= steps
        if clean:
            assert key.wrong == Span(0, 0)
    wrong = any(key.lasts for key in found.exposure.keys.values())
    assert wrong <= bool(walk.verdict.duplicate or walk.verdict.lost or walk.verdict.unexpected)


def test_a_jump_back_is_wrong_from_the_older_value_to_the_newest() -> None:
    walk = walk_of("pipeline.jump_back")
    seen = [len(state.seen) for state in walk.walk.states]
    rows = [row.offset for row in walk.state.seen]
    back = rows.index(0, rows.index(-1))  # behind the crash, which is an entry of its own
    newest = rows.index(2, back)
    steps = [next(n for n, size in enumerate(seen) if size > at) for at in (back, newest)]
    assert walk.exposure.keys["hello"].wrong == Span.exactly(steps[1] - steps[0])
    assert walk.explanation.at == f"at step {steps[0]}"


def test_two_phase_commit_holds_back_what_append_shows_twice() -> None:
    point = "sink.after_pre_commit"
    append, held = simulate(point, sink="append"), simulate(point, sink="two_phase")
    of_append, of_two_phase = append.exposure.keys["hello"], held.exposure.keys["hello"]
    assert of_append.wrong.least > 0
    assert (of_append.lasts, of_append.held) == (True, Span(0, 0))
    assert of_two_phase.wrong == Span(0, 0)
    assert of_two_phase.held.least > 0


def test_rows_that_are_taken_back_were_wrong_while_they_were_there() -> None:
    walk = walk_of("pipeline.raw_table")
    aborted = {walk.verdict.witnesses["aborted_read"][0].key}
    assert aborted
    for key in aborted:
        found = walk.exposure.keys[key]
        assert found.wrong.least > 0
        assert not found.lasts


def test_a_log_of_the_sink_holds_back_for_nobody_knows_how_long() -> None:
    assert simulate("sink.mid_commit", sink="wal").exposure.keys["hello"].held is None


def test_a_model_without_a_reader_has_nothing_to_say() -> None:
    walk = replay(every()["two_phase_commit.nothing_fails"].trace)
    assert reader_account(blueprint("two_phase_commit"), walk) is None


def test_the_command_line_says_both(capsys: pytest.CaptureFixture[str]) -> None:
    step_through("pipeline.append_twice", as_json=False)
    out = capsys.readouterr().out
    assert "\nbreaks                a failure-free run gives the first 3 rows" in out
    assert "\nwrong                 a reader of" in out
    assert "steps up to the end; right values of it were held back for 0 steps" in out
    step_through("pipeline.append_twice", as_json=True)
    plain = json.loads(capsys.readouterr().out)
    assert plain["explanation"]["failure_free_run"] == "violated"
    assert plain["exposure"]["unit"] == "steps"


def test_one_step_is_one_step() -> None:
    walk = walk_of("pipeline.jump_back")
    assert walk.exposure.keys["hello"] == KeyExposure(Span(1, 1), Span(0, 0))
    assert "for 1 step;" in walk.exposure.sentence()
    assert f"wrong: {walk.exposure.sentence()}" in str(walk)
