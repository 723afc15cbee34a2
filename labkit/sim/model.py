"""What a simulator is: initial state, enabled actions, the state after an action, and properties with sentences.

States and actions are frozen and hashable, and cheap: named tuples, built by position. A process's state says of
every field whether it is durable or volatile, and `crash` drops exactly the volatile ones; channels and outside
systems are environment, which a crash does not touch. States are values, so a model compares their parts by value: a
search may hand an equal part. A model must not know who explores or draws it, must not read
clocks or chance, and must give its actions in an order that does not depend on hashes.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache, partial
from types import MappingProxyType
from typing import Annotated, Any, Generic, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from labkit.core.errors import InvalidAction, InvalidInput
from labkit.sim.parameters import Parameter, Values

T = TypeVar("T")
StateT = TypeVar("StateT", bound=Hashable)
ProcessT = TypeVar("ProcessT", bound=tuple[Any, ...])

Durable = Annotated[T, "durable"]
"""A field of a process that its crash does not touch."""

Volatile = Annotated[T, "volatile"]
"""A field of a process that its crash sets to the field's default."""


def from_fields(kind: type[ProcessT]) -> Callable[[tuple[Any, ...]], ProcessT]:
    """A function that builds a named tuple of this kind from all its fields, in order.

    A search builds a state for every step. This costs a little less than calling the class, and half of `_replace`.
    """
    build: Callable[[tuple[Any, ...]], ProcessT] = partial(tuple.__new__, kind)
    return build


class Word(StrEnum):
    """An enumeration inside a state: hashed by C, since a state is hashed whenever it is reached."""

    __hash__ = str.__hash__


@cache
def declared(process: type[ProcessT]) -> Mapping[str, str]:
    """What each field of a process is: `durable` or `volatile`. Raises `TypeError` for a field without mark."""
    hints = get_type_hints(process, include_extras=True)
    marks = {}
    for field in process._fields:  # type: ignore[attr-defined]  # a named tuple's class
        if get_origin(hints[field]) is not Annotated:
            raise TypeError(f"{process.__name__}.{field} is neither Durable nor Volatile.")
        marks[field] = str(get_args(hints[field])[1])
    return marks


_KEPT = object()


@cache
def _left_by_crash(process: type[ProcessT]) -> tuple[Any, ...]:
    """Of every field what a crash sets it to, or `_KEPT`."""
    defaults: Mapping[str, Any] = process._field_defaults  # type: ignore[attr-defined]  # a named tuple's class
    return tuple(defaults[field] if mark == "volatile" else _KEPT for field, mark in declared(process).items())


def crash(process: ProcessT) -> ProcessT:
    """The process after its death: what is durable stays, everything volatile falls back to its default."""
    kind = type(process)
    return from_fields(kind)(
        tuple([value if left is _KEPT else left for value, left in zip(process, _left_by_crash(kind), strict=True)])
    )


_ACTION = re.compile(r"([a-z][a-z_]{0,39})(?:\((\d{1,6})\))?")


class Action(NamedTuple):
    """One thing that can happen: a name, and which participant, partition or message it happens to (-1: none)."""

    name: str
    which: int = -1

    def __str__(self) -> str:
        return self.name if self.which < 0 else f"{self.name}({self.which})"

    @classmethod
    def parse(cls, text: str) -> "Action":
        """The action that `str` gave. Raises `InvalidInput` for any other text."""
        match = _ACTION.fullmatch(text)
        if match is None:
            raise InvalidInput(f"{text[:60]!r} is not an action; write name or name(number), as in crash(1).")
        return cls(match[1], -1 if match[2] is None else int(match[2]))


class Mood(StrEnum):
    """In which states a property must hold."""

    ALWAYS = "always"
    """In every state."""
    SOMETIMES = "sometimes"
    """In at least one state: it shows that the model can do its work at all."""
    EVENTUALLY = "eventually"
    """In every terminal state, one without an enabled action. An endless cycle is no terminal state."""


class Property(NamedTuple, Generic[StateT]):
    """A named claim about states. `because` says of a state that breaks it which record or participant does so.

    `where` picks the states that it speaks of, so that a claim about ends costs nothing on the way; None: all.
    """

    name: str
    mood: Mood
    sentence: str
    holds: Callable[[StateT], bool]
    because: Callable[[StateT], str]
    where: Callable[[StateT], bool] | None = None

    def is_kept(self, state: StateT) -> bool:
        """Whether a state keeps the claim, or is none of those that it speaks of."""
        return (self.where is not None and not self.where(state)) or self.holds(state)


class Model(ABC, Generic[StateT]):
    """One configuration of a simulator. A trace carries `name` and `version`, and what is chosen of `parameters`.

    Whoever changes a default, an action or its meaning raises `version`.
    """

    name: str
    version: int
    parameters: Mapping[str, Parameter] = MappingProxyType({})
    row: str = ""
    """The field of the state whose processes a search stores one by one, since they have very many combinations."""

    def __init__(self, values: Values) -> None:
        self.values = values

    @abstractmethod
    def initial(self) -> StateT:
        """The state in which everything starts."""

    @abstractmethod
    def actions(self, state: StateT) -> Sequence[Action]:
        """The actions that are enabled, always in the same order; none: the state is terminal."""

    @abstractmethod
    def apply(self, state: StateT, action: Action) -> StateT:
        """The state after an action that is enabled; nothing is checked."""

    @abstractmethod
    def properties(self) -> Sequence[Property[StateT]]:
        """What is claimed about the states."""

    @abstractmethod
    def text(self, state: StateT) -> str:
        """The state in one line for a person; different states have different lines."""

    @abstractmethod
    def sentence(self, action: Action) -> str:
        """What an action sets out to do, in one sentence."""

    def seats(self, _state: StateT) -> Sequence[Any]:
        """All that a state says of each process that may change places with the others; none: no two may.

        Seats have an order. `Action.which` names a seat, and no claim tells one seat from another.
        """
        return ()

    def seated(self, state: StateT, _order: Sequence[int]) -> StateT:
        """The state with those processes in other places: first the one that sat at `order[0]`."""
        return state

    def sentence_in(self, state: StateT, action: Action) -> str:
        """What an action does in this state, in one sentence: another one than `sentence` where it is refused."""
        return self.sentence(action)

    def step(self, state: StateT, action: Action) -> StateT:
        """The state after an action. Raises `InvalidAction` when it is not enabled, saying what is."""
        enabled = self.actions(state)
        if action not in enabled:
            choice = f"enabled are {', '.join(map(str, enabled))}" if enabled else "nothing is, the state is terminal"
            raise InvalidAction(f"{str(action)[:60]} is not enabled in {self.text(state)}: {choice}.")
        return self.apply(state, action)

    def successors(self, state: StateT) -> Iterator[tuple[Action, StateT]]:
        """Every enabled action with the state that it leads to."""
        for action in self.actions(state):
            yield action, self.apply(state, action)
