"""Numbers of any width as rows of bytes in sorted arrays: a set of millions is one block of memory, and one file.

Duplicates are found late: what a level reached is sorted, and held against the sorted array of all that is known (Stern
and Dill, "Using Magnetic Disk Instead of Main Memory in the Murphi Verifier", 1998; Korf, "Delayed Duplicate
Detection", 2003). A number's bytes stand in big-endian order, so rows sort as their numbers do, and a wider row of the
same number only begins with more zeros.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.bytes_]
"""One number a row."""
Pairs = NDArray[np.void]
"""In each row a state's number and its parent's, as the fields `state` and `parent`."""

_MIX = 0x9E3779B97F4A7C15
"""An odd number whose multiples lie evenly among those of 64 bits (Knuth's multiplicative hashing)."""


def width_of(bits: int) -> int:
    """Bytes of a row that holds numbers of so many bits."""
    return max(1, -(-bits // 8))


def keys(numbers: Iterable[int], width: int) -> Keys:
    """These numbers, in this order."""
    written = b"".join([number.to_bytes(width, "big") for number in numbers])
    return np.frombuffer(written, f"S{width}")


def numbers(rows: Keys) -> list[int]:
    """The numbers of these rows. Not by `tolist`, which drops zeros at the end."""
    width, written = rows.itemsize, rows.tobytes()
    return [int.from_bytes(written[at : at + width], "big") for at in range(0, len(written), width)]


def paired(width: int) -> "np.dtype[np.void]":
    """The kind of a row of two numbers of so many bytes."""
    return np.dtype([("state", f"S{width}"), ("parent", f"S{width}")])


def pairs(states: Keys, parents: Keys) -> Pairs:
    """States beside their parents, in rows as wide as these."""
    rows = np.empty(len(states), paired(states.itemsize))
    rows["state"], rows["parent"] = states, parents
    return rows


def joined(several: Sequence[Pairs], width: int) -> Pairs:
    """Several arrays as one whose numbers have so many bytes. None may have more."""
    wide = [pairs(widened(each["state"], width), widened(each["parent"], width)) for each in several]
    return np.concatenate([np.empty(0, paired(width)), *wide])


def widened(rows: Keys, width: int) -> Keys:
    """The same numbers in rows of so many bytes, which are at least as many."""
    had = rows.itemsize
    if had == width:
        return rows
    wide = np.zeros((len(rows), width), np.uint8)
    wide[:, width - had :] = np.frombuffer(rows.tobytes(), np.uint8).reshape(-1, had)
    return wide.reshape(-1).view(f"S{width}")


def first_of_each(rows: Pairs) -> Pairs:
    """Sorted by state, and of those with the same state the first one."""
    rows = rows[np.argsort(rows["state"], kind="stable")]
    states = rows["state"]
    is_first = np.ones(len(rows), bool)
    is_first[1:] = states[1:] != states[:-1]
    return rows[is_first]


def admitted(known: Keys, reached: Pairs) -> tuple[Keys, Pairs]:
    """What is known now, and which of the states that were reached are new; all of it sorted, each state once."""
    reached = first_of_each(reached)
    states = np.ascontiguousarray(reached["state"])
    places = np.searchsorted(known, states)
    is_new = np.ones(len(states), bool)
    inside = places < len(known)
    is_new[inside] = known[places[inside]] != states[inside]
    return np.insert(known, places[is_new], states[is_new]), reached[is_new]


def parent(level: Pairs, number: int) -> int:
    """The parent of a state that is in this sorted array."""
    states = level["state"]
    place = np.searchsorted(states, keys([number], states.itemsize))
    (found,) = numbers(level["parent"][place])
    return found


def owners(states: Keys, parts: int) -> NDArray[np.int64]:
    """To which of so many parts each number belongs: by the number alone, however wide its row is."""
    words = -(-states.itemsize // 8)
    written = np.frombuffer(widened(states, 8 * words).tobytes(), ">u8")
    mixed = np.zeros(len(states), np.uint64)
    for place, word in enumerate(written.reshape(-1, words).T[::-1], start=1):
        mixed += word * np.uint64(pow(_MIX, place, 1 << 64))
    return ((mixed >> np.uint64(32)) % np.uint64(parts)).astype(np.int64)


def by_owner(rows: Pairs, parts: int) -> tuple[Pairs, NDArray[Any]]:
    """Rows in the order of the parts that own their states; and where each part's rows begin, and the last
    one's end.
    """
    owner = owners(rows["state"], parts)
    order = np.argsort(owner, kind="stable")
    return rows[order], np.searchsorted(owner[order], np.arange(parts + 1))
