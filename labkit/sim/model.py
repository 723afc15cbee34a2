"""The interface of a simulator (model): initial state, enabled actions, the state after an action, and properties.

States and actions are immutable named tuples. The state of a process declares each field as durable or volatile, and
`crash` resets exactly the volatile ones. Channels and external systems belong to the environment, which a crash leaves
unchanged. A model must compare states by value, because a search may pass an equal copy. It reads no clock and makes no
random choice, and lists its actions in an order that does not depend on hashes.
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
"""A field of a process that survives its crash."""

Volatile = Annotated[T, "volatile"]
"""A field of a process that its crash resets to the default."""


def from_fields(kind: type[ProcessT]) -> Callable[[tuple[Any, ...]], ProcessT]:
    """Return a function that builds a named tuple of the class `kind` from a tuple with the values of all fields.

    The function takes half the time of `_replace`. That matters because a search builds a state for every step.
    """
    build: Callable[[tuple[Any, ...]], ProcessT] = partial(tuple.__new__, kind)
    return build


class Word(StrEnum):
    """Base class of enumerations whose members are field values of states.

    Members hash as fast as `str`. That matters because a search hashes every state.
    """

    __hash__ = str.__hash__


@cache
def declared(process: type[ProcessT]) -> Mapping[str, str]:
    """Return a mapping from each field of a process's class to its annotation, "durable" or "volatile".

    Raises `TypeError` if a field has neither annotation.
    """
    hints = get_type_hints(process, include_extras=True)
    marks = {}
    for field in process._fields:  # type: ignore[attr-defined]  # a named tuple's class
        if get_origin(hints[field]) is not Annotated:
            raise TypeError(
                f"{process.__name__}.{field} must be typed as Durable or Volatile, because a simulated "
                "crash resets only volatile fields."
            )
        marks[field] = str(get_args(hints[field])[1])
    return marks


_KEPT = object()


@cache
def _left_by_crash(process: type[ProcessT]) -> tuple[Any, ...]:
    defaults: Mapping[str, Any] = process._field_defaults  # type: ignore[attr-defined]  # a named tuple's class
    return tuple(defaults[field] if mark == "volatile" else _KEPT for field, mark in declared(process).items())


def crash(process: ProcessT) -> ProcessT:
    """Return a simulated process after a crash: durable fields are kept, volatile ones get their defaults."""
    kind = type(process)
    return from_fields(kind)(
        tuple([value if left is _KEPT else left for value, left in zip(process, _left_by_crash(kind), strict=True)])
    )


_ACTION = re.compile(r"([a-z][a-z_]{0,39})(?:\((\d{1,6})\))?")


class Action(NamedTuple):
    """One step of a simulator: its name, and the number of its process, partition or message; -1 if it has none."""

    name: str
    which: int = -1

    def __str__(self) -> str:
        return self.name if self.which < 0 else f"{self.name}({self.which})"

    @classmethod
    def parse(cls, text: str) -> "Action":
        """Return the action in a text such as `restart` or `crash(1)`. Raises `InvalidInput` for any other text."""
        match = _ACTION.fullmatch(text)
        if match is None:
            raise InvalidInput(f"{text[:60]!r} is not an action; write name or name(number), as in crash(1).")
        return cls(match[1], -1 if match[2] is None else int(match[2]))


class Mood(StrEnum):
    """In which of a simulator's states a property must hold: in all, in at least one, or in all terminal states."""

    ALWAYS = "always"
    """The property must hold in every state."""
    SOMETIMES = "sometimes"
    """The property must hold in at least one state, which shows that the model can do its work at all."""
    EVENTUALLY = "eventually"
    """The property must hold in every terminal state, one without an enabled action. An endless cycle is not
    terminal.
    """


