"""The order of the durable writes of one step, read from the effects that a real pipeline was seen to have.

Which effect is which write is data: rows of a table, a pattern of the effect's name and what it means. An effect that
no row knows is refused, since an order with a hole would be a guess. The vocabulary is `labkit.sim.writes`. This module
must not run anything, must not judge, and must not know an engine.
"""

import fnmatch
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import groupby
from typing import NamedTuple

from labkit.core.errors import InvalidInput
from labkit.core.words import nearest
from labkit.crashtest.blackbox.effects import without_number
from labkit.crashtest.blackbox.points import EXIT
from labkit.sim.writes import AtomicSet, Write, atomic, order_text, word_of

NOTHING = "nothing"
"""The meaning of an effect that nobody reads, or by which nothing changes for anybody: a folder, a sync, an empty file.
"""

COMMITS = "commits"
"""The meaning of the effect that ends a transaction of the store."""

SHOWN = 6
"""Turns of writes that a refusal shows."""

OUTPUT = frozenset({Write.STAGED, Write.VISIBLE})


class Meaning(NamedTuple):
    """One row: what effects are whose names fit a pattern."""

    pattern: str
    """Of the name with or without its number: `rename offsets/<n>`, `unlink store/rows.db-journal #[357]`."""
    now: frozenset[Write]
    """The writes that this effect is."""
    later: frozenset[Write] = frozenset()
    """The writes that it becomes when the transaction is committed that it is part of."""
    commits: bool = False

    def fits(self, name: str) -> bool:
        """Whether this row is about an effect of that name."""
        return fits(self.pattern, name)


def fits(pattern: str, name: str) -> bool:
    """Whether a pattern means an effect of that name, which may be written with or without its number."""
    bare = without_number(name)
    # A folder that is watched itself is not in the name: `*/offsets/<n>` means it, too.
    kind, _, place = bare.partition(" ")
    return any(fnmatch.fnmatchcase(each, pattern) for each in (name, bare, f"{kind} /{place}"))


def meaning(pattern: str, said: str) -> Meaning:
    """A row from its text: `visible+marker`, `(visible)` for what a commit will do, `commits`, or `nothing`.

    Several words mean several things at once: `staged (visible)`. Raises `InvalidInput` for an unknown word.
    """
    now: set[Write] = set()
    later: set[Write] = set()
    commits = False
    for part in said.replace("+", " ").split():
        if part == COMMITS:
            commits = True
        elif part != NOTHING:
            inside = part.startswith("(") and part.endswith(")")
            word = part[1:-1] if inside else part
            write = word_of(Write, word, f"write for {pattern!r}")
            (later if inside else now).add(write)
    if not said.strip():
        raise InvalidInput(f"{pattern!r} means no write; say {NOTHING!r} if that is meant.")
    return Meaning(pattern, frozenset(now), frozenset(later), commits)


def meanings(table: Mapping[str, str]) -> tuple[Meaning, ...]:
    """The rows of a table, in its order: the first that fits counts."""
    return tuple(meaning(pattern, said) for pattern, said in table.items())


class Engine(NamedTuple):
    """What is known of the effects of an engine or a table format: one table of `writes.toml`."""

    name: str
    sign: str
    """A pattern: a run with such an effect may have the others."""
    idle: frozenset[Write]
    rows: tuple[Meaning, ...]


def engines() -> dict[str, Engine]:
    """Every table of `writes.toml` by its name, in the order in which they are asked."""
    text = files("labkit.crashtest.blackbox").joinpath("writes.toml").read_text("utf-8")
    told: dict[str, dict[str, str]] = tomllib.loads(text)
    return {name: _engine(name, dict(said)) for name, said in told.items()}


def _engine(name: str, said: dict[str, str]) -> Engine:
    sign, idle = said.pop("sign"), said.pop("idle", "")
    writes = frozenset(word_of(Write, each, "write") for each in idle.split())
    return Engine(name, sign, writes, meanings(said))


def known(*names: str) -> tuple[Meaning, ...]:
    """The rows for these engines and formats, in this order; none named: all. Raises `InvalidInput`."""
    every = engines()
    for name in names:
        if name not in every:
            raise InvalidInput(f"writes.toml has no rows for {name!r}; {nearest(name, list(every))}")
    return tuple(row for name in names or every for row in every[name].rows)


def recognised(names: Sequence[str]) -> list[Engine]:
    """The engines and formats whose sign is among these effects."""
    return [each for each in engines().values() if any(fits(each.sign, name) for name in names)]


class Made(NamedTuple):
    """An atomic set of writes, with the effects by which it was made."""

    writes: AtomicSet
    effects: tuple[str, ...]


class Step(NamedTuple):
    """One step of a run."""

    made: tuple[Made, ...]

    @property
    def order(self) -> tuple[AtomicSet, ...]:
        """The atomic sets in their order."""
        return tuple(each.writes for each in self.made)


