"""Judge the states of a model: pass the rows that an outside reader has seen up to a state to `labkit.core.judge`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Generic

from labkit.core.judge import Outcome, Verdict, judge
from labkit.core.records import History, Record
from labkit.sim.blueprint import Fact
from labkit.sim.model import Mood, Property, StateT, possible
from labkit.sim.walk import Replay


class StateJudge(ABC, Generic[StateT]):
    """Base class of judges, which compare the rows that a reader has seen up to a state with the expected rows.

    `view` returns the part of a state that `history` uses, so that states with an equal view are judged only once.
    """

    def __init__(self, expected: Sequence[Record], view: Callable[[StateT], Hashable]) -> None:
        self.expected = expected
        self._view = view
        self._verdicts: dict[Hashable, Verdict] = {}

    @abstractmethod
    def history(self, state: StateT) -> History:
        """Return the rows that an outside reader has seen up to this state.

        The history ends with a complete read of the store (a `Reading`), as if the run ended in this state.
        """

    def verdict(self, state: StateT) -> Verdict:
        """Return the verdict on a run that would end in this state: which rows are lost, duplicated or unexpected."""
        view = self._view(state)
        if view not in self._verdicts:
            self._verdicts[view] = judge(self.expected, self.history(state))
        return self._verdicts[view]

    def because(self, state: StateT) -> str:
        """Return the reason for the verdict on a simulator's state, as a sentence."""
        return self.verdict(state).because + "."

    def claim(
        self,
        name: str,
        sentence: str,
        where: Callable[[StateT], bool] | None,
        because: Callable[[StateT], str] | None = None,
    ) -> Property[StateT]:
        """Return the claim that the judge finds no violation of the property `name`, such as no_loss.

        `where` selects the states to check; None means all. `because` replaces the verdict's reason for a violation.
        """

        def holds(state: StateT) -> bool:
            return self.verdict(state).properties[name] is not Outcome.VIOLATED

        return Property(name, Mood.ALWAYS, sentence, holds, because or self.because, where)

    def all_out(self, sentence: str, where: Callable[[StateT], bool]) -> Property[StateT]:
        """Return the claim that, in at least one state selected by `where`, readers have seen every record."""

        def holds(state: StateT) -> bool:
            return self.verdict(state).properties["no_loss"] is Outcome.HOLDS

        return possible("all_out", sentence, holds, where)


# The following functions are for the `Blueprint` of a simulator that has a `StateJudge` as its attribute `judge`.


def judge_of(walk: Replay) -> StateJudge[Any]:
    """Return the judge of a run's simulator, which compares the rows that readers see with the expected rows."""
    own: StateJudge[Any] = walk.model.judge  # type: ignore[attr-defined]  # these simulators have one
    return own


def history_of(walk: Replay) -> History:
    """Return the rows that an outside reader has seen in a run, as a history for the judge."""
    return judge_of(walk).history(walk.state)


def expected_of(walk: Replay) -> Sequence[Record]:
    """Return the records that an outside reader should see at the end of a run."""
    return judge_of(walk).expected


def verdict_of(walk: Replay) -> Verdict:
    """Return the verdict on the output at the end of a run: which rows are lost, duplicated or unexpected."""
    return judge_of(walk).verdict(walk.state)


def verdict_as_fact(walk: Replay) -> Mapping[str, Fact]:
    """Return a dict with the verdict on a run, for simulators that compute no other fact about a run."""
    return {"verdict": verdict_of(walk)}
