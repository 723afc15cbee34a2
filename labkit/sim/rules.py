"""A model whose actions are defined in one table: each entry has an action's effect, its sentence and its kind.

Which actions are enabled is not in the table: one method computes that for all actions, because it must be fast.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MethodType
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from labkit.sim.model import Action, Model, StateT
from labkit.sim.parameters import Values


class Event(StrEnum):
    """The kind of an action, such as a crash or a timeout, which decides its symbol in diagrams and its hotkey."""

    STEP = "step"
    CRASH = "crash"
    RESTART = "restart"
    DROP = "drop"
    DUPLICATE = "duplicate"
    DELAY = "delay"
    REORDER = "reorder"
    TIMEOUT = "timeout"
    OPERATOR = "operator"
    """A person interferes: deletes a checkpoint, restores an older one, or cancels a job."""


class Rule(NamedTuple, Generic[StateT]):
    """The definition of one action of a simulator: its effect on a state, and the sentence that describes it."""

    effect: Callable[[Any, StateT, int], StateT]
    """A method of the model that returns the state after the action, from the state before and the action's number."""
    sentence: str
    """What the action does, in words. `{which}` stands for the action's number; `words` may define more names."""
    event: Event = Event.STEP
    on_cue: bool | None = None
    """Whether the action happens only if a script names it. None means no for steps and restarts, yes for the rest."""

    @property
    def waits_for_cue(self) -> bool:
        """Return whether an example run (scenario) takes this action only where its script names the action.

        By default, this is so for all actions but steps and restarts; `on_cue` overrides the default.
        """
        if self.on_cue is None:
            return self.event not in (Event.STEP, Event.RESTART)
        return self.on_cue


class RuleModel(Model[StateT]):
    """Base class of simulators with a table `rules`, which maps an action's name to its effect and its sentence."""

    rules: ClassVar[dict[str, Rule[Any]]] = {}

    def __init_subclass__(cls) -> None:
        """Copy the base class's rules into the subclass, which defines only the rules that it adds or changes."""
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
        return self._effects[action.name](state, action.which)

    def event(self, action: Action) -> Event:
        """Return the kind of an action, which decides its symbol in a diagram."""
        return self.rules[action.name].event

    def sentence(self, action: Action) -> str:
        """Return the sentence that describes an action, with the placeholders of its template filled in."""
        return self.template(action).format(which=action.which, **self.words(action))

    def template(self, action: Action) -> str:
        """Return an action's sentence with placeholders such as `{which}`.

        A simulator may override this method to choose among several sentences by its parameters.
        """
        return self.rules[action.name].sentence

    def words(self, _action: Action) -> Mapping[str, object]:
        """Return a dict from each placeholder in an action's sentence to its value.

        The placeholder `{which}` needs no value here, because `sentence` fills in the number of the action.
        """
        return {}


BudgetT = TypeVar("BudgetT", bound=tuple[int, ...])


def one_less(budget: BudgetT, fault: str) -> BudgetT:
    """Return a budget with one `fault` fewer. A budget says how many faults of each kind may still happen in a run."""
    at = budget._fields.index(fault)  # type: ignore[attr-defined]  # a named tuple
    left: BudgetT = budget._make((*budget[:at], budget[at] - 1, *budget[at + 1 :]))  # type: ignore[attr-defined]  # a named tuple, too
    return left
