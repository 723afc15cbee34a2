"""What a click asks and what comes back, without a browser: the same for a notebook's widget and a page's worker."""

import json

import pytest

from labkit.core.errors import InvalidAction
from labkit.sim.futures import Fate
from labkit.sim.models import MODELS
from labkit.sim.scenarios import find
from labkit.sim.trace import Trace, replay
from labkit.teach.export import export
from labkit.view.narration import Story
from labkit.view.presenter import Presenter, choices
from labkit.view.session import session
from labkit.view.updates import parts_of
from labkit.view.worker import Players

HEURISTIC = "two_phase_commit~1~losses.0~broken.heuristic~~start.read-0"


def presented(what: str) -> tuple[Presenter, list[dict]]:
    sent: list[dict] = []
    return Presenter(session(what), sent.append), sent


class Page:
    """A page's player: it starts with the run that the page shows, and hears every answer."""

    def __init__(self, trace: str, beside: str | None = None, at: int = 0) -> None:
        self.players = Players()
        self.heard = self.ask({"start": {"trace": trace, "watch": "it", "beside": beside, "at": at, "done": []}})

    def ask(self, message: dict) -> list[dict]:
        whole = message if "start" in message else {"message": message}
        return json.loads(self.players.answer(json.dumps({"player": "0", **whole})))


def test_parameters_change_and_the_steps_stay_as_far_as_they_are_possible():
    presenter, sent = presented(HEURISTIC)
    presenter.session.do("abort_alone(0)")
    presenter.handle({"choose": {"crashes": "2"}, "at": 3})
    assert (
        str(presenter.session.trace)
        == "two_phase_commit~1~crashes.2~losses.0~broken.heuristic~~start.read-0.abort_alone-0"
    )
    presenter.handle({"choose": {"broken": "nothing"}, "at": 3})  # without the rule nobody aborts alone
    assert str(presenter.session.trace) == "two_phase_commit~1~crashes.2~losses.0~~start.read-0"
    assert presenter.session.at == 2
    presenter.handle({"undo": True})
    assert str(presenter.session.trace).endswith("broken.heuristic~~start.read-0.abort_alone-0")
    presenter.handle({"choose": {"crashes": "9"}, "at": 0})
    assert sent[-1]["notice"] == "crashes=9: choose a whole number from 0 to 3."
    assert str(presenter.session.trace).endswith("broken.heuristic~~start.read-0.abort_alone-0")
    presenter.handle({"choose": {"crashes": "0"}, "at": 1})  # the reader has stepped back, which Python does not hear
    assert str(presenter.session.trace).endswith("broken.heuristic~~start")


def test_the_ladder_says_what_the_futures_hold_and_a_jump_goes_to_the_nearest_wrong_one():
    presenter, sent = presented(HEURISTIC)
    presenter.handle({"look": 2})
    [answer] = sent
    ladder = answer["ladder"]
    assert ladder["of"] == HEURISTIC
    rungs = {each["a"]: each for each in ladder["rungs"]}
    assert list(rungs) == presenter.session.enabled
    alone = rungs["abort_alone(0)"]
    assert (alone["fate"], alone["share"], alone["leads"]) == ("wrong", 1.0, True)
    assert alone["words"] == "always wrong: breaks claim 3 in 1 step at the earliest"
    assert "Claim 3: “A participant that voted yes aborts only if that was decided.”" in ladder["said"]
    assert rungs["crash(0)"]["fate"] == "mixed"
    presenter.handle({"jump": "crash(0)", "at": 2})
    taken = presenter.session.trace.actions
    assert str(taken[2]) == "crash(0)"
    assert "violated" in {each.outcome for each in presenter.session.story.verdicts[-1]}
    assert "violated" not in {each.outcome for each in presenter.session.story.verdicts[-2]}
    presenter.handle({"look": len(taken)})
    assert sent[-1]["ladder"]["said"].startswith("Broken already: ")
    assert {each["fate"] for each in sent[-1]["ladder"]["rungs"]} <= {"wrong"}
    presenter.handle({"undo": True})
    assert str(presenter.session.trace) == HEURISTIC
    with pytest.raises(InvalidAction, match="No run that begins with fly"):
        presenter.session.jump("fly")


def test_a_bounded_look_says_so_and_calls_nothing_right():
    presenter, sent = presented("kafka_log")
    presenter.session._looked().max_states = 300
    presenter.handle({"look": 0})
    ladder = sent[-1]["ladder"]
    assert "Not all schedules were searched, because more than 300 states can follow." in ladder["said"]
    assert {each["fate"] for each in ladder["rungs"]} == {Fate.UNKNOWN.value}
    assert {each["share"] for each in ladder["rungs"]} == {None}


