"""Show the verdicts on experiments with real servers: a copied topic, a shop's messages, consumers of one group.

The experiments (`labkit.teach.hands_on`) need clients of Kafka and PostgreSQL; comparing their outcomes does not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from labkit.core.judge import Verdict
from labkit.core.words import sentence
from labkit.view import verdict_parts
from labkit.view.card import Card, OnCard, para


def verdict_card(title: str, verdict: Verdict, *notes: str) -> Card:
    """Return a card with a verdict, its counts and its reason; `notes` are sentences about the run."""
    counts = f"{verdict_parts.counts(verdict)}; {verdict_parts.rows(verdict)}"
    head = f"{title[:1].lower()}{title[1:]}"
    return Card(
        verdict_parts.word(verdict.guarantee),
        *map(para, notes),
        para(sentence(verdict.because)),
        title=title,
        tone=verdict_parts.tone(verdict.guarantee),
        under=counts,
        plain=[f"{head}: {verdict.guarantee}", *(f"  {line}" for line in (counts, *notes, verdict_parts.why(verdict)))],
    )


@dataclass(frozen=True)
class CopyOutcome(OnCard):
    """The result of `lab.copy_topic`: the verdict on a copy that one job began and another finished."""

    verdict: Verdict
    started_at: int
    """The offset at which the second job began to read."""

    def card(self) -> Card:
        began = f"The second job began to read at offset {self.started_at}."
        return verdict_card("A copy of a topic", self.verdict, began)


@dataclass(frozen=True)
class ShopOutcome(OnCard):
    """The verdict on the messages that a learner's program sent for the shop of `lab.shop`.

    It says which committed changes have no message, and which have several.
    """

    verdict: Verdict

    def card(self) -> Card:
        return verdict_card("Messages about orders", self.verdict)


@dataclass(frozen=True)
class RebalanceOutcome(OnCard):
    """The result of `lab.rebalance` for one program: who charged which orders, and which of them twice or never."""

    verdict: Verdict
    charges: Sequence[tuple[str, int]]
    """The consumer (`A` or `B`) and the number of the order of each charge, in the order in which they were made."""
    ends: tuple[str, str]
    """How the consumers A and B ended: the type of the error, `signal 9`, or an empty text if they simply returned."""
    offset: int | None
    """The offset that the group has committed in the end; None if it has committed none."""

    @property
    def charged(self) -> str:
        """Who charged which orders, as text, such as `A 0 1 2, then B 1 2 3`."""
        turns = groupby(self.charges, key=lambda charge: charge[0])
        return ", then ".join(f"{who} {' '.join(str(order) for _, order in of)}" for who, of in turns) or "nothing"

    def card(self) -> Card:
        ends = [f"{who} ended with {end}." for who, end in zip("AB", self.ends, strict=True) if end]
        notes = f"Charged: {self.charged}.", *ends, f"The group's offset is {self.offset}."
        return verdict_card("Two consumers of a group", self.verdict, *notes)
