"""Turn a run of a simulator into the data that the player shows: pictures, sentences, verdicts, possible actions.

Python computes every text that a learner reads, and the player only displays it.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any, NamedTuple

from labkit.sim.model import Action, Model, Mood, Property
from labkit.sim.rules import Event
from labkit.sim.trace import Replay, Trace, blueprint
from labkit.view import spacetime
from labkit.view.layout import Layout, layout
from labkit.view.scene import Drawing, Place, Scene, draw
from labkit.view.scenes import DRAWINGS

HOLDS, BROKEN, OPEN = "holds", "violated", "unknown"
SENTENCE_OF_START = "The beginning: nothing has happened."


class Verdict(NamedTuple):
    """The verdict on one property of a simulator after one step (holds, violated or still open), and the reason."""

    outcome: str
    because: str


def _drawing(model: str) -> Drawing:
    if model in DRAWINGS:
        return DRAWINGS[model]
    from labkit.view.scenes.open_models import OPEN_DRAWINGS

    return OPEN_DRAWINGS[model]


class Story:
    """A run of a simulator, with all that a page shows at each step: picture, sentence, verdicts, possible actions."""

    def __init__(self, walk: Replay, watch_for: str = "") -> None:
        self.model: Model[Any] = walk.model
        self.drawing = _drawing(walk.model.name)
        self.watch_for = watch_for
        self.actions: list[Action] = []
        self.scenes: list[Scene] = []
        self.texts: list[list[str]] = []
        self.enabled: list[Sequence[Action]] = []
        self.verdicts: list[list[Verdict]] = []
        """For each step, the verdicts on all properties that the simulator checks."""
        self._settled: dict[str, tuple[int, Verdict]] = {}
        self.follow(walk)

    def follow(self, walk: Replay) -> None:
        """Replace this run by the run `walk`. Steps with which both runs begin are not computed again."""
        shared = 0
        if self.scenes:
            while shared < min(len(self.actions), len(walk.actions)) and self.actions[shared] == walk.actions[shared]:
                shared += 1
            shared += 1
        new = walk.states[shared:]
        self.scenes = self.scenes[:shared] + [draw(self.drawing, self.model, each) for each in new]
        self.texts = self.texts[:shared] + [self.model.text(each).split("; ") for each in new]
        self.enabled = self.enabled[:shared] + [self.model.actions(each) for each in new]
        self.walk = walk.beginning(len(walk.actions))  # a copy, because the caller may extend its own
        self.actions, self.states = self.walk.actions, self.walk.states
        self._judge_from(shared)

    def _judge_from(self, shared: int) -> None:
        """Compute the verdicts for step `shared` and all later steps.

        The verdicts for earlier steps are kept, because the run that was shown before has the same earlier steps. If a
        verdict became final in an earlier step, it also holds for all later steps.
        """
        claims = list(self.model.properties())
        self.verdicts = self.verdicts[:shared]
        self._settled = {name: (step, verdict) for name, (step, verdict) in self._settled.items() if step < shared}
        for step, state in enumerate(self.states[shared:], start=shared):
            row = []
            for claim in claims:
                if claim.name not in self._settled and (verdict := _settling(claim, state, step)) is not None:
                    self._settled[claim.name] = step, verdict
                _, settled = self._settled.get(claim.name, (step, None))
                row.append(settled or _open(claim, state, is_terminal=not self.enabled[step]))
            self.verdicts.append(row)

    @property
    def trace(self) -> Trace:
        """The run as a trace, from which it can be replayed: the simulator, its parameters and the actions."""
        return self.walk.trace

    def fulfilled(self, step: int) -> list[str]:
        """Return the names of the tasks (small goals for learners) that the first `step` steps of the run fulfil."""
        verdicts = zip(self.model.properties(), self.verdicts[step], strict=True)
        outcomes = {claim.name: verdict.outcome for claim, verdict in verdicts}
        _, _, steps = str(Trace.of(self.model, self.actions[:step])).partition("~~")
        return [
            name
            for name, task in blueprint(self.model.name).tasks.items()
            if task.fits(self.model.values, steps)
            and all(outcomes.get(claim) == BROKEN for claim in task.violated)
            and all(outcomes.get(claim) == HOLDS for claim in task.holds)
        ]

    @property
    def title(self) -> str:
        """The simulator's name, with spaces."""
        return self.model.name.replace("_", " ")

    @property
    def chosen(self) -> str:
        """The simulator's parameters as text. Parameters with their default value are left out."""
        parameters = self.trace.to_json()["parameters"]
        return ", ".join(f"{name}={value}" for name, value in parameters.items()) or "all parameters at their defaults"

    def places(self) -> list[Place]:
        """Return for each step a `Place`: the box in the picture that acts, and other boxes that the step affects."""
        return [self.drawing.place(self.model, action) for action in self.actions]

    def sentences(self) -> list[str]:
        """Return one sentence for each step of the run: a description of the step's action."""
        return self.walk.sentences()

    def diagram(self) -> spacetime.Diagram:
        """Return the run as a space-time diagram, which is data and not yet a drawing."""
        return spacetime.of_walk(self.scenes, self.places(), self.sentences())

    def layout(self) -> Layout:
        """Return one layout for the pictures of all steps, so that boxes keep their position."""
        return layout(self.scenes)

    def keys(self) -> list[str]:
        """Return the different keys of the simulator's records, or [] if the records have no keys."""
        words = self.model.values.get("words")
        return list(dict.fromkeys(str(words).split("-"))) if words else []

    def lines(self) -> Iterator[str]:
        """Yield the run as lines of text: a title, the steps, and the verdict on each property at the end."""
        yield f"{self.title} ({self.chosen}), {len(self.actions)} steps"
        if self.watch_for:
            yield f"watch for: {self.watch_for}"
        yield spacetime.text(self.diagram())
        last = self.verdicts[-1]
        signs = {HOLDS: "+", BROKEN: "-", OPEN: "?"}
        for claim, verdict in zip(self.model.properties(), last, strict=True):
            yield f"  {signs[verdict.outcome]} {claim.sentence} {verdict.because}".rstrip()


