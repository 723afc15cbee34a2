"""Show the results of simulators, one finished run or a search of all schedules, as cards and as text.

The simulators define the properties, and the judge counts lost and duplicate rows; this module only displays both.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from labkit.core.errors import InvalidInput
from labkit.core.explanation import Explanation
from labkit.core.exposure import Exposure
from labkit.core.judge import Guarantee, Outcome, Verdict
from labkit.core.verdict import guarantee
from labkit.core.words import nearest, sentence
from labkit.sim.explore import Exploration, nearest_to, violations
from labkit.sim.parameters import chosen
from labkit.sim.readers import ReaderAccount, reader_account
from labkit.sim.scenarios import Fact, facts, say
from labkit.sim.trace import Replay, Trace, blueprint, make
from labkit.sim.trace import replay as play
from labkit.view import seen, verdict_parts
from labkit.view.card import BAD, DIM, GOOD, Card, Html, beside, code, fold, items, para, table
from labkit.view.timeline import Step, timeline

MOST_CLAIMS = 8
"""The largest number of violated properties that a card lists."""


class Walk:
    """A finished run of a simulator (state machine), with its verdict, violated properties and measured values."""

    def __init__(self, walk: Replay, watch_for: str = "") -> None:
        self.walk, self.watch_for = walk, watch_for
        self.facts: Mapping[str, Fact] = facts(walk)
        """The simulator's facts about the whole run, by name: counts of steps and records, and the verdict."""
        self.violated = {violation.property: violation.because for violation in violations(walk)}
        """The properties that this run violates, each with the reason."""

    @property
    def trace(self) -> Trace:
        """The sequence of actions of this run, to pass to `lab.show`."""
        return self.walk.trace

    @property
    def state(self) -> Any:
        """The last state of the simulator."""
        return self.walk.state

    @property
    def enabled(self) -> list[str]:
        """The actions that are possible in the last state, as text."""
        return [str(action) for action in self.walk.model.actions(self.state)]

    @property
    def seen(self) -> str:
        """The values that an outside reader saw, and the crashes between them, in one line, as text.

        Raises `InvalidInput` if the simulator has no outside reader.
        """
        history = blueprint(self.walk.model.name).history
        if history is None:
            raise InvalidInput(
                f"The simulator {self.walk.model.name} has no reader of the output, so no reader saw anything."
            )
        return timeline(history(self.walk).events)

    def until(self, action: str) -> "Walk":
        """Return the part of this run up to and including the first occurrence of an action.

        `"read"` matches every action with the name read, and `"read(1)"` only those with the argument 1. Raises
        `InvalidInput` if the action never happens.
        """
        for place, taken in enumerate(self.walk.actions, start=1):
            if action in (str(taken), taken.name):
                return Walk(play(Trace.of(self.walk.model, self.walk.actions[:place])), self.watch_for)
        happened = list(dict.fromkeys(map(str, self.walk.actions)))
        raise InvalidInput(f"The action {action[:40]} never happens in this run; {nearest(action[:40], happened)}")

    @property
    def verdict(self) -> Verdict:
        """The verdict on the rows that an outside reader saw. Raises `InvalidInput` if there are no rows."""
        verdict = self.facts.get("verdict")
        if not isinstance(verdict, Verdict):
            raise InvalidInput(
                f"The simulator {self.walk.model.name} writes no rows, so the run has no verdict; look at `violated`."
            )
        return verdict

    @cached_property
    def reader_account(self) -> ReaderAccount | None:
        """How long an outside reader saw data that no failure-free run produces; None if there is no reader."""
        return reader_account(blueprint(self.walk.model.name), self.walk)

    @property
    def explanation(self) -> Explanation:
        """Whether a run without failures could produce what readers saw.

        Raises `InvalidInput` if the simulator cannot tell.
        """
        return self._account().explanation

    @property
    def exposure(self) -> Exposure:
        """For how many steps readers could see a wrong value of each key.

        Raises `InvalidInput` if the simulator cannot tell.
        """
        return self._account().exposure

    def _account(self) -> ReaderAccount:
        if self.reader_account is None:
            raise InvalidInput(
                f"The simulator {self.walk.model.name} does not define the right output, so labkit cannot judge what "
                "readers saw; look at `violated` instead."
            )
        return self.reader_account

    def __str__(self) -> str:
        """Return lines of text: the facts about the run, what the reader saw, and the violated properties."""
        lines = [say(name, fact) for name, fact in self.facts.items()]
        lines += [f"{name}: {text}" for name, text in (self.reader_account.lines() if self.reader_account else ())]
        lines += [f"VIOLATED {name}: {because}" for name, because in self.violated.items()]
        return "\n".join(lines or ["No claim is violated in this run."])

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return _card_of_walk(self)._repr_mimebundle_()


