"""The tasks that a player offers: each can be done, none is done at the start, and only a reader's step ticks it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pytest

from labkit.sim.blueprint import go_on, play
from labkit.sim.explore import Search
from labkit.sim.model import Model, Mood, Property, unless
from labkit.sim.models import MODELS
from labkit.sim.overlay import Overlay
from labkit.sim.scenarios import find
from labkit.sim.tasks import Task
from labkit.sim.trace import Trace, make, replay
from labkit.sim.walk import Replay
from labkit.view.narration import BROKEN, HOLDS, Story
from labkit.view.presenter import Presenter, choices
from labkit.view.session import Session
from labkit.view.worker import Players

MOST_STATES = 60_000


class Way(NamedTuple):
    """Parameters with which a task can be fulfilled, and the first steps where the task asks for certain ones.

    The search finds the other steps.
    """

    parameters: Mapping[str, object]
    begin: str = ""


DECIDED = "start read(0) read(1) hear(0) hear(1) decide_commit"
PREPARED = "start(1) resolved(0) plan(0) insert(1) prepare(1) crash start(2) abort(1)"
VISIBLE = "take(2) plan(0) visible(0) crash"
WAYS = {
    "delivery.lost_and_out": Way({"processes": 2, "records": 1}, "send(0) drop(1)"),
    "delivery.counted_twice": Way({"processes": 2, "records": 1, "dedup": "none"}),
    "delivery.once_and_back": Way({"processes": 2, "window": 2, "reorders": 1}),
    "snapshot.money_on_its_way": Way({"processes": 2}),
    "snapshot.wrong_sum": Way({"processes": 2, "algorithm": "naive"}),
    "snapshot.wrong_with_markers": Way({"processes": 2, "reorderings": 1}),
    "barriers.recovered": Way({"sources": 1, "counts": 1, "words": "hello"}),
    "barriers.counted_wrongly": Way(
        {"counts": 1, "words": "hello-hello-hello", "mode": "at_least_once"},
        "read(0) trigger inject(0) read(0) read(1)",
    ),
    "barriers.state_is_not_output": Way({"sources": 1, "counts": 1, "words": "hello", "sink": "append"}),
    "two_phase_commit.lost_and_committed": Way({}, f"{DECIDED} announce lose_outward(0)"),
    "two_phase_commit.blocked_for_ever": Way({"coordinator_returns": False, "losses": 0}),
    "two_phase_commit.half_a_transfer": Way({"broken": "early"}),
    "pipeline.counted_twice": Way({"strategy": "append"}),
    "pipeline.jumps_back": Way({"strategy": "idempotent", "store": "sqlite"}),
    "pipeline.between_pre_commit_and_commit": Way({}, PREPARED),
    "changelog.missing_for_a_moment": Way({}),
    "changelog.two_rows": Way({"losses": 1}),
    "changelog.wrong_upserts": Way({"encoding": "upsert", "words": "hello-hello", "swaps": 1}),
    "kafka_log.early": Way({}),
    "kafka_log.half": Way({}),
    "kafka_log.twice": Way({"isolation": "read_committed", "positions": "after_rows"}),
    "orders.twice": Way({}),
    "orders.jumps_back": Way({"output": "upsert"}),
    "orders.visible_and_once": Way(
        {"order": "plan-visible_marker-decision", "output": "transaction", "skips": True}, VISIBLE
    ),
}
TASKS = {f"{model}.{name}": task for model in MODELS for name, task in MODELS[model].tasks.items()}


class Sought(Overlay[Any]):
    """A model with one claim, which fails where a task's claims are as it wants them, so that a search finds that."""

    def __init__(self, below: Model[Any], task: Task) -> None:
        super().__init__(below)
        claims = {claim.name: claim for claim in below.properties()}
        self._violated = [claims[name] for name in task.violated]
        self._holds = [claims[name] for name in task.holds]

    def properties(self) -> Sequence[Property[Any]]:
        return [unless("sought", Mood.ALWAYS, "", lambda state: "found" if self._is_found(state) else "")]

    def _is_found(self, state: Any) -> bool:
        if any(claim.is_kept(state) for claim in self._violated):
            return False
        if not all(claim.holds(state) and (claim.where is None or claim.where(state)) for claim in self._holds):
            return False
        ends = any(claim.mood is Mood.EVENTUALLY for claim in (*self._violated, *self._holds))
        return not (ends and self.actions(state))


def way_to(name: str) -> Trace:
    """A run that fulfils a task: its first steps are given, and the rest is the shortest that a search finds."""
    model, way = make(name.partition(".")[0], WAYS[name].parameters), WAYS[name]
    walk = Replay(model)
    for step in way.begin.split():
        walk.forward(next(action for action in model.actions(walk.state) if str(action) == step))
    search = Search(Sought(model, TASKS[name]), MOST_STATES, start=walk.state)
    while search.level and not search.violated:
        search.advance()
    [(_, state)] = search.violated
    return Trace.of(model, (*walk.actions, *search.trace_to(state).actions))


