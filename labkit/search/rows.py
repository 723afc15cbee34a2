"""Sets of millions of large numbers as sorted arrays of fixed-width rows: each set is one block of memory, or one file.

Duplicates are detected late: the states that a level reached are sorted and compared with the sorted array of all known
states (Stern and Dill, "Using Magnetic Disk Instead of Main Memory in the Murphi Verifier", 1998; Korf, "Delayed
Duplicate Detection", 2003). Numbers are stored in big-endian order, so rows sort like their numbers, and a wider row of
the same number merely begins with more zeros.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.bytes_]
"""An array with one number per row."""
Pairs = NDArray[np.void]
"""An array of states and their parents, as the fields `state` and `parent`."""

_MIX = 0x9E3779B97F4A7C15
"""An odd number whose multiples spread evenly over 64 bits (Knuth's multiplicative hashing)."""


def width_of(bits: int) -> int:
    """Return how many bytes a number of this many bits needs."""
    return max(1, -(-bits // 8))


def keys(numbers: Iterable[int], width: int) -> Keys:
    """Return an array with one row per number, in the same order. A row is the number as `width` bytes, big-endian."""
    written = b"".join([number.to_bytes(width, "big") for number in numbers])
    return np.frombuffer(written, f"S{width}")


def numbers(rows: Keys) -> list[int]:
    """Return the numbers that the rows encode. NumPy's `tolist` is not used, because it drops trailing zero bytes."""
    width, written = rows.itemsize, rows.tobytes()
    return [int.from_bytes(written[at : at + width], "big") for at in range(0, len(written), width)]


def paired(width: int) -> "np.dtype[np.void]":
    """Return the NumPy dtype of a row with a state and its parent, each a number of `width` bytes.

    The parent of a state is the state from which the search reached it.
    """
    return np.dtype([("state", f"S{width}"), ("parent", f"S{width}")])


def pairs(states: Keys, parents: Keys) -> Pairs:
    """Return an array in which row n has the fields `states[n]` and `parents[n]`."""
    rows = np.empty(len(states), paired(states.itemsize))
    rows["state"], rows["parent"] = states, parents
    return rows


def joined(several: Sequence[Pairs], width: int) -> Pairs:
    """Concatenate arrays of states and parents, after widening every number to `width` bytes.

    The parent of a state is the state from which the search reached it.
    """
    wide = [pairs(widened(each["state"], width), widened(each["parent"], width)) for each in several]
    return np.concatenate([np.empty(0, paired(width)), *wide])


def widened(rows: Keys, width: int) -> Keys:
    """Return the same numbers in rows of `width` bytes, which must be at least the present width of the rows."""
    had = rows.itemsize
    if had == width:
        return rows
    wide = np.zeros((len(rows), width), np.uint8)
    wide[:, width - had :] = np.frombuffer(rows.tobytes(), np.uint8).reshape(-1, had)
    return wide.reshape(-1).view(f"S{width}")


def first_of_each(rows: Pairs) -> Pairs:
    """Return the rows sorted by state, with only the first row of each state."""
    rows = rows[np.argsort(rows["state"], kind="stable")]
    states = rows["state"]
    is_first = np.ones(len(rows), bool)
    is_first[1:] = states[1:] != states[:-1]
    return rows[is_first]


def admitted(visited: Keys, reached: Pairs) -> tuple[Keys, Pairs]:
    """Merge the states that one level of a search has reached into the states visited before.

    Returns all states visited so far, and the rows of `reached` whose state is new, both sorted and without duplicates.
    """
    reached = first_of_each(reached)
    states = np.ascontiguousarray(reached["state"])
    places = np.searchsorted(visited, states)
    is_new = np.ones(len(states), bool)
    inside = places < len(visited)
    is_new[inside] = visited[places[inside]] != states[inside]
    return np.insert(visited, places[is_new], states[is_new]), reached[is_new]


def parent(level: Pairs, number: int) -> int:
    """Return the parent of the state `number`: the state from which the search reached it.

    `level` has the rows of the level that contains this state, sorted by state.
    """
    states = level["state"]
    place = np.searchsorted(states, keys([number], states.itemsize))
    (result,) = numbers(level["parent"][place])
    return result


def owners(states: Keys, parts: int) -> NDArray[np.int64]:
    """Return for each state the number of the partition that owns it.

    The number comes from a hash that does not depend on the width of the rows.
    """
    words = -(-states.itemsize // 8)
    written = np.frombuffer(widened(states, 8 * words).tobytes(), ">u8")
    mixed = np.zeros(len(states), np.uint64)
    for place, word in enumerate(written.reshape(-1, words).T[::-1], start=1):
        mixed += word * np.uint64(pow(_MIX, place, 1 << 64))
    return ((mixed >> np.uint64(32)) % np.uint64(parts)).astype(np.int64)


def by_owner(rows: Pairs, parts: int) -> tuple[Pairs, NDArray[Any]]:
    """Return the rows grouped by the partition of their state, and the array of the positions where the groups begin.

    The second array ends with the number of rows, so group n ends where group n + 1 begins. `parts` is the number of
    partitions.
    """
    owner = owners(rows["state"], parts)
    order = np.argsort(owner, kind="stable")
    return rows[order], np.searchsorted(owner[order], np.arange(parts + 1))