class Search:
    """The result of searching all schedules of a simulator: the number of states, and the violated properties."""

    def __init__(self, exploration: Exploration) -> None:
        self.exploration = exploration
        self.violated = {violation.property: violation.because for violation in exploration.violations}
        """The properties that some schedule violates, each with the reason."""

    @property
    def states(self) -> int:
        """The number of different states that the search reached."""
        return self.exploration.unique_states

    @property
    def exhausted(self) -> bool:
        """Whether the search visited every reachable state."""
        return self.exploration.exhausted

    @property
    def broken(self) -> str:
        """The names of the properties that some schedule violates, or "nothing"."""
        return ", ".join(self.violated) or "nothing"

    @property
    def guarantee(self) -> Guarantee:
        """The weakest guarantee over all schedules.

        The guarantee is *none* if one schedule loses a record and another one duplicates a record, even if no schedule
        does both. Raises `InvalidInput` if the simulator has no properties about rows.
        """
        model = make(self.exploration.model, self.exploration.parameters)
        if not {"no_loss", "no_duplicate"} <= {claim.name for claim in model.properties()}:
            raise InvalidInput(
                f"The simulator {self.exploration.model} has no property about rows, so its search shows no guarantee "
                "such as exactly-once; read the result's attribute `violated` instead."
            )
        open_ = Outcome.HOLDS if self.exhausted else Outcome.UNKNOWN
        claims = ("no_loss", "no_duplicate", "no_unexpected")
        return guarantee({name: Outcome.VIOLATED if name in self.violated else open_ for name in claims})

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
        """Return a shortest run that violates the property `claim` (default: the first one), for `lab.show`.

        Some properties require that at least one schedule reaches a certain state. No single run can show that such a
        property is violated; the result is then a shortest run to the state that comes nearest. Raises `InvalidInput`
        if the property is not violated.
        """
        if claim in self.exploration.never_reached:
            return self._near(claim)
        by_name = {violation.property: violation.trace for violation in self.exploration.violations}
        if not by_name:
            raise InvalidInput("No schedule violates a property, so there is no counterexample to show.")
        if claim is not None and claim not in by_name:
            raise InvalidInput(f"{claim!r} is not a violated property; {nearest(claim, list(by_name))}")
        return by_name[claim] if claim else next(iter(by_name.values()))

    def _near(self, claim: str) -> Trace:
        model = make(self.exploration.model, self.exploration.parameters)
        near = nearest_to(model, claim, self.exploration.unique_states)
        if near is None:
            raise InvalidInput(
                f"The search was too short to show a run that comes near {claim}: it reached neither a state that the "
                "claim is about, nor the end of a run; increase max_states in lab.explore()."
            )
        return near

    def __str__(self) -> str:
        """Return lines of text: the number of states, whether all states were reached, and each violated property."""
        extent = "all there are" if self.exhausted else f"not all: {self.exploration.stopped}"
        lines = [f"{self.states:,} states, {extent}"]
        lines += [
            f"VIOLATED {each.property}, {len(each.trace.actions)} steps: {each.because}"
            for each in self.exploration.violations
        ]
        lines += [f"NEVER REACHED {name}" for name in self.exploration.never_reached]
        return "\n".join(lines if len(lines) > 1 else [*lines, "No schedule breaks a claim."])

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return _card_of_search(self)._repr_mimebundle_()


