"""A run of a simulator that a learner steers: take possible actions, branch at any step, undo, redo, compare two runs.

The live widget calls these methods, so Python users can do the same as clicks.
"""

from collections.abc import Mapping, Sequence

from labkit.core.errors import InvalidAction, InvalidInput
from labkit.core.words import nearest
from labkit.sim.futures import Futures, Prospect
from labkit.sim.model import Action
from labkit.sim.models import MODELS
from labkit.sim.scenarios import find, run_of
from labkit.sim.trace import Replay, Trace, blueprint, make, parse, replay
from labkit.view.narration import Story, first_difference

Memory = tuple[Trace, int, str]
"""What undo restores: the run, the current step, and the hint for what to watch."""


class Session:
    """A run in which a learner chooses the actions. Methods raise a `LabError` if a request is impossible."""

    def __init__(self, start: Trace, watch_for: str = "") -> None:
        self._before: list[Memory] = []
        self._after: list[Memory] = []
        self.kept: Story | None = None
        """The run that was kept for comparison with this one, or None."""
        self._futures: Futures[object] | None = None
        self.story = Story(replay(start), watch_for)
        self.at = len(start.actions)

    @classmethod
    def of(cls, model: str, **parameters: object) -> "Session":
        """Return a session (a run to continue) at the first state of the simulator `model`.

        Raises `InvalidInput` for an unknown simulator or parameter.
        """
        return cls(Trace.of(make(model, parameters), ()))

    @property
    def trace(self) -> Trace:
        """The whole run as a trace, from which it can be replayed: the simulator, its parameters and the actions."""
        return self.story.trace

    @property
    def enabled(self) -> list[str]:
        """The actions that are possible at the current step, as text."""
        return [str(action) for action in self.story.model.actions(self.story.states[self.at])]

    @property
    def scenarios(self) -> dict[str, str]:
        """The scenarios (named example runs) of this simulator, as a dict from name to a hint about what to watch."""
        scenarios = blueprint(self.trace.model).scenarios
        return {name: scenario.watch_for for name, scenario in scenarios.items()}

    @property
    def differs_at(self) -> int:
        """The first step in which this run differs from the run kept for comparison; 0 if there is no difference."""
        return first_difference(self.story, self.kept) if self.kept else 0

    def do(self, action: str, at: int | None = None) -> None:
        """Take an action in the state after step `at` (default: the current step).

        Later steps of the run are dropped, unless the run already continues with this action. Raises `InvalidAction` if
        the action is impossible there; the message lists the possible actions.
        """
        step = self._step(self.at if at is None else at)
        taken = Action.parse(action)
        if step < len(self.story.actions) and self.story.actions[step] == taken:
            self.at = step + 1
            return
        walk = self.beginning(step)
        before = (self.trace, step, self.story.watch_for)
        walk.forward(taken)
        self._remember(before)
        self.story.follow(walk)
        self.at = step + 1

    def go(self, step: int) -> None:
        """Make step number `step` the current step. Raises `InvalidAction` if there is no such step."""
        self.at = self._step(step)

    def undo(self) -> None:
        """Undo the last change of the run: an action, new parameters, or the opening of another run.

        Raises `InvalidAction` if there is nothing to undo.
        """
        self._swap(self._before, self._after, "There is nothing to undo: no action was chosen yet.")

    def redo(self) -> None:
        """Repeat the change of the run that was undone last. Raises `InvalidAction` if no change was undone."""
        self._swap(self._after, self._before, "There is nothing to redo: no action was undone.")

    def _swap(self, source: list[Memory], target: list[Memory], refusal: str) -> None:
        """Go back to the last run in `source`, and put the present run into `target`.

        Raises `InvalidAction` with the message `refusal` if `source` is empty.
        """
        if not source:
            raise InvalidAction(refusal)
        target.append((self.trace, self.at, self.story.watch_for))
        self._play(*source.pop())

    def scenario(self, name: str) -> None:
        """Open a scenario, of this simulator or another one, at its first state. Raises `InvalidInput` if unknown."""
        model = self.trace.model
        name_of_it = find(name if "." in name or name not in self.scenarios else f"{model}.{name}", model)
        self._open(name_of_it.trace, 0, name_of_it.watch_for)

    def open(self, text: str) -> None:
        """Open a pasted trace at its last state, or the scenario with this name at its first state.

        Raises `InvalidInput` if the text is neither, and `InvalidAction` if the trace cannot be replayed.
        """
        text = text.strip()
        if "~" in text:
            trace = parse(text)
            self._open(trace, len(trace.actions), "")
            return
        try:
            self.scenario(text)
        except InvalidInput as error:
            raise InvalidInput(f"this is neither a trace nor a scenario: {error}") from None

    def choose(self, parameters: Mapping[str, object]) -> None:
        """Change parameters of the simulator, and repeat the run up to the current step.

        The repetition stops at the first action that is impossible now. Raises `InvalidInput` for a wrong parameter.
        """
        walk = Replay(make(self.trace.model, {**self.trace.parameters, **parameters}))
        for action in self.story.actions[: self.at]:
            if action not in walk.model.actions(walk.state):
                break
            walk.forward(action)
        self._open(walk.trace, len(walk.actions), "")

    def prospects(self, at: int | None = None) -> Sequence[Prospect]:
        """Return one `Prospect` for each action that is possible at step `at` (default: the current step).

        A `Prospect` says whether no, some or all runs that begin with its action violate a property.
        """
        step = self._step(self.at if at is None else at)
        return self._looked().of(self.story.states[step])

    def sees_all(self, at: int) -> bool:
        """Return whether `prospects` could search all schedules (sequences of actions) that begin after step `at`."""
        return self._looked().is_whole(self.story.states[self._step(at)])

    def jump(self, action: str, at: int | None = None) -> Prospect:
        """Take an action at step `at` (default: the current step), then the fewest actions that violate a property.

        Returns the action's `Prospect`, which says what share of all runs that begin with the action violate a
        property. Raises `InvalidAction` if the action is impossible, or if the search found no violation after it.
        """
        step = self._step(self.at if at is None else at)
        prospect = next((each for each in self.prospects(step) if str(each.action) == action), None)
        if prospect is None or not prospect.nearest:
            raise InvalidAction(
                f"No run that begins with {action[:60]} is known to violate a property; choose another action."
            )
        steps = (*self.story.actions[:step], *prospect.nearest)
        self._open(Trace.of(self.story.model, steps), len(steps), self.story.watch_for)
        return prospect

    @property
    def most_states(self) -> int:
        """The number of states after which `prospects` stops its search, so that some results may be unknown."""
        return self._looked().max_states

    def beginning(self, step: int) -> Replay:
        """Return the part of the run up to step number `step`. Raises `InvalidAction` if there is no such step."""
        return self.story.walk.beginning(self._step(step))

    def _looked(self) -> Futures[object]:
        if self._futures is None or self._futures.model is not self.story.model:
            self._futures = Futures(self.story.model)
        return self._futures

    def keep(self, at: int | None = None) -> None:
        """Keep a copy of this run up to step `at` (default: the last) for comparison.

        If there is such a copy already, drop it and keep no new one.
        """
        if self.kept:
            self.kept = None
            return
        self.kept = Story(self.beginning(len(self.story.actions) if at is None else at), self.story.watch_for)

    def compare(self, trace: Trace) -> None:
        """Keep the run of the trace `trace` for comparison. Raises a `LabError` if the trace cannot be replayed."""
        self.kept = Story(replay(trace))

    def _step(self, step: int) -> int:
        if not 0 <= step <= len(self.story.actions):
            raise InvalidAction(f"There is no step {step}: this run has the steps 0 to {len(self.story.actions)}.")
        return step

    def _open(self, trace: Trace, at: int, watch_for: str) -> None:
        before = (self.trace, self.at, self.story.watch_for)
        self._play(trace, at, watch_for)
        self._remember(before)

    def _remember(self, before: Memory) -> None:
        self._before.append(before)
        self._after.clear()

    def _play(self, trace: Trace, at: int, watch_for: str) -> None:
        """Replace the run by the run of `trace`, make `at` its current step, and show the hint `watch_for`."""
        walk = replay(trace)
        # In a run of the same simulator, the steps up to the first difference are not computed again.
        if (trace.model, trace.parameters) == (self.trace.model, self.trace.parameters):
            self.story.follow(walk)
            self.story.watch_for = watch_for
        else:
            self.story = Story(walk, watch_for)
        self.at = at


def session(what: str) -> Session:
    """Return a session (a run to continue) for the name of a simulator or a scenario, or for the text of a trace.

    Raises `InvalidInput` for any other text.
    """
    if what in MODELS:
        return Session.of(what)
    try:
        return Session(*run_of(what))
    except InvalidInput:
        if "~" in what:
            raise
        raise InvalidInput(
            f"there is no simulator, scenario or trace {what[:40]!r}; {nearest(what, list(MODELS))}"
        ) from None
