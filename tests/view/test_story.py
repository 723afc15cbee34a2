"""What the player is given: verdicts step by step, sizes, determinism; and a session's branches, undo and redo."""

import json
import random
from dataclasses import replace

import pytest

from labkit.core.errors import InvalidAction, InvalidInput
from labkit.sim.explore import walk
from labkit.sim.scenarios import find
from labkit.sim.trace import Replay, make, parse, replay
from labkit.view.narration import BROKEN, FAULT_KEYS, HOLDS, OPEN, Story, first_difference
from labkit.view.session import Session, session
from labkit.view.show import show
from labkit.view.spacetime import text
from labkit.view.stepper import Pair, Player, embedded, still

COMMIT = "start.read-0.read-1.hear-0.hear-1.decide_commit.announce.read-0.read-1"
LARGEST = {
    "delivery": {"processes": 5, "records": 5, "window": 3, "crashes": 3, "drops": 3, "duplicates": 3, "delays": 3}
}
LARGEST |= {"barriers": {"words": "-".join(["hello", "world", "again"] * 2 + ["hello"]), "sources": 3, "counts": 3}}
LARGEST["barriers"] |= {"checkpoints": 4, "crashes": 3, "expiries": 3, "retained": 3}
LARGEST |= {"two_phase_commit": {"participants": 8, "crashes": 3, "losses": 3}}


def story(text_of_trace):
    return Story(replay(parse(text_of_trace)))


def by_claim(told):
    names = [claim.name for claim in told.model.properties()]
    return [dict(zip(names, verdicts, strict=True)) for verdicts in told.verdicts]


def test_a_broken_claim_stays_broken_and_says_since_when_and_by_whom():
    told = by_claim(
        story(f"two_phase_commit~1~broken.heuristic~~{COMMIT.replace('.announce', '.abort_alone-0.announce')}")
    )
    assert [step["promise"].outcome for step in told] == [HOLDS] * 7 + [BROKEN] * 4
    assert told[-1]["promise"].because.startswith("Since step 7: participant 0 had voted yes and has aborted")
    assert told[-1]["atomic"].outcome == BROKEN
    assert told[9]["atomic"].outcome == HOLDS


def test_what_must_be_reached_is_open_until_it_is():
    told = by_claim(story(f"two_phase_commit~1~~{COMMIT}"))
    assert told[8]["all_commit"].outcome == OPEN
    assert told[9]["all_commit"] == (HOLDS, "Reached in step 9.")
    assert told[9]["all_abort"].outcome == OPEN


def test_claims_about_the_end_are_judged_at_the_end_alone():
    found = find("pipeline.append_twice").trace
    told = by_claim(Story(replay(found)))
    assert {step["no_duplicate"].outcome for step in told[:-1]} == {OPEN}
    assert told[-1]["no_duplicate"].outcome == BROKEN
    assert told[-1]["ends"].outcome == HOLDS


def test_the_player_is_the_same_every_time_and_its_id_with_it():
    trace = find("pipeline.jump_back").trace
    one, other = Player(trace).html(), Player(trace).html()
    assert one == other
    assert one.count("data-lk=") == 2  # the element, and the module's selector
    assert Player(find("pipeline.marker").trace).html().partition(">")[0] != one.partition(">")[0]


def test_the_player_names_no_other_host_and_nothing_ends_its_data_early():
    html = Player(find("pipeline.jump_back").trace).html()
    assert html.replace("http://www.w3.org/2000/svg", "").count("://") == 0
    assert embedded({"a": "</script><b>"}) == '{"a":"\\u003c/script>\\u003cb>"}'
    data = html.split('<script type="application/json">')[1].split("</script>")[0]
    assert "<" not in data
    assert json.loads(data)["steps"][1]["a"] == "start(1)"


def test_what_is_left_without_scripts_is_a_picture_and_a_sentence():
    html = Player(find("pipeline.jump_back").trace).html()
    assert '<img src="data:image/svg+xml;base64,' in html
    assert "pipeline, after step 17: The query has ended." in html


def long_walk(name):
    """Up to 300 steps of the largest scene: the longest of twenty walks by chance, or one that goes round and round."""
    model = make(name, LARGEST[name])
    if name == "two_phase_commit":
        chance, going = random.Random(1), Replay(model)
        while len(going.actions) < 300:
            enabled = [each for each in model.actions(going.state) if each.name in ("start", "read", "hear", "inquire")]
            going.forward(chance.choice([each for each in enabled if each.which != 7]))
        return going.trace
    walks = (walk(model, random.Random(seed).randrange, 300)[0] for seed in range(20))
    return max(walks, key=lambda each: len(each.actions))


@pytest.mark.parametrize("name", LARGEST)
def test_three_hundred_steps_stay_under_a_megabyte(name):
    longest = long_walk(name)
    size, steps = len(Player(longest).html().encode()), len(longest.actions)
    assert steps >= 100
    assert size * 300 / steps < 1_000_000, (size, steps)


