"""What to draw of a state: boxes with rows, channels with what is in them, and badges. Plain frozen data.

A scene says what a thing is, never how it looks: sizes and colours are `labkit.view.svg`. Whether a row is durable or
volatile is read off the process's own class (`field`), so that a picture cannot promise what a crash would not keep.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from labkit.sim.model import Action, Model, declared
from labkit.sim.rules import Event


class Kind(StrEnum):
    """What a row of a box is; each has a frame, a sign and a word of its own."""

    DURABLE = "durable"
    """Survives a crash of its process."""
    VOLATILE = "volatile"
    """A crash of its process takes it."""
    OPEN = "open"
    """In a transaction that has not been pre-committed."""
    PREPARED = "prepared"
    """In a transaction that is pre-committed: promised, and hidden."""
    COMMITTED = "committed"
    """In a transaction that has been committed."""
    ABORTED = "aborted"
    """In a transaction that has been dropped."""
    VISIBLE = "visible"
    """What an outside reader finds."""
    PLAIN = "plain"
    """A remark that is no state of its own."""


class Mark(StrEnum):
    """A remark about a whole box, drawn as a tag at its head."""

    DOWN = "down"
    IN_DOUBT = "in doubt"
    LOCKED = "locked"
    BLOCKED = "blocked"
    ENDED = "ended"


class Shape(StrEnum):
    """What a token is. Records of different keys have different shapes as well as colours."""

    CIRCLE = "circle"
    SQUARE = "square"
    DIAMOND = "diamond"
    HEXAGON = "hexagon"
    FLAG = "flag"
    """A barrier or a marker."""
    SLIP = "slip"
    """A message in words."""
    STOP = "stop"
    """Up to here a reader may read."""


KEYS = (Shape.CIRCLE, Shape.SQUARE, Shape.DIAMOND, Shape.HEXAGON)
"""The shapes of records, by the place of their key."""


class Token(NamedTuple):
    """One thing in a channel, a log or a transaction. `name` is what a listener hears."""

    shape: Shape
    label: str
    name: str
    faded: bool = False
    """The token has been read, or does not count any more."""
    crossed: bool = False
    """The token was dropped."""


class Row(NamedTuple):
    """One line of a box."""

    kind: Kind
    label: str
    value: str = ""
    tokens: tuple[Token, ...] = ()


class Box(NamedTuple):
    """A process, a store or a reader. Boxes stand in columns, in the order in which they are given."""

    id: str
    column: int
    title: str
    says: str
    rows: tuple[Row, ...] = ()
    marks: tuple[Mark, ...] = ()
    tall: bool = False
    """The box reaches down as far as the tallest column, so that its channels are straight."""
    lane: bool = True
    """The box has a line of its own in the space-time diagram."""


class Channel(NamedTuple):
    """The messages under way from one box to another; the first token arrives next."""

    id: str
    source: str
    target: str
    tokens: tuple[Token, ...] = ()
    note: str = ""
    held: bool = False
    """The reader of the channel does not read it now."""
    volatile: bool = False
    """The messages in the channel are lost in a crash."""


class Scene(NamedTuple):
    """One state as it is drawn."""

    boxes: tuple[Box, ...]
    channels: tuple[Channel, ...] = ()
    left: str = ""
    """What may still go wrong, in words."""


class Place(NamedTuple):
    """The place of an action: its box, its kind of event, and the boxes that it reaches without a channel."""

    box: str
    event: Event = Event.STEP
    touches: tuple[str, ...] = ()


class Drawing(NamedTuple):
    """How one model is drawn."""

    scene: Callable[[Any, Any], Scene]
    """Gives the scene of a state of a model."""
    place: Callable[[Any, Action], Place]
    """Gives the place of an action of a model."""


def field(process: tuple[object, ...], name: str, label: str, value: str = "", tokens: Sequence[Token] = ()) -> Row:
    """A row for a field of a process, of the kind that the process's class declares. Raises `KeyError`."""
    return Row(Kind(declared(type(process))[name]), label, value, tuple(tokens))


def record(keys: Sequence[str], key: str, label: str, *, faded: bool = False, crossed: bool = False) -> Token:
    """A record whose shape says its key; `keys` are all of them, in order."""
    shape = KEYS[keys.index(key) % len(KEYS)]
    state = ", dropped" if crossed else ", read" if faded else ""
    return Token(shape, label, f"record {label} {key}{state}", faded, crossed)


def slip(words: str, *, faded: bool = False, crossed: bool = False) -> Token:
    """A message in words."""
    return Token(Shape.SLIP, words, words, faded, crossed)


def flag(label: str, name: str) -> Token:
    """A barrier or a marker."""
    return Token(Shape.FLAG, label, name)


def listed(words: Iterable[object], none: str = "nothing") -> str:
    """Words with commas between them."""
    return ", ".join(map(str, words)) or none


def may_follow(names: Iterable[str], counts: Iterable[int]) -> str:
    """What may still go wrong, in words."""
    left = [f"{name.replace('_', ' ')} {count}" for name, count in zip(names, counts, strict=True) if count]
    return f"may still happen: {listed(left)}"


def lanes(scenes: Iterable[Scene]) -> dict[str, str]:
    """The lines of a space-time diagram, from all scenes of a run: the boxes that have one, with their titles."""
    order = sorted(
        {
            (box.column, place, box.id, box.title)
            for scene in scenes
            for place, box in enumerate(scene.boxes)
            if box.lane
        }
    )
    titles: dict[str, str] = {}
    for _, _, name, title in order:
        titles.setdefault(name, title)
    return titles


def draw(drawing: Drawing, model: Model[Any], state: object) -> Scene:
    """One state as a scene. Raises `ValueError` when two of its boxes or channels share a name."""
    scene = drawing.scene(model, state)
    names = [box.id for box in scene.boxes] + [channel.id for channel in scene.channels]
    if len(set(names)) != len(names):
        raise ValueError(f"{model.name}: two parts of a scene have one name: {listed(names)}.")
    return scene
