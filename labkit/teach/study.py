"""What notebooks do with the simulators: replay a run, simulate a crash, search all schedules.

Everything here has its equal on the command line (`labkit replay`, `labkit explore`). This module must know no model
and count nothing: the models' claims and the one judge do.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from labkit.core.asked import takes
from labkit.core.errors import InvalidInput
from labkit.core.explanation import Explanation
from labkit.core.exposure import Exposure
from labkit.core.failpoints import (
    POINTS,
    Order,
    Strategy,
    check_crash,
    orders,
    parse_crash,
)
from labkit.core.judge import Guarantee, Outcome, Verdict
from labkit.core.verdict import guarantee
from labkit.core.words import nearest
from labkit.sim.chains import SOURCES
from labkit.sim.explore import MAX_STATES, Exploration, violations
from labkit.sim.explore import explore as search
from labkit.sim.models.pipeline.scenarios import crashed
from labkit.sim.parameters import chosen
from labkit.sim.readers import ReaderAccount, reader_account
from labkit.sim.scenarios import Fact, facts, find, say
from labkit.sim.trace import Replay, Trace, blueprint, make, parse
from labkit.sim.trace import replay as play
from labkit.view.timeline import timeline

__all__ = [
    "Search",
    "Walk",
    "explore",
    "points",
    "replay",
    "simulate",
]


class Walk:
    """A run of a simulator that is over: what the judge says of it, what it cost, which claims it breaks."""

    @takes("lab.Walk(walk)")
    def __init__(self, walk: Replay, watch_for: str = "") -> None:
        self.walk, self.watch_for = walk, watch_for
        self.facts: Mapping[str, Fact] = facts(walk)
        """What the model has to say of the whole run: counts of steps and records, and the judge's verdict."""
        self.violated = {
            violation.property: violation.because for violation in violations(walk)
        }
        """The claims that do not hold in this run, each with the reason."""

    @property
    def trace(self) -> Trace:
        """What happened, for `lab.show`."""
        return self.walk.trace

    @property
    def state(self) -> Any:
        """The model's last state."""
        return self.walk.state

    @property
    def enabled(self) -> list[str]:
        """What can happen next."""
        return [str(action) for action in self.walk.model.actions(self.state)]

    @property
    def seen(self) -> str:
        """What an outside reader saw, in order, with the moments of the crashes. Raises `InvalidInput` as `verdict`."""
        history = blueprint(self.walk.model.name).history
        if history is None:
            raise InvalidInput(
                f"{self.walk.model.name} has no outside reader that notes the order of rows."
            )
        return timeline(history(self.walk).events)

    def until(self, action: str) -> "Walk":
        """This run, ended right after the first time that the action happened. Raises `InvalidInput` if it never did.

        `read` is any of its actions with that name, `read(1)` this one alone.
        """
        for place, taken in enumerate(self.walk.actions, start=1):
            if action in (str(taken), taken.name):
                return Walk(
                    play(Trace.of(self.walk.model, self.walk.actions[:place])),
                    self.watch_for,
                )
        raise InvalidInput(
            f"{action[:40]} never happens in this run; {nearest(action[:40], self._happened())}"
        )

    def _happened(self) -> list[str]:
        return list(dict.fromkeys(map(str, self.walk.actions)))

    @property
    def verdict(self) -> Verdict:
        """What the judge says of the rows that an outside reader saw. Raises `InvalidInput` where there are no rows."""
        verdict = self.facts.get("verdict")
        if not isinstance(verdict, Verdict):
            raise InvalidInput(
                f"A run of {self.walk.model.name} writes no rows that could be judged; see its violated."
            )
        return verdict

    @cached_property
    def reader_account(self) -> ReaderAccount | None:
        """Where this run leaves all failure-free ones, and for how many steps; None where no reader notes rows."""
        return reader_account(blueprint(self.walk.model.name), self.walk)

    @property
    def explanation(self) -> Explanation:
        """What failure-free runs have to say of this one. Raises `InvalidInput` where no reader notes rows."""
        return self._account().explanation

    @property
    def exposure(self) -> Exposure:
        """For how many steps readers could have read something wrong. Raises `InvalidInput` as `explanation` does."""
        return self._account().exposure

    def _account(self) -> ReaderAccount:
        if self.reader_account is None:
            raise InvalidInput(
                f"{self.walk.model.name} has no outside reader that notes the order of rows."
            )
        return self.reader_account

    def __str__(self) -> str:
        """The whole outcome; not the steps, which are for `lab.show`."""
        lines = [say(name, fact) for name, fact in self.facts.items()]
        lines += [
            f"{name}: {said}"
            for name, said in (
                self.reader_account.lines() if self.reader_account else ()
            )
        ]
        lines += [
            f"VIOLATED {name}: {because}" for name, because in self.violated.items()
        ]
        return "\n".join(lines or ["No claim is violated in this run."])

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        from labkit.teach.cards import of_walk

        return of_walk(self)._repr_mimebundle_()


