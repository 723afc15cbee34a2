"""A model whose actions stand in one table: of each action its effect, its sentence and its kind, side by side.

Which actions are enabled stays a method of the model, because a search asks it for every state and several actions
share one look at the state.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MethodType
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from labkit.sim.model import Action, Model, StateT
from labkit.sim.parameters import Values


class Event(StrEnum):
    """What kind of thing an action is: how a space-time diagram draws it, and which key of the stepper finds it."""

    STEP = "step"
    CRASH = "crash"
    RESTART = "restart"
    DROP = "drop"
    DUPLICATE = "duplicate"
    DELAY = "delay"
    REORDER = "reorder"
    TIMEOUT = "timeout"
    OPERATOR = "operator"
    """Somebody interferes: a checkpoint is deleted, an older one restored, a job cancelled."""


class Rule(NamedTuple, Generic[StateT]):
    """One action of a model."""

    effect: Callable[[Any, StateT, int], StateT]
    """A method of the model: the state after the action, of the state before it and the action's number."""
    sentence: str
    """What the action sets out to do. `{which}` stands for the action's number, other names for a model's own words."""
    event: Event = Event.STEP
    on_cue: bool | None = None
    """Whether the action waits for a scenario to name it. None: a step or a restart does not, a fault does."""

    @property
    def waits_for_cue(self) -> bool:
        """Whether the action happens only where a scenario names it, and not when everybody simply goes on."""
        if self.on_cue is None:
            return self.event not in (Event.STEP, Event.RESTART)
        return self.on_cue


class RuleModel(Model[StateT]):
    """A model that takes its effects and its sentences from `rules`, by the name of an action."""

    rules: ClassVar[dict[str, Rule[Any]]] = {}

    def __init_subclass__(cls) -> None:
        """A model that builds on another one has all its rules, and names only those that it adds or changes."""
        super().__init_subclass__()
        for base in cls.__mro__[1:]:
            if issubclass(base, RuleModel):
                cls.rules = base.rules | cls.rules
                break

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        self._effects: dict[str, Callable[[StateT, int], StateT]] = {
            name: MethodType(rule.effect, self) for name, rule in self.rules.items()
        }

    def apply(self, state: StateT, action: Action) -> StateT:
        """The state after the effect of the action's rule."""
        return self._effects[action.name](state, action.which)

    def event(self, action: Action) -> Event:
        """What kind of thing an action is."""
        return self.rules[action.name].event

    def sentence(self, action: Action) -> str:
        """What an action sets out to do, with the model's own words filled in."""
        return self.template(action).format(which=action.which, **self.words(action))

    def template(self, action: Action) -> str:
        """The sentence of an action's rule. A model replaces it where a parameter changes what the action means."""
        return self.rules[action.name].sentence

    def words(self, _action: Action) -> Mapping[str, object]:
        """What the names in a sentence stand for, beside `{which}`."""
        return {}


BudgetT = TypeVar("BudgetT", bound=tuple[int, ...])


def one_less(budget: BudgetT, fault: str) -> BudgetT:
    """A budget of faults, a named tuple of numbers, of which one kind may come once less."""
    at = budget._fields.index(fault)  # type: ignore[attr-defined]  # a named tuple
    left: BudgetT = budget._make((*budget[:at], budget[at] - 1, *budget[at + 1 :]))  # type: ignore[attr-defined]  # a named tuple, too
    return left
