"""What a player is told after each choice adds up to what it would be told at once, whichever way a learner goes."""

import copy
import random

import pytest

from labkit.sim.models import MODELS
from labkit.view.live import Explorer
from labkit.view.session import Session
from labkit.view.updates import StoryUpdates


def added(story: dict, news: dict) -> dict:
    """What `renew` in stepper.js does."""
    if "whole" in news:
        return copy.deepcopy(news["whole"])
    story["steps"][news["keep"] :] = news["steps"]
    story["frames"][news["keep"] :] = news["frames"]
    story["table"] += news["table"]
    story["acts"] += news["acts"]
    return {**story, **news["now"]}


def in_words(story: dict) -> dict:
    """A story without its numbers: two tellings may number alike things differently."""
    table = story["table"]
    words = {name: story[name] for name in ("title", "chosen", "watch", "size", "slots", "lines", "differs", "claims")}
    words["frames"] = [[table[piece] for piece in frame] for frame in story["frames"]]
    words["steps"] = [
        {
            **{name: step[name] for name in ("a", "w")},
            "s": table[step["s"]],
            "l": table[step["l"]],
            "x": [table[part] for part in step["x"]],
            "v": [[outcome, table[because]] for outcome, because in step["v"]],
            "e": [story["acts"][number] for number in step["e"]],
        }
        for step in story["steps"]
    ]
    return words


@pytest.mark.parametrize("model", MODELS)
def test_the_news_add_up_to_the_whole(model: str):
    chance, going = random.Random(1), Session.of(model)
    telling = StoryUpdates(going.story)
    shown = copy.deepcopy(telling.whole())
    for nth in range(60):
        if nth % 11 == 10:
            going.undo()
        elif nth % 7 == 6:
            going.go(chance.randrange(len(going.story.actions) + 1))
        if going.enabled:
            going.do(chance.choice(going.enabled))
        assert telling.story is going.story
        shown = added(shown, telling.news())
        assert in_words(shown) == in_words(telling.whole())
    assert [step["a"] for step in shown["steps"][1:]] == [str(action) for action in going.story.actions]


@pytest.mark.parametrize("model", MODELS)
def test_a_walk_told_step_by_step_is_judged_as_one_told_at_once(model: str):
    chance, going = random.Random(2), Session.of(model)
    for _ in range(30):
        if going.enabled:
            going.do(chance.choice(going.enabled), going.at)
    again = Session(going.trace).story
    assert going.story.verdicts == again.verdicts
    assert going.story.enabled == again.enabled


def test_a_choice_sends_a_small_part_of_the_story():
    explorer, sent = Explorer(Session.of("two_phase_commit", participants=8)), []
    explorer.send = sent.append
    for _ in range(40):
        explorer.do(
            next(
                action for action in explorer.session.enabled if action.startswith(("start", "read", "hear", "inquire"))
            )
        )
    whole = len(str(explorer.everything()))
    assert sorted(len(str(told)) for told in sent)[20] < whole / 8


def test_a_session_that_was_steered_directly_makes_other_views_ask():
    explorer = Explorer(Session.of("two_phase_commit"))
    before = explorer.everything()["version"]
    explorer.session.do("start")
    assert explorer.everything()["version"] == before + 1
    assert explorer.everything()["version"] == before + 1
