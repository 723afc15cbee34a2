"""Drills: everything that may be answered is an action, closed by the right rule they are the simulator again."""

from itertools import islice

import pytest
from exercise_sources import all_sources, run

from labkit.sim.explore import explore, reachable
from labkit.sim.models import MODELS
from labkit.sim.open_models import OPEN_MODELS
from labkit.sim.trace import blueprint, make, parse, replay
from labkit.teach.exercises import barriers, commitment
from labkit.teach.exercises.asking import Asker
from labkit.teach.exercises.closing import ClosedModel, Run
from labkit.teach.exercises.namespace import InNotebook
from labkit.teach.exercises.registry import EXERCISES
from labkit.teach.exercises.searching import AnswerNode
from labkit.view.scene import draw
from labkit.view.scenes.open_models import OPEN_DRAWINGS
from labkit.view.stepper import Player

SMALL = {
    "deduplication_drill": {"records": 1},
    "alignment_drill": {"counts": 1, "words": "hello-hello"},
    "recovery_drill": {},
    "confirmation_drill": {"words": "hello-world", "records_per_batch": 1},
    "resolution_drill": {"words": "hello-world", "records_per_batch": 1},
}
SOLUTIONS = {name: solution for name, (_, solution) in all_sources().items()}


def asker(exercise: str) -> Asker:
    answer = EXERCISES[exercise].answer
    return Asker(InNotebook(answer, run(SOLUTIONS[exercise])), answer)


def test_every_drill_is_found_drawn_and_no_model_of_the_course():
    assert set(OPEN_MODELS) == set(OPEN_DRAWINGS) == set(SMALL)
    assert not set(OPEN_MODELS) & set(MODELS)
    for name, found in OPEN_MODELS.items():
        assert blueprint(name) is found
        assert make(name, {}).name == name


@pytest.mark.parametrize("name", SMALL)
def test_states_of_a_drill_can_be_drawn_and_its_open_rule_breaks_something(name: str):
    model = make(name, SMALL[name])
    scenes = [draw(OPEN_DRAWINGS[name], model, state) for state in islice(reachable(model, max_states=500), 500)]
    assert all(scene.boxes for scene in scenes)
    found = explore(model, max_states=30_000)
    assert found.violations
    for violation in found.violations:
        again = parse(str(violation.trace))
        assert replay(again).states == replay(violation.trace).states
        player = Player(again, violation.because, len(again.actions))
        assert "None" not in str(player)
        assert all(player.story.drawing.place(model, action).box for action in again.actions)


@pytest.mark.parametrize("given", [{}, {"crashes": 2, "losses": 0}, {"participants": 1, "crashes": 3}])
def test_two_phase_commit_closed_by_the_right_recovery_is_two_phase_commit(given: dict[str, object]):
    open_model = ClosedModel(make("recovery_drill", given), asker("05-recovery"), commitment._returns)
    found, known = explore(open_model), explore(make("two_phase_commit", given))
    assert (found.unique_states, found.generated_states) == (known.unique_states, known.generated_states)
    assert set(reachable(open_model)) == set(reachable(make("two_phase_commit", given)))


def test_barriers_closed_by_the_right_alignment_end_as_barriers_do():
    given = {"counts": 1, "words": "hello-world-hello", "crashes": 0}
    closed = ClosedModel(make("alignment_drill", given), asker("04-align"), barriers._aligns)
    ends = [
        {(state.visible, state.coordinator.completed) for state in reachable(model) if not model.actions(state)}
        for model in (closed, make("barriers", given))
    ]
    assert ends[0] == ends[1]


@pytest.mark.parametrize(
    ("exercise", "open_model", "model", "given"),
    [
        ("06-recover", "resolution_drill", "pipeline", {"crashes": 2, "words": "hello-world", "records_per_batch": 1}),
        ("06-wal", "confirmation_drill", "pipeline", {"crashes": 1, "words": "world-hello-hello"}),
    ],
)
def test_a_pipeline_closed_by_the_right_rule_shows_what_the_pipeline_shows(exercise, open_model, model, given):
    """The words are such that the pipeline's order, partition by partition, is that of the offsets."""
    closed = Run(make(open_model, given), asker(exercise))
    real = make(model, {"strategy": "wal", "order": "engine", **given} if exercise == "06-wal" else given)
    seen = {state.state.seen for state in reachable(closed) if not closed.actions(state)}
    assert seen == {state.seen for state in reachable(real) if not real.actions(state)}


def test_a_search_that_got_the_same_answers_is_not_made_again():
    known, first, second = AnswerNode(), asker("05-recovery"), asker("05-recovery")
    assert known.look(first) is None
    explore(ClosedModel(make("recovery_drill", {}), first, commitment._returns))
    known.keep(first, None)
    settled = known.look(second)
    assert settled is not None
    assert settled.is_settled
    assert settled.finding is None
    assert second.questions == first.questions
    other = Asker(InNotebook("recover", {"recover": lambda _log: "abort"}), "recover")
    assert known.look(other) is None