def presented(start: Trace) -> tuple[Presenter, list[dict[str, Any]]]:
    sent: list[dict[str, Any]] = []
    return Presenter(Session(start), sent.append), sent


def test_every_simulator_has_one_to_three_tasks_with_a_known_way():
    assert {model: len(MODELS[model].tasks) in (1, 2, 3) for model in MODELS} == dict.fromkeys(MODELS, True)
    assert sorted(WAYS) == sorted(TASKS)
    assert {name: sentence for model in MODELS for name, sentence in choices(model)["tasks"].items()} == {
        name: task.sentence for name, task in TASKS.items()
    }


@pytest.mark.parametrize("model", MODELS)
def test_no_task_is_fulfilled_at_the_start_or_by_a_run_in_which_nothing_fails(model: str):
    for way in [{}, *(way.parameters for name, way in WAYS.items() if name.startswith(f"{model}."))]:
        assert Story(Replay(make(model, way))).fulfilled(0) == []


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_ticked_by_the_step_that_fulfils_it_and_stays(name: str):
    trace = way_to(name)
    presenter, sent = presented(Trace(trace.model, trace.version, trace.parameters, ()))
    assert presenter.everything()["done"] == []
    for at, action in enumerate(trace.actions):
        presenter.handle({"do": str(action), "at": at})
    ticked = [name in message["done"] for message in sent]
    assert ticked == [False] * (len(ticked) - 1) + [True]
    assert TASKS[name].sentence in sent[-1]["notice"]
    presenter.handle({"undo": True})
    assert name in sent[-1]["done"]
    assert sent[-1]["notice"] == ""


JUMPS_BACK = "pipeline.jumps_back"


def test_a_run_that_is_opened_ticks_nothing_until_the_reader_takes_a_step():
    trace = find("pipeline.jump_back").trace
    presenter, sent = presented(trace)
    assert presenter.everything()["done"] == []
    presenter.handle({"open": str(trace)})
    presenter.handle({"scenario": "jump_back"})
    presenter.handle({"choose": {"crashes": "2"}, "at": len(trace.actions)})
    assert {tuple(message["done"]) for message in sent} == {()}
    presenter.handle({"open": str(trace)})
    presenter.handle({"do": "end", "at": len(trace.actions) - 1})
    assert sent[-1]["done"] == [JUMPS_BACK]


def test_a_jump_to_a_wrong_schedule_ticks_nothing():
    presenter, sent = presented(Trace.of(make("snapshot", {"processes": 2, "algorithm": "naive"}), ()))
    presenter.handle({"jump": presenter.session.enabled[0], "at": 0})
    assert Story(replay(presenter.session.trace)).fulfilled(len(presenter.session.trace.actions)) != []
    assert sent[-1]["done"] == []


def test_a_page_whose_worker_failed_goes_on_with_its_ticks():
    trace = find("pipeline.undisturbed").trace
    start = {"trace": str(trace), "watch": "", "beside": None, "at": 0, "done": [JUMPS_BACK]}
    [answer] = json.loads(Players().answer(json.dumps({"player": "0", "start": start})))
    assert answer["shown"]["done"] == [JUMPS_BACK]


COMMITTED = (
    "start(1) resolved(0) plan(0) insert(1) prepare(1) insert(0) insert(2) prepare(2) store_handles(0) log_commit(0) "
    "notify(0) notified_commit(1) notified_commit(2) crash"
)
FINISHED_LATER = "take(2) plan(0) staged(0) decision(0) visible(0) crash"
STAGED = {"order": "plan-staged-decision-visible", "output": "transaction", "leftover": "decided"}


@pytest.mark.parametrize(
    ("name", "parameters", "begin"),
    [
        ("pipeline.between_pre_commit_and_commit", {}, "start(1) resolved(0) plan(0) insert(1) crash"),
        ("pipeline.between_pre_commit_and_commit", {}, COMMITTED),
        ("orders.visible_and_once", {}, "take(2) plan(0) show(0) show(1) decision(0) crash"),
        ("orders.visible_and_once", STAGED, FINISHED_LATER),
    ],
)
def test_a_crash_at_another_place_does_not_count(name: str, parameters: Mapping[str, object], begin: str):
    model = make(name.partition(".")[0], parameters)
    story = Story(go_on(play(model, begin), model))
    claims = zip(model.properties(), story.verdicts[-1], strict=True)
    assert {claim.name for claim, verdict in claims if verdict.outcome == HOLDS} >= set(TASKS[name].holds)
    assert name.partition(".")[2] not in story.fulfilled(len(story.actions))


def test_a_rule_that_is_left_out_does_not_count_where_the_task_says_so():
    story = Story(replay(find("delivery.noted_too_late").trace))
    claims = zip(story.model.properties(), story.verdicts[-1], strict=True)
    assert "no_duplicate" in {claim.name for claim, verdict in claims if verdict.outcome == BROKEN}
    assert story.fulfilled(len(story.actions)) == []
