"""Read and replay traces: turn a trace, as text or JSON, into a run of the model that it names.

A trace may come from an untrusted source, so its size is checked first.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from labkit.core.errors import InvalidAction, InvalidInput
from labkit.core.words import nearest
from labkit.sim.blueprint import Blueprint
from labkit.sim.model import Action, Model
from labkit.sim.models import MODELS
from labkit.sim.open_models import OPEN_MODELS
from labkit.sim.parameters import chosen, settle
from labkit.sim.walk import Replay, Trace

__all__ = ["MAX_ACTIONS", "MAX_TEXT", "Replay", "Trace", "blueprint", "make", "parse", "replay", "trace_from_json"]

MAX_ACTIONS = 10_000
"""The maximum number of actions in a trace."""

MAX_TEXT = 400_000
"""The maximum number of characters in a trace, as text or as JSON."""

_PART = re.compile(r"([a-z_]{1,40})\.([A-Za-z0-9_-]{1,200})")
_STEP = re.compile(r"([a-z][a-z_]{0,39})(?:-(\d{1,6}))?")
_ADVICE = "copy the whole trace, as in two_phase_commit~1~participants.2~~start"


def blueprint(name: str) -> Blueprint[Any, Any]:
    """Return the description of a simulator. Raises `InvalidInput` for an unknown name.

    The name may also be that of an open model: a simulator in which a learner's function decides some actions.
    """
    if name in OPEN_MODELS:
        return OPEN_MODELS[name]
    if name not in MODELS:
        raise InvalidInput(f"there is no simulator {name[:40]!r}; {nearest(name[:40], list(MODELS))}")
    return MODELS[name]


def make(name: str, parameters: Mapping[str, object]) -> Model[Any]:
    """Return the simulator `name` with these parameters.

    Raises `InvalidInput` for an unknown name or a value that is not allowed.
    """
    model: Model[Any] = blueprint(name).make(parameters)
    return model


def parse(text: str) -> Trace:
    """Parse a text that `str(trace)` returned, and return the trace. Raises `InvalidInput` for any other text."""
    if len(text) > MAX_TEXT:
        raise InvalidInput(f"the trace has {len(text)} characters, more than {MAX_TEXT}; keep only its first steps.")
    head, separator, steps = text.strip().partition("~~")
    name, *rest = head.split("~")
    if not separator or not rest or not (rest[0].isascii() and rest[0].isdigit() and len(rest[0]) < 5):
        raise InvalidInput(f"{text[:40]!r} is not a complete trace; {_ADVICE}.")
    parameters = dict(map(_parameter, rest[1:]))
    _check_length(steps.count(".") + 1)
    actions = list(map(_long, steps.split("."))) if steps else []
    return _checked(name, int(rest[0]), parameters, actions)


def trace_from_json(model: str, version: int, parameters: Mapping[str, object], actions: Sequence[str]) -> Trace:
    """Return the trace with these fields, which `Trace.to_json` has written; the caller has checked their types.

    Raises `InvalidInput` for an unknown simulator, for another version of the simulator, and for parameters that are
    not allowed.
    """
    _check_length(len(actions))
    return _checked(model, version, parameters, [Action.parse(text) for text in actions])


def _checked(name: str, version: int, parameters: Mapping[str, object], actions: Sequence[Action]) -> Trace:
    own = blueprint(name)
    if version != own.version:
        raise InvalidInput(
            f"the trace was recorded with version {version} of {name}, and this labkit has version "
            f"{own.version}; record the run again."
        )
    values = settle(name, own.parameters, parameters)
    return Trace(name, version, chosen(own.parameters, values), tuple(actions))


def _check_length(actions: int) -> None:
    if actions > MAX_ACTIONS:
        raise InvalidInput(f"the trace has {actions} actions, more than {MAX_ACTIONS}; keep only its first steps.")


def _parameter(part: str) -> tuple[str, str]:
    match = _PART.fullmatch(part)
    if match is None:
        raise InvalidInput(f"{part[:40]!r} in the trace is not a parameter; {_ADVICE}.")
    return match[1], match[2]


def _long(step: str) -> Action:
    match = _STEP.fullmatch(step)
    if match is None:
        raise InvalidInput(f"{step[:40]!r} in the trace is not an action; {_ADVICE}.")
    return Action(match[1], -1 if match[2] is None else int(match[2]))


def replay(trace: Trace) -> Replay:
    """Run a simulator with the actions of a trace, and return the run.

    Raises `InvalidAction`, with the number of the step, if a step is not enabled.
    """
    walk = Replay(make(trace.model, trace.parameters))
    for number, action in enumerate(trace.actions, start=1):
        try:
            walk.forward(action)
        except InvalidAction as error:
            raise InvalidAction(f"step {number} of the trace: {error}") from None
    return walk
