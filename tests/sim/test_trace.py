"""Traces: short text and plain data, replayed to the same states anywhere; strangers' traces end in one sentence."""

import time

import pytest

from labkit.core.errors import InvalidAction, InvalidInput
from labkit.sim.model import Action
from labkit.sim.models import MODELS
from labkit.sim.open_models import OPEN_MODELS
from labkit.sim.trace import MAX_ACTIONS, MAX_TEXT, Replay, make, parse, replay, trace_from_json


def test_the_text_is_short_and_fit_for_an_address():
    trace = "two_phase_commit~1~participants.3~broken.early~~start.read-0.hear-0.decide_commit"
    assert str(parse(trace)) == trace
    assert set(trace) <= set("abcdefghijklmnopqrstuvwxyz0123456789-._~")


BAD = {
    "": "'' is not a complete trace",
    "two_phase_commit": "is not a complete trace",
    "two_phase_commit~1~participants.2": "is not a complete trace",
    "two_phase_commit~x~~start": "is not a complete trace",
    "two_phase_comit~1~~start": "there is no simulator 'two_phase_comit'; did you mean 'two_phase_commit'?",
    "two_phase_commit~2~~start": "version 2 of two_phase_commit",
    "two_phase_commit~1~participant.2~~start": "has no parameter 'participant'; did you mean 'participants'?",
    "two_phase_commit~1~participants.99~~start": "participants=99: choose a whole number from 1 to 8.",
    "two_phase_commit~1~textbook.yes~~start": "textbook=yes: choose true or false.",
    "two_phase_commit~1~broken.erly~~start": "broken=erly: unknown; did you mean 'early'?",
    "two_phase_commit~1~participants~~start": "'participants' in the trace is not a parameter",
    "two_phase_commit~1~~start.re": "step 2 of the trace: re is not enabled in this state: coordinator waiting (log",
    "two_phase_commit~1~~start.read(0)": "'read(0)' in the trace is not an action",
    "two_phase_commit~1~~start.": "'' in the trace is not an action",
    "two_phase_commit~1~~start.read-9": "step 2 of the trace: read(9) is not enabled",
}


@pytest.mark.parametrize("text", BAD, ids=lambda text: text[:60])
def test_a_bad_trace_gets_one_sentence(text: str):
    with pytest.raises((InvalidInput, InvalidAction)) as error:
        replay(parse(text))
    assert BAD[text] in str(error.value)
    assert "\n" not in str(error.value)


def test_what_is_not_enabled_is_told_with_what_is():
    with pytest.raises(
        InvalidAction, match=r"hear\(0\) is not enabled in this state: coordinator working.*\. Enabled are start, "
    ):
        Replay(make("two_phase_commit", {})).forward(Action("hear", 0))
    with pytest.raises(InvalidAction, match="no step to undo"):
        Replay(make("two_phase_commit", {})).back()


HUGE = ["x" * 10_000_000, "two_phase_commit~1~~" + "start." * 1_666_666, "~" * 10_000_000, "." * 10_000_000]


@pytest.mark.parametrize("text", HUGE, ids=["letters", "actions", "tildes", "dots"])
def test_ten_megabytes_are_refused_at_once(text: str):
    begun = time.perf_counter()
    with pytest.raises(InvalidInput, match=f"more than {MAX_TEXT}; keep only"):
        parse(text)
    assert time.perf_counter() - begun < 0.1


def test_a_million_actions_are_refused_at_once():
    with pytest.raises(InvalidInput, match=f"the trace has 1000000 actions, more than {MAX_ACTIONS}"):
        trace_from_json("two_phase_commit", 1, {}, ["start"] * 1_000_000)
    with pytest.raises(InvalidInput, match="actions, more than"):
        parse("two_phase_commit~1~~" + "a." * 50_000)


def test_a_model_is_what_its_blueprint_says():
    for blueprint in [*MODELS.values(), *OPEN_MODELS.values()]:
        model = make(blueprint.name, {})
        assert (model.name, model.version) == (blueprint.name, blueprint.version)
        assert model.parameters == blueprint.parameters
        assert dict(model.values) == {name: one.default for name, one in blueprint.parameters.items()}
        assert all(parameter.meaning.endswith(".") for parameter in blueprint.parameters.values())