class Search:
    """What was found by trying every schedule of one configuration."""

    @takes("lab.Search(exploration)")
    def __init__(self, exploration: Exploration) -> None:
        self.exploration = exploration
        self.violated = {
            violation.property: violation.because
            for violation in exploration.violations
        }
        """The claims that some schedule breaks, each with the reason."""

    @property
    def states(self) -> int:
        """How many different states can be reached."""
        return self.exploration.unique_states

    @property
    def exhausted(self) -> bool:
        """Whether every reachable state was seen."""
        return self.exploration.exhausted

    @property
    def broken(self) -> str:
        """The names of the claims that some schedule breaks, or "nothing"."""
        return ", ".join(self.violated) or "nothing"

    @property
    def guarantee(self) -> Guarantee:
        """What is left whichever schedule comes. Raises `InvalidInput` for a model that claims nothing of rows.

        Loss in one schedule and a duplicate in another leave nothing, though no single run shows both.
        """
        model = make(self.exploration.model, self.exploration.parameters)
        if not {"no_loss", "no_duplicate"} <= {
            claim.name for claim in model.properties()
        }:
            raise InvalidInput(
                f"{self.exploration.model} claims nothing of rows, so it has no guarantee; see its violated."
            )
        open_ = Outcome.HOLDS if self.exhausted else Outcome.UNKNOWN
        asked = ("no_loss", "no_duplicate", "no_unexpected")
        return guarantee(
            {
                name: Outcome.VIOLATED if name in self.violated else open_
                for name in asked
            }
        )

    @property
    def call(self) -> str:
        """The Python call that repeats this search."""
        parameters = chosen(
            blueprint(self.exploration.model).parameters,
            make(self.exploration.model, self.exploration.parameters).values,
        )
        named = (f", {name}={value!r}" for name, value in parameters.items())
        return f'lab.explore("{self.exploration.model}"{"".join(named)})'

    def counterexample(self, claim: str | None = None) -> Trace:
        """A shortest run that breaks a claim, the first one that was found if none is named, for `lab.show`.

        Raises `InvalidInput` when no schedule breaks it.
        """
        by_name = {
            violation.property: violation.trace
            for violation in self.exploration.violations
        }
        if not by_name:
            raise InvalidInput(
                "No schedule breaks a claim, so there is no counterexample to show."
            )
        if claim is not None and claim not in by_name:
            raise InvalidInput(
                f"No schedule breaks {claim!r}; {nearest(claim, list(by_name))}"
            )
        return by_name[claim] if claim else next(iter(by_name.values()))

    def __str__(self) -> str:
        """States, whether these are all, and what is broken, with the number of steps that it takes."""
        extent = (
            "all there are"
            if self.exhausted
            else f"not all: {self.exploration.stopped}"
        )
        lines = [f"{self.states:,} states, {extent}"]
        lines += [
            f"VIOLATED {each.property}, {len(each.trace.actions)} steps: {each.because}"
            for each in self.exploration.violations
        ]
        lines += [f"NEVER REACHED {name}" for name in self.exploration.never_reached]
        return "\n".join(
            lines if len(lines) > 1 else [*lines, "No schedule breaks a claim."]
        )

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        from labkit.teach.cards import of_search

        return of_search(self)._repr_mimebundle_()


@takes('lab.replay("pipeline.jump_back")')
def replay(what: str | Trace) -> Walk:
    """A named scenario (`pipeline.jump_back`), a trace or its text, played to its end.

    Raises `InvalidInput` for an unknown scenario or text that is no trace, `InvalidAction` for a trace that does not
    replay.
    """
    if isinstance(what, Trace):
        return Walk(play(what))
    if "~" in what:
        return Walk(play(parse(what)))
    scenario = find(what)
    return Walk(play(scenario.trace), scenario.watch_for)


@takes('lab.simulate("sink.after_pre_commit", sink="append")')
def simulate(
    at: str | Sequence[str] = (),
    *,
    sink: str,
    store: str = "files",
    order: str | None = None,
    source: str = "log",
) -> Walk:
    """The crash that `lab.crash` makes on real Spark, in the simulator: same points, same three records, same judge.

    `at` is `POINT`, or several, the nth for the nth driver. `source`: `log`, which can be read again, or `socket`, which
    cannot. Raises `InvalidInput` for what is not modelled.
    """
    strategy, taken = _sink(sink, order)
    crashes = [parse_crash(point) for point in ([at] if isinstance(at, str) else at)]
    for planned in crashes:
        check_crash(planned, strategy, taken)
    if source not in SOURCES:
        raise InvalidInput(
            f"there is no source {source[:40]!r}; {nearest(source[:40], list(SOURCES))}"
        )
    return Walk(crashed(strategy, taken, store, crashes, source=SOURCES[source]))


@takes('lab.points("two_phase")')
def points(sink: str, order: str | None = None) -> list[str]:
    """The failpoints that a batch passes with this sink, in order. Raises `InvalidInput`."""
    return [point.value for point in POINTS[_sink(sink, order)]]


def _sink(sink: str, order: str | None) -> tuple[Strategy, Order]:
    if sink not in list(Strategy):
        raise InvalidInput(
            f"there is no sink {sink[:40]!r}; {nearest(sink[:40], [each.value for each in Strategy])}"
        )
    strategy = Strategy(sink)
    names = [each.value for each in orders(strategy)]
    if order is not None and order not in names:
        raise InvalidInput(
            f"{sink} takes no order {order[:40]!r}; {nearest(order[:40], names)}"
        )
    return strategy, orders(strategy)[0] if order is None else Order(order)


@takes('lab.explore("pipeline", strategy="append")')
def explore(
    model: str, *, max_states: int = MAX_STATES, **parameters: object
) -> Search:
    """Every schedule of a model with these parameters, breadth first. Raises `InvalidInput` for an unknown one."""
    return Search(search(make(model, parameters), max_states=max_states))
