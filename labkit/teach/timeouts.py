"""The functions of `lab` on the timeouts of Kafka transactions: calculate whether they fit together, or try them."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from labkit.core.arguments import takes
from labkit.core.errors import InvalidInput
from labkit.core.words import name_in, nearest, sentence
from labkit.sim.models.kafka_log.timeouts import Examination, Fit, Timeouts
from labkit.sim.models.kafka_log.timeouts import examine as examine_timeouts
from labkit.view import verdict_parts
from labkit.view.card import BAD, GOOD, Card, Cell, OnCard, Tabled, para, table

if TYPE_CHECKING:
    from labkit.stores.kafka.timeouts import TimeoutTrial


class Examined(OnCard, Examination):
    """The result of `lab.timeouts`, displayed as a card.

    The card says whether the transaction timeout is longer than the longest time that a transaction can stay open, and
    why.
    """

    def __repr__(self) -> str:
        return repr(Examination(*self))

    def card(self) -> Card:
        under = f"A transaction may have to stay open for {self.needed:g} s; its timeout must be longer."
        because = sentence(self.because)
        return Card(
            self.fit.value,
            para(because),
            title="Do the timeouts fit together?",
            tone=GOOD if self.fit is Fit.SAFE else BAD,
            under=under,
            plain=[f"{self.fit.value}: {under}", because],
        )


class Trials(Tabled, dict[str, "TimeoutTrial"]):
    """The results of `lab.try_timeouts`, displayed as a card: what a real Kafka broker did to a job's transactions.

    A dict from kind of traffic (how the job's records arrive over time), such as `"burst"`, to the result.
    """

    title = "One timeout, three kinds of traffic"

    def _head(self) -> Sequence[str]:
        return "traffic", "failed writes", "commit", "lost"

    def _rows(self) -> Iterable[Sequence[str | Cell]]:
        for kind, each in self.items():
            lost = "-" if each.verdict is None else str(len(each.verdict.lost))
            shown = Cell(lost, BAD if lost not in {"0", "-"} else "")
            yield kind, str(each.failures), str(each.outcome or "-"), shown

    def steps(self, kind: str) -> Card:
        """Return a card that lists step by step what broker and job did under one kind of traffic.

        The times are in seconds. `kind` is for example `"burst"`. Raises `InvalidInput` if `lab.try_timeouts` did not
        measure this kind of traffic.
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
                ("", "what happened in broker and job"), [(f"{seconds.strip()} s", what) for seconds, _, what in lines]
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


@takes("lab.timeouts(interval=10, checkpoint=5, transaction=60)")
def timeouts(**seconds: float) -> Examination:
    """Calculate whether a job that commits Kafka transactions with its checkpoints can lose data.

    Returns a card, like `labkit timeouts`. All values are seconds except `tolerated`. Required: `interval`, the time
    between two checkpoints; `checkpoint`, the timeout of a checkpoint; and `transaction`, the timeout of a
    transaction. Optional: `maximum`, the longest transaction timeout that the broker allows; `pause`, the least time
    between two checkpoints; `tolerated`, the number of checkpoints in a row that may fail; and `downtime`, the
    longest time from a crash until the restarted job has committed. Raises `InvalidInput` if a value is missing,
    unknown or out of range.
    """
    names = Timeouts._fields
    if missing := [name for name in names[:3] if name not in seconds]:
        raise InvalidInput(f"lab.timeouts() needs {', '.join(missing)}, in seconds.")
    if unknown := [name for name in seconds if name not in names]:
        raise InvalidInput(
            f"lab.timeouts() has no parameter {unknown[0][:40]}; {nearest(unknown[0][:40], list(names))}"
        )
    tolerated = int(seconds.pop("tolerated", 0))
    return Examined(*examine_timeouts(Timeouts(**seconds, tolerated=tolerated)))


@takes("lab.try_timeouts(interval=6, transaction=3)")
def try_timeouts(interval: float, transaction: float) -> Trials:
    """Run three jobs that write to a real Kafka broker in transactions, and report the records that each job loses.

    The jobs have different traffic: steady, a burst at the beginning, and records near the end. `interval` is the time
    between two checkpoints, and `transaction` the transaction timeout, both in seconds of real time. Raises
    `InvalidInput` for a time out of range, and `ServiceUnavailable` without a broker.
    """
    from labkit.stores.kafka import timeouts as broker

    return Trials(broker.try_timeouts(interval, transaction))