def _settling(claim: Property[Any], state: object, step: int) -> Verdict | None:
    """Return the final verdict on a property, or None if a later state could still change the verdict.

    A violated "always" property stays violated, and a fulfilled "sometimes" property stays fulfilled.
    """
    if claim.mood is Mood.ALWAYS and not claim.is_kept(state):
        return Verdict(BROKEN, f"Since step {step}: {claim.because(state)}")
    if claim.mood is Mood.SOMETIMES and (claim.where is None or claim.where(state)) and claim.holds(state):
        return Verdict(HOLDS, f"Reached in step {step}.")
    return None


def _open(claim: Property[Any], state: object, *, is_terminal: bool) -> Verdict:
    if claim.mood is Mood.SOMETIMES:
        return Verdict(OPEN, "Not reached yet.")
    if claim.mood is Mood.EVENTUALLY:
        if not is_terminal:
            return Verdict(OPEN, "Not over yet.")
        return Verdict(HOLDS, "") if claim.holds(state) else Verdict(BROKEN, claim.because(state))
    if claim.where is not None and not claim.where(state):
        return Verdict(OPEN, "Not yet.")
    return Verdict(HOLDS, "")


def first_difference(left: Story, right: Story) -> int:
    """Return the number, from 1, of the first step in which the runs' actions or states differ; 0 if none."""
    actions = enumerate(zip_longest(left.actions, right.actions), start=1)
    texts = zip(map(left.model.text, left.states[1:]), map(right.model.text, right.states[1:]), strict=False)
    # States are compared only if all actions are equal.
    return next((step for step, (one, other) in chain(actions, enumerate(texts, start=1)) if one != other), 0)


FAULT_KEYS: Mapping[str, Event] = {
    "c": Event.CRASH,
    "r": Event.RESTART,
    "d": Event.DROP,
    "u": Event.DUPLICATE,
    "y": Event.DELAY,
    "o": Event.REORDER,
    "t": Event.TIMEOUT,
    "i": Event.OPERATOR,
}
"""The key on the keyboard that triggers each kind of fault, or a restart, in a live session."""

KEY_HELP: Sequence[tuple[str, str]] = (
    ("→ ←", "next step, step back"),
    ("Home End", "first step, last step"),
    ("Space", "play, or stop playing"),
    ("?", "show or hide this help"),
)
"""The keys on the keyboard that every player understands, with their help texts."""

_OPERATOR = "somebody interferes: deletes, restores, cancels"
LIVE_KEY_HELP: Sequence[tuple[str, str]] = (
    *((key, _OPERATOR if event is Event.OPERATOR else event.value) for key, event in FAULT_KEYS.items()),
    ("z", "undo"),
    ("x", "redo"),
)
"""The additional keys of a live session. If several faults of a kind are possible, its key lets the learner choose."""
