"""Describe the picture of a simulator's state as frozen data: boxes with rows, channels with tokens, and tags.

A picture (scene) says what each part means; `labkit.view.svg` decides sizes and colours. Whether a row is durable or
volatile is read from the process's class (`field`), so a picture cannot show a field as durable that a crash would
destroy.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from labkit.sim.model import Action, Model, declared
from labkit.sim.rules import Event
from labkit.sim.wording import listed


class Kind(StrEnum):
    """The kinds of row in a box of the picture, such as a durable field. Each kind has its own frame and icon."""

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
    """The row is a remark and not part of the state."""


class Mark(StrEnum):
    """The tags that a box in the picture can have, such as "down"."""

    DOWN = "down"
    IN_DOUBT = "in doubt"
    LOCKED = "locked"
    BLOCKED = "blocked"
    ENDED = "ended"


class Shape(StrEnum):
    """The shapes of tokens (records, messages, markers); records with different keys have different shapes."""

    CIRCLE = "circle"
    SQUARE = "square"
    DIAMOND = "diamond"
    HEXAGON = "hexagon"
    FLAG = "flag"
    """A barrier or a marker."""
    SLIP = "slip"
    """A message that is shown as words."""
    STOP = "stop"
    """A line in a log up to which a reader may read."""


KEYS = (Shape.CIRCLE, Shape.SQUARE, Shape.DIAMOND, Shape.HEXAGON)
"""The shapes of records: the nth key of a run has the nth shape."""


class Token(NamedTuple):
    """A record, message or marker in the picture of a state. Screen readers read its `name`."""

    shape: Shape
    label: str
    name: str
    faded: bool = False
    """Whether the token is drawn pale, because it was read or no longer counts."""
    crossed: bool = False
    """Whether the token is crossed out, because it was dropped."""


class Row(NamedTuple):
    """One row of a box: a label, and a part of the state as text or tokens."""

    kind: Kind
    label: str
    value: str = ""
    tokens: tuple[Token, ...] = ()


class Box(NamedTuple):
    """A process, store or reader, drawn as a box. `column` is its column in the picture, from 0 on the left.

    `says` is the text below the title.
    """

    id: str
    column: int
    title: str
    says: str
    rows: tuple[Row, ...] = ()
    marks: tuple[Mark, ...] = ()
    tall: bool = False
    """Whether the box is as tall as the tallest column, so that lines to it are straight."""
    lane: bool = True
    """Whether the box has a horizontal line of its own in the space-time diagram."""


class Channel(NamedTuple):
    """A channel between two boxes. `tokens` are the messages that are under way; the first of them arrives next."""

    id: str
    source: str
    target: str
    tokens: tuple[Token, ...] = ()
    note: str = ""
    held: bool = False
    """Whether the channel's reader does not read it now, for example because it waits for a barrier."""
    volatile: bool = False
    """Whether the messages in the channel are lost in a crash."""


class Scene(NamedTuple):
    """The picture of one state of a simulator, as data: boxes and the channels between them."""

    boxes: tuple[Box, ...]
    channels: tuple[Channel, ...] = ()
    left: str = ""
    """A sentence on the faults that may still happen."""


class Place(NamedTuple):
    """Where an action happens in the picture: the box that acts, the kind of event, and other affected boxes."""

    box: str
    event: Event = Event.STEP
    touches: tuple[str, ...] = ()


class Drawing(NamedTuple):
    """The two functions that draw one simulator. One draws a state, and the other finds the place of an action."""

    scene: Callable[[Any, Any], Scene]
    """Returns the picture of a state of the simulator."""
    place: Callable[[Any, Action], Place]
    """Returns the box that carries out an action of the simulator, and the other boxes that the action affects."""


def field(process: tuple[object, ...], name: str, label: str, value: str = "", tokens: Sequence[Token] = ()) -> Row:
    """Return the row for the field `name` of a process, marked as durable or volatile.

    The class of the process declares which of the two it is. Raises `KeyError` if the class does not declare the field.
    """
    return Row(Kind(declared(type(process))[name]), label, value, tuple(tokens))


def record(keys: Sequence[str], key: str, label: str, *, faded: bool = False, crossed: bool = False) -> Token:
    """Return a record's token. Its shape stands for the key; `faded` marks a read record, `crossed` a dropped one."""
    shape = KEYS[keys.index(key) % len(KEYS)]
    state = ", dropped" if crossed else ", read" if faded else ""
    return Token(shape, label, f"record {label} {key}{state}", faded, crossed)


def slip(words: str, *, name: str = "", faded: bool = False) -> Token:
    """Return a slip: the shape for a message, which shows its text. Screen readers read `name` (default: the text)."""
    return Token(Shape.SLIP, words, name or words, faded)


def flag(label: str, name: str) -> Token:
    """Return the token for a barrier or a marker. Screen readers read `name`."""
    return Token(Shape.FLAG, label, name)


def may_follow(names: Iterable[str], counts: Iterable[int]) -> str:
    """Return a text that lists the faults that may still happen: their `names`, and for each name how many."""
    left = [f"{name.replace('_', ' ')} {count}" for name, count in zip(names, counts, strict=True) if count]
    return f"may still happen: {listed(left, ', ', 'nothing')}"


def lanes(scenes: Iterable[Scene]) -> dict[str, str]:
    """Return the lanes of a run's space-time diagram, top to bottom, as a dict from box id to title.

    Every box whose `lane` is true has a lane.
    """
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
    """Return the picture of one state as data. Raises `ValueError` if two boxes or channels have the same id."""
    scene = drawing.scene(model, state)
    names = [box.id for box in scene.boxes] + [channel.id for channel in scene.channels]
    if len(set(names)) != len(names):
        raise ValueError(
            f"{model.name}: each box and channel of a picture needs its own id, but two share one: {', '.join(names)}."
        )
    return scene
