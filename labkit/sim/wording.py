"""Functions that all models use for the text of their states: lists, sets of numbers, and remaining faults."""

from collections.abc import Iterable


def listed(words: Iterable[object], between: str = " ", none: str = "-") -> str:
    """Return the words joined by `between`, or the text `none` if there are no words."""
    return between.join(map(str, words)) or none


_FEW_BITS = 200


def members(bits: int) -> list[int]:
    """Return the numbers in a set that is encoded as bits: number n is in the set if bit n is 1."""
    if bits.bit_length() > _FEW_BITS:  # a shift of a number copies it
        return [number for number, bit in enumerate(reversed(f"{bits:b}")) if bit == "1"]
    return [number for number in range(bits.bit_length()) if bits >> number & 1]


def to_come(names: Iterable[str], counts: Iterable[int]) -> list[str]:
    """Return texts such as "2 crashes", which say how many faults of each kind may still happen; zeros are left out."""
    return [f"{count} {name}" for name, count in zip(names, counts, strict=True) if count]