def _card_of_walk(walk: Walk) -> Card:
    verdict = walk.facts.get("verdict")
    verdict = verdict if isinstance(verdict, Verdict) else None
    facts = [say(name, fact) for name, fact in walk.facts.items() if fact is not verdict]
    history = blueprint(walk.walk.model.name).history
    tracks: Mapping[str, Sequence[Step]] = {} if history is None else seen.few(history(walk.walk).events) or {}
    key = seen.worth_seeing(tracks)
    lines = [f"a reader saw of {key:.40}: {seen.in_words(tracks[key])}"] if key is not None else []
    broken = [f"{name}: {because}" for name, because in walk.violated.items()]
    word, tone = _word(verdict, broken)
    under = verdict_parts.counts(verdict) if verdict else _broken(len(broken))
    summary = f"{under}; {verdict_parts.rows(verdict)}" if verdict else under
    return Card(
        "",
        beside(
            Card(word, plain=(), tone=tone, under=summary).head(),
            seen.line(tracks[key], key) if key is not None else "",
        ),
        *([para(sentence(verdict.because))] if verdict else []),
        items(facts) if facts else Html(),
        *(para(sentence(text)) for _, text in (walk.reader_account.lines() if walk.reader_account else ())),
        *([fold(_broken(len(broken)), items(broken)) if verdict else items(broken)] if broken else []),
        fold("Step through this run", code(f'lab.show("{walk.trace}")')),
        title=f"A simulated run of {walk.walk.model.name}, {len(walk.walk.actions)} steps",
        plain=[
            f"simulated run of {walk.walk.model.name}, {len(walk.walk.actions)} steps: {word}",
            *(f"  {line}" for line in [summary, *lines, *([verdict_parts.why(verdict)] if verdict else []), *facts]),
            *_claims_text(verdict, walk.violated),
        ],
    )


def _claims_text(verdict: Verdict | None, violated: Mapping[str, str]) -> Iterable[str]:
    if verdict and violated:
        yield f"  BROKEN {', '.join(violated)}"
    elif not verdict:
        yield from (f"  BROKEN {name}: {because}" for name, because in violated.items())


def _word(verdict: Verdict | None, broken: Sequence[str]) -> tuple[str, str]:
    if verdict is not None:
        return verdict_parts.word(verdict.guarantee), verdict_parts.tone(verdict.guarantee)
    return ("a claim is broken", BAD) if broken else ("every claim holds", GOOD)


def _broken(number: int) -> str:
    if not number:
        return "No claim is broken in this run"
    return f"{number} {'claim is' if number == 1 else 'claims are'} broken in this run"


def _card_of_search(search: Search) -> Card:
    violations = search.exploration.violations
    extent = "all there are" if search.exhausted else f"not all: {search.exploration.stopped}"
    states = f"{search.states:,} states, {extent}"
    word, tone = _of_all(search)
    rows = [(each.property, f"{len(each.trace.actions)}", each.because) for each in violations[:MOST_CLAIMS]]
    never = [f"never reached: {name}" for name in search.exploration.never_reached]
    call = f"search = {search.call}"
    shown = [f'lab.show(search.counterexample("{each.property}"))' for each in violations[:MOST_CLAIMS]]
    shown += [f'lab.explorer(str(search.counterexample("{name}")))' for name in search.exploration.never_reached]
    see = (
        "See a shortest run that breaks it"
        if violations
        else "See the state nearest to it"
        if never
        else "Search again"
    )
    return Card(
        word,
        table(("broken", "steps", "because"), rows) if rows else para("No schedule breaks a claim."),
        *([items(never)] if never else []),
        fold(see, code("\n".join([call, *shown]))),
        title=f"Every schedule of {search.exploration.model}",
        tone=tone,
        under=states,
        plain=[
            f"every schedule of {search.exploration.model}: {word}",
            f"  {states}",
            *(f"  BROKEN {name}, {steps} steps: {because}" for name, steps, because in rows),
            *(f"  {message}" for message in never),
        ],
    )


def _of_all(search: Search) -> tuple[str, str]:
    """Return the headline of a search's card, and the headline's colour.

    The headline is the guarantee or, for a simulator without properties about rows, whether all properties hold.
    """
    try:
        guarantee = search.guarantee
    except InvalidInput:
        if search.violated:
            return "broken", BAD
        return ("holds", GOOD) if search.exhausted else ("unknown", DIM)
    if guarantee is Guarantee.EXACTLY_ONCE and search.violated:
        return f"{guarantee.value} in the end, and broken on the way", BAD
    return verdict_parts.word(guarantee), verdict_parts.tone(guarantee)
