"""Show the results of `lab.doctor`, `lab.timeouts` and `lab.try_timeouts` as cards."""

from typing import TYPE_CHECKING

from labkit.core.errors import InvalidInput
from labkit.core.verdict import Verdict
from labkit.core.words import columns, name_in, nearest, sentence
from labkit.host.doctor import Finding
from labkit.sim.models.kafka_log.timeouts import Examination, Fit
from labkit.view import verdict_parts
from labkit.view.card import BAD, GOOD, Card, Cell, Html, bundle, fold, para, table

if TYPE_CHECKING:
    from labkit.stores.kafka.timeouts import TimeoutTrial


class Findings(list[Finding]):
    """The checks of this machine by `lab.doctor`, one for each program or package that the lab needs.

    A notebook displays them as a card: what is missing, and how to install it.
    """

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return self.card._repr_mimebundle_()

    @property
    def card(self) -> Card:
        """The card that lists which programs and packages this machine lacks, with remedies, and then those it has."""
        missing = [each for each in self if not each.ok]
        needed = [each for each in missing if each.required]
        word = "not yet" if needed else "ready"
        summary = (
            f"{len(needed)} of {len(self)} things are missing that the lab needs."
            if needed
            else "This machine has everything that the lab needs."
        )
        rows = [
            (each.name, Cell("missing", BAD) if each.required else "not there", each.remedy or each.detail)
            for each in [*needed, *(each for each in missing if not each.required)]
        ]
        ready = [each for each in self if each.ok]
        return Card(
            word,
            table(("", "", "what to do"), rows) if rows else Html(),
            fold(f"What is there: {len(ready)}", table(("", ""), [(each.name, each.detail) for each in ready])),
            title="Is this machine ready?",
            tone=BAD if needed else GOOD,
            under=summary,
            plain=[summary, *(f"  {_state(each)} {each.name}: {each.remedy}" for each in missing)],
        )


def _state(finding: Finding) -> str:
    return "MISSING" if finding.required else "optional"


class Examined(Examination):
    """The result of `lab.timeouts`, displayed as a card.

    It says whether the transaction timeout is longer than the longest time that a transaction can stay open, and why.
    """

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


class Trials(dict[str, "TimeoutTrial"]):
    """The results of `lab.try_timeouts`, displayed as a card: what a real Kafka broker did to a job's transactions.

    A dict from each kind of traffic (how the job's records arrive over time, such as `"burst"`) to its result.
    """

    def _rows(self) -> list[tuple[str, str, str, str]]:
        return [
            (kind, str(each.failures), str(each.outcome or "-"), _lost(each.verdict)) for kind, each in self.items()
        ]

    def __str__(self) -> str:
        return columns([_OF_TRIALS, *self._rows()])

    __repr__ = __str__

    def steps(self, kind: str) -> Card:
        """Return a card that lists the events in broker and job under one kind of traffic, with times in seconds.

        Raises `InvalidInput` if `lab.try_timeouts` did not measure that kind.
        """
        from labkit.stores.kafka.timeouts import WAITS

        if name_in(kind, 'trials.steps("burst")') not in self:
            raise InvalidInput(
                f"this measurement contains no traffic of the kind {kind[:40]!r}; {nearest(kind[:40], list(self))}"
            )
        trial = self[kind]
        verdict = trial.verdict
        lines = [step.partition(" s  ") for step in trial.steps]
        return Card(
            verdict_parts.word(verdict.guarantee) if verdict else "",
            table(
                ("", "what the broker and the job said"), [(f"{seconds.strip()} s", what) for seconds, _, what in lines]
            ),
            para(sentence(verdict.because)) if verdict else "",
            title=f"The traffic {kind}, step by step",
            tone=verdict_parts.tone(verdict.guarantee) if verdict else "",
            plain=[
                f"{kind}: {verdict.guarantee if verdict else 'not judged'}",
                *(f"  {what}" for _, _, what in lines if WAITS not in what),
                *([f"  {verdict_parts.why(verdict)}"] if verdict else []),
            ],
        )

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        rows = [
            (kind, failed, commit, Cell(lost, BAD) if lost not in {"0", "-"} else lost)
            for kind, failed, commit, lost in self._rows()
        ]
        card = Card("", table(_OF_TRIALS, rows), title="One timeout, three kinds of traffic", plain=())
        return bundle(card.html(), str(Card("", plain=str(self).splitlines())))


_OF_TRIALS = ("traffic", "failed writes", "commit", "lost")


def _lost(verdict: Verdict | None) -> str:
    return "-" if verdict is None else str(len(verdict.lost))
