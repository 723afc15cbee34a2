"""A trace: a model's name and version, its parameters, and the actions that were taken; nothing else is needed.

It goes into an address as short text (`two_phase_commit~1~participants.2~~start.vote_yes-0...`), into a file as plain
data, and replays to the same states anywhere. A trace may come from a stranger: everything is bounded before it is
looked at. This module must not read files (that is `labkit.host.logs`).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from labkit.core.errors import InvalidAction, InvalidInput
from labkit.core.words import nearest
from labkit.sim import MODELS
from labkit.sim.model import Action, Blueprint, Model
from labkit.sim.open_models import DRILLS
from labkit.sim.parameters import Values, chosen, settle

MAX_ACTIONS = 10_000
"""Actions of the longest trace that is accepted."""

MAX_TEXT = 400_000
"""Characters of the longest trace that is accepted, as text or as JSON."""

_PART = re.compile(r"([a-z_]{1,40})\.([A-Za-z0-9_-]{1,200})")
_STEP = re.compile(r"([a-z][a-z_]{0,39})(?:-(\d{1,6}))?")
_FORM = "copy the whole of it, as in two_phase_commit~1~participants.2~~start"


def blueprint(name: str) -> Blueprint:
    """The model or the drill of this name. Raises `InvalidInput` with the nearest model."""
    if name in DRILLS:
        return DRILLS[name]
    if name not in MODELS:
        raise InvalidInput(
            f"there is no model {name[:40]!r}; {nearest(name[:40], list(MODELS))}"
        )
    return MODELS[name]


def make(name: str, given: Mapping[str, object]) -> Model[Any]:
    """A model with the parameters that were given, the others at their defaults. Raises `InvalidInput`."""
    found = blueprint(name)
    return found.build(settle(name, found.parameters, given))


@dataclass(frozen=True)
class Trace:
    """What happened, in order. `parameters` holds all of them."""

    model: str
    version: int
    parameters: Values
    actions: tuple[Action, ...]

    def __str__(self) -> str:
        """Text that may stand in an address: letters, digits and `-._~` only."""
        given = chosen(blueprint(self.model).parameters, self.parameters)
        parts = [
            self.model,
            str(self.version),
            *(f"{name}.{_plain(value)}" for name, value in given.items()),
        ]
        return (
            f"{'~'.join(parts)}~~{'.'.join(_short(action) for action in self.actions)}"
        )

    def to_json(self) -> dict[str, Any]:
        """The trace as plain data."""
        given = chosen(blueprint(self.model).parameters, self.parameters)
        return {
            "model": self.model,
            "version": self.version,
            "parameters": given,
            "actions": [str(action) for action in self.actions],
        }

    @classmethod
    def of(cls, model: Model[Any], actions: Sequence[Action]) -> "Trace":
        """The trace of these actions in a model."""
        return cls(model.name, model.version, model.values, tuple(actions))

    @classmethod
    def parse(cls, text: str) -> "Trace":
        """The trace that `str` gave. Raises `InvalidInput` for anything else, in one sentence."""
        if len(text) > MAX_TEXT:
            raise InvalidInput(
                f"the trace has {len(text)} characters, more than {MAX_TEXT}; cut it after a few steps."
            )
        head, separator, steps = text.strip().partition("~~")
        name, *rest = head.split("~")
        if (
            not separator
            or not rest
            or not (rest[0].isascii() and rest[0].isdigit() and len(rest[0]) < 5)
        ):
            raise InvalidInput(
                f"{text[:40]!r} is not a trace, or not a whole one; {_FORM}."
            )
        given = dict(map(_parameter, rest[1:]))
        return _checked(
            name, int(rest[0]), given, [_long(step) for step in _split(steps)]
        )

    @classmethod
    def from_json(
        cls,
        model: str,
        version: int,
        parameters: Mapping[str, object],
        actions: Sequence[str],
    ) -> "Trace":
        """The trace of plain data whose types were checked. Raises `InvalidInput`."""
        _check_length(len(actions))
        return _checked(
            model, version, parameters, [Action.parse(text) for text in actions]
        )


def _checked(
    name: str, version: int, given: Mapping[str, object], actions: Sequence[Action]
) -> Trace:
    found = blueprint(name)
    if version != found.version:
        raise InvalidInput(
            f"the trace is of version {version} of {name}, and this is version {found.version}; record it again."
        )
    return Trace(name, version, settle(name, found.parameters, given), tuple(actions))


def _check_length(actions: int) -> None:
    if actions > MAX_ACTIONS:
        raise InvalidInput(
            f"the trace has {actions} actions, more than {MAX_ACTIONS}; cut it after a few steps."
        )


def _split(steps: str) -> list[str]:
    _check_length(steps.count(".") + 1)
    return steps.split(".") if steps else []


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _parameter(part: str) -> tuple[str, str]:
    match = _PART.fullmatch(part)
    if match is None:
        raise InvalidInput(f"{part[:40]!r} in the trace is not a parameter; {_FORM}.")
    return match[1], match[2]


def _short(action: Action) -> str:
    return action.name if action.which < 0 else f"{action.name}-{action.which}"


def _long(step: str) -> Action:
    match = _STEP.fullmatch(step)
    if match is None:
        raise InvalidInput(f"{step[:40]!r} in the trace is not an action; {_FORM}.")
    return Action(match[1], -1 if match[2] is None else int(match[2]))


def replay(trace: Trace) -> "Replay":
    """Takes every action of a trace. Raises `InvalidAction` that names the first step which is not enabled."""
    model = blueprint(trace.model).build(trace.parameters)
    walk = Replay(model)
    for number, action in enumerate(trace.actions, start=1):
        try:
            walk.forward(action)
        except InvalidAction as error:
            raise InvalidAction(f"step {number} of the trace: {error}") from None
    return walk


class Replay:
    """A model on its way: forward by any enabled action, back, and down any other branch from there."""

    def __init__(self, model: Model[Any]) -> None:
        self.model = model
        self.states: list[Any] = [model.initial()]
        self.actions: list[Action] = []

    @property
    def state(self) -> Any:
        """Where the walk is."""
        return self.states[-1]

    @property
    def trace(self) -> Trace:
        """How it came there."""
        return Trace.of(self.model, self.actions)

    def forward(self, action: Action) -> Any:
        """Takes one action and returns the new state. Raises `InvalidAction`."""
        self.states.append(self.model.step(self.state, action))
        self.actions.append(action)
        return self.state

    def back(self) -> Any:
        """Takes the last action back and returns the state before it. Raises `InvalidAction` at the beginning."""
        if not self.actions:
            raise InvalidAction(
                "this is the initial state: there is no step to take back."
            )
        self.actions.pop()
        self.states.pop()
        return self.state

    def lines(self) -> Iterator[str]:
        """Every step as a person reads it: what happened, and the state after it."""
        yield f"0 start: {self.model.text(self.states[0])}"
        for number, (action, said, state) in enumerate(
            zip(self.actions, self.told(), self.states[1:], strict=True), start=1
        ):
            yield f"{number} {action}: {said} {self.model.text(state)}"

    def told(self) -> list[str]:
        """What happened in every step."""
        return list(map(self.model.told, self.states, self.actions))
