"""How the simulators' results, a machine's findings and comparisons look in a notebook: cards, and a few lines of text.

What is shown was judged, searched or looked at elsewhere. This module must not count anything and must know no model.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from labkit.core.errors import InvalidInput
from labkit.core.moments import spoken
from labkit.core.verdict import Guarantee, Verdict
from labkit.core.words import columns, name_in, nearest, sentence
from labkit.host.doctor import Finding
from labkit.sim.models.kafka_log.timeouts import Examination, Fit
from labkit.sim.scenarios import Fact, say
from labkit.sim.trace import blueprint
from labkit.view import seen, verdict_parts
from labkit.view.card import (
    BAD,
    DIM,
    GOOD,
    Card,
    Cell,
    Html,
    beside,
    bundle,
    code,
    fold,
    items,
    para,
    table,
)

if TYPE_CHECKING:
    from labkit.runs.outcome import Outcome
    from labkit.stores.kafka.timeouts import TimeoutTrial
    from labkit.teach.hands_on import CopyOutcome
    from labkit.teach.study import Search, Walk
    from labkit.view.timeline import Step

MOST_CLAIMS = 8
BY_NAME = "lab.compare() needs results by name, as in lab.compare(append=outcome, two_phase=second)."


def of_walk(walk: "Walk") -> Card:
    """A run of a simulator: its verdict where there are rows, else whether a claim is broken; facts, and the trace."""
    verdict = walk.facts.get("verdict")
    verdict = verdict if isinstance(verdict, Verdict) else None
    facts = [
        say(name, fact) for name, fact in walk.facts.items() if fact is not verdict
    ]
    tracks = _tracks(walk)
    key = seen.worth_seeing(tracks)
    lines = (
        [f"a reader saw of {key:.40}: {seen.said(tracks[key])}"]
        if key is not None
        else []
    )
    broken = [f"{name}: {because}" for name, because in walk.violated.items()]
    word, tone = _word(verdict, broken)
    under = verdict_parts.counts(verdict) if verdict else _broken(len(broken))
    said = f"{under}; {verdict_parts.rows(verdict)}" if verdict else under
    return Card(
        "",
        beside(
            Card(word, plain=(), tone=tone, under=said).head(),
            seen.line(tracks[key], key) if key is not None else "",
        ),
        *([para(sentence(verdict.because))] if verdict else []),
        items(facts) if facts else Html(),
        *(
            para(sentence(said))
            for _, said in (walk.reader_account.lines() if walk.reader_account else ())
        ),
        *_claims(verdict, broken),
        fold("Step through this run", code(f'lab.show("{walk.trace}")')),
        title=f"A simulated run of {walk.walk.model.name}, {len(walk.walk.actions)} steps",
        plain=[
            f"simulated run of {walk.walk.model.name}, {len(walk.walk.actions)} steps: {word}",
            *(
                f"  {line}"
                for line in [
                    said,
                    *lines,
                    *([verdict_parts.why(verdict)] if verdict else []),
                    *facts,
                ]
            ),
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
        return verdict_parts.word(verdict.guarantee), verdict_parts.tone(
            verdict.guarantee
        )
    return ("a claim is broken", BAD) if broken else ("every claim holds", GOOD)


def _broken(number: int) -> str:
    if not number:
        return "No claim is broken in this run"
    return f"{number} {'claim is' if number == 1 else 'claims are'} broken in this run"


def _tracks(walk: "Walk") -> "Mapping[str, Sequence[Step]]":
    history = blueprint(walk.walk.model.name).history
    return {} if history is None else seen.few(history(walk.walk).events) or {}


def of_search(search: "Search") -> Card:
    """Every schedule: how many states, what some schedule breaks, and how to see it."""
    found = search.exploration.violations
    extent = (
        "all there are"
        if search.exhausted
        else f"not all: {search.exploration.stopped}"
    )
    states = f"{search.states:,} states, {extent}"
    word, tone = _of_all(search)
    rows = [
        (each.property, f"{len(each.trace.actions)}", each.because)
        for each in found[:MOST_CLAIMS]
    ]
    never = [f"never reached: {name}" for name in search.exploration.never_reached]
    call = f"search = {search.call}"
    shown = [
        f'lab.show(search.counterexample("{each.property}"))'
        for each in found[:MOST_CLAIMS]
    ]
    return Card(
        word,
        table(("broken", "steps", "because"), rows)
        if rows
        else para("No schedule breaks a claim."),
        *([items(never)] if never else []),
        fold(
            "See a shortest run that breaks it" if found else "Search again",
            code("\n".join([call, *shown])),
        ),
        title=f"Every schedule of {search.exploration.model}",
        tone=tone,
        under=states,
        plain=[
            f"every schedule of {search.exploration.model}: {word}",
            f"  {states}",
            *(
                f"  BROKEN {name}, {steps} steps: {because}"
                for name, steps, because in rows
            ),
            *(f"  {said}" for said in never),
        ],
    )


def _of_all(search: "Search") -> tuple[str, str]:
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


class Findings(list[Finding]):
    """What a machine has and lacks: a list of findings that shows itself as a card."""

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return self.card._repr_mimebundle_()

    @property
    def card(self) -> Card:
        """What is there, what is missing, and what to do about it."""
        missing = [each for each in self if not each.ok]
        needed = [each for each in missing if each.required]
        word = "not yet" if needed else "ready"
        said = (
            f"{len(needed)} of {len(self)} things are missing that the lab needs."
            if needed
            else "This machine has everything that the lab needs."
        )
        rows = [
            (
                each.name,
                Cell("missing", BAD) if each.required else "not there",
                each.remedy or each.detail,
            )
            for each in [*needed, *(each for each in missing if not each.required)]
        ]
        there = [each for each in self if each.ok]
        return Card(
            word,
            table(("", "", "what to do"), rows) if rows else Html(),
            fold(
                f"What is there: {len(there)}",
                table(("", ""), [(each.name, each.detail) for each in there]),
            ),
            title="Is this machine ready?",
            tone=BAD if needed else GOOD,
            under=said,
            plain=[
                said,
                *(f"  {_state(each)} {each.name}: {each.remedy}" for each in missing),
            ],
        )


def _state(finding: Finding) -> str:
    return "MISSING" if finding.required else "optional"


class Examined(Examination):
    """Whether three timeouts fit, as a card; in all else the examination itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(Examination(*self))

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        tone = {Fit.SAFE: GOOD}.get(self.fit, BAD)
        under = f"A transaction may have to stay open for {self.needed:g} s; its timeout must be longer."
        because = sentence(self.because)
        return Card(
            self.fit.value,
            para(because),
            title="Do the timeouts fit together?",
            tone=tone,
            under=under,
            plain=[f"{self.fit.value}: {under}", because],
        )._repr_mimebundle_()


