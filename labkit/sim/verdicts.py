"""The judge of a model: it turns what an outside reader saw in a state into a History for `labkit.core.judge`.

States in which a reader saw the same are judged once.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Generic

from labkit.core.judge import Outcome, Verdict, judge
from labkit.core.records import History, Record
from labkit.sim.model import Mood, Property, StateT


class StateJudge(ABC, Generic[StateT]):
    """Judges the states of one configuration. `view` returns everything in a state on which its history depends."""

    def __init__(self, expected: Sequence[Record], view: Callable[[StateT], Hashable]) -> None:
        self.expected = expected
        self._view = view
        self._verdicts: dict[Hashable, Verdict] = {}

    @abstractmethod
    def history(self, state: StateT) -> History:
        """Return the rows that an outside reader saw up to this state, with a reading at the end."""

    def verdict(self, state: StateT) -> Verdict:
        """Return the judge's verdict on a state, as if the run ended there."""
        view = self._view(state)
        if view not in self._verdicts:
            self._verdicts[view] = judge(self.expected, self.history(state))
        return self._verdicts[view]

    def because(self, state: StateT) -> str:
        """Return the judge's reason for its verdict on a state, as a sentence."""
        return self.verdict(state).because + "."

    def claim(
        self,
        name: str,
        sentence: str,
        where: Callable[[StateT], bool] | None,
        because: Callable[[StateT], str] | None = None,
    ) -> Property[StateT]:
        """Return the claim that no state selected by `where` violates the judge's property `name`."""

        def holds(state: StateT) -> bool:
            return self.verdict(state).properties[name] is not Outcome.VIOLATED

        return Property(name, Mood.ALWAYS, sentence, holds, because or self.because, where)

    def all_out(
        self, sentence: str, text: Callable[[StateT], str], where: Callable[[StateT], bool]
    ) -> Property[StateT]:
        """Return the claim that all records can come out: some state selected by `where` has no missing record."""

        def holds(state: StateT) -> bool:
            return self.verdict(state).properties["no_loss"] is Outcome.HOLDS

        return Property("all_out", Mood.SOMETIMES, sentence, holds, text, where)
