"""What came of a simulator: one run that is over, or a search of every schedule, each with its card and its text.

What is shown was judged or searched elsewhere. This module must know no model and count nothing: the models' claims and
the one judge do.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from labkit.core.asked import takes
from labkit.core.errors import InvalidInput
from labkit.core.explanation import Explanation
from labkit.core.exposure import Exposure
from labkit.core.judge import Guarantee, Outcome, Verdict
from labkit.core.verdict import guarantee
from labkit.core.words import nearest, sentence
from labkit.sim.explore import Exploration, violations
from labkit.sim.parameters import chosen
from labkit.sim.readers import ReaderAccount, reader_account
from labkit.sim.scenarios import Fact, facts, say
from labkit.sim.trace import Replay, Trace, blueprint, make
from labkit.sim.trace import replay as play
from labkit.view import seen, verdict_parts
from labkit.view.card import BAD, DIM, GOOD, Card, Html, beside, code, fold, items, para, table
from labkit.view.timeline import Step, timeline

MOST_CLAIMS = 8
"""How many broken claims a card names."""


class Walk:
    """A run of a simulator that is over: what the judge says of it, what it cost, which claims it breaks."""

    @takes("lab.Walk(walk)")
    def __init__(self, walk: Replay, watch_for: str = "") -> None:
        self.walk, self.watch_for = walk, watch_for
        self.facts: Mapping[str, Fact] = facts(walk)
        """What the model has to say of the whole run: counts of steps and records, and the judge's verdict."""
        self.violated = {violation.property: violation.because for violation in violations(walk)}
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
            raise InvalidInput(f"{self.walk.model.name} has no outside reader that notes the order of rows.")
        return timeline(history(self.walk).events)

    def until(self, action: str) -> "Walk":
        """This run, ended right after the first time that the action happened. Raises `InvalidInput` if it never did.

        `read` is any of its actions with that name, `read(1)` this one alone.
        """
        for place, taken in enumerate(self.walk.actions, start=1):
            if action in (str(taken), taken.name):
                return Walk(play(Trace.of(self.walk.model, self.walk.actions[:place])), self.watch_for)
        raise InvalidInput(f"{action[:40]} never happens in this run; {nearest(action[:40], self._happened())}")

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
            raise InvalidInput(f"{self.walk.model.name} has no outside reader that notes the order of rows.")
        return self.reader_account

    def __str__(self) -> str:
        """The whole outcome; not the steps, which are for `lab.show`."""
        lines = [say(name, fact) for name, fact in self.facts.items()]
        lines += [f"{name}: {said}" for name, said in (self.reader_account.lines() if self.reader_account else ())]
        lines += [f"VIOLATED {name}: {because}" for name, because in self.violated.items()]
        return "\n".join(lines or ["No claim is violated in this run."])

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return _card_of_walk(self)._repr_mimebundle_()


class Search:
    """What was found by trying every schedule of one configuration."""

    @takes("lab.Search(exploration)")
    def __init__(self, exploration: Exploration) -> None:
        self.exploration = exploration
        self.violated = {violation.property: violation.because for violation in exploration.violations}
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
        if not {"no_loss", "no_duplicate"} <= {claim.name for claim in model.properties()}:
            raise InvalidInput(
                f"{self.exploration.model} claims nothing of rows, so it has no guarantee; see its violated."
            )
        open_ = Outcome.HOLDS if self.exhausted else Outcome.UNKNOWN
        asked = ("no_loss", "no_duplicate", "no_unexpected")
        return guarantee({name: Outcome.VIOLATED if name in self.violated else open_ for name in asked})

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
        by_name = {violation.property: violation.trace for violation in self.exploration.violations}
        if not by_name:
            raise InvalidInput("No schedule breaks a claim, so there is no counterexample to show.")
        if claim is not None and claim not in by_name:
            raise InvalidInput(f"No schedule breaks {claim!r}; {nearest(claim, list(by_name))}")
        return by_name[claim] if claim else next(iter(by_name.values()))

    def __str__(self) -> str:
        """States, whether these are all, and what is broken, with the number of steps that it takes."""
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
    """A run of a simulator: its verdict where there are rows, else whether a claim is broken; facts, and the trace."""
    verdict = walk.facts.get("verdict")
    verdict = verdict if isinstance(verdict, Verdict) else None
    facts = [say(name, fact) for name, fact in walk.facts.items() if fact is not verdict]
    tracks = _tracks(walk)
    key = seen.worth_seeing(tracks)
    lines = [f"a reader saw of {key:.40}: {seen.said(tracks[key])}"] if key is not None else []
    broken = [f"{name}: {because}" for name, because in walk.violated.items()]
    word, tone = _word(verdict, broken)
    under = verdict_parts.counts(verdict) if verdict else _broken(len(broken))
    said = f"{under}; {verdict_parts.rows(verdict)}" if verdict else under
    return Card(
        "",
        beside(
            Card(word, plain=(), tone=tone, under=said).head(), seen.line(tracks[key], key) if key is not None else ""
        ),
        *([para(sentence(verdict.because))] if verdict else []),
        items(facts) if facts else Html(),
        *(para(sentence(said)) for _, said in (walk.reader_account.lines() if walk.reader_account else ())),
        *_claims(verdict, broken),
        fold("Step through this run", code(f'lab.show("{walk.trace}")')),
        title=f"A simulated run of {walk.walk.model.name}, {len(walk.walk.actions)} steps",
        plain=[
            f"simulated run of {walk.walk.model.name}, {len(walk.walk.actions)} steps: {word}",
            *(f"  {line}" for line in [said, *lines, *([verdict_parts.why(verdict)] if verdict else []), *facts]),
            *_claims_said(verdict, walk.violated),
        ],
    )