class Property(NamedTuple, Generic[StateT]):
    """A named property (claim) that a search checks in the states of a simulator.

    `holds` says whether a state has the property. If not, `because` returns a sentence that names the record or
    participant to blame. `where` selects the states to check; None means all.
    """

    name: str
    mood: Mood
    sentence: str
    holds: Callable[[StateT], bool]
    because: Callable[[StateT], str]
    where: Callable[[StateT], bool] | None = None

    def is_kept(self, state: StateT) -> bool:
        """Return whether a state respects the property: `holds` is true, or `where` does not select the state."""
        return (self.where is not None and not self.where(state)) or self.holds(state)


def unless(
    name: str, mood: Mood, sentence: str, broken: Callable[[StateT], str], where: Callable[[StateT], bool] | None = None
) -> Property[StateT]:
    """Return a property that a state violates if `broken` returns a text for this state.

    The text is the reason for the violation.
    """
    return Property(name, mood, sentence, lambda state: not broken(state), broken, where)


def possible(
    name: str, sentence: str, holds: Callable[[StateT], bool], where: Callable[[StateT], bool] | None = None
) -> Property[StateT]:
    """Return a "sometimes" property: `holds` must be true in at least one of the states that `where` selects.

    Since no single state can violate such a property, it never gives a reason for a violation.
    """
    return Property(name, Mood.SOMETIMES, sentence, holds, lambda _state: "", where)


class Model(ABC, Generic[StateT]):
    """Base class of simulators of protocols: an initial state, the enabled actions of each state, and their effects.

    A trace contains `name`, `version` and the parameters that differ from their defaults. Increase `version` whenever
    you change a default, an action or its meaning, because older traces then no longer fit.
    """

    name: str
    version: int
    parameters: Mapping[str, Parameter] = MappingProxyType({})
    row: str = ""
    """The name of the state's field that is a tuple of processes, which a search encodes one by one; or empty."""

    def __init__(self, values: Values) -> None:
        self.values = values

    @abstractmethod
    def initial(self) -> StateT:
        """Return the simulator's initial state."""

    @abstractmethod
    def actions(self, state: StateT) -> Sequence[Action]:
        """Return the actions that are possible in a state, always in the same order; none if the state is terminal."""

    @abstractmethod
    def apply(self, state: StateT, action: Action) -> StateT:
        """Return the state after an action. The action must be enabled in `state`; this is not checked."""

    @abstractmethod
    def properties(self) -> Sequence[Property[StateT]]:
        """Return the properties (claims) that a search checks in the states."""

    @abstractmethod
    def text(self, state: StateT) -> str:
        """Return the state as one line of text; different states have different lines."""

    @abstractmethod
    def sentence(self, action: Action) -> str:
        """Return one sentence that describes an action; it does not depend on the state."""

    def seats(self, _state: StateT) -> Sequence[Any]:
        """Return the state of each interchangeable process, including its channels; empty if there are none.

        Processes are interchangeable if no property distinguishes them. The number `Action.which` of an action on such
        a process is the index of the process in the result.
        """
        return ()

    def seated(self, state: StateT, _order: Sequence[int]) -> StateT:
        """Return the state with its interchangeable processes (`seats`) in another order.

        The process at index `_order[0]` becomes the first, the process at index `_order[1]` the second, and so on.
        """
        return state

    def sentence_in(self, state: StateT, action: Action) -> str:
        """Return one sentence that describes an action in this state; by default, it is `sentence(action)`."""
        return self.sentence(action)

    def step(self, state: StateT, action: Action) -> StateT:
        """Return the state after an action. Raises `InvalidAction`, which lists the enabled actions, if it is not
        enabled.
        """
        enabled = self.actions(state)
        if action not in enabled:
            options = (
                f"Enabled are {', '.join(map(str, enabled))}" if enabled else "No action is: the state is terminal"
            )
            raise InvalidAction(
                f"{str(action)[:60]} is not enabled in this state: {self.text(state).rstrip('.')}. {options}."
            )
        return self.apply(state, action)

    def successors(self, state: StateT) -> Iterator[tuple[Action, StateT]]:
        """Yield every enabled action of a state, with the state that the action leads to."""
        for action in self.actions(state):
            yield action, self.apply(state, action)