def of_copy(copied: "CopyOutcome") -> Card:
    """A copy of a topic: its verdict, and where the second job began to read."""
    verdict = copied.verdict
    began = f"The second job began to read at offset {copied.started_at}."
    counts = f"{verdict_parts.counts(verdict)}; {verdict_parts.rows(verdict)}"
    return Card(
        verdict_parts.word(verdict.guarantee),
        para(began),
        para(sentence(verdict.because)),
        title="A copy of a topic",
        tone=verdict_parts.tone(verdict.guarantee),
        under=counts,
        plain=[
            f"copy of a topic: {verdict.guarantee}",
            f"  {counts}",
            f"  {began}",
            f"  {verdict_parts.why(verdict)}",
        ],
    )


class Comparison:
    """Named results side by side: real or simulated runs by their verdicts, or searches by what they found."""

    def __init__(
        self,
        named: "Mapping[str, Outcome | Walk | Search | CopyOutcome]",
        facts: Sequence[str] = (),
    ) -> None:
        self.named = dict(named)
        self.rows: dict[str, Mapping[str, str]] = {
            name: {**_told(each, facts), **_compared(each)}
            for name, each in named.items()
        }

    @property
    def columns(self) -> list[str]:
        """The names of what is compared, in order."""
        return list(dict.fromkeys(name for row in self.rows.values() for name in row))

    def _words(self, row: Mapping[str, str]) -> Iterable[str]:
        return (row.get(name, "-") for name in self.columns)

    def html(self) -> str:
        """The table as a card."""
        rows = [
            (
                spoken(name),
                *(
                    self._cell(name, column, said)
                    for column, said in zip(self.columns, self._words(row), strict=True)
                ),
            )
            for name, row in self.rows.items()
        ]
        return Card(
            "", table(("", *self.columns), rows), title="Side by side", plain=()
        ).html()

    def _cell(self, name: str, column: str, said: str) -> str | Cell:
        if column == "guarantee":
            guarantee = _guarantee(self.named[name])
            return (
                Cell(said, verdict_parts.tone(guarantee))
                if guarantee is not None
                else said
            )
        is_bad = column in {"lost", "twice", "jumps back"} and said not in {"0", "-"}
        return (
            Cell(said, BAD)
            if is_bad or (column == "broken" and said != "nothing")
            else said
        )

    def __str__(self) -> str:
        return columns(
            [
                ("", *self.columns),
                *((spoken(name), *self._words(row)) for name, row in self.rows.items()),
            ]
        )

    __repr__ = __str__

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        plain = Card("", plain=str(self).splitlines())
        return bundle(self.html(), str(plain))