def _claims_said(verdict: Verdict | None, violated: Mapping[str, str]) -> Iterable[str]:
    """The broken claims as text: by name where the verdict has given the reason, else each with its own."""
    if verdict and violated:
        yield f"  BROKEN {', '.join(violated)}"
    elif not verdict:
        yield from (f"  BROKEN {name}: {because}" for name, because in violated.items())


def _claims(verdict: Verdict | None, broken: Sequence[str]) -> Iterable[Html]:
    """The broken claims: in sight where there is no verdict that says the same."""
    if broken:
        yield fold(_broken(len(broken)), items(broken)) if verdict else items(broken)


def _word(verdict: Verdict | None, broken: Sequence[str]) -> tuple[str, str]:
    if verdict is not None:
        return verdict_parts.word(verdict.guarantee), verdict_parts.tone(verdict.guarantee)
    return ("a claim is broken", BAD) if broken else ("every claim holds", GOOD)


def _broken(number: int) -> str:
    if not number:
        return "No claim is broken in this run"
    return f"{number} {'claim is' if number == 1 else 'claims are'} broken in this run"


def _tracks(walk: Walk) -> Mapping[str, Sequence[Step]]:
    history = blueprint(walk.walk.model.name).history
    return {} if history is None else seen.few(history(walk.walk).events) or {}


def _card_of_search(search: Search) -> Card:
    """Every schedule: how many states, what some schedule breaks, and how to see it."""
    found = search.exploration.violations
    extent = "all there are" if search.exhausted else f"not all: {search.exploration.stopped}"
    states = f"{search.states:,} states, {extent}"
    word, tone = _of_all(search)
    rows = [(each.property, f"{len(each.trace.actions)}", each.because) for each in found[:MOST_CLAIMS]]
    never = [f"never reached: {name}" for name in search.exploration.never_reached]
    call = f"search = {search.call}"
    shown = [f'lab.show(search.counterexample("{each.property}"))' for each in found[:MOST_CLAIMS]]
    return Card(
        word,
        table(("broken", "steps", "because"), rows) if rows else para("No schedule breaks a claim."),
        *([items(never)] if never else []),
        fold("See a shortest run that breaks it" if found else "Search again", code("\n".join([call, *shown]))),
        title=f"Every schedule of {search.exploration.model}",
        tone=tone,
        under=states,
        plain=[
            f"every schedule of {search.exploration.model}: {word}",
            f"  {states}",
            *(f"  BROKEN {name}, {steps} steps: {because}" for name, steps, because in rows),
            *(f"  {said}" for said in never),
        ],
    )


def _of_all(search: Search) -> tuple[str, str]:
    """The large word: the guarantee where the model claims something of rows, else what became of the claims."""
    try:
        guarantee = search.guarantee
    except InvalidInput:
        if search.violated:
            return "broken", BAD
        return ("holds", GOOD) if search.exhausted else ("unknown", DIM)
    if guarantee is Guarantee.EXACTLY_ONCE and search.violated:
        return f"{guarantee.value} in the end, and broken on the way", BAD
    return verdict_parts.word(guarantee), verdict_parts.tone(guarantee)
