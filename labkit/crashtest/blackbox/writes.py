"""Derive the order of the durable writes of one step from the recorded effects of a real pipeline.

A table says which kind of write each effect is: a row has a pattern of the effect's name, and its meaning. An effect
that no row matches is an error, because an order with a gap would be a guess. The kinds of writes come from
`labkit.sim.writes`; all knowledge of engines is in `writes.toml`.
"""

import fnmatch
import glob
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import groupby
from typing import NamedTuple

from labkit.core.errors import InvalidInput
from labkit.core.words import nearest
from labkit.crashtest.blackbox.effects import without_number
from labkit.crashtest.blackbox.points import EXIT
from labkit.host.syscalls.calls import CallKind
from labkit.sim.writes import AtomicSet, Write, atomic, order_text, word_of

NOTHING = "nothing"
"""The meaning of an effect that no reader can notice, such as a new folder, a sync or an empty file."""

COMMITS = "commits"
"""The meaning of the effect that commits a transaction of the store."""

EVERYWHERE = "everywhere"
"""The name of the table in `writes.toml` that applies to every engine."""

SHOWN = 6
"""The number of writes that an error message quotes."""

OUTPUT = frozenset({Write.STAGED, Write.VISIBLE})


class Meaning(NamedTuple):
    """One row of a table: the kinds of writes that an effect makes if its name matches the pattern."""

    pattern: str
    """A pattern of the effect's name, numbered or not: `rename offsets/<n>`, `unlink store/rows.db-journal #[357]`."""
    now: frozenset[Write]
    """The writes that last as soon as this effect has happened."""
    later: frozenset[Write] = frozenset()
    """The writes that last only when the effect's transaction commits."""
    commits: bool = False

    def fits(self, name: str) -> bool:
        """Return whether this row applies to the effect with that name."""
        return fits(self.pattern, name)


def fits(pattern: str, name: str) -> bool:
    """Return whether a pattern matches the name of an effect, with or without its running number."""
    bare = without_number(name)
    # The name of a watched folder is no part of an effect's name, so `*/offsets/<n>` must also match `offsets/<n>`.
    kind, _, place = bare.partition(" ")
    return any(fnmatch.fnmatchcase(each, pattern) for each in (name, bare, f"{kind} /{place}"))


def meaning(pattern: str, writes: str) -> Meaning:
    """Return the row for a pattern, with its meaning in the words of `writes.toml`.

    The words are kinds of writes such as `visible+marker`, `(visible)` for a write that lasts at the commit, `commits`,
    or `nothing`. Several words mean several things at once: `staged (visible)`. Raises `InvalidInput` for an unknown
    word.
    """
    now: set[Write] = set()
    later: set[Write] = set()
    commits = False
    for part in writes.replace("+", " ").split():
        if part == COMMITS:
            commits = True
        elif part != NOTHING:
            inside = part.startswith("(") and part.endswith(")")
            word = part[1:-1] if inside else part
            write = word_of(Write, word, f"write for {pattern!r}")
            (later if inside else now).add(write)
    if not writes.strip():
        raise InvalidInput(f"{pattern!r} names no kind of write; write {NOTHING!r} if these effects do not count.")
    return Meaning(pattern, frozenset(now), frozenset(later), commits)


def meanings(table: Mapping[str, str]) -> tuple[Meaning, ...]:
    """Return the rows of a table `{pattern: meaning}`, in its order; the first row that matches an effect counts."""
    return tuple(meaning(pattern, writes) for pattern, writes in table.items())


class Engine(NamedTuple):
    """The meanings of one engine's effects, a table of `writes.toml`; `idle` are writes of steps without output."""

    name: str
    sign: str
    """A pattern of effects by which the engine is recognised: its table is used for a run if an effect matches."""
    idle: frozenset[Write]
    rows: tuple[Meaning, ...]


