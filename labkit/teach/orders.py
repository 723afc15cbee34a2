"""Search every order of durable writes for a crash that breaks its guarantee, and show the results as a grid.

`labkit.sim.orders` defines the designs, each an order of writes with an output and a recovery. This module searches all
schedules of each and describes the result, with the crash that breaks it in one sentence.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache, cached_property
from html import escape

from labkit.core.errors import InvalidInput
from labkit.core.verdict import Guarantee
from labkit.core.words import nearest
from labkit.sim.models.orders.claims import MEANWHILE
from labkit.sim.models.orders.state import Fault, World
from labkit.sim.orders import cheapest as changes
from labkit.sim.orders.cheapest import Change
from labkit.sim.orders.killing import killing
from labkit.sim.orders.named import NAMED, fault_of, named, names_of
from labkit.sim.orders.outcomes import OrderResult, find
from labkit.sim.orders.table import built, every, without_plan
from labkit.sim.walk import Trace
from labkit.sim.writes import Design, Write, word_of
from labkit.view import card
from labkit.view.card import Card, OnCard, Shown
from labkit.view.grid import Grid, Square

IN_WORDS = {
    World.SAME: "a repeated step gets the same rows",
    World.OTHER: "a repeated step may get other rows, unless a stored plan fixes them",
}
"""For each assumption under which a design is searched: which rows a step gets that is repeated after a crash."""

ON_THE_WAY = {
    "no_regression": "a value jumps back",
    "no_fractured_read": "part of a step is seen",
    "no_aborted_read": "a row is taken back",
}
"""The faults that readers see only temporarily, in words, by the property that each violates."""

FAULTS = {
    Fault.LOST_ANSWER: "the answer to visible output is lost, and the process writes it again",
    Fault.EXPIRY: "the store aborts a prepared transaction after a timeout",
    Fault.LEASE: "the source delivers rows again, because their notice comes late",
    Fault.LAG: "a plan, decision or notice is left out, and the next step goes on",
}
"""A description of each fault that a search can add to the crashes; it happens at most once in a schedule."""

GRANTED = (
    "The simulator assumes that the input can be read again, that a row has the same key and value each time, and that "
    "only one process runs. Unless a fault is chosen, staged output never expires, and every write gets its answer."
)
"""Assumptions that the simulator never breaks, although a real system may."""

CRASHES = 2
"""The largest number of crashes in a searched schedule."""


class Order(OnCard):
    """A design of a sink (order of writes, output, recovery), with its guarantee from a search of all schedules.

    The searched schedules contain crashes and, if `fault` is given, at most one occurrence of this fault.
    """

    def __init__(self, design: Design, fault: Fault = Fault.NONE) -> None:
        self.design, self.fault = design, fault
        self.results: Mapping[World, OrderResult] = {
            world: find(design, world, fault=fault.value) for world in IN_WORDS
        }

    def under(self, fault: str) -> "Order":
        """Return a search of this design in schedules with crashes and at most one `fault`, such as `lost-answer`."""
        return Order(self.design, word_of(Fault, fault, "fault"))

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the design if a step that is repeated after a crash gets the same rows again."""
        return self.results[World.SAME].guarantee

    @property
    def guarantee_with_other_rows(self) -> Guarantee:
        """The guarantee of the design if a step repeated after a crash may get other rows than the first time.

        A design that stores a plan is not affected, because the plan fixes the rows of a step.
        """
        return self.results[World.OTHER].guarantee

    @property
    def is_exactly_once(self) -> bool:
        """Whether the design is exactly-once, even if a step that runs again after a crash gets other rows."""
        return all(each.guarantee is Guarantee.EXACTLY_ONCE for each in self.results.values())

    @property
    def is_ever_broken(self) -> bool:
        """Whether some schedule violates a property; a temporary violation counts even if the final rows are right."""
        return any(each.witnesses for each in self.results.values())

    def to_json(self) -> dict[str, object]:
        """Return two results for this design as a dict for JSON.

        Each has the design's guarantee, and for each violated property a schedule that violates it. The first result
        assumes that a step repeated after a crash gets the same rows again, and the second that it may get other rows.
        """
        return {
            "design": str(self.design),
            "fault": self.fault.value,
            "built": names_of(self.design, self.fault),
            "worlds": {
                world.value: {
                    "guarantee": verdicts.guarantee.value,
                    "broken": {
                        claim: {"because": killing(claim, trace), "trace": str(trace)}
                        for claim, trace in verdicts.witnesses.items()
                    },
                }
                for world, verdicts in self.results.items()
            },
        }

    @property
    def meanwhile(self) -> list[str]:
        """The faults that a reader may see temporarily, although the final rows are right, as a list of phrases."""
        witnesses = self.results[World.SAME].witnesses
        return [message for name, message in ON_THE_WAY.items() if name in witnesses]

    @property
    def killing(self) -> str:
        """A sentence that describes a shortest schedule which violates a property, or says that there is none.

        If `guarantee` is not exactly-once, the final rows of this schedule are wrong. Otherwise its rows are wrong only
        for a while, or only because a repeated step gets other rows.
        """
        for each in self.results.values():
            for claim, trace in each.witnesses.items():
                if claim not in MEANWHILE or self.guarantee is Guarantee.EXACTLY_ONCE:
                    return killing(claim, trace)
        return "No schedule breaks the order."

    def trace(self, claim: str | None = None) -> Trace:
        """Return a shortest schedule that violates `claim` (default: the first violated property), for `lab.show`.

        Raises `InvalidInput` if no schedule violates it.
        """
        broken = {**self.results[World.OTHER].witnesses, **self.results[World.SAME].witnesses}
        if not broken:
            raise InvalidInput("No schedule violates a property of this design, so there is no counterexample.")
        if claim is None:
            return next(iter(broken.values()))
        if claim not in broken:
            raise InvalidInput(f"{claim[:40]!r} is not a violated property; {nearest(claim[:40], list(broken))}")
        return broken[claim]

    def cheapest(self, *, quietly: bool = False, held: Collection[str] = ()) -> list[Change]:
        """Return the smallest changes that make the design exactly-once.

        With `quietly`, the changed designs also never show a reader wrong rows temporarily.
        `held` names the writes that cannot be changed, because another system, such as the engine, makes them.
        """
        kept = [word_of(Write, each, "write") for each in held]
        return changes.cheapest(self.design, quietly=quietly, held=kept)

    def rows(self) -> list[tuple[str, str, str]]:
        """Return triples of texts: an assumption, the guarantee under it, and a schedule that violates a property.

        There are two assumptions: a step that is repeated after a crash gets the same rows, or it may get other rows.
        For each, the list has one triple for each violated property or, if none is violated, one that says so.
        """
        return [
            (IN_WORDS[world], verdicts.guarantee.value, sentence)
            for world, verdicts in self.results.items()
            for sentence in [killing(*each) for each in verdicts.witnesses.items()] or ["No schedule breaks a claim."]
        ]

    @cached_property
    def built(self) -> list[str]:
        """A list of texts about the existing systems with this design: what each is, its name, and how it differs.

        The name is the one that `orders[...]` accepts, such as `spark-append`.
        """
        return [
            " ".join(filter(None, (f"{each.who} ({name}).", each.limit)))
            for name, each in NAMED.items()
            if name in names_of(self.design, self.fault)
        ]

    def __str__(self) -> str:
        lines = [str(self.design), *(f"existing system: {name}" for name in self.built)]
        if self.fault in FAULTS:
            lines.append(f"in addition to crashes, at most once: {FAULTS[self.fault]}")
        lines += [f"  {world}: {word}. {message}" for world, word, message in self.rows()]
        return card.text([*lines, GRANTED])

    def card(self) -> Card:
        once = self.guarantee is Guarantee.EXACTLY_ONCE
        fault = f", in which once {FAULTS[self.fault]}" if self.fault in FAULTS else ""
        return Card(
            self.guarantee.value,
            card.table(("when", "guarantee", "schedule"), self.rows()),
            *([card.items(self.built)] if self.built else []),
            title=str(self.design),
            tone=card.GOOD if once else card.BAD,
            under=f"Simulated: every schedule with at most {CRASHES} crashes{fault}. {GRANTED}",
            plain=str(self).splitlines(),
        )


