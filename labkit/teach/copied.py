"""Show the verdict on the copying job of notebook 09 as a card.

The job itself (`labkit.teach.hands_on.copying`) needs a Kafka client; comparing its outcome with others does not.
"""

from dataclasses import dataclass

from labkit.core.judge import Verdict
from labkit.core.words import sentence
from labkit.view import verdict_parts
from labkit.view.card import Card, para


@dataclass(frozen=True)
class CopyOutcome:
    """The verdict on a copy that was interrupted and finished by a second run of the job."""

    verdict: Verdict
    started_at: int
    """The offset at which the second run of the job began to read."""

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return _card(self)._repr_mimebundle_()


def _card(copied: CopyOutcome) -> Card:
    """Return a card with the verdict on a copy, and the offset at which the second run of the job began to read."""
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
        plain=[f"copy of a topic: {verdict.guarantee}", f"  {counts}", f"  {began}", f"  {verdict_parts.why(verdict)}"],
    )
