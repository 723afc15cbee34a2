"""Find a recorded pipeline in the table of `labkit orders`, as far as the record of its effects allows.

A record shows the order of the durable writes. It does not show what happens to repeated rows, or what a restart reads,
so each possibility is listed with the guarantee that the simulator finds for it. A test with real kills (`labkit
crashtest --command`) shows which possibility applies.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from labkit.core.errors import InvalidInput
from labkit.core.words import columns
from labkit.crashtest.blackbox.effects import without_number
from labkit.crashtest.blackbox.points import EXIT
from labkit.crashtest.blackbox.writes import (
    EVERYWHERE,
    NOTHING,
    Meaning,
    Orders,
    attribute_rows,
    meaning,
    orders,
    recognised,
    unknown,
)
from labkit.sim.models.orders.state import Fault, World
from labkit.sim.orders.designs import RECOVERIES, reduced, why_not
from labkit.sim.orders.named import NAMED
from labkit.sim.orders.outcomes import find
from labkit.sim.writes import AtomicSet, Design, Output, Write, nonsense

SHOWN = 3
"""The maximum number of kinds of effects that are printed for one write."""
LISTED = 12
"""The maximum number of unknown kinds of effects that are printed."""


class _Effect(msgspec.Struct, frozen=True):
    name: str


class _Record(msgspec.Struct, frozen=True):
    effects: tuple[_Effect, ...]


class Reading(NamedTuple):
    """A design that a recorded pipeline may have: its order of writes, and assumptions that no record can confirm."""

    design: Design
    guarantee: str
    """The guarantee of the design if a repeated step gets the same rows."""
    guarantee_with_other_rows: str
    built: tuple[str, ...]
    """The names of the simulator's known designs (such as a real engine's) that equal this one."""

    @property
    def chosen(self) -> str:
        """The assumptions of this design as text: what becomes of repeated rows, and what a restart reads."""
        return f"{self.design.output}; {self.design.recovery}"


class Standing(NamedTuple):
    """The order of writes in a pipeline's record, and the designs in the table of `labkit orders` with this order."""

    engines: tuple[str, ...]
    """The names of the tables in `writes.toml` (one for each engine or format) that interpreted the effects."""
    orders: Orders | None
    unknown: tuple[str, ...]
    """The kinds of effects that no row of these tables matches."""
    because: str
    """The reason why there is no order although all effects are known; otherwise empty."""
    readings: tuple[Reading, ...]

    def text(self) -> str:
        """Return the pipeline's order of writes, and the designs that it may have, as text for a terminal."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        if self.unknown:
            yield f"{len(self.unknown)} kind(s) of effects are not known, so there is no order:"
            yield from (f"  {each}" for each in self.unknown[:LISTED])
            first, kinds = self.unknown[0], ", ".join(Write)
            yield f"Name the kind of each: --write '{first}={Write.VISIBLE}', or any of {kinds}, or {NOTHING}."
            return
        if self.orders is None:
            yield self.because
            return
        yield f"{len(self.orders.steps)} step(s), each in the order: {self.orders}"
        rows = [(f"  {'+'.join(result.writes)}", _kinds(result.effects)) for result in self.orders.steps[-1]]
        yield columns(rows)
        yield from self._restart_lines()

    def _restart_lines(self) -> Iterator[str]:
        if not self.readings:
            yield "No cell of the table has this order, for example because it has a write that no restart reads."
            return
        yield "The record does not show what happens to repeated rows, or what a restart reads. For each case:"
        yield columns([(f"  {each.chosen}", _guarantee_text(each)) for each in self._telling()])
        yield f"See one: labkit orders --design '{self.readings[0].design}'"

    def _telling(self) -> Iterator[Reading]:
        """Yield the designs to print.

        Two designs may differ only in whether a restart reads the newest state. If both have the same guarantee, only
        the one whose restart does not read it is yielded.
        """
        plain = {(each.design.output, each.design.recovery): each.guarantee for each in self.readings}
        for each in self.readings:
            recovery = each.design.recovery
            older = plain.get((each.design.output, recovery._replace(newest=False)))
            if not recovery.newest or each.guarantee != older:
                yield each

    def to_json(self) -> dict[str, Any]:
        """Return the pipeline's order of writes, and the designs that it may have, as a dict for JSON."""
        result = self.orders.steps[-1] if self.orders else ()
        return {
            "order": str(self.orders) if self.orders else None,
            "steps": len(self.orders.steps) if self.orders else 0,
            "writes": [{"writes": list(each.writes), "effects": list(each.effects)} for each in result],
            "engines": list(self.engines),
            "unknown": list(self.unknown),
            "because": self.because,
            "readings": [each._asdict() | {"design": str(each.design)} for each in self.readings],
        }


