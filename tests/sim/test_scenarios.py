"""The scenarios of every simulator: each is found by its name, plays to the same end, and can be told in words."""

import pytest

from labkit.errors import InvalidInput
from labkit.judge import Verdict
from labkit.sim import MODELS
from labkit.sim.scenarios import MEANING, SHELVES, every, facts, find
from labkit.sim.trace import Trace, replay

ALL = every()


def test_every_simulator_with_failures_has_scenarios():
    assert set(SHELVES) == set(MODELS) - {"two_phase_commit"}
    assert all(len(shelf.scenarios) >= 10 for shelf in SHELVES.values())


@pytest.mark.parametrize("name", ALL)
def test_a_scenario_replays_from_its_text(name: str):
    found = find(name)
    assert found == ALL[name]
    assert found.watch_for.endswith(".")
    walked = replay(found.trace)
    again = replay(Trace.parse(str(found.trace)))
    assert again.states == walked.states
    for fact, value in facts(walked).items():
        assert isinstance(value, Verdict) or fact in MEANING


def test_a_name_that_only_one_model_has_is_enough():
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
        ("money_vanishes", [100, 200], 0),
        ("money_appears", [200, 300], 0),
        ("markers_flow", [200, 100, 200], 100),
        ("went_back_alone", None, None),
    ],
)
def test_a_bank_says_what_its_last_snapshot_holds(name: str, accounts: list[int] | None, channels: int | None):
    said = facts(replay(ALL[f"snapshot.{name}"].trace))
    assert (said["snapshot_accounts"], said["snapshot_channels"]) == (accounts, channels)


def test_stop_the_world_says_how_long_everybody_stood_still():
    stopped = [name for name in SHELVES["snapshot"].scenarios if "stop" in name or "world" in name]
    assert stopped
    counts = [facts(replay(ALL[f"snapshot.{name}"].trace))["stood_still_steps"] for name in stopped]
    assert max(count for count in counts if isinstance(count, int)) > 0
