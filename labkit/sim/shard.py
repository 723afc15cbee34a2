"""One of several searchers that share a search: those states that belong to it, level by level.

All go on from one search that has begun (`labkit.sim.explore.Search`), and give the same values the same codes: a state
with a value that is new in a level has no number before the level ends, and is told to all as the state before it and
the choice that leads to it. Then all learn these values in one order, so a number means the same everywhere. A state
belongs to the searcher that the bits of its anchors name.
Order is kept: within a level states stand in the order of the least sequence of choices that leads there, as in
`labkit.sim.explore`, so that every number of searchers finds the same states, the same violations and the same traces.
What searchers hand each other are numbers; this module must not know how they travel, and must not know any model.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, compress, count
from typing import Any, Generic, NamedTuple

from labkit.sim.explore import Search, at_once
from labkit.sim.model import Model, StateT

_CHOICES = 16
"""Bits of an order that hold which of a state's actions was taken; those above hold the state's rank in its level."""

_WHICH = (1 << _CHOICES) - 1


def rank_of(order: int) -> int:
    """The rank of the state from which a state with this order was reached."""
    return order >> _CHOICES


def ranks(orders: Sequence["array[int]"], me: int) -> "array[int]":
    """The places of one searcher's states among those of all, whose orders are given, each searcher's in order."""
    mine = set(orders[me])
    return array("Q", compress(count(), map(mine.__contains__, sorted(chain(*orders)))))


class Batch(NamedTuple):
    """States that one searcher reached, with their orders and parents; without numbers where a value has no code yet."""

    numbers: "list[int] | array[int]"
    orders: "list[int] | array[int]"
    parents: "list[int] | array[int]"

    def shrunk(self) -> "Batch":
        """The same in less space, where numbers have no more than 64 bits."""
        try:
            return Batch(*(array("Q", each) for each in self))
        except OverflowError:
            return self


class Found(NamedTuple):
    """A state that breaks a claim: its order, or its rank if it is an end, and its number."""

    claim: str
    order: int
    number: int


class Taken(NamedTuple):
    """What a searcher found in a level: states that break a claim, and what it reached that others must know of."""

    met: list[Found]
    ended: list[Found]
    strange: Batch
    theirs: list[Batch]


def anchors(model: Model[Any]) -> list[int]:
    """The fields of a state that decide to which searcher it belongs (Lerda and Sisto, SPIN 1999)."""
    fields: tuple[str, ...] = model.initial()._fields
    chosen = [place for place, name in enumerate(fields) if name in model.anchors]
    return chosen or list(range(len(fields)))


class Shard(Generic[StateT]):
    """The states of one searcher of several, and all those with which the search has begun."""

    def __init__(self, begun: Search[StateT], me: int, of: int) -> None:
        self.model, self.me, self.of = begun.model, me, of
        self.claims, self.packer = begun.claims, begun.packer
        self.parents = begun.parents
        self._anchors = anchors(self.model)
        self._mask = self.packer.mask(self._anchors)
        self._are_often_met = begun.are_often_met
        self._enabled = array("I")
        self._strange: list[StateT] = []
        # Of each state of the next level its order.
        self._fresh = {
            number: rank << _CHOICES
            for rank, number in enumerate(begun.level)
            if self.owner(number) == me
        }
        self._level: list[int] = []

    def owner(self, number: int) -> int:
        """Whose a state is."""
        return hash((number & self._mask,)) % self.of

    def cut(self, size: int) -> None:
        """Forgets all states of the new level but the first ones."""
        del self._level[size:]

    def generated(self, states: int) -> int:
        """How many actions the first states of the level that was expanded last have together."""
        return sum(self._enabled[:states])

    def take(
        self,
        orders: Sequence[int],
        ranks: Sequence[int],
        must_stop: Callable[[], bool],
        *,
        is_last: bool = False,
    ) -> Taken:
        """Asks the claims about the states of the level, and takes every action in them, until it has to stop."""
        theirs = [Batch([], [], []) for _ in range(self.of)]
        taken = Taken([], [], Batch([], [], []), theirs)
        self._enabled, self._strange = array("I"), []
        first, is_stopped = 0, is_last
        for numbers in at_once(self._level):
            states = list(map(self.packer.unpack, numbers))
            self.claims.meet(states)
            taken.met.extend(
                Found(name, orders[first + numbers.index(number)], number)
                for name, number in self._broken()
            )
            is_stopped = is_stopped or (first > 0 and must_stop())
            if not is_stopped:
                self._expand(numbers, states, ranks[first:], taken)
            first += len(numbers)
        return taken

    def _broken(self) -> list[tuple[str, int]]:
        broken, self.claims.broken = self.claims.broken, []
        return [(claim.name, self.packer.pack(state)) for claim, state in broken]

    def _expand(
        self,
        numbers: Sequence[int],
        states: Sequence[StateT],
        ranks: Sequence[int],
        taken: Taken,
    ) -> None:
        actions, apply, pack = self.model.actions, self.model.apply, self.packer.pack
        parents, fresh, are_often_met = self.parents, self._fresh, self._are_often_met
        me, of, mask = self.me, self.of, self._mask
        met, seen = set[StateT](), 0
        sent = set[int]()
        for number, state, rank in zip(numbers, states, ranks, strict=False):
            enabled = actions(state)
            if not enabled:
                self.claims.end(state)
                taken.ended.extend(
                    Found(name, rank, end) for name, end in self._broken()
                )
            self._enabled.append(len(enabled))
            for order, action in enumerate(enabled, start=rank << _CHOICES):
                successor = apply(state, action)
                if are_often_met:  # see `Search`
                    met.add(successor)
                    if len(met) == seen:
                        continue
                    seen += 1
                try:
                    reached = pack(successor)
                except KeyError:  # a value of it is new
                    taken.strange.orders.append(order)
                    taken.strange.parents.append(number)
                    self._strange.append(successor)
                    continue
                if reached in parents or reached in sent:
                    continue
                owner = hash((reached & mask,)) % of
                if owner == me:
                    parents[reached] = number
                    fresh[reached] = order
                else:
                    sent.add(reached)
                    numbers_of, orders_of, parents_of = taken.theirs[owner]
                    numbers_of.append(reached)
                    orders_of.append(order)
                    parents_of.append(number)

    def admit(self, strange: Sequence[Batch], batches: Iterable[Batch]) -> "array[int]":
        """Takes what all reached of its states; the orders of its states of the next level, in order.

        `strange` are those of all searchers, its own among them: all learn the same values in the same order.
        """
        self.packer.close(is_closed=False)
        learnt = [
            Batch(list(map(self.packer.pack, self._states(sender, told))), *told[1:])
            for sender, told in enumerate(strange)
        ]
        self.packer.close()
        self._mask = self.packer.mask(self._anchors)
        known, fresh = self.parents, self._fresh
        for number, order, parent in self._mine(learnt, batches):
            before = fresh.get(number)
            if order < before if before is not None else number not in known:
                known[number] = parent
                fresh[number] = order
        self._fresh = {}
        self._level = sorted(fresh, key=fresh.__getitem__)
        return array("Q", map(fresh.__getitem__, self._level))

    def _states(self, sender: int, told: Batch) -> Iterable[StateT]:
        """The states that a searcher has told: another one's are reached once more."""
        if sender == self.me:
            return self._strange
        return map(self._again, told.parents, told.orders)

    def _again(self, parent: int, order: int) -> StateT:
        state = self.packer.unpack(parent)
        action = self.model.actions(state)[order & _WHICH]
        return self.model.apply(state, action)

    def _mine(
        self, learnt: Iterable[Batch], batches: Iterable[Batch]
    ) -> Iterator[tuple[int, int, int]]:
        """What others have sent, and of what all have learnt that which belongs to this one."""
        for batch in learnt:
            for each in zip(*batch, strict=True):
                if self.owner(each[0]) == self.me:
                    yield each
        for batch in batches:
            yield from zip(*batch, strict=True)

    def whence(self, number: int) -> tuple[StateT, tuple[int, int] | None]:
        """A state, and the searcher that owns its parent with the parent's number; None: it is the first one."""
        state, parent = self.packer.unpack(number), self.parents[number]
        return state, None if parent is None else (self.owner(parent), parent)
