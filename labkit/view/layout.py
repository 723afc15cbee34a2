"""Compute the position and size of every part of a picture: one layout for all steps of a run, so that nothing jumps.

A picture (scene) has boxes in columns from left to right, and channels in the gutters between them. The tokens of a
channel, its messages, wait in a row in front of its reader, so that they never overlap.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from labkit.view.measure import width, wrap
from labkit.view.scene import Box, Channel, Kind, Mark, Row, Scene, Shape, Token

TITLE, TEXT, SMALL = 13.0, 11.5, 11.0
"""The font sizes of a box's title, of its text and of small text, in pixels."""

PAD, ICON, GAP = 12.0, 20.0, 4.0
LINE, TOKENS_LINE = 16.0, 27.0
ROW_SPACE, BOX_SPACE = 6.0, 26.0
NARROWEST, WIDEST = 150.0, 236.0
FIRST_PORT, PORT = 34.0, 42.0
EMPTY_GUTTER, BEND = 56.0, 64.0
MOST_TOKENS = 5
"""The largest number of a channel's tokens (messages) that are drawn; further ones are only counted."""


MEMORY = 20_000
"""The number of boxes, rows and channels whose size or drawing is cached; most are the same in many steps of a run."""


class Rect(NamedTuple):
    """A rectangle in a picture, in pixels from its upper left corner."""

    x: float
    y: float
    width: float
    height: float

    def overlaps(self, other: "Rect") -> bool:
        """Return whether the two rectangles share an area; a common edge does not count."""
        apart = self.x + self.width <= other.x or other.x + other.width <= self.x
        return not (apart or self.y + self.height <= other.y or other.y + other.height <= self.y)


class Route(NamedTuple):
    """The line that shows a channel: from the sender to a bend (`knee`), then horizontally to the reader.

    If sender and reader are not in neighbouring columns, the line begins at the bend, and the text `stub` names the
    sender.
    """

    start: tuple[float, float]
    knee: tuple[float, float]
    end: tuple[float, float]
    stub: str = ""


class Line(NamedTuple):
    """One line of text, or of tokens (records and messages), in a row of a box."""

    text: str
    tokens: tuple[Token, ...] = ()


class Cell(NamedTuple):
    """The layout of one row in a box. If `is_level`, label and content share a line; otherwise the label is above."""

    label: list[str]
    content: list[Line]
    is_level: bool
    beside: str = ""
    """A text to the right of the label, if the tokens are below it."""

    @property
    def height(self) -> float:
        """The height in pixels of this row in a box."""
        sizes = [TOKENS_LINE if line.tokens else LINE for line in self.content]
        if self.is_level:
            return 10 + max([LINE, *sizes])
        return 10 + LINE * len(self.label) + sum(sizes)


class Layout(NamedTuple):
    """The positions in pixels of all boxes and channels that occur at any step of a run, and the picture's size."""

    boxes: Mapping[str, Rect]
    heads: Mapping[str, float]
    """The height in pixels of each box's head: the title and the line below it."""
    routes: Mapping[str, Route]
    width: float
    height: float


def token_width(token: Token) -> float:
    """Return the width in pixels of a token (a record or message)."""
    if token.shape is Shape.STOP:
        return 10.0
    if token.shape is Shape.SLIP:
        return width(token.label, SMALL) + 14
    return max(22.0, width(token.label, SMALL, bold=True) + (13 if token.shape is Shape.FLAG else 9))