def engines() -> dict[str, Engine]:
    """Return every table of `writes.toml` by the name of its engine, in the order of the file."""
    text = files("labkit.crashtest.blackbox").joinpath("writes.toml").read_text("utf-8")
    tables: dict[str, dict[str, str]] = tomllib.loads(text)
    return {name: _engine(name, dict(table)) for name, table in tables.items()}


def _engine(name: str, table: dict[str, str]) -> Engine:
    sign, idle = table.pop("sign"), table.pop("idle", "")
    writes = frozenset(word_of(Write, each, "write") for each in idle.split())
    return Engine(name, sign, writes, meanings(table))


def engine_rows(*names: str) -> tuple[Meaning, ...]:
    """Return the rows of the named engines, or of all if none is named. Raises `InvalidInput` for an unknown name."""
    every = engines()
    for name in names:
        if name not in every:
            raise InvalidInput(f"writes.toml has no rows for {name!r}; {nearest(name, list(every))}")
    return tuple(row for name in names or every for row in every[name].rows)


def recognised(names: Sequence[str]) -> list[Engine]:
    """Return the engines and formats whose `sign` matches one of these names of a run's effects."""
    return [each for each in engines().values() if any(fits(each.sign, name) for name in names)]


def attribute_rows(names: Sequence[str], table: Sequence[Meaning]) -> tuple[Meaning, ...]:
    """Return rows by which changes of attributes (mode, owner, time) mean nothing, for files that engines write.

    `names` are the names of a run's effects, `table` the rows of its engines. An engine sets modes on the files that it
    makes, and reads none of them. Attributes of any other file get no row, because a pipeline may keep its marker
    there.
    """
    places = {without_number(name).partition(" ")[::2] for name in names}
    changed = {place for kind, place in places if kind == CallKind.ATTRIBUTES}
    known = {
        place
        for kind, place in places
        if place in changed
        and kind not in (CallKind.ATTRIBUTES, CallKind.SYNC)
        and _row(f"{kind} {place}", table) is not None
    }
    return tuple(meaning(f"{CallKind.ATTRIBUTES} {glob.escape(place)}", NOTHING) for place in sorted(known))


class AtomicWrite(NamedTuple):
    """Kinds of writes of which a crash keeps all or none, with the names of the effects (system calls) behind them."""

    writes: AtomicSet
    effects: tuple[str, ...]


class Step(NamedTuple):
    """One step of a run, for example a batch: the sets of writes that it made, in order."""

    made: tuple[AtomicWrite, ...]

    @property
    def order(self) -> tuple[AtomicSet, ...]:
        """Return the sets of writes in order; the writes of a set last together or not at all."""
        return tuple(each.writes for each in self.made)


class Orders(NamedTuple):
    """The steps of a run, such as its batches, which all have the same order of writes."""

    steps: tuple[Step, ...]

    @property
    def order(self) -> tuple[AtomicSet, ...]:
        """Return the order of writes, which is the same in every step."""
        return self.steps[0].order

    def __str__(self) -> str:
        return order_text(self.order)

    def before(self, number: int, made: int) -> str:
        """Return the effect before which a kill leaves the first `made` sets of writes of a step, and no more.

        `number` is the number of the step, from 1. After the step's last set, the result is the first effect of the
        next step, or the command's end.
        """
        sets = self.steps[number - 1].made
        if made < len(sets):
            return sets[made].effects[0]
        following = self.steps[number : number + 1]
        return following[0].made[0].effects[0] if following else EXIT

    def place(self, name: str) -> tuple[int, int] | None:
        """Return the step (from 1) in which an effect makes a write, and how many of its sets are complete before that.

        Returns None if no effect of that name makes a write. This is the inverse of `before`, but accepts any effect of
        a set: a kill in the middle of a set leaves that set incomplete.
        """
        for number, step in enumerate(self.steps, start=1):
            for done, result in enumerate(step.made):
                if name in result.effects:
                    return number, done
        return (len(self.steps), len(self.order)) if name == EXIT else None


