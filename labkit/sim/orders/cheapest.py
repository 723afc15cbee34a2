"""Find the fewest edits that make a design of writes exactly-once, by breadth-first search over designs.

A design says which durable writes a step makes, in which order, and how recovery uses them. An edit moves a write to
another position or into an atomic set, adds or removes a write, changes the kind of output, or changes one part of
recovery. Designs in between may make no sense; the final one must.
"""

from collections.abc import Collection, Iterator
from itertools import product
from typing import NamedTuple

from labkit.core.verdict import Guarantee
from labkit.sim.models.orders.state import World
from labkit.sim.orders.designs import RECOVERIES
from labkit.sim.orders.outcomes import find
from labkit.sim.writes import AtomicSet, Design, Output, Recovery, Write, atomic, nonsense, without

MOST = 3
"""The default maximum number of edits."""

Steps = tuple[AtomicSet, ...]


class Change(NamedTuple):
    """A proposed repair of an order of writes: an exactly-once design, and the edits that lead to it."""

    design: Design
    edits: tuple[str, ...]
    seen: tuple[str, ...]
    """The names of the properties that readers can see violated before the end of a run, such as no_regression."""

    def __str__(self) -> str:
        if not self.edits:
            return "no edit: the design is exactly-once already"
        cost = f"{len(self.edits)} edit{'s' * (len(self.edits) != 1)}"
        return f"{cost}: {'; '.join(self.edits)}"


def cheapest(design: Design, *, quietly: bool = False, held: Collection[Write] = (), most: int = MOST) -> list[Change]:
    """Return the exactly-once designs that need the fewest edits of `design`; empty if more than `most` are needed.

    A `Design` is the order of a job's durable writes, with recovery rules. Each result is exactly-once even if a step
    that is repeated after a crash gets other rows than before. With `quietly`, readers must also never see a value go
    back to an earlier one, and never see only some rows of a step. `held` are writes of another system, such as an
    engine: an edit may not move them, remove them, or make another write atomic with them.
    """
    orders = _Orders(design.steps, frozenset(held))
    for cost in range(most + 1):
        tried = _candidates(design, orders, cost)
        proved = (_proved(change, quietly=quietly) for change in tried)
        changes = [change for change in proved if change is not None]
        if changes:
            return sorted(changes, key=lambda each: (len(each.seen), str(each.design)))
    return []


class _Orders:
    """Computes the orders of writes that can be made from the order `steps` by one edit, by two edits, and so on.

    An edit moves, adds or leaves out one write; no edit touches a `fixed` write.
    """

    def __init__(self, steps: Steps, fixed: frozenset[Write]) -> None:
        self.edits: dict[Steps, tuple[str, ...]] = {steps: ()}
        self._fixed = fixed
        self._levels = [[steps]]

    def level(self, cost: int) -> list[Steps]:
        while len(self._levels) <= cost:
            fresh = []
            for steps in self._levels[-1]:
                for edit, after in edited(steps, self._fixed):
                    if after not in self.edits:
                        self.edits[after] = (*self.edits[steps], edit)
                        fresh.append(after)
            self._levels.append(fresh)
        return self._levels[cost]


def edited(steps: Steps, fixed: frozenset[Write] = frozenset()) -> Iterator[tuple[str, Steps]]:
    """Yield every possible edit of `steps`: the edit in words, and the order of writes that it leads to.

    No edit touches a `fixed` write.
    """
    movable = [write for each in steps for write in each if write not in fixed]
    for write in movable:
        rest = without(steps, (write,))
        for where, after in _placed(rest, write, fixed):
            if after != steps:
                yield f"move {write} {where}", after
        if write is not Write.VISIBLE:
            yield f"leave out {write}", rest
    for write in Write:
        if write not in (*movable, *fixed, Write.NOTICE):
            for where, after in _placed(steps, write, fixed):
                yield f"add {write} {where}", after


def _placed(steps: Steps, write: Write, fixed: frozenset[Write]) -> Iterator[tuple[str, Steps]]:
    """Yield a pair for every place where `write` can be inserted into `steps`: the place in words, and the new order.

    The write is inserted alone, or into a set of writes that become durable together. A set that contains a write in
    `fixed` gets no other write.
    """
    for place in range(len(steps) + 1):
        where = f"before {'+'.join(steps[place])}" if place < len(steps) else "to the end"
        yield where, (*steps[:place], (write,), *steps[place:])
    for place, each in enumerate(steps):
        if fixed.intersection(each):
            continue
        joined = atomic((*each, write))
        yield (f"into one atomic set with {'+'.join(each)}", (*steps[:place], joined, *steps[place + 1 :]))


def _candidates(design: Design, orders: _Orders, cost: int) -> Iterator[Change]:
    for output, recovery in product(Output, RECOVERIES):
        edits = _edits(design, output, recovery)
        if len(edits) > cost:
            continue
        for steps in orders.level(cost - len(edits)):
            changed = Design(steps, output, recovery)
            if not nonsense(changed) and changed.place(Write.PLAN) <= 0:  # a plan comes first, if there is one
                yield Change(changed, (*orders.edits[steps], *edits), ())


def _edits(design: Design, output: Output, recovery: Recovery) -> tuple[str, ...]:
    before = design.recovery
    edits = []
    if output is not design.output:
        edits.append(f"make the output {output}")
    if recovery.start is not before.start:
        edits.append(f"restart from {recovery.start}")
    if recovery.newest is not before.newest:
        edits.append("take the newest state" if recovery.newest else "take the state of the recorded step")
    if recovery.skips is not before.skips:
        edits.append("skip what is marked" if recovery.skips else "do not skip what is marked")
    if recovery.leftover is not before.leftover:
        edits.append(f"at a restart: {recovery.leftover}")
    if recovery.undoes is not before.undoes:
        edits.append("undo visible output of steps that run again" if recovery.undoes else "undo nothing")
    return tuple(edits)


def _proved(change: Change, *, quietly: bool) -> Change | None:
    """Return the change if its design is exactly-once at the end of every run with up to two crashes; otherwise None.

    The result's field `seen` lists the properties that are violated only for readers who look during the run. With
    `quietly`, the result is None if there is such a property.
    """
    # One crash before two: the smaller search refutes most designs.
    for world, crashes in product((World.SAME, World.OTHER), (1, 2)):
        verdicts = find(change.design, world, crashes=crashes)
        if verdicts.guarantee is not Guarantee.EXACTLY_ONCE:
            return None
        if quietly and verdicts.witnesses:
            return None
        change = change._replace(seen=tuple(dict.fromkeys((*change.seen, *verdicts.witnesses))))
    return change
