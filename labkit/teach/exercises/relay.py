"""The exercise of notebook 09d: the relay of an outbox, which may be killed after any step.

The judge performs every run: after each of the relay's steps the process may die, and the broker may refuse a message,
each as often as the variant allows. `labkit.core.judge` finds messages that are out of order.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from labkit.core.judge import Verdict, judge
from labkit.core.records import History, Observation, Reading, word_counts
from labkit.teach.exercises.asking import Asker, Unusable, distinct, shown
from labkit.teach.exercises.confused import NUMBERS_ALIKE, PAIRS_ALIKE
from labkit.teach.exercises.contract import Answer, Finding, Plain, Variant, by, variant
from labkit.teach.exercises.searching import Wrong, steady, unusable

Row = tuple[int, str]
"""The id of a message, and the name of its order."""


class Run(NamedTuple):
    """The state of one run of a relay; rows are identified by their position in the order of commits, from 0."""

    arrived: int
    """The number of rows that the shop has committed."""
    marked: frozenset[int] = frozenset()
    published: tuple[int, ...] = ()
    """The rows that the running process has published."""
    refused: tuple[int, ...] = ()
    topic: tuple[int, ...] = ()
    """The rows of all messages in the topic, with repetitions."""
    crashes: int = 0
    refusals: int = 0
    """How often a process may still be killed (`crashes`), and the broker may still refuse a message (`refusals`)."""
    is_down: bool = False
    """Whether the broker is down: it refuses each of the next `refusals` messages."""
    story: tuple[str, ...] = ()
    """The steps so far as text, for the message to the learner."""


def judge_relay(answer: Answer, variant: Variant) -> Finding:
    """Check a learner's outbox relay, which publishes the rows of a table to a topic, in every possible run.

    The variant's parameter `rows` lists the rows in the order of commits. It may also have `first` (how many rows exist
    at the start), `crashes` (how many kills are possible), `refusals` (how many messages the broker may refuse), and
    `outage` (how many messages, one after the other, the broker refuses while it is down).

    With `held` or `sent`, runs begin in a later state, and only the next step is checked. `held` lists the positions of
    rows that the broker has refused. `sent` is the number of rows that the relay has published, from the first row on;
    it has already marked all of them as published except the first. With `outboxes` (a list of tables), two runs are
    checked for each table: in one the broker refuses every message once, in the other it refuses none.
    """
    ask = Asker(answer, "relay_step")
    parameters = dict(variant.parameters)
    states = 0
    try:
        for rows in parameters.get("outboxes", ()):
            states += _search(ask, rows, {"outage": len(rows)}, until=len(rows) + 1)
            states += _search(ask, rows, {}, until=2 * len(rows))
        if "rows" in parameters:
            states += _search(
                ask, parameters["rows"], parameters, until=1 if {"held", "sent"} & {*parameters} else None
            )
    except Unusable as error:
        return unusable(ask.name, error)
    except Wrong as wrong:
        return wrong.finding
    return steady(ask, f"All of {states:,} states were right")


def _search(ask: Asker, outbox: Sequence[Row], parameters: Mapping[str, Any], until: int | None) -> int:
    """Try every run of at most `until` steps (None: no limit), and return the number of states.

    Raises `Wrong` for a wrong step.
    """
    rows = [(int(number), str(order)) for number, order in outbox]
    sent = tuple(range(parameters.get("sent", 0)))
    begin = Run(
        parameters.get("first", len(rows)),
        marked=frozenset(sent[1:]),
        published=sent,
        topic=sent,
        refused=tuple(parameters.get("held", ())),
        crashes=parameters.get("crashes", 0),
        refusals=parameters.get("outage", 0) or parameters.get("refusals", 0),
        is_down="outage" in parameters,
    )
    todo = deque([(begin, 0)])  # in the order of steps, so that a learner sees a shortest run
    seen = {_key(begin)}
    while todo:
        run, steps = todo.popleft()
        if steps == until:
            continue
        for after in _next(ask, rows, run):
            if _key(after) not in seen:
                seen.add(_key(after))
                todo.append((after, steps + 1))
    return len(seen)


def _key(run: Run) -> Run:
    return run._replace(story=())


def _next(ask: Asker, rows: Sequence[Row], run: Run) -> Iterator[Run]:
    """Yield each state to which the relay's next step may lead, also those after a refused message and after a kill.

    Raises `Wrong` for a wrong step.
    """
    kind, place, reply = _step(ask, rows, run)
    story = (*run.story, f"{kind} {rows[place][0]}" if place >= 0 else kind)
    if kind == "wait":
        _check_wait(rows, run, reply)
        if not run.refused and run.arrived == len(rows):
            return
        after = run._replace(refused=(), story=story)
    elif kind == "mark":
        if place not in run.topic:
            raise Wrong(
                f"{reply}, but message {rows[place][0]} is not in the topic.",
                "A row is marked only when the broker has its message; if killed now, the relay would never send it.",
                "A row is marked before the broker has its message, so a crash loses it.",
            )
        after = run._replace(marked=run.marked | {place}, story=story)
    else:
        if place in run.published:
            raise Wrong(
                f"{reply}, although message {rows[place][0]} is already in the list `published`.",
                "The broker has acknowledged it; without a crash nothing is published twice.",
                "A message is published twice without a crash.",
            )
        if place in run.refused:
            raise Wrong(
                f"{reply}, although message {rows[place][0]} is in the list `refused`.",
                "The broker has just refused it; the relay waits before it tries again.",
                "A refused message is published again without waiting.",
            )
        after = run._replace(published=(*run.published, place), topic=(*run.topic, place), story=story)
        _check_order(rows, after, reply)
        if run.refusals:
            refused = run._replace(refused=(*run.refused, place), refusals=run.refusals - 1)
            yield _arrive(rows, refused._replace(story=(*run.story, f"{rows[place][0]} is refused")))
            if run.is_down:
                return
    yield _arrive(rows, after)
    if run.crashes:
        died = after._replace(published=(), refused=(), crashes=run.crashes - 1, story=(*story, "killed"))
        yield _arrive(rows, died)


def _arrive(rows: Sequence[Row], run: Run) -> Run:
    return run._replace(arrived=min(run.arrived + 1, len(rows)))


def _step(ask: Asker, rows: Sequence[Row], run: Run) -> tuple[str, int, str]:
    """Ask for the relay's next step; return its kind, its row's position (-1 if none), and a text for messages.

    The text consists of the latest events and of the learner's call with its answer.
    """
    waiting = [place for place in range(run.arrived) if place not in run.marked]
    open_rows: list[Plain] = [[rows[place][0], rows[place][1]] for place in waiting]
    published: list[Plain] = [rows[place][0] for place in run.published]
    refused: list[Plain] = [rows[place][0] for place in run.refused]
    value = ask(open_rows, published, refused)
    reply = ask.with_answer(open_rows, published, refused)
    if run.story:
        reply = f"After {', '.join(run.story[-8:])}: {reply}"
    if value == ["wait"]:
        return "wait", -1, reply
    by_id = {rows[place][0]: place for place in waiting}
    if (
        type(value) is list
        and len(value) == 2
        and value[0] in ("publish", "mark")
        and type(value[1]) is int
        and value[1] in by_id
    ):
        return str(value[0]), by_id[value[1]], reply
    steps = '["publish", id] or ["mark", id] with an id of rows, or ["wait"]'
    raise Unusable(f"{reply}; a step must be {steps}, not {shown(value)}.")


def _check_wait(rows: Sequence[Row], run: Run, reply: str) -> None:
    blocked: set[str] = set()
    for place in range(run.arrived):
        number, order = rows[place]
        if place in run.marked or order in blocked:
            continue
        if place in run.refused:
            blocked.add(order)
            continue
        todo = f"message {number} is to be {'marked' if place in run.published else 'published'}"
        raise Wrong(
            f"{reply}, although there is work: {todo}, and no earlier message of order {_named(order)} was refused.",
            "A refused message delays only its own order, so the relay waits only when nothing can be done.",
            "The relay waits although something could be published or marked.",
        )


def _check_order(rows: Sequence[Row], run: Run, reply: str) -> None:
    """Raise `Wrong` if the last message in the topic breaks the order of the messages about one purchase."""
    verdict = _verdict(rows, run.topic)
    if verdict.regression:
        number, order = rows[verdict.regression[0]]
        raise Wrong(
            f"{reply}: in the topic, message {number} comes after a later message of order {_named(order)}.",
            "The messages of one order come in the order of rows, even if some are repeated.",
            "A message comes after a later one of the same order.",
        )
    last = run.topic[-1]
    for place in range(last):
        if rows[place][1] == rows[last][1] and place not in run.topic:
            number, order = rows[place]
            raise Wrong(
                f"{reply}, but the earlier message {number} of the same order {_named(order)} is not in the topic yet.",
                "The messages of one order come in the order of rows.",
                "A message is published before an earlier one of the same order.",
            )


def _named(order: str) -> str:
    # Blanks at the beginning or end are easy to overlook without quotes.
    return distinct(order) if order == order.strip() else shown(order)


def _verdict(rows: Sequence[Row], topic: Sequence[int]) -> Verdict:
    records = list(word_counts(order for _, order in rows))
    return judge(records, History([*(Observation(*records[place], 0, 1) for place in topic), Reading("end")]))


def rows_alike(ids: Sequence[int]) -> tuple[Row, ...]:
    """Return an outbox in which neighbouring rows have similar order names.

    Each row has an id and an order's name. The first ids are `NUMBERS_ALIKE`, and the others are taken from `ids`.
    """
    names = [name for pair in PAIRS_ALIKE for name in pair]
    others = [number for number in ids if number not in NUMBERS_ALIKE]
    return tuple(zip((*NUMBERS_ALIKE, *others), names, strict=False))


def orders_alike(groups: Iterable[Sequence[str]], first: int) -> Iterator[tuple[Row, ...]]:
    """Yield one outbox for each group of similar order names, with one row per name; ids count up from `first`."""
    for orders in groups:
        yield tuple(enumerate(orders, first))


MOST_OPEN, MOST_REFUSED = 5_000, 500
"""The largest numbers of open rows and of refused messages, as the task says; up to `MOST_OPEN` may be published."""
LONGEST = (*((place, "A") for place in range(1, MOST_OPEN)), (MOST_OPEN, "B"))
"""The longest outbox, in which only the last row is about another order."""

JUDGES = {
    "09d-relay": by(
        judge_relay,
        variant("two orders", rows=((1, "A"), (2, "A"), (3, "B"))),
        variant("a crash", rows=((1, "A"), (2, "A"), (3, "B")), crashes=1),
        variant("a refused message", rows=((1, "A"), (2, "A"), (3, "B"), (4, "B")), refusals=1),
        variant("orders alike", rows=rows_alike(range(1, 50)), outage=len(PAIRS_ALIKE) * 2),
        variant("a long outbox", rows=LONGEST, held=(0,)),
        variant("a long life of the relay", rows=LONGEST, sent=MOST_OPEN),
        variant(
            "many refused messages",
            rows=tuple((place, f"order {place}") for place in range(1, MOST_REFUSED + 2)),
            held=tuple(range(MOST_REFUSED)),
        ),
        variant("the id 0", rows=((0, "A"), (1, "B"), (2, "A")), crashes=1),
        variant("ids that do not grow", rows=((7, "A"), (3, "A"), (5, "B")), first=1, crashes=1),
    )
}