class Orders(Shown):
    """A table of all sink designs with their guarantees.

    `orders["spark-append"]` returns the design of an existing system, and `orders["plan > visible > decision; upsert"]`
    the design with these writes in this order and this kind of output.
    """

    def __init__(self) -> None:
        self.squares = {name: Order(design) if design else None for name, design in every().items()}
        self.grid = Grid(
            {
                name: _square(order, built().get(name, ())) if order else _IMPOSSIBLE
                for name, order in self.squares.items()
            }
        )

    def __getitem__(self, name: str) -> Order:
        """Return the design with this name or order of writes. Raises `InvalidInput` for any other text."""
        return Order(named(name), fault_of(name))

    def __iter__(self) -> Iterator[str]:
        return iter(NAMED)

    @property
    def built(self) -> dict[str, str]:
        """A dict from each existing system to its place in the table, as in `{"spark-append": "row | column"}`."""
        return {name: f"{place[1]} | {place[2]}" for place, names in built().items() for name in names}

    def __str__(self) -> str:
        return f"{self.grid}\n\n{LEGEND}\n{GRANTED}"

    def html(self) -> str:
        return f"{self.grid.html()}<p>{'<br>'.join(map(escape, [*LEGEND.splitlines(), GRANTED]))}</p>"


LEGEND = """\
output: rows become visible to readers.
decision: the engine notes that the step is done.
marker: the store notes the last step that it holds; after a restart, the output of a marked step is not written again.
staged: output is first written where nobody reads; a restart drops it, or finishes it (makes it visible).
undone: before a step runs again, the restart removes the output that this step had made visible.
cannot be: rows that are written one by one cannot be atomic with a note about the whole step; a transaction can."""
"""Explains the words in the headings and squares of the grid."""

_IMPOSSIBLE = Square(
    "cannot be",
    "Nothing to simulate.",
    "Rows that are written one by one cannot be atomic with a note about the whole step; only a transaction makes them "
    "atomic. Instead of the note, each row can carry an id: it then replaces the row of its key.",
    'lab.orders()["visible+marker; transaction"]',
)


def _square(order: Order, names: Sequence[str]) -> Square:
    known = f" Existing systems: {' '.join(order.built)}" if order.built else ""
    return Square(
        guarantee=order.guarantee.value,
        origin=f"Simulated: every schedule with at most {CRASHES} crashes.{known}",
        because=f"{order.killing} {_without_plan(order)}".strip(),
        call=f'lab.orders()["{order.design}"]',
        meanwhile=order.meanwhile,
        names=names,
    )


def _without_plan(order: Order) -> str:
    left = find(without_plan(order.design), World.OTHER).guarantee
    if left is order.guarantee:
        return ""
    return f"Without a plan, a repeated step may get other rows, and the guarantee is then {left.value}."


@cache
def orders() -> Orders:
    """Return a table of the guarantees of every possible order of a sink's writes; the result is cached."""
    return Orders()
