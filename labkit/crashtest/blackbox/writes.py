"""Derive the order of the durable writes of one step from the recorded effects of a real pipeline.

A table says which kind of write each effect is: a row has a pattern of the effect's name, and its meaning. An effect
that no row matches is an error, because without its meaning the order would be a guess. The kinds of writes come from
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
    """A row of a table in `writes.toml`: a pattern of system calls' names, and the kinds of writes these calls make."""

    pattern: str
    """A pattern of the effect's name, numbered or not: `rename offsets/<n>`, `unlink store/rows.db-journal #[357]`."""
    now: frozenset[Write]
    """The writes that take effect as soon as this call has happened."""
    later: frozenset[Write] = frozenset()
    """The writes that take effect only when the call's transaction commits."""
    commits: bool = False


def fits(pattern: str, name: str) -> bool:
    """Return whether a pattern matches the name of a system call, with its number (`rename a #2`) or without."""
    bare = without_number(name)
    # The name of a watched folder is no part of an effect's name, so `*/offsets/<n>` must also match `offsets/<n>`.
    kind, _, place = bare.partition(" ")
    return any(fnmatch.fnmatchcase(each, pattern) for each in (name, bare, f"{kind} /{place}"))


def meaning(pattern: str, writes: str) -> Meaning:
    """Return a table row: a pattern of system calls' names, and the kinds of writes that these calls make.

    `writes` names these kinds, for example `visible+marker`. Parentheses, as in `(visible)`, mean that the write takes
    effect only when its transaction commits. The word `commits` means that the call commits a transaction, and
    `nothing` that it makes no write. Words may be combined, as in `staged (visible)`. Raises `InvalidInput` for an
    unknown word.
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
        raise InvalidInput(
            f"{pattern!r}: say which kind of write these effects are: {', '.join(Write)}, or {NOTHING!r} for effects "
            "that no reader can notice."
        )
    return Meaning(pattern, frozenset(now), frozenset(later), commits)


def meanings(table: Mapping[str, str]) -> tuple[Meaning, ...]:
    """Convert a table `{pattern: kinds of writes}` to rows; for a system call, the first matching row counts."""
    return tuple(meaning(pattern, writes) for pattern, writes in table.items())


class Engine(NamedTuple):
    """The table of `writes.toml` for one engine or format."""

    name: str
    sign: str
    """A pattern of effects by which the engine is recognised: its table is used for a run if an effect matches."""
    idle: frozenset[Write]
    rows: tuple[Meaning, ...]


def engines() -> dict[str, Engine]:
    """Return all tables of `writes.toml` by the engine's name, in the order of the file."""
    text = files("labkit.crashtest.blackbox").joinpath("writes.toml").read_text("utf-8")
    tables: dict[str, dict[str, str]] = tomllib.loads(text)
    result = {}
    for name, table in tables.items():
        sign, idle = table.pop("sign"), table.pop("idle", "")
        writes = frozenset(word_of(Write, each, "write") for each in idle.split())
        result[name] = Engine(name, sign, writes, meanings(table))
    return result


def engine_rows(*names: str) -> tuple[Meaning, ...]:
    """Return the rows of `writes.toml` for the given engines, by default for all of them.

    Raises `InvalidInput` for an unknown engine.
    """
    every = engines()
    for name in names:
        if name not in every:
            raise InvalidInput(f"labkit knows no engine {name!r}; {nearest(name, list(every))}")
    return tuple(row for name in names or every for row in every[name].rows)


def recognised(names: Sequence[str]) -> list[Engine]:
    """Return the engines and formats that wrote in a run.

    The pattern `sign` of an engine's table says by which calls the engine is recognised; `names` are the run's calls.
    """
    return [each for each in engines().values() if any(fits(each.sign, name) for name in names)]