class Orders(NamedTuple):
    """What a run shows: its steps, which all have one order."""

    steps: tuple[Step, ...]

    @property
    def order(self) -> tuple[AtomicSet, ...]:
        """The order of every step."""
        return self.steps[0].order

    def __str__(self) -> str:
        return order_text(self.order)

    def before(self, number: int, made: int) -> str:
        """The effect before which a kill leaves so many atomic sets of a step, which is numbered from 1.

        After the last set that is the first effect of the next step, or the command's end.
        """
        sets = self.steps[number - 1].made
        if made < len(sets):
            return sets[made].effects[0]
        following = self.steps[number : number + 1]
        return following[0].made[0].effects[0] if following else EXIT

    def place(self, name: str) -> tuple[int, int] | None:
        """The inverse of `before`, for whatever effect makes a write: its step and how many sets are whole before it.

        None: no write is made by an effect of that name. A kill in the middle of a set leaves that set in part.
        """
        for number, step in enumerate(self.steps, start=1):
            for done, made in enumerate(step.made):
                if name in made.effects:
                    return number, done
        return (len(self.steps), len(self.order)) if name == EXIT else None


def orders(
    names: Iterable[str], table: Sequence[Meaning], ends: str | None = None, idle: Iterable[Write] = ()
) -> Orders:
    """The steps of a run whose durable effects have these names, in their order.

    A step is over where a write is made again that it has made before, or, where `ends` is given, with each effect that
    fits this pattern. `idle`: writes that an engine makes without output, too, as checkpoints by the clock: only the
    last before visible output belongs to its step. Steps without output are left out. Raises `InvalidInput` for an
    effect that no row knows, for writes of a step that are interleaved, and for steps that differ.
    """
    events = list(_without_idle(list(_events(names, table)), frozenset(idle)))
    found = [step for step in map(_step, _cut(events, ends)) if any(OUTPUT & set(made.writes) for made in step.made)]
    if not found:
        raise InvalidInput("no effect of the record is output, staged or visible.")
    for number, step in enumerate(found, start=1):
        if step.order != found[0].order:
            raise InvalidInput(
                f"step 1 of the record has the order {order_text(found[0].order)!r}, and step {number} "
                f"{order_text(step.order)!r}; say with `ends` by which effect a step is over."
            )
    return Orders(tuple(found))


def unknown(names: Iterable[str], table: Sequence[Meaning]) -> list[str]:
    """The effects that no row knows, each kind once, in their order."""
    known = (without_number(name) for name in names if not _row(name, table))
    return list(dict.fromkeys(known))


class _Event(NamedTuple):
    name: str
    writes: AtomicSet


def _row(name: str, table: Sequence[Meaning]) -> Meaning | None:
    return next((row for row in table if row.fits(name)), None)


def _events(names: Iterable[str], table: Sequence[Meaning]) -> Iterator[_Event]:
    """The effects that are writes; what belongs to a transaction is one atomic set at its commit."""
    waiting: set[Write] = set()
    for name in names:
        if name == EXIT:
            continue
        row = _row(name, table)
        if row is None:
            raise InvalidInput(f"no row says what the effect {name!r} is; name its write, or {NOTHING!r}.")
        waiting |= row.later
        writes = set(row.now)
        if row.commits:
            writes, waiting = writes | waiting, set()
        if writes:
            yield _Event(name, atomic(writes))


def _without_idle(events: Sequence[_Event], idle: frozenset[Write]) -> Iterator[_Event]:
    """The events without the idle ones that another one follows before anything becomes visible."""
    waits, kept = False, []
    for event in reversed(events):
        if Write.VISIBLE in event.writes:
            waits = True
        elif idle & set(event.writes):
            if not waits:
                continue
            waits = False
        kept.append(event)
    return reversed(kept)


def _cut(events: Sequence[_Event], ends: str | None) -> Iterator[list[_Event]]:
    step: list[_Event] = []
    made: set[Write] = set()
    for event in events:
        again = bool(made & set(event.writes)) and step[-1].writes != event.writes
        if ends is None and again:
            yield step
            step, made = [], set()
        step.append(event)
        made |= set(event.writes)
        if ends is not None and fits(ends, event.name):
            yield step
            step, made = [], set()
    if step:
        yield step


def _step(events: Sequence[_Event]) -> Step:
    """Atomic sets by their first effects. Raises `InvalidInput` if their last effects have another order."""
    effects: dict[AtomicSet, list[str]] = {}
    for event in events:
        effects.setdefault(event.writes, []).append(event.name)
    last = {event.writes: place for place, event in enumerate(events)}
    first = list(effects)
    writes = [write for each in first for write in each]
    if len(writes) > len(set(writes)) or sorted(first, key=last.__getitem__) != first:
        turns = [writes for writes, _ in groupby(event.writes for event in events)]
        more = ", and so on" if len(turns) > SHOWN else ""
        said = order_text(turns[:SHOWN]) + more
        raise InvalidInput(f"the writes of a step are interleaved, so they have no order: {said}.")
    return Step(tuple(Made(writes, tuple(names)) for writes, names in effects.items()))