class Trials(dict[str, "TimeoutTrial"]):
    """What became of each kind of traffic under a transaction timeout: a dict that shows itself as a card."""

    def _rows(self) -> list[tuple[str, str, str, str]]:
        return [
            (kind, str(each.failures), str(each.outcome or "-"), _lost(each.verdict))
            for kind, each in self.items()
        ]

    def __str__(self) -> str:
        return columns([_OF_TRIALS, *self._rows()])

    __repr__ = __str__

    def steps(self, kind: str) -> Card:
        """What broker and job said under one kind of traffic. Raises `InvalidInput` for a kind that was not tried."""
        from labkit.stores.kafka.timeouts import WAITS

        if name_in(kind, 'trials.steps("burst")') not in self:
            raise InvalidInput(
                f"there was no traffic {kind[:40]!r}; {nearest(kind[:40], list(self))}"
            )
        trial = self[kind]
        verdict = trial.verdict
        said = [step.partition(" s  ") for step in trial.steps]
        return Card(
            verdict_parts.word(verdict.guarantee) if verdict else "",
            table(
                ("", "what the broker and the job said"),
                [(f"{seconds.strip()} s", what) for seconds, _, what in said],
            ),
            para(sentence(verdict.because)) if verdict else "",
            title=f"The traffic {kind}, step by step",
            tone=verdict_parts.tone(verdict.guarantee) if verdict else "",
            plain=[
                f"{kind}: {verdict.guarantee if verdict else 'not judged'}",
                *(f"  {what}" for _, _, what in said if WAITS not in what),
                *([f"  {verdict_parts.why(verdict)}"] if verdict else []),
            ],
        )

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        rows = [
            (kind, failed, commit, Cell(lost, BAD) if lost not in {"0", "-"} else lost)
            for kind, failed, commit, lost in self._rows()
        ]
        card = Card(
            "",
            table(_OF_TRIALS, rows),
            title="One timeout, three kinds of traffic",
            plain=(),
        )
        return bundle(card.html(), str(Card("", plain=str(self).splitlines())))


_OF_TRIALS = ("traffic", "failed writes", "commit", "lost")


def _lost(verdict: Verdict | None) -> str:
    """How many records are missing; a dash where nothing was read."""
    return "-" if verdict is None else str(len(verdict.lost))


def _guarantee(result: "Outcome | Walk | Search | CopyOutcome") -> Guarantee | None:
    from labkit.teach.study import Search

    try:
        return (
            result.guarantee if isinstance(result, Search) else result.verdict.guarantee
        )
    except InvalidInput:
        return None


def _told(
    result: "Outcome | Walk | Search | CopyOutcome", facts: Sequence[str]
) -> Mapping[str, str]:
    """These facts of a simulated run, in the order in which they were asked for."""
    if not facts:
        return {}
    known: Mapping[str, Fact] = getattr(result, "facts", {})
    if missing := [name for name in facts if name not in known]:
        raise InvalidInput(
            f"lab.compare(): no fact {missing[0][:40]!r} in such a run; {nearest(missing[0][:40], list(known))}"
            if known
            else "lab.compare(): facts are those of simulated runs; leave facts= out."
        )
    return {name.replace("_", " "): _short(known[name]) for name in facts}


def _short(fact: Fact) -> str:
    if isinstance(fact, list):
        return ", ".join(map(str, fact))
    return "-" if fact is None else str(fact)


def _compared(result: "Outcome | Walk | Search | CopyOutcome") -> Mapping[str, str]:
    from labkit.teach.study import Search, Walk

    guarantee = _guarantee(result)
    if isinstance(result, Search):
        states = (
            f"{result.states:,}" if result.exhausted else f"{result.states:,}, not all"
        )
        said = {} if guarantee is None else {"guarantee": verdict_parts.word(guarantee)}
        return said | {"states": states, "broken": result.broken}
    if guarantee is None and isinstance(result, Walk):
        return {"broken": ", ".join(result.violated) or "nothing"}
    return verdict_parts.in_columns(result.verdict)


def compare(
    *results: "Mapping[str, Outcome | Walk | Search | CopyOutcome]",
    facts: Sequence[str] | str = (),
    **named: "Outcome | Walk | Search | CopyOutcome",
) -> Comparison:
    """Results side by side, `lab.compare(append=outcome, two_phase=second)`; names with blanks go into a dict.

    `facts` are columns of simulated runs (`facts=["counts"]`). Raises `InvalidInput` for nothing, for results without
    names, for what has no verdict, and for a fact that a run does not have.
    """
    from labkit.runs.outcome import Outcome
    from labkit.teach.hands_on import CopyOutcome
    from labkit.teach.study import Search, Walk

    chosen = {**_by_name(results), **named}
    if not chosen:
        raise InvalidInput(BY_NAME)
    for name, each in chosen.items():
        if not isinstance(each, Outcome | Walk | Search | CopyOutcome):
            raise InvalidInput(
                f"lab.compare(): {name[:40]} is no result of a run or a search; give what lab.crash or lab.explore gave."
            )
    return Comparison(chosen, _facts(facts))


def _by_name(results: Sequence[object]) -> "Mapping[str, Any]":
    """The one dict of results that may be given. Raises `InvalidInput` for anything else without a name."""
    given = results[0] if results else {}
    if (
        len(results) > 1
        or not isinstance(given, Mapping)
        or not all(isinstance(name, str) for name in given)
    ):
        raise InvalidInput(BY_NAME)
    return given


def _facts(given: object) -> Sequence[str]:
    """The names of facts; a single one may stand without a list."""
    facts = [given] if isinstance(given, str) else given
    if not isinstance(facts, list | tuple) or not all(
        isinstance(each, str) for each in facts
    ):
        raise InvalidInput(
            'lab.compare(): facts are names in a list, as in facts=["counts"].'
        )
    return facts
