"""Describe the picture of a state: boxes with rows, channels with tokens, and tags. All of it is plain frozen data.

A scene says what a part means; `labkit.view.svg` decides sizes and colours. Whether a row is durable or
volatile is read from the process's class (`field`), so a picture cannot show a field as durable that a crash
would destroy.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from labkit.sim.model import Action, Model, declared
from labkit.sim.rules import Event


class Kind(StrEnum):
    """The meaning of a box's row; each kind has its own frame, sign and word."""

    DURABLE = "durable"
    """The data survives a crash of its process."""
    VOLATILE = "volatile"
    """A crash of its process destroys the data."""
    OPEN = "open"
    """The data is in a transaction that has not been pre-committed."""
    PREPARED = "prepared"
    """The data is in a transaction that is pre-committed: promised, and hidden."""
    COMMITTED = "committed"
    """The data is in a transaction that has committed."""
    ABORTED = "aborted"
    """The data is in a transaction that has been aborted."""
    VISIBLE = "visible"
    """An outside reader sees the data."""
    PLAIN = "plain"
    """A remark that is not part of the state."""


class Mark(StrEnum):
    """A remark about a whole box, drawn as a tag at its head."""

    DOWN = "down"
    IN_DOUBT = "in doubt"
    LOCKED = "locked"
    BLOCKED = "blocked"
    ENDED = "ended"


class Shape(StrEnum):
    """The shape of a token. Records of different keys differ in shape as well as in colour."""

    CIRCLE = "circle"
    SQUARE = "square"
    DIAMOND = "diamond"
    HEXAGON = "hexagon"
    FLAG = "flag"
    """A barrier or a marker."""
    SLIP = "slip"
    """A message in words."""
    STOP = "stop"
    """The end of the part that a reader may read."""


KEYS = (Shape.CIRCLE, Shape.SQUARE, Shape.DIAMOND, Shape.HEXAGON)
"""The shapes of records, by the position of their key."""


class Token(NamedTuple):
    """One item in a channel, a log or a transaction. `name` is its text for screen readers."""

    shape: Shape
    label: str
    name: str
    faded: bool = False
    """Whether the token was read, or no longer counts."""
    crossed: bool = False
    """Whether the token was dropped."""


class Row(NamedTuple):
    """One line of a box."""

    kind: Kind
    label: str
    value: str = ""
    tokens: tuple[Token, ...] = ()


class Box(NamedTuple):
    """A process, a store or a reader. Boxes are in columns, in the order of the scene."""

    id: str
    column: int
    title: str
    says: str
    rows: tuple[Row, ...] = ()
    marks: tuple[Mark, ...] = ()
    tall: bool = False
    """Whether the box is as tall as the tallest column, so that its channels are straight."""
    lane: bool = True
    """Whether the box has a line of its own in the space-time diagram."""


class Channel(NamedTuple):
    """The messages under way from one box to another; the first token arrives next."""

    id: str
    source: str
    target: str
    tokens: tuple[Token, ...] = ()
    note: str = ""
    held: bool = False
    """Whether the reader of the channel does not read it now."""
    volatile: bool = False
    """Whether the messages in the channel are lost in a crash."""


class Scene(NamedTuple):
    """The drawing of one state as data."""

    boxes: tuple[Box, ...]
    channels: tuple[Channel, ...] = ()
    left: str = ""
    """The faults that may still happen, in words."""


class Place(NamedTuple):
    """The place of an action: its box, its kind of event, and the boxes that it reaches without a channel."""

    box: str
    event: Event = Event.STEP
    touches: tuple[str, ...] = ()


class Drawing(NamedTuple):
    """The functions that draw one model."""

    scene: Callable[[Any, Any], Scene]
    """Returns the scene of a model's state."""
    place: Callable[[Any, Action], Place]
    """Returns the place of a model's action."""


def field(process: tuple[object, ...], name: str, label: str, value: str = "", tokens: Sequence[Token] = ()) -> Row:
    """Return a row for a field of a process, of the kind that the process's class declares. Raises `KeyError`."""
    return Row(Kind(declared(type(process))[name]), label, value, tuple(tokens))


def record(keys: Sequence[str], key: str, label: str, *, faded: bool = False, crossed: bool = False) -> Token:
    """Return a token for a record, whose shape shows its key; `keys` are all keys, in order."""
    shape = KEYS[keys.index(key) % len(KEYS)]
    state = ", dropped" if crossed else ", read" if faded else ""
    return Token(shape, label, f"record {label} {key}{state}", faded, crossed)


def slip(words: str, *, faded: bool = False, crossed: bool = False) -> Token:
    """Return a token for a message in words."""
    return Token(Shape.SLIP, words, words, faded, crossed)


def flag(label: str, name: str) -> Token:
    """Return a token for a barrier or a marker."""
    return Token(Shape.FLAG, label, name)


def listed(words: Iterable[object], none: str = "nothing") -> str:
    """Return the words with commas between them, or `none` if there are no words."""
    return ", ".join(map(str, words)) or none


def may_follow(names: Iterable[str], counts: Iterable[int]) -> str:
    """Return the faults that may still happen, in words."""
    left = [f"{name.replace('_', ' ')} {count}" for name, count in zip(names, counts, strict=True) if count]
    return f"may still happen: {listed(left)}"


def lanes(scenes: Iterable[Scene]) -> dict[str, str]:
    """Return the lines of a run's space-time diagram: the boxes of all scenes that have one, with their titles."""
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
    """Return the scene of one state. Raises `ValueError` if two of its boxes or channels share a name."""
    scene = drawing.scene(model, state)
    names = [box.id for box in scene.boxes] + [channel.id for channel in scene.channels]
    if len(set(names)) != len(names):
        raise ValueError(f"{model.name}: two parts of the scene have the same name: {listed(names)}.")
    return scene
