"""Show one batch as a strip of nine points at which a job can be killed, with the data that is on disk at each.

One of these crash points can be marked as the kill. The points (moments) and their words come from
`labkit.core.moments`. The strip is HTML, which a screen reader reads as a list, or lines of text.
"""

from collections.abc import Sequence

from labkit.core.errors import InvalidInput
from labkit.core.failpoints import Crash, FailPoint, Order
from labkit.core.moments import Moment, moments
from labkit.core.strategies import Strategy, check_crash, orders
from labkit.core.words import columns, name_in, nearest
from labkit.view.card import Html, Shown, fold, framed, joined, para, table, tag

CROSS = "✗"
EXAMPLE = 'lab.strip("sink.mid_write", sink="append")'
OF_ANY = "Green moments leave a file in the checkpoint. What the others leave in the store depends on the sink."
OF_ONE = "Green moments leave something on disk: in the checkpoint or in the store."


class Strip(Shown):
    """A picture of the nine failpoints of a batch: the points at which the job can be killed.

    `killed` is the failpoint to mark as the crash. `strategy` is the sink; with None, the picture is for any sink.
    """

    def __init__(
        self, killed: FailPoint | None = None, strategy: Strategy | None = None, order: Order | None = None
    ) -> None:
        self.killed, self.strategy, self.order = killed, strategy, order
        self.moments: Sequence[Moment] = moments(strategy, order)

    @property
    def title(self) -> str:
        """The picture's title. If a sink is chosen, the title names the sink and its commit order."""
        if self.strategy is None:
            return "One batch, from left to right"
        order = self.order.spoken if self.order else ""
        return f"One batch with the sink {self.strategy}{f', {order}' if order else ''}"

    @property
    def notes(self) -> list[str]:
        """The sentences below the picture, for example one about the marked crash."""
        notes = [OF_ANY if self.strategy is None else OF_ONE]
        if self.strategy is not None and not all(each.is_passed for each in self.moments):
            notes.append("A moment that is crossed out does not exist with this sink.")
        notes += [
            f"{CROSS} The job is killed at {each.name}: {each.words}."
            for each in self.moments
            if each.point is self.killed
        ]
        return notes

    def html(self) -> str:
        return framed(self.fragment(), label=self.title)

    def fragment(self) -> Html:
        """Return the picture as HTML without a frame, to be placed on a card."""
        listed = tag("ol", *(self._moment(each) for each in self.moments), class_="lkc-strip", aria_label=self.title)
        # The texts of the tooltips, for people who do not use a mouse.
        meanings = [(each.name, each.point.value, each.point.sentence) for each in self.moments]
        return joined(
            [
                para(self.title, kind="lkc-title"),
                listed,
                *(para(note, kind="lkc-under") for note in self.notes),
                fold("What each moment means", table(("moment", "failpoint", "what has happened"), meanings)),
            ]
        )

    def _moment(self, moment: Moment) -> Html:
        is_killed = moment.point is self.killed
        states = {"disk": moment.is_on_disk, "without": not moment.is_passed, "killed": is_killed}
        return tag(
            "li",
            tag("b", moment.name, f" {CROSS} killed" if is_killed else ""),
            tag("span", self._words(moment)),
            # For screen readers instead of the green colour.
            tag("span", ", leaves something on disk" if moment.is_on_disk else "", class_="lkc-aside"),
            class_=" ".join(state for state, is_so in states.items() if is_so),
            title=f"{moment.point.value}: {moment.point.sentence}",
        )

    def _words(self, moment: Moment) -> str:
        return moment.words if moment.is_passed else "not with this sink"

    def __str__(self) -> str:
        signs = {moment.point: "on disk" for moment in self.moments if moment.is_on_disk}
        if self.killed is not None:
            signs[self.killed] = f"{CROSS} killed"
        rows = [(each.name, signs.get(each.point, ""), self._words(each), each.point.value) for each in self.moments]
        return f"{self.title}\n{columns(rows)}"


def strip(killed: str | None = None, sink: str | None = None, order: str | None = None) -> Strip:
    """Show the points of one batch at which a job can be killed, with the data on disk; end a cell with this call.

    `killed` is the point (failpoint) to mark as the crash. `sink` selects a sink, and `order` one of the commit orders
    that the sink supports. Raises `InvalidInput` for an unknown name, or for an order or failpoint that the sink lacks.
    """
    strategy = chosen = None
    if sink is not None:
        strategy = Strategy(_check_name("sink", sink, [each.value for each in Strategy]))
        names = [each.value for each in orders(strategy)]
        chosen = orders(strategy)[0] if order is None else Order(_check_name("order", order, names))
    elif order is not None:
        raise InvalidInput(
            'lab.strip(): an order needs a sink; write, for example, lab.strip(sink="two_phase", order="engine").'
        )
    if killed is None:
        return Strip(None, strategy, chosen)
    point = _point(killed)
    if point.in_recovery:
        raise InvalidInput(
            f"the failpoint {point.value} lies in recovery, before a batch begins, but lab.strip() shows only the "
            "failpoints of a batch; choose one of them."
        )
    if strategy is not None and chosen is not None:
        check_crash(Crash(point, 0), strategy, chosen)
    return Strip(point, strategy, chosen)


def _point(killed: str) -> FailPoint:
    name, at, _ = name_in(killed, EXAMPLE).partition("@")
    if name in list(Strategy):
        raise InvalidInput(
            f'lab.strip(): {name} is a sink, but the first argument is a failpoint; write lab.strip(sink="{name}").'
        )
    point = FailPoint(_check_name("failpoint", name, [each.value for each in FailPoint]))
    if at:
        raise InvalidInput(
            "lab.strip() shows one typical batch, so it needs no batch number; leave out @ and the number after it: "
            f'lab.strip("{name}").'
        )
    return point


def _check_name(what: str, name: str, names: list[str]) -> str:
    if name_in(name, EXAMPLE) not in names:
        raise InvalidInput(f"lab.strip(): there is no {what} {name[:40]!r}; {nearest(name[:40], names)}")
    return name
