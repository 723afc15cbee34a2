"""Draw the simulator of a changelog: a query that counts words, the log of its messages, and the consumer's table."""

from labkit.sim.model import Action
from labkit.sim.models.changelog.model import Changelog
from labkit.sim.models.changelog.state import Budget, Counts, Message, State
from labkit.view.scene import (
    Box,
    Channel,
    Drawing,
    Kind,
    Mark,
    Place,
    Row,
    Scene,
    Token,
    field,
    may_follow,
    record,
    slip,
)


def scene(model: Changelog, state: State) -> Scene:
    """Return the picture of a state: query, log and consumer from left to right, with the messages in transit."""
    query, consumer, network, topic, budget, _ = state
    words, keys = model.settings.words, model.settings.keys
    next_offset = query.offset if query.is_up else query.saved
    records = tuple(record(keys, word, str(n), faded=n < next_offset) for n, word in enumerate(words))
    first = Box(
        "query",
        0,
        "query",
        f"{model.settings.encoding.value} stream" if query.is_up else "down: its memory is gone",
        (
            Row(Kind.PLAIN, "input", tokens=records),
            field(query, "counts", "counts", *_counts(query.counts, gone=not query.is_up)),
            field(query, "offset", "next record", str(query.offset) if query.is_up else "gone"),
            field(query, "saved_counts", "saved counts", *_counts(query.saved_counts)),
            field(query, "saved", "saved offset", str(query.saved)),
        ),
        (Mark.DOWN,) * (not query.is_up),
    )
    read = consumer.position if consumer.is_up else consumer.stored
    messages = tuple(_message(each, faded=place < read) for place, each in enumerate(topic))
    log = Box(
        "log", 1, "log", "keeps every message", (Row(Kind.DURABLE, "messages", "" if messages else "none", messages),)
    )
    table = tuple(
        slip(f"{row.key} = {row.value}" + (f" x{row.times}" if row.times != 1 else "")) for row in consumer.table
    )
    rows = [
        field(consumer, "table", "table", "" if table else "empty", table),
        field(consumer, "stored", "stored position", str(consumer.stored)),
        field(consumer, "position", "next message", str(consumer.position) if consumer.is_up else "gone"),
    ]
    if consumer.has_deleted:
        rows.append(field(consumer, "has_deleted", "between delete and insert", "yes"))
    says = "keeps the table" if consumer.is_up else "down: its memory is gone"
    last = Box("consumer", 2, "consumer", says, tuple(rows), (Mark.DOWN,) * (not consumer.is_up))
    channels = (Channel("network", "query", "log", tuple(map(_message, network))), Channel("reads", "log", "consumer"))
    return Scene((first, log, last), channels, may_follow(Budget._fields, budget))


_SIGNS = {"+": "add", "-": "retract", "=": "upsert", "x": "delete"}


def _message(message: Message, *, faded: bool = False) -> Token:
    name = f"{_SIGNS[message.kind]} {message.key} {message.value}"
    return slip(f"{message.kind} {message.key} {message.value}", name=name, faded=faded)


def _counts(counts: Counts, *, gone: bool = False) -> tuple[str, tuple[Token, ...]]:
    if gone:
        return "gone", ()
    return ("" if counts else "none"), tuple(slip(f"{key} = {count}") for key, count in counts)


_BOX = {"arrive": "log", "lose": "log", "repeat": "log", "overtake": "log"}
_OF_QUERY = ("process", "checkpoint", "restart_query", "crash_query", "expire")
_READS = ("apply", "delete")


def place(model: Changelog, action: Action) -> Place:
    """Return the box that carries out an action and, if the action reads the log, also the log's box."""
    name = action.name
    box = "query" if name in _OF_QUERY else _BOX.get(name, "consumer")
    return Place(box, model.event(action), ("log",) if name in _READS else ())


DRAWING = Drawing(scene, place)
