"""What every model brings for the tests that all models share (`tests/sim/test_models.py`)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import pytest

from labkit.sim.explore import Exploration, explore
from labkit.sim.rules import RuleModel
from labkit.sim.trace import make
from labkit.sim.walk import Replay

Given = Mapping[str, object]
Patch = Callable[[pytest.MonkeyPatch], Given | None]
"""Breaks something, and says with which parameters that is searched, where it is not the same for all."""


class LeftOut(NamedTuple):
    """A configuration that leaves a rule out: the steps of a shortest counterexample to each claim that is violated."""

    given: Given
    lengths: Mapping[str, int]
    because: Mapping[str, str] = {}
    """The sentences of some of the violations, word by word."""


class Restart(NamedTuple):
    """What an action that starts processes again reads and changes, as names of the fields of the state."""

    starts: str
    """The fields that have a process that starts; of that it reads only what is durable."""
    reads: str = ""
    """The other fields that it reads, if a process then also only what is durable."""
    changes: str = ""
    """The other fields that it changes."""
    looks: Given | None = None
    """The small configuration in which it also reads what readers see."""


@dataclass(frozen=True, kw_only=True)
class Cases:
    """The configurations and the broken rules of one model.

    A small model needs `mutants` or `faults` alone: between them they show that each of its claims can fail.
    """

    small: Sequence[Given] = ({},)
    """Configurations whose states are all visited: each state has a line of its own."""
    large: Sequence[Given] = ()
    """Configurations too large to be searched, in which nothing is wrong; random walks go through them."""
    walks: int = 20
    """Random walks through each large configuration."""
    steps: int = 400
    """The most steps of such a walk; nearly all end before."""
    mutants: Mapping[Patch, set[str]] = field(default_factory=dict)
    """Broken rules, with the claims that only then are violated."""
    unreached: Mapping[Patch, tuple[str, ...]] = field(default_factory=dict)
    """Patches that make something impossible that should be possible, with the claims that are then never reached."""
    max_states: int = 60_000
    """States of a search with a broken rule: enough to find the violation."""
    left_out: Sequence[LeftOut] = ()
    names: Sequence[str] = ("",)
    """Every sentence about a violation in `left_out` has one of these words."""
    mutated: Given = field(default_factory=dict)
    """The parameters with which broken rules are searched."""
    faults: Mapping[str, Given] = field(default_factory=dict)
    """Claims that parameters alone are enough to violate."""
    tidy: Callable[[], None] = lambda: None
    """Empties the caches that were filled while a rule was broken."""
    claimed: Given = field(default_factory=dict)
    """Parameters with which every claim is made."""
    known: Sequence[tuple[Any, ...]] = ()
    """Configurations, with the number of their states, the depth, and the steps to each violation, if any."""
    refused: Sequence[tuple[Given, str]] = ()
    """Parameters that do not go together, each with a part of the sentence that says so."""
    reads: Mapping[str, str] = field(default_factory=dict)
    """Traces, each with its last step and state in words."""
    durable: Mapping[type, str]
    """The classes of processes, each with the fields that survive a crash."""
    crashes: Mapping[str, str]
    """The actions that are a crash of a process, each with the fields of the state that have a process that dies."""
    outside: str
    """The other fields of the state that a crash changes."""
    restarts: Mapping[str, Restart]
    """The actions that start processes again."""
    first: int = 0
    """The number of the first process."""


def replace_effect(
    patch: pytest.MonkeyPatch, model: type[RuleModel[Any]], name: str, effect: Callable[[Any, Any, int], Any]
) -> None:
    """Gives an action of every model of this class that is built from now on another effect."""
    patch.setitem(model.rules, name, model.rules[name]._replace(effect=effect))


def disable(patch: pytest.MonkeyPatch, model: type[RuleModel[Any]], *names: str) -> None:
    """Makes actions impossible in every model of this class."""
    actions = model.actions
    patch.setattr(model, "actions", lambda one, state: [each for each in actions(one, state) if each.name not in names])


@cache
def _searched(model: str, given: tuple[tuple[str, object], ...]) -> Exploration:
    return explore(make(model, dict(given)))


def searched_once(model: str, **given: object) -> Exploration:
    """What a search finds where no rule is patched; each configuration is searched once."""
    return _searched(model, tuple(sorted(given.items())))


def taken(model: str, given: Given, chosen: Sequence[int]) -> Replay:
    """A walk that takes, step by step, the enabled action of this number."""
    walked = Replay(make(model, given))
    for number in chosen:
        enabled = walked.model.actions(walked.state)
        if not enabled:
            break
        walked.forward(enabled[number % len(enabled)])
    return walked
