"""The judge of a model: what an outside reader saw of a state becomes a History, and `labkit.core.judge` counts.

The same view is judged once.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Generic

from labkit.core.judge import Outcome, Verdict, judge
from labkit.core.records import History, Record
from labkit.sim.model import Mood, Property, StateT


class StateJudge(ABC, Generic[StateT]):
    """Judges the states of one configuration. `view` is everything of a state on which its history depends."""

    def __init__(self, expected: Sequence[Record], view: Callable[[StateT], Hashable]) -> None:
        self.expected = expected
        self._view = view
        self._verdicts: dict[Hashable, Verdict] = {}

    @abstractmethod
    def history(self, state: StateT) -> History:
        """What an outside reader saw, with a look at the end."""

    def verdict(self, state: StateT) -> Verdict:
        """What the judge says if nothing more happens."""
        view = self._view(state)
        if view not in self._verdicts:
            self._verdicts[view] = judge(self.expected, self.history(state))
        return self._verdicts[view]

    def because(self, state: StateT) -> str:
        """The judge's own sentence."""
        return self.verdict(state).because + "."

    def claim(
        self,
        name: str,
        sentence: str,
        where: Callable[[StateT], bool] | None,
        because: Callable[[StateT], str] | None = None,
    ) -> Property[StateT]:
        """The claim that one of the judge's properties is not violated, in the states that `where` picks."""

        def holds(state: StateT) -> bool:
            return self.verdict(state).properties[name] is not Outcome.VIOLATED

        return Property(name, Mood.ALWAYS, sentence, holds, because or self.because, where)

    def all_out(
        self, sentence: str, text: Callable[[StateT], str], where: Callable[[StateT], bool]
    ) -> Property[StateT]:
        """The claim that a state can be reached at all in which no record is missing."""

        def holds(state: StateT) -> bool:
            return self.verdict(state).properties["no_loss"] is Outcome.HOLDS

        return Property("all_out", Mood.SOMETIMES, sentence, holds, text, where)