@pytest.mark.parametrize("to", ["mermaid", "plantuml", "shiviz", "svg"])
def test_an_export_is_the_text_that_python_gives_for_the_run_up_to_the_step(to: str):
    presenter, sent = presented("pipeline.jump_back")
    presenter.handle({"export": to, "at": 5})
    whole = find("pipeline.jump_back").trace
    wanted = export(Trace(whole.model, whole.version, whole.parameters, whole.actions[:5]), to)
    assert sent[-1]["file"]["text"] == wanted
    assert sent[-1]["file"]["name"].startswith("pipeline.")


def test_an_export_that_is_impossible_is_one_sentence():
    presenter, sent = presented("pipeline")
    presenter.handle({"export": "shiviz", "at": 0})
    assert "make a step first" in sent[-1]["notice"]


@pytest.mark.parametrize("model", MODELS)
def test_every_parameter_has_an_input_that_takes_its_default(model: str):
    presenter, sent = presented(model)
    told = choices(model)
    assert [each["name"] for each in told["parameters"]] == list(MODELS[model].parameters)
    presenter.handle({"choose": {each["name"]: each["default"] for each in told["parameters"]}, "at": 0})
    assert sent[-1]["notice"] == ""
    for each in told["parameters"]:
        assert len({"options", "least", "switch"} & each.keys()) == 1
        if "options" in each:
            assert each["default"] in each["options"]


REACHED = {
    ("delivery.strong_production", "drop(1)"): {"process1", "to1"},
    ("delivery.strong_production", "receive(1)"): {"process1", "to1"},
    ("delivery.strong_production", "duplicate(1)"): {"process1", "to1"},
    ("two_phase_commit.nothing_fails", "lose_outward(0)"): {"participant0", "to0"},
    ("two_phase_commit.nothing_fails", "crash_coordinator"): {"coordinator"},
    ("barriers.crash_at_the_third", "crash"): {"coordinator", "source0", "count0", "count1", "sink"},
}


@pytest.mark.parametrize(("scenario", "action"), REACHED)
def test_a_click_on_a_process_or_a_message_finds_the_actions_that_concern_it(scenario: str, action: str):
    story = Story(replay(find(scenario).trace))
    step = next(n for n, enabled in enumerate(story.enabled) if action in map(str, enabled))
    [taken] = [each for each in story.enabled[step] if str(each) == action]
    assert set(parts_of(story, step, taken)) == REACHED[scenario, action]


def test_a_page_starts_where_its_player_is_and_goes_on():
    page = Page(HEURISTIC, at=1)
    shown = page.heard[0]["shown"]
    assert (shown["at"], shown["story"]["watch"], shown["beside"]) == (1, "it", None)
    [news] = page.ask({"do": "crash(1)", "at": 2})
    assert (news["base"], news["at"], news["notice"]) == (shown["version"], 3, "")
    [again] = page.ask({"again": True})
    assert again["shown"]["version"] == news["version"]


def test_a_page_with_two_runs_keeps_both():
    left, right = (find(f"pipeline.{name}").trace for name in ("commit_then_decide", "decide_then_commit"))
    shown = Page(str(left), str(right)).heard[0]["shown"]
    assert shown["said"].startswith("The first difference is in step ")
    assert shown["beside"]["head"] == str(Trace.of(replay(right).model, ()))


def test_a_run_may_be_opened_by_the_address_of_its_page():
    page = Page(HEURISTIC)
    [news] = page.ask({"open": "https://example.org/simulators/two_phase_commit.html#two_phase_commit~1~~start"})
    assert news["story"]["whole"]["head"].startswith("two_phase_commit~1~")
    assert len(news["story"]["whole"]["steps"]) == 2


@pytest.mark.parametrize(
    ("trace", "sentence"),
    [
        ("two_phase_commit~9~~start", "the trace was recorded with version 9 of two_phase_commit"),
        ("nothing", "is not a complete trace"),
        ("two_phase_commit~1~~fly", "step 1 of the trace: fly is not enabled"),
    ],
)
def test_a_run_that_cannot_be_opened_is_one_sentence_and_nothing_is_lost(trace: str, sentence: str):
    [answer] = Page(trace).heard
    assert sentence in answer["refused"]
    page = Page(HEURISTIC)
    [news] = page.ask({"open": trace})
    assert sentence in news["notice"] or "this is neither a trace nor a scenario" in news["notice"]
    [news] = page.ask({"do": "crash(1)", "at": 2})
    assert news["at"] == 3
