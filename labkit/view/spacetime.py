"""Draw space-time diagrams as SVG and as text: a line for each process, messages between lines, crashes, restarts.

For a simulated run, messages are derived from the pictures of its states: a token that appears in a channel was sent,
and a token that disappears was received, or lost if the step was a loss or a crash. For real runs see
`labkit.runs.pages.diagram`.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from labkit.sim.rules import Event
from labkit.view.layout import SMALL, TEXT
from labkit.view.measure import width, wrap
from labkit.view.scene import KEYS, Channel, Kind, Mark, Place, Scene, Shape, Token, lanes
from labkit.view.svg import document, number, words

LANE = 26.0
TOP = 16.0
WIDE = 940.0
CLOSEST, FURTHEST = 7.0, 34.0
"""The smallest and the largest distance between two steps, in pixels."""


class Flight(NamedTuple):
    """A message, with the numbers of the steps that sent and received it.

    If the message does not arrive during the run, `received` is the number of the last step plus 1.
    """

    source: str
    sent: int
    target: str
    received: int
    token: Token
    lost: bool = False


class Step(NamedTuple):
    """One step in a space-time diagram: the process that acts, the kind of event, and a sentence about the step."""

    lane: str
    event: Event
    touches: tuple[str, ...]
    sentence: str
    changes: tuple[str, ...] = ()
    """The other processes whose state the step changes. The picture leaves them out, the exports do not."""


class Diagram(NamedTuple):
    """A space-time diagram as data: lanes, steps and messages.

    `lanes` maps the id of each process to the title of its lane. The steps are numbered from 1.
    """

    lanes: Mapping[str, str]
    steps: tuple[Step, ...]
    flights: tuple[Flight, ...] = ()
    downs: tuple[tuple[str, int, int], ...] = ()
    """Each time a process was down: the process, and the steps that stopped and restarted it (or the last step)."""


class Scale(NamedTuple):
    """The horizontal scale of a space-time diagram: the position of step 0 and the distance of steps, in pixels."""

    left: float
    step: float


def of_walk(scenes: Sequence[Scene], places: Sequence[Place], sentences: Sequence[str]) -> Diagram:
    """Return the space-time diagram of a simulated run.

    `scenes` are the pictures of its states. `places` and `sentences` have one item for each step: where the step
    happens in the picture, and its description.
    """
    names = lanes(scenes)
    steps = []
    for place, text, (before, after) in zip(places, sentences, pairwise(scenes), strict=True):
        lane = place.box if place.box in names else next(iter(names))
        others = tuple(name for name in _changed(before, after) if name in names and name not in (lane, *place.touches))
        steps.append(Step(lane, place.event, place.touches, text, others))
    return Diagram(names, tuple(steps), tuple(_flights(scenes, places)), tuple(_downs(scenes)))


def _changed(before: Scene, after: Scene) -> Iterable[str]:
    old, new = (
        {box.id: (tuple(row for row in box.rows if row.kind is not Kind.PLAIN), box.marks) for box in scene.boxes}
        for scene in (before, after)
    )
    return [name for name in old | new if old.get(name) != new.get(name)]


_TAKES = (Event.DROP, Event.CRASH, Event.RESTART, Event.OPERATOR)
"""The kinds of step in which a message that disappears from a channel is lost and not received."""

_UnderWay = list[tuple[Token, int]]


def _flights(scenes: Sequence[Scene], places: Sequence[Place]) -> Iterable[Flight]:
    under_way: dict[str, _UnderWay] = {}
    channels: dict[str, Channel] = {}
    for number_of_step, scene in enumerate(scenes):
        event = places[number_of_step - 1].event if number_of_step else Event.STEP
        now = {channel.id: channel for channel in scene.channels}
        for name in {**channels, **now}:
            tokens = now[name].tokens if name in now else ()
            channel = now.get(name) or channels[name]
            before = under_way.get(name, [])
            left, gone = _matched(before, tokens, number_of_step)
            if event is Event.DUPLICATE:
                left, again = _doubled(before, left, channel, places[number_of_step - 1], number_of_step)
                gone += again
            under_way[name] = left
            for token, sent in gone:
                yield Flight(channel.source, sent, channel.target, number_of_step, token, event in _TAKES)
        channels |= now
    for name, tokens_left in under_way.items():
        for token, sent in tokens_left:
            yield Flight(channels[name].source, sent, channels[name].target, len(scenes), token)


def _matched(before: _UnderWay, tokens: Iterable[Token], step: int) -> tuple[_UnderWay, _UnderWay]:
    """Return the messages in a channel after step `step`, and the messages that the step removed.

    Both are lists of pairs: a message, and the number of the step that sent it. `before` is such a list of the messages
    before the step, and `tokens` are the messages after it.
    """
    tokens = tuple(tokens)
    rest: dict[Token, _UnderWay] = {}
    gone = []
    for each in dict.fromkeys(token for token, _ in before):
        same = [pair for pair in before if pair[0] == each]
        # Equal tokens cannot be told apart. The first token of a channel arrives next, so the first of them are gone.
        missing = max(0, len(same) - tokens.count(each))
        gone += same[:missing]
        rest[each] = same[missing:]
    return [rest[each].pop(0) if rest.get(each) else (each, step) for each in tokens], gone


def _doubled(
    before: _UnderWay, left: _UnderWay, channel: Channel, place: Place, step: int
) -> tuple[_UnderWay, _UnderWay]:
    """Return the messages in a channel after step `step`, which duplicates a message, and the messages that arrived.

    All lists have pairs: a message, and the number of the step that sent it. `before` and `left` are the messages in
    the channel before and after the step, and `place` says which process made the step. If the sender sends a message
    twice, the second one has the number `step`; any other copy has the number of its original. If the receiver takes
    the original and leaves a copy, the channel looks unchanged, but the original is returned as arrived.
    """
    if place.box == channel.source:
        return left, []  # the sender itself sends a second message
    origin = dict(reversed(before))
    copied = [(token, origin.get(token, sent) if sent == step else sent) for token, sent in left]
    return copied, before[:1] if place.box == channel.target and left == before else []


def _downs(scenes: Sequence[Scene]) -> Iterable[tuple[str, int, int]]:
    since: dict[str, int] = {}
    for step, scene in enumerate(scenes):
        for box in scene.boxes:
            if Mark.DOWN in box.marks:
                since.setdefault(box.id, step)
            elif box.id in since:
                yield box.id, since.pop(box.id), step
    # A process that has not restarted is down until the last step.
    for name, begun in since.items():
        yield name, begun, len(scenes) - 1


def scale(diagram: Diagram) -> Scale:
    """Return the horizontal scale at which all steps fit to the right of the titles of the processes."""
    left = 16 + max((width(title, SMALL) for title in diagram.lanes.values()), default=0.0)
    return Scale(left + 8, max(CLOSEST, min(FURTHEST, (WIDE - left - 20) / (len(diagram.steps) + 1))))


def size(diagram: Diagram) -> tuple[float, float]:
    """Return the width and the height of the diagram in pixels."""
    at = scale(diagram)
    return max(WIDE, at.left + at.step * (len(diagram.steps) + 1) + 8), TOP + LANE * len(diagram.lanes) + 18


def svg(diagram: Diagram, *, title: str) -> str:
    """Draw the diagram as SVG, with a sentence for each step below. Screen readers read the diagram's text form."""
    wide, high = size(diagram)
    parts = [body(diagram)]
    for step, each in enumerate(diagram.steps, start=1):
        for line in wrap(f"{step}. {diagram.lanes[each.lane]}: {each.sentence}", TEXT, wide - 32):
            high += 16
            parts.append(words(16, high, line))
    return document("".join(parts), wide, high + 12, title=title, desc=text(diagram))


