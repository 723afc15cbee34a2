"""One of several searchers that share a search: those states that belong to it, level by level.

A state belongs to the searcher that the hash of its anchors names, so searchers must hash alike, as forked processes do.
Order is kept: within a level states stand in the order of the least sequence of choices that leads there, as in
`labkit.sim.explore`, so that every number of searchers finds the same states, the same violations and the same traces.
What searchers hand each other are values; this module must not know how they travel, and must not know any model.
"""

from array import array
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any, Generic, NamedTuple

from labkit.sim.explore import Claims
from labkit.sim.model import Model, StateT
from labkit.sim.packing import News, Packer, Translation

_CHOICES = 16
"""Bits of an order that hold which of a state's actions was taken; those above hold the state's rank in its level."""

_ASK_EVERY = 1_024
"""States expanded between two questions whether somebody wants to stop."""


def rank_of(order: int) -> int:
    """The rank of the state from which a state with this order was reached."""
    return order >> _CHOICES


class Batch(NamedTuple):
    """States that one searcher reached and another one owns: their numbers, orders and parents, and how to read them."""

    news: list[News]
    numbers: list[int]
    orders: list[int]
    parents: list[int]


class Found(NamedTuple):
    """A state that breaks a claim: its order, or its rank if it is an end, and its number."""

    claim: str
    order: int
    number: int


_Candidate = tuple[int, int, StateT | None]
"""The order of a state that may be new, its parent as `Shard.parents` has it, and the state, if it is at hand."""


def anchors(model: Model[Any]) -> list[int]:
    """The fields of a state that decide to which searcher it belongs (Lerda and Sisto, SPIN 1999)."""
    fields: tuple[str, ...] = model.initial()._fields
    chosen = [place for place, name in enumerate(fields) if name in model.anchors]
    return chosen or list(range(len(fields)))


def first_owner(model: Model[Any], of: int) -> int:
    """To which of several searchers the initial state belongs."""
    return hash(itemgetter(*anchors(model))(model.initial())) % of