def _kinds(effects: Sequence[str]) -> str:
    kinds = list(dict.fromkeys(without_number(each) for each in effects))
    more = f", and {len(kinds) - SHOWN} more" if len(kinds) > SHOWN else ""
    return ", ".join(kinds[:SHOWN]) + more


def _guarantee_text(reading: Reading) -> str:
    guarantee = reading.guarantee
    if reading.guarantee_with_other_rows != guarantee:
        guarantee += f" ({reading.guarantee_with_other_rows} if a repeated step gets other rows)"
    return f"{guarantee}, as {' and '.join(reading.built)}" if reading.built else guarantee


def read_names(path: Path) -> list[str]:
    """Return the names of the system calls in the record at `path`: a JSON file, or a folder from `--out` that has one.

    Raises `InvalidInput` if there is no such record.
    """
    files = [path]
    if path.is_dir():
        files = [path / "effects.json", path / "report.json"]
    file = next((each for each in files if each.is_file()), None)
    if file is None:
        raise InvalidInput(
            f"--of {path}: there is no such record; write one with `labkit effects --command CMD --out DIR`."
        )
    try:
        record = msgspec.json.decode(file.read_bytes(), type=_Record)
    except (OSError, msgspec.DecodeError):
        raise InvalidInput(
            f"--of {path}: this is not a record of effects; name a folder that `labkit effects --out` has written."
        ) from None
    return [each.name for each in record.effects]


def user_row(text: str) -> Meaning:
    """Return the table row that a value of `--write` describes, such as `write store/all.txt=visible`.

    Raises `InvalidInput` for a text of another form.
    """
    pattern, sign, writes = text.rpartition("=")
    if not (sign and pattern.strip() and writes.strip()):
        raise InvalidInput(
            f"--write {text[:60]}: this is not of the form EFFECT=WRITE; write it as in 'write store/all.txt=visible', "
            f"where WRITE is one of {', '.join(Write)}, or {NOTHING}."
        )
    return meaning(pattern.strip(), writes.strip())


def standing(names: Sequence[str], own: Sequence[Meaning] = (), ends: str | None = None) -> Standing:
    """Return a pipeline's order of writes, derived from the names of its calls, and the designs that have this order.

    The user's rows `own` (`--write`) say what kind of write a call makes, and take precedence over the rows that labkit
    has for known engines. `ends` is a pattern of the call that ends a step, such as a batch.
    """
    engines = recognised(names)
    engine_names = tuple(each.name for each in engines)
    rows = tuple(row for each in engines for row in each.rows)
    made = tuple(row for each in engines if each.name != EVERYWHERE for row in each.rows)
    table = (*own, *attribute_rows(names, made), *rows)
    idle = frozenset[Write]().union(*(each.idle for each in engines))
    lasting = [name for name in names if name != EXIT]
    if missing := unknown(lasting, table):
        return Standing(engine_names, None, tuple(missing), "", ())
    try:
        result = orders(names, table, ends, idle)
    except InvalidInput as error:
        return Standing(engine_names, None, (), str(error), ())
    return Standing(engine_names, result, (), "", tuple(readings(result.order)))


def readings(steps: tuple[AtomicSet, ...]) -> Iterator[Reading]:
    """Yield the designs in the table of `labkit orders` that write in the order of `steps`, with their guarantees.

    Some designs differ only in a write that no recovery reads; of these, only the first is yielded.
    """
    met: set[Design] = set()
    for output in Output:
        for recovery in RECOVERIES:
            design = Design(steps, output, recovery)
            cell = reduced(design)
            if nonsense(design) or why_not(cell) or cell in met:
                continue
            met.add(cell)
            same, other = (find(cell, world) for world in (World.SAME, World.OTHER))
            built = [name for name, each in NAMED.items() if each.fault is Fault.NONE and reduced(each.design) == cell]
            yield Reading(design, same.guarantee.value, other.guarantee.value, tuple(built))
