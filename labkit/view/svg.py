"""Draw the picture of a state (scene) as SVG text, without a browser; equal scenes give equal text.

All looks are decided here. A picture is a list of pieces, one for each box and channel of a layout, so that a player
stores a piece once for all the steps that show it.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from html import escape
from itertools import chain
from typing import NamedTuple

from labkit.view.assets import asset
from labkit.view.layout import (
    GAP,
    LINE,
    MEMORY,
    PAD,
    ROW_SPACE,
    SMALL,
    TOKENS_LINE,
    Cell,
    Layout,
    Rect,
    Route,
    cell,
    head,
    indent,
    layout,
    mark_width,
    shown,
    token_width,
)
from labkit.view.measure import width
from labkit.view.scene import KEYS, Box, Channel, Kind, Mark, Row, Scene, Shape, Token


class Look(NamedTuple):
    """The CSS class, the icon (an SVG path of twelve pixels) and the meaning of a kind of row; no icon occurs twice."""

    css: str
    icon: str
    meaning: str


KINDS = {
    Kind.DURABLE: Look("du", "M0 0h9l3 3v9h-12zM3 0v4h5v-4M3 12v-5h6v5", "durable: survives a crash"),
    Kind.VOLATILE: Look("vo", "M7 0l-5 7h4l-2 6 6-8h-4l2-5z", "volatile: a crash takes it"),
    Kind.OPEN: Look("op", "M1 12l1-4 7-7 3 3-7 7zM7 3l3 3", "open transaction: hidden"),
    Kind.PREPARED: Look("pr", "M1 0h10M1 12h10M2 0c0 6 8 6 8 12M10 0c0 6-8 6-8 12", "pre-committed: promised, hidden"),
    Kind.COMMITTED: Look("co", "M1 7l4 4 7-10", "committed"),
    Kind.ABORTED: Look("ab", "M1 1l10 10M11 1l-10 10", "aborted"),
    Kind.VISIBLE: Look("vi", "M0 6c3-6 9-6 12 0-3 6-9 6-12 0zM6 4a2 2 0 1 0 .1 0", "visible to readers"),
}
MARKS = {
    Mark.DOWN: ("M1 1l8 8M9 1l-8 8", "down: its memory is gone"),
    Mark.IN_DOUBT: ("M2 3c0-4 6-4 6 0 0 2-3 2-3 4M5 9v.5", "in doubt: may neither commit nor abort"),
    Mark.LOCKED: ("M1 4h8v6h-8zM3 4v-2c0-3 4-3 4 0v2", "locked: others must wait"),
    Mark.BLOCKED: ("M3 1v8M7 1v8", "blocked: reads nothing from there"),
    Mark.ENDED: ("M1 1h8v8h-8z", "ended"),
}
"""The icon of each mark of a box, as an SVG path of ten pixels, and its meaning."""


def number(value: float) -> str:
    """Return a coordinate as short text, with at most one decimal."""
    return f"{value:.1f}".removesuffix(".0")


def icon(x: float, y: float, path: str) -> str:
    """Return an SVG icon with the outline `path` (SVG path data), and its upper left corner at (x, y) in pixels."""
    return f'<path transform="translate({number(x)} {number(y)})" d="{path}" class="i"/>'


def words(x: float, y: float, text: str, kind: str = "", style: str = "") -> str:
    """Return an SVG text element at the position (x, y) in pixels, with the CSS class `kind` and the CSS `style`."""
    css, classes = f' style="{style}"' if style else "", f' class="{kind}"' if kind else ""
    return f'<text{css} x="{number(x)}" y="{number(y)}"{classes}>{escape(text, quote=False)}</text>'


def picture(
    scene: Scene, place: Layout | None = None, *, title: str = "", desc: str = "", now: Collection[str] = ()
) -> str:
    """Draw the picture of a state as an SVG document.

    `place` is a layout for all steps of the run; with None, a layout is computed for this picture alone. `now` has the
    ids of the boxes and channels that changed in this step, which are highlighted.
    """
    place = place or layout([scene])
    drawn = pieces(scene, place)
    groups = (f'<g class="{"now" if name in now else ""}">{piece}</g>' for name, piece in drawn.items() if piece)
    return document("".join(groups), place.width, place.height, title=title, desc=desc)


def document(body: str, wide: float, high: float, *, title: str, desc: str, style: str = "") -> str:
    """Return an SVG document of `wide` by `high` pixels around `body`; `style` is its CSS (empty: the default)."""
    size = f'viewBox="0 0 {number(wide)} {number(high)}" width="{number(wide)}" height="{number(high)}"'
    titles = f"<title>{escape(title)}</title><desc>{escape(desc)}</desc>"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="lk lk-pic" role="img" {size}>{titles}<style>'
        f"{style or asset('scene.css')}</style>{body}</svg>"
    )


def slots(place: Layout) -> list[str]:
    """Return the ids of all channels and boxes of a layout in drawing order: the boxes last, to cover channels."""
    return [*place.routes, *place.boxes]


def pieces(scene: Scene, place: Layout) -> dict[str, str]:
    """Return a dict from the id of each box and channel of a layout to its SVG.

    The SVG is empty if `scene` does not have this box or channel.
    """
    drawn = dict.fromkeys(slots(place), "")
    for channel in scene.channels:
        drawn[channel.id] = _channel(channel, place.routes[channel.id])
    for box in scene.boxes:
        drawn[box.id] = _box(box, place.boxes[box.id], place.heads[box.id])
    return drawn


@lru_cache(maxsize=MEMORY)
def _box(box: Box, at: Rect, head_height: float) -> str:
    inner = at.width - 2 * PAD
    frame = "x" if Mark.DOWN in box.marks else "b"
    parts = [_frame(at, 8, frame)]
    title, says = head(box, inner)
    y = at.y + 21
    for line in title:
        parts.append(words(at.x + PAD, y, line, "h"))
        y += 17
    y -= 1
    for line in says:
        parts.append(words(at.x + PAD, y, line, "s"))
        y += 14
    right = at.x + at.width - PAD + 4
    for mark in reversed(box.marks):
        right -= mark_width(mark)
        parts.append(_tag(right, at.y + 7, mark))
        right -= GAP
    top = at.y + head_height
    for row in box.rows:
        set_in = cell(row, inner)
        parts.append(_row(row, set_in, Rect(at.x + PAD, top, inner, set_in.height)))
        top += set_in.height + ROW_SPACE
    return "".join(parts)


def _frame(at: Rect, round_by: int, kind: str) -> str:
    x, y, wide, high = map(number, at)
    return f'<rect x="{x}" y="{y}" width="{wide}" height="{high}" rx="{round_by}" class="{kind}"/>'


def _tag(x: float, y: float, mark: Mark) -> str:
    wide = mark_width(mark)
    frame = _frame(Rect(x, y, wide, 18), 9, "tg")
    return frame + icon(x + 6, y + 4, MARKS[mark][0]) + words(x + 19, y + 13, mark.value, "tb")


def _row(row: Row, set_in: Cell, at: Rect) -> str:
    parts = []
    if row.kind is not Kind.PLAIN:
        look = KINDS[row.kind]
        parts.append(_frame(at, 5, look.css))
        sign_y = at.y + at.height / 2 - 6 if set_in.is_level else at.y + 7
        parts.append(icon(at.x + 7, sign_y, look.icon))
    left, right = (at.x + indent(row), at.x + at.width - (0 if row.kind is Kind.PLAIN else 8))
    if set_in.is_level:
        middle = at.y + at.height / 2
        parts.append(words(left, middle + 4, row.label, "l"))
        if row.tokens:
            wide = sum(token_width(token) + GAP for token in row.tokens) - GAP
            parts.append(_in_a_row(row.tokens, right - wide, middle))
        elif row.value:
            parts.append(words(right, middle + 4, row.value, "v le"))
        return "".join(parts)
    y = at.y + 5
    if set_in.beside:
        parts.append(words(right, y + 12, set_in.beside, "v le"))
    for line in set_in.label:
        parts.append(words(left, y + 12, line, "l"))
        y += LINE
    for content in set_in.content:
        if content.tokens:
            parts.append(_in_a_row(content.tokens, left, y + TOKENS_LINE / 2))
            y += TOKENS_LINE
        else:
            parts.append(words(left, y + 12, content.text, "v"))
            y += LINE
    return "".join(parts)


def _in_a_row(tokens: Iterable[Token], x: float, y: float) -> str:
    parts = []
    for each in tokens:
        wide = token_width(each)
        parts.append(token(each, x + wide / 2, y))
        x += wide + GAP
    return "".join(parts)


def token(each: Token, x: float, y: float) -> str:
    """Return the SVG elements of one token (a record, message or marker), whose centre is at (x, y)."""
    half = token_width(each) / 2
    if each.shape is Shape.STOP:
        drawn = f'<path d="M{number(x)} {number(y - 13)}v26" class="st"/>'
    elif each.shape is Shape.FLAG:
        left, right, top = number(x - half + 1), number(x + half), number(y - 13)
        drawn = (
            f'<path d="M{left} {top}v26" class="fp"/><path d="M{left} {top}H{right}l-3 7.5 3 7.5H{left}z" class="fl"/>'
        )
        drawn += words(x - 1, y - 1.5, each.label, "n")
    elif each.shape is Shape.SLIP:
        drawn = _frame(Rect(x - half, y - 10, 2 * half, 20), 3, "sl") + words(x, y + 4, each.label, "m")
    else:
        drawn = _record(each, x, y, half) + words(x, y + 4, each.label, "n")
    if each.faded:
        drawn = f'<g class="f">{drawn}</g>'
    if each.crossed:
        drawn += f'<path d="M{number(x - half)} {number(y + 9)}L{number(x + half)} {number(y - 9)}" class="cr"/>'
    return drawn


def _record(each: Token, x: float, y: float, half: float) -> str:
    kind = f"t k{KEYS.index(each.shape) + 1}"
    if each.shape is Shape.DIAMOND:
        wide = number(half + 2)
        return f'<path d="M{number(x)} {number(y - 13)}l{wide} 13-{wide} 13-{wide}-13z" class="{kind}"/>'
    if each.shape is Shape.HEXAGON:
        flat = number(2 * half - 10)
        return f'<path d="M{number(x - half + 5)} {number(y - 11)}h{flat}l5 11-5 11h-{flat}l-5-11z" class="{kind}"/>'
    return _frame(Rect(x - half, y - 11, 2 * half, 22), 11 if each.shape is Shape.CIRCLE else 3, kind)


@lru_cache(maxsize=MEMORY)
def _channel(channel: Channel, route: Route) -> str:
    start, knee, end = route.start, route.knee, route.end
    onward = 1 if end[0] >= knee[0] else -1
    kind = "c" + " cv" * channel.volatile + " ch" * channel.held
    path = chain.from_iterable((start, knee, (end[0] - 7 * onward, end[1])))
    x1, y1, x2, y2, x3, y3 = map(number, path)
    tip = f"M{number(end[0])} {number(end[1])}l{-9 * onward}-5v10z"
    parts = [f'<path d="M{x1} {y1}L{x2} {y2}L{x3} {y3}" class="{kind}"/><path d="{tip}" class="a"/>']
    if route.stub:
        wide = width(route.stub, SMALL)
        parts.append(words(knee[0] - wide - 6, knee[1] + 4, route.stub, "s"))
    x = end[0] - 12 * onward
    for each in shown(channel.tokens):
        half = token_width(each) / 2
        parts.append(token(each, x - half * onward, end[1]))
        x -= (2 * half + GAP) * onward
    if channel.note:
        left = min(knee[0], end[0]) + 4 if onward > 0 else end[0] + 4
        left = end[0] - 8 - width(channel.note, SMALL, bold=True) if onward > 0 else left
        parts.append(words(left, end[1] - 17, channel.note, "w"))
    return "".join(parts)


SIGNS = {
    '<circle cx="15" cy="13" r="3.2" class="dot"/>': "step",
    '<path d="M9 7l12 12m-12 0l12-12" class="cr"/>': "crash, or loss on the way",
    '<path d="M10 18h10l-5-10z" class="dot"/>': "start",
    '<path d="M15 6l6 7-6 7-6-7z" class="tg"/>': "another fault, or a timeout",
    '<path d="M15 3v18" class="mt"/><path d="M13 19h4v4h-4z" class="dot"/>': "reaches it in the same step",
}
"""The signs of a space-time diagram, as SVG, each with its meaning."""


def legend(scenes: Sequence[Scene], keys: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Return the pictures' legend as pairs: a sign as SVG, and its meaning.

    `keys` are the keys of the records. The nth key has the nth shape.
    """
    kinds = {row.kind for scene in scenes for box in scene.boxes for row in box.rows}
    marks = {mark for scene in scenes for box in scene.boxes for mark in box.marks}
    tokens = [each for scene in scenes for each in _tokens(scene)]
    shapes = {each.shape for each in tokens}
    entries = [(_sample(token(Token(KEYS[n % 4], "0", key), 15, 13)), key) for n, key in enumerate(keys)]
    if Shape.FLAG in shapes:
        name = next(each.name for each in tokens if each.shape is Shape.FLAG).split()[0].rstrip(":")
        entries.append((_sample(token(Token(Shape.FLAG, "1", ""), 15, 13)), name))
    if Shape.STOP in shapes:
        entries.append((_sample(token(Token(Shape.STOP, "", ""), 15, 13)), "read_committed reads up to here"))
    for kind, look in KINDS.items():
        if kind in kinds:
            drawn = _frame(Rect(2, 3, 26, 20), 5, look.css) + icon(9, 7, look.icon)
            entries.append((_sample(drawn), look.meaning))
    for mark, (path, meaning) in MARKS.items():
        if mark in marks:
            drawn = _frame(Rect(3, 4, 24, 18), 9, "tg") + icon(10, 8, path)
            entries.append((_sample(drawn), meaning))
    channels = [channel for scene in scenes for channel in scene.channels]
    if any(channel.held for channel in channels):
        entries.append((_sample('<path d="M1 13h28" class="c ch"/>'), "held back: not read now"))
    if any(channel.volatile for channel in channels):
        entries.append((_sample('<path d="M1 13h28" class="c cv"/>'), "channel in memory: a crash takes it"))
    entries += [(_sample(drawn), meaning) for drawn, meaning in SIGNS.items()]
    changed = '<g class="now"><rect x="2" y="3" width="26" height="20" rx="5" class="b"/></g>'
    return [*entries, (_sample(changed), "changed in this step")]


def _tokens(scene: Scene) -> Iterable[Token]:
    yield from chain.from_iterable(row.tokens for box in scene.boxes for row in box.rows)
    yield from chain.from_iterable(channel.tokens for channel in scene.channels)


def _sample(drawn: str) -> str:
    return f'<svg class="lk-pic" viewBox="0 0 30 26" width="30" height="26" aria-hidden="true">{drawn}</svg>'