class Shard(Generic[StateT]):
    """The states of one searcher of several. Their parents may be those of others."""

    def __init__(self, model: Model[StateT], me: int, of: int) -> None:
        self.model, self.me, self.of = model, me, of
        self.claims = Claims(model)
        self._anchors = anchors(model)
        self._anchor: Any = itemgetter(*self._anchors)
        self._owners: dict[int, int] = {}
        self._taken = self._mask = 0
        self.packer = Packer(model)
        self.parents: dict[int, int | None] = {}
        self._fresh: dict[int, _Candidate[StateT]] = {}
        self._level: list[tuple[int, StateT]] = []
        self._enabled = array("I")
        # Of each other searcher: how to read its numbers, and what it has been told of how to read this one's.
        self._theirs = [Translation(self.packer) for _ in range(of)]
        self._told = [[0] * self.packer.width for _ in range(of)]
        initial = model.initial()
        number = self.packer.pack(initial)
        if self._owner(number, initial) == me:
            self.parents[number] = None
            self._level = [(number, initial)]

    def cut(self, size: int) -> None:
        """Forgets all states of the new level but the first ones."""
        for number, _ in self._level[size:]:
            del self.parents[number]
        del self._level[size:]

    def generated(self, states: int) -> int:
        """How many actions the first states of the level that was expanded last have together."""
        return sum(self._enabled[:states])

    def meet(self, orders: Sequence[int]) -> list[Found]:
        """Asks the claims about the states of the level, whose orders are given."""
        self.claims.meet([state for _, state in self._level])
        broken = self._broken()
        if not broken:
            return []
        numbers = [number for number, _ in self._level]
        return [
            Found(name, orders[numbers.index(number)], number)
            for name, number in broken
        ]

    def _broken(self) -> list[tuple[str, int]]:
        broken, self.claims.broken = self.claims.broken, []
        return [(claim.name, self.packer.pack(state)) for claim, state in broken]

    def expand(
        self, ranks: Sequence[int], must_stop: Callable[[], bool]
    ) -> tuple[list[Found], dict[int, Batch]]:
        """Takes every action in every state of the level: ends that break a claim, and states that others own."""
        actions, apply, pack = self.model.actions, self.model.apply, self.packer.pack
        me, parents, owner_of = self.me, self.parents, self._owner
        ended: list[Found] = []
        fresh: dict[int, _Candidate[StateT]] = {}
        theirs = [Batch([], [], [], []) for _ in range(self.of)]
        reached, count = set[StateT](), 0
        enabled_by_state = self._enabled = array("I")
        for rank, (number, state) in zip(ranks, self._level, strict=True):
            enabled = actions(state)
            if not enabled:
                self.claims.end(state)
                ended += [Found(name, rank, end) for name, end in self._broken()]
            enabled_by_state.append(len(enabled))
            for choice, action in enumerate(enabled, start=rank << _CHOICES):
                successor = apply(state, action)
                reached.add(successor)
                if len(reached) == count:
                    continue
                count += 1
                new = pack(successor)
                if new in parents:
                    continue
                owner = owner_of(new, successor)
                if owner == me:
                    fresh[new] = (choice, number, successor)
                else:
                    _, numbers, orders, before = theirs[owner]
                    numbers.append(new)
                    orders.append(choice)
                    before.append(number)
            if not len(enabled_by_state) % _ASK_EVERY and must_stop():
                break
        self._fresh = fresh
        return ended, {
            owner: batch._replace(news=self._news(owner))
            for owner, batch in enumerate(theirs)
            if batch.numbers
        }

    def _owner(self, number: int, state: StateT) -> int:
        """Whose a state is. It is worked out once for all states that agree in their anchors."""
        if not self.model.anchors:
            return hash(self._anchor(state)) % self.of
        packer = self.packer
        if packer.bits.taken != self._taken:
            self._taken, self._mask = packer.bits.taken, packer.mask(self._anchors)
        anchors = number & self._mask
        owner = self._owners.get(anchors)
        if owner is None:
            owner = self._owners[anchors] = hash(self._anchor(state)) % self.of
        return owner

    def _news(self, owner: int) -> list[News]:
        self._told[owner], news = self.packer.news(self._told[owner])
        return news

    def admit(self, batches: Iterable[tuple[int, Batch]]) -> "array[int]":
        """Takes what others reached, by their numbers; the orders of all states of the next level, in order."""
        fresh, known, unpack = self._fresh, self.parents, self.packer.unpack
        for sender, batch in batches:
            self._theirs[sender].read_on(batch.news)
            numbers = map(self._theirs[sender].read, batch.numbers)
            for number, order, parent in zip(
                numbers, batch.orders, batch.parents, strict=True
            ):
                if number in known:
                    continue
                before = fresh.get(number)
                if before is None or order < before[0]:
                    state = None if before is None else before[2]
                    fresh[number] = (order, self._elsewhere(sender, parent), state)
        # Orders differ, so nothing else is compared.
        found = sorted(fresh, key=fresh.__getitem__)
        known.update((number, fresh[number][1]) for number in found)
        self._level = [(number, fresh[number][2] or unpack(number)) for number in found]
        self._fresh = {}
        return array("Q", [fresh[number][0] for number in found])

    def _elsewhere(self, sender: int, parent: int) -> int:
        """A parent that another searcher owns, told from this one's own by its sign."""
        return -1 - (parent * self.of + sender)

    def whence(self, number: int) -> tuple[StateT, tuple[int, int] | None]:
        """A state, and the searcher that owns its parent with the parent's number there; None: it is the first one."""
        state, parent = self.packer.unpack(number), self.parents[number]
        if parent is None:
            return state, None
        if parent >= 0:
            return state, (self.me, parent)
        there, sender = divmod(-1 - parent, self.of)
        return state, (sender, there)