def body(diagram: Diagram, differs_at: int = 0) -> str:
    """Return the diagram's SVG elements. Step `differs_at`, where another run first differs, is marked (0: no mark)."""
    at = scale(diagram)
    wide, high = size(diagram)
    y_of = {name: TOP + LANE * (place + 0.5) for place, name in enumerate(diagram.lanes)}
    parts = []
    for name, title in diagram.lanes.items():
        parts.append(words(at.left - 14, y_of[name] + 4, title, "s le"))
        parts.append(_line(at.left - 6, y_of[name], wide - 6, y_of[name], "la"))
    for name, begun, ended in diagram.downs:
        ends = (at.left + at.step * begun, y_of[name], at.left + at.step * ended, y_of[name])
        parts += [_line(*ends, "gone"), _line(*ends, "goneline")]
    if differs_at:
        x = at.left + at.step * (differs_at - 0.5)
        parts += [_line(x, 2, x, high - 2, "dif")]
    parts += [_flight(flight, at, y_of, len(diagram.steps)) for flight in diagram.flights]
    # If steps are close together, only some get a number, because neighbouring numbers would overlap.
    every = 1 if at.step >= 22 else 5 if at.step >= 8 else 10
    for step, each in enumerate(diagram.steps, start=1):
        parts.append(_step(each, at.left + at.step * step, y_of))
        if step % every == 0:
            parts.append(words(at.left + at.step * step, high - 4, str(step), "s ax"))
    return "".join(part for part in parts if part)


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<path d="M{number(x1)} {number(y1)}L{number(x2)} {number(y2)}" class="{kind}"/>'


