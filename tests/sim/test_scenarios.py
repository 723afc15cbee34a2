"""The scenarios of every simulator: each is found by its name, plays to the same end, and can be told in words."""

import pytest

from labkit.core.errors import InvalidInput
from labkit.core.judge import Verdict
from labkit.sim.model import Mood
from labkit.sim.models import MODELS
from labkit.sim.models.two_phase_commit.state import Phase
from labkit.sim.scenarios import every, facts, find, meaning
from labkit.sim.trace import parse, replay

ALL = every()


@pytest.mark.parametrize("name", ALL)
def test_a_scenario_replays_from_its_text(name: str):
    found = find(name)
    assert found == ALL[name]
    assert found.watch_for.endswith(".")
    walked = replay(found.trace)
    again = replay(parse(str(found.trace)))
    assert again.states == walked.states
    for fact, value in facts(walked).items():
        assert isinstance(value, Verdict) or meaning(fact)


def test_a_name_that_only_one_model_has_is_enough():
    assert find("aborts alone") == find("two_phase_commit.aborts_alone")
    assert find("jump_back") == ALL["pipeline.jump_back"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("older_checkpoint", "more than one scenario 'older_checkpoint'; choose "),
        ("jump_bak", "there is no scenario 'jump_bak'; did you mean 'jump_back'?"),
        ("pipeline.jump", "did you mean 'pipeline.jump_back'?"),
    ],
)
def test_a_wrong_name_gets_one_sentence(text: str, complaint: str):
    with pytest.raises(InvalidInput, match="there is") as refused:
        find(text)
    assert complaint in str(refused.value)


@pytest.mark.parametrize(
    ("name", "accounts", "channels"),
    [
        ("copied_on_the_way", [100, 200], 0),
        ("copied_before_and_after", [200, 300], 0),
        ("markers_flow", [200, 100, 200], 100),
        ("restored_alone", None, None),
    ],
)
def test_a_bank_says_what_its_last_snapshot_holds(name: str, accounts: list[int] | None, channels: int | None):
    said = facts(replay(ALL[f"snapshot.{name}"].trace))
    assert (said["snapshot_accounts"], said["snapshot_channels"]) == (accounts, channels)


def test_stop_the_world_says_how_long_everybody_stood_still():
    stopped = [name for name in MODELS["snapshot"].scenarios if "stop" in name or "world" in name]
    assert stopped
    counts = [facts(replay(ALL[f"snapshot.{name}"].trace))["stood_still_steps"] for name in stopped]
    assert max(count for count in counts if isinstance(count, int)) > 0


BROKEN = {
    "aborts_alone": {"atomic", "promise"},
    "coordinator_gone": {"nobody_blocked"},
    "early_commit": {"atomic"},
    "forgotten_decision": {"atomic", "final", "promise"},
    "forgotten_vote": {"atomic", "promise"},
}


@pytest.mark.parametrize("name", MODELS["two_phase_commit"].scenarios)
def test_two_phase_commit_ends_as_its_scenario_says(name: str):
    """Only who waits for ever or leaves a rule out breaks a claim; where nothing is broken, the walk is at its end."""
    walked = replay(ALL[f"two_phase_commit.{name}"].trace)
    last, model = walked.state, walked.model
    broken = {
        claim.name
        for claim in model.properties()
        if claim.mood is not Mood.SOMETIMES and not claim.is_kept(last)
        if claim.mood is Mood.ALWAYS or not model.actions(last)
    }
    assert broken == BROKEN.get(name, set())
    outcomes = {participant.phase for participant in last.participants}
    if name not in BROKEN:
        aborted = ("one_says_no", "no_answer", "dies_before_deciding", "dies_before_writing", "dies_before_voting")
        assert outcomes == {Phase.ABORTED if name in aborted else Phase.COMMITTED}


def test_whoever_is_blocked_holds_its_locks_to_the_end():
    steps = facts(replay(ALL["two_phase_commit.coordinator_gone"].trace))["blocked_steps"]
    assert isinstance(steps, list)
    assert min(steps) >= 5


def test_a_wrong_name_gets_a_suggestion_of_the_shown_simulator_first():
    for text, shown, suggestion in (
        ("nonsense here", "pipeline", "labkit replay"),
        ("no_ansver", "pipeline", "did you mean 'no_answer'"),
        ("append_twise", "orders", "did you mean 'append_"),
    ):
        with pytest.raises(InvalidInput, match=suggestion):
            find(text, shown)