def shown(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens (messages) to draw in a channel; if some are left out, the last one states their number."""
    if len(tokens) <= MOST_TOKENS:
        return list(tokens)
    more = len(tokens) - MOST_TOKENS + 1
    return [*tokens[: MOST_TOKENS - 1], Token(Shape.SLIP, f"+{more}", f"and {more} more")]


def queue_width(tokens: Sequence[Token]) -> float:
    """Return the total width in pixels of the tokens (messages) that are drawn in a channel."""
    return sum(token_width(token) + GAP for token in shown(tokens))


def indent(row: Row) -> float:
    """Return the width in pixels of the space to the left of a row's label, which holds the icon of a framed row."""
    return 0.0 if row.kind is Kind.PLAIN else ICON + 6


@lru_cache(maxsize=MEMORY)
def cell(row: Row, inner: float) -> Cell:
    """Return the layout of a row in a box; `inner` is the box's width in pixels without its margins."""
    room = inner - indent(row) - (0 if row.kind is Kind.PLAIN else 8)
    tokens = sum(token_width(token) + GAP for token in row.tokens) - GAP if row.tokens else 0
    value = width(row.value, TEXT, bold=True)
    beside = tokens + value + (8 if tokens and value else 0)
    if width(row.label, TEXT) + 10 + beside <= room and not (tokens and value):
        return Cell([row.label], [Line(row.value, row.tokens)], is_level=True)
    if tokens and value and width(row.label, TEXT) + 10 + value <= room:
        return Cell([row.label], _in_lines(row.tokens, room), is_level=False, beside=row.value)
    content = [Line(text) for text in wrap(row.value, TEXT, room, bold=True)] if row.value else []
    return Cell(wrap(row.label, TEXT, room), content + _in_lines(row.tokens, room), is_level=False)


def _in_lines(tokens: Iterable[Token], room: float) -> list[Line]:
    lines: list[list[Token]] = []
    taken = 0.0
    for token in tokens:
        if not lines or taken + token_width(token) > room:
            lines.append([])
            taken = 0.0
        lines[-1].append(token)
        taken += token_width(token) + GAP
    return [Line("", tuple(line)) for line in lines]


def mark_width(mark: Mark) -> float:
    """Return the width in pixels of a tag on a box, such as "down"."""
    return width(mark.value, SMALL, bold=True) + 24


def head(box: Box, inner: float) -> tuple[list[str], list[str]]:
    """Return the lines of a box's title, and those of the text below it; `inner` is the width inside the margins."""
    beside = sum(mark_width(mark) + GAP for mark in box.marks)
    return wrap(box.title, TITLE, inner - beside, bold=True), wrap(box.says, SMALL, inner)


@lru_cache(maxsize=MEMORY)
def head_height(box: Box, inner: float) -> float:
    """Return the height of a box's head (title and text), above its first row; `inner` is the width inside the margins.

    Both are in pixels.
    """
    title, says = head(box, inner)
    return 8 + 17 * len(title) + 14 * len(says) + 6


def layout(scenes: Sequence[Scene]) -> Layout:
    """Compute one layout for the pictures of all steps of a run, so that no box moves from step to step."""
    boxes = _united(scenes)
    channels = {each.id: each for scene in scenes for each in scene.channels}
    columns: list[list[str]] = [[] for _ in range(1 + max(alike[0].column for alike in boxes.values()))]
    for name, alike in boxes.items():
        columns[alike[0].column].append(name)
    widths = [max([NARROWEST, *(_wish(box) for name in names for box in boxes[name])]) for names in columns]
    sides = _sides(boxes, channels)
    # A box is as high as its highest form, so that nothing moves when its rows come and go.
    heads, heights = {}, {}
    for names, wide in zip(columns, widths, strict=True):
        for name in names:
            inner = wide - 2 * PAD
            heads[name] = max(head_height(box, inner) for box in boxes[name])
            heights[name] = max(_rows_height(box, inner) for box in boxes[name]) + heads[name]
            # Every channel needs a port of its own at the box's edge, so that two lines never begin at one place.
            ports = max(len(sides[name, "left"]), len(sides[name, "right"]))
            heights[name] = max(heights[name], FIRST_PORT + PORT * (ports - 1) + 22 if ports else 0)
    # A tall box is as high as the highest column.
    total = max(sum(heights[name] + BOX_SPACE for name in names) - BOX_SPACE for names in columns if names)
    queues = _queues(scenes)
    # Messages wait in the gap between two columns, so its width depends on the longest queue.
    gutters = _gutters(queues, boxes, channels, len(columns))
    lefts = list(accumulate((wide + gap for wide, gap in zip(widths, gutters[1:], strict=True)), initial=gutters[0]))
    places: dict[str, Rect] = {}
    for left, wide, names in zip(lefts, widths, columns, strict=False):
        top = 4.0
        for name in names:
            height = max(heights[name], total) if boxes[name][0].tall else heights[name]
            places[name] = Rect(left, top, wide, height)
            top += height + BOX_SPACE
    room = _room(queues, boxes, channels)
    routes = {each.id: _route(each, boxes, places, sides, room[_way(each, boxes)]) for each in channels.values()}
    return Layout(places, heads, routes, lefts[-1], total + 8)


def _united(scenes: Sequence[Scene]) -> dict[str, list[Box]]:
    """Return a dict from box id to the different contents that the box has in the pictures of a run."""
    forms: dict[str, dict[Box, None]] = {}
    for scene in scenes:
        for box in scene.boxes:
            forms.setdefault(box.id, {})[box] = None
    ranks = [{box.id: place for place, box in enumerate(scene.boxes)} for scene in scenes]
    order = {name: min(rank.get(name, len(rank)) for rank in ranks) for name in forms}
    return {name: list(forms[name]) for name in sorted(forms, key=lambda name: order[name])}


@lru_cache(maxsize=MEMORY)
def _wish(box: Box) -> float:
    """Return a box's width in pixels: at most `WIDEST`, unless its title or one of its tokens needs more.

    Within this limit, the box is so wide that each of its rows fits on one line.
    """
    least = width(box.title, TITLE, bold=True) + sum(mark_width(mark) + GAP for mark in box.marks) + 2 * PAD + 2
    most = least
    for row in box.rows:
        beside = sum(token_width(token) + GAP for token in row.tokens) + width(row.value, TEXT, bold=True)
        around = indent(row) + 8 + 2 * PAD
        most = max(most, width(row.label, TEXT) + 12 + beside + around)
        least = max(least, around + max([0.0, *map(token_width, row.tokens)]))
    return max(least, min(most, WIDEST))


@lru_cache(maxsize=MEMORY)
def _rows_height(box: Box, inner: float) -> float:
    return sum(cell(row, inner).height + ROW_SPACE for row in box.rows) + 6


Sides = Mapping[tuple[str, str], list[str]]


def is_stub(channel: Channel, boxes: Mapping[str, Sequence[Box]]) -> bool:
    """Return whether a channel is drawn only next to its reader, because its sender is not in a neighbouring column."""
    return abs(boxes[channel.source][0].column - boxes[channel.target][0].column) != 1


def _sides(boxes: Mapping[str, Sequence[Box]], channels: Mapping[str, Channel]) -> Sides:
    """List, for each side of each box, the ids of the channels that begin or end there, from top to bottom."""
    order = list(boxes)
    ends_of: dict[tuple[str, str], list[str]] = {(name, side): [] for name in boxes for side in ("left", "right")}
    ends = []
    for place, channel in enumerate(channels.values()):
        source, target = channel.source, channel.target
        if is_stub(channel, boxes):
            ends.append((target, "left", order.index(source), place, channel.id))
            continue
        onward = boxes[source][0].column < boxes[target][0].column
        ends.append((source, "right" if onward else "left", order.index(target), place, channel.id))
        ends.append((target, "left" if onward else "right", order.index(source), place, channel.id))
    # Sorted by the place of the box at the other end: lines to upper boxes begin above, and fewer of them cross.
    for name, side, _, _, channel_id in sorted(ends):
        ends_of[name, side].append(channel_id)
    return ends_of


class Queue(NamedTuple):
    """Two widths of a channel in pixels: of its tokens (messages) and of its note, each the largest in the run."""

    tokens: float
    note: float


def _queues(scenes: Sequence[Scene]) -> dict[str, Queue]:
    different = {(each.id, each.tokens, each.note): None for scene in scenes for each in scene.channels}
    queues: dict[str, Queue] = {}
    for name, tokens, note in different:
        queue = queues.get(name, Queue(0.0, 0.0))
        wide = width(note, SMALL, bold=True)
        queues[name] = Queue(max(queue.tokens, queue_width(tokens)), max(queue.note, wide))
    return queues


def _way(channel: Channel, boxes: Mapping[str, Sequence[Box]]) -> tuple[int, int]:
    source, target = boxes[channel.source][0].column, boxes[channel.target][0].column
    return (target, target) if is_stub(channel, boxes) else (source, target)


def _room(
    queues: Mapping[str, Queue], boxes: Mapping[str, Sequence[Box]], channels: Mapping[str, Channel]
) -> dict[tuple[int, int], float]:
    """Return, for each pair of columns, the width in pixels of the widest queue or note of a channel between them."""
    widths: dict[tuple[int, int], float] = {}
    for name, channel in channels.items():
        way = _way(channel, boxes)
        widths[way] = max(widths.get(way, 0.0), *queues[name])
    return widths


def _gutters(
    queues: Mapping[str, Queue], boxes: Mapping[str, Sequence[Box]], channels: Mapping[str, Channel], columns: int
) -> list[float]:
    wide = [4.0, *(EMPTY_GUTTER for _ in range(columns - 1)), 4.0]
    for name, channel in channels.items():
        target = boxes[channel.target][0]
        if is_stub(channel, boxes):
            number, extra = target.column, width(_from(boxes, channel), SMALL) + 40
        else:
            source = boxes[channel.source][0]
            number, extra = max(target.column, source.column), 34 if source.tall or target.tall else BEND
        wide[number] = max(wide[number], max(queues[name]) + extra)
    return wide


def _from(boxes: Mapping[str, Sequence[Box]], channel: Channel) -> str:
    return f"from {boxes[channel.source][0].title}"


def _port(channel: Channel, name: str, side: str, places: Mapping[str, Rect], sides: Sides) -> float:
    return places[name].y + FIRST_PORT + PORT * sides[name, side].index(channel.id)


def _route(
    channel: Channel, boxes: Mapping[str, Sequence[Box]], places: Mapping[str, Rect], sides: Sides, queue: float
) -> Route:
    source, target = boxes[channel.source][0], boxes[channel.target][0]
    here, there = places[channel.source], places[channel.target]
    if is_stub(channel, boxes):
        y = _port(channel, target.id, "left", places, sides)
        knee = (there.x - queue - 26, y)
        return Route(knee, knee, (there.x, y), _from(boxes, channel))
    onward = source.column < target.column
    start_x, end_x = (here.x + here.width, there.x) if onward else (here.x, there.x + there.width)
    start_side, end_side = ("right", "left") if onward else ("left", "right")
    start_y = _port(channel, source.id, start_side, places, sides)
    end_y = _port(channel, target.id, end_side, places, sides)
    if target.tall:
        end_y = start_y
    elif source.tall:
        start_y = end_y
    knee_x = end_x - (queue + 22) if onward else end_x + queue + 22
    return Route((start_x, start_y), (knee_x, end_y), (end_x, end_y))