def test_the_text_form_says_what_was_sent_got_and_lost():
    lines = text(story("two_phase_commit~1~~start.read-0.lose_inward-0.crash-1").diagram()).splitlines()
    assert lines[1].endswith("[sent prepare to participant 0; sent prepare to participant 1]")
    assert lines[2].endswith("[got prepare of coordinator, step 1; sent yes to coordinator]")
    assert "DROP: " in lines[3]
    assert lines[3].endswith("[lost yes of participant 0, step 2]")
    assert "CRASH: Participant 1 dies" in lines[4]


def test_a_still_marks_what_has_changed():
    told = story("two_phase_commit~1~~start.read-0")
    assert still(told, 0).count('class="now"') == 0
    assert still(told, 2).count('class="now"') == 3  # the participant and its two queues


def test_two_runs_part_where_they_first_differ():
    left, right = (find("pipeline.commit_then_decide").trace, find("pipeline.decide_then_commit").trace)
    pair = show(left, right)
    assert isinstance(pair, Pair)
    assert pair.differs_at == first_difference(pair.left.story, pair.right.story)
    assert pair.sentence.startswith(f"The first difference is in step {pair.differs_at}. Left: ")
    same = show(left, left)
    assert isinstance(same, Pair)
    assert same.sentence == "The two runs do not differ."
    shorter = replace(left, actions=left.actions[:4])
    assert Pair(Player(left), Player(shorter)).differs_at == 5


def test_show_takes_a_name_and_a_trace_and_refuses_the_rest():
    shown = show("pipeline.jump_back")
    assert isinstance(shown, Player)
    assert str(show(str(shown.story.trace))).splitlines()[2:] == str(shown).splitlines()[3:]
    assert "watch for: hello is seen at 2" in str(shown)
    with pytest.raises(InvalidInput, match=r"did you mean .pipeline.jump_back."):
        show("pipeline.jump_bakc")
    with pytest.raises(InvalidInput, match="not a complete trace"):
        show("two_phase_commit~1~start")
    with pytest.raises(InvalidAction, match="step 2 of the trace"):
        show("two_phase_commit~1~~start.announce")


# Sessions.


def test_a_choice_at_an_earlier_step_branches_and_undo_brings_the_old_run_back():
    going = session("two_phase_commit~1~~start.read-0.read-1")
    going.do("crash(1)", at=1)
    assert str(going.trace) == "two_phase_commit~1~~start.crash-1"
    going.undo()
    assert str(going.trace) == "two_phase_commit~1~~start.read-0.read-1"
    assert going.at == 1
    going.redo()
    assert str(going.trace) == "two_phase_commit~1~~start.crash-1"
    assert going.at == 2


def test_the_step_that_was_taken_anyway_is_no_branch():
    going = session("two_phase_commit~1~~start.read-0.read-1")
    going.do("read(0)", at=1)
    assert len(going.trace.actions) == 3
    assert going.at == 2
    with pytest.raises(InvalidAction, match="nothing to undo"):
        going.undo()


def test_a_new_choice_forgets_what_was_undone():
    going = Session.of("two_phase_commit")
    going.do("start")
    going.undo()
    going.do("crash_coordinator")
    with pytest.raises(InvalidAction, match="nothing to redo"):
        going.redo()


def test_what_is_not_enabled_is_refused_and_changes_nothing():
    going = session("two_phase_commit~1~~start.read-0")
    with pytest.raises(InvalidAction, match="announce is not enabled"):
        going.do("announce")
    with pytest.raises(InvalidAction, match="There is no step 9"):
        going.go(9)
    with pytest.raises(InvalidInput, match="is not an action"):
        going.do("<script>")
    with pytest.raises(InvalidInput, match="this is neither a trace nor a scenario: there is no scenario 'hello'; "):
        going.open("hello")
    assert str(going.trace) == "two_phase_commit~1~~start.read-0"


def test_a_session_is_as_good_as_a_replay_whatever_was_chosen():
    chance, going = random.Random(5), Session.of("pipeline", lost_notices=1, expiries=1)
    for _ in range(80):
        if going.enabled:
            going.do(chance.choice(going.enabled))
        if chance.random() < 0.3:
            going.go(chance.randrange(len(going.story.actions) + 1))
        if chance.random() < 0.2 and len(going.story.actions) > 1:
            going.undo()
        assert going.story.scenes == Story(replay(going.trace)).scenes


def test_one_run_is_kept_beside_the_next():
    going = session("two_phase_commit~1~~start.read-0")
    going.keep()
    assert going.differs_at == 0
    going.do("crash(0)", at=1)
    assert going.differs_at == 2
    going.keep()
    assert going.kept is None


def test_scenarios_come_with_what_to_watch_for():
    going = Session.of("pipeline")
    assert going.scenarios["jump_back"].startswith("hello is seen at 2")
    going.scenario("jump_back")
    assert (going.at, going.story.watch_for) == (0, going.scenarios["jump_back"])
    with pytest.raises(InvalidInput, match="did you mean"):
        going.scenario("jump_bak")
    going.open("coordinator_gone")
    assert going.trace.model == "two_phase_commit"
    assert "coordinator_gone" in going.scenarios
    going.undo()
    assert going.trace.model == "pipeline"


def test_every_fault_has_a_key_of_its_own():
    assert len(set(FAULT_KEYS.values())) == len(FAULT_KEYS)
