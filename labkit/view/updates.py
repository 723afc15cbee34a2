"""Turn a run into plain data for the player (the view in a browser): all of it, or the changes since the last message.

Each text and each piece of a picture is sent once and has a number from then on. The layout only grows, so that nothing
jumps when a learner takes another branch.
"""

from collections.abc import Mapping
from typing import Any

from labkit.sim.model import Action
from labkit.sim.rules import Event
from labkit.sim.trace import Trace
from labkit.view import spacetime
from labkit.view.layout import Layout, layout
from labkit.view.narration import SENTENCE_OF_START, Story
from labkit.view.scene import Scene, draw, lanes
from labkit.view.svg import legend, pieces, slots

Plain = dict[str, Any]


class StoryUpdates:
    """Computes the data of a run that a player (a view of the run in the browser) has not received yet.

    `generation` is the number of the layout. When it changes, the player must load all data again.
    """

    def __init__(self, story: Story, generation: int = 0) -> None:
        self.story = story
        self.generation = generation
        self._laid: list[Scene] = []
        """The pictures (scenes) in which a box, channel or sign first appears; layout and legend depend on them."""
        self._parts: set[object] = set()
        self._place: Layout | None = None
        self._forget()

    def _forget(self) -> None:
        self._texts: dict[str, int] = {}
        self._acts: dict[Action, int] = {}
        self._parts_of: dict[Action, list[str]] = {}
        self._scenes: list[Scene] = []
        self._steps: list[Plain] = []
        self._frames: list[list[int]] = []
        self._shown: Plain = {}

    def whole(self, differs_at: int = 0) -> Plain:
        """Return all data of the run.

        `differs_at` is the first step in which another run, shown beside this one, differs; 0 if there is none.
        """
        self._follow()
        self._shown = self._changing(differs_at)
        story, place = self.story, self._layout()
        return {
            "title": story.title,
            "chosen": story.chosen,
            "head": str(Trace.of(story.model, ())),
            "size": [round(place.width, 1), round(place.height, 1)],
            "slots": slots(place),
            "values": dict(story.model.values),
            "claims": [[claim.name.replace("_", " "), claim.sentence] for claim in story.model.properties()],
            "generation": self.generation,
            "table": list(self._texts),
            "frames": list(self._frames),
            "steps": list(self._steps),
            "acts": [self._act(action) for action in self._acts],
            **self._shown,
        }

    def news(self, differs_at: int = 0) -> Plain:
        """Return the data of the run that has changed since the last call; all data if the layout has changed.

        `differs_at` is the first step in which another run, shown beside this one, differs; 0 if there is none.
        """
        texts, acts, before, shown = (len(self._texts), len(self._acts), self._scenes, self._shown)
        generation = self.generation
        self._follow()
        if self.generation != generation or not shown:
            return {"whole": self.whole(differs_at)}
        kept = _shared(before, self._scenes)
        self._shown = self._changing(differs_at)
        return {
            "keep": kept,
            "steps": self._steps[kept:],
            "frames": self._frames[kept:],
            "table": list(self._texts)[texts:],
            "acts": [self._act(action) for action in list(self._acts)[acts:]],
            "now": {name: value for name, value in self._shown.items() if value != shown[name]},
        }

    @property
    def is_behind(self) -> bool:
        """Whether the run has steps that the player has not received yet."""
        scenes = self.story.scenes
        return len(self._scenes) != len(scenes) or _shared(self._scenes, scenes) < len(scenes)

    def _follow(self) -> None:
        """Process the run's new steps.

        Each text and drawing has a fixed number, with which later messages to players refer to it.
        """
        scenes = self.story.scenes
        kept = _shared(self._scenes, scenes)
        if self._has_grown(scenes[kept:]):
            self._forget()
            kept, self.generation = 0, self.generation + 1
        place, titles = self._layout(), lanes(self._laid)
        del self._steps[kept:], self._frames[kept:]
        for step in range(kept, len(scenes)):
            self._frames.append([self._text(piece) for piece in pieces(scenes[step], place).values()])
            self._steps.append(self._step(step, titles))
        self._scenes = list(scenes)

    def _has_grown(self, scenes: list[Scene]) -> bool:
        """Add the new pictures (`scenes`) to the layout, and return whether the layout has changed."""
        laid = len(self._laid)
        for scene in scenes:
            parts: set[object] = {*scene.boxes, *scene.channels, tuple(box.id for box in scene.boxes)}
            if not parts <= self._parts:
                self._parts |= parts
                self._laid.append(scene)
        if len(self._laid) == laid:
            return False
        before, self._place = self._place, layout(self._laid)
        return before != self._place

    def _layout(self) -> Layout:
        assert self._place is not None
        return self._place

    def _step(self, step: int, titles: Mapping[str, str]) -> Plain:
        story = self.story
        action = story.actions[step - 1] if step else None
        return {
            "a": str(action) if action else "",
            "s": self._text(story.model.sentence_in(story.states[step - 1], action) if action else SENTENCE_OF_START),
            "x": [self._text(part) for part in story.texts[step]],
            "w": self._who(action, titles) if action else "",
            "l": self._text(story.scenes[step].left),
            "v": [[verdict.outcome[0], self._text(verdict.because)] for verdict in story.verdicts[step]],
            "e": [self._numbered(each, step) for each in story.enabled[step]],
        }

    def _numbered(self, action: Action, step: int) -> int:
        if action not in self._acts:
            self._acts[action] = len(self._acts)
            self._parts_of[action] = parts_of(self.story, step, action)
        return self._acts[action]

    def _who(self, action: Action, titles: Mapping[str, str]) -> str:
        box = self.story.drawing.place(self.story.model, action).box
        return titles.get(box) or next(iter(titles.values()))

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))

    def _act(self, action: Action) -> list[object]:
        model = self.story.model
        event = self.story.drawing.place(model, action).event
        return [str(action), model.sentence(action), self._parts_of[action], event.value]

    def _changing(self, differs_at: int) -> Plain:
        """Return the data that any step may change: the space-time diagram, the legend, and the reader's hint.

        `differs_at` is the first step in which another run, shown beside this one, differs; 0 if there is none.
        """
        story = self.story
        diagram = story.diagram()
        at, (wide, high) = spacetime.scale(diagram), spacetime.size(diagram)
        lines = {"body": spacetime.body(diagram, differs_at), "size": [wide, high], "left": at.left, "step": at.step}
        return {
            "watch": story.watch_for,
            "lines": lines,
            "legend": [list(entry) for entry in legend(self._laid, story.keys())],
            "differs": differs_at,
        }