def orders(
    names: Iterable[str], table: Sequence[Meaning], ends: str | None = None, idle: Iterable[Write] = ()
) -> Orders:
    """Return the steps of a run from the names of its durable effects, in their order.

    `table` gives the meanings of the effects. A step ends before a write that it has already made or, if `ends` is
    given, after each effect that matches this pattern. `idle` are writes that an engine also makes without output, such
    as checkpoints at intervals; only the last one before visible output belongs to its step. Steps without output are
    left out. Raises `InvalidInput` for an effect that no row matches, for a step whose writes are interleaved, and for
    steps that differ.
    """
    events = list(_without_idle(list(_events(names, table)), frozenset(idle)))
    steps = [
        step for step in map(_step, _cut(events, ends)) if any(OUTPUT & set(result.writes) for result in step.made)
    ]
    if not steps:
        raise InvalidInput("the record contains no effect that writes output, staged or visible.")
    for number, step in enumerate(steps, start=1):
        if step.order != steps[0].order:
            raise InvalidInput(
                f"step 1 of the record has the order {order_text(steps[0].order)!r}, and step {number} "
                f"{order_text(step.order)!r}; name with `ends` (--ends) the effect that ends a step."
            )
    return Orders(tuple(steps))


def unknown(names: Iterable[str], table: Sequence[Meaning]) -> list[str]:
    """Return the names, without running numbers, of the effects that no row of the table matches, in order."""
    names_without_number = (without_number(name) for name in names if not _row(name, table))
    return list(dict.fromkeys(names_without_number))


class _Event(NamedTuple):
    name: str
    writes: AtomicSet


def _row(name: str, table: Sequence[Meaning]) -> Meaning | None:
    return next((row for row in table if row.fits(name)), None)


def _events(names: Iterable[str], table: Sequence[Meaning]) -> Iterator[_Event]:
    """Yield each effect that is a write, in order; all writes of a transaction become one set at its commit."""
    waiting: set[Write] = set()
    for name in names:
        if name == EXIT:
            continue
        row = _row(name, table)
        if row is None:
            raise InvalidInput(
                f"writes.toml does not list the effect {name!r}; name its kind of write, or {NOTHING!r} if it "
                "does not count."
            )
        waiting |= row.later
        writes = set(row.now)
        if row.commits:
            writes, waiting = writes | waiting, set()
        if writes:
            yield _Event(name, atomic(writes))


def _without_idle(events: Sequence[_Event], idle: frozenset[Write]) -> Iterator[_Event]:
    """Yield the writes in order, but of several idle writes before visible output only the last."""
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
    written: set[Write] = set()
    for event in events:
        again = bool(written & set(event.writes)) and step[-1].writes != event.writes
        if ends is None and again:
            yield step
            step, written = [], set()
        step.append(event)
        written |= set(event.writes)
        if ends is not None and fits(ends, event.name):
            yield step
            step, written = [], set()
    if step:
        yield step


def _step(events: Sequence[_Event]) -> Step:
    """Return one step's sets of writes in order. Raises `InvalidInput` if they are interleaved."""
    effects: dict[AtomicSet, list[str]] = {}
    for event in events:
        effects.setdefault(event.writes, []).append(event.name)
    last = {event.writes: place for place, event in enumerate(events)}
    first = list(effects)
    writes = [write for each in first for write in each]
    if len(writes) > len(set(writes)) or sorted(first, key=last.__getitem__) != first:
        turns = [writes for writes, _ in groupby(event.writes for event in events)]
        more = ", and so on" if len(turns) > SHOWN else ""
        message = order_text(turns[:SHOWN]) + more
        raise InvalidInput(f"the writes of a step are interleaved, so they have no order: {message}.")
    return Step(tuple(AtomicWrite(writes, tuple(names)) for writes, names in effects.items()))