def attribute_rows(names: Sequence[str], table: Sequence[Meaning]) -> tuple[Meaning, ...]:
    """Return table rows which say that a change of the mode, owner or time of an engine's own file is no write.

    Engines set these attributes but never read them. So there is a row for each file whose attributes changed and that
    `table` describes. Other files get none, because a pipeline may use their attributes as its record of finished work.
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
    """A group of writes that a crash keeps or loses as a whole: the kinds of the writes, and their system calls."""

    writes: AtomicSet
    effects: tuple[str, ...]


Step = tuple[AtomicWrite, ...]
"""The writes of one step of a recorded run, such as a batch, in order of time."""


def order_of(step: Step) -> tuple[AtomicSet, ...]:
    """Return the kinds of writes of one step (batch) in order of time; the writes of one set take effect together."""
    return tuple(each.writes for each in step)


class Orders(NamedTuple):
    """The steps of a recorded run, such as its batches. All steps make their writes in the same order."""

    steps: tuple[Step, ...]

    @property
    def order(self) -> tuple[AtomicSet, ...]:
        """The kinds of writes in the order in which each step of the run, such as a batch, makes them."""
        return order_of(self.steps[0])

    def __str__(self) -> str:
        return order_text(self.order)

    def place(self, name: str) -> tuple[int, int] | None:
        """Return the place of the system call `name` as a pair (step, done); None if no such call makes a write.

        `step` is the number of the call's step, such as a batch, from 1. `done` is how many writes of this step are
        complete before the call. Writes that take effect together count as one, and a write that needs several calls is
        complete only after the last one. For `exit`, the pair has the last step and the number of all its writes.
        """
        for number, step in enumerate(self.steps, start=1):
            for done, result in enumerate(step):
                if name in result.effects:
                    return number, done
        return (len(self.steps), len(self.order)) if name == EXIT else None


def orders(
    names: Iterable[str], table: Sequence[Meaning], ends: str | None = None, idle: Iterable[Write] = ()
) -> Orders:
    """Return the steps (such as batches) of a run, from the names of its system calls in their order.

    A step ends after each call that matches the pattern `ends`; without it, a new step begins as soon as a kind of
    write is repeated. Steps without output are left out. `idle` are kinds of writes that an engine makes even without
    output, such as checkpoints at intervals: if several come before a step's visible output, only the last belongs to
    the step.

    Raises `InvalidInput` if no row of `table` matches a call, if two kinds of writes alternate within a step, or if two
    steps make their writes in different orders.
    """
    events = list(_without_idle(list(_events(names, table)), frozenset(idle)))
    steps = [step for step in map(_step, _cut(events, ends)) if any(OUTPUT & set(result.writes) for result in step)]
    if not steps:
        raise InvalidInput(
            "labkit recognises none of the recorded effects as a write of output, staged or visible; name the effect "
            "that writes output, as in --write 'write store/all.txt=visible'."
        )
    for number, step in enumerate(steps, start=1):
        if order_of(step) != order_of(steps[0]):
            raise InvalidInput(
                f"the recorded steps differ: step 1 writes in the order {order_text(order_of(steps[0]))!r}, step "
                f"{number} in the order {order_text(order_of(step))!r}. If labkit split the run at the wrong places, "
                "use `ends` (--ends) to name the effect that ends every step. If the places are right, the steps "
                "really write in different orders."
            )
    return Orders(tuple(steps))


def unknown(names: Iterable[str], table: Sequence[Meaning]) -> list[str]:
    """Return those `names` of system calls that no row of `table` matches, each once and without its number (` #2`)."""
    return list(dict.fromkeys(without_number(name) for name in names if not _row(name, table)))


class _Event(NamedTuple):
    name: str
    writes: AtomicSet


def _row(name: str, table: Sequence[Meaning]) -> Meaning | None:
    return next((row for row in table if fits(row.pattern, name)), None)


def _events(names: Iterable[str], table: Sequence[Meaning]) -> Iterator[_Event]:
    """Yield each system call by which writes take effect, as the call's name and the kinds of these writes.

    `names` are the recorded system calls in their order, and `table` says which kinds of writes each call makes. Writes
    inside a transaction take effect at the call that commits it, so they are yielded with that call.

    Raises `InvalidInput` for a call that no row of `table` matches.
    """
    waiting: set[Write] = set()
    for name in names:
        if name == EXIT:
            continue
        row = _row(name, table)
        if row is None:
            raise InvalidInput(
                f"labkit does not know the effect {name!r}; say with --write which kind of write it is, or {NOTHING!r} "
                "if no reader can notice it."
            )
        waiting |= row.later
        writes = set(row.now)
        if row.commits:
            writes, waiting = writes | waiting, set()
        if writes:
            yield _Event(name, atomic(writes))


def _without_idle(events: Sequence[_Event], idle: frozenset[Write]) -> Iterator[_Event]:
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
    effects: dict[AtomicSet, list[str]] = {}
    for event in events:
        effects.setdefault(event.writes, []).append(event.name)
    last = {event.writes: place for place, event in enumerate(events)}
    first = list(effects)
    writes = [write for each in first for write in each]
    if len(writes) > len(set(writes)) or sorted(first, key=last.__getitem__) != first:
        turns = [writes for writes, _ in groupby(event.writes for event in events)]
        more = ", and so on" if len(turns) > SHOWN else ""
        write_order = order_text(turns[:SHOWN]) + more
        raise InvalidInput(
            f"within one step, writes of different kinds alternate ({write_order}), so no kind comes before the other; "
            "omit `ends` (--ends), or give it an effect that ends every step."
        )
    return tuple(AtomicWrite(writes, tuple(names)) for writes, names in effects.items())