_AT_MESSAGES = (Event.STEP, Event.DROP, Event.DUPLICATE, Event.REORDER)
"""The kinds of action that may concern a message, so that a click on its channel takes them."""


def parts_of(story: Story, step: int, action: Action) -> list[str]:
    """Return the ids of the boxes and channels in a step's picture that take this action when a reader clicks them."""
    model, before = story.model, story.scenes[step]
    box, event, touches = story.drawing.place(model, action)
    parts = [box, *(touches if event is not Event.STEP else ())]
    if event in _AT_MESSAGES:
        after = draw(story.drawing, model, model.apply(story.states[step], action))
        left = {channel.id: channel.tokens for channel in after.channels}
        waiting = [channel for channel in before.channels if channel.tokens]
        hit = [each.id for each in waiting if each.tokens != left.get(each.id, ())]
        if event is Event.STEP:
            hit = [each.id for each in waiting if len(each.tokens) > len(left.get(each.id, ()))]
        elif not hit:  # a copy of the message stays in the channel, so the channel looks unchanged
            hit = [each.id for each in waiting if each.target == box]
        parts += hit
    return list(dict.fromkeys(parts))


def _shared(before: list[Scene], now: list[Scene]) -> int:
    """Return how many scenes at the beginning of both lists are the same. Players have received them already."""
    parting = (step for step, (one, other) in enumerate(zip(before, now, strict=False)) if one is not other)
    return next(parting, min(len(before), len(now)))