def _flight(flight: Flight, at: Scale, y_of: Mapping[str, float], last: int) -> str:
    if flight.source not in y_of or flight.target not in y_of:
        return ""
    x1, y1 = at.left + at.step * flight.sent, y_of[flight.source]
    x2, y2 = at.left + at.step * min(flight.received, last + 0.7), y_of[flight.target]
    shape = flight.token.shape
    kind = {Shape.FLAG: "mb", Shape.SLIP: "ms"}.get(shape) or f"ms m{KEYS.index(shape) + 1}"
    if flight.received > last:  # still under way: the line ends in mid-air
        x2, y2 = x1 + (x2 - x1) * 0.6, y1 + (y2 - y1) * 0.6
        return _line(x1, y1, x2, y2, kind)
    if flight.lost:
        x2, y2 = x1 + (x2 - x1) * 0.7, y1 + (y2 - y1) * 0.7
        return _line(x1, y1, x2, y2, "ml") + _cross(x2, y2, 4)
    return _line(x1, y1, x2, y2, kind) + f'<circle cx="{number(x2)}" cy="{number(y2)}" r="2.5" class="dot"/>'


def _cross(x: float, y: float, half: float) -> str:
    x, y, two = x - half, y - half, number(2 * half)
    return f'<path d="M{number(x)} {number(y)}l{two} {two}m-{two} 0l{two}-{two}" class="cr"/>'


def _step(step: Step, x: float, y_of: Mapping[str, float]) -> str:
    y = y_of[step.lane]
    parts = [_line(x, y, x, y_of[name], "mt") for name in step.touches if name in y_of]
    ends = [number(y_of[name] - 2) for name in step.touches if name in y_of]
    parts += [f'<rect x="{number(x - 2)}" y="{end}" width="4" height="4" class="dot"/>' for end in ends]
    if step.event is Event.CRASH:
        parts.append(_cross(x, y, 6))
    elif step.event is Event.RESTART:
        parts.append(f'<path d="M{number(x - 5)} {number(y + 5)}h10l-5-10z" class="dot"/>')
    elif step.event is Event.STEP:
        parts.append(f'<circle cx="{number(x)}" cy="{number(y)}" r="3.2" class="dot"/>')
    else:
        parts.append(f'<path d="M{number(x)} {number(y - 6)}l6 6-6 6-6-6z" class="tg"/>')
    return "".join(parts)


def text(diagram: Diagram) -> str:
    """Return the diagram as text with one line for each step: its process, its sentence, and its messages."""
    wide = max([3, *map(len, diagram.lanes.values())])
    lines = [f"step  {'who'.ljust(wide)}  what"]
    for step, each in enumerate(diagram.steps, start=1):
        lines.append(f"{step:>4}  {diagram.lanes[each.lane].ljust(wide)}  {event_text(diagram, step)}")
    return "\n".join(lines)


def event_text(diagram: Diagram, step: int) -> str:
    """Return a step's sentence and messages, such as `CRASH: The driver dies. [lost vote of participant 0, step 3]`."""
    each = diagram.steps[step - 1]
    lanes = diagram.lanes
    got = [
        f"{'lost' if flight.lost else 'got'} {flight.token.name} of {lanes.get(flight.source, flight.source)}, "
        f"step {flight.sent}"
        for flight in diagram.flights
        if flight.received == step
    ]
    sent = [
        f"sent {flight.token.name} to {lanes.get(flight.target, flight.target)}"
        for flight in diagram.flights
        if flight.sent == step
    ]
    reached = [f"reaches {lanes[name]}" for name in each.touches if name in lanes]
    details = "; ".join([*got, *sent, *reached])
    return signed(each) + (f" [{details}]" if details else "")


def signed(step: Step) -> str:
    """Return a step's sentence. Unless the step is an ordinary one, its kind comes first, such as `CRASH: ...`."""
    return step.sentence if step.event is Event.STEP else f"{step.event.value.upper()}: {step.sentence}"
