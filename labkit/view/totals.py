"""Draw the total that a reader of a changing table computes after each message, together with the correct total.

The correct total is that of a query over all input so far (a batch query). A cross marks where the two totals differ.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from labkit.core.errors import InvalidInput
from labkit.core.words import columns
from labkit.sim.models.changelog.model import Changelog
from labkit.sim.models.changelog.query import Total, totals
from labkit.sim.trace import Replay
from labkit.view.card import Drawn
from labkit.view.svg import document, number, words

LEFT, TOP, COLUMN, UNIT = 44, 76, 92, 22
"""Pixels: the left edge of the first message, the top of the first run, a message's width, the height of a count."""
BELOW = 70
"""The number of pixels from the bottom line of a run to the top of the next."""
KEY = (("mt", "the batch query's total"), ("m1", "the total that a reader finds"))


def totals_in(walk: Replay) -> list[Total]:
    """Return, after each message of a run of the simulator `changelog`, the reader's total and the correct total.

    Raises `InvalidInput` for a run of another simulator, or if the reader reads no message.
    """
    if not isinstance(walk.model, Changelog):
        raise InvalidInput(
            f"this run comes from the simulator {walk.model.name}, but only the simulator changelog has totals to "
            "show; name one of its scenarios, such as changelog.retract_stream."
        )
    result = totals(walk.states, walk.actions)
    if not result:
        raise InvalidInput(
            "the reader reads no message in this run, so there are no totals to show; name another scenario, such as "
            "changelog.retract_stream."
        )
    return result


class _Place(NamedTuple):
    """The position of one run in the picture, in pixels: the y of its base line, and the x of its right end."""

    bottom: float
    right: float

    def y(self, total: int) -> float:
        return self.bottom - UNIT * total


class Totals(Drawn):
    """A picture of runs of the simulator `changelog`: a reader's total and a batch query's total after each message."""

    def __init__(self, runs: Mapping[str, Sequence[Total]]) -> None:
        self.runs = runs

    def __str__(self) -> str:
        rows: list[Sequence[str]] = []
        for name, run in self.runs.items():
            rows.append([name, *(f"{each.message}{' (lost)' * each.is_lost}" for each in run)])
            rows.append(["  batch query", *(str(each.records) for each in run)])
            rows.append(["  reader", *(_reader_total(each) for each in run)])
        most = max(map(len, rows))
        return columns([[*row, *[""] * (most - len(row))] for row in rows])

    def svg(self) -> str:
        body, top = "", float(TOP)
        for name, run in self.runs.items():
            highest = max(max(each.records, each.reader_sum) for each in run)
            place = _Place(top + 14 + UNIT * highest, LEFT + COLUMN * len(run))
            body += words(12, top, name, "h") + _run(run, highest, place)
            top = place.bottom + BELOW
        wide = LEFT + COLUMN * max(map(len, self.runs.values())) + 16
        return document(
            _key() + body, max(wide, 470), top - 24, title="What a reader finds who adds up the table", desc=str(self)
        )


def _reader_total(total: Total) -> str:
    """Return the reader's total as text, followed by `wrong` or `between` if it differs from the correct total.

    The word is `between` while the reader has not read all messages of a record, because the total may still change.
    """
    if total.differs:
        return f"{total.reader_sum} wrong"
    return f"{total.reader_sum}{' between' * (total.reader_sum != total.records)}"


def _run(run: Sequence[Total], highest: int, place: _Place) -> str:
    floor = f'<path d="M{LEFT} {number(place.bottom)}H{number(place.right)}" class="la" fill="none"/>'
    scale = "".join(words(LEFT - 18, place.y(each) + 4, str(each), "s") for each in range(highest + 1))
    batch = _steps([each.records for each in run], place, "mt")
    result = _steps([each.reader_sum for each in run], place, "ms m1")
    return floor + scale + batch + result + "".join(_marks(run, place))


def _steps(heights: Sequence[int], place: _Place, kind: str) -> str:
    path = f"M{LEFT} {number(place.y(heights[0]))}H{LEFT + COLUMN}"
    for column, height in enumerate(heights[1:], start=2):
        path += f"V{number(place.y(height))}H{number(LEFT + COLUMN * column)}"
    return f'<path d="{path}" class="{kind}"/>'


def _marks(run: Sequence[Total], place: _Place) -> Sequence[str]:
    """Return SVG with the names of a run's messages, and a mark where the reader's total is wrong or incomplete."""
    drawn = []
    for column, each in enumerate(run):
        middle = LEFT + COLUMN * (column + 0.5)
        drawn.append(words(middle, place.bottom + 18, each.message, "ax"))
        if each.is_lost:
            drawn.append(words(middle, place.bottom + 33, "lost", "s ax"))
        if each.reader_sum == each.records:
            continue
        y = place.y(each.reader_sum)
        if each.differs:
            x = middle - 5
            sign = f"M{number(x)} {number(y - 5)}l10 10M{number(x + 10)} {number(y - 5)}l-10 10"
            drawn.append(f'<path d="{sign}" class="cr" fill="none"/>')
        else:
            drawn.append(f'<circle cx="{number(middle)}" cy="{number(y)}" r="5" class="tg"/>')
    return drawn


def _key() -> str:
    drawn, x = "", 12.0
    for kind, text in KEY:
        style = f"ms {kind}" if kind != "mt" else kind
        drawn += f'<path d="M{number(x)} 16h26" class="{style}"/>' + words(x + 32, 20, text, "s")
        x += 200
    return (
        drawn
        + '<path d="M15 31l10 10M25 31l-10 10" class="cr" fill="none"/>'
        + words(44, 40, "they differ", "s")
        + '<circle cx="220" cy="36" r="5" class="tg"/>'
        + words(244, 40, "between two messages of one change", "s")
    )
