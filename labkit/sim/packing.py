"""Encode states as numbers: each value of a state's field gets a code, and a state's number is the sum of its codes.

This is collapse compression (Holzmann, "State Compression in SPIN", 1997). It is exact: each field owns as many bits of
the number as its different values need, so different states have different numbers, and a number can be decoded. Only a
packer with the same codes can decode it.
"""

from array import array
from collections.abc import Iterable, Sequence
from itertools import islice
from operator import getitem
from typing import Any, Generic

from labkit.sim.model import Model, StateT, from_fields

News = tuple[int, list[tuple[int, Any]]]
"""For one part of a state, the mask of the bits that encode it, and its new codes with the values that they encode."""


class _Bits:
    """The bits of an encoded state: how many are in use (`taken`), and which belong to each part (`masks`)."""

    def __init__(self) -> None:
        self.taken = 0
        self.masks: list[int] = []

    def take(self, part: int) -> int:
        """Reserve one more bit for part number `part` of a state; return the number in which only this bit is 1."""
        bit = 1 << self.taken
        self.taken += 1
        self.masks[part] |= bit
        return bit


class _Codes(dict[Any, int]):
    """The codes of the values that one part of a state, such as a field, can have; a new value gets the next code.

    A state is encoded as one number, in which each part has bits of its own, which need not be adjacent. The code of a
    value is a number in which only bits of its part are set.
    """

    def __init__(self, bits: _Bits) -> None:
        super().__init__()
        self._bits, self._part = bits, len(bits.masks)
        bits.masks.append(0)
        self._own: list[int] = []
        self.is_closed = False
        self.values_by_code: dict[int, Any] = {}

    def __missing__(self, value: Any) -> int:
        if self.is_closed:
            raise KeyError(value)
        number = len(self)
        if number >> len(self._own):
            self._own.append(self._bits.take(self._part))
        code = sum(bit for place, bit in enumerate(self._own) if number >> place & 1)
        self[value] = code
        self.values_by_code[code] = value
        return code


class Packer(Generic[StateT]):
    """Encodes the states of one simulator as integers, and decodes them. The states must be named tuples of one class.

    Each distinct value of a field gets a code; the codes of all fields together form the integer.
    """

    def __init__(self, model: Model[StateT]) -> None:
        initial: Any = model.initial()
        if not hasattr(initial, "_fields"):
            raise TypeError(
                f"{type(initial).__name__} is not a named tuple; derive the class of the states from "
                "NamedTuple, so that a search can encode their fields."
            )
        self._build: Any = from_fields(type(initial))
        self._row = initial._fields.index(model.row) if model.row in initial._fields else -1
        self._length = len(initial[self._row]) if self._row >= 0 else 0
        bits = _Bits()
        self._tables = [_Codes(bits) for _ in self._parts(initial)]
        self._masks = bits.masks
        self._values = [table.values_by_code for table in self._tables]

    def _parts(self, state: Any) -> tuple[Any, ...]:
        """Return the parts of a state that are encoded separately.

        Each field is a part, except the field that `Model.row` names, a tuple of processes: each process is a part.
        """
        row = self._row
        if row < 0:
            return state  # type: ignore[no-any-return]  # a named tuple
        if len(state[row]) != self._length:
            raise TypeError(
                f"the state's field {state._fields[row]} had {self._length} entries, one for each process, and now has "
                f"{len(state[row])}, but a search needs the same number in every state; change the simulator's actions "
                "to keep this number."
            )
        return (*state[:row], *state[row], *state[row + 1 :])

    def mask(self, fields: Iterable[int]) -> int:
        """Return a mask of the bits that encode certain fields of a state. `fields` has the indices of these fields."""
        return sum(mask for field in fields for mask in self._masks[self._slice(field)])

    def _slice(self, field: int) -> slice:
        row, more = self._row, self._length - 1
        if row < 0 or field < row:
            return slice(field, field + 1)
        return slice(field + more * (field > row), field + more + 1)

    def unknown(self, state: StateT) -> list[tuple[int, Any]]:
        """Return the parts of a state that have a value without a code, as pairs of the part's index and the value."""
        return [(field, value) for field, value in enumerate(self._parts(state)) if value not in self._tables[field]]

    def learn(self, field: int, value: Any) -> int:
        """Return the code of a value in part number `field` of a state; assign a code if the value has none."""
        return self._tables[field][value]

    def news(self, since: Sequence[int]) -> tuple[list[int], list[News]]:
        """Return the codes assigned since an earlier call, so that another packer can learn them with `read_on`.

        The result is two lists with one item for each part of a state (a field or one process): the number of codes
        that the part has now, and its new codes. `since` is the first of the two lists that the earlier call returned.
        """
        counts = [len(table) for table in self._tables]
        return counts, [
            (mask, list(islice(values.items(), first, None)))
            for mask, values, first in zip(self._masks, self._values, since, strict=True)
        ]

    def close(self, *, is_closed: bool = True) -> None:
        """Make `pack` raise `KeyError` for a value without a code, or assign a code if `is_closed` is False."""
        for table in self._tables:
            table.is_closed = is_closed

    def read_on(self, news: Sequence[News]) -> None:
        """Add the codes that another packer has assigned (`news`), so that both encode states as the same numbers.

        From then on, `pack` raises `KeyError` for a state with a value that has no code.
        """
        self.close()
        self._masks[:] = [mask for mask, _ in news]
        for table, (_, values) in zip(self._tables, news, strict=True):
            table.values_by_code.update(values)
            table.update((value, code) for code, value in values)

    @property
    def width(self) -> int:
        """Return the number of parts of a state that are encoded separately."""
        return len(self._tables)

    @property
    def bits(self) -> int:
        """Return the largest number of bits that encoding a state can take, with the codes assigned so far."""
        return max(mask.bit_length() for mask in self._masks)

    def pack(self, state: StateT) -> int:
        """Return the number that encodes a state.

        Raises `TypeError` if the number of processes differs from that in the initial state.
        """
        parts: Any = state if self._row < 0 else self._parts(state)
        return sum(map(getitem, self._tables, parts))

    def unpack(self, key: int) -> StateT:
        """Return the state that `pack` encoded as this number."""
        parts = tuple(map(getitem, self._values, map(key.__and__, self._masks)))
        row = self._row
        if row >= 0:
            end = row + self._length
            parts = (*parts[:row], parts[row:end], *parts[end:])
        state: StateT = self._build(parts)
        return state


def compact(numbers: Sequence[int]) -> Sequence[int]:
    """Return the numbers as an array of 8-byte integers, or unchanged if one of them does not fit into 8 bytes."""
    try:
        return array("Q", numbers)
    except OverflowError:
        return numbers
